//! `cargo xtask bench einsum [CASE]...`: dense, sparse and gradient programs of the equation
//! language, checked against known sums, with Python peers in the same run where they are installed.
//!
//! Inputs come from the same generator as those of `bench tl`. The first run of an engine loads what
//! is given and plans; its time is printed apart. The runs that count begin with both done and
//! with every result forgotten, as a peer's begin with its arrays and its compiled function. (A case
//! whose rules go to the relational engine, E4, loads its facts in every run.) All numbers have 64
//! bits and, in runs of their own, 32. Our side has the threads that are asked for, a peer all there are.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value as Json, json};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::gradient::adjoint;
use tensor_logic::lower::{FileSource, Loaded, Wanted};
use tensor_logic::program::{Action, Facts, Program, TensorId};
use tensor_logic::value::{Const, Symbols};

use super::tl::SplitMix64;
use super::{BenchArgs, Spread, chosen, equations};
use crate::answer::{print_json, print_text};

/// Each case is run so often after the first time, and as long as this takes less time; the peers' driver does the same.
const RUNS: usize = 5;
const SECONDS: f64 = 0.2;

/// What comes out of a case must be.
struct Check {
    /// The result that is checked: a tensor of the program, or the gradient by one.
    of: &'static str,
    sum: f64,
    squares: f64,
}

