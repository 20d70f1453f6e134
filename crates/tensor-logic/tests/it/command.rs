//! The command's own rules: exit statuses, options, what goes where.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::Command;

use calculemus_base::testing;

/// Exit status, standard output, standard error.
fn tl(folder: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    let output = testing::output(call.current_dir(folder).args(arguments), input);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn exit_statuses() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tl"), "N = 3\nY = 2 N\nY?\nFalse(A)?\n").unwrap();
    for (arguments, status) in [
        (&["run", "a.tl"][..], 0),
        (&["run", "a.tl", "--strict"], 1), // `False` has no facts.
        (&["check", "a.tl"], 0),
        (&["check", "a.tl", "--strict"], 1),
        (&["run", "none.tl"], 2),
        (&["run", "a.tl", "--set", "Q=1"], 2),
        (&["run", "a.tl", "--set", "n=1"], 2),
        (&["run", "a.tl", "--query", "R(1)"], 2),
        (&["run", "a.tl", "--query", "f(1) > 2?"], 1),
        (&["run", "a.tl", "--threads", "0"], 2),
        (&["run", "a.tl", "--device", "abacus"], 2),
        (&["grad", "a.tl"], 2),
        (&["fmt", "a.tl", "--write", "--check"], 2),
        (&["fmt", "-", "--write"], 2),
        (&["frobnicate"], 2),
        (&[], 2),
    ] {
        let (code, _, said) = tl(folder.path(), arguments, b"");
        assert_eq!(code, Some(status), "{arguments:?}: {said}");
        let silent = said.is_empty() || (status == 0 && said.starts_with("warning"));
        assert_eq!(silent, status == 0, "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_asked_beside_the_program() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tl"), "N = 3\nY = 2 N\nY?").unwrap();
    let run = |more: &[&str]| tl(folder.path(), &[&["run", "a.tl"], more].concat(), b"").1;
    assert_eq!(run(&[]), "Y?\n  6.0\n");
    assert_eq!(run(&["--set", "N=-5"]), "Y?\n  -10.0\n");
    assert_eq!(
        run(&["--query", "N?", "--query", "Y + 1 > 6?"]),
        "Y?\n  6.0\nN?\n  3.0\nY + 1 > 6?\n  true\n"
    );
    assert_eq!(run(&["--query", "N?", "--only-queries"]), "N?\n  3.0\n");
    let document = run(&["--query", "N?", "--only-queries", "--json"]);
    assert!(document.contains("\"text\": \"N?\", \"line\": 4"), "{document}");
}

#[test]
fn the_formatter_prints_writes_and_compares() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tl");
    std::fs::write(&file, "Y=1\r\n").unwrap();
    let fmt = |more: &[&str]| tl(folder.path(), &[&["fmt", "a.tl"], more].concat(), b"");
    assert_eq!(fmt(&[]), (Some(0), "Y = 1\n".to_owned(), String::new()));
    assert_eq!(fmt(&["--check"]).0, Some(1));
    assert_eq!(fmt(&["--write"]), (Some(0), String::new(), String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Y = 1\n");
    assert_eq!(fmt(&["--check"]), (Some(0), String::new(), String::new()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    std::fs::write(&file, "Y = (\n").unwrap();
    let (code, printed, said) = fmt(&["--write", "--json"]);
    assert_eq!(code, Some(1));
    assert!(
        printed.starts_with("{\"tl\": 1, \"ok\": false, \"errors\": [{\"code\": \"syntax\""),
        "{printed}"
    );
    assert!(said.starts_with("error[syntax]: "), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Y = (\n");
}

#[test]
fn any_bytes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let nested = |open: &str| open.repeat(100_000).into_bytes();
    for input in [
        b"Y = \xff".to_vec(),
        b"# \xfe\n".to_vec(),
        nested("Y = ("),
        nested("["),
        nested("Y[("),
        nested("Y = f("),
    ] {
        for command in ["run", "check", "fmt"] {
            let (code, printed, said) = tl(folder.path(), &[command, "-", "--json"], &input);
            assert_eq!(code, Some(1), "{said}");
            assert!(
                printed.contains("\"code\": \"syntax\"") && said.contains("  --> -:1:"),
                "{printed} {said}"
            );
        }
    }
    // The deepest program that is read is analysed too.
    let deep = format!("Y = {}1{}\nY?\n", "(".repeat(256), ")".repeat(256));
    assert_eq!(tl(folder.path(), &["run", "-"], deep.as_bytes()).0, Some(0));
}

#[test]
fn explain_says_what_a_program_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = "A = [[1, 2], [3, 4]]\nY[i] = A[i, j] + 1\nX[t+1] = 2 X[t]; X[0] = 1\nX[3]?\n";
    std::fs::write(folder.path().join("a.tl"), program).unwrap();
    let (code, said, _) = tl(folder.path(), &["explain", "a.tl", "--json"], b"");
    assert_eq!(code, Some(0));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["ok"], true);
    assert_eq!(said["tensors"][0]["name"], "A");
    assert_eq!(said["tensors"][0]["domains"][1], serde_json::json!({"from": 0, "to": 1}));
    assert_eq!(said["equations"][0]["explicit"], "Y[i] = sum[j](A[i, j]) + 1");
    assert_eq!(said["components"][1]["class"], "stepped");
    assert_eq!(said["plans"][1]["moves"][0]["up"], true);
    let (code, said, _) = tl(folder.path(), &["explain", "a.tl"], b"");
    assert_eq!((code, said.starts_with("Tensors\n")), (Some(0), true));
}

#[test]
fn shells_complete_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, script, said) = tl(folder.path(), &["completions", shell], b"");
        assert_eq!((code, said.as_str()), (Some(0), ""), "{shell}");
        for word in ["explain", "max-bytes", "only-queries"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(tl(folder.path(), &["completions", "abacus"], b"").0, Some(2));
}

#[test]
fn the_repl_talks_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tl"), "Edge(Ann, Bob)\n").unwrap();
    let lines = b"Reach(x, y) <- Edge(x, y)\nReach(Ann, x)?\nY = A[\n\n:list\n:quit\nReach?\n";
    let (code, said, objected) = tl(folder.path(), &["repl", "a.tl"], lines);
    assert_eq!(code, Some(0));
    assert_eq!(said, "Reach(Ann, x)?\n  x = Bob\nEdge(Ann, Bob)\nReach(x, y) <- Edge(x, y)\n");
    assert!(objected.starts_with("error[syntax]"), "{objected}");
    let (code, _, objected) = tl(folder.path(), &["repl", "none.tl"], b"");
    assert_eq!((code, objected.contains("none.tl")), (Some(0), true));
}
