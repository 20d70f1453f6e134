//! Random programs: the fast engine gives the values of the reference interpreter, or the same
//! refusal, however relations are stored; and it ends.
//!
//! A few hundred programs by default; `CALCULEMUS_PROGRAMS=10000` or `CALCULEMUS_SLOW=1` for
//! more, `CALCULEMUS_SEED=123` to begin at a program, `CALCULEMUS_SEED=fresh` for programs that
//! nobody has seen. A program that disagrees is shrunk by deleting statements before it is shown.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use tensor_logic::ast::Span;
use tensor_logic::engine::{Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::program::{Combine, Given, Kind, Program, Role, Style};
use tensor_logic::value::Domain;

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, Wanted, analysed, auto_difference, difference, wanted};
use crate::common::single::{Single, brought_nearer, each_number, rounded, single};

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

/// By how much numbers are moved to see whether a disagreement hangs on rounding.
const MOVED: f64 = 1e-6;

/// What comes of a program.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It is refused before it runs, or all agree.
    Same,
    /// All agree in 64 bits, and of 32 bits nothing can be said, for this reason.
    Apart(&'static str),
    /// How an engine disagrees; a panic is a disagreement too.
    Differs(String),
    /// An engine disagrees, and would not if the numbers were a little other ones: the last bits of sums, which are as the
    /// order of the addition is, decide a `floor`, the presence of a 0, or whether rounds come to rest.
    Rounding,
    /// The reference did not end in time.
    Slow,
    /// The reference ended, and an engine did not.
    Hangs,
}

/// What engines make of a program beside what the reference says.
type Engines = fn(&Program, &Wanted) -> Option<String>;

fn storages(program: &Program, wanted: &Wanted) -> Option<String> {
    let stored = STORAGES.into_iter().find_map(|storage| difference(program, storage, wanted));
    stored.or_else(|| auto_difference(program, wanted))
}

/// What is to be said of the program in 32 bits, however relations are stored.
fn in_single(program: &Program, wanted: &Wanted) -> Option<Outcome> {
    let of = |storage| {
        let mut engine = Fast::with_storage(storage).with_precision(Precision::Single);
        let parameters = Parameters::new();
        let mut engine = |program: &Program, goal| {
            engine.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal])
        };
        match single(program, wanted, &mut engine) {
            Single::Same => None,
            Single::Apart(why) => Some(Outcome::Apart(why)),
            Single::Differs(how) => Some(Outcome::Differs(format!("{storage:?}: {how}"))),
        }
    };
    let mut found: Vec<Outcome> = STORAGES.into_iter().filter_map(of).collect();
    found.sort_by_key(|outcome| matches!(outcome, Outcome::Apart(_)));
    found.into_iter().next()
}

/// The program where every number of an array, but 0, and every element of a sum is another number, by about [`MOVED`].
fn moved(program: &Program) -> Program {
    let mut moved = program.clone();
    let mut stream = seeded::Family::named("moved").stream(0);
    let mut by = || MOVED * (stream.uniform() + 0.5);
    for tensor in &mut moved.tensors {
        for given in &mut tensor.given {
            if let Given::Array { values, .. } = given
                && tensor.kind == Kind::Real
            {
                *values = values.iter().map(|value| value * (1.0 + by())).collect();
            }
        }
        let real = (tensor.style, tensor.combine, tensor.kind) == (Style::Square, Combine::Sum, Kind::Real);
        let star = tensor.places.iter().any(|place| place.star);
        let shape: Option<Vec<usize>> =
            tensor.places.iter().map(|place| place.domain.as_ref().map(Domain::len)).collect();
        let Some(shape) = shape.filter(|_| real && !star && tensor.role == Role::Computed) else { continue };
        let count = shape.iter().product::<usize>();
        tensor.given.push(Given::Array {
            fixed: vec![None; shape.len()],
            shape,
            values: (0..count).map(|_| by()).collect(),
            span: Span::default(),
        });
    }
    moved
}

/// Whether engines that disagree about finite numbers do not if the numbers are moved, or are within what rounding does;
/// or, where a number is none, do not if those beyond what products of doubles hold are brought nearer, or the others near 1:
/// an overflow that one order of the operations meets and another does not.
fn hangs_on_rounding(program: &Program, how: &str, engines: Engines) -> bool {
    // The two numbers, without those beside them.
    let numbers = how.split(" in [").next().unwrap_or(how);
    let finite = !numbers.contains("NaN") && !numbers.contains("inf");
    let overflows = ["of NaN", "of inf", "of -inf"].iter().any(|said| numbers.ends_with(said));
    let other = match (finite, overflows) {
        (true, _) => moved(program),
        // A product that meets its 0 last has overflowed before; a divisor without an inverse is no such reason.
        (false, all) => nearer(program, all),
    };
    let agree = |program: &Program| engines(program, &wanted(program)).is_none();
    // Rounding of a sum that cancels, divided by 1e-308, is a large number.
    agree(&other)
        || if finite { cancels(program) || agree(&nearer(program, true)) } else { agree(&calm(program)) }
}

