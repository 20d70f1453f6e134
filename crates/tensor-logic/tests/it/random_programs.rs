//! Random programs: the fast engine gives the values of the reference interpreter, or the same
//! refusal, however relations are stored; and it ends.
//!
//! A few hundred programs by default; `CALCULEMUS_PROGRAMS=10000` or `CALCULEMUS_SLOW=1` for
//! more, `CALCULEMUS_SEED=123` to begin at a program, `CALCULEMUS_SEED=fresh` for programs that
//! nobody has seen. A program that disagrees is shrunk by deleting statements before it is shown.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Tuples, Value};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::program::{Program, TensorId};
use tensor_logic::reference::{Kept, Reference};
use tensor_logic::value::Const;

use crate::common;
use crate::common::engines::{
    BUDGET, Difference, STORAGES, Wanted, analysed, differences, value_difference, wanted,
};
use crate::common::rounding::{Judged, Scattered, judged};
use crate::common::shrink::shrunk;
use crate::common::single::{Known, Single, single};

/// How long one program may take.
#[derive(Clone, Copy)]
struct Limits {
    /// The reference, which may need exponential time: such a program says nothing.
    reference: Duration,
    /// All engines together: one that needs longer hangs.
    engines: Duration,
}

const LIMITS: Limits = Limits { reference: Duration::from_secs(5), engines: Duration::from_secs(60) };

/// Of a hundred programs at most one may be too long for the reference, and at most one may hang on rounding.
const SLOW_IN: u64 = 100;

/// How long a program is made smaller.
const PATIENCE: Duration = Duration::from_secs(600);

/// Numbers of 64 bits that differ by less are the same.
const NEAR: f64 = 1e-9;

/// What comes of a program.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It is refused before it runs, or all agree.
    Same,
    /// All agree in 64 bits, and of 32 bits nothing can be said, for this reason.
    Apart(&'static str),
    /// How an engine disagrees; a panic is a disagreement too.
    Differs(String),
    /// All that engines disagree about hangs on rounding: the last bits of sums, which are as the order of the addition is, decide
    /// a `floor`, the presence of a 0, or whether rounds come to rest.
    Rounding,
    /// The reference did not end in time.
    Slow,
    /// The reference ended, and an engine did not.
    Hangs,
}

/// What engines make of a program beside what the reference says.
type Engines = fn(&Program, &Wanted) -> Vec<Difference>;

fn storages(program: &Program, wanted: &Wanted) -> Vec<Difference> {
    let mut engines: Vec<(String, Box<dyn Engine>)> = Vec::new();
    for storage in STORAGES {
        engines.push((format!("{storage:?}"), Box::new(Fast::with_storage(storage))));
    }
    engines.push(("auto".to_owned(), Box::new(Auto::new(Box::<Fast>::default()))));
    let mut found = Vec::new();
    for (name, engine) in &mut engines {
        let named = |other: Difference| Difference { how: format!("{name}: {}", other.how), ..other };
        let differing: Vec<Difference> = differences(program, engine.as_mut(), wanted).collect();
        let differing = differing
            .into_iter()
            .filter(|it| !by_demand(program, wanted, it) && !by_fewer_tuples(program, wanted, it));
        found.extend(differing.map(named));
    }
    found
}

fn diverges(found: &Result<Vec<Value>, Refusal>) -> bool {
    found.as_ref().is_err_and(|refusal| refusal.code == Code::Divergence)
}

/// The rounds after which recursions are left as they are, some of them twice.
const CUTS: [u64; 3] = [40, 41, 47];

/// What a goal is, for which the reference asks for something that does not come to rest, if it does not hang on that: a query or
/// another relation demands a part of it that does, or knows without its values. Left as it is after different numbers of
/// rounds, it makes the goal the same.
fn without_rest(program: &Program, goal: TensorId) -> Option<Value> {
    let parameters = Parameters::new();
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let mut cut = |rounds| Reference::default().cut(&request, &[goal], rounds).ok()?.pop();
    let found = CUTS.map(&mut cut);
    let [Some(first), others @ ..] = found else { return None };
    let same =
        |other: &Option<Value>| other.as_ref().is_some_and(|other| value_difference(other, &first).is_none());
    others.iter().all(same).then_some(first)
}

