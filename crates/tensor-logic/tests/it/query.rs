//! `tl query`: what it answers about the models of files, and what it refuses and where.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test that cannot start the command has failed")]

use std::path::Path;
use std::process::Command;

use calculemus_base::testing;
use serde_json::{Value as Json, json};

use crate::common::command;

const SPRINKLER: &str = "network sprinkler {}
variable Cloudy { type discrete [ 2 ] { no, yes }; }
variable Rain { type discrete [ 2 ] { no, yes }; }
variable \"the grass\" { type discrete [ 3 ] { \"dry\", \"a,b=c\", wet }; }
probability ( Cloudy ) { table 0.5, 0.5; }
probability ( Rain | Cloudy ) { (no) 0.75, 0.25; (yes) 0.25, 0.75; }
probability ( \"the grass\" | Rain ) { (no) 1, 0, 0; (yes) 0.25, 0.25, 0.5; }
";

const MARKOV: &str = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3\n4 5 0\n";

/// A folder with both models.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.bif"), SPRINKLER).unwrap();
    std::fs::write(folder.path().join("m.uai"), MARKOV).unwrap();
    folder
}

/// Exit status, standard output, standard error.
fn query(folder: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    command::tl(folder, &[&["query"], arguments].concat(), input)
}

/// The document of an accepted question.
fn document(folder: &Path, arguments: &[&str]) -> Json {
    let (code, said, objected) = query(folder, &[arguments, &["--json"]].concat(), b"");
    assert_eq!(code, Some(0), "{arguments:?}: {objected}");
    serde_json::from_str(&said).unwrap()
}

/// The first report of a refused question, and what it points into.
fn refusal(folder: &Path, arguments: &[&str]) -> (String, String, u64, u64, String) {
    let (code, said, objected) = query(folder, &[arguments, &["--json"]].concat(), b"");
    assert_eq!(code, Some(1), "{arguments:?}: {said}{objected}");
    let said: Json = serde_json::from_str(&said).unwrap();
    let report = &said["errors"][0];
    assert_eq!((&said["tl"], &said["ok"]), (&json!(1), &json!(false)));
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (line, column) = (report["line"].as_u64().unwrap(), report["column"].as_u64().unwrap());
    assert!(objected.starts_with(&format!("error[{}]: {}", text(&report["code"]), text(&report["message"]))));
    assert!(objected.contains(&format!("  --> {}:{line}:{column}\n", text(&said["file"]))), "{objected}");
    let told = format!("{} / {}", text(&report["message"]), text(&report["help"]));
    (text(&said["file"]), text(&report["code"]), line, column, told)
}

#[test]
fn marginals_of_a_network() {
    let folder = folder();
    let (code, said, objected) = query(folder.path(), &["s.bif"], b"");
    assert_eq!((code, objected.as_str()), (Some(0), ""));
    assert_eq!(
        said,
        "log evidence 0.0\nCloudy: no 0.5, yes 0.5\nRain: no 0.5, yes 0.5\n\
         the grass: dry 0.625, a,b=c 0.125, wet 0.25\n"
    );
    let wet = ["s.bif", "--evidence", "the grass=wet"];
    let found = document(folder.path(), &wet);
    assert_eq!(found["evidence"], json!({ "the grass": "wet" }));
    assert!((found["log_evidence"].as_f64().unwrap() - 0.25_f64.ln()).abs() < 1e-12);
    let cloudy = &found["marginals"][0];
    assert_eq!(cloudy["variable"], "Cloudy");
    assert_eq!(cloudy["states"], json!(["no", "yes"]));
    assert!((cloudy["probabilities"][1].as_f64().unwrap() - 0.75).abs() < 1e-12);
    assert_eq!(found["marginals"][1]["probabilities"], json!([0.0, 1.0]));
    assert_eq!((&found["file"], &found["warnings"]), (&json!("s.bif"), &json!([])));
    assert!(found.get("joint").is_none() && found.get("most_probable").is_none());
    // Standard input has no ending.
    let mut from_pipe = Command::new(env!("CARGO_BIN_EXE_tl"));
    let output = testing::output(from_pipe.args(["query", "-", "--format", "bif"]), SPRINKLER.as_bytes());
    assert_eq!(String::from_utf8_lossy(&output.stdout), said);
}

