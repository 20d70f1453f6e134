//! The command as people meet it: standard input, exit statuses, pictures of refusals.

use std::process::{Command, Stdio};

use calculemus_base::testing::shell_words;
use serde_json::Value;

use crate::command::fol;

#[track_caller]
fn check(args: &[&str], stdin: &str, status: i32, stdout: &str, stderr: &str) {
    let output = fol(args, stdin.as_bytes());
    assert_eq!(String::from_utf8_lossy(&output.stdout), stdout);
    assert_eq!(String::from_utf8_lossy(&output.stderr), stderr);
    assert_eq!(output.status.code(), Some(status));
}

#[test]
fn lines_of_standard_input_are_inputs() {
    check(&["print", "-"], "P & Q\n\nforall x P(x)\r\n", 0, "(P0 ∧ P1)\n∀x0 P0(x0)\n", "");
    let output = fol(["print", "--json", "-"], b"  P1  \n");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["items"][0]["input"], "  P1  ");
    let output = fol(["print", "--json", "-"], b"P1 \xff\n");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["items"][0]["error"]["kind"], "UnknownCharacter");
}

#[test]
fn refusals_are_drawn() {
    let equality = "UnexpectedSymbol: EQUALS cannot follow a complete formula\n  P1(x1) = P2(x1)\n         ^\n  \
                    equality joins terms; for formulas write P1(x1) ↔ P2(x1)\n";
    check(&["parse", "P1(x1) = P2(x1)"], "", 1, "", equality);
    let end = "UnexpectedEnd: the input ends after NOT\n  ¬\n   ^\n";
    check(&["parse", "¬"], "", 1, "", end);
    let term = "UnexpectedSymbol: EQUALS cannot follow a complete term\n  x2 =\n     ^\n";
    check(&["subst", "--var", "1", "--by", "x2 =", "P1(x1)"], "", 1, "", term);
    let words = "UnexpectedSymbol: AND cannot follow NOT\n  NOT  AND TRUE\n       ^^^\n";
    check(&["print", "--from", "words", "NOT  AND TRUE"], "", 1, "", words);
    check(
        &["print", "P1", "§", "P2"],
        "",
        1,
        "P1\nP2\n",
        "UnknownCharacter: '§' is in no symbol and in no name\n  §\n  ^\n",
    );
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &["parse"][..],
        &[],
        &["nothing"],
        &["print", "--style", "x", "P"],
        &["next", "P"],
        &["parse", "--strict", "--lenient", "P"],
    ] {
        assert_eq!(fol(args, b"").status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = fol(["completions", shell], b"");
        let script = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{shell}");
        for command in ["vocab", "parse", "unrank", "completions"] {
            assert!(script.contains(command), "{shell} {command}");
        }
    }
    assert_eq!(fol(["completions", "tcl"], b"").status.code(), Some(2));
}

#[test]
fn the_commands_of_the_readme_run_and_answer_so() {
    let readme = include_str!("../../README.md");
    let block = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let mut shown = 0;
    for command in block.split("$ fol ").skip(1) {
        let (line, answer) = command.split_once('\n').unwrap();
        let output = fol(shell_words(line.split(" > ").next().unwrap()), b"");
        assert_eq!(output.status.code(), Some(0), "{line}");
        if !answer.is_empty() {
            assert_eq!(String::from_utf8_lossy(&output.stdout), answer, "{line}");
            shown += 1;
        }
    }
    assert_eq!(shown, 1);
}

#[test]
fn budgets_count_what_follows_the_prefix() {
    let legal = |args: &[&str]| {
        let output = fol([&["next", "--grammar", "formula", "--json"], args].concat(), b"");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["items"][0]["legal"].clone()
    };
    assert_eq!(legal(&["--budget", "1", "P1(x1)"]), serde_json::json!([657]));
    assert_eq!(legal(&["--budget", "2", ""]), serde_json::json!([649, 650]));
    assert_eq!(legal(&["--budget", "3", "--closed", "∀x0"]), serde_json::json!([625, 646, 649, 650]));
    assert_eq!(
        legal(&["--budget", "3", "∀x1 P1(x1"]),
        serde_json::json!((0..625).chain([640]).collect::<Vec<_>>())
    );
    assert_eq!(legal(&["--budget", "2", "∀x1 P1(x1"]), serde_json::json!([640]));
    assert_eq!(legal(&["--budget", "1", "∀x1 P1(x1"]), serde_json::json!([]));
    assert_eq!(legal(&["--from", "words", "<bos> TRUE <eos>"]), serde_json::json!([]));
    assert_eq!(legal(&["--closed", "∀x1 P1(c1, x"]), Value::Null);
}

#[test]
fn no_depth_overflows_the_stack() {
    for open in ["(", "¬", "∀x ", "f(", "P→"] {
        let text = format!("{}P", open.repeat(100_000));
        for command in
            [&["parse", "-"][..], &["check", "-"], &["canon", "-"], &["next", "--grammar", "text", "-"]]
        {
            let output = fol(command, text.as_bytes());
            assert_eq!(output.status.code(), Some(1), "{open} {command:?}");
        }
    }
    let deep = format!("{}P0", "¬".repeat(1024));
    for command in [
        &["parse", "--json", "-"][..],
        &["check", "-"],
        &["canon", "--json", "-"],
        &["subst", "--var", "0", "--by", "x1", "-"],
    ] {
        let output = fol(command, deep.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{command:?}");
    }
}

#[test]
fn a_reader_may_stop_listening() {
    for args in [&["vocab"][..], &["vocab", "--json"], &["parse", "§"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fol"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let refused = args.contains(&"§");
        if refused {
            drop(child.stderr.take());
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(i32::from(refused)), "{args:?}");
    }
}

#[test]
fn large_and_strange_inputs_are_answered() {
    let random: Vec<u8> = {
        let mut stream = crate::common::drawn(&seeded::Family::named("fol-test:bytes"), 0);
        (0..1_000_000).map(|_| stream.next_u64() as u8).collect()
    };
    let tokens = "625 ".repeat(1_000_000).into_bytes();
    for (args, stdin) in [
        (&["parse", "-"][..], "(".repeat(1_000_000).into_bytes()),
        (&["parse", "--json", "-"], random),
        (&["parse", "--from", "tokens", "-"], tokens.clone()),
        (&["next", "--law", "public", "--from", "tokens", "-"], tokens.clone()),
        (&["next", "--grammar", "text", "--from", "tokens", "-"], tokens),
        (&["parse", "-"], "P0 & ".repeat(200_000).into_bytes()),
        (&["import", "--format", "tptp", "-"], format!("fof(a,axiom,{}", "(".repeat(500_000)).into_bytes()),
        (&["import", "--format", "jsonl", "-"], "[".repeat(500_000).into_bytes()),
    ] {
        let output = fol(args, &stdin);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{args:?}");
    }
    assert_eq!(fol(["parse", "-"], b"").status.code(), Some(0));
}

#[test]
fn of_a_long_line_only_the_place_is_shown() {
    let input = format!("{}P1(x1) = \u{7}P2", "¬".repeat(300));
    let output = Command::new(env!("CARGO_BIN_EXE_fol")).args(["parse", &input]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = errors.lines().collect();
    assert!(
        lines[1].chars().count() < 130 && lines[1].starts_with("  …¬") && !errors.contains('\u{7}'),
        "{errors}"
    );
    let column = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[1].chars().nth(column), Some('·'), "{errors}");
}
