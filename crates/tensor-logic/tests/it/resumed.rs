//! Learning that is interrupted and goes on, again and again: to the last bit what it is in one piece.
#![expect(clippy::unwrap_used, reason = "a test that cannot learn has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use seeded::Stream;
use tensor_logic::answer::Minimized;
use tensor_logic::ast::Span;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Slope, Value, interrupted, is_interrupted};
use tensor_logic::error::{Code, Result};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::learn::{Keeper, Moment, State, Stored, resumable};
use tensor_logic::program::{Action, Minimize, Program, TensorId};
use tensor_logic::start::all_start_values;

use crate::common;
use crate::common::engines::analysed;

const BUDGET: Budget = Budget { tuples: 1 << 30, bytes: 4 << 30 };

/// An engine that is interrupted when it was asked so often.
struct Halting {
    inner: Auto,
    left: u64,
}

impl Engine for Halting {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.inner.values(request, goals)
    }
    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        self.left = self.left.checked_sub(1).ok_or_else(|| interrupted(Span::default()))?;
        self.inner.listed(request, goals)
    }
    fn release(&mut self, parameter: TensorId) {
        self.inner.release(parameter);
    }
    fn derived(&self) -> &[(String, u64)] {
        self.inner.derived()
    }
}

/// Keeps the last state as bytes, and counts the losses that it was told of.
#[derive(Default)]
struct Memory {
    bytes: Option<Vec<u8>>,
    told: Vec<(u64, u64, u64)>,
    moments: Vec<(Moment, u64)>,
}

impl Keeper for Memory {
    fn step(&mut self, step: u64, steps: u64, loss: f64) {
        self.told.push((step, steps, loss.to_bits()));
    }
    fn kept(&mut self) -> Result<Option<Stored>> {
        Ok(self.bytes.as_ref().map(|bytes| Stored::read(bytes).unwrap()))
    }
    fn stands<'s>(&mut self, moment: Moment, step: u64, state: &dyn Fn() -> State<'s>) -> Result<()> {
        self.moments.push((moment, step));
        // What stands between two steps is the same whenever it is kept.
        if moment != Moment::Between || step.is_multiple_of(3) {
            self.bytes = Some(state().bytes(serde_json::Value::Null).unwrap());
        }
        Ok(())
    }
}

fn asked(program: &Program) -> (TensorId, Minimize) {
    let query = program.actions.iter().find_map(|action| match action {
        Action::Query(query) => Some((query.tensor, query.directives.minimize.clone()?)),
        Action::Write { .. } => None,
    });
    query.unwrap()
}

fn engine(precision: Precision) -> Auto {
    Auto::new(Box::new(Fast::default().with_precision(precision)))
}

/// What was learned, with the bits of all numbers.
type Learned = (String, Vec<(TensorId, Vec<u64>)>);

fn bits(done: &Minimized, parameters: &Parameters) -> Learned {
    let of = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    let mut found: Vec<_> = parameters.iter().map(|(id, values)| (*id, of(values))).collect();
    found.sort();
    let valid = done.valid.map(|valid| (of(&[valid.first, valid.best]), valid.epoch, valid.epochs));
    let rest = (done.steps, of(&[done.first, done.last]), valid, of(&done.losses), of(&done.held));
    (format!("{rest:?} {:?} {:?} {}", done.parameters, done.lifted, done.per_epoch), found)
}

fn whole(program: &Program, precision: Precision) -> Result<(Learned, Memory)> {
    let (goal, minimize) = asked(program);
    let (mut parameters, mut memory) = (all_start_values(program), Memory::default());
    let engine = &mut engine(precision);
    let done = resumable(engine, program, BUDGET, &mut parameters, goal, &minimize, &mut memory)?;
    Ok((bits(&done, &parameters), memory))
}