#[test]
fn several_variables_and_the_most_probable_states() {
    let folder = folder();
    let (_, said, _) = query(folder.path(), &["s.bif", "--of", "Rain, Cloudy"], b"");
    assert_eq!(
        said,
        "log evidence 0.0\nRain = no, Cloudy = no: 0.375\nRain = no, Cloudy = yes: 0.125\n\
         Rain = yes, Cloudy = no: 0.125\nRain = yes, Cloudy = yes: 0.375\n"
    );
    let all = ["s.bif", "--of", "Cloudy,\"the grass\"", "--of", "Rain", "--map", "--marginals"];
    let found = document(folder.path(), &[&all[..], &["--evidence", "Rain=yes"]].concat());
    assert_eq!(found["joint"][0]["variables"], json!(["Cloudy", "the grass"]));
    assert_eq!(found["joint"][0]["states"], json!([["no", "yes"], ["dry", "a,b=c", "wet"]]));
    for (cloudy, given) in [0.25, 0.75].into_iter().enumerate() {
        for (grass, of) in [0.25, 0.25, 0.5].into_iter().enumerate() {
            let value = found["joint"][0]["probabilities"][cloudy][grass].as_f64().unwrap();
            assert!((value - given * of).abs() < 1e-12, "{found}");
        }
    }
    assert_eq!(found["joint"][1]["probabilities"], json!([0.0, 1.0]));
    let states = json!({ "Cloudy": "yes", "Rain": "yes", "the grass": "wet" });
    assert_eq!(found["most_probable"]["states"], states);
    let log = found["most_probable"]["log"].as_f64().unwrap();
    assert!((log - (0.5 * 0.75 * 0.5_f64).ln()).abs() < 1e-12);
    assert_eq!(found["marginals"].as_array().unwrap().len(), 3);
    let (_, said, _) = query(folder.path(), &["s.bif", "--map", "--evidence", "Rain=no"], b"");
    assert!(said.ends_with("\nCloudy = no\nRain = no\nthe grass = dry\n"), "{said}");
}

#[test]
fn evidence_in_all_its_forms() {
    let folder = folder();
    let wanted = document(folder.path(), &["s.bif", "--evidence", "Rain=yes", "--evidence", "Cloudy=no"]);
    for evidence in ["Rain=yes,Cloudy=no", " Rain = yes ,\"Cloudy\"=\"no\"", "Rain=yes\nCloudy=no"] {
        let found = document(folder.path(), &["s.bif", "--evidence", evidence]);
        assert_eq!(found, wanted, "{evidence}");
    }
    let found = document(folder.path(), &["s.bif", "--evidence", "the grass=\"a,b=c\",Rain=yes"]);
    assert_eq!(found["evidence"], json!({ "the grass": "a,b=c", "Rain": "yes" }));
    // A name with a sign in it is found, quoted or not.
    let odd = SPRINKLER.replace("Cloudy", "a=b");
    std::fs::write(folder.path().join("odd.bif"), odd).unwrap();
    for evidence in ["a=b=yes", "\"a=b\"=yes"] {
        let found = document(folder.path(), &["odd.bif", "--evidence", evidence]);
        assert_eq!(found["evidence"], json!({ "a=b": "yes" }));
    }
    std::fs::write(folder.path().join("m.uai.evid"), "1 0 1\n").unwrap();
    let found = document(folder.path(), &["m.uai", "--evidence-file", "m.uai.evid"]);
    assert!((found["log_evidence"].as_f64().unwrap() - 9_f64.ln()).abs() < 1e-12);
    let found = document(folder.path(), &["m.uai", "--evidence-file", "m.uai.evid", "--evidence", "1=0"]);
    assert_eq!(found["evidence"], json!({ "0": "1", "1": "0" }));
    // A network by numbers too.
    let found = document(folder.path(), &["s.bif", "--evidence-file", "m.uai.evid"]);
    assert_eq!(found["evidence"], json!({ "Cloudy": "yes" }));
}

#[test]
fn samples_with_their_errors() {
    let folder = folder();
    let of = |more: &[&str]| {
        let wet = ["s.bif", "--evidence", "the grass=wet", "--samples", "1e5"];
        let (code, said, objected) = query(folder.path(), &[&wet[..], more].concat(), b"");
        assert_eq!(code, Some(0), "{objected}");
        said
    };
    let found: Json = serde_json::from_str(&of(&["--json", "--seed", "7"])).unwrap();
    assert_eq!((&found["sample"]["n"], &found["sample"]["seed"]), (&json!(100_000), &json!(7)));
    // Half of the samples have rain, and only these may be wet.
    assert!((found["sample"]["effective"].as_f64().unwrap() - 5e4).abs() < 1e3);
    let error = found["sample"]["log_evidence_standard_error"].as_f64().unwrap();
    assert!((found["log_evidence"].as_f64().unwrap() - 0.25_f64.ln()).abs() < 5.0 * error && error < 0.01);
    let cloudy = &found["marginals"][0];
    let error = cloudy["standard_errors"][1].as_f64().unwrap();
    assert!((cloudy["probabilities"][1].as_f64().unwrap() - 0.75).abs() < 5.0 * error && error < 0.003);
    assert_eq!(of(&["--threads", "1"]), of(&["--threads", "3"]));
    assert_ne!(of(&["--seed", "1"]), of(&["--seed", "2"]));
    let said = of(&[]);
    assert!(said.starts_with("log evidence -1.3") && said.contains(" 100000 samples worth "), "{said}");
    assert!(
        said.ends_with("\nRain: no 0 ± 0, yes 1 ± 0\nthe grass: dry 0 ± 0, a,b=c 0 ± 0, wet 1 ± 0\n"),
        "{said}"
    );
    assert_eq!(refusal(folder.path(), &["m.uai", "--samples", "10"]).1, "not-a-model");
    assert_eq!(refusal(folder.path(), &["s.bif", "--samples", "0"]).1, "bad-argument");
    let impossible = ["s.bif", "--samples", "9", "--evidence", "Rain=no,the grass=wet"];
    assert_eq!(refusal(folder.path(), &impossible).1, "zero-evidence");
    assert_eq!(query(folder.path(), &["s.bif", "--samples", "9", "--map"], b"").0, Some(2));
}

