//! The command as people and scripts meet it.

use std::process::{Command, Output};

use calculemus_base::testing;
use fol_prover::Problem;
use serde_json::{Value, json};

fn fol_prove(args: &[&str], stdin: &str) -> Output {
    testing::output(Command::new(env!("CARGO_BIN_EXE_fol-prove")).args(args), stdin.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The exit status and the items that `--json` prints.
#[track_caller]
fn items(args: &[&str], stdin: &str) -> (Option<i32>, Vec<Value>) {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let output = fol_prove(&args, stdin);
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "fol-prove/1");
    (output.status.code(), document["items"].as_array().unwrap().clone())
}

#[test]
fn an_entailment_as_json() {
    let input = "P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)";
    let (status, items) = items(&[input], "");
    assert_eq!(status, Some(0));
    let [item] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!(
        *item,
        json!({
            "input": input, "ok": true, "verdict": "entailed", "reason": null, "steps": item["steps"], "model": null,
            "proof": [
                {"id": 0, "rule": "premise 1", "parents": [], "clause": "P0(c0)", "substitutions": [], "equality": []},
                {"id": 1, "rule": "premise 2", "parents": [], "clause": "¬P0(X0) ∨ P1(X0)", "substitutions": [], "equality": []},
                {"id": 2, "rule": "denied conclusion", "parents": [], "clause": "¬P1(c0)", "substitutions": [], "equality": []},
                {"id": 3, "rule": "instances", "parents": item["proof"][3]["parents"], "clause": "⊥",
                 "substitutions": item["proof"][3]["substitutions"], "equality": []},
            ],
        })
    );
    assert!(item["proof"][3]["substitutions"].as_array().unwrap().contains(&json!({"X0": "c0"})));
}

#[test]
fn a_refutation_as_json() {
    let (status, found) = items(&["∀x f(x) ≠ x, P(x4, c3) ⊢ P(c3, x4)"], "");
    assert_eq!(
        (status, &found[0]["verdict"], &found[0]["proof"]),
        (Some(0), &json!("refuted"), &Value::Null)
    );
    let model = &found[0]["model"];
    assert_eq!(model["size"], 2);
    assert_eq!(model["functions"]["f0/1"], json!([[0, 1], [1, 0]]));
    let (c, x) = (&model["constants"]["c3"], &model["variables"]["x4"]);
    assert_eq!(model["predicates"]["P0/2"], json!([[x, c]]));
    let (_, found) = items(&["P(c) ⊢ Q(c)"], "");
    let expected = json!({"size": 1, "constants": {"c0": 0}, "variables": {}, "functions": {}, "predicates": {"P0/1": [[0]], "P1/1": []}});
    assert_eq!(found[0]["model"], expected);
}

#[test]
fn an_unknown_is_status_1() {
    let infinite = "∀x ∀y (f(x) = f(y) → x = y), ∀x f(x) ≠ a ⊢ ⊥";
    let (status, found) = items(&[infinite, "P ⊢ P", "--steps", "2000"], "");
    assert_eq!(
        (status, &found[0]["verdict"], &found[1]["verdict"]),
        (Some(1), &json!("unknown"), &json!("entailed"))
    );
    assert!(found[0]["reason"].is_string() && found[0]["proof"].is_null() && found[0]["model"].is_null());
    let (status, found) = items(&["P(c), P(c) → Q(c) ⊢ Q(c)", "--steps", "0"], "");
    assert_eq!((status, &found[0]["reason"]), (Some(1), &json!("the limit of steps is reached")));
    let (status, _) = items(&[infinite, "--ms", "20"], "");
    assert_eq!(status, Some(1));
}

#[test]
fn satisfiable_takes_all_inputs_together() {
    let (status, found) = items(&["--satisfiable", "P(c)", "¬P(c)"], "");
    assert_eq!((status, found.len(), &found[0]["verdict"]), (Some(0), 1, &json!("unsatisfiable")));
    assert_eq!(found[0]["input"], "P(c), ¬P(c)");
    let (_, found) = items(&["--satisfiable", "P(c)", "-"], "¬P(d)\nQ\n");
    assert_eq!((found.len(), &found[0]["verdict"]), (1, &json!("satisfiable")));
    // A name is the same in all of them, and two names are two.
    let (_, found) = items(&["--satisfiable", "P(c)", "¬Q(c)"], "");
    assert_eq!(found[0]["verdict"], "satisfiable");
    let (_, found) = items(&["--satisfiable", "Q(d). P(c) → ¬Q(d).", "P(c)"], "");
    assert_eq!(found[0]["verdict"], "unsatisfiable");
    let (status, found) = items(&["--satisfiable", "P(c)", "P ⊢ Q"], "");
    assert_eq!((status, &found[0]["error"]["kind"]), (Some(1), &json!("UnexpectedSymbol")));
}

#[test]
fn inputs_from_standard_input() {
    let (status, found) = items(&["-", "⊢ ⊤"], "P ⊢ P\n\n  P ⊢ Q \n");
    let verdicts: Vec<&Value> = found.iter().map(|item| &item["verdict"]).collect();
    assert_eq!(
        (status, verdicts),
        (Some(0), vec![&json!("entailed"), &json!("refuted"), &json!("entailed")])
    );
    assert_eq!(found[1]["input"], "  P ⊢ Q ");
}

#[test]
fn refusals_are_located() {
    let (status, found) = items(&["P(x", "P ⊢ Q", "P"], "");
    assert_eq!((status, &found[0]["ok"], &found[1]["ok"]), (Some(1), &json!(false), &json!(true)));
    assert_eq!(found[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["input", "ok", "error"]);
    assert_eq!(found[0]["error"]["kind"], "UnexpectedEnd");
    let output = fol_prove(&["P ⊢ <unknown>"], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "UnexpectedSymbol: the conclusion <unknown> asks nothing\n  P ⊢ <unknown>\n      ^^^^^^^^^\n  write the formula that may follow\n"
    );
    let output = fol_prove(&["∀x:S0 P(x), ∃x:S1 P(x) ⊢ ∃x P(x)", "--sorts", "--json"], "");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["items"][0]["error"]["kind"], "SortMismatch");
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &[][..],
        &["--steps", "x", "P ⊢ P"],
        &["--steps", "1", "--ms", "1", "P ⊢ P"],
        &["--nothing", "P ⊢ P"],
        &["--json"],
        &["--tptp", "--svg", "x", "P ⊢ P"],
        &["--svg", "x", "P ⊢ P", "P ⊢ P"],
        &["--completions", "klingon"],
    ] {
        let output = fol_prove(args, "");
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{args:?}");
    }
}

