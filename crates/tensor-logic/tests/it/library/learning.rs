//! The examples of the library learn: the loss falls below 0.1 nats and every answer is right, from several seeds.

use std::path::{Path, PathBuf};

use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::library;
use tensor_logic::notebook::{EngineKind, Notebook};

use crate::common::answers::calculated;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("library/examples")
}

#[test]
fn every_layer_has_an_example_that_learns() {
    for name in library::names() {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        assert!(text.contains(&format!("@include(\"std/{name}\"")), "{name}");
        for seed in 0..3 {
            let mut engine = Auto::new(Box::new(Fast::default()));
            let found = calculated(&text, &folder(), seed, &mut engine).unwrap();
            assert_eq!(found.outcome.refusal, None, "{name}");
            assert_eq!(found.warnings, [], "{name}");
            let [learned, good] = found.outcome.answers.as_slice() else { panic!("{name}: two answers") };
            let minimized = learned.minimize.as_ref().unwrap();
            // A start may be good by chance (0.36 is the best one seen), not as good as what is learned.
            let (first, last) = (minimized.first, minimized.last);
            assert!(first > 0.3 && last < 0.1, "{name}, seed {seed}: {first} to {last}");
            assert_eq!(good.content.numbers(), [1.0], "{name}, seed {seed}: all is right");
        }
    }
}

/// Every parameter of every layer has the gradient that dual numbers give it, and it is not 0.
#[test]
fn every_parameter_has_a_gradient() {
    for name in library::names() {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let [fast, plain] = [EngineKind::Auto, EngineKind::Reference].map(|engine| {
            let mut notebook = Notebook::new(&text);
            notebook.set_engine(engine);
            notebook.gradients("Loss", &[]).unwrap_or_else(|refused| panic!("{name}: {refused:?}")).by
        });
        assert!(!plain.is_empty(), "{name}");
        for ((parameter, found), (other, wanted)) in fast.iter().zip(&plain) {
            assert_eq!(parameter, other);
            let (found, wanted) = (found.answer.content.numbers(), wanted.answer.content.numbers());
            assert_eq!(found.len(), wanted.len());
            let largest = wanted.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
            // Keys are compared with each other: what all of them have in common changes no weight.
            assert!(largest > 1e-9, "{name}: {parameter} has no gradient");
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * largest;
            assert!(
                found.iter().zip(wanted).all(near),
                "{name}: {parameter}: {found:?} instead of {wanted:?}"
            );
        }
    }
}