/// In pieces, each of so many evaluations at most; and how many pieces there were.
fn in_pieces(
    program: &Program,
    precision: Precision,
    longest: u64,
    stream: &mut Stream,
) -> (std::result::Result<Learned, String>, u64) {
    let (goal, minimize) = asked(program);
    let mut memory = Memory::default();
    for pieces in 1.. {
        // Two evaluations before the first step, one that gets on.
        let left = 3 + stream.below(longest);
        let mut engine = Halting { inner: engine(precision), left };
        let mut parameters = all_start_values(program);
        let done = resumable(&mut engine, program, BUDGET, &mut parameters, goal, &minimize, &mut memory);
        match done {
            Ok(done) => return (Ok(bits(&done, &parameters)), pieces),
            Err(report) if is_interrupted(&report) => {}
            Err(report) => return (Err(report.to_string()), pieces),
        }
    }
    unreachable!("it ends")
}

/// Programs of every kind of gradient: whole and listed, through recursion, a closure, an axis.
const PROGRAMS: &[&str] = &[
    // A dense network over samples.
    "s : 12\nd : 5\nX[s, d] = sin(3 s + 2 d)\nT[s] = cos(s)\nW[d] ~ normal(0, 1)\nV ~ 0.5\n\
     Loss = sum[s]((V tanh(X[s, d] W[d]) - T[s])^2)\n",
    // A table of which a batch looks at a few rows; one row is never looked at.
    "s : 12\nw : 400\nd : 3\nWord(s, w) <- w == 7 s + 3\nWord(s, w) <- w == 5 * s\nT[s] = cos(s)\nE[w, d] ~ normal(0, 1)\n\
     O[d] ~ normal(0, 1)\nY[s] = Word(s, w) E[w, d] O[d]\nLoss = sum[s]((Y[s] - T[s])^2)\n",
    // A relation over samples that are symbols, and a recursion along each.
    "E(A, 0, 1); E(A, 1, 2); E(B, 0, 2); E(B, 2, 3); E(C, 0, 1); E(C, 1, 3); E(D, 0, 3); E(F, 0, 1)\n\
     T(A) = 1; T(B) = 0.2; T(C) = -0.5; T(D) = 0.1; T(F) = 0.3\nW ~ 0.7\nU[x] ~ normal(0, 1)\nx : 4\n\
     H(s, x) += E(s, y, x) tanh(U[x] + W H(s, y))\nY(s) += H(s, x)\nLoss = sum[s]((Y(s) - T(s))^2)\n",
    // A numeric recursion, the same for all samples.
    "s : 9\nx : 4\nA[x, y] = 0.1 * (x + 2 * y)\ny : 4\nB ~ 0.3\nC[x] ~ normal(0, 1)\nH[x] = tanh(0.2 B A[x, y] H[y] + C[x])\n\
     T[s] = sin(s)\nV[x] ~ normal(0, 1)\nF[s, x] = cos(s + x)\nLoss = sum[s]((F[s, x] V[x] H[x] - T[s])^2)\n",
    // A shortest path whose roads are learned, and a softmax.
    "s : 6\nRoad(0, 1); Road(1, 2); Road(0, 2); Road(2, 3); Road(1, 3)\nx, y : 4\nLong[x, y] ~ uniform(1, 2)\n\
     P(x, z) min= Road(x, z) * Long[x, z]\nP(x, z) min= Road(x, y) * Long[x, y] + P(y, z)\n\
     K[s, x] = sin(s + 2 x)\nQ[x] ~ normal(0, 1)\nA[s, x.] = softmax(K[s, x] Q[x])\nT[s] = 2 + 0.1 s\n\
     Loss = sum[s]((A[s, x] P[0, x] - T[s])^2)\n",
    // Rings of equal parts.
    "s : 6\nx : 5\nNear(x, y) <- y == (x + 1) % 5\ny : 5\nX[s, x] = s\nW ~ 0.5\nU ~ 0.1\n\
     H[s, x] = tanh(U X[s, x] + Near(x, y) X[s, y] W)\nT[s] = 1\nLoss = sum[s]((H[s, x] - T[s])^2)\n",
];