#[test]
fn messages_that_rest_and_messages_that_do_not() {
    let folder = folder();
    // A tree: exact.
    let wet = ["s.bif", "--evidence", "the grass=wet"];
    let (exact, found) =
        (document(folder.path(), &wet), document(folder.path(), &[&wet[..], &["--loopy"]].concat()));
    assert_eq!(found["loopy"]["at_rest"], true);
    for key in ["/log_evidence", "/marginals/0/probabilities/0", "/marginals/2/probabilities/2"] {
        let number = |of: &Json| of.pointer(key).unwrap().as_f64().unwrap();
        assert!((number(&found) - number(&exact)).abs() < 1e-9, "{key} {found} {exact}");
    }
    // Four that all want to differ: they swing.
    let pairs = ["0 1", "0 2", "0 3", "1 2", "1 3", "2 3"];
    let scopes: String = pairs.iter().map(|pair| format!("2 {pair}\n")).collect();
    let odd = format!("MARKOV\n4\n2 2 2 2\n7\n{scopes}1 0\n{}2 .6 .4\n", "4 .01 1 1 .01\n".repeat(6));
    std::fs::write(folder.path().join("odd.uai"), odd).unwrap();
    let (code, said, _) = query(folder.path(), &["odd.uai", "--loopy", "--rounds", "50"], b"");
    assert_eq!(
        (code, said.contains("  by Bethe; NOT AT REST after 50 rounds, the last change ")),
        (Some(0), true)
    );
    let damped = ["odd.uai", "--loopy", "--rounds", "9999", "--damping", "0.5", "--tolerance", "1e-7"];
    let found = document(folder.path(), &damped);
    assert_eq!(found["loopy"]["at_rest"], true, "{found}");
    assert!(
        found["loopy"]["change"].as_f64().unwrap() <= 1e-7 && found["loopy"]["rounds"].as_u64().unwrap() > 50
    );
    assert_eq!(refusal(folder.path(), &["odd.uai", "--loopy", "--damping", "1"]).1, "bad-argument");
    assert_eq!(query(folder.path(), &["odd.uai", "--loopy", "--samples", "5"], b"").0, Some(2));
}

