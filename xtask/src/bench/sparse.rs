//! `cargo xtask bench sparse`: a relation of 10⁶ tuples over 10⁵ × 10⁵ joined with a dense embedding
//! of width 64, forward and gradient, and the memory that this takes.
//!
//! The run has a process of its own, so that the peak of its resident memory (`VmHWM`) is the
//! program's alone: the relation and the embedding, which are given, the run, and the whole binary.
//! It is read before the answer is checked against plain loops.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value as Json, json};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::lower::Loaded;
use tensor_logic::program::TensorId;
use tensor_logic::value::Const;

use super::einsum::Generated;
use super::{BenchArgs, equations, in_a_process};
use crate::answer::{give, print_json};
use crate::run_folder::peak_bytes;

/// The most that it may take, in bytes.
const GOAL: u64 = 1_000_000_000;

const WIDTH: usize = 64;
const RELATION: &str = "pairs 181 100000 1000000.csv";
const EMBEDDING: &str = "signed 182 100000 64.npy";

/// `bench sparse`: starts the process that measures itself.
pub(super) fn run(args: &BenchArgs) -> Result<u8> {
    let answer = in_a_process(["sparse-one", "--threads", &args.threads.to_string()])?;
    let number = |key: &str| answer.get(key).and_then(Json::as_f64).unwrap_or(f64::NAN);
    give(args.json, &answer, || {
        format!(
            "{} tuples: forward {:.2} s, gradient {:.2} s; peak {:.0} MB, of which {:.0} MB before the run \
             (goal {:.0} MB)\n",
            number("tuples"),
            number("forward_s"),
            number("gradient_s"),
            number("peak_bytes") / 1e6,
            number("given_bytes") / 1e6,
            GOAL as f64 / 1e6
        )
    })?;
    let peak = answer.get("peak_bytes").and_then(Json::as_u64).context("no peak")?;
    Ok(u8::from(peak > GOAL))
}

/// `bench sparse-one`: the run.
pub(super) fn one(args: &BenchArgs) -> Result<u8> {
    training::threads::set_with_this(args.threads)?;
    let text = format!(
        "R = \"{RELATION}\"\nEmb = \"{EMBEDDING}\"\nR(i, j)\nEmb[j, d]\n\
         Y[i, d] = R(i, j) Emb[j, d]\nLoss = Y[i, d]^2\n"
    );
    let program = equations::program(&text, &mut Generated)?;
    let id = |name: &str| equations::tensor(&program, name);
    let (output, loss, embedding) = (id("Y")?, id("Loss")?, id("Emb")?);
    let adjoint = adjoint(&program, loss, &[embedding]);
    let Some(gradient) = adjoint.gradients.first().copied().flatten() else { bail!("no gradient") };
    drop(program);
    let peak = || peak_bytes().context("the peak is read on Linux only");
    let given_bytes = peak()?;
    let parameters = Parameters::new();
    let budget = Budget { tuples: 100_000_000, bytes: 16 << 30 };
    let request = Request { program: &adjoint.program, parameters: &parameters, budget };
    let mut engine = Auto::new(Box::<Fast>::default());
    let mut timed = |goals: &[TensorId]| -> Result<(Vec<Value>, f64)> {
        let clock = Instant::now();
        let values = engine.values(&request, goals).map_err(|report| anyhow!("{report}"))?;
        Ok((values, clock.elapsed().as_secs_f64()))
    };
    let (forward, forward_s) = timed(&[output, loss])?;
    let (backward, gradient_s) = timed(&[gradient])?;
    let most_bytes = peak()?;
    let (Some(Value::Dense(y)), Some(Value::Dense(loss)), Some(Value::Dense(gradient))) =
        (forward.first(), forward.get(1), backward.first())
    else {
        bail!("a result is no dense tensor");
    };
    let tuples = check(&y.doubles(), &loss.doubles(), &gradient.doubles())?;
    print_json(&json!({
        "schema": "xtask/1", "command": "bench sparse", "machine": crate::run_folder::machine(),
        "threads": args.threads, "tuples": tuples, "forward_s": forward_s, "gradient_s": gradient_s,
        "given_bytes": given_bytes, "peak_bytes": most_bytes, "goal_bytes": GOAL,
    }))?;
    Ok(0)
}

/// Compares with plain loops over the tuples; answers how many there are.
fn check(y: &[f64], loss: &[f64], gradient: &[f64]) -> Result<usize> {
    let (Some(Loaded::Facts(facts)), Some(Loaded::Array { values: embedding, .. })) =
        (Generated::make(RELATION), Generated::make(EMBEDDING))
    else {
        bail!("no input");
    };
    let place = |constant: &Const| match constant {
        Const::Int(value) => usize::try_from(*value).map_err(anyhow::Error::from),
        Const::Symbol(_) => bail!("a place that is no integer"),
    };
    let mut pairs = Vec::with_capacity(facts.count);
    for pair in facts.constants.chunks_exact(2) {
        pairs.push((place(&pair[0])?, place(&pair[1])?));
    }
    // Domains are what occurs, so an end of them may be missing; places are their own positions then.
    let occurring = |of: fn(&(usize, usize)) -> usize| pairs.iter().map(of).max().map_or(0, |most| most + 1);
    let (rows, columns) = (occurring(|pair| pair.0), embedding.len() / WIDTH);
    let mut expected = vec![0.0; rows * WIDTH];
    for (i, j) in &pairs {
        for d in 0..WIDTH {
            expected[i * WIDTH + d] += embedding[j * WIDTH + d];
        }
    }
    let mut expected_gradient = vec![0.0; columns * WIDTH];
    for (i, j) in &pairs {
        for d in 0..WIDTH {
            expected_gradient[j * WIDTH + d] += 2.0 * expected[i * WIDTH + d];
        }
    }
    let expected_loss: f64 = expected.iter().map(|value| value * value).sum();
    close("Y", y, &expected)?;
    close("Loss", loss, &[expected_loss])?;
    close("the gradient", gradient, &expected_gradient)?;
    Ok(pairs.len())
}

fn close(what: &str, values: &[f64], expected: &[f64]) -> Result<()> {
    ensure!(values.len() == expected.len(), "{what}: {} values, expected {}", values.len(), expected.len());
    for (at, (value, expected)) in values.iter().zip(expected).enumerate() {
        ensure!(
            (value - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
            "{what} at {at}: {value}, expected {expected}"
        );
    }
    Ok(())
}