/// The program where numbers of moderate size are nearly 1 or -1: products of many of them do not overflow. Those that are very
/// large or near to 0 by themselves stay, and so does 0.
fn calm(program: &Program) -> Program {
    let mut calm = program.clone();
    each_number(&mut calm, &mut |x| {
        if (1e-100..1e100).contains(&x.abs()) {
            *x = x.signum() * x.abs().powf(1.0 / 64.0);
        }
    });
    calm
}

/// Whether the engines differ, and all are within what rounding does to sums of large numbers that cancel.
fn cancels(program: &Program) -> bool {
    let wanted = wanted(program);
    storages(program, &wanted).is_some()
        && STORAGES.into_iter().all(|storage| {
            let (mut fast, parameters) = (Fast::with_storage(storage), Parameters::new());
            let mut engine = |program: &Program, goal| {
                fast.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal])
            };
            rounded(program, &wanted, &mut engine)
        })
}

/// The program where numbers that are very large or very near to 0 are neither; those without an inverse only if `all`.
fn nearer(program: &Program, all: bool) -> Program {
    let mut nearer = program.clone();
    each_number(&mut nearer, &mut |x| *x = brought_nearer(*x, all));
    nearer
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
            match engines(&program, &wanted) {
                Some(how) if hangs_on_rounding(&program, &how, engines) => Some(Outcome::Rounding),
                Some(how) => Some(Outcome::Differs(how)),
                None => in_single(&program, &wanted),
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

/// Deletes statements, then words of statements, as long as the disagreement stays.
fn shrunk(mut lines: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while at < lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if differs(&fewer).is_some() {
            lines = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    for at in 0..lines.len() {
        for length in [24, 12, 6, 4, 3, 2, 1] {
            let mut from = 0;
            loop {
                let words = words(&lines[at]);
                if from + length > words.len() {
                    break;
                }
                let mut fewer = lines.clone();
                fewer[at] = [&words[..from], &words[from + length..]].concat().concat();
                if fewer[at].len() < lines[at].len() && differs(&fewer).is_some() {
                    lines = fewer;
                } else {
                    from += 1;
                }
            }
        }
    }
    lines
}

/// A line cut before every blank, bracket and comma.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in line.chars() {
        if " ()[],".contains(letter) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
        if "([".contains(letter) {
            words.push(String::new());
        }
    }
    words
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
            Ok(_) => legal += 1,
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
                let least = shrunk(lines);
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
    let differs: Engines = |_, wanted| Some(format!("{} tensors", wanted.len()));
    assert_eq!(outcome("A = 1; B = 2", differs, LIMITS), Outcome::Differs("2 tensors".to_owned()));
    assert_eq!(outcome("A = (", hangs, short), Outcome::Same);
}

/// What was once not the same, as small as it could be made, and which engine was wrong.
const ONCE_DIFFERENT: &[&str] = &[
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
];

#[test]
fn what_was_once_different_is_the_same() {
    for text in ONCE_DIFFERENT {
        assert!(analysed(text).is_ok(), "{text}");
        assert_eq!(outcome(text, storages, LIMITS), Outcome::Same, "{text}");
    }
}

/// Last bits decide: the sum of what lnorm gives is 0 but for them, and rounds come to rest where they cancel.
#[test]
fn what_hangs_on_rounding_is_told_from_what_differs() {
    let rounded: Engines = |program, wanted| {
        let exact = wanted.iter().any(|(_, values)| format!("{values:?}").contains("Double([0.0])"));
        (exact && !program.tensors.is_empty()).then(|| "1 instead of 0".to_owned())
    };
    assert_eq!(outcome("A = [1, -1]; Y = A[i]", rounded, LIMITS), Outcome::Rounding);
    let differs: Engines = |_, _| Some("1 instead of 0".to_owned());
    assert_eq!(
        outcome("A = [1, -1]; Y = A[i]", differs, LIMITS),
        Outcome::Differs("1 instead of 0".to_owned())
    );
    let infinite: Engines = |_, wanted| (wanted.len() < 3).then(|| "inf instead of NaN".to_owned());
    let overflowed: Engines = |_, wanted| {
        format!("{wanted:?}").contains("inf").then(|| "at 0: NaN instead of inf in [NaN]".to_owned())
    };
    assert_eq!(outcome("A = [1e200]; Y = A[i] 1e200", overflowed, LIMITS), Outcome::Rounding);
    let no_inverse: Engines = |program, _| {
        let mut small = false;
        each_number(&mut program.clone(), &mut |x| small |= *x == 1e-310);
        small.then(|| "at 0: NaN instead of 0 in [NaN]".to_owned())
    };
    let said = Outcome::Differs("at 0: NaN instead of 0 in [NaN]".to_owned());
    assert_eq!(outcome("A = [0, 1]; Y = A[i] / 1e-310", no_inverse, LIMITS), said);
    // A product of many: where it overflows depends on the order, and whether a 0 comes before.
    let long: Engines = |_, wanted| {
        format!("{wanted:?}").contains("inf").then(|| "at 0: NaN instead of 0 in [NaN]".to_owned())
    };
    assert_eq!(outcome("i : 400; A[i] = 10; Y *= A[i]", long, LIMITS), Outcome::Rounding);
    let said = Outcome::Differs("inf instead of NaN".to_owned());
    assert_eq!(outcome("A = [1, -1]; Y = A[i]", infinite, LIMITS), said);
}
