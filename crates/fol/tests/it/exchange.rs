//! `fol import` and `fol export` from the shell: every format there and back, and records that are refused.

use std::path::Path;
use std::process::Command;

use fol::symbol::SymbolId;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The item that a command answers, and its exit status.
fn fol(folder: &TempDir, args: &[&str]) -> (Value, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_fol"))
        .current_dir(folder)
        .args(args)
        .arg("--json")
        .output()
        .unwrap();
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    (document["items"][0].take(), output.status.code().unwrap())
}

/// Imports a file of this content.
fn import(format: &str, content: &str, more: &[&str]) -> (Value, i32, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), content).unwrap();
    std::fs::write(folder.path().join("vocab"), "NUM_000\nVAR\nEQUALS\nMESSAGE_END\n").unwrap();
    let args = [&["import", "--format", format, "in", "--out", "out.jsonl"], more].concat();
    let (item, status) = fol(&folder, &args);
    (item, status, lines(&folder.path().join("out.jsonl")))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn check_counts(item: &Value, read: u64, written: u64, refused: &[(u64, &str)]) {
    assert_eq!((&item["read"], &item["written"]), (&json!(read), &json!(written)), "{item}");
    let list = item["refused"].as_array().unwrap();
    let kinds: Vec<(u64, &str)> = list
        .iter()
        .map(|entry| (entry["record"].as_u64().unwrap(), entry["error"]["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, refused);
    assert_eq!(item["ok"], json!(refused.is_empty()));
    assert_eq!(item.get("error"), list.first().map(|entry| &entry["error"]));
}

/// A folder with a data set whose split `test` holds these texts.
fn data_set(texts: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (mut tok, mut off, mut rec) = (vec![], vec![0_u64], vec![]);
    for (i, text) in texts.iter().enumerate() {
        let parsed = fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Lenient).unwrap();
        let around = [SymbolId::BOS].into_iter().chain(parsed.tokens).chain([SymbolId::EOS]);
        around.for_each(|id| tok.extend(id.get().to_le_bytes()));
        off.push(tok.len() as u64 / 2);
        rec.extend((10 + i as u64).to_le_bytes());
        rec.extend(0.5_f64.to_le_bytes());
        rec.extend([0; 24]);
    }
    let off: Vec<u8> = off.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let digests = json!({"tok": digest(&tok), "off": digest(&off), "rec": digest(&rec)});
    let tokens = tok.len() / 2;
    let keys = json!({"K0": 0, "K1": 0, "K2": 0, "K3": 0});
    let file = json!({"tok": "t", "off": "o", "rec": "r", "formulas": texts.len(), "tokens": tokens,
        "blake3": digests});
    let split = |formulas: usize, tokens: usize, files: &[Value]| {
        json!({"formulas": formulas, "tokens": tokens, "levels": {}, "mean_nll": null, "distinct": keys,
            "files": files})
    };
    let none = split(0, 0, &[]);
    let manifest = json!({
        "schema": "fol663-data/1", "name": "", "law": {}, "seed": 0, "split": "stream", "dedup": "none",
        "weights": [800, 100, 100], "generator": "", "config_digest": "",
        "splits": {"train": none, "val": none, "test": split(texts.len(), tokens, &[file]), "iid": none},
        "overlap": {}, "draws": {"made": 0, "kept": 0, "duplicates": 0, "redrawn": 0}, "histogram": [],
        "optimum": null, "digest": "",
    });
    for (name, bytes) in [("t", tok), ("o", off), ("r", rec), ("manifest.json", manifest.to_string().into())]
    {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn export(folder: &TempDir, format: &str, out: &str, more: &[&str]) -> (Value, i32) {
    fol(folder, &[&["export", ".", "--split", "test", "--format", format, "--out", out], more].concat())
}

#[test]
fn jsonl_records_are_read_one_by_one() {
    let content = r#"{"text":"P∧Q→R","item":7}

        {"tokens":[656,639,649,640,657],"nll":1.5}
        {"tokens":[649],"nll":1.5}
        {"tokens":[700]}
        {"tokens":"649"}
        {"tokens":[]}
        {"text":"P("}
        {}
        [1]
        not json
        {"text":"P0. P1."}"#;
    let (item, status, records) = import("jsonl", content, &[]);
    let refused = [
        (3, "UnknownId"),
        (4, "BadRecord"),
        (5, "UnexpectedEnd"),
        (6, "UnexpectedEnd"),
        (7, "BadRecord"),
        (8, "BadRecord"),
        (9, "BadRecord"),
    ];
    check_counts(&item, 11, 4, &refused);
    assert_eq!(status, 1);
    assert_eq!(records[0]["item"], 7);
    assert_eq!(records[0]["text"], "((P0 ∧ P1) → P2)");
    assert_eq!((&records[0]["level"], &records[0]["nodes"]), (&json!(2), &json!(5)));
    assert_eq!((&records[1]["tokens"], &records[1]["nll"]), (&json!([649]), &json!(null)));
    assert_eq!(records[2]["nll"], 1.5);
    assert_eq!((&records[3]["item"], &records[3]["level"]), (&json!(10), &json!(null)));
}

#[test]
fn the_key_of_a_record_is_that_of_its_class() {
    let (_, _, records) = import("jsonl", "{\"text\":\"∀x7 P1(x7)\"}\n{\"text\":\"∀x0 P9(x0)\"}", &[]);
    assert_eq!(records[0]["key"].as_str().unwrap().len(), 32);
    assert_eq!(records[0]["key"], records[1]["key"]);
}

#[test]
fn a_tptp_file_is_one_record() {
    let (item, status, records) =
        import("tptp", "fof(a, axiom, ![X]: p(X)).\nfof(b, conjecture, p(c)).", &[]);
    check_counts(&item, 1, 1, &[]);
    assert_eq!(status, 0);
    assert_eq!(item["text"], "∀x0 P0(x0) ⊢ P0(c0)");
    assert_eq!(item["names"], json!({"CONST": {"c": 0}, "PRED": {"p": 0}, "VAR": {"X": 0}}));
    assert_eq!(item["tokens"], records[0]["tokens"]);
    let (item, status, _) = import("tptp", "include('a.ax').", &[]);
    check_counts(&item, 1, 0, &[(0, "TptpUnsupported")]);
    assert_eq!((&item["error"]["span"], status), (&json!([0, 7]), 1));
}

/// Samples of all prefixes, as labels.
fn samples(formulas: &[&str]) -> String {
    let mut samples = vec![];
    for formula in formulas {
        let labels: Vec<&str> = formula.split_whitespace().collect();
        samples.extend((1..labels.len()).map(|i| json!({"context": labels[..i], "target": labels[i]})));
    }
    json!({"num_formulas": formulas.len(), "samples": samples}).to_string()
}

#[test]
fn public_samples_with_boundaries() {
    let content = samples(&[
        "MESSAGE_START NOT TRUE MESSAGE_END",
        "MESSAGE_START VAR NUM_001 PLUS VAR NUM_002 END",
        "TRUE END",
        "MESSAGE_START NOT NOT",
        "MESSAGE_START NOT MESSAGE_END",
        "MESSAGE_START FORALL VAR NUM_012 PRED NUM_624 LPAREN VAR NUM_012 RPAREN END",
    ]);
    let (item, _, records) = import("public-json", &content, &[]);
    check_counts(&item, 5, 3, &[(1, "UnmappedSymbol"), (3, "UnexpectedSymbol")]);
    assert_eq!(item["refused"][0]["error"]["token"], 3);
    let texts: Vec<&Value> = records.iter().map(|record| &record["text"]).collect();
    assert_eq!(texts, ["¬⊤", "⊤", "∀x12 P624(x12)"]);
}

#[test]
fn public_samples_without_boundaries() {
    let content = samples(&["NOT NOT TRUE", "VAR NUM_000 EQUALS VAR NUM_000", "NOT FALSE"]);
    let (item, _, records) = import("public-json", &content, &[]);
    check_counts(&item, 3, 3, &[]);
    let texts: Vec<&Value> = records.iter().map(|record| &record["text"]).collect();
    assert_eq!(texts, ["¬¬⊤", "x0 = x0", "¬⊥"]);
}

#[test]
fn public_ids_are_those_of_the_vocabulary() {
    let content = json!({"samples": [{"context": [1, 0, 2, 1, 0], "target": 3}]}).to_string();
    let (item, _, records) = import("public-json", &content, &["--vocab", "vocab"]);
    check_counts(&item, 1, 1, &[]);
    assert_eq!(records[0]["text"], "x0 = x0");
    let content = json!({"samples": [{"context": [662, 641, 653, 5, 650], "target": 663}]}).to_string();
    let (item, _, _) = import("public-json", &content, &[]);
    check_counts(&item, 1, 0, &[(0, "UnexpectedSymbol")]);
    let content = json!({"samples": [{"context": [671], "target": 663}, {"context": 5}, 7]}).to_string();
    let (item, _, _) = import("public-json", &content, &[]);
    check_counts(&item, 3, 0, &[(0, "UnknownId"), (1, "BadRecord"), (2, "BadRecord")]);
    for content in ["", "[]", "{}", "{\"samples\":[", "{\"samples\":3}"] {
        check_counts(&import("public-json", content, &[]).0, 1, 0, &[(0, "BadRecord")]);
    }
}

#[test]
fn every_format_goes_out_and_comes_back() {
    let texts = ["∀x1 (P5(x1) → P6(x1, c0))", "¬x627 = c2", "∃x0 f1(x0) ≤ x3", "P0, P1 ⊢ ⊥"];
    let folder = data_set(&texts);
    let texts: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    let imported = |format: &str, file: &str| -> Vec<Value> {
        let (item, status) = fol(&folder, &["import", "--format", format, file, "--out", "back"]);
        assert_eq!(status, 0, "{item}");
        lines(&folder.path().join("back")).into_iter().map(|mut record| record["text"].take()).collect()
    };

    let (item, status) = export(&folder, "jsonl", "a.jsonl", &[]);
    assert_eq!((&item["written"], status), (&json!(4), 0));
    let records = lines(&folder.path().join("a.jsonl"));
    assert_eq!((&records[1]["item"], &records[1]["nll"]), (&json!(11), &json!(0.5)));
    assert_eq!(imported("jsonl", "a.jsonl"), texts);

    assert_eq!(export(&folder, "public-json", "a.json", &[]).1, 0);
    assert_eq!(imported("public-json", "a.json"), texts);
    let public: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(public["num_formulas"], 4);
    assert_eq!(public["samples"].as_array().unwrap().len(), public["num_samples"].as_u64().unwrap() as usize);
    assert_eq!(public["samples"][0], json!({"context": [662], "target": 641, "formula_len": 21}));

    let (item, _) = export(&folder, "tptp", "problems", &["--limit", "2"]);
    assert_eq!(item["written"], 2);
    assert_eq!(imported("tptp", "problems/10.p"), ["∀x0 (P5(x0) → P6(x0, c0))"]);
    assert_eq!(std::fs::read_dir(folder.path().join("problems")).unwrap().count(), 2);
}

#[test]
fn what_cannot_be_written_or_found_is_refused() {
    let folder = data_set(&["P0 ⊢ <unknown>", "P0"]);
    let kind = |(item, status): (Value, i32)| {
        assert_eq!((&item["ok"], status), (&json!(false), 1));
        item["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(kind(export(&folder, "tptp", "problems", &[])), "TptpUnsupported");
    assert!(folder.path().join("problems/11.p").exists());
    assert_eq!(kind(export(&folder, "parquet", "a", &[])), "BadValue");
    assert_eq!(kind(export(&folder, "jsonl", "no/where", &[])), "NotFound");
    assert_eq!(kind(fol(&folder, &["import", "--format", "jsonl", "missing"])), "NotFound");
    assert_eq!(kind(fol(&folder, &["import", "--format", "parquet", "t"])), "BadValue");
    let export_from =
        |from: &str| fol(&folder, &["export", from, "--split", "test", "--format", "jsonl", "--out", "a"]);
    assert_eq!(kind(export_from("missing")), "NotFound");
    let tokens = folder.path().join("t");
    let whole = std::fs::read(&tokens).unwrap();
    std::fs::write(&tokens, &whole[..3]).unwrap();
    assert_eq!(kind(export_from(".")), "Truncated");
    let mut other = whole;
    other[2] ^= 1;
    std::fs::write(&tokens, other).unwrap();
    assert_eq!(kind(export_from(".")), "DigestMismatch");
    std::fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    assert_eq!(kind(export_from(".")), "BadManifest");
    assert!(!folder.path().join("a").exists());
}

#[test]
fn random_files_are_answered() {
    use fol::exchange::{Format, Vocabulary, import};
    const PIECES: [&str; 16] = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"samples\"",
        "\"context\"",
        "\"target\"",
        "\"tokens\"",
        "\"text\"",
        "649",
        "\"P0\"",
        "null",
        "\n",
        "{\"samples\":[{\"context\":[662,625],\"target\":663},",
    ];
    let vocabulary = Vocabulary::default();
    let family = seeded::Family::named("fol-test:exchange:0");
    for item in 0..5_000 {
        let mut stream = crate::common::drawn(&family, item);
        let length = stream.below(64);
        let bytes: Vec<u8> = (0..length).map(|_| stream.next_u64() as u8).collect();
        let pieces: String = (0..length).map(|_| PIECES[stream.below(16) as usize]).collect();
        for file in [bytes, pieces.into_bytes()] {
            for format in [Format::Jsonl, Format::Tptp, Format::PublicJson] {
                let done = import(format, file.as_slice(), &vocabulary, &mut |record| {
                    record.line()?;
                    Ok(())
                });
                let done = done.unwrap();
                assert_eq!(done.read, done.written + done.refused.len() as u64);
            }
            if let Err(refusal) = Vocabulary::read(file.as_slice()) {
                assert_eq!(refusal.kind, fol::error::Kind::BadRecord);
            }
        }
    }
}
