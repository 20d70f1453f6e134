//! Random gradients: of random programs whose arrays are parameters, the engine's are those of dual numbers, and those of
//! the printed program.
//!
//! `CALCULEMUS_PROGRAMS`, `CALCULEMUS_SLOW` and `CALCULEMUS_SEED` as for random programs.

use std::sync::mpsc;
use std::time::Duration;

use tensor_logic::answer::Content;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::gradient::evaluate::{gradients_at, with_respect_to};
use tensor_logic::gradient::{adjoint, guarded_adjoint};
use tensor_logic::program::{Action, Program, Role, Style, TensorId};
use tensor_logic::reference::{Kept, Reference, variables};
use tensor_logic::start::all_start_values;
use tensor_logic::value::Tuple;

use crate::common;
use crate::common::engines::{STORAGES, analysed};
use crate::common::rounding::{self, Answer, Judged, Scattered};

const BUDGET: Budget = Budget { tuples: 1000, bytes: 1 << 28 };

/// An adjoint may have more tuples than what it is of.
const ADJOINT: Budget = Budget { tuples: 100 * BUDGET.tuples, ..BUDGET };

/// How long one program may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What comes of a program.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is no program, or has nothing to differentiate.
    Nothing,
    Same,
    /// Something differs, and does not where the numbers are a little other ones.
    Rounding(String),
    Differs(String),
    /// The printed program is refused.
    Unprinted,
    /// One of them is a number and another none: whether something flows beside an infinite slope is told from the equations
    /// here and from the values there.
    Steep,
    Slow,
}

/// The gradients of one tensor after the other.
type Slopes = Vec<Vec<f64>>;

fn numbers(content: Content) -> Vec<f64> {
    match content {
        Content::Scalar(value) => vec![value.unwrap_or(0.0)],
        Content::Tensor { values, .. } => values.to_vec(),
        Content::Relation { values, .. } => values.unwrap_or_default(),
    }
}

fn slopes(
    engine: &mut dyn Engine,
    (program, goal, wrt): (&Program, TensorId, &[TensorId]),
    parameters: &Parameters,
) -> Result<(f64, Slopes), Refusal> {
    let found = gradients_at(engine, program, BUDGET, parameters.clone(), goal, wrt)?;
    Ok((found.value, found.gradients.into_iter().map(|(_, content)| numbers(content)).collect()))
}

/// How two gradients differ, in units of the largest number of either.
fn difference(found: &Slopes, wanted: &Slopes) -> Option<String> {
    let all = || found.iter().chain(wanted).flatten();
    let largest = all().filter(|x| x.is_finite()).fold(1.0, |a: f64, x| a.max(x.abs()));
    let close = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-8 * largest;
    let lengths = found.iter().map(Vec::len).eq(wanted.iter().map(Vec::len));
    let same = lengths && found.iter().flatten().zip(wanted.iter().flatten()).all(|(a, b)| close(*a, *b));
    (!same).then(|| format!("{found:?} instead of {wanted:?}"))
}

/// How gradients differ, and these themselves: what was found, and what dual numbers say.
struct Disagreement {
    how: String,
    slopes: Option<(Slopes, Slopes)>,
}

impl From<String> for Disagreement {
    fn from(how: String) -> Disagreement {
        Disagreement { how, slopes: None }
    }
}

