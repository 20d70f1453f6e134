//! Tables whose products are beyond what numbers hold, and texts that somebody wrote carelessly.
#![expect(clippy::unwrap_used, reason = "a test whose model is refused has failed")]

use graphical_models::{Factor, Failure, Limits, Model, Variable, VariableId, bif, uai};
use seeded::Stream;

fn variable(name: &str, states: usize) -> Variable {
    Variable { name: name.to_owned(), states: (0..states).map(|state| state.to_string()).collect() }
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-10 * expected.abs().max(1e-3), "{found}, expected {expected}");
    }
}

/// The distribution whose logarithms these are, but for a number that all of them have too much, and that.
fn normalised(logs: &[f64]) -> (Vec<f64>, f64) {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    (logs.iter().map(|log| (log - most).exp() / sum).collect(), most + sum.ln())
}

#[test]
fn a_table_may_have_any_numbers() {
    let mut stream = seeded::Family::named("graphical-models extremes").stream(0);
    for turn in 0..60 {
        let draw = |stream: &mut Stream| (0..6).map(|_| stream.below(5) as f64).collect::<Vec<f64>>();
        let tables = [draw(&mut stream), draw(&mut stream)];
        let power = [-1000, -60, -31, 0, 31, 60, 1000][turn % 7];
        let made = |powers: [i32; 2]| {
            let mut model = Model::new(vec![variable("a", 2), variable("b", 3)]).unwrap();
            for (table, power) in tables.iter().zip(powers) {
                let scope = vec![VariableId(0), VariableId(1)];
                let values = table.iter().map(|value| value * 2.0_f64.powi(power)).collect();
                model.multiply(Factor { scope, values }).unwrap();
            }
            model.marginals(&[], &Limits::default())
        };
        let (plain, scaled) = (made([0, 0]), made([power, -power / 2]));
        let (Ok(plain), Ok(scaled)) = (plain, scaled.clone()) else {
            assert!(matches!(scaled, Err(Failure::Evidence(_))), "{scaled:?}");
            continue;
        };
        plain.of.iter().zip(&scaled.of).for_each(|(plain, scaled)| close(scaled, plain));
        let moved = f64::from(power - power / 2) * 2.0_f64.ln();
        close(&[scaled.log_evidence], &[plain.log_evidence + moved]);
    }
}

#[test]
fn thousands_of_tables_over_the_same_variables() {
    let mut stream = seeded::Family::named("graphical-models extremes").stream(1);
    for (low, high) in [(0.0, 1.0), (20.0, 21.0), (0.1, 0.11), (1e-200, 1.0), (1e100, 1e101)] {
        let mut model = Model::new(vec![variable("a", 3), variable("b", 2)]).unwrap();
        let (mut logs, count) = (vec![0.0; 3], 1 + stream.below(3000));
        for _ in 0..count {
            let values: Vec<f64> = (0..3).map(|_| low + (high - low) * stream.uniform().max(1e-9)).collect();
            logs.iter_mut().zip(&values).for_each(|(log, value)| *log += value.ln());
            model.multiply(Factor { scope: vec![VariableId(0)], values }).unwrap();
        }
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let rows: Vec<f64> = values.chunks(2).map(|row| row[0] + row[1]).collect();
        model.multiply(Factor { scope: vec![VariableId(0), VariableId(1)], values }).unwrap();
        let all: Vec<f64> = logs.iter().zip(&rows).map(|(log, row)| log + row.ln()).collect();
        let (expected, log) = normalised(&all);
        let found = model.marginals(&[], &Limits::default()).unwrap();
        close(&found.of[0], &expected);
        close(&[found.log_evidence], &[log]);
        let joint = model.joint(&[VariableId(0)], &[], &Limits::default()).unwrap();
        close(&joint.probabilities, &expected);
        let best = |state: &usize| logs[*state] + (2.0 * (*state as f64 + 1.0)).ln();
        let most = (0..3).max_by(|a, b| best(a).total_cmp(&best(b))).unwrap();
        let (states, log) = model.most_probable(&[], &Limits::default()).unwrap();
        assert_eq!(states, [most, 1]);
        close(&[log], &[best(&most)]);
    }
}

