//! A folder that looks like a fresh checkout, the commands run in it, and what their runs wrote.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The folder. It goes when this is dropped.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    /// With these files in configs/.
    pub(crate) fn new(configs: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in configs {
            let path = place.path("configs").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        place
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calculemus"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The standard output of a command that succeeds.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The standard error of a command that ends with this exit status.
    pub(crate) fn refused(&self, args: &[&str], status: i32) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}\n{errors}");
        assert!(!errors.contains("panicked"), "{args:?}\n{errors}");
        errors
    }

    /// The document that a command prints.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// Two runs have the same best weights and the same metrics.
    pub(crate) fn same_result(&self, a: &str, b: &str) {
        let read = |run: &str| std::fs::read(self.path(run).join("model.safetensors")).unwrap();
        assert!(read(a) == read(b), "{a} and {b} have other weights");
        assert_eq!(metrics(&self.path(a)), metrics(&self.path(b)));
    }
}

/// The metrics without the fields that depend on the clock.
pub(crate) fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let without_time = |line: &str| {
        let mut v: Value = serde_json::from_str(line).unwrap();
        for field in ["seconds", "targets_per_second", "waited", "summed", "clock", "run"] {
            v.as_object_mut().unwrap().remove(field);
        }
        v
    };
    text.lines().map(without_time).collect()
}

/// Every field that a run writes stands in `docs/metrics.md`, with its kind.
pub(crate) fn fields_are_documented(run: &Path) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in metrics(run) {
        let kind = line["kind"].as_str().unwrap();
        for name in line.as_object().unwrap().keys() {
            let row = |k: &str| page.contains(&format!("| {k} | `{name}` |"));
            assert!(row(kind) || row("all"), "{kind}: {name} is not documented");
        }
    }
}

/// Every file of a folder, all levels, with its bytes. The lock says nothing and is left out.
pub(crate) fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().unwrap() != ".lock" {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

/// A text of metrics with the fields that depend on the clock set to 1.
pub(crate) fn without_clocks(text: &str) -> String {
    let line = |line: &str| {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        for clock in ["seconds", "targets_per_second"] {
            fields.entry(clock).and_modify(|v| *v = Value::from(1.0));
        }
        format!("{}\n", Value::Object(fields))
    };
    text.lines().map(line).collect()
}
