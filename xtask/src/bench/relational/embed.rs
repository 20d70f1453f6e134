//! `bench relational embed`: how much similar objects borrow in embedding space, by temperature, similarity and
//! dimension, as pictures; and how long a query over many tuples takes.
//!
//! Eight hunters have facts and eight twins have none; a twin's vector has a given dot product, the similarity, with its
//! hunter's. Two rules lead from a prey that is hunted to a friend who is warned. An *analogy* is the warning of a twin,
//! an *unrelated* pair what nothing speaks for. All other vectors are random.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use seeded::{Family, Stream};
use serde_json::{Map, Value as Json, json};
use tensor_logic::notebook::{Constant, Notebook};

use crate::draw::csv;
use crate::draw::plot::{Mark, Plot, Point};
use crate::draw::{Axis, Scale};

const HUNTERS: usize = 8;
const SEEDS: u64 = 5;
const TEMPERATURES: [f64; 9] = [0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.3];
const SIMILARITIES: [f64; 4] = [0.3, 0.5, 0.7, 0.9];
const DIMENSIONS: [usize; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

const RULES: &str = "Fears(y, x) <- Hunts(x, y)\nWarned(z, x) <- Friend(z, y), Fears(y, x)\n";

/// Means over the seeds.
#[derive(Debug, Clone, Copy, Default)]
struct Borrowed {
    /// The value of an analogy.
    analogy: f64,
    /// The value of an unrelated pair.
    unrelated: f64,
    /// The part of the analogies that are true (above 1/2), and of the unrelated pairs.
    derived: f64,
    wrong: f64,
}

/// Measures, and draws the pictures into a folder.
pub(super) fn run(folder: Option<&Path>, threads: usize) -> Result<(String, Json)> {
    let seconds = speed()?;
    let mut said = format!(
        "embed    1,000 objects, 10,000 tuples, D 1024: {:.3} s, joined with themselves {:.3} s ({threads} threads)\n",
        seconds[0], seconds[1]
    );
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)?;
        said += &draw(folder)?;
    }
    Ok((said, json!({ "name": "embed", "query_s": seconds[0], "join_s": seconds[1] })))
}

fn draw(folder: &Path) -> Result<String> {
    let mut rows: Vec<Map<String, Json>> = Vec::new();
    let mut measured = |dimension: usize, similarity: f64, temperature: f64| -> Result<Borrowed> {
        let found = borrowed(dimension, similarity, temperature)?;
        let row = json!({
            "dimension": dimension, "similarity": similarity, "temperature": temperature, "analogy": found.analogy,
            "unrelated": found.unrelated, "analogies_true": found.derived, "unrelated_true": found.wrong,
        });
        rows.extend(row.as_object().cloned());
        Ok(found)
    };
    let value = |label: &str| Axis::new(label, Scale::Linear).within(0.0, 1.0);
    let mut by_temperature = Plot::new(
        "What twins borrow, by temperature",
        Axis::new("temperature T", Scale::Linear),
        value("mean value"),
    );
    for similarity in SIMILARITIES {
        let found = TEMPERATURES
            .iter()
            .map(|t| Ok((*t, measured(1024, similarity, *t)?)))
            .collect::<Result<Vec<_>>>()?;
        let points = found.iter().map(|(t, found)| Point::at(*t, found.analogy)).collect();
        by_temperature =
            by_temperature.with(&format!("analogy, similarity {similarity}"), Mark::Dotted, points);
        if similarity == 0.9 {
            let points = found.iter().map(|(t, found)| Point::at(*t, found.unrelated)).collect();
            by_temperature = by_temperature.with("unrelated", Mark::Dotted, points);
        }
    }
    let mut by_similarity = Plot::new(
        "What twins borrow, by similarity",
        Axis::new("similarity", Scale::Linear),
        value("mean value"),
    );
    for temperature in [0.0, 0.05, 0.1, 0.2] {
        let mut points = Vec::new();
        for step in 0..=20 {
            let similarity = f64::from(step) * 0.05;
            points.push(Point::at(similarity, measured(1024, similarity, temperature)?.analogy));
        }
        by_similarity = by_similarity.with(&format!("T = {temperature}"), Mark::Dotted, points);
    }
    let mut by_dimension = Plot::new(
        "What is derived at T = 0, by dimension",
        Axis::new("dimension", Scale::Log),
        value("part that is derived"),
    );
    for similarity in SIMILARITIES {
        let mut points = (Vec::new(), Vec::new());
        for dimension in DIMENSIONS {
            let found = measured(dimension, similarity, 0.0)?;
            points.0.push(Point::at(dimension as f64, found.derived));
            points.1.push(Point::at(dimension as f64, found.wrong));
        }
        by_dimension =
            by_dimension.with(&format!("analogies, similarity {similarity}"), Mark::Dotted, points.0);
        if similarity == 0.7 {
            by_dimension = by_dimension.with("unrelated pairs, similarity 0.7", Mark::Dotted, points.1);
        }
    }
    let mut said = String::new();
    let note = format!("{HUNTERS} hunters with facts and a twin each, two rules, means of {SEEDS} seeds");
    for (name, plot) in
        [("temperature", by_temperature), ("similarity", by_similarity), ("dimension", by_dimension)]
    {
        let file = folder.join(format!("{name}.svg"));
        calculemus_base::file::write(&file, plot.noted(note.as_str()).document().as_bytes())?;
        writeln!(said, "         {}", file.display())?;
    }
    let columns = ["dimension", "similarity", "temperature", "analogy", "unrelated"];
    let file = folder.join("table.csv");
    calculemus_base::file::write(&file, csv::table(&columns, &rows)?.as_bytes())?;
    writeln!(said, "         {}", file.display())?;
    Ok(said)
}

