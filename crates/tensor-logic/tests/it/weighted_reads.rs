//! Relations with probabilities that are read at constants, so that few of their tuples are goals: values against the sum over
//! all worlds, gradients against dual numbers; and what would take too long or too much if all of them were.
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::error::Code;
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::program::TensorId;

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, analysed, auto_difference, value_difference, wanted};
use crate::weighted::{by_adjoint, compared, facts, named, numbers, pick, rules, slopes};

/// What reads `S(x, y)` and `T(x)` at constants, some of it beside what reads them at all.
const READS: &[&str] = &[
    "N = S[A, B]",
    "N = S(A, B) + 2 S(B, C) - S(A, A)",
    "N = log(S[A, B] + 0.1) + T[C]",
    "N[i] = S(A, B) P[i, 0] + T(B)",
    "N(y) += S(A, y)",
    "N(x) += S(x, B) T(A)",
    "N(y) += S(A, y) S(y, A)",
    "N max= S(A, y)",
    "N = S(A, B) S(x, y)",
    "N(x, y) += S(x, y) T(A)\nM = T(A) + S(B, A)",
    "N(y) += S(A, y)\nM(x) += S(x, A)\nO = S(B, B)",
    "N = count[y](S(A, y)) + sum[x](S(x, C)^2)",
    "N() <- S(A, B) > 0.30003",
    "N(y) : bool\nN(y) <- S(A, y), not S(B, y)",
    "N() : bool\nN() <- not S(A, _), T(B)",
    "N(x) <- T(x), S(A, B) > 0.30003",
    "N(x) : prob\nN(x) <- G(x, y), S(B, y) > 0.20003",
    "N(x) : prob\nN(x) <- U(x), T(y)\nU(A) += S(A, B)\nU(x) += T(C) R(x) / 4\nM = N(A)",
    "N(y) += S(A, y) | y != B",
    "N = T(A) if T(A) > T(B) else 0.5 T(B)",
    // Of what nobody says anything.
    "N = 1 + S(A, Nobody)",
    "@exclusive(E, 1)\nN = S(A, B) - S(A, C)",
];

/// What is learned from some tuples.
const LOSSES: &[&str] = &[
    "-log(S[A, B] + 0.1)",
    "(S(A, B) - 0.5)^2",
    "2 S(A, C) + 3 T(A)",
    "-log(T[B] + 0.2) + S(x, A)^2",
    "S(A, y) T(y)",
    "(S(A, B) + T(B) - 0.25)^2 + (T(x) - 0.5)^2",
    "S(A, B) S(A, B) + P[0, 0] T(C)",
    "exp(S(B, _)) + S(B, C)",
    "S(A, Nobody) + T(C)",
];

#[test]
fn what_is_read_at_constants_is_as_probable() {
    let mut stream = common::stream("weighted reads");
    let (mut legal, mut asked) = (0, 0);
    for nth in 0..common::drawn(400) {
        let mut text = facts(&mut stream, false) + &rules(&mut stream);
        text += READS[nth as usize % READS.len()];
        text += "\nS(A, B) > 0.25003?\nS(B, _)?\nS(A, y), not T(y)?\nT(C)?\n";
        let Ok(program) = analysed(&text) else { continue };
        legal += 1;
        let wanted = wanted(&program);
        assert_eq!(auto_difference(&program, &wanted), None, "{text}");
        let parameters = Parameters::new();
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        let own = |id: &TensorId| !["S", "T"].contains(&program.name(*id));
        let values = wanted.iter().filter_map(|(id, value)| Some((*id, value.as_ref().ok()?.first()?)));
        let (goals, values): (Vec<_>, Vec<_>) = values.filter(|(id, _)| own(id)).unzip();
        asked += goals.len() as u64;
        for storage in STORAGES {
            // All at once, without what is read itself, and a second time from what is kept.
            let mut engine = Auto::new(Box::new(Fast::with_storage(storage)));
            for _ in 0..2 {
                let found = engine.values(&request, &goals).unwrap();
                for ((found, wanted), id) in found.iter().zip(&values).zip(&goals) {
                    let name = program.name(*id);
                    assert_eq!(value_difference(found, wanted), None, "{name} {storage:?}\n{text}");
                }
            }
        }
    }
    assert!(4 * legal > 3 * common::drawn(400) && asked > 6 * legal, "{legal} programs, {asked} values");
}

#[test]
fn gradients_of_what_is_read_at_constants() {
    let mut stream = common::stream("weighted reads' gradients");
    let (mut legal, mut moved) = (0, 0);
    for nth in 0..common::drawn(120) {
        let mut text = facts(&mut stream, true) + &rules(&mut stream);
        text += "W(s) : prob\nW(s) <- P[0, i], P[1, j], s = i + j, S(A, _)\nW(s) <- P[s, 0], not T(A)\n";
        let first = LOSSES[nth as usize % LOSSES.len()];
        let second = pick(&mut stream, &["0", "W[1]", "(W(0) - 0.5)^2", "W(s) 0.25", "S(x, y)^2"]);
        text += &format!("Loss = {first} + {second}\n");
        let Ok(program) = analysed(&text) else { continue };
        let Some((goal, wrt, wanted)) = slopes(&program) else { continue };
        legal += 1;
        let found = by_adjoint(&mut Auto::new(Box::<Fast>::default()), &program, goal, &wrt);
        moved += compared(&program, &wrt, &found, &wanted, &text);
    }
    assert!(2 * legal > common::drawn(120) && moved as u64 > 2 * legal, "{legal}, {moved}");
}

