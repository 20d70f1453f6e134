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
//! ```

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};

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
    /// What is chosen: each candidate's values, and the seeds.
    select: Option<(Vec<Table>, Vec<u64>)>,
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
    let overrides = table.get("override").and_then(Value::as_array).into_iter().flatten();
    overrides.filter_map(Value::as_table).try_for_each(|o| keys::check(o, keys::of::<Override>()))
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
                Some((product(&over), select.seeds))
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
        let plan = Self {
            name,
            seeds: file.seeds,
            source: source.to_owned(),
            base,
            points,
            overrides: file.overrides,
            select,
            learner: PhantomData,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Every configuration of the plan is made once, and every point has a name of its own.
    fn check(&self) -> Result<()> {
        let none = vec![Table::new()];
        let tried = self.select.as_ref().map_or(&none, |s| &s.0);
        let mut names: Vec<String> = Vec::new();
        for point in &self.points {
            for candidate in tried {
                self.config(point, candidate, 0)?;
            }
            names.push(name_of(point));
        }
        for names in [names, tried.iter().map(name_of).collect()] {
            if let Some(twice) =
                names.iter().enumerate().find(|(i, n)| names.iter().take(*i).any(|m| m == *n))
            {
                bail!("{}: the point {} occurs twice", self.source, twice.1);
            }
        }
        Ok(())
    }

    /// Whether some run is one of a program of the equation language, which this build has not.
    #[cfg(not(feature = "programs"))]
    pub(crate) fn has_programs(&self) -> Result<bool> {
        let none = vec![Table::new()];
        let tried = self.select.as_ref().map_or(&none, |s| &s.0);
        let mut found = false;
        for point in &self.points {
            for candidate in tried {
                found |= self.config(point, candidate, 0)?.is_program();
            }
        }
        Ok(found)
    }

    /// The configuration of a point with chosen values and a seed: the base, the point, then each override that
    /// matches what stands there by then, defaults included.
    fn config(&self, point: &Table, chosen: &Table, seed: u64) -> Result<L> {
        let what = format!("{}, point {}", self.source, name_of(point));
        let resolve = |table: &Table| {
            let config = L::from_text(&what, &table.to_string(), &[])?;
            config.check_in_sweep().with_context(|| what.clone())?;
            Ok(config)
        };
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
        resolve(&table)
    }

    fn job(&self, folder: PathBuf, point: &Table, chosen: &Table, seed: u64) -> Result<Job<L>> {
        Ok(Job { folder: folder.join(format!("seed-{seed}")), config: self.config(point, chosen, seed)? })
    }

    /// The runs that choose: for each point and each combination of the keys to be chosen. None without `[select]`.
    pub(crate) fn candidates(&self, root: &Path) -> Result<Vec<Point<L>>> {
        let Some((tried, seeds)) = &self.select else { return Ok(Vec::new()) };
        let mut candidates = Vec::new();
        for point in &self.points {
            let name = name_of(point);
            for selected in tried {
                let folder = root.join(&name).join("select").join(name_of(selected));
                let runs: Result<Vec<Job<L>>> =
                    seeds.iter().map(|&s| self.job(folder.clone(), point, selected, s)).collect();
                candidates.push(Point {
                    name: name.clone(),
                    keys: point.clone(),
                    selected: selected.clone(),
                    runs: runs?,
                });
            }
        }
        Ok(candidates)
    }

    /// The points, with what their candidates chose: the least mean of the best validation losses; ties keep the
    /// earlier one.
    pub(crate) fn points(&self, root: &Path, candidates: &[Point<L>]) -> Result<Vec<Point<L>>> {
        let mut points = Vec::new();
        for keys in &self.points {
            let name = name_of(keys);
            let mut best: Option<(f64, &Table)> = None;
            for candidate in candidates.iter().filter(|c| c.name == name) {
                let loss = mean_validation(candidate)?;
                if best.is_none_or(|(least, _)| loss < least) {
                    best = Some((loss, &candidate.selected));
                }
            }
            let selected = best.map(|b| b.1.clone()).unwrap_or_default();
            let runs: Result<Vec<Job<L>>> =
                self.seeds.iter().map(|&s| self.job(root.join(&name), keys, &selected, s)).collect();
            points.push(Point { name, keys: keys.clone(), selected, runs: runs? });
        }
        Ok(points)
    }
}

fn mean_validation<L: Learner>(candidate: &Point<L>) -> Result<f64> {
    let mut sum = 0.0;
    for job in &candidate.runs {
        sum += job.config.best_loss(&job.folder)?;
    }
    Ok(sum / candidate.runs.len().max(1) as f64)
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

/// `key=value,key=value` as the name of a folder; `base` for no key.
fn name_of(point: &Table) -> String {
    if point.is_empty() {
        return "base".to_owned();
    }
    let part = |(key, value): (&String, &Value)| format!("{key}={}", shown(value));
    let name = point.iter().map(part).collect::<Vec<String>>().join(",");
    name.chars().map(|c| if c.is_alphanumeric() || "=,.-_+".contains(c) { c } else { '_' }).collect()
}

/// A value without quotes.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        other => other.to_string(),
    }
}

/// Equal as settings: 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    let number = |v: &Value| v.as_float().or_else(|| v.as_integer().map(|i| i as f64));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
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
        let points = plan.points(Path::new("r"), &[]).unwrap();
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
            with.points(Path::new("r"), &[]).unwrap().into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["d_ff=32", "data=a_b"]);
        assert_eq!(
            plan("base = \"b\"\nseeds = [1]").unwrap().points(Path::new("r"), &[]).unwrap()[0].name,
            "base"
        );
    }

    #[test]
    fn candidates_have_folders_and_seeds_of_their_own() {
        let plan = plan("base = \"b\"\nseeds = [0]\n[grid]\nlr = [1e-3, 1e-4]\nd_ff = [16, 32]\n[select]\nover = [\"lr\"]\nseeds = [101]").unwrap();
        let candidates = plan.candidates(Path::new("r")).unwrap();
        assert_eq!(candidates.len(), 4);
        assert_eq!(candidates[1].runs[0].folder, Path::new("r/d_ff=16/select/lr=0.0001/seed-101"));
        assert_eq!(candidates[1].runs[0].config.lr.to_bits(), 1e-4_f64.to_bits());
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
