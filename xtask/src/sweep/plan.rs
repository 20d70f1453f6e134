//! A sweep's file as points, and each point as configurations.
//!
//! ```toml
//! base  = "tiny.toml"
//! seeds = [0, 1, 2]
//! [grid]                     # the full product; or a list of [[case]] tables
//! position = ["none", "sinusoidal"]
//! lr       = [1e-3, 1e-4]
//! # with [grid] and [[case]], every case stands at every point of the grid
//! [[override]]               # in order, to the points whose configuration matches
//! when = { position = "none" }
//! set  = { dropout = 0.0 }
//! [select]                   # these keys of the grid are chosen for each point by validation loss
//! over  = ["lr"]
//! seeds = [101]
//! set   = { updates = 4000 } # what runs that choose have otherwise
//! by    = "median"           # of the seeds' losses, this is least for what is chosen; without it, the mean
//! thin  = 4                  # after the first seed, only the best fourth of the candidates runs the others
//! extend = { lr = [1e-5, 1e-2] } # tried if the least of lr, or the greatest, is what would be chosen
//! ```
//! A key of `over` that a point's learner has no use for is not varied for it.
//!
//! What the runs are to decide is in [`claim`](super::claim).

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};

use super::claim::{Candidate, Claim, Resolved};
use super::values::{name_of, same};
use crate::contrast::Contrast;
use crate::learner::{Kind, Learner};
use crate::{keys, place};

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    base: String,
    seeds: Vec<u64>,
    #[serde(default)]
    grid: Table,
    #[serde(default)]
    case: Vec<Table>,
    #[serde(default, rename = "override")]
    overrides: Vec<Override>,
    select: Option<Select>,
    #[serde(default)]
    claim: Vec<Claim>,
    #[serde(default)]
    contrast: Vec<Contrast>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    #[serde(default)]
    when: Table,
    set: Table,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Select {
    over: Vec<String>,
    seeds: Vec<u64>,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    by: By,
    thin: Option<usize>,
    #[serde(default)]
    extend: Table,
}

/// What of the losses of a candidate's seeds is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    #[default]
    Mean,
    /// One seed that fails does not decide.
    Median,
}

/// How the values of some keys are chosen.
#[derive(Debug)]
struct Selection {
    /// The keys with their values.
    over: Table,
    seeds: Vec<u64>,
    set: Table,
    by: By,
    thin: Option<usize>,
    /// For each key that may be extended, the value below its least and the one above its greatest.
    extend: Vec<(String, [Value; 2])>,
}

/// A sweep that is understood and checked.
#[derive(Debug)]
pub(crate) struct Plan<L> {
    /// The file's stem.
    pub(crate) name: String,
    /// The seeds of every point.
    pub(crate) seeds: Vec<u64>,
    source: String,
    base: Table,
    points: Vec<Table>,
    overrides: Vec<Override>,
    select: Option<Selection>,
    /// What the runs are to decide, by the numbers of the points.
    pub(crate) claims: Vec<Resolved>,
    /// The deciding comparisons of cells.
    pub(crate) contrasts: Vec<Contrast>,
    learner: PhantomData<L>,
}

/// One run to be made.
#[derive(Debug, Clone)]
pub(crate) struct Job<L> {
    pub(crate) folder: PathBuf,
    pub(crate) config: L,
}

/// A point, or a candidate of one, with its runs.
#[derive(Debug, Clone)]
pub(crate) struct Point<L> {
    /// The folder's name.
    pub(crate) name: String,
    /// The keys that make it this point.
    pub(crate) keys: Table,
    /// What was chosen for it; for a candidate what it tries.
    pub(crate) selected: Table,
    /// One for each seed.
    pub(crate) runs: Vec<Job<L>>,
}

/// A file and the table that it starts from, not yet judged.
#[derive(Debug)]
pub(crate) struct Draft {
    name: String,
    shown: String,
    file: File,
    base_name: String,
    base_text: String,
}

impl File {
    fn parse(shown: &str, text: &str) -> Result<Self> {
        let table = keys::parse_table(shown, text)?;
        if !table.contains_key("base") {
            bail!(
                "{shown}: no key `base`: a sweep names the configuration that it varies; `train` takes a run's"
            );
        }
        known(&table).map_err(|u| anyhow!("{shown}{}: {}", keys::place(text, &u.key), u.message))?;
        toml::from_str(text).map_err(|e| keys::located(shown, text, &e))
    }
}

/// Refuses a key that no sweep has, at the top and in its tables.
fn known(table: &Table) -> std::result::Result<(), keys::Wrong> {
    keys::check(table, keys::of::<File>())?;
    if let Some(Value::Table(select)) = table.get("select") {
        keys::check(select, keys::of::<Select>())?;
    }
    let each = |key: &str, known: &[&str]| {
        let all = table.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_table).try_for_each(|inner| keys::check(inner, known))
    };
    each("override", keys::of::<Override>())?;
    each("contrast", keys::of::<Contrast>())?;
    each("claim", keys::of::<Claim>())
}