/// Whether an engine answers what does not hang on what never comes to rest, and answers right.
fn by_demand(program: &Program, wanted: &Wanted, difference: &Difference) -> bool {
    let expected = wanted.iter().find(|(goal, _)| *goal == difference.goal);
    let (Ok(found), Some((goal, expected))) = (&difference.found, expected) else { return false };
    diverges(expected)
        && without_rest(program, *goal)
            .is_some_and(|right| found.iter().all(|found| value_difference(found, &right).is_none()))
}

/// Whether an engine, where the reference derives more tuples than are allowed, derives fewer and answers right, or stops at another
/// relation.
fn by_fewer_tuples(program: &Program, wanted: &Wanted, difference: &Difference) -> bool {
    let is_budget = |refusal: &Refusal| refusal.code == Code::Budget;
    let expected = wanted.iter().find(|(goal, _)| *goal == difference.goal);
    if !expected.is_some_and(|(_, expected)| expected.as_ref().is_err_and(is_budget)) {
        return false;
    }
    let (parameters, budget) = (Parameters::new(), Budget { tuples: 100 * BUDGET.tuples, ..BUDGET });
    let request = Request { program, parameters: &parameters, budget };
    match &difference.found {
        Err(refusal) => is_budget(refusal),
        Ok(found) => Reference::default().values(&request, &[difference.goal]).is_ok_and(|right| {
            found.len() == right.len()
                && found.iter().zip(&right).all(|(found, right)| value_difference(found, right).is_none())
        }),
    }
}

/// What is to be said of the program in 32 bits, however relations are stored.
fn in_single(program: &Program, wanted: &Wanted) -> Option<Outcome> {
    let (parameters, mut known) = (Parameters::new(), Known::new());
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let of = |storage| {
        // What it answers in 64 bits without what never comes to rest is what it is here.
        let mut plain = Fast::with_storage(storage);
        let as_known = |(goal, expected): &(TensorId, Result<Vec<Value>, Refusal>)| {
            // So it is where it goes through fewer tuples.
            if expected.as_ref().is_err_and(|refusal| refusal.code == Code::Budget) {
                return (*goal, plain.values(&request, &[*goal]));
            }
            let answered = diverges(expected) && plain.values(&request, &[*goal]).is_ok();
            let right = answered.then(|| without_rest(program, *goal)).flatten();
            (*goal, right.map_or_else(|| expected.clone(), |right| Ok(vec![right])))
        };
        let wanted: &Wanted = &wanted.iter().map(as_known).collect();
        let mut engine = Fast::with_storage(storage).with_precision(Precision::Single);
        let parameters = Parameters::new();
        let mut engine = |program: &Program, goal| {
            engine.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal])
        };
        match single(&request, wanted, &mut engine, &mut known) {
            Single::Same => None,
            Single::Apart(why) => Some(Outcome::Apart(why)),
            Single::Differs(how) => Some(Outcome::Differs(format!("{storage:?}: {how}"))),
        }
    };
    let mut found: Vec<Outcome> = STORAGES.into_iter().filter_map(of).collect();
    found.sort_by_key(|outcome| matches!(outcome, Outcome::Apart(_)));
    found.into_iter().next()
}

/// What is to be said of a program where engines say something else than the reference: what all of it hangs on, or the first
/// that hangs on nothing.
fn judgement(program: &Program, wanted: &Wanted, differences: Vec<Difference>) -> Outcome {
    let mut scattered: BTreeMap<TensorId, Scattered<'_>> = BTreeMap::new();
    let parameters = Parameters::new();
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    for difference in differences {
        let goal = difference.goal;
        let scattered =
            scattered.entry(goal).or_insert_with(|| Scattered::new(request.clone(), goal, Kept::Double));
        let expected = wanted.iter().find(|(id, _)| *id == goal).map(|(_, expected)| expected);
        let judged = expected
            .map_or(Judged::Differs, |expected| judged(&difference.found, expected, Some(&*scattered), NEAR));
        if judged == Judged::Differs {
            return Outcome::Differs(difference.how);
        }
    }
    Outcome::Rounding
}

