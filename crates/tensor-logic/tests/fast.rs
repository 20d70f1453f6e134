//! The fast engine against the reference interpreter and against loops written by hand.

use common::engines::{STORAGES, analysed, disagreement};

mod common;

#[test]
fn the_corpus_has_the_values_of_the_reference() {
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        let Ok(program) = analysed(&text) else { continue };
        for storage in STORAGES {
            if let Some(difference) = disagreement(&program, storage) {
                wrong.push(format!("{name}: {difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}