impl Draft {
    /// Reads a file. Its base is looked for beside it, then as given, then in configs/.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let (shown, text) = keys::read(path)?;
        let file = File::parse(&shown, &text)?;
        let beside = path.with_file_name(&file.base);
        let base = if beside.is_file() {
            beside
        } else {
            keys::find(&file.base, &place::configs()).with_context(|| format!("{shown}: base"))?
        };
        let (base_name, base_text) = keys::read(&base)?;
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, shown, file, base_name, base_text })
    }

    /// Whether its base is a recurrent run.
    pub(crate) fn kind(&self) -> Result<Kind> {
        Kind::of(&self.base_name, &self.base_text)
    }

    /// The plan, checked.
    pub(crate) fn plan<L: Learner>(self) -> Result<Plan<L>> {
        let base = keys::parse_table(&self.base_name, &self.base_text)?;
        Plan::new(self.name, &self.shown, self.file, base)
    }
}

impl<L: Learner> Plan<L> {
    fn new(name: String, source: &str, file: File, base: Table) -> Result<Self> {
        let refuse = |what: String| anyhow!("{source}: {what}");
        let distinct = |name: &str, seeds: &[u64]| {
            let mut sorted = seeds.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            match (seeds.len(), sorted.len()) {
                (0, _) => Err(refuse(format!("{name} is empty"))),
                (all, some) if all != some => Err(refuse(format!("{name}: a seed occurs twice"))),
                _ => Ok(()),
            }
        };
        distinct("seeds", &file.seeds)?;
        let mut over = Table::new();
        let mut grid = file.grid;
        for (key, values) in &grid {
            if values.as_array().is_none_or(Vec::is_empty) {
                return Err(refuse(format!(
                    "grid.{key} is {values}: a list of at least one value is needed"
                )));
            }
        }
        let select = match file.select {
            None => None,
            Some(select) => {
                distinct("select.seeds", &select.seeds)?;
                if let Some(both) = select.seeds.iter().find(|s| file.seeds.contains(s)) {
                    return Err(refuse(format!(
                        "seed {both} is in seeds and in select.seeds: choosing needs seeds of its own"
                    )));
                }
                if select.over.is_empty() {
                    return Err(refuse("select.over is empty".to_owned()));
                }
                for key in &select.over {
                    let values = grid.remove(key);
                    let values = values
                        .ok_or_else(|| refuse(format!("select.over: `{key}` has no values in [grid]")))?;
                    over.insert(key.clone(), values);
                }
                if select.thin == Some(0) {
                    return Err(refuse("select.thin = 0: at least 1".to_owned()));
                }
                if select.set.contains_key("seed") {
                    return Err(refuse("`seed` is set by select.seeds alone".to_owned()));
                }
                let extend = extensions(&select.extend, &over).map_err(refuse)?;
                let Select { seeds, set, by, thin, .. } = select;
                Some(Selection { over: over.clone(), seeds, set, by, thin, extend })
            }
        };
        // With both, every case stands at every point of the grid.
        if let Some(both) = grid.keys().find(|key| file.case.iter().any(|case| case.contains_key(*key))) {
            return Err(refuse(format!("`{both}` is in [grid] and in a [[case]]")));
        }
        let cases = if file.case.is_empty() { vec![Table::new()] } else { file.case };
        let with = |point: &Table, case: &Table| {
            let mut point = point.clone();
            keys::merge(&mut point, case.clone());
            point
        };
        let grid = product(&grid);
        let points: Vec<Table> = grid.iter().flat_map(|p| cases.iter().map(move |c| with(p, c))).collect();
        let set = file.overrides.iter().map(|o| &o.set);
        if points.iter().chain(set).any(|t| t.contains_key("seed")) || over.contains_key("seed") {
            return Err(refuse("`seed` is set by seeds alone".to_owned()));
        }
        let mut plan = Self {
            name,
            seeds: file.seeds,
            source: source.to_owned(),
            base,
            points,
            overrides: file.overrides,
            select,
            claims: Vec::new(),
            contrasts: file.contrast,
            learner: PhantomData,
        };
        plan.check()?;
        plan.claims = plan.resolve(file.claim)?;
        plan.check_contrasts()?;
        Ok(plan)
    }

