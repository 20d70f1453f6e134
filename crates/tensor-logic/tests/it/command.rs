//! The command's own rules: exit statuses, options, what goes where.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test that cannot start the command has failed")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::command::tl;

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
        (&["run", "a.tl", "--query", ""], 2),
        (&["run", "a.tl", "--query", " # nothing"], 2),
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

/// A device that programs do not run on is refused as what is not there yet, in JSON too.
#[test]
fn devices_are_not_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tl"), "Y = 2\nY?\n").unwrap();
    for command in [&["run", "a.tl"][..], &["grad", "a.tl", "--of", "Y"], &["explain", "a.tl"]] {
        let arguments = [command, &["--device", "cuda:1", "--json"]].concat();
        let (status, said, complaint) = tl(folder.path(), &arguments, b"");
        assert_eq!(status, Some(1), "{complaint}");
        assert!(said.contains("\"ok\": false") && said.contains("\"code\": \"not-yet\""), "{said}");
        assert!(
            complaint.starts_with("error[not-yet]: ") && complaint.contains("--> --device:1:1"),
            "{complaint}"
        );
    }
}

/// A goal that is no number is shown as `tl run` shows it, and warned of.
#[test]
fn gradients_of_what_is_no_number() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tl"), "W ~ 0\nL = 1 / W\n").unwrap();
    let (status, said, warned) = tl(folder.path(), &["grad", "a.tl", "--of", "L"], b"");
    assert_eq!((status, said.as_str()), (Some(0), "L\n  inf\ndL/dW\n  -inf\n"));
    assert!(warned.starts_with("warning[non-finite]: `L` is inf") && warned.contains("a.tl:2:1"), "{warned}");
}

/// A query with evidence is no tensor of the program, and what is true or false has no slope.
#[test]
fn what_has_no_gradient_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "P ~ [0.5, 0.5]\nQ[x, y] = [[0.8, 0.2], [0.3, 0.7]]\nZ = P[x] Q[x, y]\n0.3 :: R(A)\nS(x) <- R(x)\n";
    std::fs::write(folder.path().join("a.tl"), text).unwrap();
    for goal in ["Z[x=1 | y=0]", "Z[x | y=0]", "Z | y=1", "Z[x=1 | y=7]", "not S(A)", "S(A), R(A)"] {
        let (status, said, refused) = tl(folder.path(), &["grad", "a.tl", "--of", goal], b"");
        assert_eq!((status, said.as_str()), (Some(1), ""), "{goal}: {refused}");
        assert!(
            refused.starts_with("error[not-scalar]") && refused.contains("a.tl:6:1"),
            "{goal}: {refused}"
        );
    }
    let (status, said, _) = tl(folder.path(), &["grad", "a.tl", "--of", "Z"], b"");
    assert_eq!((status, said.as_str()), (Some(0), "Z\n  1.0\ndZ/dP\n  [1.0, 1.0]\n"));
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
        for word in ["explain", "profile", "measure", "history", "max-bytes", "only-queries"] {
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
    // A line that is no text is passed over, and said to be.
    let (code, said, objected) = tl(folder.path(), &["repl"], b"A = 1\n\xff\nA?\r\n");
    assert_eq!((code, said.as_str()), (Some(0), "A?\n  1.0\n"));
    assert!(objected.contains("line 2 is passed over: its byte 1 is no UTF-8"), "{objected}");
    assert_eq!(tl(folder.path(), &["repl", "--json"], b"A = 1\n").0, Some(2));
}

#[test]
fn a_run_says_where_the_time_went() {
    let folder = tempfile::tempdir().unwrap();
    let program = "E(1, 2); E(2, 3)\nR(x, y) <- E(x, y)\nR(x, z) <- R(x, y), E(y, z)\nR(x, y)?\nY = 2\nY?\n";
    std::fs::write(folder.path().join("a.tl"), program).unwrap();
    let answers = "R(x, y)?\n  x = 1, y = 2\n  x = 1, y = 3\n  x = 2, y = 3\nY?\n  2.0\n";
    let (code, plain, _) = tl(folder.path(), &["run", "a.tl"], b"");
    assert_eq!((code, plain.as_str()), (Some(0), answers));
    let (code, said, _) = tl(folder.path(), &["run", "a.tl", "--profile"], b"");
    assert_eq!(code, Some(0));
    let table = said.strip_prefix(answers).unwrap();
    assert!(
        table.starts_with("\nComponents\n") && table.contains("  R: a search from each value\n"),
        "{table}"
    );
    let (code, table, _) = tl(folder.path(), &["profile", "a.tl"], b"");
    assert_eq!((code, table.starts_with("Components\n")), (Some(0), true), "{table}");
    for arguments in [&["profile", "a.tl", "--json"][..], &["run", "a.tl", "--profile", "--json"]] {
        let (_, said, _) = tl(folder.path(), arguments, b"");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let profile = if arguments[0] == "run" { &said["profile"] } else { &said };
        let times = profile["components"].as_array().unwrap().iter().map(|c| c["seconds"].as_f64().unwrap());
        assert!(
            times.clone().is_sorted_by(|a, b| a >= b)
                && times.sum::<f64>() <= profile["seconds"].as_f64().unwrap()
        );
        let closure =
            profile["components"].as_array().unwrap().iter().find(|c| c["tensors"][0] == "R").unwrap();
        assert_eq!((&closure["executor"], &closure["line"]), (&"rules".into(), &2.into()));
        assert_eq!(closure["stored"][0]["rows"], 3);
    }
    let (code, said, _) = tl(folder.path(), &["explain", "a.tl", "--measure", "--json"], b"");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let plan = said["plans"].as_array().unwrap().iter().find(|plan| plan["tensors"][0] == "R").unwrap();
    assert_eq!((code, &plan["engine"]), (Some(0), &"rules".into()));
    assert_eq!(plan["estimated"][0]["executor"], "rules");
    assert_eq!(plan["measured"][0]["rows_out"], 3);
    for arguments in
        [&["profile", "a.tl"][..], &["run", "a.tl", "--profile"], &["explain", "a.tl", "--measure"]]
    {
        let (code, _, said) = tl(folder.path(), &[arguments, &["--engine", "reference"]].concat(), b"");
        assert_eq!((code, said.contains("keeps no profile")), (Some(2), true), "{said}");
    }
    for (option, value) in [("--dtype", "f32"), ("--storage", "dense"), ("--storage", "auto")] {
        let arguments = ["run", "a.tl", "--engine", "reference", option, value];
        let (code, _, said) = tl(folder.path(), &arguments, b"");
        assert_eq!((code, said.contains("changes nothing")), (Some(0), value != "auto"), "{said}");
    }
}

