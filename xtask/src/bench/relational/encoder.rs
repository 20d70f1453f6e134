//! An encoder block of the transformer on 8, 32 and 128 tokens of width 16: as rules over the tokens that there are, and as
//! equations over all of them.

use std::path::Path;

use anyhow::{Result, ensure};
use seeded::Family;
use serde_json::{Value as Json, json};

use super::by_hand::{self, Dense};
use super::ours::{analysed, evaluated, flat, learned, median, number, peer, same};

const TOKENS: [usize; 3] = [8, 32, 128];
/// How many times faster than PyNeuraLogic it is to be.
const GOALS: [f64; 3] = [10.0, 30.0, 300.0];
const RUNS: usize = 31;
/// So often ours is evaluated and takes a step, for so many tokens: a third of a second, of which the second half counts, as of
/// the three seconds of the peer. (31 steps of 16 µs are over before a processor goes at its pace.)
const TURNS: [usize; 3] = [20_000, 10_000, 1000];
const WIDTHS: [(&str, usize, usize); 7] = [
    ("Wq", 16, 16),
    ("Wk", 16, 16),
    ("Wv", 16, 16),
    ("Wo", 16, 16),
    ("W1", 32, 16),
    ("W2", 16, 32),
    ("P", 4, 16),
];

/// Relations over the tokens that there are, each of which has a block of numbers.
const RULES: &str = "
Token(i) <- i >= 0
Q(i, d) += Token(i) Wq[d, e] X[i, e]
K(i, d) += Token(i) Wk[d, e] X[i, e]
V(i, d) += Token(i) Wv[d, e] X[i, e]
Weights(i, j.) += softmax(Q(i, d) K(j, d) / 4)
Attention(i, d) += Weights(i, j) V(j, d)
Norm(i, d.) += lnorm(Wo[d, e] Attention(i, e) + X[i, d], 1e-10)
Hidden(i, h) += relu(W1[h, d] Norm(i, d))
Out(i, d.) += lnorm(Norm(i, d) + W2[d, h] Hidden(i, h), 1e-10)
Total[c] = P[c, d] Out(i, d)
";
/// The same in square brackets.
const EQUATIONS: &str = "
Q[i, d] = Wq[d, e] X[i, e]
K[i, d] = Wk[d, e] X[i, e]
V[i, d] = Wv[d, e] X[i, e]
Weights[i, j.] = softmax(Q[i, d] K[j, d] / 4)
Attention[i, d] = Weights[i, j] V[j, d]
Norm[i, d.] = lnorm(Wo[d, e] Attention[i, e] + X[i, d], 1e-10)
Hidden[i, h] = relu(W1[h, d] Norm[i, d])
Out[i, d.] = lnorm(Norm[i, d] + W2[d, h] Hidden[i, h], 1e-10)
Total[c] = P[c, d] Out[i, d]
";
const FORMS: [(&str, &str); 2] = [("rules", RULES), ("equations", EQUATIONS)];
/// 2^-20: the steps that are timed do not run away.
const RATE: &str = "9.5367431640625e-7";

/// What is computed with.
fn given(tokens: usize) -> Json {
    let mut stream = Family::named("bench relational encoder").stream(tokens as u64);
    let mut rows = |rows: usize, columns: usize| -> Vec<Vec<f64>> {
        (0..rows).map(|_| (0..columns).map(|_| stream.below(1025) as f64 / 1024.0 - 0.5).collect()).collect()
    };
    let weights: serde_json::Map<String, Json> =
        WIDTHS.iter().map(|(name, high, wide)| ((*name).to_owned(), json!(rows(*high, *wide)))).collect();
    json!({ "x": rows(tokens, 16), "weights": weights, "target": rows(1, 4)[0] })
}

fn text(given: &Json, tokens: usize, form: &str, steps: usize) -> String {
    let weights = WIDTHS.map(|(name, ..)| format!("{name} ~ {}\n", given["weights"][name]));
    format!(
        "{}X = {}\nT = {}\ni, j : {tokens}\n{form}Loss = (Total[c] - T[c])^2\n\
         Loss? @minimize(opt=sgd, lr={RATE}, steps={steps})\n",
        weights.concat(),
        given["x"],
        given["target"],
    )
}

/// Measures it, beside PyNeuraLogic where there is one.
pub(super) fn items(peers: Option<(&str, &Path)>, mut say: impl FnMut(String)) -> Result<Vec<Json>> {
    let mut items = Vec::new();
    for ((tokens, goal), turns) in TOKENS.into_iter().zip(GOALS).zip(TURNS) {
        let given = given(tokens);
        let theirs = peers.map(|(python, folder)| {
            let file = tempfile::NamedTempFile::new()?;
            std::fs::write(file.path(), given.to_string())?;
            let path = file.path().to_string_lossy();
            peer(python, folder, &["encoder", &path, &RUNS.to_string(), RATE])
        });
        let theirs = theirs.transpose()?;
        let dense = by_hand::measured(&given, RATE.parse()?, RUNS)?;
        for (form, rules) in FORMS {
            let name = format!("encoder-{tokens} as {form}");
            let texts = [1, turns].map(|steps| text(&given, tokens, rules, steps));
            let (line, item) = measured(&name, texts, turns, &theirs, &dense)?;
            say(line + &format!(" (goal {goal})\n"));
            items.push(item);
        }
    }
    Ok(items)
}

/// A line for people and an item for others. The first text takes one step.
fn measured(
    name: &str,
    [one, many]: [String; 2],
    turns: usize,
    theirs: &Option<Json>,
    dense: &Dense,
) -> Result<(String, Json)> {
    let one = learned(&analysed(&one)?)?;
    let program = analysed(&many)?;
    let start = tensor_logic::start::all_start_values(&program);
    let (evaluate, value) = evaluated(&program, "Total", &start, turns)?;
    let (_, after) = evaluated(&program, "Total", &one.parameters, 1)?;
    let mut seconds = learned(&program)?.seconds;
    let step = median(seconds.split_off(seconds.len() / 2));
    let mut line = format!("{name:24} evaluates in {:.3} ms, a step {:.3} ms", evaluate * 1e3, step * 1e3);
    let mut item = json!({ "name": name, "evaluate_s": evaluate, "step_s": step, "value": value });
    ensure!(value != after, "the step moves nothing");
    same("the block", &value, &dense.value)?;
    same("after a step", &after, &dense.after)?;
    line += &format!(
        "; dense code on candle {:.3} ms, {:.3} ms: {:.2} and {:.2} of its time",
        dense.evaluate * 1e3,
        dense.step * 1e3,
        evaluate / dense.evaluate,
        step / dense.step
    );
    item["dense_evaluate_s"] = json!(dense.evaluate);
    item["dense_step_s"] = json!(dense.step);
    if let Some(theirs) = theirs {
        same("the block", &value, &flat(&theirs["value"]))?;
        same("after a step", &after, &flat(&theirs["after"]))?;
        let (their_evaluate, their_step) = (number(theirs, "evaluate_s")?, number(theirs, "step_s")?);
        line += &format!(
            "; PyNeuraLogic {:.3} ms, {:.3} ms: {:.1} x, {:.1} x",
            their_evaluate * 1e3,
            their_step * 1e3,
            their_evaluate / evaluate,
            their_step / step
        );
        item["peer_evaluate_s"] = json!(their_evaluate);
        item["peer_step_s"] = json!(their_step);
    }
    Ok((line, item))
}
