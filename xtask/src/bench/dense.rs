//! `cargo xtask bench dense [NAME]...`: dense programs beside the same mathematics written by hand on
//! candle.
//!
//! Both sides take turns in this process, on as many threads. They are given other weights in every
//! turn, as steps of training are: what does not depend on weights (the plan; positions and tokens;
//! by hand, tensors of both) is made in the first turn and stays. Values and gradients of every turn
//! are compared. In 32 bits both compute everything in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};
use candle_core::{DType, Device, Tensor, Var};
use serde_json::{Value as Json, json};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::gradient::adjoint;
use tensor_logic::lower::NoFiles;
use tensor_logic::program::{Program, TensorId};
use tensor_logic::start::all_start_values;
use training::composed::{layer_norm, linear, matmul, softmax};

use super::{BenchArgs, Spread, chosen, equations};
use crate::answer::{print_json, print_text};

/// Turns that count; one more goes before them.
const TURNS: usize = 15;

/// Our time by candle's.
const GOAL: f64 = 1.2;

/// A network in both forms.
struct Network {
    name: &'static str,
    text: fn() -> String,
    /// What is differentiated, and by what.
    loss: &'static str,
    weights: &'static [&'static str],
    /// The answer of a forward pass.
    answer: &'static str,
    /// The hand-written code: the answer, and from it the loss.
    by_hand: fn(&ByHand) -> Result<Tensor>,
    loss_by_hand: fn(&ByHand, &Tensor) -> Result<Tensor>,
}

const NETWORKS: [Network; 2] = [
    Network {
        name: "transformer",
        text: transformer_text,
        loss: "Loss",
        weights: &["Emb", "WQ", "WK", "WV", "WS", "W1", "W2", "WO"],
        answer: "Y",
        by_hand: transformer_by_hand,
        loss_by_hand: |given, answer| Ok((given.get("Label")? * answer.log()?)?.sum_all()?.neg()?),
    },
    Network {
        name: "mlp",
        text: || MLP.to_owned(),
        loss: "Loss",
        weights: &["W1", "W2", "W3", "B1", "B2", "B3"],
        answer: "O",
        by_hand: mlp_by_hand,
        loss_by_hand: |given, answer| Ok((answer - given.get("T")?)?.sqr()?.mean_all()?),
    },
];

const MLP: &str = "
n, i, j, k, c : 256
X[n, i] ~ normal(0, 1)
T[n, c] ~ normal(0, 1)
W1[j, i] ~ glorot
W2[k, j] ~ glorot
W3[c, k] ~ glorot
B1[j] ~ normal(0, 1)
B2[k] ~ normal(0, 1)
B3[c] ~ normal(0, 1)
H1[n, j] = relu(W1[j, i] X[n, i] + B1[j])
H2[n, k] = relu(W2[k, j] H1[n, j] + B2[k])
O[n, c] = W3[c, k] H2[n, k] + B3[c]
Loss avg= (O[n, c] - T[n, c])^2
";

fn mlp_by_hand(given: &ByHand) -> Result<Tensor> {
    let first = linear(given.get("X")?, given.get("W1")?, given.get("B1")?)?.relu()?; // [example, unit]
    let second = linear(&first, given.get("W2")?, given.get("B2")?)?.relu()?;
    Ok(linear(&second, given.get("W3")?, given.get("B3")?)?)
}

const BLOCKS: usize = 2;
const HEADS: usize = 4;
const POSITIONS: usize = 128;
const WIDTH: usize = 128;
const KEYS: usize = WIDTH / HEADS;
const UNITS: usize = 4 * WIDTH;
const TOKENS: usize = 512;

/// The token at a position, and the one that is asked for there.
fn token(position: usize) -> [usize; 2] {
    [position * 37 % TOKENS, position * 101 % TOKENS]
}

