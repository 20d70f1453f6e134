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
//! What the runs are to decide is in [`claim`](super::claim).

use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};

use super::claim::{Candidate, Claim, Resolved};
use super::values::{name_of, same};
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
    /// What the runs are to decide, by the numbers of the points.
    pub(crate) claims: Vec<Resolved>,
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
        let mut plan = Self {
            name,
            seeds: file.seeds,
            source: source.to_owned(),
            base,
            points,
            overrides: file.overrides,
            select,
            claims: Vec::new(),
            learner: PhantomData,
        };
        plan.check()?;
        plan.claims = plan.resolve(file.claim)?;
        Ok(plan)
    }

    /// The claims, each with the points that it is about.
    fn resolve(&self, claims: Vec<Claim>) -> Result<Vec<Resolved>> {
        let first = self.select.as_ref().and_then(|s| s.0.first()).cloned().unwrap_or_default();
        let mut points = Vec::new();
        for keys in &self.points {
            let config = self.config(keys, &first, 0)?;
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

    /// Every configuration of the plan is made once, every point has a name of its own, and none repeats another.
    fn check(&self) -> Result<()> {
        let none = vec![Table::new()];
        let tried = self.select.as_ref().map_or(&none, |s| &s.0);
        let mut names: Vec<String> = Vec::new();
        let mut made: Vec<(String, L)> = Vec::new();
        let mut models: HashMap<String, String> = HashMap::new();
        for point in &self.points {
            for candidate in tried {
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

    /// The points as far as they are known: with what their candidates chose, or before that with the first that could be
    /// chosen.
    pub(crate) fn expected_points(
        &self,
        root: &Path,
        candidates: &[Point<L>],
        chosen: bool,
    ) -> Result<Vec<Point<L>>> {
        if chosen {
            return self.points(root, candidates);
        }
        let first = self.select.as_ref().and_then(|s| s.0.first()).cloned().unwrap_or_default();
        self.points_with(root, |_| Ok(first.clone()))
    }

    /// The points, with what their candidates chose: the least mean of the best validation losses; ties keep the
    /// earlier one.
    pub(crate) fn points(&self, root: &Path, candidates: &[Point<L>]) -> Result<Vec<Point<L>>> {
        self.points_with(root, |name| {
            let mut best: Option<(f64, &Table)> = None;
            for candidate in candidates.iter().filter(|c| c.name == name) {
                let loss = mean_validation(candidate)?;
                if best.is_none_or(|(least, _)| loss < least) {
                    best = Some((loss, &candidate.selected));
                }
            }
            Ok(best.map(|b| b.1.clone()).unwrap_or_default())
        })
    }

    fn points_with(&self, root: &Path, chosen: impl Fn(&str) -> Result<Table>) -> Result<Vec<Point<L>>> {
        let mut points = Vec::new();
        for keys in &self.points {
            let name = name_of(keys);
            let selected = chosen(&name)?;
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