    /// The claims, each with the points that it is about.
    fn resolve(&self, claims: Vec<Claim>) -> Result<Vec<Resolved>> {
        let mut points = Vec::new();
        for keys in &self.points {
            let config = self.config(keys, &self.first(keys), 0)?;
            points.push(Candidate { keys, filled: Table::try_from(&config)?, config });
        }
        let mut names: Vec<&str> = claims.iter().map(|claim| claim.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.iter().zip(names.iter().skip(1)).find(|(a, b)| a == b) {
            bail!("{}: two claims have the name {}", self.source, twice.0);
        }
        if !claims.is_empty() && self.seeds.len() < 2 {
            bail!("{}: claims need at least two seeds: nothing else says what chance does", self.source);
        }
        let resolve = |claim: Claim| claim.resolve(&points).with_context(|| self.source.clone());
        claims.into_iter().map(resolve).collect()
    }

    /// Every contrast has its arms.
    fn check_contrasts(&self) -> Result<()> {
        if self.contrasts.is_empty() {
            return Ok(());
        }
        let mut arms = Vec::new();
        for keys in &self.points {
            arms.push(self.config(keys, &self.first(keys), 0)?);
        }
        L::check_contrasts(&self.contrasts, &arms).with_context(|| self.source.clone())?;
        if self.seeds.len() < 2 {
            bail!("{}: contrasts need at least two seeds", self.source);
        }
        let mut names: Vec<String> = self.contrasts.iter().map(|c| c.name.clone()).collect();
        names.sort_unstable();
        self.twice(&names)
    }

    /// Every configuration of the plan is made once, every point has a name of its own, and none repeats another.
    fn check(&self) -> Result<()> {
        let mut names: Vec<Vec<String>> = Vec::new();
        let mut made: Vec<(String, L)> = Vec::new();
        let mut models: HashMap<String, String> = HashMap::new();
        for point in &self.points {
            let tried = self.tried(point);
            for candidate in &tried {
                if let Some(selection) = &self.select {
                    self.chooser(selection, point, candidate, 0)?;
                }
                let config = self.config(point, candidate, 0)?;
                let name = [point, candidate].map(name_of).join(" with ");
                let name = if candidate.is_empty() { name_of(point) } else { name };
                let same = made.iter().find(|(other, before)| *before == config && *other != name);
                if let Some((other, _)) = same {
                    bail!("{}: {other} and {name} are the same configuration", self.source);
                }
                if let Some(model) = config.identity()?
                    && let Some(other) = models.insert(model, name.clone())
                {
                    bail!(
                        "{}: duplicate-arm: {other} and {name} are one model in two words; leave one out, or say of it \
                         placebo = true",
                        self.source
                    );
                }
                made.push((name, config));
            }
            names.push(vec![name_of(point)]);
            self.twice(&tried.iter().map(name_of).collect::<Vec<_>>())?;
        }
        self.twice(&names.concat())
    }

    /// Refuses a name that stands there twice.
    fn twice(&self, names: &[String]) -> Result<()> {
        match names.iter().enumerate().find(|(i, n)| names.iter().take(*i).any(|m| m == *n)) {
            Some((_, twice)) => bail!("{}: the point {twice} occurs twice", self.source),
            None => Ok(()),
        }
    }

    /// What a point may choose from: each candidate's values; one without any where nothing is chosen.
    fn tried(&self, point: &Table) -> Vec<Table> {
        let Some(selection) = &self.select else { return vec![Table::new()] };
        product(&self.varied(selection, point))
    }

    /// The keys that are chosen for a point, with their values.
    fn varied(&self, selection: &Selection, point: &Table) -> Table {
        let mut over = selection.over.clone();
        // A point that cannot be made without them varies them all.
        if let Ok(bare) = self.config(point, &Table::new(), 0) {
            over.retain(|key, _| bare.varies(key));
        }
        over
    }

    /// What stands for the choice of a point before it is made.
    fn first(&self, point: &Table) -> Table {
        self.tried(point).into_iter().next().unwrap_or_default()
    }

    /// Whether some run is one of a program of the equation language, which this build has not.
    #[cfg(not(feature = "programs"))]
    pub(crate) fn has_programs(&self) -> Result<bool> {
        let mut found = false;
        for point in &self.points {
            for candidate in self.tried(point) {
                found |= self.config(point, &candidate, 0)?.is_program();
            }
        }
        Ok(found)
    }

    /// The configuration of a point with chosen values and a seed: the base, the point, then each override that
    /// matches what stands there by then, defaults included.
    fn config(&self, point: &Table, chosen: &Table, seed: u64) -> Result<L> {
        self.config_with(point, chosen, seed, &Table::new())
    }

    /// The configuration of a run that chooses.
    fn chooser(&self, selection: &Selection, point: &Table, candidate: &Table, seed: u64) -> Result<L> {
        self.config_with(point, candidate, seed, &selection.set)
    }

    /// The same, and `last` over all of it.
    fn config_with(&self, point: &Table, chosen: &Table, seed: u64, last: &Table) -> Result<L> {
        let what = format!("{}, point {}", self.source, name_of(point));
        let mut table = self.base.clone();
        keys::merge(&mut table, point.clone());
        keys::merge(&mut table, chosen.clone());
        table.insert("seed".to_owned(), Value::Integer(i64::try_from(seed).context("seed")?));
        for o in &self.overrides {
            // Not yet the final configuration: what does not fit together may be mended by an override.
            let full = L::filled(&table);
            if o.when.iter().all(|(k, v)| full.get(k).is_some_and(|f| same(f, v))) {
                keys::merge(&mut table, o.set.clone());
            }
            if let Some(unknown) = o.when.keys().find(|k| !L::knows(k)) {
                bail!("{}: override.when: unknown key \"{unknown}\"", self.source);
            }
        }
        keys::merge(&mut table, last.clone());
        let config = L::from_text(&what, &table.to_string(), &[])?;
        config.check_in_sweep().with_context(|| what.clone())?;
        Ok(config)
    }

    fn job(&self, folder: PathBuf, point: &Table, chosen: &Table, seed: u64) -> Result<Job<L>> {
        Ok(Job { folder: folder.join(format!("seed-{seed}")), config: self.config(point, chosen, seed)? })
    }

    /// Chooses for each point. `done` is given the runs of a round and says whether all of them are finished; the
    /// next round is made of what they showed. `None` if they are not.
    ///
    /// First every candidate runs the first seed (without `thin`, all of them), then the best share of them the others.
    /// What is chosen has the least mean, or median, of the best validation losses; ties keep the earlier. If that is the least or
    /// greatest value of a key that may be extended, the value beyond it is tried likewise, once.
    pub(crate) fn choose(
        &self,
        root: &Path,
        done: &mut dyn FnMut(&[Point<L>]) -> Result<bool>,
    ) -> Result<Option<Vec<Table>>> {
        let Some(selection) = &self.select else { return Ok(Some(vec![Table::new(); self.points.len()])) };
        let mut tried: Vec<Vec<Table>> = self.points.iter().map(|point| self.tried(point)).collect();
        let mut judged: Vec<Vec<(f64, Table)>> = vec![Vec::new(); self.points.len()];
        for is_extended in [false, true] {
            let rounds = selection.rounds();
            for (at, seeds) in rounds.iter().enumerate() {
                let mut round = Vec::new();
                for (point, tried) in self.points.iter().zip(&tried) {
                    for candidate in tried {
                        round.push(self.candidate(root, selection, point, candidate, seeds)?);
                    }
                }
                if !done(&round)? {
                    return Ok(None);
                }
                let mut round = round.into_iter();
                for tried in &mut tried {
                    let of_point: Vec<Point<L>> = round.by_ref().take(tried.len()).collect();
                    if at + 1 < rounds.len() {
                        *tried = selection.best(&of_point)?;
                    }
                }
            }
            for ((point, tried), judged) in self.points.iter().zip(&tried).zip(&mut judged) {
                for candidate in tried {
                    let all = self.candidate(root, selection, point, candidate, &selection.seeds)?;
                    judged.push((selection.by.loss(&all)?, candidate.clone()));
                }
            }
            if is_extended || selection.extend.is_empty() {
                break;
            }
            let beyond = |(point, judged): (&Table, &Vec<(f64, Table)>)| {
                let varied = self.varied(selection, point);
                least(judged).map(|chosen| selection.beyond(&varied, chosen)).unwrap_or_default()
            };
            tried = self.points.iter().zip(&judged).map(beyond).collect();
        }
        Ok(Some(judged.iter().map(|judged| least(judged).cloned().unwrap_or_default()).collect()))
    }

    fn candidate(
        &self,
        root: &Path,
        selection: &Selection,
        point: &Table,
        candidate: &Table,
        seeds: &[u64],
    ) -> Result<Point<L>> {
        let name = name_of(point);
        let folder = root.join(&name).join("select").join(name_of(candidate));
        let run = |&seed: &u64| {
            let config = self.chooser(selection, point, candidate, seed)?;
            Ok(Job { folder: folder.join(format!("seed-{seed}")), config })
        };
        let runs = seeds.iter().map(run).collect::<Result<Vec<Job<L>>>>()?;
        Ok(Point { name, keys: point.clone(), selected: candidate.clone(), runs })
    }

    /// The points with what was chosen for them; where nothing is yet, with the first that could be.
    pub(crate) fn points(&self, root: &Path, chosen: Option<&[Table]>) -> Result<Vec<Point<L>>> {
        let mut points = Vec::new();
        for (at, keys) in self.points.iter().enumerate() {
            let name = name_of(keys);
            let selected = chosen.and_then(|all| all.get(at)).cloned().unwrap_or_else(|| self.first(keys));
            let runs: Result<Vec<Job<L>>> =
                self.seeds.iter().map(|&s| self.job(root.join(&name), keys, &selected, s)).collect();
            points.push(Point { name, keys: keys.clone(), selected, runs: runs? });
        }
        Ok(points)
    }
}

impl Selection {
    /// The seeds of each round.
    fn rounds(&self) -> Vec<&[u64]> {
        match (self.thin, self.seeds.split_at_checked(1)) {
            (Some(_), Some((first, rest))) if !rest.is_empty() => vec![first, rest],
            _ => vec![&self.seeds],
        }
    }