/// Ways through a random graph of 40 vertices: all pairs together take a diagram of millions of nodes, one pair does not.
#[test]
fn one_tuple_of_many() {
    let mut stream = common::stream("one of many");
    let mut text = String::from("P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\n");
    for at in 0..80 {
        let (from, to) = (stream.below(40), stream.below(40));
        text += &format!("{} :: E({from}, {to})\n", 0.1 + f64::from(at % 8) / 10.0);
    }
    let pairs: Vec<(u64, u64)> = (0..4).map(|_| (stream.below(40), stream.below(40))).collect();
    for (from, to) in &pairs {
        text += &format!("P({from}, {to})?\n");
    }
    let read: Vec<String> = pairs.iter().map(|(from, to)| format!("P[{from}, {to}]")).collect();
    text += &format!("N = {}\nN?\nM(i) : real\nM(0) += {}\nM(0)?\n", read.join(" + "), read.join(" + "));
    text += &format!("{}? @explain\n", read[0].replace('[', "(").replace(']', ")"));
    let found = numbers(&text);
    let value = |at: usize| found[at].first().copied().unwrap_or(0.0);
    let sum: f64 = (0..4).map(value).sum();
    assert!((value(4) - sum).abs() < 1e-9 && (value(5) - sum).abs() < 1e-9, "{found:?}");
    assert_eq!(value(6), value(0));
}

/// Effects of the same causes, asked for together: none of their diagrams is good for all.
#[test]
fn effects_of_the_same_causes() {
    let mut stream = common::stream("effects");
    let (causes, effects) = (80, 17);
    let mut text = String::from("Effect(e) <- Cause(i), Link(i, e)\nEffect(e)?\n");
    let mut none = vec![1.0; effects];
    for cause in 0..causes {
        let weight = (1 + stream.below(9)) as f64 / 10.0;
        text += &format!("{weight} :: Cause({cause})\n");
        for (effect, none) in none.iter_mut().enumerate() {
            if stream.below(4) == 0 {
                let link = (1 + stream.below(9)) as f64 / 10.0;
                text += &format!("{link} :: Link({cause}, {effect})\n");
                *none *= 1.0 - weight * link;
            }
        }
    }
    let found = numbers(&text);
    assert_eq!(found[0].len(), effects);
    assert!(found[0].iter().zip(none).all(|(found, none)| (found - (1.0 - none)).abs() < 1e-12));
}

/// One of ten thousand alternatives: diagrams take no more than what is said of them.
#[test]
fn many_alternatives() {
    let mut text =
        String::from("@exclusive(A, 0)\nAny() <- A(_)\nEven() <- A(x), x % 2 == 0\nNone() <- not A(_)\n");
    (0..10_000).for_each(|at| text += &format!("9e-5 :: A({at})\n"));
    text += "Any()?\nEven()?\nNone()?\n";
    let found = numbers(&text);
    let near = |at: usize, wanted: f64| (found[at][0] - wanted).abs() < 1e-9;
    assert!(near(0, 0.9) && near(1, 0.45) && near(2, 0.1), "{found:?}");
}

/// A limit of bytes is one of all that diagrams take: of tables and of what they branch to, too.
#[test]
fn bytes_have_a_limit() {
    let mut stream = common::stream("bytes");
    let mut text = String::from("Meet(z) <- L(x), R(y), M(x, y, z)\nMeet(z)?\nN = Meet[1]\n");
    for x in 0..60 {
        text += &format!("0.015 :: L({x}); 0.5 :: R({x})\n");
        for y in 0..60 {
            text += &format!("0.5 :: M({x}, {y}, {})\n", stream.below(3));
            text += &format!("0.5 :: M({y}, {x}, {})\n", stream.below(3));
        }
    }
    let program = analysed(&text).unwrap();
    let parameters = Parameters::new();
    let named = ["Meet", "N"].map(|name| named(&program, name).unwrap());
    for bytes in [1 << 20, 1 << 23, 1 << 25] {
        let budget = Budget { tuples: 100_000, bytes };
        let request = Request { program: &program, parameters: &parameters, budget };
        for goal in named {
            let mut engine = Auto::new(Box::new(Fast::with_storage(Storage::Auto)));
            let report = engine.values(&request, &[goal]).unwrap_err();
            assert_eq!(report.code, Code::Budget);
            assert!(report.message.contains("`Meet`"), "{}", report.message);
            assert!(report.help.unwrap().contains("topk"));
        }
    }
}
