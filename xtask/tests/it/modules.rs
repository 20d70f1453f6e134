//! Circles between modules: none, as between crates (`architecture.rs`).
//!
//! Modules are compared with their siblings: at every level of the tree an arrow goes from one child to another where a
//! file below the first names something below the second. A module and its own children belong together and are not
//! compared. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// Text without comments, strings, characters and unit tests.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let text = text.split("\n#[cfg(test)]\n#[cfg(feature").next().unwrap();
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => while rest.next().is_some_and(|c| c != '\n') {},
            '"' => {
                while let Some(c) = rest.next() {
                    match c {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                out.push(' ');
            }
            '\'' => {
                // A character, or a lifetime.
                let mut ahead = rest.clone();
                let (first, second) = (ahead.next(), ahead.next());
                if first == Some('\\') || second == Some('\'') {
                    rest.next();
                    if first == Some('\\') {
                        rest.next();
                    }
                    while rest.next().is_some_and(|c| c != '\'') {}
                }
                out.push(' ');
            }
            _ => out.push(c),
        }
    }
    out
}

/// The module that a file of `src` is: `a/b.rs` and `a/b/mod.rs` are `[a, b]`; the root is empty; a file of
/// another program, or of unit tests, is none.
fn module_of(src: &Path, file: &Path) -> Option<Module> {
    let inside = file.strip_prefix(src).unwrap().with_extension("");
    let mut parts: Module = inside.iter().map(|s| s.to_str().unwrap().to_owned()).collect();
    match parts.last().unwrap().as_str() {
        "lib" | "main" if parts.len() == 1 => return Some(Vec::new()),
        "mod" => drop(parts.pop()),
        _ => {}
    }
    let tests = parts.last().is_some_and(|name| name == "tests");
    (parts[0] != "bin" && !tests).then_some(parts)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The paths that a text names: `a::{b, c::d}` gives `a::b` and `a::c::d`; only those that begin in the crate.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let bytes = code.as_bytes();
    for start in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(&format!("{start}::")) {
            let before = at.checked_sub(1).map_or(b' ', |i| bytes[i]);
            if !(before.is_ascii_alphanumeric() || before == b'_' || before == b':' || before == b'$') {
                expand(&code[at..], Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one path or one group of paths; returns what stands behind it.
fn expand<'a>(text: &'a str, before: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = before;
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let mut rest = group;
            loop {
                rest = expand(rest, path.clone(), found).trim_start();
                match rest.strip_prefix(',') {
                    Some(more) if !more.trim_start().starts_with('}') => rest = more,
                    Some(more) => return more.trim_start().strip_prefix('}').unwrap_or(more),
                    None => return rest.strip_prefix('}').unwrap_or(rest),
                }
            }
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_owned());
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(more) if more.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{') => {
                rest = more
            }
            _ => {
                found.push(path);
                return rest.trim_start().strip_prefix("as ").map_or(rest, |renamed| {
                    let renamed = renamed.trim_start();
                    &renamed[renamed.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0)..]
                });
            }
        }
    }
}