    /// The candidates of a point that go on: those with the best validation, of equal ones the earlier, in their order.
    fn best<L: Learner>(&self, round: &[Point<L>]) -> Result<Vec<Table>> {
        let mut order: Vec<(f64, usize)> = Vec::new();
        for (at, candidate) in round.iter().enumerate() {
            order.push((self.by.loss(candidate)?, at));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        order.truncate(round.len().div_ceil(self.thin.unwrap_or(1)));
        order.sort_by_key(|(_, at)| *at);
        let kept = order.into_iter().filter_map(|(_, at)| Some(round.get(at)?.selected.clone()));
        Ok(kept.collect())
    }

    /// What is tried beyond a choice at an edge: the further value with every value of the other keys.
    fn beyond(&self, varied: &Table, chosen: &Table) -> Vec<Table> {
        let mut beyond = Vec::new();
        for (key, [below, above]) in &self.extend {
            let values = varied.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is = |edge: Option<&Value>| edge.zip(chosen.get(key)).is_some_and(|(e, c)| same(e, c));
            let number = |v: &&Value| as_number(v);
            let (least, greatest) = (
                values.iter().min_by(|a, b| number(a).total_cmp(&number(b))),
                values.iter().max_by(|a, b| number(a).total_cmp(&number(b))),
            );
            let next = if is(greatest) {
                above
            } else if is(least) {
                below
            } else {
                continue;
            };
            let mut varied = varied.clone();
            varied.insert(key.clone(), Value::Array(vec![next.clone()]));
            beyond.extend(product(&varied));
        }
        beyond
    }
}

/// The candidate with the least loss; of equal ones the first.
fn least(judged: &[(f64, Table)]) -> Option<&Table> {
    judged.iter().reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|best| &best.1)
}

fn as_number(value: &Value) -> f64 {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64)).unwrap_or(f64::NAN)
}