#[test]
fn trees_and_tables_for_people() {
    let output = fol_prove(&["∀x f(x) = x, P(f(f(a))) ⊢ P(a)", "∀x f(x) ≠ x ⊢ P(c)"], "");
    let said = text(&output.stdout);
    assert!(said.starts_with("entailed ("), "{said}");
    for piece in
        ["[denied conclusion]\n", "└─ ", "X0 ↦ ", "refuted (", "domain: 0, 1\n", "f0(0) = 1\nf0(1) = 0\n"]
    {
        assert!(said.contains(piece), "{said}");
    }
}

#[test]
fn tptp_goes_out() {
    let output = fol_prove(&["P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)", "--tptp"], "");
    assert_eq!(
        text(&output.stdout),
        "fof(s1_p1, axiom, p0(c0)).\nfof(s1_p2, axiom, ![X0]: (p0(X0) => p1(X0))).\nfof(s1_c, conjecture, p1(c0)).\n"
    );
    let (_, found) = items(&["--satisfiable", "P(c)", "Q", "--tptp"], "");
    assert_eq!(found[0]["tptp"], "fof(s1, axiom, p0(c0)).\nfof(s2, axiom, p1).");
}

#[test]
fn a_proof_is_drawn() {
    let folder = std::env::temp_dir().join(format!("fol-prove-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("proof.svg");
    let path = file.to_str().unwrap();
    assert_eq!(fol_prove(&["a = b, P(a) ⊢ P(b)", "--svg", path], "").status.code(), Some(0));
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(
        picture.starts_with("<svg") && picture.contains("P0(c0)") && picture.contains("premise 2"),
        "{picture}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn other_provers_are_asked_beside_ours() {
    let (status, found) = items(&["P ⊢ P", "--prover", "no-such-prover"], "");
    assert_eq!((status, &found[0]["verdict"]), (Some(0), &json!("entailed")));
    assert_eq!(
        found[0]["other"],
        json!({"prover": "no-such-prover", "error": "`no-such-prover` is not to be found"})
    );
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = fol_prove(&["--completions", shell], "");
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("satisfiable"), "{shell}");
    }
}

/// Whatever stands on a line, the command answers.
#[test]
fn random_lines_are_answered() {
    let pieces = [
        "P(",
        "x",
        ")",
        ",",
        "⊢",
        "∀",
        "∃!",
        "=",
        "→",
        "f(",
        "c0",
        " ",
        "¬",
        ".",
        ":=",
        "<",
        ":S0 ",
        "⊥",
        "≡",
        "0",
        "§",
        "<unknown>",
    ];
    let mut lines = String::new();
    for item in 0..300 {
        let mut draw = crate::common::drawn("lines", item);
        let line: String =
            (0..draw.below(14)).map(|_| pieces[draw.below(pieces.len() as u64) as usize]).collect();
        lines += &format!("{line} ⊢ P(c)\n");
    }
    let (_, found) = items(&["-", "--steps", "500"], &lines);
    assert_eq!(found.len(), 300);
    let accepted = found.iter().filter(|item| item["ok"] == true).count();
    assert!(accepted > 0 && accepted < 300, "{accepted}");
    for item in found.iter().filter(|item| item["ok"] == true) {
        assert!(Problem::read(item["input"].as_str().unwrap()).is_ok());
    }
}