/// Table 2 of the paper (`programs/table2-transformer.tl`), larger, with the loss of its labels.
fn transformer_text() -> String {
    let mut text = format!(
        "b : {BLOCKS}\nh : {HEADS}\np, p' : {POSITIONS}\nd, dm : {WIDTH}\ndk, dv : {KEYS}\nu : {UNITS}\n\
         t : {TOKENS}\nL = 10000\nDe = {WIDTH}\nB = {BLOCKS}\n"
    );
    for position in 0..POSITIONS {
        let [token, label] = token(position);
        text.push_str(&format!("X({position}, {token})\nLabel({position}, {label})\n"));
    }
    text.push_str(TABLE_2);
    text
}

const TABLE_2: &str = "
Emb[t, d] ~ normal(0, 1)
WQ[b, h, dk, d] ~ glorot
WK[b, h, dk, d] ~ glorot
WV[b, h, dv, d] ~ glorot
WS[b, d, dm] ~ glorot
W1[b, u, d] ~ glorot
W2[b, d, u] ~ glorot
WO[t, d] ~ glorot
EmbX[p, d] = X(p, t) Emb[t, d]
PosEnc[p, d] = Even(d) sin(p/L^{d/De}) + Odd(d) cos(p/L^{(d-1)/De})
Stream[0, p, d] = EmbX[p, d] + PosEnc[p, d]
Query[b, h, p, dk] = WQ[b, h, dk, d] Stream[b, p, d]
Key[b, h, p, dk] = WK[b, h, dk, d] Stream[b, p, d]
Val[b, h, p, dv] = WV[b, h, dv, d] Stream[b, p, d]
Comp[b, h, p, p'.] = softmax(Query[b, h, p, dk] Key[b, h, p', dk]/sqrt(Dk))
Attn[b, h, p, dv] = Comp[b, h, p, p'] Val[b, h, p', dv]
Merge[b, p, dm] = concat(Attn[b, h, p, dv])
Mid[b, p, d.] = lnorm(WS[b, d, dm] Merge[b, p, dm] + Stream[b, p, d])
Hid[b, p, u] = relu(W1[b, u, d] Mid[b, p, d])
MLP[b, p, d] = W2[b, d, u] Hid[b, p, u]
Stream[b+1, p, d.] = lnorm(MLP[b, p, d] + Mid[b, p, d])
Y[p, t.] = softmax(WO[t, d] Stream[B, p, d])
Loss = -Label(p, t) log(Y[p, t])
";

fn transformer_by_hand(given: &ByHand) -> Result<Tensor> {
    let mut stream = (given.get("Emb")?.index_select(given.get("tokens")?, 0)? + given.get("PosEnc")?)?;
    let (one, zero) = (given.get("one")?, given.get("zero")?);
    for block in 0..BLOCKS {
        let weight = |name: &str| Ok::<_, anyhow::Error>(given.get(name)?.get(block)?);
        let heads = |name: &str| -> Result<Tensor> {
            let projection = weight(name)?.reshape((WIDTH, WIDTH))?.t()?; // [width, head · key]
            let all = matmul(&stream, &projection)?.reshape((POSITIONS, HEADS, KEYS))?;
            Ok(all.transpose(0, 1)?) // [head, position, key]
        };
        let (query, key, value) = (heads("WQ")?, heads("WK")?, heads("WV")?);
        let scores = (matmul(&query, &key.t()?)? / (KEYS as f64).sqrt())?; // [head, position, position]
        let read = matmul(&softmax(&scores)?, &value)?; // [head, position, value]
        let merged = read.transpose(0, 1)?.reshape((POSITIONS, WIDTH))?;
        let mid = layer_norm(&(matmul(&merged, &weight("WS")?.t()?)? + &stream)?, one, zero, 1e-5)?;
        let hidden = matmul(&mid, &weight("W1")?.t()?)?.relu()?; // [position, unit]
        stream = layer_norm(&(matmul(&hidden, &weight("W2")?.t()?)? + &mid)?, one, zero, 1e-5)?;
    }
    Ok(softmax(&matmul(&stream, &given.get("WO")?.t()?)?)?) // [position, token]
}

