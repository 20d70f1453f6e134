//! The command as people and scripts meet it: exit statuses, pictures of refusals, strange and large inputs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ill::{document, ill};
use serde_json::{Value, json};

#[track_caller]
fn refused(args: &[&str], stdin: &str, kind: &str) -> Value {
    let (status, document) = document(args, stdin);
    assert_eq!((status, &document["ok"]), (Some(1), &json!(false)), "{document}");
    assert_eq!(document["errors"][0]["kind"], kind, "{document}");
    document["errors"][0].clone()
}

#[track_caller]
fn answered(args: &[&str], stdin: &str) -> Value {
    let (status, document) = document(args, stdin);
    assert_eq!((status, &document["ok"]), (Some(0), &json!(true)), "{document}");
    document
}

#[test]
fn refusals_are_drawn() {
    let output = ill(["check", "-e", "\\x. x *\n  x : a -o a * a"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "<expr>:2:3: error[linear-reuse]: the linear variable `x` is used a second time\n    x : a -o a * a\n    ^\n  \
         help: only a variable of a type `!A` may be used more than once\n"
    );
    let output = ill(["denote", "-e", "add"], b"");
    let error = "error[not-finite]: the result has the type `int -o int -o int`, whose space has no finite basis here\n  \
                 help: give its argument of type `int` by `--arg`\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), error);
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &[][..],
        &["check"],
        &["nothing"],
        &["check", "-e"],
        &["check", "-e", "2", "--main", "f"],
        &["check", "-e", "2", "--order", "backwards"],
        &["denote", "-e", "2", "--ring", "mod:1"],
        &["denote", "-e", "2", "--ring", "mod:4611686018427387904"],
        &["denote", "-e", "2", "--carrier", "sparse"],
        &["denote", "-e", "2", "--dim", "a=0"],
        &["denote", "-e", "2", "--dim", "a"],
        &["denote", "-e", "id", "--dim", "a=2", "--dim", "a=3"],
        &["denote", "-e", "id", "--dim", "a=2", "--dim", "b=2", "--dim", "a=2"],
        &["poly", "-e", "id", "--dim", "a=2", "--dim", "a=3"],
        &["normalize", "-e", "2", "--main", "f{"],
        &["denote", "-e", "2", "-e", "3"],
        &["normalize", "-e", "2", "--fuel", "x"],
        &["normalize"],
        &["compile", "-e", "2", "--backend", "stack"],
        &["poly", "-e", "2", "--ring", "int"],
    ] {
        let output = ill(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(ill(["normalize", "-"], b"atom nat;").status.code(), Some(2));
    assert_eq!(ill(["denote", "-", "--main", "f{"], b"def f : a -o a = id;").status.code(), Some(2));
}

#[test]
fn files_and_texts() {
    assert_eq!(answered(&["check", "-"], "")["definitions"], json!([]));
    let error = refused(&["check", "no/such/file.ill"], "", "io");
    assert_eq!(error["span"], Value::Null);
    let text = "def f{A} : A -o A = id{A};\ndef g : b -o b = f{b};\n";
    assert_eq!(answered(&["denote", "-", "--dim", "b=1"], text)["type"], "b -o b");
    assert_eq!(answered(&["denote", "-", "--main", "f{c}", "--dim", "c=1"], text)["type"], "c -o c");
    assert_eq!(answered(&["denote", "-", "--main", "f", "--dim", "a=1"], text)["type"], "a -o a");
    assert_eq!(refused(&["denote", "-", "--main", "h"], text, "unbound")["variable"], "h");
    // Beside a term, which is then the subject, the name must mean something too.
    for command in ["normalize", "denote", "poly", "compile"] {
        let error = refused(&[command, "-", "-e", "2", "--main", "h"], text, "unbound");
        assert_eq!((&error["variable"], &error["span"]), (&json!("h"), &Value::Null), "{command}");
        answered(
            &[command, "-", "-e", "id", "--main", "f{c}"]
                .iter()
                .chain(match command {
                    "denote" | "poly" => &["--dim", "a=1"][..],
                    _ => &[],
                })
                .copied()
                .collect::<Vec<_>>(),
            text,
        );
    }
    assert_eq!(answered(&["check", "-", "-e", "g"], text)["definitions"].as_array().unwrap().len(), 1);
    let several = answered(&["check", "-e", "2", "-e", "0b1"], "");
    assert_eq!(several["definitions"][1]["type_short"], "bint");
    assert_eq!(refused(&["check", "-e", "2", "-e", "f"], "", "unbound")["span"]["file"], "<expr 2>");
    let hidden = answered(&["check", "-"], "def add : int = 2;\ndef two : int = add;");
    assert_eq!(hidden["warnings"][0]["kind"], "shadows-library");
    assert_eq!(hidden["warnings"][0]["span"]["start"]["column"], 5);
    assert_eq!(answered(&["check", "--library"], "")["definitions"].as_array().unwrap().len(), 18);
}

#[test]
fn texts_that_are_not_utf8() {
    let output = ill(["check", "-", "--json"], b"def f : a -o a =\n \\x. \xff x;");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = &document["errors"][0];
    assert_eq!((&error["kind"], &error["span"]["start"]["offset"]), (&json!("syntax"), &json!(22)));
    assert_eq!(error["span"]["start"], json!({ "offset": 22, "line": 2, "column": 6 }));
    // An error before the bad byte is the first.
    let output = ill(["check", "-", "--json"], b"def ) \xff");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["errors"][0]["span"]["start"]["offset"], 4);
}

/// A definition around a nesting of some depth.
fn nests(depth: usize) -> Vec<String> {
    let many = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    vec![
        format!("def f : a -o a = \\x. {};", many("(", "x", ")")),
        format!("def f : {} = {};", many("!", "(a -o a)", ""), many("[", "\\x. x", "]")),
        format!("def f : {} = {};", many("a -o ", "a", ""), many("\\x. ", "x", "")),
        format!("def f : a = {};", many("derelict ", "x", "")),
        format!("def f : {} = {};", many("(a -o a) & (", "a -o a", ")"), many("<\\x. x, ", "\\x. x", ">")),
        format!("def f : {} = {};", many("a + ", "a", ""), many("inl (", "x", ")")),
        format!("def f : a = \\x. {};", many("let () = () in ", "x", "")),
        format!("def f : a = \\x. {};", many("case x of inl y -> y | inr z -> ", "x", "")),
        format!("def f : a -o a = id {};", many("(id ", "x", ")")),
        format!("def f : a = id{};", " id".repeat(depth)),
        format!("def f : a = {}x in y;", "discard x, ".repeat(depth).replace(", discard x", ", x")),
        format!("def f : a = \\{}. y;", " y".repeat(depth)),
        format!("type t = {};", many("(", "a", ")")),
        format!("def f : a = (x : {});", many("a * ", "a", "")),
        format!("def f : a = {};", many("(", "x", " : a)")),
    ]
}

#[test]
fn nesting_is_accepted_up_to_500_and_never_crashes() {
    for text in nests(500) {
        let (_, document) = document(&["check", "-"], &text);
        assert_ne!(document["errors"][0]["kind"], "limit", "{}", &text[..60]);
        assert_ne!(document["errors"][0]["kind"], "syntax", "{}", &text[..60]);
    }
    for text in nests(10_000).into_iter().chain(nests(50_000)) {
        let error = refused(&["check", "-"], &text, "limit");
        assert_ne!(error["span"], Value::Null);
    }
}

#[test]
fn large_inputs_are_answered() {
    refused(&["check", "-e", "1000000000"], "", "limit");
    refused(&["check", "-e", &"9".repeat(100_000)], "", "limit");
    refused(&["check", "-"], &format!("def f : bint = 0b{};", "01".repeat(600_000)), "limit");
    // A balanced tree of products: wide, not deep.
    let mut term = "x".to_owned();
    for _ in 0..16 {
        term = format!("({term} * {term})");
    }
    let error = refused(&["check", "-"], &format!("def f : !a -o a = \\x. {term};"), "type-mismatch");
    assert_eq!(error["span"]["start"]["line"], 1);
    refused(&["check", "-"], &format!("def f : a = {};", "x ".repeat(1_000_000)), "limit");
    let double = |count: usize, body: &str| -> String {
        let first = "def d0 : a -o a = id;".to_owned();
        (0..count).fold(first, |text, i| {
            text + &format!("def d{} : a -o a = {};", i + 1, body.replace('#', &i.to_string()))
        })
    };
    assert_eq!(answered(&["denote", "-", "--dim", "a=1"], &double(300, "comp d# d#"))["value"], json!([[1]]));
    refused(&["normalize", "-"], &double(300, "comp d# d#"), "limit");
    refused(&["check", "-", "--sequent"], &double(300, "comp d# d#"), "limit");
    let types = (0..60).fold("type Pair0 = a * a;".to_owned(), |text, i| {
        text + &format!("type Pair{} = Pair{i} * Pair{i};", i + 1)
    });
    refused(&["check", "-"], &types, "limit");
    refused(&["normalize", "-e", "1048576"], "", "limit");
    refused(&["denote", "-e", "exp [1000000] 4", "--arg", "[[3]]"], "", "limit");
    refused(&["denote", "-e", "exp [1] 100000", "--arg", "[[3]]"], "", "limit");
    refused(&["denote", "-e", "id", "--dim", "a=100000"], "", "limit");
    refused(&["poly", "-e", "300", "--dim", "a=3"], "", "limit");
    refused(
        &[
            "compile",
            "-e",
            &format!("{}0b01{}", "repeat [".repeat(25), "]".repeat(25)),
            "--backend",
            "vector",
        ],
        "",
        "limit",
    );
    refused(&["normalize", "-e", "mult [30] 30", "--fuel", "100"], "", "fuel");
}

#[test]
fn arguments_that_do_not_fit() {
    for (term, argument) in [
        ("2", "[[1,2],[3]]"),
        ("2", "[[1,2],[3,4"),
        ("2", "[]"),
        ("2", "{\"bang\":1}"),
        ("2", "{\"term\":3}"),
        ("2", "{\"gen\":\"x\"}"),
        ("2", "{\"lin\":[1]}"),
        ("2", "[[\"s\"]]"),
        ("2", "{\"lin\":[[1,{\"ket\":[[1]],\"along\":[]}]]}"),
        ("\\x:1. x", "[1]"),
        ("\\x:!int. x", "3"),
    ] {
        let error = refused(&["denote", "-e", term, "--arg", argument], "", "argument");
        assert_eq!(error["span"], Value::Null);
    }
    let error = refused(&["denote", "-e", "mult", "--arg", "{\"term\":\"[2 2]\"}"], "", "type-mismatch");
    assert_eq!(error["span"]["file"], "<argument>");
    refused(&["denote", "-e", "2", "--ring", "i64", "--arg", "[[9223372036854775807]]"], "", "overflow");
    refused(&["denote", "-e", "2", "--ring", "f64", "--arg", "[[1e200]]"], "", "overflow");
    refused(&["denote", "-e", "2", "--ring", "f64", "--arg", "[[1e999]]"], "", "overflow");
    refused(&["denote", "-e", "2", "--ring", "rat", "--arg", "[[\"1/0\"]]"], "", "not-in-ring");
    let exact = answered(&["denote", "-e", "2", "--ring", "rat", "--arg", "[[0.1]]"], "");
    assert_eq!(exact["value"], json!([["1/100"]]));
    refused(&["compile", "-e", "2", "--slot", "{}"], "", "argument");
    refused(
        &["compile", "-e", "2", "--slot", "{\"operator\":true}", "--slot", "{\"operator\":true}"],
        "",
        "argument",
    );
    let error = refused(&["compile", "-e", "mult", "--slot", "{\"mix\":[\"f\"]}"], "", "not-compilable");
    assert_eq!(error["span"], Value::Null);
    let mix = [
        "compile",
        "-e",
        "\\n v. derelict n v : !int -o !(a -o a) -o a -o a",
        "--slot",
        "{\"mix\":[\"0b1\"]}",
    ];
    assert_eq!(refused(&mix, "", "type-mismatch")["span"]["file"], "<slot>");
}

#[test]
fn traces_are_what_the_rules_say() {
    let document = answered(&["normalize", "-e", "\\x. fst <id x, x> : a -o a", "--trace"], "");
    assert_eq!(
        document["trace"],
        json!([
            { "rule": "beta-with", "at": [0], "term": "\\v0:a. (\\v1:a. v1) v0" },
            { "rule": "beta-lolli", "at": [0], "term": "\\v0:a. v0" },
        ])
    );
    assert_eq!((&document["steps"], &document["nodes"]), (&json!(2), &json!(2)));
    let partial = answered(&["normalize", "-e", "mult [2] 3", "--steps", "2"], "");
    assert_eq!((&partial["status"], &partial["recognised"]), (&json!("partial"), &json!({ "numeral": 6 })));
    assert_eq!(answered(&["normalize", "-e", "2", "--fuel", "0"], "")["status"], "normal");
}

#[test]
fn a_reader_may_stop_listening() {
    for args in [&["check", "--library"][..], &["check", "--library", "--json"], &["check", "-e", "f"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ill"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{args:?}");
    }
}

/// A file of a few kilobytes whose texts would be gigabytes is refused, and one that only shares much is answered.
#[test]
fn totals_over_a_file_are_bounded() {
    let types = (1..15).fold("type t0{A} = A * A;".to_owned(), |text, i| {
        text + &format!("type t{i}{{A}} = t0{{t{}{{A}}}};", i - 1)
    });
    let functions = |count: usize| -> String {
        (0..count).map(|i| format!("def f{i}{{A}} : t13{{A}} -o t13{{A}} = \\x. x;")).collect()
    };
    assert_eq!(
        answered(&["check", "-"], &format!("{types}{}", functions(10)))["definitions"]
            .as_array()
            .unwrap()
            .len(),
        10
    );
    refused(&["check", "-"], &format!("{types}{}", functions(2000)), "limit");
    let binders = "x ".repeat(400);
    let wide = format!("def g : {} a = \\{binders}y. y;", "!t13 -o ".repeat(400));
    refused(&["check", "-"], &format!("{types}{wide}"), "limit");
    // Each of these proofs is accepted, and all of them together have the size of a square.
    let chain = |count: usize| {
        (1..count).fold("def f0 : !a -o a = \\x. derelict x;".to_owned(), |text, i| {
            text + &format!("def f{i} : !a -o a = \\x. f{} [derelict x];", i - 1)
        })
    };
    answered(&["check", "-", "--sequent"], &chain(4));
    let start = Instant::now();
    let error = refused(&["check", "-", "--sequent"], &chain(24_000), "limit");
    assert!(error["message"].as_str().unwrap().contains("up to that of `f"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Refusals by the thousand, in lines of their own and in one line.
#[test]
fn many_refusals_take_no_square_of_their_time() {
    for separator in ["\n", " "] {
        let start = Instant::now();
        let refused: Vec<String> = (0..20_000).map(|i| format!("def f{i} : int = \\x. x x;")).collect();
        let (_, found) = document(&["check", "-"], &refused.join(separator));
        let errors = found["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 20_000);
        let last = &errors[19_999]["span"]["start"];
        let wanted = refused.join(separator).rfind("x x").unwrap();
        assert_eq!(last["offset"], json!(wanted), "{last}");
        if separator == " " {
            assert_eq!(last["column"], json!(wanted + 1));
        } else {
            assert_eq!(last["line"], json!(20_000));
        }
        let unbound: Vec<String> =
            (0..8_000).map(|i| format!("def f{i} : int = g{};", i.max(1) - 1)).collect();
        let (_, found) = document(&["check", "-"], &unbound.join(separator));
        let errors = found["errors"].as_array().unwrap();
        // The first have advice.
        assert_eq!((errors.len(), &errors[1]["help"]), (8_000, &json!("did you mean `f0`?")));
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

#[test]
fn lines_end_with_cr_lf_or_both() {
    for end in ["\n", "\r", "\r\n"] {
        let text = format!("-- hi{end}def f : int = 3;{end}-- more{end}{end}def g : int = 3 3;{end}");
        let error = refused(&["check", "-"], &text, "type-mismatch");
        let start = &error["span"]["start"];
        assert_eq!((&start["line"], &start["column"]), (&json!(5), &json!(17)), "{end:?}");
        assert_eq!(start["offset"], json!(text.rfind("3;").unwrap()), "{end:?}");
        let output = ill(["check", "-"], text.as_bytes());
        let drawn = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(drawn.contains("<stdin>:5:17: ") && drawn.contains("\n  def g : int = 3 3;\n  "), "{drawn}");
        // Behind a comment that the text ends in, there is nothing.
        assert_eq!(answered(&["check", "-"], &format!("-- hi{end}--"))["definitions"], json!([]));
    }
    // CR and LF are one end; LF and CR are two.
    let error = refused(&["check", "-"], "\r\n\n\r;", "syntax");
    assert_eq!((&error["span"]["start"]["line"], &error["span"]["start"]["column"]), (&json!(4), &json!(1)));
}