fn unit(stream: &mut Stream, width: usize) -> Vec<f64> {
    let row: Vec<f64> = (0..width).map(|_| stream.normal()).collect();
    scaled(row)
}

fn scaled(mut row: Vec<f64>) -> Vec<f64> {
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter_mut().for_each(|x| *x /= length);
    row
}

/// A unit vector whose dot product with a unit vector is this.
fn alike(stream: &mut Stream, to: &[f64], similarity: f64) -> Vec<f64> {
    let other = unit(stream, to.len());
    let along: f64 = other.iter().zip(to).map(|(a, b)| a * b).sum();
    let across = scaled(other.iter().zip(to).map(|(a, b)| a - along * b).collect());
    let rest = (1.0 - similarity * similarity).sqrt();
    to.iter().zip(&across).map(|(a, b)| similarity * a + rest * b).collect()
}

/// What twins of a similarity borrow.
fn borrowed(dimension: usize, similarity: f64, temperature: f64) -> Result<Borrowed> {
    let mut all = Borrowed::default();
    for seed in 0..SEEDS {
        let mut stream = Family::new("bench relational", "embed", seed).stream(0);
        let mut text = RULES.to_owned();
        for at in 0..HUNTERS {
            writeln!(text, "Hunts(H{at}, P{at})\nFriend(F{at}, P{at})")?;
            let hunter = unit(&mut stream, dimension);
            let twin = alike(&mut stream, &hunter, similarity);
            let rows = [
                ("H", hunter),
                ("T", twin),
                ("P", unit(&mut stream, dimension)),
                ("F", unit(&mut stream, dimension)),
            ];
            for (name, row) in rows {
                let row: Vec<String> = row.iter().map(f64::to_string).collect();
                writeln!(text, "Emb[{name}{at}, d] = [{}]", row.join(", "))?;
            }
        }
        let mut notebook = Notebook::new(text);
        let query = format!("Warned(z, x)? @embed(emb=Emb, T={temperature}, certify=no)");
        let reply = notebook.ask(&query).map_err(|refusals| anyhow!("{refusals}"))?;
        let tuples = reply.tuples();
        let values = reply.values();
        let mut sums = Borrowed::default();
        for (at, tuple) in tuples.iter().enumerate() {
            // At temperature 0 the tuples are the answer.
            let value = values.get(at).copied().unwrap_or(1.0);
            let above = f64::from(u8::from(value > 0.5));
            let (friend, beast) = (name(tuple.first())?, name(tuple.get(1))?);
            let same = friend.get(1..) == beast.get(1..) && friend.starts_with('F');
            match beast.get(..1) {
                Some("H") if same => {}
                Some("T") if same => {
                    sums.analogy += value;
                    sums.derived += above;
                }
                _ => {
                    sums.unrelated += value;
                    sums.wrong += above;
                }
            }
        }
        let (analogies, pairs) = (HUNTERS as f64, (16 * HUNTERS * HUNTERS - 2 * HUNTERS) as f64);
        all.analogy += sums.analogy / analogies / SEEDS as f64;
        all.derived += sums.derived / analogies / SEEDS as f64;
        all.unrelated += sums.unrelated / pairs / SEEDS as f64;
        all.wrong += sums.wrong / pairs / SEEDS as f64;
    }
    Ok(all)
}

fn name(constant: Option<&Constant>) -> Result<String> {
    match constant {
        Some(Constant::Symbol(name)) => Ok(name.clone()),
        _ => Err(anyhow!("an answer without a name")),
    }
}

/// Seconds of a relation that is read, and joined with itself.
fn speed() -> Result<[f64; 2]> {
    let mut stream = Family::named("bench relational embed").stream(0);
    let mut facts = std::collections::BTreeSet::new();
    while facts.len() < 10_000 {
        facts.insert((stream.below(1000), stream.below(1000)));
    }
    let mut text = "P(x, z) <- R(x, y), R(y, z)\n".to_owned();
    for (a, b) in facts {
        writeln!(text, "R({a}, {b})")?;
    }
    let mut seconds = [0.0; 2];
    for (second, query) in seconds.iter_mut().zip(["R(x, y)?", "P(x, z)?"]) {
        let mut times = Vec::new();
        for _ in 0..3 {
            let mut notebook = Notebook::new(text.clone());
            let clock = Instant::now();
            notebook.ask(&format!("{query} @embed(certify=no)")).map_err(|refusals| anyhow!("{refusals}"))?;
            times.push(clock.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        *second = *times.get(1).context("no time")?;
    }
    Ok(seconds)
}