/// What stands beside the weights by hand.
fn constants(dtype: DType) -> Result<Vec<(&'static str, Tensor)>> {
    let device = Device::Cpu;
    let tokens: Vec<u32> = (0..POSITIONS).map(|position| token(position)[0] as u32).collect();
    let mut labels = vec![0.0; POSITIONS * TOKENS];
    for position in 0..POSITIONS {
        labels[position * TOKENS + token(position)[1]] = 1.0;
    }
    let angle = |p: usize, d: usize| {
        let place = |d: f64| p as f64 / 10_000_f64.powf(d / WIDTH as f64);
        if d.is_multiple_of(2) { place(d as f64).sin() } else { place(d as f64 - 1.0).cos() }
    };
    let places: Vec<f64> = (0..POSITIONS).flat_map(|p| (0..WIDTH).map(move |d| angle(p, d))).collect();
    Ok(vec![
        ("tokens", Tensor::from_vec(tokens, POSITIONS, &device)?),
        ("Label", Tensor::from_vec(labels, (POSITIONS, TOKENS), &device)?.to_dtype(dtype)?),
        ("PosEnc", Tensor::from_vec(places, (POSITIONS, WIDTH), &device)?.to_dtype(dtype)?),
        ("one", Tensor::ones(WIDTH, dtype, &device)?),
        ("zero", Tensor::zeros(WIDTH, dtype, &device)?),
    ])
}

/// The tensors of the hand-written code.
struct ByHand {
    weights: BTreeMap<&'static str, Var>,
    others: BTreeMap<String, Tensor>,
}

impl ByHand {
    fn get(&self, name: &str) -> Result<&Tensor> {
        let weight = self.weights.get(name).map(Var::as_tensor);
        weight.or_else(|| self.others.get(name)).ok_or_else(|| anyhow!("no tensor {name}"))
    }
}

/// `bench dense [NAME]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    training::threads::set_with_this(args.threads)?;
    let mut items = Vec::new();
    for network in chosen(&NETWORKS, |network| network.name, names)? {
        for (form, precision, dtype) in
            [("f64", Precision::Double, DType::F64), ("f32", Precision::Single, DType::F32)]
        {
            for (pass, gradient) in [("forward", false), ("gradient", true)] {
                let (ours, theirs) = measure(network, precision, dtype, gradient)?;
                let (ratio, ratio_least) = (ours.median() / theirs.median(), ours.least() / theirs.least());
                if !args.json {
                    print_text(&format!(
                        "{:<12} {form} {pass:<9} {:>8.2} ms, candle {:>8.2} ms, ratio {ratio:.2}; \
                         least {:>8.2} and {:>8.2}, ratio {ratio_least:.2} (goal {GOAL})\n",
                        network.name,
                        ours.median(),
                        theirs.median(),
                        ours.least(),
                        theirs.least()
                    ));
                }
                items.push(json!({
                    "name": network.name, "form": form, "pass": pass, "ms": ours.median(),
                    "least_ms": ours.least(), "candle_ms": theirs.median(), "candle_least_ms": theirs.least(),
                    "ratio": ratio, "ratio_of_least": ratio_least, "goal": GOAL,
                }));
            }
        }
    }
    if args.json {
        let machine = crate::run_folder::machine();
        print_json(&json!({
            "schema": "xtask/1", "command": "bench dense", "machine": machine, "threads": args.threads,
            "items": Json::Array(items),
        }))?;
    }
    Ok(0)
}