/// Runs the reference, then the engines, in a thread of their own that is left behind if it hangs.
fn outcome(text: &str, engines: Engines, limits: Limits) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    let owned = text.to_owned();
    std::thread::spawn(move || {
        let said = sender.clone();
        let found = std::panic::catch_unwind(move || {
            let Ok(program) = analysed(&owned) else { return None };
            let wanted = wanted(&program);
            let _ = said.send(None);
            let differences = engines(&program, &wanted);
            match differences.is_empty() {
                true => in_single(&program, &wanted),
                false => Some(judgement(&program, &wanted, differences)),
            }
        });
        let _ = sender.send(Some(found.unwrap_or_else(|_| Some(Outcome::Differs("a panic".to_owned())))));
    });
    let ended = |found: Option<Outcome>| found.unwrap_or(Outcome::Same);
    match receiver.recv_timeout(limits.reference) {
        Ok(Some(found)) => ended(found),
        Ok(None) => match receiver.recv_timeout(limits.engines) {
            Ok(found) => ended(found.flatten()),
            Err(_) => Outcome::Hangs,
        },
        Err(_) => Outcome::Slow,
    }
}

fn differs(lines: &[String]) -> Option<String> {
    match outcome(&lines.join("\n"), storages, LIMITS) {
        Outcome::Differs(how) => Some(how),
        _ => None,
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_programs_mean_the_same_to_both_engines() {
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 10_000 } else { 300 };
    let count = setting("CALCULEMUS_PROGRAMS").unwrap_or(most);
    let first = seeded::test_seed();
    let show = std::env::var("CALCULEMUS_SHOW").is_ok();
    let (mut legal, mut slow, mut rounding) = (0, Vec::new(), Vec::new());
    let mut apart: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut failures = Vec::new();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "random programs", seed).stream(0);
        let lines = common::generator::program(&mut stream);
        let text = lines.join("\n");
        match analysed(&text) {
            Ok(_) => {
                legal += 1;
                if show {
                    println!("{seed}\n{text}\n");
                }
            }
            Err(reports) if show => {
                println!("{seed}: {}: {}\n{text}\n", reports[0].code.name(), reports[0].message)
            }
            Err(_) => {}
        }
        match outcome(&text, storages, LIMITS) {
            Outcome::Same => {}
            Outcome::Apart(why) => apart.entry(why).or_default().push(seed),
            Outcome::Slow => slow.push(seed),
            Outcome::Rounding => rounding.push(seed),
            Outcome::Hangs => failures.push(format!("seed {seed}: an engine does not end\n{text}\n")),
            Outcome::Differs(how) => {
                let least = shrunk(lines, PATIENCE, &mut |lines| differs(lines).is_some());
                let how = differs(&least).unwrap_or(how);
                failures.push(format!("seed {seed}\n{}\n{how}\n", least.join("\n")));
            }
        }
        if failures.len() >= 8 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(legal * 3 > count, "{legal} of {count} programs are legal");
    // What cannot be compared in 32 bits is bounded.
    let uncompared = apart.values().map(Vec::len).sum::<usize>() + slow.len() + rounding.len();
    println!("{legal} of {count} are legal; in 32 bits not compared: {apart:?}; {slow:?} {rounding:?}");
    assert!((uncompared as u64) * 10 <= legal * 2, "32 bits: {apart:?} of {legal} are not compared");
    for (what, seeds) in [("too long for the reference", slow), ("hangs on rounding", rounding)] {
        assert!(seeds.len() as u64 * SLOW_IN <= count.max(SLOW_IN), "{what}: {seeds:?} of {count}");
    }
}

