//! The explicit text of every equation means what the equation means.

use std::collections::{BTreeMap, BTreeSet};

use crate::common;
use crate::common::single::each_number;
use tensor_logic::analyse::analyse;
use tensor_logic::domains;
use tensor_logic::engine::{Budget, Engine, Request, Value};
use tensor_logic::error::Refusal;
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Expr, Guard, IndexId, Program, Range, Role, TensorId, When};
use tensor_logic::reference::Reference;
use tensor_logic::show;
use tensor_logic::start::all_start_values;
use tensor_logic::walk;

const BUDGET: Budget = Budget { tuples: 200, bytes: 1 << 24 };

fn analysed(text: &str) -> Result<Program, Vec<Refusal>> {
    analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default()).map(|found| found.program)
}

/// What a tensor is called: hidden ones by their order.
fn names(program: &Program) -> Vec<(String, TensorId)> {
    let mut hidden = 0;
    let name = |(at, tensor): (u32, &tensor_logic::program::Tensor)| {
        hidden += usize::from(tensor.hidden);
        let name = match tensor.hidden {
            true => format!("query {hidden}"),
            false => format!("{} version {}", tensor.name, tensor.version),
        };
        (name, TensorId(at))
    };
    let tensors = (0..).zip(&program.tensors).filter(|(_, tensor)| tensor.role != Role::Missing);
    tensors.map(name).collect()
}