/// How the engine's gradients differ from those of dual numbers, or the printed ones from both.
fn disagreement(
    of: (&Program, TensorId, &[TensorId]),
    parameters: &Parameters,
    storage: Storage,
) -> Option<Disagreement> {
    let (program, goal, wrt) = of;
    let wanted = slopes(&mut Reference::default(), of, parameters);
    let found = slopes(&mut Auto::new(Box::new(Fast::with_storage(storage))), of, parameters);
    let (wanted, found) = match (wanted, found) {
        // What the reference cannot hold or bring to rest says nothing of the engine.
        (Err(wanted), _) if matches!(wanted.code, Code::Budget | Code::TooLarge | Code::Divergence) => {
            return None;
        }
        (Err(wanted), Err(found)) if wanted.code == found.code => return None,
        (Ok((value, _)), _) if !value.is_finite() => return None,
        // An adjoint may have more tuples than what it is of.
        (Ok(_), Err(found)) if matches!(found.code, Code::Budget | Code::TooLarge) => return None,
        // No number ends the rounds of equations, which know of no way on which nothing flows.
        (Ok((_, wanted)), Err(found))
            if found.code == Code::Divergence
                && (wanted.iter().flatten().any(|slope| slope.is_nan())
                    || leaves_the_numbers(program, goal, parameters)
                    || rests_at_zero(program, goal, parameters))
                && !comes_to_rest(of, parameters) =>
        {
            return Some(format!("steep: {found:?}").into());
        }
        (Ok(_), Err(found)) if refused_by_rounding(program, goal, parameters, &found) => {
            return Some(format!("rounding: {found:?}").into());
        }
        (Ok((_, wanted)), Ok((_, found))) => (wanted, found),
        (wanted, found) => return Some(format!("{found:?}\n instead of {wanted:?}").into()),
    };
    if let Some(how) = difference(&found, &wanted) {
        let apart =
            found.iter().flatten().zip(wanted.iter().flatten()).any(|(a, b)| a.is_nan() != b.is_nan());
        let how = if apart { format!("steep: {how}") } else { how };
        return Some(Disagreement { how, slopes: Some((found, wanted)) });
    }
    if found.iter().flatten().any(|slope| !slope.is_finite()) {
        return None;
    }
    let printed = match adjoint(program, goal, wrt).emit() {
        Ok(printed) => printed,
        Err(report) => return Some(format!("printed: refused: {report:?}").into()),
    };
    let again = match analysed(&printed) {
        Ok(again) => again,
        Err(reports) => return Some(format!("printed: refused: {reports:?}\n{printed}").into()),
    };
    let asked: Vec<TensorId> = again
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Query(query) => Some(query.tensor),
            Action::Write { .. } => None,
        })
        .collect();
    // The values that are moved are those of the text's names.
    let mut values = all_start_values(&again);
    for (id, tensor) in (0..).map(TensorId).zip(&again.tensors) {
        let of_name = (0..).map(TensorId).zip(&program.tensors).find(|(_, own)| own.name == tensor.name);
        if let Some(known) = of_name.and_then(|(own, _)| parameters.get(&own)) {
            values.insert(id, known.clone());
        }
    }
    let request = Request { program: &again, parameters: &values, budget: ADJOINT };
    match Auto::new(Box::<Fast>::default()).values(&request, &asked) {
        Ok(values) => {
            let values: Slopes = values.iter().map(|value| value.doubles().to_vec()).collect();
            // What is printed knows of no way on which nothing flows.
            if values.iter().flatten().any(|slope| !slope.is_finite()) {
                return None;
            }
            let how = difference(&values, &wanted)?;
            Some(Disagreement { how: format!("printed: {how}\n{printed}"), slopes: Some((values, wanted)) })
        }
        Err(refusal) if refusal.code == Code::TooLarge => None,
        // Rounds that meet what is no number end: the equations themselves do.
        Err(refusal) if refusal.code == Code::Divergence && !comes_to_rest(of, parameters) => None,
        Err(refusal) => Some(format!("printed: {refusal:?}\n{printed}").into()),
    }
}

/// Whether something that a tensor is made of is infinite, or no number.
fn leaves_the_numbers(program: &Program, goal: TensorId, parameters: &Parameters) -> bool {
    let below: Vec<TensorId> = program.needs(&[goal]).into_iter().collect();
    let request = Request { program, parameters, budget: BUDGET };
    let values = Reference::default().values(&request, &below);
    values.is_ok_and(|values| values.iter().any(|value| value.doubles().iter().any(|x| !x.is_finite())))
}

/// Whether a recursive tensor that a tensor is made of is 0: rounds that begin there stay there, also where those of its adjoint
/// grow.
fn rests_at_zero(program: &Program, goal: TensorId, parameters: &Parameters) -> bool {
    let mut below = program.needs(&[goal]).into_iter();
    below.any(|id| {
        let mut recursive = false;
        for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
            equation.visit_reads(&mut |read, _| recursive |= program.needs(&[read.tensor]).contains(&id));
        }
        let request = Request { program, parameters, budget: BUDGET };
        recursive
            && Reference::default()
                .values(&request, &[id])
                .is_ok_and(|values| values[0].doubles().iter().all(|x| *x == 0.0))
    })
}