/// The values beyond the edges of keys, checked.
fn extensions(extend: &Table, over: &Table) -> std::result::Result<Vec<(String, [Value; 2])>, String> {
    let mut found = Vec::new();
    for (key, values) in extend {
        let Some(known) = over.get(key).and_then(Value::as_array) else {
            return Err(format!("select.extend: `{key}` is not in select.over"));
        };
        let numbers: Vec<f64> = known.iter().map(as_number).collect();
        let pair = values.as_array().and_then(|v| <[Value; 2]>::try_from(v.clone()).ok());
        let fits = |[below, above]: &[Value; 2]| {
            numbers.iter().all(|n| as_number(below) < *n && *n < as_number(above))
        };
        match pair.filter(fits) {
            Some(pair) => found.push((key.clone(), pair)),
            None => {
                return Err(format!(
                    "select.extend.{key} is {values}: two numbers are wanted, below and above all of grid.{key}"
                ));
            }
        }
    }
    Ok(found)
}

impl By {
    /// Of the best validation losses of a candidate's runs.
    fn loss<L: Learner>(self, candidate: &Point<L>) -> Result<f64> {
        let losses = candidate.runs.iter().map(|job| job.config.best_loss(&job.folder));
        Ok(self.of(losses.collect::<Result<_>>()?))
    }

    /// Of at least one loss. An infinite one stands for a run that gave none.
    fn of(self, mut losses: Vec<f64>) -> f64 {
        let count = losses.len().max(1);
        match self {
            Self::Mean => losses.iter().sum::<f64>() / count as f64,
            Self::Median => {
                losses.sort_by(f64::total_cmp);
                let at = |i: usize| losses.get(i).copied().unwrap_or(f64::INFINITY);
                let (below, above) = (at((count - 1) / 2), at(count / 2));
                // Halves first would round twice; equal ones may both be infinite.
                if below == above { below } else { (below + above) / 2.0 }
            }
        }
    }
}