/// The value of every tensor, or the code of its refusal; numbers by their bits where they are
/// not almost equal to the other's.
fn values(program: &Program) -> BTreeMap<String, Result<(Value, Vec<String>), String>> {
    let parameters = all_start_values(program);
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let mut reference = Reference::default();
    let value = |(name, id): (String, TensorId)| {
        let found = reference.values(&request, &[id]);
        let found = found.map_err(|report| format!("{:?}", report.code));
        let tuples = |value: &Value| match value {
            Value::Tuples(tuples) => tuples.tuples.iter().map(|tuple| program.show_tuple(tuple)).collect(),
            Value::Dense(_) | Value::Counts(_) => Vec::new(),
        };
        (name, found.map(|mut values| (values[0].clone(), tuples(&values.remove(0)))))
    };
    names(program).into_iter().map(value).collect()
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

fn same(a: &Result<(Value, Vec<String>), String>, b: &Result<(Value, Vec<String>), String>) -> bool {
    let numbers = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b));
    match (a, b) {
        (Ok((Value::Dense(a), _)), Ok((Value::Dense(b), _))) => numbers(&a.doubles(), &b.doubles()),
        (Ok((Value::Tuples(a), shown)), Ok((Value::Tuples(b), other))) => {
            shown == other && numbers(&a.values, &b.values)
        }
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// The text with every equation replaced by its explicit text.
fn written_out(text: &str, program: &Program) -> String {
    let mut replaced: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for equation in &program.equations {
        if !program.tensor(equation.tensor).hidden {
            let explicit = show::explicit(program, text, equation);
            replaced.insert(equation.span.start, (equation.span.end, explicit));
        }
    }
    let mut out = text.to_owned();
    for (start, (end, explicit)) in replaced.into_iter().rev() {
        out.replace_range(start..end, &explicit);
    }
    out
}

/// Says what is wrong with the explicit text of a program, if something is.
fn fault(text: &str) -> Option<String> {
    let program = analysed(text).ok()?;
    let explicit = written_out(text, &program);
    let again = match analysed(&explicit) {
        Ok(program) => program,
        Err(reports) => {
            let shown: Vec<String> = reports.iter().map(|r| format!("{:?} {}", r.code, r.message)).collect();
            return Some(format!("refused: {shown:?}\n{explicit}"));
        }
    };
    let (wanted, found) = (values(&program), values(&again));
    // The name of a size is no tensor, and may go where the size is a number.
    let difference = wanted.iter().find(|(name, value)| !found.get(*name).is_some_and(|f| same(value, f)));
    if let Some((name, value)) = difference {
        return Some(format!("{name}: {value:?}\nbecame {:?}\n{explicit}", found.get(name)));
    }
    None
}

#[test]
fn the_corpus_means_the_same_when_written_out() {
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        wrong.extend(fault(&text).map(|fault| format!("{name}: {fault}")));
        let Some(program) = common::legal(&name, analysed(&text)) else { continue };
        let once = written_out(&text, &program);
        let twice = analysed(&once).map(|program| written_out(&once, &program));
        if twice.as_ref() != Ok(&once) {
            wrong.push(format!("{name}: printing twice changes\n{once}\nto\n{twice:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Whether an index that a scope's guards ask for is asked for deeper inside as well, or an axis
/// takes its values from relations outside its function: no text can say what that means.
fn asks_deeper(program: &Program) -> bool {
    fn scope(program: &Program, when: &When, body: &Expr) -> bool {
        let mut inside = BTreeSet::new();
        walk::expr_indices(body, &mut |index| {
            inside.insert(index);
        });
        for guard in &when.guards {
            if let Guard::Compare(_, left, right) = guard
                && (expr(program, left) || expr(program, right))
            {
                return true;
            }
        }
        when.exists.iter().any(|index| inside.contains(index)) || expr(program, body)
    }
    fn expr(program: &Program, value: &Expr) -> bool {
        let by_tuples = |index: &IndexId| matches!(program.index(*index).range, Range::Tuples);
        if let Expr::Axis(axis) = value
            && axis.axes.iter().any(|i| by_tuples(i) && !domains::binds(*i, &axis.argument, &axis.when))
        {
            return true;
        }
        let (parts, when) = value.parts();
        parts.iter().any(|part| when.map_or_else(|| expr(program, part), |when| scope(program, when, part)))
    }
    let mut terms = program.equations.iter().flat_map(|equation| &equation.terms);
    terms.any(|term| scope(program, &term.when, &term.body))
}

/// Statements for one random program over a fixed stock of tensors.
fn random(stream: &mut seeded::Stream) -> String {
    fn pick<'a>(stream: &mut seeded::Stream, from: &[&'a str]) -> &'a str {
        from[stream.below(from.len() as u64) as usize]
    }
    fn guard(stream: &mut seeded::Stream) -> String {
        let (a, b) = (pick(stream, INDICES), pick(stream, INDICES));
        match stream.below(11) {
            0 => format!("E({a}, {b})"),
            1 => format!("not E({a}, {b})"),
            2 => format!("R({a})"),
            3 => format!("{a} <= {b}"),
            4 => format!("({a} - {b}) % 2 == 0"),
            5 => format!("A[{a}] > B[{a}]"),
            6 => format!("not E({a}, _)"),
            7 => format!("W[{a}, {b}] V({b}) != 0.5"),
            8 => format!("m = {a} - {b}, m <= 1"),
            9 => format!("V({a}) < -1"),
            _ => format!("Even({a})"),
        }
    }
    fn factor(stream: &mut seeded::Stream, depth: u32) -> String {
        let (a, b) = (pick(stream, INDICES), pick(stream, INDICES));
        let deeper = if depth == 0 { 13 } else { 25 };
        match stream.below(deeper) {
            0 => format!("A[{a}]"),
            1 => format!("W[{a}, {b}]"),
            2 => format!("V({a})"),
            3 => format!("E({a}, {b})"),
            4 => format!("E[{a}, {b}]"),
            5 => pick(stream, &["2", "0.5", "C", "3"]).to_owned(),
            6 => format!("A[{a}+1]"),
            7 => a.to_owned(),
            8 => format!("not R({a})"),
            9 => format!("W[{b}, {a}]"),
            10 => format!("W[{a}, {a}]"),
            11 => format!("S[{}]", pick(stream, &["x", "Ann", "Bob"])),
            12 => pick(stream, &["P[i]", "A[2*i]", "A[k-1]"]).to_owned(),
            13 => format!("relu({})", sum(stream, depth - 1)),
            14 => format!("sig({} | {})", sum(stream, depth - 1), guard(stream)),
            15 => format!("({})", sum(stream, depth - 1)),
            16 => format!("({} | {})", sum(stream, depth - 1), guard(stream)),
            17 => format!("({} {})", factor(stream, depth - 1), factor(stream, depth - 1)),
            18 => format!("({})^2", sum(stream, depth - 1)),
            19 => {
                let operation = pick(stream, &["sum", "max", "min", "avg", "prod", "count"]);
                format!("{operation}[{a}](A[{a}] {})", sum(stream, depth - 1))
            }
            20 => format!("sum[{a}]({} V({a}) | {})", factor(stream, depth - 1), guard(stream)),
            21 => format!("max({}, {})", sum(stream, depth - 1), factor(stream, depth - 1)),
            22 => format!("log({})", sum(stream, depth - 1)),
            23 => format!("lnorm[{a}](W[{a}, {b}] + {} | {})", factor(stream, depth - 1), guard(stream)),
            _ => format!("softmax[{a}](W[{a}, {b}] + {} | {})", factor(stream, depth - 1), guard(stream)),
        }
    }
    fn term(stream: &mut seeded::Stream, depth: u32) -> String {
        let mut text = factor(stream, depth);
        for _ in 0..stream.below(3) {
            let sign = pick(stream, &[" * ", " * ", " * ", " / "]);
            text = format!("{text}{sign}{}", factor(stream, depth));
        }
        text
    }
    fn sum(stream: &mut seeded::Stream, depth: u32) -> String {
        let mut text = format!("{}{}", pick(stream, &["", "", "-"]), term(stream, depth));
        for _ in 0..stream.below(3) {
            text = format!("{text}{}{}", pick(stream, &[" + ", " - "]), term(stream, depth));
        }
        text
    }
    const INDICES: &[&str] = &["i", "j", "k"];
    let mut text = String::from(
        "A = [1, -2, 0.5]; B = [0.25, 3, -1]; C = 2\nW = [[1, 0, 2], [0.5, -1, 0], [3, 1, -2]]\n\
         E(0, 1); E(1, 2); E(2, 2); R(0); R(2)\nV(0) = 0.5; V(2) = -3\n\
         x : {Ann, Bob}; S[x] = [2, -1]\nu : 5; U = [1, -1]; P[u] = U[h] A[u+h-1]\n",
    );
    for number in 0..1 + stream.below(3) {
        let head = pick(stream, &["Y[i]", "Y", "Y[i, j]", "Y(i)", "Y[i/2]", "Y[j+1]", "Y()"]);
        let head = head.replace('Y', &format!("Y{number}"));
        let signs: &[&str] = if head.contains('(') {
            &["+=", "max=", "min=", "avg=", "*=", "=", "<-", "or="]
        } else {
            &["=", "+=", "max=", "min=", "avg=", "*=", "or="]
        };
        let sign = pick(stream, signs);
        let line = match sign {
            "<-" => {
                let literals: Vec<String> = (0..1 + stream.below(3)).map(|_| guard(stream)).collect();
                format!("{head} <- R(i), E(i, j), V(_), {}", literals.join(", "))
            }
            _ if stream.below(3) == 0 => format!("{head} {sign} {} | {}", sum(stream, 2), guard(stream)),
            _ => format!("{head} {sign} {}", sum(stream, 2)),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The program where what asks whether a sum is above 0 keeps the sum.
fn with_sums(text: &str) -> String {
    let line = |line: &str| match line.starts_with('Y') {
        true => line.replacen(" or= ", " max= ", 1).replacen(") = ", ") += ", 1),
        false => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// Whether a printed program differs only because a sum is 0 but for its last bits, which are as the order of the
/// addition is: the sums themselves are the same.
fn hangs_on_rounding(text: &str, fault: fn(&str) -> Option<String>) -> bool {
    if is_steep(text) {
        return true;
    }
    let sums = with_sums(text);
    let tiny = |value: &f64| value.abs() < 1e-9;
    sums != text
        && analysed(&sums).is_ok_and(|program| {
            values(&program).values().flatten().any(|(value, _)| value.doubles().iter().any(tiny))
        })
        && fault(&sums).is_none()
}

/// Whether last bits of what is given change a value by more than a thousandth: something is divided by a sum that is 0 but for
/// rounding.
fn is_steep(text: &str) -> bool {
    let Ok(program) = analysed(text) else { return false };
    let before = values(&program);
    let numbers = |found: &Result<(Value, Vec<String>), String>| match found {
        Ok((value, _)) => value.doubles().to_vec(),
        Err(_) => Vec::new(),
    };
    (1..5).any(|times| {
        let (mut moved, mut at) = (program.clone(), 0);
        each_number(&mut moved, &mut |x| {
            at += times;
            *x *= 1.0 + f64::EPSILON * f64::from(at % 5);
        });
        let after = values(&moved);
        before.iter().any(|(name, found)| {
            let (a, b) = (numbers(found), after.get(name).map(&numbers).unwrap_or_default());
            let far = |(a, b): (&f64, &f64)| match a.is_finite() && b.is_finite() {
                true => (a - b).abs() > 1e-3 * a.abs().max(b.abs()).max(1.0),
                false => a != b && !(a.is_nan() && b.is_nan()),
            };
            a.len() == b.len() && a.iter().zip(&b).any(far)
        })
    })
}

/// Of a thousand programs at most one may hang on rounding.
const ROUNDED_IN: usize = 1000;

#[test]
fn a_sum_that_is_0_but_for_rounding_is_told_from_another_one() {
    let some: fn(&str) -> Option<String> = |_| Some("another".to_owned());
    let other_truth: fn(&str) -> Option<String> = |text| (!text.contains("+=")).then(|| "another".to_owned());
    let zero = "A = [1, -1]; R(0)\nY(j) = A[i] | R(j)\n";
    assert!(hangs_on_rounding(zero, other_truth));
    assert!(!hangs_on_rounding(zero, some));
    assert!(!hangs_on_rounding("A = [1, 2]; R(0)\nY(j) = A[i] | R(j)\n", other_truth));
    assert!(!hangs_on_rounding("A = [1, -1]\nX[j] = A[j]\n", other_truth));
    let divided = "A = [0.1, 0.2, 0.3]\nY = 1 / (A[0] + A[1] - A[2])\n";
    assert!(analysed(divided).is_ok());
    assert!(hangs_on_rounding(divided, some));
    assert!(!hangs_on_rounding("A = [0.1, 0.7]\nY[k] = 1 / A[k]\n", some));
}

#[test]
fn random_equations_mean_the_same_when_written_out() {
    let mut stream = common::stream("written out");
    let most = 3000;
    let (mut accepted, mut rounded) = (0, 0);
    let mut wrong = Vec::new();
    for _ in 0..most {
        let text = random(&mut stream);
        if analysed(&text).is_ok_and(|program| asks_deeper(&program)) {
            continue;
        }
        accepted += usize::from(analysed(&text).is_ok());
        let Some(how) = fault(&text) else { continue };
        match hangs_on_rounding(&text, fault) {
            true => rounded += 1,
            false => wrong.push(format!("{text}\n{how}")),
        }
    }
    assert!(rounded * ROUNDED_IN <= most, "{rounded} hang on rounding");
    assert!(accepted > most / 5, "only {accepted} programs were legal");
    wrong.sort_by_key(String::len);
    wrong.truncate(4);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Says what is wrong with a program printed from its core form, if something is.
fn whole_fault(text: &str) -> Option<String> {
    let program = analysed(text).ok()?;
    let printed = show::program(&program);
    let again = match analysed(&printed) {
        Ok(program) => program,
        Err(reports) => {
            let shown: Vec<String> = reports.iter().map(|r| format!("{:?} {}", r.code, r.message)).collect();
            return Some(format!("refused: {shown:?}\n{printed}"));
        }
    };
    let (wanted, found) = (values(&program), values(&again));
    let difference = wanted.iter().find(|(name, value)| {
        let kept = name.ends_with("version 0") || name.starts_with("query");
        kept && !found.get(*name).is_some_and(|found| same(value, found))
    });
    difference.map(|(name, value)| format!("{name}: {value:?}\nbecame {:?}\n{printed}", found.get(name)))
}

/// Programs whose printed text once meant something else, as small as they could be made.
const ONCE_WRONG: &[&str] = &[
    // `i` takes its values from the tuples of `E` in both terms of the argument; printed, from the range of `A[i+1]`.
    "A = [1, -2, 0.5]; W = [[1, 0, 2], [0.5, -1, 0], [3, 1, -2]]
     E(0, 1); E(1, 2); E(2, 2); V(0) = 0.5; V(2) = -3
     Y(i) = V(i) 0 - (V(k) max(-2 / E(i, i) E(k, i) + W[j, j] E(i, i) V(k), E[k, i])) - E(k, i) V(k) / A[i+1]",
    // The second name of `i` was one that is declared with another range.
    "A = [1, -2, 0.5]; E(0, 1); E(1, 2); E(2, 2); Y() += -A[j+1] A[j+1] | not E(i, _)",
    "V(0) = 0.5; V(2) = -3; E(0, 1); E(1, 2); E(2, 2); Y() *= V(j) | not E(i, _)",
    // Nothing binds `k`, which an equation allows and a rule does not.
    "E(0, 1); E(1, 2); E(2, 2); Y() = E(j, i) | not E(j, k)",
];

#[test]
fn what_was_once_printed_wrong_means_the_same() {
    for text in ONCE_WRONG {
        assert!(analysed(text).is_ok(), "{text}");
        assert_eq!(fault(text), None);
        assert_eq!(whole_fault(text), None);
    }
}

#[test]
fn the_corpus_means_the_same_when_printed_whole() {
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        if common::legal(&name, analysed(&text)).is_some() {
            wrong.extend(whole_fault(&text).map(|fault| format!("{name}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn random_programs_mean_the_same_when_printed_whole() {
    let mut stream = common::stream("printed whole");
    let (mut printed, mut rounded) = (0, 0);
    let mut wrong = Vec::new();
    let most = 1500;
    for _ in 0..most {
        let text = random(&mut stream);
        if analysed(&text).is_ok_and(|program| !asks_deeper(&program)) {
            printed += 1;
            let Some(how) = whole_fault(&text) else { continue };
            match hangs_on_rounding(&text, whole_fault) {
                true => rounded += 1,
                false => wrong.push(format!("{text}\n{how}")),
            }
        }
    }
    assert!(rounded * ROUNDED_IN <= most, "{rounded} hang on rounding");
    assert!(printed > 300, "only {printed} programs were printed");
    let count = wrong.len();
    wrong.sort_by_key(String::len);
    wrong.truncate(4);
    assert!(wrong.is_empty(), "{count} wrong\n{}", wrong.join("\n\n"));
}

/// The equation that a type stands for (`P(x, y) : addmult`) has no sign in the text, and gets one.
#[test]
fn equations_of_declarations_have_signs() {
    let text = "0.5 :: E(1, 2); 0.25 :: E(2, 3)\nP(x, y) : addmult\nP(x, z) <- E(x, y), E(y, z)\nP(x, y) <- E(x, y)\nP(1, 3)?\n";
    let program = analysed(text).unwrap();
    let said: Vec<String> =
        program.equations.iter().map(|equation| show::explicit(&program, text, equation)).collect();
    assert!(said.iter().any(|said| said == "P(k1, k2) = min(1, P_sum(k1, k2))"), "{said:?}");
}
