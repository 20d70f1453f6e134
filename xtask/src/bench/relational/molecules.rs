//! Mutagenesis, as PyNeuraLogic ships it: 188 molecules, a network of three layers for each, from the same weights.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use tensor_logic::neuralogic::{Constant, DataSet};

use super::ours::{analysed, flat, learned, median, number, peer, same};

const ATOMS: [&str; 8] = ["c", "o", "br", "i", "f", "h", "n", "cl"];
const BONDS: [&str; 6] = ["b_1", "b_2", "b_3", "b_4", "b_5", "b_7"];
const MOLECULES: usize = 188;
/// Molecules in a step.
const SIZES: [usize; 2] = [1, MOLECULES];
/// Every molecule by itself, and what is equal in several of them once.
const FORMS: [(&str, &str); 2] = [("", ""), (" lifted", ", lift=yes")];
/// Epochs, of which the losses of the first are compared; the times are those of the second half, as the peer's are.
const EPOCHS: usize = 31;
const RATE: &str = "0.0009765625";
/// How many times faster than PyNeuraLogic an epoch is to be.
const GOAL: f64 = 20.0;

const RULES: &str = "d, e : 3
L0[s, x, d] = Is(s, x, a) tanh(AtomE[a, d])
K[s, b, d] = Kind(s, b, k) tanh(BondE[k, d])
Node(s, x) <- Bond(s, x, y, b)
";

/// The facts of the molecules, `bond(d59_23, d59_5, 0), h(d59_23), b_1(0)`, and what is to come out of each.
fn facts(data: &DataSet) -> Result<String> {
    let mut facts = String::new();
    for (s, sample) in data.samples.iter().enumerate() {
        // Atoms and bonds have numbers in their molecule.
        let (mut atoms, mut bonds): (BTreeMap<&Constant, usize>, BTreeMap<&Constant, usize>) =
            (BTreeMap::new(), BTreeMap::new());
        let mut atom = |name| {
            let next = atoms.len();
            *atoms.entry(name).or_insert(next)
        };
        let mut bond = |name| {
            let next = bonds.len();
            *bonds.entry(name).or_insert(next)
        };
        for literal in &sample.facts {
            let name = literal.predicate.as_str();
            let at = |names: &[&str]| names.iter().position(|known| *known == name);
            match (name, literal.arguments.as_slice()) {
                ("bond", [x, y, b]) => writeln!(facts, "Bond({s}, {}, {}, {})", atom(x), atom(y), bond(b))?,
                (_, [b]) if name.starts_with("b_") => {
                    writeln!(facts, "Kind({s}, {}, {})", bond(b), at(&BONDS).context("an unknown bond")?)?;
                }
                (_, [x]) => {
                    writeln!(facts, "Is({s}, {}, {})", atom(x), at(&ATOMS).context("an unknown atom")?)?
                }
                _ => anyhow::bail!("molecule {s}: {literal:?}"),
            }
        }
        let target = sample.queries.first().and_then(|query| query.numbers().first()).context("a target")?;
        writeln!(facts, "T({s}) = {target}")?;
    }
    Ok(facts)
}

fn text(facts: &str, weights: &Json, (size, options): (usize, &str)) -> Result<String> {
    let mut text = facts.to_owned();
    let rows = |names: &[&str], kind: &str| {
        Json::from_iter(names.iter().map(|name| weights[format!("{kind}_{name}")].clone()))
    };
    writeln!(text, "AtomE ~ {}\nBondE ~ {}", rows(&ATOMS, "Atom"), rows(&BONDS, "Bond"))?;
    text += RULES;
    for layer in 1..=3 {
        let below = layer - 1;
        for name in [format!("A{layer}"), format!("B{layer}")] {
            writeln!(text, "{name} ~ {}", weights[&name])?;
        }
        writeln!(
            text,
            "Own{layer}[s, x, e] = A{layer}[e, d] L{below}[s, x, d]\nOther{layer}[s, x, e] = B{layer}[e, d] L{below}[s, x, d]\n\
             L{layer}[s, x, e] avg= Bond(s, x, y, b) tanh(Own{layer}[s, x, e] + Other{layer}[s, y, e] + K[s, b, e])"
        )?;
    }
    writeln!(
        text,
        "P ~ {}\nY(s) avg= Node(s, x) sig(P[d] L3[s, x, d])\nLoss = (Y(s) - T(s))^2\n\
         Loss? @minimize(opt=sgd, lr={RATE}, epochs={EPOCHS}, batch=s, size={size}{options})",
        weights["P"][0]
    )?;
    Ok(text)
}

/// Measures it beside PyNeuraLogic, which has the data.
pub(super) fn items(python: &str, folder: &Path, mut say: impl FnMut(String)) -> Result<Vec<Json>> {
    let mut items = Vec::new();
    for size in SIZES {
        let theirs = peer(python, folder, &["molecules", &size.to_string(), "7", RATE])?;
        let data = Path::new(theirs["folder"].as_str().context("the peer has no data")?);
        let facts = facts(&DataSet::read(data, None)?)?;
        let per_epoch = MOLECULES.div_ceil(size);
        let theirs_s = number(&theirs, "epoch_s")?;
        for (form, options) in FORMS {
            let ours = learned(&analysed(&text(&facts, &theirs["weights"], (size, options))?)?)?;
            // The loss of each epoch, over the molecules as the steps meet them.
            let losses: Vec<f64> = ours.losses.chunks(per_epoch).map(|steps| steps.iter().sum()).collect();
            let compared = flat(&theirs["losses"]);
            same("losses", losses.get(..compared.len()).unwrap_or(&losses), &compared)?;
            let epochs: Vec<f64> = ours.seconds.rchunks(per_epoch).map(|steps| steps.iter().sum()).collect();
            let epoch = median(epochs.get(..EPOCHS / 2).unwrap_or(&epochs).to_vec());
            let name = format!("molecules-{size}{form}");
            say(format!(
                "{name:20} an epoch {:.2} ms; PyNeuraLogic {:.1} ms: {:.2} x (goal {GOAL}); equal losses\n",
                epoch * 1e3,
                theirs_s * 1e3,
                theirs_s / epoch
            ));
            items.push(json!({ "name": name, "epoch_s": epoch, "peer_epoch_s": theirs_s, "losses": losses }));
        }
    }
    Ok(items)
}