/// The full product; the last key changes fastest. Of nothing: one empty table.
fn product(grid: &Table) -> Vec<Table> {
    grid.iter().fold(vec![Table::new()], |points, (key, values)| {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        let with = |point: &Table, value: &Value| {
            let mut point = point.clone();
            point.insert(key.clone(), value.clone());
            point
        };
        points.iter().flat_map(|p| values.iter().map(move |v| with(p, v))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transformer::config::Config;

    const BASE: &str = "d_model = 8\nn_layers = 1\nn_heads = 2\nd_ff = 16\n";

    fn plan(text: &str) -> Result<Plan<Config>> {
        Plan::new("s".to_owned(), "s.toml", File::parse("s.toml", text)?, BASE.parse()?)
    }

    fn refusal(text: &str) -> String {
        format!("{:#}", plan(text).unwrap_err())
    }

    #[test]
    fn a_grid_is_the_full_product_and_overrides_match_what_stands_there() {
        let plan = plan(
            "base = \"b\"\nseeds = [0, 3]\n[grid]\nd_ff = [16, 32]\nposition = [\"none\", \"rotary\"]\n\
             [[override]]\nwhen = { position = \"rotary\" }\nset = { lr = 5e-4 }\n\
             [[override]]\nwhen = { lr = 5e-4, batch = 32.0, d_ff = 32 }\nset = { dropout = 0.0 }\n",
        )
        .unwrap();
        let points = plan.points(Path::new("r"), None).unwrap();
        let names: Vec<&str> = points.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "d_ff=16,position=none",
                "d_ff=16,position=rotary",
                "d_ff=32,position=none",
                "d_ff=32,position=rotary"
            ]
        );
        let seen: Vec<(f64, f64)> =
            points.iter().map(|p| (p.runs[0].config.lr, p.runs[0].config.dropout)).collect();
        assert_eq!(seen, [(1e-4, 0.1), (5e-4, 0.1), (1e-4, 0.1), (5e-4, 0.0)]);
        assert_eq!(points[1].runs[1].folder, Path::new("r/d_ff=16,position=rotary/seed-3"));
        assert_eq!(points[1].runs[1].config.seed, 3);
    }

    #[test]
    fn cases_stand_alone_and_nothing_is_the_base() {
        let with = plan("base = \"b\"\nseeds = [1]\n[[case]]\nd_ff = 32\n[[case]]\ndata = \"a/b\"").unwrap();
        let names: Vec<String> =
            with.points(Path::new("r"), None).unwrap().into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["d_ff=32", "data=a_b"]);
        assert_eq!(
            plan("base = \"b\"\nseeds = [1]").unwrap().points(Path::new("r"), None).unwrap()[0].name,
            "base"
        );
    }

    #[test]
    fn candidates_have_folders_and_seeds_of_their_own() {
        let text = "base = \"b\"\nseeds = [0]\n[grid]\nlr = [1e-3, 1e-4]\nd_ff = [16, 32]\n\
                    [select]\nover = [\"lr\"]\nseeds = [101]\nset = { max_steps = 7 }";
        let plan = plan(text).unwrap();
        let mut candidates = Vec::new();
        let chosen = plan.choose(Path::new("r"), &mut |round| {
            candidates.extend_from_slice(round);
            Ok(false)
        });
        assert!(chosen.unwrap().is_none());
        assert_eq!(candidates.len(), 4);
        assert_eq!(candidates[1].runs[0].folder, Path::new("r/d_ff=16/select/lr=0.0001/seed-101"));
        assert_eq!(candidates[1].runs[0].config.lr.to_bits(), 1e-4_f64.to_bits());
        assert_eq!(candidates[1].runs[0].config.max_steps, 7);
        assert_eq!(plan.points(Path::new("r"), None).unwrap()[0].runs[0].config.max_steps, 0);
    }

    /// What is chosen where every run that chooses ends with the loss that `loss` says, and the names of all of them.
    fn choice(text: &str, loss: impl Fn(&Point<Config>, u64) -> f64) -> (Table, Vec<String>) {
        let plan = plan(text).unwrap();
        let root = tempfile::tempdir().unwrap();
        let mut made = Vec::new();
        let chosen = plan.choose(root.path(), &mut |round| {
            for point in round {
                for job in &point.runs {
                    std::fs::create_dir_all(&job.folder)?;
                    let loss = loss(point, job.config.seed);
                    let line = serde_json::json!({"kind": "eval", "step": 1, "nats_per_token": loss});
                    std::fs::write(job.folder.join("metrics.jsonl"), format!("{line}\n"))?;
                    std::fs::write(job.folder.join("config.toml"), job.config.to_toml()?)?;
                    made.push(format!("{} {}", name_of(&point.selected), job.config.seed));
                }
            }
            Ok(true)
        });
        (chosen.unwrap().unwrap().remove(0), made)
    }

    #[test]
    fn candidates_are_thinned_and_an_edge_is_passed_once() {
        let text = |more: &str| {
            format!(
                "base = \"b\"\nseeds = [0]\n[grid]\nlr = [1e-4, 1e-3, 1e-2]\ndropout = [0.0, 0.1]\n\
                 [select]\nover = [\"lr\", \"dropout\"]\nseeds = [101, 102]\n{more}"
            )
        };
        let of = |point: &Point<Config>| point.runs[0].config.clone();
        // The second seed turns the order of the best two around; dropout costs a little.
        let loss = |point: &Point<Config>, seed: u64| {
            let config = of(point);
            let far = (config.lr.log10() + 3.0).abs() + config.dropout;
            if seed == 102 && config.lr > 9e-4 && config.lr < 2e-3 { far + 3.0 } else { far }
        };
        let all = choice(&text(""), loss);
        assert_eq!((name_of(&all.0).as_str(), all.1.len()), ("dropout=0.0,lr=0.0001", 12));
        // A third of six run the second seed: 1e-3 with either dropout.
        let (chosen, made) = choice(&text("thin = 3"), loss);
        assert_eq!((name_of(&chosen).as_str(), made.len()), ("dropout=0.0,lr=0.001", 8));
        assert_eq!(made[6..], ["dropout=0.0,lr=0.001 102", "dropout=0.1,lr=0.001 102"]);
        // One seed of three that fails does not decide where their median does.
        let fails = |point: &Point<Config>, seed: u64| {
            let config = of(point);
            let far = (config.lr.log10() + 3.0).abs() + config.dropout;
            if seed == 103 && far < 1e-9 { 1e9 } else { far }
        };
        let three = |more: &str| text(more).replace("102]", "102, 103]");
        assert_eq!(name_of(&choice(&three(""), fails).0), "dropout=0.1,lr=0.001");
        assert_eq!(name_of(&choice(&three("by = \"mean\""), fails).0), "dropout=0.1,lr=0.001");
        assert_eq!(name_of(&choice(&three("by = \"median\""), fails).0), "dropout=0.0,lr=0.001");
        // The least rate is best: one below is tried, with either dropout, and no further one.
        let falls = |point: &Point<Config>, _: u64| of(point).lr + of(point).dropout * 1e-9;
        let (chosen, made) = choice(&text("extend = { lr = [1e-5, 1e-1] }\nthin = 3"), falls);
        assert_eq!(name_of(&chosen), "dropout=0.0,lr=0.00001");
        assert_eq!(
            made[8..],
            ["dropout=0.0,lr=0.00001 101", "dropout=0.1,lr=0.00001 101", "dropout=0.0,lr=0.00001 102"]
        );
        // One above; in the middle none. What lies beyond may be worse.
        let rises = |point: &Point<Config>, _: u64| (of(point).lr - 1e-2).abs();
        let (chosen, made) = choice(&text("extend = { lr = [1e-5, 1e-1] }"), rises);
        assert_eq!((name_of(&chosen).as_str(), made.len()), ("dropout=0.0,lr=0.01", 16));
        let middle = |point: &Point<Config>, _: u64| (of(point).lr - 1e-3).abs();
        assert_eq!(choice(&text("extend = { lr = [1e-5, 1e-1] }"), middle).1.len(), 12);
        for (more, part) in [
            ("thin = 0", "at least 1"),
            ("by = \"best\"", "unknown variant `best`, expected `mean` or `median`"),
            ("extend = { lr = [1e-3, 1e-1] }", "below and above"),
            ("extend = { lr = 1e-3 }", "two numbers"),
            ("extend = { batch = [1, 2] }", "not in select.over"),
            ("set = { seed = 3 }", "seeds alone"),
            ("set = { lrr = 3 }", "unknown key"),
        ] {
            let refusal = refusal(&text(more));
            assert!(refusal.contains(part), "{more}: {refusal}");
        }
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_middle_two() {
        let inf = f64::INFINITY;
        for (losses, median) in [
            (vec![3.0], 3.0),
            (vec![4.0, 1.0], 2.5),
            (vec![3.0, 1.0, 2.0], 2.0),
            (vec![inf, 1.0, 2.0], 2.0),
            (vec![inf, inf, 2.0], inf),
            (vec![4.0, 1.0, 3.0, 2.0], 2.5),
            (vec![1.0, inf, inf, 2.0], inf),
            (vec![inf, inf], inf),
        ] {
            assert_eq!(By::Median.of(losses.clone()), median, "{losses:?}");
        }
        assert_eq!(By::Mean.of(vec![4.0, 1.0]), 2.5);
    }

    #[test]
    fn claims_find_their_arms() {
        let text = "base = \"b\"\nseeds = [0, 1]\n[grid]\nd_ff = [16, 32]\nposition = [\"none\", \"rotary\", \"alibi\"]\n\
                    [[claim]]\nname = \"H\"\nsays = \"so\"\nmeasure = \"excess\"\nrule = \"less\"\n";
        let numbers = |rest: &str| -> Vec<(Vec<usize>, Vec<usize>)> {
            let plan = plan(&format!("{text}{rest}")).unwrap();
            let arms = |arm: &crate::sweep::claim::Arm| arm.points.iter().map(|p| p.0).collect();
            plan.claims[0].pairs.iter().map(|p| (arms(&p.left), arms(&p.right))).collect()
        };
        let none = "left = { d_ff = 16, position = \"none\" }\n";
        let rotary = "right = { d_ff = 32.0, position = \"rotary\" }";
        assert_eq!(numbers(&format!("{none}{rotary}")), [(vec![0], vec![4])]);
        assert_eq!(numbers(none), [1, 2, 3, 4, 5].map(|i| (vec![0], vec![i])));
        let along = "along = \"d_ff\"\nleft = { position = \"none\" }\nright = { position = \"alibi\" }";
        assert_eq!(numbers(along), [(vec![0, 3], vec![2, 5])]);
    }

    #[test]
    fn claims_that_nothing_could_decide_are_refused() {
        let grid = "base = \"b\"\n[grid]\nd_ff = [16, 64]\nposition = [\"none\", \"rotary\"]\n";
        let claim = |rest: &str| {
            refusal(
                &format!("{grid}[[claim]]\nname = \"H\"\nsays = \"so\"\n{rest}")
                    .replace("[grid]", "seeds = [0, 1]\n[grid]"),
            )
        };
        let less = "measure = \"excess\"\nrule = \"less\"\n";
        let left = "left = { d_ff = 16, position = \"none\" }\n";
        for (rest, part) in [
            (format!("measure = \"exces\"\nrule = \"less\"\n{left}"), "measure = \"exces\""),
            (format!("measure = \"transfer/\"\nrule = \"less\"\n{left}"), "measure = \"transfer/\""),
            (format!("{less}left = {{ d_ff = 16 }}"), "not one point alone has d_ff = 16"),
            (format!("{less}left = {{ d_ff = 17 }}"), "no point has d_ff = 17"),
            (format!("{less}left = {{ d_fff = 16 }}"), "unknown key \"d_fff\""),
            (format!("{less}{left}right = {{ d_ff = 16, position = \"none\" }}"), "the same point"),
            (format!("{less}{left}margin = 0.1"), "only rule = \"equivalent\""),
            (format!("{less}{left}reaches = 0.1"), "only with along"),
            (format!("{less}left = {{ position = \"none\" }}\nalong = \"d_ff\""), "needs a right side"),
            (format!("{less}{left}along = \"d_ff\""), "at each of several d_ff"),
            (
                format!("{less}along = \"position\"\nleft = {{ d_ff = 16 }}\nright = {{ d_ff = 64 }}"),
                "no number above 0",
            ),
            (format!("measure = \"bits_per_formula\"\nrule = \"equivalent\"\n{left}"), "needs a margin"),
            (
                format!("measure = \"excess\"\nrule = \"equivalent\"\nmargin = 0.1\n{left}"),
                "share of an optimum",
            ),
            (format!("{less}{left}sys = 3"), "unknown key \"sys\""),
            (format!("measure = \"kl\"\nrule = \"equivalent\"\nwithin = -1.0\n{left}"), "above 0"),
            (
                format!("measure = \"kl\"\nrule = \"equivalent\"\nmargin = 0.1\nwithin = 0.1\n{left}"),
                "above 0",
            ),
            (format!("{less}{left}within = 0.1"), "only rule = \"equivalent\""),
            (
                format!("{less}{left}right = {{ d_ff = 64, position = \"none\" }}\nmatched = true"),
                "3 % are allowed",
            ),
        ] {
            let refusal = claim(&rest);
            assert!(refusal.contains(part), "{rest}: {refusal}");
        }
        // One seed says nothing of chance, two points that are the same are one.
        let one = refusal(
            &format!("{grid}[[claim]]\nname = \"H\"\nsays = \"so\"\n{less}{left}")
                .replace("[grid]", "seeds = [0]\n[grid]"),
        );
        assert!(one.contains("at least two seeds"), "{one}");
        let same = refusal("base = \"b\"\nseeds = [1]\n[[case]]\nd_ff = 16\n[[case]]\nn_heads = 2");
        assert!(same.contains("d_ff=16 and n_heads=2 are the same configuration"), "{same}");
        // A text has other numbers of tokens in another code.
        let codes = "base = \"b\"\nseeds = [0, 1]\n[[case]]\ntokenization = \"atomic\"\n[[case]]\nnotation = \"infix\"\n\
                     [[claim]]\nname = \"H\"\nsays = \"so\"\nrule = \"less\"\nleft = { tokenization = \"atomic\" }\n";
        for measure in ["excess", "transfer/public-pairs"] {
            let per_token = refusal(&format!("{codes}measure = \"{measure}\""));
            assert!(per_token.contains("is per token"), "{per_token}");
        }
        assert!(plan(&format!("{codes}measure = \"excess_bits\"")).is_ok());
        // A law without an optimum.
        let full = refusal(
            &format!("{grid}[[claim]]\nname = \"H\"\nsays = \"so\"\n{less}{left}")
                .replace("[grid]", "seeds = [0, 1]\n[grid]\ndata = [\"full\"]"),
        );
        assert!(full.contains("no optimum is known"), "{full}");
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, part) in [
            ("base = \"b\"\nseeds = []", "seeds is empty"),
            ("base = \"b\"\nseeds = [1, 1]", "twice"),
            ("base = \"b\"\nseeds = [1]\n[grid]\nlr = 1e-3", "a list"),
            ("base = \"b\"\nseeds = [1]\n[grid]\nlr = [1e-3, 1e-3]", "occurs twice"),
            ("base = \"b\"\nseeds = [1]\n[grid]\nlrr = [1e-3]", "did you mean \"lr\""),
            ("base = \"b\"\nseeds = [1]\n[grid]\nlr = [-1.0]", "above 0"),
            ("base = \"b\"\nseeds = [1]\n[grid]\nseed = [1]", "seeds alone"),
            (
                "base = \"b\"\nseeds = [1]\n[grid]\nlr = [1.0]\n[[case]]\nlr = 1.0",
                "in [grid] and in a [[case]]",
            ),
            ("base = \"b\"\nseeds = [1]\n[select]\nover = [\"lr\"]\nseeds = [2]", "no values in [grid]"),
            (
                "base = \"b\"\nseeds = [1]\n[grid]\nlr = [1.0]\n[select]\nover = [\"lr\"]\nseeds = [1]",
                "of its own",
            ),
            ("base = \"b\"\nseeds = [1]\n[[override]]\nwhen = { lrr = 1 }\nset = {}", "unknown key"),
            ("base = \"b\"\nseeds = [1]\nsed = 3", "3:1: unknown key \"sed\"; did you mean \"seeds\""),
            ("base = \"b\"\nseeds = [1]\n[[override]]\nst = {}", "unknown key \"st\""),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