/// Whether what a tensor is made of is refused so in random arithmetic.
fn refused_by_rounding(
    program: &Program,
    goal: TensorId,
    parameters: &Parameters,
    refusal: &Refusal,
) -> bool {
    let request = Request { program, parameters, budget: BUDGET };
    let scattered = Scattered::new(request, goal, Kept::Double);
    rounding::judged(&Err(refusal.clone()), &Ok(Vec::new()), Some(&scattered), 0.0) != Judged::Differs
}

/// Whether the equations of the gradient have values, without regard to what stays 0.
fn comes_to_rest((program, goal, wrt): (&Program, TensorId, &[TensorId]), parameters: &Parameters) -> bool {
    let adjoint = adjoint(program, goal, wrt);
    let goals: Vec<TensorId> = adjoint.gradients.iter().copied().flatten().collect();
    let request = Request { program: &adjoint.program, parameters, budget: ADJOINT };
    !Reference::default().values(&request, &goals).is_err_and(|refusal| refusal.code == Code::Divergence)
}

/// Whether rounding does all that differs: in random arithmetic the equations of the gradient scatter as far around what they
/// give, as they do below the sine of a number of twenty digits, and where sums of two orders tie or not.
fn hangs_on_rounding(
    (program, goal, wrt): (&Program, TensorId, &[TensorId]),
    parameters: &Parameters,
    (found, wanted): (&Slopes, &Slopes),
) -> bool {
    let largest = found.iter().chain(wanted).flatten().filter(|x| x.is_finite());
    let near = 1e-8 * largest.fold(1.0, |a: f64, x| a.max(x.abs()));
    let adjoint = guarded_adjoint(program, goal, wrt);
    let request = Request { program: &adjoint.program, parameters, budget: ADJOINT };
    let gradients = adjoint.gradients.iter().zip(wrt);
    gradients.zip(found.iter().zip(wanted)).all(|((gradient, of), (found, wanted))| {
        let Some(gradient) = gradient else { return found == wanted };
        let elements = variables(program, *of);
        let Ok(exact) = Reference::default().values(&request, &[*gradient]) else { return false };
        let exact = slopes_of(&exact[0], &elements);
        let scattered = Scattered::new(request.clone(), *gradient, Kept::Double);
        // What the equations lose the numbers of hangs on rounding where some factors leave the range.
        let stays = |at: usize| {
            let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
            let all = scattered.samples.iter().filter_map(|sample| sample.as_ref().ok());
            all.map(|sample| slopes_of(&sample[0], &elements)[at]).all(|sample| same(sample, exact[at]))
        };
        let lost = |at: usize| !exact[at].is_finite() && wanted[at].is_finite() && stays(at);
        if exact.len() != wanted.len() || (0..exact.len()).any(lost) {
            return false;
        }
        // As far from what is wanted as they are from what the equations give.
        let moved = |sample: Answer| {
            let found = slopes_of(&sample?[0], &elements);
            let around: Vec<f64> =
                found.iter().zip(&exact).zip(wanted).map(|((a, b), c)| a - b + c).collect();
            Ok(vec![Value::Dense(around.into())])
        };
        let samples: Vec<Answer> = scattered.samples.into_iter().map(moved).collect();
        let dense = |values: &[f64]| Value::Dense(values.to_vec().into());
        rounding::numbers(&dense(found), &dense(wanted), &samples, near) != Judged::Differs
    })
}

/// The derivatives by elements: where an adjoint has none, nothing is owed.
fn slopes_of(value: &Value, elements: &[Tuple]) -> Vec<f64> {
    match value {
        Value::Tuples(tuples) => {
            let slope = |element| tuples.tuples.iter().position(|tuple| tuple == element);
            elements.iter().map(|element| slope(element).map_or(0.0, |at| tuples.values[at])).collect()
        }
        dense => dense.doubles().to_vec(),
    }
}