/// One case.
struct Case {
    id: &'static str,
    text: &'static str,
    /// The scalar that is differentiated, and by what.
    gradient: Option<(&'static str, &'static [&'static str])>,
    check: &'static [Check],
    /// The lines of the Python peers: `(case, peer)` as they print them.
    peer: &'static str,
    goal: f64,
}

const CASES: &[Case] = &[
    Case {
        id: "E1",
        text: "A = \"signed 101 2048 2048.npy\"\nB = \"signed 102 2048 2048.npy\"\nC[i, j] = A[i, k] B[k, j]\nC?\n",
        gradient: None,
        check: &[Check { of: "C", sum: -29240.4306, squares: 953355517.0 }],
        peer: "E1",
        goal: 0.95,
    },
    Case {
        id: "E2",
        text: ATTENTION,
        gradient: None,
        check: &[Check { of: "O", sum: -419.0734, squares: 186.50733 }],
        peer: "E2 forward",
        goal: 1.2,
    },
    Case {
        id: "E2g",
        text: ATTENTION,
        gradient: Some(("Loss", &["Q", "K", "V"])),
        check: &[Check { of: "Q", sum: 16.92424, squares: 0.2086607 }],
        peer: "E2 gradient",
        goal: 2.5,
    },
    Case {
        id: "E3",
        text: "S = \"coo 121 100000 1000000.csv\" as values\nX = \"signed 122 100000 64.npy\"\nS(i, j)\nX[j, d]\nY[i, d] = S(i, j) X[j, d]\nY?\n",
        gradient: None,
        check: &[Check { of: "Y", sum: -19272.8424, squares: 21336459.6 }],
        peer: "E3",
        goal: 2.0,
    },
    Case {
        id: "E4",
        text: "S = \"pairs 131 20000 200000.csv\"\nT(x, z) <- S(x, y), S(y, z)\nN = T(x, z)\nN?\n",
        gradient: None,
        check: &[Check { of: "N", sum: 1992511.0, squares: 1992511.0 * 1992511.0 }],
        peer: "E4",
        goal: 1.5,
    },
    Case {
        id: "E5a",
        text: "A = \"signed 141 500 500.npy\"\nB = \"signed 142 500 500.npy\"\nC = \"signed 143 500 500.npy\"\nD = \"signed 144 500 500.npy\"\nR[a, e] = A[a, b] B[b, c] C[c, d] D[d, e]\nR?\n",
        gradient: None,
        check: &[Check { of: "R", sum: -992891.25, squares: 3.80638661e11 }],
        peer: "E5 chain",
        goal: 1.0,
    },
    Case {
        id: "E5b",
        text: "A = \"signed 151 200 200 200.npy\"\nB = \"signed 152 200 32.npy\"\nC = \"signed 153 200 32.npy\"\nR[i, r] = A[i, j, k] B[j, r] C[k, r]\nR?\n",
        gradient: None,
        check: &[Check { of: "R", sum: 3040.2148, squares: 9242326.98 }],
        peer: "E5 mttkrp",
        goal: 1.2,
    },
    Case {
        id: "E5c",
        text: "A = \"signed 161 40 40.npy\"\nB = \"signed 162 40 40.npy\"\nC = \"signed 163 40 40 40 40.npy\"\nD = \"signed 164 40 40.npy\"\nE = \"signed 165 40 40.npy\"\nR[p, q, r, s] = A[p, i] B[q, j] C[i, j, k, l] D[r, k] E[s, l]\nR?\n",
        gradient: None,
        check: &[Check { of: "R", sum: 36383.855, squares: 2.61142855e10 }],
        peer: "E5 four",
        goal: 1.3,
    },
    Case {
        id: "E6",
        text: "W1 = \"scaled 171 784 256.npy\"\nW2 = \"scaled 172 256 10.npy\"\nX = \"signed 173 128 784.npy\"\nLabel = \"labels 174 10 128.csv\"\nH[b, h] = relu(X[b, i] W1[i, h])\nP[b, c.] = softmax(H[b, h] W2[h, c])\nLoss avg= -Label(b, c) log(P[b, c])\nLoss?\n",
        gradient: Some(("Loss", &["W1", "W2"])),
        check: &[Check { of: "W1", sum: 0.832464, squares: 0.3088023 }],
        peer: "E6",
        goal: 1.2,
    },
    Case {
        id: "E7",
        text: "S = \"coo 121 100000 1000000.csv\" as values\nX = \"signed 122 100000 64.npy\"\nW = \"signed 123 64 64.npy\"\nY[i, d] = S(i, j) X[j, d]\nZ[i, h] = relu(Y[i, d] W[d, h])\nLoss avg= Z[i, h]^2\nLoss?\n",
        gradient: Some(("Loss", &["W", "X"])),
        check: &[Check { of: "W", sum: -1.401121, squares: 3.583106 }],
        peer: "E7",
        goal: 3.0,
    },
];

const ATTENTION: &str = "Q = \"signed 111 8 512 64.npy\"\nK = \"signed 112 8 512 64.npy\"\nV = \"signed 113 8 512 64.npy\"\nP[h, i, j.] = softmax(Q[h, i, d] K[h, j, d] / 8)\nO[h, i, d] = P[h, i, j] V[h, j, d]\nLoss = O[h, i, d]^2\nO?\nLoss?\n";

/// Arrays and relations by what their file names ask for.
pub(super) struct Generated;

impl Generated {
    pub(super) fn make(name: &str) -> Option<Loaded> {
        let (stem, _) = name.rsplit_once('.')?;
        let words: Vec<&str> = stem.split(' ').collect();
        let [kind, seed, numbers @ ..] = words.as_slice() else { return None };
        let mut source = SplitMix64::new(seed.parse().ok()?);
        let numbers: Vec<u32> = numbers.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let ints =
            |values: &[u32]| values.iter().map(|value| Const::Int(i64::from(*value))).collect::<Vec<_>>();
        match (*kind, numbers.as_slice()) {
            ("signed" | "scaled", sizes) => {
                let scale = if *kind == "scaled" { 0.0625 } else { 1.0 };
                let count: u32 = sizes.iter().product();
                let values: Arc<[f64]> = (0..count).map(|_| source.signed() * scale).collect();
                Some(Loaded::Array {
                    shape: sizes.iter().map(|size| *size as usize).collect(),
                    values,
                    rest: [].into(),
                })
            }
            // Places that are drawn several times add up.
            ("coo" | "pairs", [n, draws]) => {
                let mut counts: BTreeMap<(u32, u32), f64> = BTreeMap::new();
                for _ in 0..*draws {
                    let (row, column) = (source.below(*n), source.below(*n));
                    *counts.entry((row, column)).or_default() += 1.0;
                }
                let places: Vec<_> = counts.into_iter().collect();
                let mut facts = Facts { arity: 2, count: places.len(), ..Facts::default() };
                facts.constants =
                    places.iter().flat_map(|((row, column), _)| ints(&[*row, *column])).collect();
                if *kind == "coo" {
                    facts.values = places.iter().map(|(_, value)| *value).collect();
                }
                Some(Loaded::Facts(facts))
            }
            ("labels", [classes, count]) => {
                let mut facts = Facts { arity: 2, count: *count as usize, ..Facts::default() };
                facts.constants = (0..*count).flat_map(|at| ints(&[at, source.below(*classes)])).collect();
                Some(Loaded::Facts(facts))
            }
            _ => None,
        }
    }
}

impl FileSource for Generated {
    fn load(&mut self, wanted: &Wanted<'_>, _: &mut Symbols) -> std::result::Result<Loaded, Refusal> {
        let missing = || Refusal::new(Code::FileNotFound, wanted.file.span, "no such input");
        Generated::make(&wanted.file.value).ok_or_else(missing)
    }
}

/// `bench einsum [CASE]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    training::threads::set_with_this(args.threads)?;
    let mut documents = Vec::new();
    let mut failed = false;
    for case in chosen(CASES, |case| case.id, names)? {
        let peers = peers(args, case);
        for (form, precision) in [("f64", Precision::Double), ("f32", Precision::Single)] {
            match measure(case, precision) {
                Ok(times) => {
                    let best = peers.iter().map(|(_, time)| *time).reduce(f64::min);
                    let ratio = best.map(|best| best / times.later.median());
                    if !args.json {
                        print_text(&line(case, form, &times, &peers, ratio));
                    }
                    let peers: Vec<Json> =
                        peers.iter().map(|(name, time)| json!({"name": name, "run_s": time})).collect();
                    documents.push(json!({"case": case.id, "form": form, "first_s": times.first,
                        "run_s": times.later.median(), "run_min_s": times.later.least(), "peers": peers,
                        "ratio": ratio, "goal": case.goal}));
                }
                Err(error) => {
                    failed = true;
                    print_text(&format!("{} {form}: {error:#}\n", case.id));
                }
            }
        }
    }
    if args.json {
        print_json(&Json::Array(documents))?;
    }
    Ok(u8::from(failed))
}

/// Seconds of the first run, which loads and plans, and of those after it.
struct Times {
    first: f64,
    later: Spread,
}

fn line(case: &Case, form: &str, times: &Times, peers: &[(String, f64)], ratio: Option<f64>) -> String {
    let peers: Vec<String> =
        peers.iter().map(|(name, time)| format!("{name} {:.2} ms", time * 1e3)).collect();
    let ratio = ratio.map_or("no peer".to_owned(), |ratio| format!("{ratio:.2} x (goal {})", case.goal));
    let peers = if peers.is_empty() { String::new() } else { format!("; {}", peers.join(", ")) };
    let times = [times.first, times.later.median(), times.later.least()];
    let [first, median, least] = times.map(|time| time * 1e3);
    format!(
        "{:<4} {form} {median:>9.2} ms, least {least:>9.2} ms, first {first:>9.2} ms; {ratio}{peers}\n",
        case.id
    )
}

/// The times of the runs; every result is checked.
fn measure(case: &Case, precision: Precision) -> Result<Times> {
    let program = equations::program(case.text, &mut Generated)?;
    let tensor = |name: &str| equations::tensor(&program, name);
    let mut times = Vec::new();
    let (grown, goals, checked): (Program, Vec<TensorId>, Vec<usize>) = match case.gradient {
        None => {
            let last = program.actions.iter().find_map(|action| match action {
                Action::Query(query) => Some(query.tensor),
                Action::Write { .. } => None,
            });
            (program.clone(), vec![last.ok_or_else(|| anyhow!("no query"))?], vec![0])
        }
        Some((goal, by)) => {
            let by: Vec<TensorId> = by.iter().map(|name| tensor(name)).collect::<Result<_>>()?;
            let adjoint = adjoint(&program, tensor(goal)?, &by);
            let mut goals = vec![tensor(goal)?];
            goals.extend(adjoint.gradients.iter().flatten());
            (adjoint.program, goals, vec![1])
        }
    };
    let mut engine = Auto::new(Box::new(Fast::default().with_precision(precision)));
    let parameters = Parameters::new();
    let budget = Budget { tuples: 100_000_000, bytes: 16 << 30 };
    let request = Request { program: &grown, parameters: &parameters, budget };
    while times.len() <= RUNS || times.iter().skip(1).sum::<f64>() < SECONDS {
        engine.forget_results();
        let clock = Instant::now();
        let values = engine.values(&request, &goals).map_err(|report| anyhow!("{report}"))?;
        times.push(clock.elapsed().as_secs_f64());
        for (check, at) in case.check.iter().zip(&checked) {
            verify(check, values.get(*at))?;
        }
    }
    let first = times.remove(0);
    Ok(Times { first, later: Spread::of(times) })
}

fn verify(check: &Check, value: Option<&Value>) -> Result<()> {
    let Some(Value::Dense(values)) = value else { bail!("{} is no dense tensor", check.of) };
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in values.doubles().iter() {
        sum += value;
        squares += value * value;
    }
    if (squares - check.squares).abs() > 1e-4 * check.squares {
        bail!("{}: the sum of squares is {squares}, expected {}", check.of, check.squares);
    }
    // A sum that cancels is compared on the scale of its terms.
    let scale = (values.len() as f64 * check.squares).sqrt();
    if (sum - check.sum).abs() > 1e-4 * scale {
        bail!("{}: the sum is {sum}, expected {}", check.of, check.sum);
    }
    Ok(())
}

/// The times that the Python driver prints for this case: `CASE PEER: TIME ms`.
fn peers(args: &BenchArgs, case: &Case) -> Vec<(String, f64)> {
    let Some(folder) = args.peers_folder() else { return Vec::new() };
    let python = args.python.clone().unwrap_or_else(|| "python3".to_owned());
    let id = case.peer.split(' ').next().unwrap_or(case.peer);
    let output = Command::new(python).arg(folder.join("ein.py")).arg(id).output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let parse = |line: &str| {
        let (name, rest) = line.strip_prefix(case.peer)?.trim_start().split_once(": ")?;
        let (time, _) = rest.split_once(" ms")?;
        Some((name.to_owned(), time.trim().parse::<f64>().ok()? / 1e3))
    };
    text.lines().filter_map(parse).collect()
}