/// A dialogue over pipes, and the lines that it says.
fn dialogue(folder: &Path) -> (Child, std::process::ChildStdin, BufReader<std::process::ChildStdout>) {
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    let call = call.current_dir(folder).args(["repl", "--threads", "2"]);
    let piped = call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    (child, input, output)
}

fn ask(input: &mut std::process::ChildStdin, output: &mut impl BufRead, query: &str, lines: usize) -> String {
    writeln!(input, "{query}").unwrap();
    let mut said = String::new();
    for _ in 0..lines {
        output.read_line(&mut said).unwrap();
    }
    said
}

fn signal(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// SIGINT ends the query at hand, and the dialogue goes on with all that was said before; with nothing at hand it ends.
#[test]
#[cfg(unix)]
fn an_interrupt_ends_the_query_and_not_the_dialogue() {
    let folder = tempfile::tempdir().unwrap();
    // How soon a query runs depends on the machine: a signal that comes too early ends the dialogue.
    let done = (0..6).any(|attempt| {
        let (mut child, mut input, mut output) = dialogue(folder.path());
        let statements =
            "E(1, 2); E(2, 3); R(x, y) <- E(x, y); R(x, z) <- R(x, y), E(y, z); W ~ 0; Loss = (W - 3)^2";
        writeln!(input, "{statements}").unwrap();
        writeln!(input, "N(0); N(y) <- N(x), y = x + 1, x < 1000000000").unwrap();
        assert_eq!(ask(&mut input, &mut output, "R(1, x)?", 3), "R(1, x)?\n  x = 2\n  x = 3\n");
        ask(&mut input, &mut output, "Loss? @minimize(opt=sgd, lr=0.1, steps=2)", 3);
        let learned = ask(&mut input, &mut output, "W?", 2);
        for long in ["N(x)?", "Loss? @minimize(opt=sgd, lr=0.1, steps=1000000000)"] {
            writeln!(input, "{long}").unwrap();
            input.flush().unwrap();
            std::thread::sleep(Duration::from_millis(300 << attempt));
            let since = Instant::now();
            signal(&child);
            if attempt < 5 && writeln!(input, "W?").is_err() {
                return false;
            }
            let mut said = String::new();
            if output.read_line(&mut said).unwrap() == 0 {
                // It came before the query.
                child.wait().unwrap();
                return false;
            }
            output.read_line(&mut said).unwrap();
            assert_eq!(said, learned, "{long}");
            assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
        }
        assert_eq!(ask(&mut input, &mut output, "R(1, x)?", 3), "R(1, x)?\n  x = 2\n  x = 3\n");
        // Nothing is at hand now: a moment for the dialogue to wait for the next line.
        std::thread::sleep(Duration::from_millis(300 << attempt));
        signal(&child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let mut objected = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut objected).unwrap();
        assert_eq!(objected, "interrupted\ninterrupted\n");
        true
    });
    assert!(done, "no signal met a running query in six attempts");
}

/// A data set of graphs becomes a program that runs; what is wrong with it has a place, and nothing is written.
#[test]
fn graphs_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let write = |part: &str, text: &str| {
        std::fs::write(folder.path().join(format!("DS_{part}.txt")), text).unwrap();
    };
    write("A", "1, 2\n2, 1\n3, 4\n4, 9\n");
    write("graph_indicator", "1\n1\n2\n2\n3\n");
    write("graph_labels", "0\n1\n1\n");
    let import = |more: &[&str]| tl(folder.path(), &[&["import", "DS", "out"], more].concat(), b"");
    let (code, out, said) = import(&[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(said.contains("DS_A.txt:4:4") && said.contains("9 is none of the 5 nodes"), "{said}");
    assert!(!folder.path().join("out").exists());
    write("A", "1, 2\n2, 1\n3, 4\n4, 3\n");
    let (code, out, said) = import(&["--json"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.contains("\"graphs\": 3, \"nodes\": 5, \"arcs\": 4, \"classes\": 2, \"written\": ["),
        "{out}"
    );
    let (code, out, said) = tl(folder.path(), &["run", "out/DS.tl"], b"");
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("held out: ") && out.contains("Accuracy?"), "{out}");
    let (code, _, said) = import(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("is there already"), "{said}");
    assert_eq!(tl(folder.path(), &["import", "none", "out2"], b"").0, Some(2));
}
