//! Tasks as a whole: names, drawn sequences, batches, sources.

use std::collections::BTreeSet;

use seeded::Family;
use serde_json::json;

use super::batch::{Batch, LossMean};
use super::batches::{Batches, Curriculum, Plan, Split};
use super::tape::{END, START};
use super::*;

fn settings() -> Settings {
    let mut settings = Settings::default();
    assert!(settings.set("pattern", &json!("0,3,-1")).unwrap());
    assert!(settings.set("patterns", &json!("1;0,1")).unwrap());
    assert!(settings.set("modulus", &json!(7)).unwrap());
    assert!(!settings.set("moduli", &json!(7)).unwrap());
    settings
}

fn task(name: &str) -> Task {
    Task::new(name, &settings()).unwrap()
}

fn plan(min_length: usize, max_length: usize) -> Plan {
    let (curriculum, split) = (Curriculum::None, Split::None);
    Plan { seed: 3, batch: 20, min_length, max_length, updates: 100, curriculum, split }
}

#[test]
fn settings_in_every_form() {
    let mut s = Settings::default();
    for (given, wanted) in [(json!("2,-1"), vec![2, -1]), (json!([2, -1]), vec![2, -1]), (json!(3), vec![3])]
    {
        s.set("pattern", &given).unwrap();
        assert_eq!(s.pattern, Some(wanted));
    }
    for given in [json!("1;0,1"), json!([[1], [0, 1]]), json!(["1", "0 1"]), json!([1, "0,1"])] {
        s.set("patterns", &given).unwrap();
        assert_eq!(s.patterns, Some(vec![vec![1], vec![0, 1]]));
    }
    for (key, bad) in
        [("modulus", json!(0)), ("modulus", json!(-1)), ("pattern", json!("a")), ("patterns", json!(true))]
    {
        assert_eq!(s.set(key, &bad).unwrap_err().kind, Kind::Config);
    }
}

#[test]
fn every_name_is_a_task_and_no_other() {
    for name in Task::names() {
        assert_eq!(task(name).name(), name);
    }
    let refused = Task::new("zero-mean-repeat", &Settings::default()).unwrap_err();
    assert_eq!(refused.kind, Kind::UnknownTask);
    assert!(refused.message.contains("\"zero-means-repeat\""), "{refused}");
    assert_eq!(Task::new("pattern", &Settings::default()).unwrap_err().kind, Kind::Config);
    let none = Settings { patterns: Some(Vec::new()), ..Settings::default() };
    assert_eq!(Task::new("multi-pattern", &none).unwrap_err().kind, Kind::Config);
}

/// What is drawn has the length asked for, is a function of the stream, and is what `example` makes of its content.
#[test]
fn drawn_sequences_of_every_task() {
    for name in Task::names() {
        let task = task(name);
        for length in [task.shortest(), 5, 6, 9, 30] {
            for item in 0..10 {
                let stream = || Family::named("tasks").stream(seeded::test_seed().wrapping_add(item));
                let example = task.draw(length, &mut stream()).unwrap();
                assert_eq!(example, task.draw(length, &mut stream()).unwrap());
                let content: Vec<u32> = if task.is_tape() {
                    let walk = example.walk.as_ref().unwrap();
                    assert_eq!(example.input.len(), length + walk.len());
                    example.input[1..length - 1].to_vec()
                } else {
                    assert_eq!(example.input.len(), length);
                    example.input.clone()
                };
                assert_eq!(example, task.example(&content, Size::default()).unwrap(), "{name} {content:?}");
                assert!(example.input.iter().all(|&s| s < task.symbols()));
                assert!(example.target.iter().all(|&c| c < task.classes()));
                assert_eq!(example.input.len(), example.target.len());
                assert_eq!(example.input.len(), example.mask.len());
            }
        }
        if let Some(short) = task.shortest().checked_sub(1) {
            assert_eq!(task.draw(short, &mut Family::named("t").stream(0)).unwrap_err().kind, Kind::Tape);
        }
        assert!(task.draw(LONGEST + 1, &mut Family::named("t").stream(0)).is_err());
    }
}