/// Milliseconds of all turns of both sides.
fn measure(
    network: &Network,
    precision: Precision,
    dtype: DType,
    gradient: bool,
) -> Result<(Spread, Spread)> {
    let program = equations::program(&(network.text)(), &mut NoFiles)?;
    let id = |name: &str| equations::tensor(&program, name);
    let weights: Vec<TensorId> = network.weights.iter().map(|name| id(name)).collect::<Result<_>>()?;
    let mut goals = vec![id(network.answer)?];
    let grown = if gradient {
        let adjoint = adjoint(&program, id(network.loss)?, &weights);
        goals.push(id(network.loss)?);
        goals.extend(adjoint.gradients.iter().flatten());
        ensure!(goals.len() == 2 + weights.len(), "a gradient is missing");
        adjoint.program
    } else {
        program.clone()
    };
    // Neither scale leaves a unit so near to relu's kink that the last digits of 32 bits decide its slope: at 0.9
    // one unit of 131,072 is.
    let sides: Vec<(Parameters, ByHand)> = [1.0, 0.8]
        .iter()
        .map(|scale| side(network, &program, &weights, *scale, dtype))
        .collect::<Result<_>>()?;

    let mut engine = Auto::new(Box::new(Fast::default().with_precision(precision)));
    let budget = Budget { tuples: 100_000_000, bytes: 4 << 30 };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let tolerance = if dtype == DType::F64 { 1e-9 } else { 1e-3 };
    for (turn, (parameters, given)) in sides.iter().cycle().take(TURNS + 1).enumerate() {
        let clock = Instant::now();
        let request = Request { program: &grown, parameters, budget };
        let values = engine.values(&request, &goals).map_err(|report| anyhow!("{report}"))?;
        let first = clock.elapsed();
        let clock = Instant::now();
        let answer = (network.by_hand)(given)?;
        let mut expected = vec![answer.clone()];
        if gradient {
            let loss = (network.loss_by_hand)(given, &answer)?;
            let gradients = loss.backward()?;
            expected.push(loss);
            for name in network.weights {
                let found = gradients.get(given.get(name)?).cloned();
                expected.push(found.ok_or_else(|| anyhow!("no gradient of {name}"))?);
            }
        }
        let second = clock.elapsed();
        for (at, (value, expected)) in values.iter().zip(&expected).enumerate() {
            compare(&format!("result {at} of {}", network.name), value, expected, tolerance)?;
        }
        if turn > 0 {
            ours.push(first.as_secs_f64() * 1e3);
            theirs.push(second.as_secs_f64() * 1e3);
        }
    }
    Ok((Spread::of(ours), Spread::of(theirs)))
}

/// The parameters of both sides, the weights scaled.
fn side(
    network: &Network,
    program: &Program,
    weights: &[TensorId],
    scale: f64,
    dtype: DType,
) -> Result<(Parameters, ByHand)> {
    let mut given = ByHand { weights: BTreeMap::new(), others: BTreeMap::new() };
    if network.name == "transformer" {
        given.others.extend(constants(dtype)?.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)));
    }
    let mut parameters = all_start_values(program);
    let mut ids: Vec<TensorId> = parameters.keys().copied().collect();
    ids.sort_unstable();
    for id in &ids {
        let Some(values) = parameters.get_mut(id) else { continue };
        let weight = weights.iter().position(|weight| weight == id);
        if weight.is_some() {
            *values = Arc::new(values.iter().map(|value| value * scale).collect());
        }
        let tensor = program.tensor(*id);
        let shape: Vec<usize> = tensor
            .places
            .iter()
            .map(|place| place.domain.as_ref().map_or(0, |domain| domain.len()))
            .collect();
        let by_hand = Tensor::from_slice(values, shape, &Device::Cpu)?.to_dtype(dtype)?;
        match weight.and_then(|at| network.weights.get(at)) {
            Some(name) => _ = given.weights.insert(name, Var::from_tensor(&by_hand)?),
            None => _ = given.others.insert(tensor.name.clone(), by_hand),
        }
    }
    Ok((parameters, given))
}

/// Refuses values that differ, on the scale of the largest.
fn compare(what: &str, value: &Value, expected: &Tensor, tolerance: f64) -> Result<()> {
    let Value::Dense(values) = value else { bail!("{what} is no dense tensor") };
    let expected: Vec<f64> = expected.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?;
    ensure!(values.len() == expected.len(), "{what}: {} here, {} on candle", values.len(), expected.len());
    let scale = expected.iter().fold(0.0, |scale: f64, x| scale.max(x.abs()));
    let worst = values.doubles().iter().zip(&expected).fold(0.0, |worst: f64, (a, b)| {
        if (a - b).is_nan() { f64::INFINITY } else { worst.max((a - b).abs()) }
    });
    ensure!(worst <= tolerance * scale, "{what}: {worst:e} apart on a scale of {scale:e}");
    Ok(())
}