fn options(stream: &mut Stream) -> String {
    let mut pick = |from: &[&'static str]| from[stream.below(from.len() as u64) as usize].to_owned();
    let mut options = vec![
        pick(&["opt=sgd", "opt=sgd, momentum=0.9", "opt=adam", "opt=adamw", "opt=adam, beta1=0.5, eps=1e-3"]),
        pick(&[
            "lr=0.01",
            "lr=0.05",
            "lr=0.02, schedule=cosine",
            "lr=0.02, schedule=linear, warmup=4, min_lr=0.001",
        ]),
        pick(&["", "", "clip=0.5"]),
        pick(&["", "", "weight_decay=0.1"]),
        pick(&["", "lift=yes"]),
    ];
    let batch =
        pick(&["", "batch=s, size=1", "batch=s, size=2, shuffle=1", "batch=s, size=4", "batch=s, size=2"]);
    if !batch.is_empty() {
        options.push(batch);
        options.push(pick(&["steps=11", "epochs=3", "epochs=9", "steps=17"]));
        options.push(pick(&[
            "",
            "valid=0.3",
            "valid=0.3, patience=1",
            "valid=0.2, patience=1",
            "valid=0.2, patience=2",
        ]));
    } else {
        options.push(pick(&["steps=0", "steps=1", "steps=11", "steps=17"]));
    }
    options.retain(|option| !option.is_empty());
    options.join(", ")
}

#[test]
fn what_is_interrupted_at_any_step_comes_to_the_same_bits() {
    let mut stream = common::stream("resumed");
    let (mut pieces, mut learned, mut lifted, mut patient, mut diverged) = (0, 0, 0, 0, 0);
    for case in 0..480 {
        let text = PROGRAMS[case % PROGRAMS.len()];
        let options = options(&mut stream);
        let text = format!("{text}Loss? @minimize({options})\n");
        let program = analysed(&text).unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
        let precision = if stream.below(3) == 0 { Precision::Single } else { Precision::Double };
        let (wanted, memory) = match whole(&program, precision) {
            Ok((done, memory)) => (Ok(done), Some(memory)),
            // Some options make weights that grow without end.
            Err(report) if report.code == Code::Divergence => (Err(report.to_string()), None),
            Err(report) => panic!("{report}\n{text}"),
        };
        let (found, count) = in_pieces(&program, precision, 1 + stream.below(20), &mut stream);
        assert_eq!(found, wanted, "{precision:?}\n{text}");
        pieces += count;
        learned += u64::from(count > 1);
        let (Ok(wanted), Some(memory)) = (wanted, memory) else {
            diverged += 1;
            continue;
        };
        // It can be asked for again when it is complete.
        let complete = Stored::read(&memory.bytes.unwrap()).unwrap();
        assert!(complete.step() == memory.told.len() as u64 && complete.step() <= complete.steps());
        lifted += u64::from(wanted.0.contains("constants: Some((") || wanted.0.contains("tuples: Some(("));
        patient += u64::from(complete.step() < complete.steps());
    }
    assert!(
        pieces > 600 && learned > 120 && patient > 5 && lifted > 5,
        "{pieces} {learned} {patient} {lifted}"
    );
    assert!(diverged < 48, "{diverged} of 480 say little");
}

/// What is told of steps, and the moments, of a run in one piece.
#[test]
fn every_step_is_told_once_and_may_be_kept() {
    let text = format!("{}Loss? @minimize(batch=s, size=5, steps=7, valid=0.2)\n", PROGRAMS[0]);
    let program = analysed(&text).unwrap();
    let (_, memory) = whole(&program, Precision::Double).unwrap();
    let told: Vec<(u64, u64)> = memory.told.iter().map(|told| (told.0, told.1)).collect();
    assert_eq!(told, (0..7).map(|step| (step, 7)).collect::<Vec<_>>());
    let between = (0..7).map(|step| (Moment::Between, step));
    let moments: Vec<_> = [(Moment::Start, 0)].into_iter().chain(between).chain([(Moment::End, 7)]).collect();
    assert_eq!(memory.moments, moments);
}

/// A flag that somebody raises between two steps, as a signal does.
#[test]
fn a_flag_ends_it_between_two_steps() {
    struct Raised(Arc<AtomicBool>, u64, Memory);
    impl Keeper for Raised {
        fn step(&mut self, step: u64, _: u64, _: f64) {
            self.0.store(step >= self.1, Ordering::Relaxed);
        }
        fn kept(&mut self) -> Result<Option<Stored>> {
            self.2.kept()
        }
        fn stands<'s>(&mut self, moment: Moment, step: u64, state: &dyn Fn() -> State<'s>) -> Result<()> {
            self.2.stands(moment, step, state)
        }
    }
    let text = format!("{}Loss? @minimize(opt=adam, lr=0.1, steps=9)\n", PROGRAMS[0]);
    let program = analysed(&text).unwrap();
    let (goal, minimize) = asked(&program);
    let (wanted, _) = whole(&program, Precision::Double).unwrap();
    let mut keeper = Raised(Arc::default(), 0, Memory::default());
    for step in 1..=9 {
        keeper.1 = step - 1;
        let mut engine = engine(Precision::Double);
        engine.stop_when(Arc::clone(&keeper.0));
        keeper.0.store(false, Ordering::Relaxed);
        let mut parameters = all_start_values(&program);
        let done = resumable(&mut engine, &program, BUDGET, &mut parameters, goal, &minimize, &mut keeper);
        match done {
            Ok(_) => panic!("the last evaluation is interrupted too"),
            Err(report) => assert!(is_interrupted(&report)),
        }
        let kept = keeper.kept().unwrap().unwrap();
        assert_eq!(kept.step(), step, "one step a piece");
    }
    keeper.1 = u64::MAX;
    keeper.0.store(false, Ordering::Relaxed);
    let mut parameters = all_start_values(&program);
    let engine = &mut engine(Precision::Double);
    let done = resumable(engine, &program, BUDGET, &mut parameters, goal, &minimize, &mut keeper).unwrap();
    assert_eq!(bits(&done, &parameters), wanted);
}

