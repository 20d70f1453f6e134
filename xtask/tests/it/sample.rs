//! The data set that is stored with the project, and what the smallest run expects of it.

use std::collections::BTreeMap;
use std::path::Path;

use super::common::Place;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every file below a folder, by its name inside.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name != ".lock") {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_stored_data_set_is_what_its_configuration_makes() {
    let text = std::fs::read_to_string(root().join("configs/data/sample.toml")).unwrap();
    let place = Place::new(&[("data/sample.toml", &text)]);
    place.ok(&["gen-data", "--config", "sample.toml", "--quiet"]);
    let (stored, made) = (files(&root().join("data/sample")), files(&place.path("data/sample")));
    assert_eq!(stored.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (name, bytes) in &stored {
        assert!(made[name] == *bytes, "data/sample/{name} is not what the configuration makes");
    }
}

/// What no model of the 64 formulas can do better than: the mean −ln of the share of formulas that go on as this one does,
/// among those that begin as it does.
#[test]
fn smoke_expects_the_entropy_of_its_formulas() {
    let smoke: toml::Table =
        std::fs::read_to_string(root().join("configs/smoke.toml")).unwrap().parse().unwrap();
    let limit = smoke["train_limit"].as_integer().unwrap() as usize;
    let split = fol::data::Dataset::open(&root().join("data/sample")).unwrap().split("train").unwrap();
    let texts: Vec<Vec<u16>> =
        split.iter().take(limit).map(|(tokens, _)| tokens.iter().map(|t| t.get()).collect()).collect();
    assert_eq!(texts.len(), limit);
    let (mut nats, mut targets) = (0.0, 0);
    for text in &texts {
        for at in 1..text.len() {
            let begin_alike = texts.iter().filter(|other| other.get(..at) == text.get(..at));
            let go_on = texts.iter().filter(|other| other.get(..=at) == text.get(..=at)).count();
            nats -= (go_on as f64 / begin_alike.count() as f64).ln();
            targets += 1;
        }
    }
    let entropy = nats / f64::from(targets);
    let expected = smoke["expect"]["train_nats_max"].as_float().unwrap();
    assert!((expected - entropy - 0.05).abs() < 5e-4, "entropy {entropy}, expected {expected}");
}
