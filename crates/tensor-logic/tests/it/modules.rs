//! The modules of the crate use each other in one direction: what two of them need stands below
//! both. The engines are left out: their insides are their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Modules whose insides are not looked at.
const ENGINES: [&str; 3] = ["fast", "datalog", "auto"];

/// The modules of a folder by their paths, `names::walk`, with their texts.
fn modules(folder: &Path, above: &str, found: &mut BTreeMap<String, String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert_ne!(name, "mod", "{}: a module is `x.rs`, its parts are in `x/`", path.display());
        if matches!(name.as_str(), "bin" | "lib") || (above.is_empty() && ENGINES.contains(&name.as_str())) {
            continue;
        }
        let module = if above.is_empty() { name } else { format!("{above}::{name}") };
        if path.is_dir() {
            assert!(path.with_extension("rs").is_file(), "{}: a folder without its module", path.display());
            modules(&path, &module, found);
        } else {
            found.insert(module, std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A text without comments and without modules that it holds itself: those see no other file by `super`.
fn code(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or("");
        inside |= line.starts_with("mod ") && line.ends_with('{');
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
        inside &= line != "}";
    }
    kept
}

/// The paths in a text that begin in the crate, with groups of imports taken apart.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && !":_\"".contains(c)) {
                spread(&text[at..], String::new(), &mut found);
            }
        }
    }
    found
}

/// Adds the paths that begin a text, behind a prefix; returns how many bytes they take.
fn spread(text: &str, prefix: String, found: &mut Vec<String>) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let length = text.find(|c| !word(c)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..length]);
    if !path.ends_with("::") || !text[length..].starts_with('{') {
        found.push(path);
        return length;
    }
    let mut at = length + 1;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        at += spread(&text[at..], path.clone(), found);
        let rest = text[at..].trim_start();
        // `a as b` and the commas between.
        let Some(next) = rest.find([',', '}']) else { return text.len() };
        at = text.len() - rest.len() + next + 1;
        if rest[next..].starts_with('}') {
            return at;
        }
    }
}

/// The module that a path of a module leads to: the longest beginning that is one.
fn target(path: &str, module: &str, known: &BTreeMap<String, String>) -> Option<String> {
    let mut base: Vec<&str> = module.split("::").collect();
    let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    if parts.first() == Some(&"crate") {
        base.clear();
        parts.remove(0);
    }
    while parts.first() == Some(&"super") {
        base.pop();
        parts.remove(0);
    }
    base.extend(parts);
    (1..=base.len()).rev().map(|length| base[..length].join("::")).find(|path| known.contains_key(path))
}

/// The modules that a module reaches.
fn reached<'a>(from: &'a str, uses: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for used in uses.get(next).into_iter().flatten() {
            if seen.insert(used.as_str()) {
                open.push(used);
            }
        }
    }
    seen
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let mut known = BTreeMap::new();
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut known);
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in &known {
        let code = code(text);
        let mut targets: BTreeSet<String> =
            paths(&code).iter().filter_map(|path| target(path, module, &known)).collect();
        // A module names its own parts without a beginning: `parts::Parts`.
        for part in known.keys().filter_map(|other| other.strip_prefix(&format!("{module}::"))) {
            let named = code.match_indices(&format!("{part}::")).any(|(at, _)| {
                code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !":_".contains(c))
            });
            if !part.contains("::") && named {
                targets.insert(format!("{module}::{part}"));
            }
        }
        targets.remove(module);
        uses.insert(module.clone(), targets);
    }
    let count: usize = uses.values().map(BTreeSet::len).sum();
    assert!(known.len() > 90 && count > 300, "{} modules and {count} uses were found", known.len());
    let circles: Vec<&str> =
        known.keys().map(String::as_str).filter(|module| reached(module, &uses).contains(module)).collect();
    assert!(circles.is_empty(), "these modules need themselves: {circles:#?}");
}

#[test]
fn paths_are_taken_apart() {
    let text = "use crate::a::{self, b::{c, d as e}, f};\nlet x = super::g::h(crate::i::J);";
    let found =
        ["crate::a::self", "crate::a::b::c", "crate::a::b::d", "crate::a::f", "crate::i::J", "super::g::h"];
    assert_eq!(paths(text), found);
    assert_eq!(code("mod a;\nmod tests {\n    use super::b;\n}\nx // crate::c\n"), "mod a;\nx \n");
}