#[test]
fn what_is_refused_and_where() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("sum.bif", &SPRINKLER.replace("0.75, 0.25;", "0.75, 0.15;"));
    write("cut.bif", SPRINKLER.split("probability").next().unwrap());
    write("bad.uai.evid", "2 0 1\n 1 3\n");
    write("two.uai.evid", "2 0 1 0 0\n");
    write("wide.uai", &format!("MARKOV 1 {} 0", u64::MAX));
    for (arguments, file, code, line, column, told) in [
        (
            &["s.bif", "--evidence", "Rain=yes,Clody=no"][..],
            "--evidence",
            "unknown-evidence",
            1,
            10,
            "`Cloudy`",
        ),
        (&["s.bif", "--evidence", "Rain=yse"], "--evidence", "unknown-evidence", 1, 6, "`yes`"),
        (&["s.bif", "--evidence", "Rain=7"], "--evidence", "unknown-evidence", 1, 6, "`no`, `yes`"),
        (&["s.bif", "--evidence", "Rain"], "--evidence", "bad-argument", 1, 1, "NAME=STATE"),
        (&["s.bif", "--evidence", "Rain="], "--evidence", "bad-argument", 1, 6, "missing"),
        (&["s.bif", "--evidence", "Rain=no,"], "--evidence", "bad-argument", 1, 9, "missing"),
        (&["s.bif", "--evidence", "\"Rain=no"], "--evidence", "bad-argument", 1, 1, "quotation"),
        (
            &["s.bif", "--evidence", "Rain=no", "--evidence", "Rain=yes"],
            "--evidence",
            "zero-evidence",
            2,
            1,
            "two",
        ),
        (&["s.bif", "--evidence", "Rain=no,Rain=no"], "--evidence", "bad-argument", 1, 9, "twice"),
        (&["s.bif", "--evidence", "Rain=no,the grass=wet"], "--evidence", "zero-evidence", 1, 1, "zero"),
        (&["m.uai", "--evidence", "0=1,1=2", "--map"], "--evidence", "zero-evidence", 1, 1, "zero"),
        (
            &["m.uai", "--evidence-file", "bad.uai.evid"],
            "bad.uai.evid",
            "unknown-evidence",
            2,
            4,
            "no state 3",
        ),
        (&["m.uai", "--evidence-file", "two.uai.evid"], "two.uai.evid", "zero-evidence", 1, 7, "two states"),
        (&["s.bif", "--samples", "0"], "--samples", "bad-argument", 1, 1, "no sample"),
        (&["s.bif", "--loopy", "--damping", "2"], "--damping", "bad-argument", 1, 1, "damping"),
        (&["s.bif", "--loopy", "--tolerance", "nan"], "--tolerance", "bad-argument", 1, 1, "tolerance"),
        (&["s.bif", "--of", "Rain,Cloudy,Rain"], "--of", "bad-argument", 1, 13, "twice"),
        // What begins with a sign is no option.
        (&["s.bif", "--loopy", "--damping", "-0.5"], "--damping", "bad-argument", 1, 1, "0 ≤ d < 1"),
        (&["s.bif", "--loopy", "--tolerance", "-1"], "--tolerance", "bad-argument", 1, 1, "no tolerance"),
        (&["s.bif", "--of", "-1.5"], "--of", "unknown-evidence", 1, 1, "`Rain`, `the grass`"),
        (&["s.bif", "--evidence", "-1.5=yes"], "--evidence", "unknown-evidence", 1, 1, "`Rain`, `the grass`"),
        (&["s.bif", "--of", "Rain,Snow"], "--of", "unknown-evidence", 1, 6, "`Rain`, `the grass`"),
        (&["sum.bif"], "sum.bif", "file-format", 6, 33, "`Rain` sums to 0.9"),
        (&["cut.bif"], "cut.bif", "file-format", 2, 10, "`Cloudy` has no table"),
        (&["wide.uai"], "wide.uai", "file-format", 1, 10, "states"),
        (&["s.bif", "--max-cells", "3"], "s.bif", "too-large", 1, 1, "--max-cells"),
        (&["s.bif", "--max-bytes", "1e2"], "s.bif", "budget", 1, 1, "--max-bytes"),
    ] {
        let found = refusal(folder.path(), arguments);
        assert_eq!((found.0.as_str(), found.1.as_str()), (file, code), "{arguments:?} {found:?}");
        assert_eq!((found.2, found.3), (line, column), "{arguments:?} {found:?}");
        assert!(found.4.contains(told), "{arguments:?} {found:?}");
    }
}

#[test]
fn what_is_wrong_usage() {
    let folder = folder();
    std::fs::write(folder.path().join("m.txt"), MARKOV).unwrap();
    for arguments in [
        &["none.bif"][..],
        &["m.txt"],
        &["-"],
        &["s.bif", "--evidence-file", "none.uai.evid"],
        &["s.bif", "--max-bytes", "many"],
        &[],
    ] {
        let (code, said, objected) = query(folder.path(), arguments, b"");
        assert_eq!((code, said.as_str()), (Some(2), ""), "{arguments:?}: {objected}");
    }
    assert_eq!(query(folder.path(), &["m.txt", "--format", "uai"], b"").0, Some(0));
}

#[test]
fn any_bytes_are_answered() {
    let folder = folder();
    let mut inputs = vec![b"\xff\xfe".to_vec(), b"{".repeat(100_000), b"(".to_vec(), Vec::new()];
    inputs.extend((0..SPRINKLER.len()).step_by(7).map(|end| SPRINKLER.as_bytes()[..end].to_vec()));
    inputs.extend((0..MARKOV.len()).map(|end| MARKOV.as_bytes()[..end].to_vec()));
    for input in inputs {
        for format in ["bif", "uai"] {
            let (code, said, objected) = query(folder.path(), &["-", "--format", format, "--json"], &input);
            let accepted = said.starts_with("{\"tl\": 1, \"ok\": true");
            assert_eq!(code, Some(i32::from(!accepted)), "{said} {objected}");
            assert_eq!(objected.is_empty(), accepted, "{objected}");
        }
    }
}