/// Says of the tensor `Y` what is made of its numbers, and nothing of the tuples of which nothing is made.
fn saying(program: &Program, wanted: &Wanted, made: fn(f64) -> Option<f64>) -> Vec<Difference> {
    let own = wanted.iter().filter(|(goal, _)| program.name(*goal) == "Y");
    own.filter_map(|(goal, expected)| {
        let value = match &expected.as_ref().ok()?[0] {
            Value::Tuples(tuples) => {
                let pairs = tuples.tuples.iter().zip(&tuples.values);
                let kept = pairs.filter_map(|(tuple, value)| Some((tuple.clone(), made(*value)?)));
                let (tuples, values) = kept.unzip();
                Value::Tuples(Tuples { tuples, values, counts: Vec::new() })
            }
            dense => {
                Value::Dense(dense.doubles().iter().filter_map(|x| made(*x)).collect::<Vec<f64>>().into())
            }
        };
        Some(Difference { goal: *goal, found: Ok(vec![value]), how: "another".to_owned() })
    })
    .collect()
}

fn another() -> Outcome {
    Outcome::Differs("another".to_owned())
}

/// The watch itself: what an engine may do wrong is seen.
#[test]
fn an_engine_that_hangs_panics_or_differs_is_seen() {
    let short = Limits { engines: Duration::from_millis(300), ..LIMITS };
    let hangs: Engines = |_, _| {
        loop {
            std::thread::park();
        }
    };
    assert_eq!(outcome("A = 1", hangs, short), Outcome::Hangs);
    let panics: Engines = |_, _| panic!("on purpose");
    assert_eq!(outcome("A = 1", panics, LIMITS), Outcome::Differs("a panic".to_owned()));
    let differs: Engines = |program, wanted| saying(program, wanted, |x| Some(x + 1e-3));
    assert_eq!(outcome("A = 1; Y = 2", differs, LIMITS), another());
    assert_eq!(outcome("A = (", hangs, short), Outcome::Same);
}