fn examined(text: &str, storage: Storage) -> Outcome {
    let Ok(program) = analysed(text) else { return Outcome::Nothing };
    let goal = program.actions.iter().find_map(|action| match action {
        Action::Query(query) => Some(query.tensor),
        Action::Write { .. } => None,
    });
    let Some(goal) = goal else { return Outcome::Nothing };
    let Ok(wrt) = with_respect_to(&program, goal, &[]) else { return Outcome::Nothing };
    let parameters = all_start_values(&program);
    let of = (&program, goal, &wrt[..]);
    let Some(Disagreement { how, slopes }) = disagreement(of, &parameters, storage) else {
        return Outcome::Same;
    };
    match slopes {
        _ if how.starts_with("printed: refused") => Outcome::Unprinted,
        _ if how.starts_with("steep: ") => Outcome::Steep,
        _ if how.starts_with("rounding: ") => Outcome::Rounding(how),
        Some((found, wanted)) if hangs_on_rounding(of, &parameters, (&found, &wanted)) => {
            Outcome::Rounding(how)
        }
        _ => Outcome::Differs(how),
    }
}

/// As [`examined`], in a thread of its own that is left behind if it takes too long.
pub(crate) fn outcome(text: &str, storage: Storage) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    let owned = text.to_owned();
    std::thread::spawn(move || {
        let found = std::panic::catch_unwind(|| examined(&owned, storage));
        let _ = sender.send(found.unwrap_or_else(|_| Outcome::Differs("a panic".to_owned())));
    });
    receiver.recv_timeout(PATIENCE).unwrap_or(Outcome::Slow)
}

/// A random program with parameters and a loss; where nothing declares its indices, what binds them is all that there is.
fn drawn(stream: &mut seeded::Stream) -> Option<Vec<String>> {
    let mut lines = common::generator::program(stream);
    lines.retain(|line| !line.contains('?'));
    if stream.below(3) == 0 {
        lines.retain(|line| !line.contains(" : ") || line.contains('('));
    }
    for line in &mut lines {
        let array = line.contains(" = [") && !line.contains('(');
        if array && stream.below(4) > 0 {
            *line = line.replacen(" = [", " ~ [", 1);
        }
    }
    let program = analysed(&lines.join("\n")).ok()?;
    let computed: Vec<(&str, usize, Style)> = program
        .tensors
        .iter()
        .filter(|tensor| tensor.role == Role::Computed && !tensor.hidden && !tensor.name.contains('\''))
        .map(|tensor| (tensor.name.as_str(), tensor.places.len(), tensor.style))
        .collect();
    if computed.is_empty() {
        return None;
    }
    let mut terms = Vec::new();
    for _ in 0..1 + stream.below(2) {
        let (name, rank, style) = computed[stream.below(computed.len() as u64) as usize];
        let places: Vec<String> = (0..rank).map(|at| format!("q{at}")).collect();
        let read = match (style, rank) {
            (Style::Square, 0) => name.to_owned(),
            (Style::Square, _) => format!("{name}[{}]", places.join(", ")),
            (Style::Round, _) => format!("{name}({})", places.join(", ")),
        };
        terms.push(match stream.below(4) {
            0 => format!("({read} - 0.5)^2"),
            1 => format!("sin({read})"),
            2 => format!("tanh({read}) {read}"),
            _ => format!("0.3 {read}"),
        });
    }
    for (at, term) in terms.iter().enumerate() {
        lines.push(format!("Part{at} = {term}"));
    }
    let parts: Vec<String> = (0..terms.len()).map(|at| format!("Part{at}")).collect();
    lines.push(format!("Loss = {}", parts.join(" + ")));
    lines.push("Loss?".to_owned());
    Some(lines)
}