#[test]
fn a_divider_can_be_forced_and_patterns_fill_their_tapes() {
    let (forced, free) = (task("multi-pattern-2"), task("multi-pattern-1"));
    let without = |task: &Task| {
        let draw = |item| task.draw(4, &mut Family::named("divider").stream(item)).unwrap();
        (0..100).filter(|&item| !draw(item).input.contains(&tape::DIVIDER)).count()
    };
    assert!(without(&forced) == 0 && without(&free) > 50);
    let mut patterns = BTreeSet::new();
    for item in 0..2000 {
        let example = task("variable-pattern-1").draw(20, &mut Family::named("v").stream(item)).unwrap();
        let separator = example.input.iter().skip(1).position(|&s| s == START).unwrap();
        patterns.insert(example.input[1..=separator].to_vec());
    }
    let listed = [vec![1], vec![0, 1], vec![2], vec![0, 1, 1], vec![0, 2]];
    assert_eq!(patterns, BTreeSet::from(listed));
}

#[test]
fn refusals_of_symbols_and_tapes() {
    let kind = |name: &str, text: &str, size: Size| {
        let task = task(name);
        task.parse(text).and_then(|tokens| task.example(&tokens, size)).unwrap_err().kind
    };
    let tight = Size::default();
    for (name, text) in [
        ("flip", "012"),
        ("flip", "0 x"),
        ("flip", "0 -1"),
        ("flip", "s"),
        ("mod-sum", "7"),
        ("mod-sum", "99999999999999999999 1"),
        ("copy", "8"),
        ("s3", "srx"),
        ("s3", "2"),
        ("variable-pattern-1", "1 2 3"),
        ("variable-pattern-1", "1 8 8 3"),
        ("variable-pattern-1", "1 8 9"),
        ("variable-pattern-1", "1 8 10"),
    ] {
        assert_eq!(kind(name, text, tight), Kind::Symbol, "{name} {text}");
    }
    assert_eq!(kind("variable-pattern-1", "0 8 1", tight), Kind::Walk);
    assert_eq!(
        kind("variable-pattern-4", "28 1".split(' ').collect::<Vec<_>>().concat().as_str(), tight),
        Kind::Walk
    );
    assert_eq!(kind("variable-pattern-4", "1 4 8 1 2", tight), Kind::WalkOutOfRange);
    assert_eq!(kind("copy", "123", Size { n: Some(4), n_out: None }), Kind::Tape);
    assert_eq!(kind("copy", "123", Size { n: None, n_out: Some(2) }), Kind::Tape);
    assert_eq!(kind("copy", "123", Size { n: Some(usize::MAX), n_out: Some(3) }), Kind::Tape);
    let s5 = task("s5");
    assert_eq!(s5.parse("s r,1 0").unwrap(), s5.parse("sr10").unwrap());
    assert_eq!(task("mod-sum").parse(" 1,  12\t3,").unwrap(), [1, 12, 3]);
}

#[test]
fn a_batch_of_tapes_counts_what_counts_for_some_sequence() {
    let task = task("multi-pattern-1");
    let examples = ["1234", "1274"].map(|s| task.example(&task.parse(s).unwrap(), Size::default()).unwrap());
    assert_eq!(examples.each_ref().map(|e| e.walk.clone().unwrap()), [vec![1, 2, 3, 4], vec![1, 2, 4, 4]]);
    let shorter = task.example(&task.parse("7712").unwrap(), Size::default()).unwrap(); // 1 2
    let batch = Batch::new(&[examples[0].clone(), shorter.clone()]);
    assert_eq!((batch.sequences, batch.steps, batch.counted()), (2, 10, 4));
    assert_eq!(batch.tokens[..4], [START, START, 1, 7]);
    assert_eq!(batch.targets[10..18], [1, 1, 2, 2, 3, END, 4, END]);
    assert_eq!(
        (batch.sequence_steps(), batch.divisor(LossMean::Mean), batch.divisor(LossMean::Authors)),
        (20, 8, 4)
    );
    let second = batch.part(1..2);
    assert_eq!((second.sequences, second.mask == batch.mask), (1, true));
    assert_eq!(second.tokens[..8], shorter.input);
    assert_eq!(batch.part(0..9), batch);
}

