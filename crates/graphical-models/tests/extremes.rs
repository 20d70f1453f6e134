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

/// The logarithm of the product of all factors, for each state of all variables that the evidence admits.
fn worlds(model: &Model, evidence: &[(VariableId, usize)]) -> Vec<(Vec<usize>, f64)> {
    let sizes: Vec<usize> = model.variables().iter().map(|variable| variable.states.len()).collect();
    let world = |mut at: usize| {
        let mut states = vec![0; sizes.len()];
        for (state, size) in states.iter_mut().zip(&sizes) {
            (*state, at) = (at % size, at / size);
        }
        let log = |factor: &Factor| {
            factor.values[factor.scope.iter().fold(0, |place, id| place * sizes[id.0] + states[id.0])].ln()
        };
        let sum = model.factors().iter().map(log).sum();
        (states, sum)
    };
    let all = (0..sizes.iter().product()).map(world);
    all.filter(|(states, _)| evidence.iter().all(|(id, state)| states[id.0] == *state)).collect()
}

fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY { most } else { most + logs.map(|log| (log - most).exp()).sum::<f64>().ln() }
}

/// All answers about a model are those of logarithms over all states of all variables.
fn is_exact(model: &Model, evidence: &[(VariableId, usize)], of: &[VariableId]) -> bool {
    let worlds = worlds(model, evidence);
    let total = log_sum(worlds.iter().map(|(_, log)| *log));
    let limits = Limits::default();
    let found = model.marginals(evidence, &limits);
    let (joint, best) = (model.joint(of, evidence, &limits), model.most_probable(evidence, &limits));
    if total == f64::NEG_INFINITY {
        assert!(matches!(found, Err(Failure::Evidence(_))), "{found:?}");
        assert!(matches!(joint, Err(Failure::Evidence(_))) && matches!(best, Err(Failure::Evidence(_))));
        return false;
    }
    let (found, joint, best) = (found.unwrap(), joint.unwrap(), best.unwrap());
    let near = |found: f64, log: f64| {
        let expected = (log - total).exp();
        assert!((found - expected).abs() <= 1e-9 * expected + 1e-300, "{found}, expected {expected}");
    };
    let scale = 1e-11 * total.abs().max(1.0);
    assert!((found.log_evidence - total).abs() <= scale, "{} instead of {total}", found.log_evidence);
    assert!((joint.log_evidence - total).abs() <= scale, "{} instead of {total}", joint.log_evidence);
    for (variable, probabilities) in found.of.iter().enumerate() {
        for (state, probability) in probabilities.iter().enumerate() {
            let own = worlds.iter().filter(|(states, _)| states[variable] == state).map(|(_, log)| *log);
            near(*probability, log_sum(own));
        }
    }
    for (cell, probability) in joint.probabilities.iter().enumerate() {
        let mut rest = cell;
        let mut wanted = Vec::new();
        for id in of.iter().rev() {
            let size = model.variable(*id).states.len();
            wanted.push((id.0, rest % size));
            rest /= size;
        }
        let own = worlds.iter().filter(|(states, _)| wanted.iter().all(|(at, state)| states[*at] == *state));
        near(*probability, log_sum(own.map(|(_, log)| *log)));
    }
    let most = worlds.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
    let own = worlds.iter().find(|(states, _)| *states == best.0).map(|(_, log)| *log);
    assert!((best.1 - most).abs() <= scale && (own.unwrap() - most).abs() <= scale, "{best:?}, most {most}");
    true
}

/// Tables of all magnitudes, beside each other in one clique and in messages.
#[test]
fn products_beyond_the_numbers_are_exact() {
    let mut stream =
        seeded::Family::new("graphical-models", "products beyond", seeded::test_seed()).stream(0);
    let mut possible = 0;
    for turn in 0..300 {
        let count = 2 + stream.below(6) as usize;
        let sizes: Vec<usize> = (0..count).map(|_| 1 + stream.below(3) as usize).collect();
        let variables = sizes.iter().enumerate().map(|(at, size)| variable(&format!("v{at}"), *size));
        let mut model = Model::new(variables.collect()).unwrap();
        let decades = [0.0, 20.0, 150.0, 300.0, 322.0][turn % 5];
        for _ in 0..1 + stream.below(3 * count as u64) {
            let mut scope: Vec<VariableId> = (0..count).map(VariableId).collect();
            for at in (1..count).rev() {
                scope.swap(at, stream.below(at as u64 + 1) as usize);
            }
            scope.truncate(stream.below(4) as usize);
            let cells = scope.iter().map(|id| sizes[id.0]).product();
            let number = |stream: &mut Stream| match stream.below(8) {
                0 => 0.0,
                1 => 1.0,
                // The least of them have a bit or two.
                _ => {
                    let number = 10.0_f64.powf(decades * (2.0 * stream.uniform() - 1.0));
                    (number * (0.1 + stream.uniform())).min(f64::MAX)
                }
            };
            let values = (0..cells).map(|_| number(&mut stream)).collect();
            model.multiply(Factor { scope, values }).unwrap();
        }
        let evidence: Vec<(VariableId, usize)> = match stream.below(3) {
            0 => vec![(VariableId(0), stream.below(sizes[0] as u64) as usize)],
            _ => Vec::new(),
        };
        let of = [VariableId(count - 1), VariableId(stream.below(count as u64 - 1) as usize)];
        possible += usize::from(is_exact(&model, &evidence, &of));
    }
    assert!(possible > 100, "{possible}");
}