/// Deletes statements as long as the disagreement stays.
fn shrunk(mut lines: Vec<String>, storage: Storage) -> Vec<String> {
    let mut at = 0;
    while at < lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if matches!(outcome(&fewer.join("\n"), storage), Outcome::Differs(_)) {
            (lines, at) = (fewer, 0);
        } else {
            at += 1;
        }
    }
    lines
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_gradients_are_those_of_dual_numbers() {
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 20_000 } else { 400 };
    let count = setting("CALCULEMUS_PROGRAMS").unwrap_or(most);
    let first = seeded::test_seed();
    let (mut same, mut slow, mut rounding, mut failures) = (0, Vec::new(), Vec::new(), Vec::new());
    let (mut unprinted, mut steep) = (Vec::new(), Vec::new());
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "random gradients", seed).stream(0);
        let Some(lines) = drawn(&mut stream) else { continue };
        let storage = STORAGES[stream.below(STORAGES.len() as u64) as usize];
        match outcome(&lines.join("\n"), storage) {
            Outcome::Nothing => {}
            Outcome::Same => same += 1,
            Outcome::Slow => slow.push(seed),
            Outcome::Unprinted => unprinted.push(seed),
            Outcome::Steep => steep.push(seed),
            Outcome::Rounding(how) => rounding.push((seed, how)),
            Outcome::Differs(how) => {
                let least = shrunk(lines, storage).join("\n");
                let how = match outcome(&least, storage) {
                    Outcome::Differs(how) => how,
                    _ => how,
                };
                failures.push(format!("seed {seed}, {storage:?}\n{least}\n{how}\n"));
            }
        }
        if failures.len() >= 8 {
            break;
        }
    }
    println!(
        "{same} of {count} have the same gradients; {slow:?} are slow, {unprinted:?} not printed; {rounding:?}"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(same * 10 > count, "{same} of {count} programs have gradients");
    assert!(rounding.len() as u64 * 20 <= same.max(20), "hangs on rounding: {rounding:?}");
    // A text declares all ranges, which may be more than the classes of its places bear.
    assert!(unprinted.len() as u64 * 20 <= same.max(40), "not printed: {unprinted:?}");
    assert!(steep.len() as u64 * 20 <= same.max(60), "steep: {steep:?}");
    assert!(slow.len() as u64 * 50 <= count.max(50), "too slow: {slow:?}");
}

/// A layer over tuples: a product of a relation and of elements with summed indices in common, in a function or not, of which
/// both sides, one side or a square reference of the relation stands there, declared or not.
fn layer(stream: &mut seeded::Stream) -> String {
    let mut choose = |of: &[&str]| of[stream.below(of.len() as u64) as usize].to_owned();
    let sizes = choose(&[
        "x, y : 4\nd : 3\ne : 2",
        "x, y : 3\nd : 1\ne : 4",
        "x, y : 5\nd, e : 2",
        "x, y : 4\nd, e : 0",
    ]);
    let relation = choose(&[
        "S(0, 1); S(1, 2); S(1, 0); S(2, 2)",
        "S(0, 1) = 2; S(1, 1) = -0.5; S(2, 0) = 0",
        "S(0, 9); S(1, 1)",
        "S(x, y) <- x < y",
    ]);
    let read =
        choose(&["S(x, y)", "S(x, y)", "S[x, y]", "S(x, y) S(y, x)", "S(x, y) S(x, z)", "S(y, x) | x != y"]);
    let dense = choose(&[
        "X[y, d] W[d, e]",
        "X[y, d] W[d, e]",
        "X[y, d] V[d] U[y, e]",
        "X[y, d] X[x, d] W[d, e]",
        "X[y, d] W[d, e] V[d]",
        "X[y, d] X[y, d] W[d, e]",
        "X[y+1, d] W[d, e]",
        "X[y, d] A[d, y, e]",
        "X[y, d] W[d, e] X[x, e]",
    ]);
    let (body, guard) = read.split_once(" | ").map_or((read.as_str(), ""), |(body, guard)| (body, guard));
    let guard = if guard.is_empty() { String::new() } else { format!(" | {guard}") };
    let product = if choose(&["before", "after"]) == "before" {
        format!("{body} {dense}")
    } else {
        format!("{dense} {body}")
    };
    let head = choose(&["H[x, e] = ", "H(x, e) = ", "H[x, e] += ", "H[e] = ", "H[x, e] = 2 "]);
    let function = choose(&["", "tanh", "sig", "relu"]);
    let whole = if function.is_empty() {
        format!("{product}{guard}")
    } else {
        format!("{function}({product}{guard})")
    };
    let arrays = "X[y, d] ~ normal(0, 1)\nW[d, e] ~ normal(0, 1)\nV[d] ~ normal(0, 1)\nU[y, e] ~ normal(0, 1)\nA[d, y, e] ~ normal(0, 1)";
    let read = if head.contains('(') {
        "H(x, e)"
    } else if head.contains('x') {
        "H[x, e]"
    } else {
        "H[e]"
    };
    format!("{sizes}\n{relation}\n{arrays}\n{head}{whole}\nLoss = {read}^2 + 0.3 {read}\nLoss?")
}