/// A whole state of another learning is refused, whatever its places say.
#[test]
fn a_state_that_does_not_fit_is_refused() {
    let of = |text: &str| {
        let program = analysed(text).unwrap();
        let (_, memory) = whole(&program, Precision::Double).unwrap();
        (program, memory.bytes.unwrap())
    };
    let texts = [
        "W ~ [1, 2]\nLoss = W[i]^2\nLoss? @minimize(steps=3)\n",
        "W ~ [1, 2, 3]\nLoss = W[i]^2\nLoss? @minimize(steps=3)\n",
        "W ~ [1, 2]\nLoss = W[i]^2\nLoss? @minimize(steps=4)\n",
        "W ~ [1, 2]\nLoss = W[i]^2\nLoss? @minimize(steps=3, opt=sgd)\n",
        "V ~ [1, 2]\nLoss = V[i]^2\nLoss? @minimize(steps=3)\n",
        "W ~ [1, 2]\nV ~ 1\nLoss = W[i]^2 + V^2\nLoss? @minimize(steps=3)\n",
        "s : 4\nW ~ [1, 2]\nLoss = sum[s]((s W[i])^2)\nLoss? @minimize(steps=3, batch=s, size=1, valid=0.25)\n",
    ];
    let made: Vec<(Program, Vec<u8>)> = texts.iter().map(|text| of(text)).collect();
    for (at, (program, _)) in made.iter().enumerate() {
        for (other, (_, bytes)) in made.iter().enumerate() {
            let (goal, minimize) = asked(program);
            let mut memory = Memory { bytes: Some(bytes.clone()), ..Memory::default() };
            let (mut parameters, engine) = (all_start_values(program), &mut engine(Precision::Double));
            let done = resumable(engine, program, BUDGET, &mut parameters, goal, &minimize, &mut memory);
            match done {
                Ok(_) => assert_eq!(at, other, "{}{}", texts[at], texts[other]),
                Err(report) => assert_eq!(report.code, Code::FileFormat, "{report}"),
            }
        }
    }
}