#[test]
fn batches_are_functions_of_seed_purpose_and_item() {
    let batches = Batches::new(task("parity"), plan(2, 9)).unwrap();
    assert_eq!(batches.train(5).unwrap(), batches.train(5).unwrap());
    assert_ne!(batches.train(5).unwrap(), batches.train(6).unwrap());
    let other = Batches::new(task("parity"), Plan { seed: 4, ..plan(2, 9) }).unwrap();
    assert_ne!(batches.train(5).unwrap(), other.train(5).unwrap());
    let lengths: BTreeSet<usize> = (1..200).map(|u| batches.train(u).unwrap().steps).collect();
    assert_eq!(lengths, (2..=9).collect());
    let valid = batches.valid().unwrap();
    assert_eq!(valid.iter().map(|b| b.sequences).sum::<usize>(), 512);
    let tested = |n| batches.test(40, n).map(|b| b.unwrap()).collect::<Vec<_>>();
    assert_eq!(tested(300).iter().map(|b| b.sequences).collect::<Vec<_>>(), [128, 128, 44]);
    assert_eq!(tested(300)[..2], tested(256)[..]);
    assert!(tested(300).iter().all(|b| b.steps == 40));
}

#[test]
fn the_curriculum_grows_during_the_first_half() {
    let linear = Plan { curriculum: Curriculum::Linear, ..plan(2, 12) };
    let batches = Batches::new(task("parity"), linear).unwrap();
    let greatest: Vec<usize> =
        [1, 2, 6, 26, 50, 51, 100, 1000].iter().map(|&u| batches.greatest(u)).collect();
    assert_eq!(greatest, [2, 2, 3, 7, 11, 12, 12, 12]);
    assert_eq!(batches.train(1).unwrap().steps, 2);
}

#[test]
fn an_enumeration_is_divided_without_overlap() {
    let split = Split::Enumerate { train_fraction: 0.3 };
    let batches = Batches::new(task("ident"), Plan { split, ..plan(6, 6) }).unwrap();
    let strings = |batches: &[Batch]| -> BTreeSet<Vec<u32>> {
        let one =
            |batch: &Batch| (0..batch.sequences).map(|b| batch.part(b..b + 1).tokens).collect::<Vec<_>>();
        batches.iter().flat_map(one).collect()
    };
    let train = strings(&(1..100).map(|u| batches.train(u).unwrap()).collect::<Vec<_>>());
    let test = strings(&batches.test(6, 1000).map(|b| b.unwrap()).collect::<Vec<_>>());
    let valid = strings(&batches.valid().unwrap());
    assert_eq!((train.len(), test.len(), valid.len()), (19, 19, 26));
    assert_eq!(train.union(&test).chain(&valid).collect::<BTreeSet<_>>().len(), 64);
    assert_eq!(batches.test(8, 10).next().unwrap().unwrap().steps, 8);
}

#[test]
fn plans_that_cannot_be_drawn_are_refused() {
    let refused = |name: &str, plan: Plan| Batches::new(task(name), plan).unwrap_err().kind;
    let enumerate = |train_fraction| Split::Enumerate { train_fraction };
    for (name, plan) in [
        ("parity", plan(0, 5)),
        ("parity", plan(6, 5)),
        ("parity", plan(1, usize::MAX)),
        ("variable-pattern-3", plan(4, 9)),
        ("parity", Plan { batch: 0, ..plan(1, 5) }),
        ("parity", Plan { batch: usize::MAX, ..plan(1, 5) }),
        ("parity", Plan { split: enumerate(0.1), ..plan(4, 5) }),
        ("parity", Plan { split: enumerate(0.6), ..plan(5, 5) }),
        ("parity", Plan { split: enumerate(f64::NAN), ..plan(5, 5) }),
        ("parity", Plan { split: enumerate(0.5), ..plan(64, 64) }),
        ("copy", Plan { split: enumerate(0.1), ..plan(5, 5) }),
    ] {
        assert_eq!(refused(name, plan), Kind::Config, "{name} {plan:?}");
    }
}