/// What is left of one clique is small where what is left of another is large.
#[test]
fn messages_that_cancel_are_exact() {
    let text = "MARKOV 5  2 2 2 2 2  7  2 0 1  2 0 2  2 0 3  3 1 2 3  1 1  1 2  2 0 4
        4 1 1e-140 1 1e-100  4 1 1e-140 1 1e-100  4 1 1e-140 1 1e-100
        8 1e-300 0 0 0 0 0 0 1  2 1e-150 1  2 1e-150 1  4 1 1 1e-250 1e-250";
    let model = uai::read(text).unwrap();
    assert!(is_exact(&model, &[], &[VariableId(0), VariableId(3)]));
    let found = model.marginals(&[], &Limits::default()).unwrap();
    // Ones are 1e-420 of the first state and 1e-550 of the second; the rest is below.
    close(&[found.log_evidence], &[2.0_f64.ln() - 420.0 * 10.0_f64.ln()]);
    assert!((found.of[0][1] / 1e-130 - 1.0).abs() < 1e-9, "{:?}", found.of[0]);
    let (states, log) = model.most_probable(&[], &Limits::default()).unwrap();
    assert_eq!(states[..4], [0, 1, 1, 1]);
    close(&[log], &[-420.0 * 10.0_f64.ln()]);
}