/// What was once not the same, as small as it could be made, and which engine was wrong.
const ONCE_DIFFERENT: &[&str] = &[
    // An index of a guard that always holds, inside of a function, was not summed over.
    "i, k : 2; y : 3; B = [1, 2, 3]; G = sum[y, i, k](B[y] floor(2 + exp(B[y] | -i <= k)) (-1))",
    "i : 2; y : 3; B = [1, 2, 3]; R(0); R(2); G += R(y) B[y] sum[i](floor(2 + exp(B[y] | i >= 0)) B[y])",
    // A relation of which more is taken away than there is was taken for one that has all tuples.
    "i : 3; R(0); R(1); R(2); B(i) = R(i) - 2 R(i); N[i] = 2 B(i)",
    "i : 3; R(0); R(1); R(2); R(i) = -2 S(i); S(1); N[i] = 2 R(i)",
    "i : 3; R(0); R(1); R(2); B(i) += R(i); B(i) += -S(i); S(0); N[i] = R(i) + B(i)",
    "i : 2; R(0) = 1; R(1) = 1; R(0) = -1; N[i] = 3 R(i)",
    // What softmax is taken of became a number without an index, because the relation has all tuples.
    "j : 2\nR(0)\nR(1)\nS(1, 0, 1)\nY[j.] = softmax(R(j)) S(j, i, k)",
    "j : 2\nR(0); R(1)\nS(1, 0)\nY[j.] = lnorm(R(j) j) S(j, i)\nZ[j.] = 2 softmax(R(j)) S(j, i)",
    // The reference: `m` is of the guard alone, so that its place gives no values of `i` outside.
    "i, m : 3; R(1, 2); S[i.] = softmax(1.5 | R(m+i, 2))",
    // The fast one: two terms take the values of `y` from one relation at different places.
    "Q(Cal, Ann) = 1; Q(Cal, Cal) = 4; T[y] = Q(y, x) Q[y, y] + Q(x, y)",
    // The fast one: `or=` asks for one contribution above 0; a NaN beside it is none.
    "j, i : 2; R(0, 0); T[j] = -1 / 0 | j < 2; Y[i] or= abs(T[i] R[j, j]) | j >= 0",
    // The fast one, relations listed: 0 times an infinity is a NaN, whatever the other products are.
    "k : 2; R(Cal, Ann); R(Ann, Cal); T[k, y] max= Q(y) | k < 0; Q(Cal)
     Y[k, y] = step(R[Cal, x] T[k+1, y] | 0 <= k)",
    // The fast one: a tuple outside of the domain of its place counts in square brackets too.
    "t : 0..3; H[t+1] = H[t] + 1; Q(m) += H[m]; A += Q(k) Q[k]; B += Q[k] | Q(k); C avg= Q(k) Q[k]",
    // The fast one, relations listed: one row of a table picks the only entry of its dimension, beside a product of matrices.
    "A[j, m] = [[0.5], [4], [1]]; B[j, k] = [[-2, 1], [-1, 0], [0.25, 0.25]]; C[k, n] = [[2, 0.5, 0], [3, 2, 3]]
     T[m, k, n] = A[j, m] C[k, n] B[j-1, k]; S[j, n] = sum[m, k](A[j, m] T[m, k, n] B[j, k] | m <= 1)",
    // The engine of rules: the best of products with numbers below 0 oscillates, and what improved once was kept.
    "K(0, 0) = -1.5; L(i, j) : maxtimes; L(i, j) <- K(i, j); L(i, k) <- L(i, j), K(j, k)",
    "K(0, 1) = -0.5; K(1, 0) = 2; P(0) max= 1; P(j) max= P(i) K(i, j)",
    "K(0, 1) = -0.5; K(1, 2) = 2; L(i, j) max= K(i, j); L(i, k) max= L(i, j) L(j, k)",
    // The fast one, relations listed: a table without one of its indices went by the number of the whole, and what was known of
    // that was taken for it.
    "R(1, 0); P(0, 1); Q(0, 0)
     S[k, j.] = softmax(R[j, i] + P[j, k] | not P(n, k), (n j) == 0) P(k, j)
     T(j.) += lnorm(Q(1, z) P(j, i) + R[j, i] | not P(n, k), (n j) == 0) P(k, j)",
    // A relation that holds blocks of numbers, in a guard: an empty slice has no tuple.
    "A = [1, -0.5, 0.5]; R(Bob); Q(k, y) += A[k] R(y); W[x] = 1 | Q(2:2, x); V(x) += R(x) | not Q(3:5, x); U(x) += R(x) | Q(1:2, x)",
    "A = [1, -0.5, 0.5]; R(0); Q(j, k, y) avg= A[j] A[k] R(y); W[k, x, j] = Q(k, j, x) | Q(k, 2:2, x)",
    // The fast one, relations listed: an equation of two symbols was solved as one of numbers.
    "B = [1, 2]; C(Cal, Cal); C(Ann, Cal); Y[w] = (C(w, y) B[k] | w == y); Z[w] or= (C(w, y) B[0] | y == w)",
];

#[test]
fn what_was_once_different_is_the_same() {
    for text in ONCE_DIFFERENT {
        assert!(analysed(text).is_ok(), "{text}");
        assert_eq!(outcome(text, storages, LIMITS), Outcome::Same, "{text}");
    }
}

