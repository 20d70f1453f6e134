//! Relations that rules derive and equations read: handed over by columns, whatever their constants are and in whatever
//! order these were met.

use std::fmt::Write;

use seeded::Stream;
use tensor_logic::engine::{Engine, Parameters, Request, Value};
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::engines::{BUDGET, analysed, auto_difference, wanted};

/// Constants whose order in answers is not that in which they are met: symbols, integers far apart and close together.
const POOLS: [&[&str]; 4] = [
    &["Zoe", "Ann", "Max", "Eve", "Bob", "Kim"],
    &["7", "-3", "0", "12", "-1", "5"],
    &["1000000000000", "-5", "3", "99", "-70000", "4"],
    &["2", "3", "4", "5", "6", "7"],
];

/// Rules that make relations of one, two and three places, with values and without.
const RULES: [&str; 7] = [
    "T(x, z) <- E(x, z)\nT(x, z) <- T(x, y), E(y, z)\n",
    "T(x, z) <- E(z, x)\nT(x, z) <- E(x, y), T(y, z)\n",
    "T(x, y) <- E(x, y), x != y\nT(x, y) <- T(y, x)\n",
    "D(x, z) min= L(x, z)\nD(x, z) min= D(x, y) + L(y, z)\n",
    "D(x, z) max= L(x, z)\nD(x, z) max= min(D(x, y), L(y, z))\n",
    "U(x, y, z) <- R(x, y, z)\nU(x, y, z) <- U(y, z, x), E(x, y)\n",
    "P(x) <- E(x, x)\nP(y) <- P(x), E(x, y)\n",
];

/// Equations that read them.
const READS: [(&str, &str); 12] = [
    ("T", "H(x) += T(x, y) V(y)\n"),
    ("T", "H(y) += T(x, y) V(x)\n"),
    ("T", "H(x, z) += T(x, y) T(y, z) V(y)\n"),
    ("T", "H(x) += T(x, x) V(x)\n"),
    ("T", "H(x) += T(x, FIRST) V(x)\n"),
    ("T", "H = T(x, y)\n"),
    ("D", "H(x) += D(x, y) V(y)\n"),
    ("D", "H(x) max= D(y, x) * V(x)\n"),
    ("D", "H = sum[x, y](D(x, y))\n"),
    ("U", "H(y) += U(x, y, z) V(z)\n"),
    ("U", "H(x, z) += U(x, y, z) V(y)\n"),
    ("P", "H(y) += P(x) E(x, y) V(y)\n"),
];

fn program(random: &mut Stream) -> String {
    let pool = POOLS[random.below(4) as usize];
    let any = |random: &mut Stream| pool[random.below(pool.len() as u64) as usize];
    let mut text = String::new();
    for _ in 0..random.below(14) {
        let _ = writeln!(text, "E({}, {})", any(random), any(random));
    }
    // Something of each, so that all of them have places.
    let (a, b) = (any(random), any(random));
    let _ = writeln!(text, "E({a}, {b})\nR({b}, {a}, {a})\nL({a}, {b}) = 2\nV({b}) = 3");
    for at in 0..random.below(9) {
        let _ = writeln!(text, "L({}, {}) = {}", any(random), any(random), 1 + random.below(5));
        let _ = writeln!(text, "R({}, {}, {})", any(random), any(random), any(random));
        let _ = writeln!(text, "V({}) = {}", any(random), at as f64 - 2.5);
    }
    let first = RULES[random.below(3) as usize];
    let value = RULES[3 + random.below(2) as usize];
    let _ = write!(text, "{first}{value}{}{}", RULES[5], RULES[6]);
    let (_, read) = READS[random.below(READS.len() as u64) as usize];
    text + &read.replace("FIRST", a)
}

#[test]
fn what_rules_derive_is_what_equations_read() {
    let mut random = common::stream("handed");
    let count = common::drawn(400);
    let mut legal = 0;
    for _ in 0..count {
        let text = program(&mut random);
        let Ok(program) = analysed(&text) else { continue };
        legal += 1;
        let wanted = wanted(&program);
        if let Some(how) = auto_difference(&program, &wanted) {
            panic!("{how}\n{text}");
        }
    }
    assert!(5 * legal > count, "{legal} of {count} are legal");
}

/// Symbols that were met in another order than answers have: a sum that tells them apart.
#[test]
fn symbols_keep_their_values() {
    let text = "E(Zoe, Max); E(Max, Ann); E(Ann, Bob)\nT(x, y) <- E(x, y)\nT(x, z) <- T(x, y), E(y, z)\n\
                V(Zoe) = 1; V(Max) = 10; V(Ann) = 100; V(Bob) = 1000\nH(x) += T(x, y) V(y)\n";
    let program = analysed(text).unwrap_or_else(|reports| panic!("{reports:?}"));
    let parameters = Parameters::new();
    let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
    let goal = (0u32..).map(tensor_logic::program::TensorId).zip(&program.tensors);
    let goal = goal.filter(|(_, tensor)| tensor.name == "H").map(|(id, _)| id).next();
    let mut engine = tensor_logic::auto::Auto::new(Box::<tensor_logic::fast::Fast>::default());
    for engine in [&mut engine as &mut dyn Engine, &mut Reference::default()] {
        let Ok(values) = engine.values(&request, goal.as_slice()) else { panic!("it has a value") };
        let [Value::Tuples(tuples)] = values.as_slice() else { panic!("{values:?}") };
        assert_eq!(tuples.values, [1000.0, 1100.0, 1110.0]);
    }
}