/// Two factors that begin with the same sum have it computed once (`gradient/products.rs`).
#[test]
fn products_over_tuples_have_the_gradients_of_dual_numbers() {
    let (mut same, first) = (0, seeded::test_seed());
    for seed in first..first + common::drawn(120) {
        let mut stream = seeded::Family::new("tensor-logic/tests", "layers", seed).stream(0);
        let text = layer(&mut stream);
        let storage = STORAGES[stream.below(STORAGES.len() as u64) as usize];
        match outcome(&text, storage) {
            Outcome::Same => same += 1,
            Outcome::Nothing | Outcome::Rounding(_) => {}
            other => panic!("seed {seed}, {storage:?}\n{text}\n{other:?}"),
        }
    }
    assert!(same > 60, "{same} layers have gradients");
}

/// The arcs are gone through once where that is the smaller sum, and a relation stands beside the two.
#[test]
fn factors_over_tuples_share_their_sum() {
    let sums = |sizes: &str, product: &str| {
        let arrays = "X[y, d] ~ normal(0, 1)\nW[d, e] ~ normal(0, 1)";
        let text =
            format!("{sizes}\nS(x, y) <- x < y\n{arrays}\nH[x, e] = {product}\nLoss = H[x, e]^2\nLoss?");
        let program = analysed(&text).unwrap();
        let named = |name: &str| {
            TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
        };
        let adjoint = adjoint(&program, named("Loss"), &["X", "W"].map(named));
        adjoint.equations().iter().filter(|equation| equation.contains('S')).count()
    };
    let alike = "x, y : 6\nd : 3\ne : 2";
    assert_eq!(sums(alike, "S(x, y) X[y, d] W[d, e]"), 1);
    assert_eq!(sums(alike, "tanh(S(x, y) X[y, d] W[d, e])"), 1);
    // Over 7 numbers once, or over 3 twice; and where another factor has the index, too.
    assert_eq!(sums("x, y : 6\nd : 3\ne : 7", "S(x, y) X[y, d] W[d, e]"), 2);
    assert_eq!(sums(alike, "S(x, y) X[y, d] W[d, e] W[d, 0]"), 3);
}

/// A guard with indices of its own asks whether there are any values of these: printed as a factor it was summed over them.
#[test]
fn guards_with_indices_of_their_own_are_printed_as_guards() {
    let text = "j, k, n : 4\nA[j] ~ [0.25, 4, 0.25, 0.5]\nQ() += A[j] / 2 | (n - k) % 2 == 0\nLoss = tanh(Q()) Q()\nLoss?";
    assert!(matches!(examined(text, Storage::Auto), Outcome::Same));
}