/// A class with thousands of words, all of them seen.
#[test]
fn much_evidence_is_not_taken_for_none() {
    let mut text =
        "variable C { type discrete [ 2 ] { a, b }; }\nprobability ( C ) { table 0.5, 0.5; }\n".to_owned();
    for word in 0..2000 {
        let (a, b) = if word % 2 == 0 { (0.001, 0.002) } else { (0.002, 0.001) };
        text += &format!(
            "variable W{word} {{ type discrete [ 2 ] {{ yes, no }}; }}\nprobability ( W{word} | C ) {{ (a) {a}, {}; (b) {b}, {}; }}\n",
            1.0 - a,
            1.0 - b
        );
    }
    let model = bif::read(&text).unwrap();
    let evidence: Vec<(VariableId, usize)> = (1..=2000).map(|at| (VariableId(at), 0)).collect();
    let found = model.marginals(&evidence, &Limits::default()).unwrap();
    close(&found.of[0], &[0.5, 0.5]);
    close(&[found.log_evidence], &[1000.0 * (0.001_f64.ln() + 0.002_f64.ln())]);
}

/// Where a text is wrong, and why.
fn wrong(read: Result<Model, Failure>) -> (usize, usize, String) {
    match read.unwrap_err() {
        Failure::Text { line, column, message } => (line, column, message),
        other => (0, 0, other.to_string()),
    }
}

const PAIR: &str = "network n {}
variable A { type discrete [ 2 ] { a, b }; }
variable B { type discrete [ 2 ] { yes, no }; }
probability ( A ) { table 0.2, 0.8; }
probability ( B | A ) { (a) 0.1, 0.9; (b) 0.7, 0.3; }
";

#[test]
fn a_network_has_no_circle() {
    let circle = PAIR.replace("( A ) { table 0.2, 0.8; }", "( A | B ) { (yes) 0.2, 0.8; (no) 1, 0; }");
    let told = "the distributions go in a circle: `A` -> `B` -> `A`".to_owned();
    assert_eq!(wrong(bif::read(&circle)), (4, 1, told));
    let told = "the distributions go in a circle: `0` -> `1` -> `0`".to_owned();
    let text = "BAYES 3 2 2 2 3\n1 2\n2 0 1\n2 1 0\n 2 0.5 0.5 4 0.1 0.9 0.5 0.5\n4 0.2 0.8 0.4 0.6\n";
    assert_eq!(wrong(uai::read(text)), (4, 1, told));
    // Of a Markov field the same tables are factors.
    assert!(uai::read(&text.replace("BAYES", "MARKOV")).is_ok());
    // A long circle behind much that is none: the whole of it is not told.
    let count = 5000;
    let mut text = format!("BAYES {count} {} {count}\n1 0\n", "1 ".repeat(count));
    for at in 1..count {
        text += &format!("2 {} {at}\n", if at == 100 { count - 1 } else { at - 1 });
    }
    text += &"1 1\n".repeat(count);
    let (line, _, told) = wrong(uai::read(&text));
    assert!(line == 102 && told.len() < 200 && told.contains("`100` -> `101`"), "{line} {told}");
}

#[test]
fn what_editors_leave_in_a_text() {
    let plain = bif::read(PAIR).unwrap();
    for text in [format!("\u{feff}{PAIR}"), PAIR.replace('\n', "\r\n"), PAIR.replace(' ', "\t")] {
        let read = bif::read(&text).unwrap();
        assert_eq!(read.variables(), plain.variables());
        assert_eq!(read.factors(), plain.factors());
    }
    assert_eq!(wrong(bif::read("\u{feff}net")).1, 2);
    for text in [
        "\u{feff}MARKOV 1 2 1 1 0 2 1 3",
        "MARKOV\r\n1\r\n2\r\n1\r\n1 0\r\n2\r\n1 3\r\n",
        "\u{feff}\nMARKOV 1 2 1 1 0 2 1 3",
    ] {
        assert_eq!(uai::read(text).unwrap().factors()[0].values, [1.0, 3.0]);
    }
}

#[test]
fn careless_texts_are_told_where() {
    for (text, place, told) in [
        ("", (1, 1), "without variables"),
        ("network n {}", (1, 12), "without variables"),
        ("variable A { type discrete [ 0 ] { }; }", (1, 30), "has no states"),
        ("variable A { type discrete [ 2 ] { a, b, c }; }", (1, 30), "has 3 states and says `2`"),
        ("variable A { type discrete [ 1000000000 ] { a }; }", (1, 30), "says `1000000000`"),
    ] {
        let found = wrong(bif::read(text));
        assert_eq!((found.0, found.1), place, "{text}: {found:?}");
        assert!(found.2.contains(told), "{text}: {found:?}");
    }
    // As many states as a text can have are read while one waits.
    let states: Vec<String> = (0..200_000).map(|at| format!("s{at}")).collect();
    let text = format!("variable A {{ type discrete [ 200000 ] {{ {} }}; }}", states.join(", "));
    assert!(wrong(bif::read(&text)).2.contains("no table"));
}