/// From the root: what a path in module `here` begins with.
fn absolute(here: &Module, path: &[String]) -> Vec<String> {
    let mut base = here.clone();
    let mut rest = path;
    loop {
        match rest.first().map(String::as_str) {
            Some("crate") => base.clear(),
            Some("super") => drop(base.pop()),
            Some("self") => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    base.into_iter().chain(rest.iter().cloned()).collect()
}

struct Crate {
    /// Text of each module.
    modules: BTreeMap<Module, String>,
    /// What a module gives away under a name of its own: `lib.rs` says `pub use error::Refusal`.
    given: BTreeMap<Vec<String>, Vec<String>>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut all = Vec::new();
        files(src, &mut all);
        let modules: BTreeMap<Module, String> = all
            .iter()
            .filter_map(|f| Some((module_of(src, f)?, code(&std::fs::read_to_string(f).unwrap()))))
            .collect();
        let mut given = BTreeMap::new();
        for (module, text) in &modules {
            for (at, _) in text.match_indices("pub use ").chain(text.match_indices("pub(crate) use ")) {
                let statement = &text[at + text[at..].find("use ").unwrap() + 4..];
                let mut named = Vec::new();
                expand(statement, Vec::new(), &mut named);
                for path in named {
                    let whole = absolute(module, &path);
                    if let Some(name) = path.last() {
                        given.insert(module.iter().cloned().chain([name.clone()]).collect(), whole);
                    }
                }
            }
        }
        Self { modules, given }
    }

    /// The module where a path ends, through what is given away.
    fn resolve(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let step = (1..=path.len()).find_map(|n| {
                let to = self.given.get(&path[..n])?;
                (!self.modules.contains_key(&path[..n]) && to[..] != path[..n])
                    .then(|| [to.as_slice(), &path[n..]].concat())
            });
            match step {
                Some(next) => path = next,
                None => break,
            }
        }
        while !self.modules.contains_key(&path) {
            path.pop();
        }
        path
    }

    /// Arrows between siblings: (parent, from, to).
    fn arrows(&self) -> BTreeSet<(Module, String, String)> {
        let mut arrows = BTreeSet::new();
        for (here, text) in &self.modules {
            for path in paths(text) {
                let there = self.resolve(&absolute(here, &path));
                let common = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (here.get(common), there.get(common)) {
                    arrows.insert((here[..common].to_vec(), from.clone(), to.clone()));
                }
            }
        }
        arrows
    }

    /// Sets of siblings each of which reaches all others.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let mut by_parent: BTreeMap<Module, Vec<(String, String)>> = BTreeMap::new();
        for (parent, from, to) in self.arrows() {
            by_parent.entry(parent).or_default().push((from, to));
        }
        let mut circles = BTreeSet::new();
        for (parent, arrows) in by_parent {
            let reach = |start: &String| {
                let mut seen = BTreeSet::new();
                let mut open = vec![start];
                while let Some(at) = open.pop() {
                    for (_, to) in arrows.iter().filter(|(from, _)| from == at) {
                        if seen.insert(to) {
                            open.push(to);
                        }
                    }
                }
                seen
            };
            let nodes: BTreeSet<&String> = arrows.iter().map(|(from, _)| from).collect();
            for node in &nodes {
                let circle: Vec<String> = nodes
                    .iter()
                    .filter(|other| reach(node).contains(**other) && reach(other).contains(*node))
                    .map(|other| [parent.as_slice(), &[(*other).clone()]].concat().join("::"))
                    .collect();
                if circle.len() > 1 {
                    circles.insert(circle);
                }
            }
        }
        circles
    }
}

#[test]
fn no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    crates.push(root.join("xtask"));
    crates.sort();
    assert!(crates.len() >= 8);
    for folder in crates {
        let read = Crate::read(&folder.join("src"));
        assert!(!read.modules.is_empty(), "{}", folder.display());
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        found.extend(read.circles().into_iter().map(|circle| format!("{name}: {}", circle.join(" "))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The reader of modules sees what it must: a circle through a group, through a name that the root gives away, through
/// `super`; and none in comments, strings and unit tests.
#[test]
fn circles_are_seen() {
    let circles = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Crate::read(folder.path()).circles().into_iter().map(|c| c.join(" ")).collect::<Vec<_>>()
    };
    let lib = ("lib.rs", "mod a;\nmod b;\npub use b::B;\n");
    assert_eq!(
        circles(&[lib, ("a.rs", "use crate::{b::B, c};"), ("b.rs", "fn f() { crate::a::g() }")]),
        ["a b"]
    );
    assert_eq!(circles(&[lib, ("a.rs", "use crate::B;"), ("b.rs", "use super::a;")]), ["a b"]);
    assert_eq!(
        circles(&[lib, ("a.rs", "// crate::b\nconst X: &str = \"crate::b\";"), ("b.rs", "use crate::a::X;")]),
        [""; 0]
    );
    assert_eq!(
        circles(&[
            lib,
            ("a.rs", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a;")
        ]),
        [""; 0]
    );
    // A module and its children may use each other; two children of it may not.
    assert_eq!(circles(&[lib, ("a.rs", "mod x;\nuse x::X;"), ("a/x.rs", "use super::f;")]), [""; 0]);
    assert_eq!(
        circles(&[
            lib,
            ("a.rs", "mod x; mod y;"),
            ("a/x.rs", "use super::y::Y;"),
            ("a/y.rs", "use crate::a::x;")
        ]),
        ["a::x a::y"]
    );
}