/// Two places with as many values, but other ones, are of one class by an index that declares nothing: with the ranges
/// declared, the text moved one to where the other is.
#[test]
fn places_of_equal_size_stay_where_they_are_when_printed() {
    let text = "A ~ [3, 1, 0, 0.5]\nJ[y] = A[y+1]\nT[i] = J[i] A(i) R(i)\nLoss = (J[q] - 0.5)^2\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// The domain of a relation's place, which its class gave it, says where a square reference reads 0: of the text its left
/// sides gave it a smaller one.
#[test]
fn what_a_square_reference_reads_of_a_relation_is_0_where_it_was() {
    let text =
        "A ~ [1.5, 2, 0]\nB[i-1] = 2 A[i]\nS(i) += B[i] A[i]\nM[k] = sig(S[k])\nLoss = M[q] A[q]\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// An index that stands in terms of which absent ones are skipped alone: they are printed in a call, whose argument would sum it.
#[test]
fn what_is_counted_is_counted_when_printed() {
    let text = "m : 4\nA[j] ~ [4, 1]\nW[m] ~ [4, 2, 3, 0.5]\nT(0)\nT(2)\nS(m, n) += W[m] T(n)\n\
                Q(j, n) avg= min(A[j], S(m-1, n) / 3 + S(m, n)) - W[m]\nLoss = sin(Q(q, r))\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// An index that a term is summed over and says nothing of makes it as many times; in a guard behind the term it made it once.
#[test]
fn what_a_term_says_nothing_of_makes_it_as_often_when_printed() {
    let text = "y : {Bob}\ni, j, m : 3\nA ~ [[4, 1, 3], [0.5, 0.5, 0], [4, 0.5, 0.25]]\nB = [0.5, 1, 2]\n\
                R(Bob, Ann) = -0\nS(0)\nT(Bob)\nQ(y, x, i) avg= not R(y, x) \
                sign(R(y, x) - A[0, i] T(x) A[m, k] - B[k] R(w, x)) step(S(k)) + (i + 1)^2 A[j, i] 0.25\n\
                Loss = sin(Q(q0, q1, q2))\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// The slope of a power is guarded by its exponent, a value that looks like an index expression.
#[test]
fn exponents_made_of_indices_are_printed_as_values() {
    for exponent in ["k / 2", "(k / 2 - j / 3)", "(2 k - j)", "(k / 2 * j)"] {
        let text = format!(
            "A ~ [2, 1.5, 2]\nP[k, j] = A[k]^{{{exponent}}} A[j]\nLoss = tanh(P[q, r]) P[q, r]\nLoss?"
        );
        let found = outcome(&text, Storage::Auto);
        assert!(matches!(found, Outcome::Same), "{exponent}: {found:?}");
    }
}

/// Beside a factor whose read is shifted, the adjoint's index takes fewer values; what is normalised along it takes all.
#[test]
fn what_is_normalised_keeps_its_entries_beside_shifted_reads() {
    for function in ["softmax", "lnorm"] {
        let text = format!(
            "A ~ [[0, 0.5, 0.5], [1.5, -2, 0.25], [1.5, 1.5, 0.25]]\n\
             S[j., i] = {function}(A[j, i] / 4 + A(i, i)) A(j, j+2)\nLoss = (S[q, r] - 0.5)^2\nLoss?"
        );
        for storage in STORAGES {
            let found = outcome(&text, storage);
            assert!(matches!(found, Outcome::Same), "{function}");
        }
    }
}

/// What a maximum is of stands by itself in a gradient, at indices that tuples beside it bind: those of a guard inside of a
/// function, of another maximum, of a product. Without them it had no entries, and nothing flowed.
#[test]
fn what_a_maximum_is_of_is_bound_by_tuples_beside_it() {
    let beside = [
        "sig(A[j] | A(j))",
        "sig(A[j] | R(j, i))",
        "max[m](R(j, m) A[m])",
        "prod[m](R(j, m) A[m])",
        "sum[m](R(j, m) A[m]) R(i, m)",
        "exp(avg[m](R(j, m) A[m]) | R(i, j))",
        "softmax[m](R(j, m) A[m])",
    ];
    for (beside, best) in beside.iter().flat_map(|beside| [(beside, "max"), (beside, "min")]) {
        let text = format!(
            "i : 2\nA ~ [0.5, 3]\nR(0, 1); R(1, 1); R(1, 0)\nH(i) += {best}[k](-A[k] A[i+j] + A[j]) {beside}\nLoss = H(q)\nLoss?"
        );
        for storage in STORAGES {
            let found = outcome(&text, storage);
            assert!(matches!(found, Outcome::Same), "{beside}: {found:?}");
        }
    }
}

/// What an assignment computes is not listed where a sum is written out: it would range over all its values.
#[test]
fn computed_indices_are_printed_as_computed() {
    let text = "i, j, k : 3; A ~ [[3, 0.5, 4], [0.25, 0.5, 3], [0, 4, 0.5]]\n\
                E[i] max= sum[j](A[j-k, j] A[i, m-i] A[0, k] | m = 2 * j, m < 1, j < 2)\n\
                F[i] = sum[j](A[i, m-i] | m = 2 * j, m < 1)\nG(i) += exp(A[i, m-i] | m = 2 * i) A[0, i]\n\
                Loss = E[p] A[p, 0] + F[q] A[0, q] + G(r)\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// What an assignment computes in a sum is local to it only if no scope beside the sum has its name: the sum is printed again
/// where a guard says that it is there.
#[test]
fn computed_indices_of_two_scopes_are_printed_as_two() {
    let text = "i, j, k : 4\nB = [[3, 1.5, 4, 3], [0, 3, 2, 0], [1.5, 1.5, 0.5, -0.5], [1.5, 1, 4, 0.25]]\n\
                A ~ [[2, 1, 0, 4], [1, -0.5, 4, -0.5], [1.5, 4, 3, 3], [-1.5, 0.25, 0.25, 2]]\nR(Ann)\n\
                E[i, j.] = softmax(B[k+m, j] A[k, j] R(Ann) m | m = i / 2, m >= 0)\nLoss = E[q, r]^2 + E[2, 0]\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// `J` is the size of `j`, whose range a printed text may not have.
#[test]
fn sizes_are_printed_as_numbers_where_their_index_is_not_declared() {
    let text = "A ~ [0.25, 0.5, 4]; R(0); L = 0\nN[j, i] = R(L-j) A[i] / J\n\
                T[n, i, k] = N[1, n] N[i, k] N[0, 2*i]\nS[i, j] min= A(i) N[j, i] | k < j, T[i+j, k, j-1] > 3\n\
                U[n, k] = count[m](R(m) - N(j, n) / 4 + (k + 1)) (T[k, 2*i, 0] S(k, j) + (i + 1) R(0) | i < 2, not S(j, j)) \
                + max[k]((k + 1) R(k) | r = j - i, r == 1) (T(k, j, k-1) T[i-k, j, j] | 0 <= n - j) \
                + count[n](R(n) S(i, j) + T[j%2, k-k, j] S(i, k))\nLoss = tanh(N[q, r]) N[q, r]\nLoss?";
    for storage in STORAGES {
        let found = outcome(text, storage);
        assert!(matches!(found, Outcome::Same), "{found:?}");
    }
}

/// What rounding does to a gradient is told from what is wrong: below the sine of a large number, and elsewhere.
#[test]
fn gradients_that_hang_on_rounding_are_told_from_others() {
    let told = |text: &str, by: f64| {
        let program = analysed(text).unwrap();
        let goal = (0..).map(TensorId).find(|id| program.name(*id) == "Loss").unwrap();
        let wrt = with_respect_to(&program, goal, &[]).unwrap();
        let parameters = all_start_values(&program);
        let of = (&program, goal, &wrt[..]);
        let (_, wanted) = slopes(&mut Reference::default(), of, &parameters).unwrap();
        let found = wanted.iter().map(|slopes| slopes.iter().map(|slope| slope + by).collect()).collect();
        hangs_on_rounding(of, &parameters, (&found, &wanted))
    };
    assert!(told("A ~ [1, 2]; B = [1e20, 3e20]; Loss = sin(B[i] A[i] / 7)", 1e19));
    assert!(!told("A ~ [1, 2]; B = [1, 3]; Loss = sin(B[i] A[i] / 7)", 1e-3));
    // Rounds rest before their limit, by a last bit that the sine of a large number shows.
    let rests = "A ~ [[0.25, 4, 3], [0.5, 1, 2], [1.5, 1.5, 4]]; X[i] = 0.1 A[i, j] X[j] + A[i, j]; Loss = sin(2 X[i] X[0] A[j, k])";
    assert!(told(rests, 5e-4));
    assert!(!told(rests, 1.0));
    // Two that tie but for rounding, and two that do.
    assert!(told("A ~ [0.1, 0.2, 0.3]; M max= A[0] + A[1]; M max= A[2]; Loss = M", 0.5));
    assert!(!told("A ~ [0.5, 0.25, 0.75]; M max= A[0] + A[1]; M max= A[2]; Loss = M", 0.5));
}
