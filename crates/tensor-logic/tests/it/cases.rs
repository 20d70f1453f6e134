//! The corpus against the built command: every `cases/NAME.tl` must answer what `NAME.json` says.
//!
//! The keys of a case:
//!
//! | key | meaning |
//! |---|---|
//! | `command`, `args`, `files` | the words behind `tl`, options, text files beside the program |
//! | `exit` | the exit status; 0 if it is missing |
//! | `ok`, `queries`, `gradients`, `value`, `of`, `text`, `changed`, `tensors`, `components`, `written` | equal the same key of the document; what is not listed inside is not looked at |
//! | `contents` | what the text files that were written hold |
//! | `errors` | the first error |
//! | `warnings` | of a program that is accepted exactly these are given, and none where the key is missing |
//! | `X_between`, `X_at_most` | bounds of `X` |
//! | `variants`, `threads`, `shuffle`, `seeds`, `emit`, `idempotent` | the same by other options, numbers of threads, orders, seeds; what is printed runs |
//! | `tolerance` | of numbers, absolute below 1 and relative above |
//!
//! The environment variable `TL_CASE` chooses the cases whose names contain it, those that are
//! expected to fail included; that there is one is a condition too.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use std::path::Path;
use std::process::Command;

use crate::common;
use rayon::prelude::*;
use serde_json::Value as Json;

/// Cases of what is not built yet: each must fail until it is.
const NOT_YET: &[&str] = &[];

/// What legal programs of the public corpus are warned of, which its cases do not list.
const WARNED: &[(&str, &[&str])] = &[
    ("grad-01-matmul", &["scope"]),
    ("learn-01-least-squares", &["broadcast", "scope"]),
    ("run-13-kernel-machine", &["scope"]),
    ("run-16-missing-and-functions", &["dense-activation"]),
    ("run-42-pnl-molecule", &["broadcast"]),
];

type Verdict = Result<(), String>;

#[test]
fn every_case_answers_what_it_should() {
    let chosen = std::env::var("TL_CASE").ok();
    let wanted = |name: &str| chosen.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let programs: Vec<_> = common::all_programs().into_iter().filter(|(name, _)| wanted(name)).collect();
    assert!(!programs.is_empty(), "no case has `{}` in its name", chosen.as_deref().unwrap_or(""));
    let verdict = |(name, text): &(String, String)| {
        let expected = chosen.is_none() && NOT_YET.contains(&name.as_str());
        match case(name, text) {
            Err(why) if !expected => Some(format!("{name}: {why}")),
            Ok(()) if expected => Some(format!("{name} holds now: take it off the list")),
            _ => None,
        }
    };
    // Threads of its own: they wait for the command, and engines of other tests need the shared ones.
    let threads = rayon::ThreadPoolBuilder::new().build().unwrap();
    let wrong: Vec<String> = threads.install(|| programs.par_iter().filter_map(verdict).collect());
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs one case in an empty folder that holds the program and its files.
fn case(name: &str, text: &str) -> Verdict {
    let path = common::folder().join(format!("{name}.json"));
    let want: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (file, content) in want["files"].as_object().into_iter().flatten() {
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content.as_str().unwrap_or("")).unwrap();
    }
    let file = format!("{name}.tl");
    std::fs::write(folder.path().join(&file), text).unwrap();
    let warned = WARNED.iter().find(|(warned, _)| *warned == name).map_or(&[] as &[&str], |(_, codes)| codes);
    let case = Case { want: &want, folder: folder.path(), warned };
    let (document, _) = case.go(&file, &[])?;
    case.verdict(&document, true)?;
    case.variants(&file)?;
    case.seeds(&file)?;
    case.threads(&file)?;
    case.shuffled(text)?;
    case.emitted(&file)?;
    case.idempotent(&document)
}

struct Case<'a> {
    want: &'a Json,
    folder: &'a Path,
    /// Codes of warnings that may be given beside those listed, and must be.
    warned: &'a [&'a str],
}