/// Last bits decide about an element, or they do not: whatever stands beside it.
#[test]
fn what_hangs_on_rounding_is_told_from_what_differs() {
    let verdict = |text: &str, engine: Engines| {
        assert!(analysed(text).is_ok(), "{text}");
        outcome(text, engine, LIMITS)
    };
    let other_truth: Engines = |program, wanted| saying(program, wanted, |x| Some(1.0 - x));
    // The sum is 0 but for rounding, and here it is 0.
    assert_eq!(verdict("A = [0.1, 0.2, -0.3]; Y = step(A[i])", other_truth), Outcome::Rounding);
    assert_eq!(verdict("A = [0.5, 0.25, -0.75]; Y = step(A[i])", other_truth), another());
    assert_eq!(verdict("A = [0.1, 0.2, -0.2]; Y = step(A[i])", other_truth), another());
    // What is no number stays none; what is one hangs on rounding all the same.
    let beside = "A = [0.1, 0.2, -0.3]; B = [-1, 1]; Y[j] = sqrt(B[j]) step(A[i])";
    assert_eq!(verdict(beside, other_truth), Outcome::Rounding);
    let number: Engines =
        |program, wanted| saying(program, wanted, |x| Some(if x.is_nan() { 0.0 } else { x }));
    assert_eq!(verdict(beside, number), another());
    // One element hangs on rounding, the other does not.
    assert_eq!(verdict("A = [0.1, 0.2, -0.3]; Y[0] = step(A[i]); Y[1] = 1", other_truth), another());
    // Sums of large numbers that cancel: as far as these have digits.
    let large = "A = [1e16, 0.1, -1e16]; Y = A[i]";
    assert_eq!(
        verdict(large, |program, wanted| saying(program, wanted, |x| Some(x + 2.0))),
        Outcome::Rounding
    );
    assert_eq!(verdict(large, |program, wanted| saying(program, wanted, |x| Some(x + 1e3))), another());
    // A tuple of what is 0 but for rounding, and one of what is not.
    let without: Engines = |program, wanted| saying(program, wanted, |_| None);
    assert_eq!(verdict("A = [0.1, 0.2, -0.3]; B = A[i]; R(0); Y(j) += B() R(j)", without), Outcome::Rounding);
    assert_eq!(verdict("A = [0.1, 0.2, -0.2]; B = A[i]; R(0); Y(j) += B() R(j)", without), another());
    // Where products overflow depends on the order of the factors, and whether a 0 comes before. A divisor without an inverse
    // is no such reason.
    let none: Engines = |program, wanted| saying(program, wanted, |_| Some(f64::NAN));
    assert_eq!(verdict("A = [1e200]; Y = A[i] 1e200", none), Outcome::Rounding);
    assert_eq!(verdict("i : 400; A[i] = 10; Y *= A[i]", none), Outcome::Rounding);
    assert_eq!(verdict("A = [0, 1]; Y = A[i] / 1e-310", none), another());
    assert_eq!(verdict("A = [0]; Y = A[i] / 1e-310", none), another());
    let number: Engines = |program, wanted| saying(program, wanted, |_| Some(-1e308));
    assert_eq!(verdict("A = [1, 2, -4]; Y = A[i] / 1e-308", number), Outcome::Rounding);
    assert_eq!(verdict("A = [1, 0, -1]; Y = A[i] / 0", number), another());
    // What the reference cannot bring to rest, and nothing hangs on.
    let needless = "A = [1]; D[i, j] max= A[i] A[j]; D[i, j] max= D[i, k] + A[j]; R(0); Y(k) += D[i, j] R(k)";
    let refused: Engines = |program, wanted| {
        let value = |name: &str, given: f64| {
            let goal = wanted.iter().find(|(goal, _)| program.name(*goal) == name).unwrap().0;
            let tuples =
                Tuples { tuples: vec![vec![Const::Int(0)]], values: vec![given], counts: Vec::new() };
            Difference { goal, found: Ok(vec![Value::Tuples(tuples)]), how: "another".to_owned() }
        };
        vec![value("Y", 1.0)]
    };
    assert_eq!(verdict(needless, refused), another());
    assert_eq!(verdict(&needless.replace("D[i, j] R(k)", "D[i, j]^0 R(k)"), refused), Outcome::Rounding);
    // Of two closures that do not come to rest either may be named, and nothing else.
    let two = "K(1, 1) = -3; K(2, 2); L(i, j) : tropical; L(i, j) <- K(i, j); L(i, k) <- L(i, j), K(j, k)\n\
               D(2); D(j) max= D(i) + L(i, j)";
    let named: Engines = |program, wanted| {
        let goal = wanted.iter().find(|(goal, _)| program.name(*goal) == "D").unwrap().0;
        let refusal = Refusal::new(Code::Divergence, program.left_side(goal), "named");
        vec![Difference { goal, found: Err(refusal), how: "another".to_owned() }]
    };
    assert_eq!(verdict(two, named), Outcome::Rounding);
    assert_eq!(verdict(&two.replace("D(i) + L(i, j)", "L(i, j)"), named), another());
    // Rounds come to rest within the tolerance.
    let rests = "A = [1.5, 1]; X[i] = 0.2 X[i] + 0.1 X[j] + A[i]; Y[i] = X[i]";
    assert_eq!(verdict(rests, |program, wanted| saying(program, wanted, |x| Some(x + 1e-3))), another());
}