/// Each number is one, and products of a few of them are not.
#[test]
fn dense_fields_and_sensors_are_exact() {
    let pairs =
        |count: usize| (0..count).flat_map(move |b| (0..b).map(move |a| [VariableId(a), VariableId(b)]));
    for (count, equal) in [(12, 4.2e-18), (5, 1e-250), (9, 1e60), (4, 5e-324)] {
        let mut model = Model::new((0..count).map(|at| variable(&format!("v{at}"), 2)).collect()).unwrap();
        for scope in pairs(count) {
            let values = vec![equal, 1.0, 1.0, equal];
            model.multiply(Factor { scope: scope.to_vec(), values }).unwrap();
        }
        assert!(is_exact(&model, &[], &[VariableId(0), VariableId(1)]));
        let found = model.marginals(&[], &Limits::default()).unwrap();
        found.of.iter().for_each(|of| close(of, &[0.5, 0.5]));
    }
    // Six variables of which every two are seen to differ, which they hardly do where they are equal.
    let mut text = String::new();
    for at in 0..6 {
        text += &format!(
            "variable x{at} {{ type discrete [ 2 ] {{ a, b }}; }}\nprobability ( x{at} ) {{ table 0.5, 0.5; }}\n"
        );
    }
    for [VariableId(a), VariableId(b)] in pairs(6) {
        text += &format!(
            "variable y{a}_{b} {{ type discrete [ 2 ] {{ yes, no }}; }}\nprobability ( y{a}_{b} | x{a}, x{b} ) {{ \
             (a, a) 1e-60, 1; (b, b) 1e-60, 1; (a, b) 1, 0; (b, a) 1, 0; }}\n"
        );
    }
    let model = bif::read(&text).unwrap();
    let seen: Vec<(VariableId, usize)> = (0..model.variables().len())
        .map(VariableId)
        .filter(|id| model.variable(*id).name.starts_with('y'))
        .map(|id| (id, 0))
        .collect();
    let found = model.marginals(&seen, &Limits::default()).unwrap();
    found.of.iter().take(6).for_each(|of| assert!(of[0] > 0.0));
    // Three of each kind are best: six pairs are equal.
    let expected = (20.0_f64 / 64.0).ln() + 6.0 * 1e-60_f64.ln();
    close(&[found.log_evidence], &[expected]);
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

/// A name in quotation marks is one, whatever its letters.
#[test]
fn quoted_signs_and_keywords_are_names() {
    for sign in ["}", "{", ";", ",", "|", ")", "property", "type", "default", "table"] {
        let text = PAIR.replace("( A )", "( \"A\" )").replace("{ a, b }", &format!("{{ a, \"{sign}\" }}"));
        let text = text.replace("(b)", &format!("(\"{sign}\")"));
        let text = text.replace("; }\nvariable B", &format!("; property \"{sign}\"; }}\nvariable B"));
        let text = text.replace("network n {}", &format!("network \"{sign}\" {{ property \"{sign}\"; }}"));
        let model = bif::read(&text).unwrap();
        assert_eq!(model.variable(VariableId(0)).states, ["a", sign], "{text}");
        assert_eq!(model.factors(), bif::read(PAIR).unwrap().factors());
    }
    for (old, new, place, told) in [
        ("{ a, b }", "{ a,, b }", (2, 38), "`,` where a state was expected"),
        ("{ a, b }", "{ a, ( }", (2, 39), "`(` where a state was expected"),
        ("variable A {", "variable { A {", (2, 10), "`{` where the name of a variable was expected"),
        ("( B | A )", "( B | \",\" )", (5, 19), "there is no variable `,`"),
        ("variable A {", "variable A { type discrete [ 1 ] { c };", (2, 41), "a second type of `A`"),
        ("variable A {", "\"variable\" A {", (2, 1), "`variable` where `network`"),
        ("(b) 0.7", "(}) 0.7", (5, 40), "`}` where a state was expected"),
    ] {
        let found = wrong(bif::read(&PAIR.replacen(old, new, 1)));
        assert_eq!((found.0, found.1), place, "{new}: {found:?}");
        assert!(found.2.contains(told), "{new}: {found:?}");
    }
}

/// A `default` row stands for any number of others, and a table may come before the variables that it names.
#[test]
fn short_tables_and_tables_that_come_first() {
    let parents: Vec<String> = (0..10).map(|at| format!("P{at}")).collect();
    let mut text = String::from("network n {}\n");
    text += &format!(
        "probability ( A | {} ) {{ default .25, .75; ({}) .5, .5; }}\n",
        parents.join(", "),
        ["a"; 10].join(", ")
    );
    for name in parents.iter().map(String::as_str).chain(["A"]) {
        text += &format!("variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n");
    }
    for name in &parents {
        text += &format!("probability ( {name} ) {{ table .5, .5; }}\n");
    }
    let model = bif::read(&text).unwrap();
    let found = model.marginals(&[], &Limits::default()).unwrap();
    let right = 0.25 + 0.25 / 1024.0;
    assert!((found.of[10][0] - right).abs() < 1e-15, "{}", found.of[10][0]);
    let missing = wrong(bif::read(&text.replace("default .25, .75; ", "")));
    assert_eq!((missing.0, missing.1), (2, 1), "{missing:?}");
    assert!(missing.2.contains("misses a row"), "{missing:?}");
    let unknown = wrong(bif::read(&text.replacen("P9", "P8", 1)));
    assert!(unknown.0 == 2 && unknown.2.contains("`P8` stands twice"), "{unknown:?}");
    let unknown = wrong(bif::read(&text.replacen("P9", "Q", 1)));
    assert!(unknown.0 == 2 && unknown.2.contains("there is no variable `Q`"), "{unknown:?}");
}

/// A variable with thousands of neighbours, of which each has no other: what it believes is their product.
#[test]
fn a_hub_with_thousands_of_leaves() {
    let mut stream = seeded::Family::named("a hub").stream(0);
    let count = 3000;
    let mut text = format!("MARKOV {} {}{}", count + 1, "2 ".repeat(count + 1), count);
    (1..=count).for_each(|leaf| text += &format!(" 2 0 {leaf}"));
    let (mut tables, mut logs) = (Vec::new(), [0.0_f64; 2]);
    for _ in 0..count {
        let table: Vec<f64> = (0..4).map(|_| 1.0 + stream.below(900) as f64 / 1000.0).collect();
        logs[0] += (table[0] + table[1]).ln();
        logs[1] += (table[2] + table[3]).ln();
        text += &format!(" 4 {} {} {} {}", table[0], table[1], table[2], table[3]);
        tables.push(table);
    }
    let found = uai::read(&text).unwrap().marginals(&[], &Limits::default()).unwrap();
    let first = 1.0 / (1.0 + (logs[1] - logs[0]).exp());
    assert!((found.of[0][0] - first).abs() < 1e-10, "{} {first}", found.of[0][0]);
    for (leaf, table) in (1..).zip(&tables) {
        let right =
            first * table[0] / (table[0] + table[1]) + (1.0 - first) * table[2] / (table[2] + table[3]);
        assert!((found.of[leaf][0] - right).abs() < 1e-10);
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