/// The strings of a list.
fn words(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

impl Case<'_> {
    fn command(&self) -> Vec<String> {
        let command = words(&self.want["command"]);
        if command.is_empty() { vec!["run".to_owned()] } else { command }
    }

    /// Runs the command on a file; its document, and the bytes of it.
    fn go(&self, file: &str, more: &[String]) -> Result<(Json, String), String> {
        let command = self.command();
        let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
        call.current_dir(self.folder).arg(&command[0]).arg(file).args(&command[1..]);
        let output = call.args(words(&self.want["args"])).args(more).arg("--json").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let document =
            serde_json::from_str(&printed).map_err(|error| format!("{error} in {printed}, {said}"))?;
        let exit = self.exit();
        if output.status.code().map(i64::from) != Some(exit) {
            return Err(format!("exit status {:?} instead of {exit}: {said}", output.status.code()));
        }
        if exit == 1 && said.trim().is_empty() {
            return Err("nothing was said on standard error".to_owned());
        }
        Ok((document, printed))
    }

    /// Compares a document with what is wanted; without `lines`, not the lines of queries.
    fn verdict(&self, document: &Json, lines: bool) -> Verdict {
        let tolerance = self.want["tolerance"].as_f64().unwrap_or(1e-9);
        let keys = [
            "ok",
            "queries",
            "gradients",
            "value",
            "of",
            "text",
            "changed",
            "tensors",
            "components",
            "written",
        ];
        for key in keys.iter().filter(|key| self.want.get(**key).is_some()) {
            let mut want = self.want[*key].clone();
            if !lines {
                let queries = want.as_array_mut().into_iter().flatten();
                queries.filter_map(Json::as_object_mut).for_each(|query| drop(query.remove("line")));
            }
            difference(&document[*key], &want, tolerance, key)?;
        }
        if let Some(error) = self.want["errors"].get(0) {
            let found = &document["errors"][0];
            difference(found, error, tolerance, "errors[0]").map_err(|why| format!("{why} in {found}"))?;
            if let Some(key) = ["message", "labels", "help"].iter().find(|key| found.get(**key).is_none()) {
                return Err(format!("errors[0].{key} is missing"));
            }
        }
        self.warnings(document, lines)?;
        for (file, content) in self.want["contents"].as_object().into_iter().flatten() {
            let written = std::fs::read_to_string(self.folder.join(file));
            let written = written.map_err(|error| format!("`{file}` was not written: {error}"))?;
            if Some(written.as_str()) != content.as_str() {
                return Err(format!("`{file}` holds {written:?} instead of {content}"));
            }
        }
        Ok(())
    }

    /// All warnings that are wanted, and of an accepted program no others. In another order of
    /// statements they stand on other lines.
    fn warnings(&self, document: &Json, lines: bool) -> Verdict {
        let wanted = self.want["warnings"].as_array().map_or(&[] as &[Json], Vec::as_slice);
        let found = document["warnings"].as_array().map_or(&[] as &[Json], Vec::as_slice);
        let same = |found: &Json, wanted: &Json| {
            if lines { difference(found, wanted, 0.0, "").is_ok() } else { found["code"] == wanted["code"] }
        };
        if let Some(missing) = wanted.iter().find(|wanted| !found.iter().any(|found| same(found, wanted))) {
            return Err(format!("the warning {missing} is missing"));
        }
        let is_code = |found: &Json, code: &str| found["code"].as_str() == Some(code);
        if let Some(missing) = self.warned.iter().find(|code| !found.iter().any(|found| is_code(found, code)))
        {
            return Err(format!("a warning `{missing}` is missing"));
        }
        let listed = |found: &Json| {
            wanted.iter().any(|wanted| same(found, wanted))
                || self.warned.iter().any(|code| is_code(found, code))
        };
        let unlisted = found.iter().find(|found| self.exit() == 0 && !listed(found));
        unlisted.map_or(Ok(()), |warning| Err(format!("the warning {warning} is not listed")))
    }

    fn exit(&self) -> i64 {
        self.want["exit"].as_i64().unwrap_or(0)
    }

    fn variants(&self, file: &str) -> Verdict {
        for variant in self.want["variants"].as_array().into_iter().flatten() {
            let (document, _) = self.go(file, &words(variant))?;
            self.verdict(&document, true).map_err(|why| format!("with {variant}: {why}"))?;
        }
        // The interpreter's derivatives are dual numbers: a second way to every gradient.
        if self.command().first().is_some_and(|command| command == "grad") {
            let (document, _) = self.go(file, &["--engine".to_owned(), "reference".to_owned()])?;
            self.verdict(&document, true).map_err(|why| format!("by dual numbers: {why}"))?;
        }
        Ok(())
    }

    /// Of `count` seeds at least `at_least` bring the value of a query below a bound.
    fn seeds(&self, file: &str) -> Verdict {
        let Some(seeds) = self.want.get("seeds") else { return Ok(()) };
        let mut good = 0;
        for seed in 0..seeds["count"].as_u64().unwrap_or(0) {
            let (document, _) = self.go(file, &["--seed".to_owned(), seed.to_string()])?;
            let query = seeds["query"].as_u64().unwrap_or(0) as usize;
            let value = document["queries"][query]["value"].as_f64().unwrap_or(f64::INFINITY);
            good += u64::from(value < seeds["below"].as_f64().unwrap_or(0.0));
        }
        if good < seeds["at_least"].as_u64().unwrap_or(0) {
            Err(format!("only {good} seeds"))
        } else {
            Ok(())
        }
    }

    fn threads(&self, file: &str) -> Verdict {
        let mut first: Option<String> = None;
        for threads in self.want["threads"].as_array().into_iter().flatten() {
            let (_, printed) = self.go(file, &["--threads".to_owned(), threads.to_string()])?;
            if first.get_or_insert_with(|| printed.clone()) != &printed {
                return Err("the output depends on the number of threads".to_owned());
            }
        }
        Ok(())
    }

    /// The order of statements means nothing.
    fn shuffled(&self, text: &str) -> Verdict {
        let code = |line: &&str| line.split('#').next().is_some_and(|code| code.contains('?'));
        let (queries, others): (Vec<&str>, Vec<&str>) = text.split('\n').partition(code);
        let kept = others.into_iter().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        let lines: Vec<&str> = kept.collect();
        let mut stream = common::stream("shuffle");
        for _ in 0..self.want["shuffle"].as_u64().unwrap_or(0) {
            let order = stream.permutation(lines.len() as u32);
            let mut shuffled: Vec<&str> = order.iter().map(|at| lines[*at as usize]).collect();
            shuffled.extend(&queries);
            std::fs::write(self.folder.join("shuffled.tl"), shuffled.join("\n") + "\n").unwrap();
            let (document, _) = self.go("shuffled.tl", &[])?;
            self.verdict(&document, false).map_err(|why| format!("in another order: {why}"))?;
        }
        Ok(())
    }

    /// The printed gradient program gives the same numbers.
    fn emitted(&self, file: &str) -> Verdict {
        if self.want["emit"].as_bool() != Some(true) {
            return Ok(());
        }
        let command = self.command();
        let run = |arguments: &[&str], more: &[String]| {
            let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
            let output = call.current_dir(self.folder).args(arguments).args(more).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let program = run(&["grad", file, "--emit"], &command[1..]);
        std::fs::write(self.folder.join("emitted.tl"), program).unwrap();
        let printed = run(&["run", "emitted.tl", "--json"], &[]);
        let document: Json = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
        for gradient in self.want["gradients"].as_array().into_iter().flatten() {
            let name = format!("Grad_{}", gradient["tensor"].as_str().unwrap_or(""));
            let mut queries = document["queries"].as_array().into_iter().flatten();
            let asks = |query: &&Json| query["text"].as_str().is_some_and(|text| text.starts_with(&name));
            let query = queries.find(asks).ok_or(format!("no query for {name} in {printed}"))?;
            let key = if query.get("values").is_some() { "values" } else { "value" };
            let want = gradient.get("values").unwrap_or(&gradient["value"]);
            difference(&query[key], want, self.want["tolerance"].as_f64().unwrap_or(1e-9), &name)?;
        }
        Ok(())
    }

    fn idempotent(&self, document: &Json) -> Verdict {
        if self.want["idempotent"].as_bool() != Some(true) {
            return Ok(());
        }
        std::fs::write(self.folder.join("formatted.tl"), document["text"].as_str().unwrap_or("")).unwrap();
        let (again, _) = self.go("formatted.tl", &[])?;
        let same = again["changed"] == false && again["text"] == document["text"];
        if same { Ok(()) } else { Err("formatting twice differs from formatting once".to_owned()) }
    }
}

/// The first difference between what came out and what is wanted; keys that are not wanted are
/// not looked at.
fn difference(found: &Json, want: &Json, tolerance: f64, path: &str) -> Verdict {
    match want {
        Json::Object(keys) => keys.iter().try_for_each(|(key, want)| {
            if let Some(key) = key.strip_suffix("_between") {
                let between =
                    |value: &f64| want[0].as_f64() <= Some(*value) && Some(*value) <= want[1].as_f64();
                let inside = found[key].as_f64().filter(between).is_some();
                return if inside {
                    Ok(())
                } else {
                    Err(format!("{path}.{key}: {} is not in {want}", found[key]))
                };
            }
            if let Some(key) = key.strip_suffix("_at_most") {
                let mut limits = want.as_object().into_iter().flatten();
                let above = limits.find(|(name, most)| {
                    found[key][name].as_f64().is_none_or(|value| Some(value) > most.as_f64())
                });
                return above
                    .map_or(Ok(()), |(name, _)| Err(format!("{path}.{key}.{name}: {}", found[key][name])));
            }
            let found = found.get(key).ok_or(format!("{path}.{key} is missing"))?;
            difference(found, want, tolerance, &format!("{path}.{key}"))
        }),
        Json::Array(items) => {
            let found = found.as_array().filter(|found| found.len() == items.len());
            let found = found.ok_or(format!("{path}: not {} entries", items.len()))?;
            let mut pairs = found.iter().zip(items).enumerate();
            pairs.try_for_each(|(at, (found, want))| {
                difference(found, want, tolerance, &format!("{path}[{at}]"))
            })
        }
        Json::Number(number) => {
            let want = number.as_f64().unwrap_or(f64::NAN);
            let close = |value: f64| (value - want).abs() <= tolerance * want.abs().max(1.0);
            // Integers of more digits than 53 bits hold are told apart.
            let near = match (found.as_i64(), number.as_i64()) {
                (Some(found), Some(want)) if tolerance == 0.0 => found == want,
                _ => found.as_f64().is_some_and(close),
            };
            if near { Ok(()) } else { Err(format!("{path}: {found} instead of {want}")) }
        }
        _ if found == want => Ok(()),
        _ => Err(format!("{path}: {found} instead of {want}")),
    }
}
