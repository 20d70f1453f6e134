//! Table 2 of the paper against the same transformer written by hand on candle, forward and with
//! candle's own tape backward.

use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor, Var};
use tensor_logic::analyse::analyse;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Request, Value};
use tensor_logic::fast::Fast;
use tensor_logic::function::UserFunctions;
use tensor_logic::gradient::adjoint;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::TensorId;
use tensor_logic::start::all_start_values;
use training::composed::{layer_norm, matmul, softmax};

const HEADS: usize = 2;
const POSITIONS: usize = 3;
const WIDTH: usize = 4;
const KEYS: usize = 2;
const TOKENS: usize = 3;

const PROGRAM: &str = "
b : 1
h : 2
p, p' : 3
d : 4
dk, dv : 2
t : 3
L = 10000
De = 4
B = 1
X(0, 0); X(1, 1); X(2, 0)
EmbX[p, d] = X(p, t) Emb[t, d]
PosEnc[p, d] = Even(d) sin(p/L^{d/De}) + Odd(d) cos(p/L^{(d-1)/De})
Stream[0, p, d] = EmbX[p, d] + PosEnc[p, d]
Query[b, h, p, dk] = WQ[b, h, dk, d] Stream[b, p, d]
Key[b, h, p, dk] = WK[b, h, dk, d] Stream[b, p, d]
Val[b, h, p, dv] = WV[b, h, dv, d] Stream[b, p, d]
Comp[b, h, p, p'.] = softmax(Query[b, h, p, dk] Key[b, h, p', dk]/sqrt(Dk))
Attn[b, h, p, dv] = Comp[b, h, p, p'] Val[b, h, p', dv]
Merge[b, p, dm] = concat(Attn[b, h, p, dv])
Stream[b+1, p, d.] = lnorm(WS[b, d, dm] Merge[b, p, dm] + Stream[b, p, d])
Y[p, t.] = softmax(WO[t, d] Stream[B, p, d])
Loss = Y[p, t]^2 C[p, t]
";

/// The weights by name, with the shape of the program and random entries.
fn weights() -> BTreeMap<&'static str, (Vec<usize>, Vec<f64>)> {
    let shapes: [(&str, &[usize]); 7] = [
        ("Emb", &[TOKENS, WIDTH]),
        ("WQ", &[1, HEADS, KEYS, WIDTH]),
        ("WK", &[1, HEADS, KEYS, WIDTH]),
        ("WV", &[1, HEADS, KEYS, WIDTH]),
        ("WS", &[1, WIDTH, HEADS * KEYS]),
        ("WO", &[TOKENS, WIDTH]),
        ("C", &[POSITIONS, TOKENS]),
    ];
    let mut stream = seeded::Family::named("candle-tape").stream(0);
    let mut entries = |count: usize| (0..count).map(|_| stream.normal()).collect::<Vec<f64>>();
    shapes
        .into_iter()
        .map(|(name, shape)| (name, (shape.to_vec(), entries(shape.iter().product()))))
        .collect()
}

/// A nested array as it is written.
fn written(shape: &[usize], values: &[f64]) -> String {
    match shape {
        [] => format!("{:?}", values[0]),
        [size, rest @ ..] => {
            let row = values.len() / size;
            let rows: Vec<String> = values.chunks(row).map(|values| written(rest, values)).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

/// The transformer by hand; answers the loss and Y.
fn by_hand(weights: &BTreeMap<&str, Var>) -> Result<(Tensor, Tensor)> {
    let device = Device::Cpu;
    let weight = |name: &str| weights[name].as_tensor();
    let tokens = Tensor::from_slice(&[0_u32, 1, 0], POSITIONS, &device)?;
    let angle = |p: usize, d: usize| {
        let place = |d: f64| p as f64 / 10_000_f64.powf(d / 4.0);
        if d.is_multiple_of(2) { place(d as f64).sin() } else { place(d as f64 - 1.0).cos() }
    };
    let places: Vec<f64> = (0..POSITIONS).flat_map(|p| (0..WIDTH).map(move |d| angle(p, d))).collect();
    let places = Tensor::from_vec(places, (POSITIONS, WIDTH), &device)?;
    let stream = (weight("Emb").index_select(&tokens, 0)? + places)?; // [position, width]
    let mut heads = Vec::new();
    for head in 0..HEADS {
        let part = |name: &str| weight(name).get(0)?.get(head)?.t();
        let query = matmul(&stream, &part("WQ")?)?; // [position, key]
        let key = matmul(&stream, &part("WK")?)?;
        let value = matmul(&stream, &part("WV")?)?;
        let scores = (matmul(&query, &key.t()?)? / (KEYS as f64).sqrt())?; // [position, position]
        heads.push(matmul(&softmax(&scores)?, &value)?);
    }
    let merged = Tensor::cat(&heads, 1)?; // [position, head · value]
    let mixed = (matmul(&merged, &weight("WS").get(0)?.t()?)? + &stream)?;
    let (one, zero) =
        (Tensor::ones(WIDTH, mixed.dtype(), &device)?, Tensor::zeros(WIDTH, mixed.dtype(), &device)?);
    let stream = layer_norm(&mixed, &one, &zero, 1e-5)?;
    let answer = softmax(&matmul(&stream, &weight("WO").t()?)?)?; // [position, token]
    Ok(((answer.sqr()? * weight("C"))?.sum_all()?, answer))
}

#[test]
fn table_2_agrees_with_candle_forward_and_backward() {
    let weights = weights();
    let mut text = PROGRAM.to_owned();
    for (name, (shape, values)) in &weights {
        text.push_str(&format!("{name} ~ {}\n", written(shape, values)));
    }
    text.push_str("Y?\nLoss?\n");
    let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
    let program = analysed.unwrap().program;
    let id = |name: &str| {
        let at = program.tensors.iter().position(|tensor| tensor.name == name).unwrap();
        TensorId(at as u32)
    };
    let wrt: Vec<TensorId> = weights.keys().map(|name| id(name)).collect();
    let adjoint = adjoint(&program, id("Loss"), &wrt);
    let parameters = all_start_values(&program);
    let mut goals = vec![id("Y"), id("Loss")];
    goals.extend(adjoint.gradients.iter().flatten());
    let budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };
    let request = Request { program: &adjoint.program, parameters: &parameters, budget };
    let values = Auto::new(Box::<Fast>::default()).values(&request, &goals).unwrap();
    let dense = |value: &Value| value.doubles().into_owned();

    let var = |(shape, values): &(Vec<usize>, Vec<f64>)| {
        let tensor = Tensor::from_slice(values, shape.as_slice(), &Device::Cpu).unwrap();
        Var::from_tensor(&tensor).unwrap()
    };
    let vars: BTreeMap<&str, Var> = weights.iter().map(|(name, weight)| (*name, var(weight))).collect();
    let (loss, answer) = by_hand(&vars).unwrap();
    let gradients = loss.backward().unwrap();
    let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let close = |name: &str, a: &[f64], b: &[f64]| {
        assert_eq!(a.len(), b.len(), "{name}");
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-10, "{name}: {a} here, {b} on candle");
        }
    };
    close("Y", &dense(&values[0]), &flat(&answer));
    close("Loss", &dense(&values[1]), &flat(&loss));
    for ((name, weight), value) in vars.iter().zip(&values[2..]) {
        close(name, &dense(value), &flat(gradients.get(weight.as_tensor()).unwrap()));
    }
}
