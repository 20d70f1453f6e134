//! Every kind of refusal is produced: most by a case of the corpus, the rest here.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fol::data::{Config, Dataset, Options, Watch, generate};
use fol::error::{Kind, Refusal};
use fol::glyph::picture::read;
use serde_json::Value;

/// The kinds that the corpus names; that the command produces them is what `cases` tests.
fn of_the_cases() -> BTreeSet<String> {
    fn collect(value: &Value, kinds: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                if let Some(kind) = object.get("error").and_then(|error| error["kind"].as_str()) {
                    kinds.insert(kind.to_owned());
                }
                object.values().for_each(|inner| collect(inner, kinds));
            }
            Value::Array(list) => list.iter().for_each(|inner| collect(inner, kinds)),
            _ => {}
        }
    }
    let mut kinds = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                collect(&serde_json::from_str::<Value>(line).unwrap()["expect"], &mut kinds);
            }
        }
    }
    kinds
}

/// A data set in a folder, made if it is not there.
fn make(folder: &Path, changes: &[(&str, &str)]) -> Result<(), Refusal> {
    let config =
        Config::read("stream = { train = 5, val = 1, test = 1 }\niid = 1", &crate::common::changes(changes))?;
    let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
    generate(&config, folder, Options::default(), &watch).map(drop)
}

fn of_data_sets() -> [Result<(), Refusal>; 5] {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make(folder, &[]).unwrap();
    let exists = make(folder, &[("seed", "1")]);
    let too_long = make(&folder.join("long"), &[("max_tokens", "20")]);
    let opened = || Dataset::open(folder).map(drop);
    let tokens = folder.join("train-00000.tok");
    let mut bytes = std::fs::read(&tokens).unwrap();
    if let Some(byte) = bytes.first_mut() {
        *byte ^= 1;
    }
    std::fs::write(&tokens, &bytes).unwrap();
    let other = opened();
    bytes.pop();
    std::fs::write(&tokens, &bytes).unwrap();
    let short = opened();
    std::fs::write(folder.join("manifest.json"), "{}").unwrap();
    [exists, too_long, opened(), other, short]
}

/// One black cell where no symbol has one alone.
fn unknown_glyph() -> Vec<u8> {
    let mut pixels = [255; 625];
    pixels[300] = 0;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 25, 25);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file
}

#[test]
fn every_kind_is_produced() {
    let mut produced = of_the_cases();
    let kinds = of_data_sets().map(|result| result.unwrap_err().kind);
    assert_eq!(
        kinds,
        [Kind::Exists, Kind::TooLong, Kind::BadManifest, Kind::DigestMismatch, Kind::Truncated]
    );
    produced.extend(kinds.map(|kind| format!("{kind:?}")));

    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("a.png");
    std::fs::write(&picture, unknown_glyph()).unwrap();
    assert_eq!(read(std::io::Cursor::new(unknown_glyph())).unwrap().symbol(), None);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_fol"))
        .args(["glyph", "--json", "--read"])
        .arg(&picture)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["items"][0]["error"]["kind"], "UnknownGlyph");
    produced.insert("UnknownGlyph".to_owned());

    let all: BTreeSet<String> = Kind::ALL.iter().map(|kind| format!("{kind:?}")).collect();
    assert_eq!(all.difference(&produced).collect::<Vec<_>>(), Vec::<&String>::new(), "not produced");
    assert_eq!(produced.difference(&all).collect::<Vec<_>>(), Vec::<&String>::new(), "no kinds");
}
