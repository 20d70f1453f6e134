//! Certificates: exact automata have one, what is damaged has none, what is wrong has a counterexample.

use linear_logic_rnn::certify::certificate::{Certificate, SCHEMA, State, Subject, digest};
use linear_logic_rnn::certify::minimal::Minimal;
use linear_logic_rnn::certify::{Verdict, certify, checker};
use linear_logic_rnn::engine::{Engine, Inputs, Sequences, Targets};
use linear_logic_rnn::error::Kind;
use linear_logic_rnn::options::Options;
use linear_logic_rnn::task::tape::Size;
use serde_json::{Value, json};

fn subject(cell: &str, sizes: &Value, options: &Value, task: &str) -> Subject {
    Subject {
        cell: cell.to_owned(),
        sizes: serde_json::from_value(sizes.clone()).unwrap(),
        options: Options::read(options).unwrap(),
        task: task.to_owned(),
        modulus: None,
    }
}

/// Weights by name, row by row; what is not named is 0.
fn theta(subject: &Subject, given: &[(&str, Vec<f32>)]) -> Vec<f32> {
    let cell = subject.cell().unwrap();
    let of = |name: &str, len: usize| {
        let found = given.iter().find(|(known, _)| *known == name);
        let entries = found.map_or_else(|| vec![0.0; len], |(_, entries)| entries.clone());
        assert_eq!(entries.len(), len, "{name}");
        entries
    };
    cell.step.trained().flat_map(|(_, weight)| of(&weight.name, weight.len())).collect()
}

fn identity(n: usize) -> Vec<f32> {
    (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect()
}

/// Section 12 of the rules: the automaton of a task as a cell, its state one-hot.
fn exact(task: &str) -> (Subject, Vec<f32>) {
    let bare = subject("ll", &json!({}), &json!({}), task);
    let machine = bare.machine().unwrap();
    let (n, letters) = (machine.next.len(), machine.next[0].len());
    let sizes = json!({"input": letters, "hidden": n, "aux": n, "output": n, "readout": 0});
    let options =
        json!({"preset": "paper", "v": "full", "lambda": [1], "project": "identity", "h0": "learned"});
    let subject = subject("ll", &sizes, &options, task);
    let mut v = vec![0.0; letters * n * n];
    for (from, row) in machine.next.iter().enumerate() {
        for (letter, to) in row.iter().enumerate() {
            v[(letter * n + *to as usize) * n + from] = 1.0;
        }
    }
    let start = (0..n).map(|at| if at == machine.start as usize { 1.0 } else { 0.0 }).collect();
    let theta = theta(&subject, &[("V", v), ("C", vec![1.0]), ("h0", start), ("E", identity(n))]);
    (subject, theta)
}

fn certified(subject: &Subject, theta: &[f32]) -> Certificate {
    match certify(subject, theta, 1).unwrap() {
        Verdict::Certified(certificate, images) => {
            assert!(images >= certificate.states.len());
            *certificate
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(certificate: &Certificate, theta: &[f32], says: &str) {
    let refusal = checker::check(certificate, theta).unwrap_err();
    assert_eq!(refusal.kind, Kind::Certificate);
    assert!(refusal.message.contains(says), "`{says}` is not in: {}", refusal.message);
}

#[test]
fn exact_automata_are_certified() {
    for (task, states) in [("parity", 2), ("mod-sum", 5), ("s3", 6), ("d5", 10), ("s5", 120)] {
        let (subject, theta) = exact(task);
        let certificate = certified(&subject, &theta);
        // Their states are points, one for each state of the task; what is written reads back.
        assert_eq!(
            certificate.states.iter().filter(|state| state.bounds.is_some()).count(),
            states,
            "{task}"
        );
        let text = serde_json::to_string(&certificate).unwrap();
        assert_eq!(Certificate::read(&text).unwrap(), certificate);
        let minimal = Minimal::new(&certificate.states);
        assert_eq!(minimal.classes.len(), states);
        let machine = subject.machine().unwrap();
        for (state, row) in minimal.next.iter().enumerate() {
            let right = &machine.next[minimal.classes[state] as usize];
            assert!(row.iter().zip(right).all(|(next, class)| minimal.classes[*next] == *class));
        }
    }
}

/// Where a weight stands among all.
fn place(subject: &Subject, name: &str) -> std::ops::Range<usize> {
    let cell = subject.cell().unwrap();
    let mut from = 0;
    for (_, weight) in cell.step.trained() {
        if weight.name == name {
            return from..from + weight.len();
        }
        from += weight.len();
    }
    panic!("{name}")
}

/// tanh(6·…) of an exact automaton: numbers near ±1, which only an interval can hold.
fn rough(task: &str) -> (Subject, Vec<f32>) {
    let (mut subject, exact) = exact(task);
    subject.options =
        Options::read(&json!({"preset": "paper", "v": "full", "lambda": [1], "project": "identity",
        "h0": "learned", "act": "tanh"}))
        .unwrap();
    let mut theta = exact;
    theta[place(&subject, "V")].iter_mut().for_each(|v| *v *= 6.0);
    theta[place(&subject, "B")].iter_mut().for_each(|b| *b = -0.01);
    (subject, theta)
}

#[test]
fn cells_that_contract_are_certified_and_damage_is_refused() {
    for task in ["s3", "d5"] {
        let (subject, theta) = rough(task);
        let certificate = certified(&subject, &theta);
        assert!(checker::check(&certificate, &theta).is_ok());

        // A weight that matters: the cell is another, with the digest of the other it is still not right.
        let mut damaged = theta.clone();
        let carries = damaged.iter().position(|v| *v == 6.0).unwrap();
        damaged[carries] = -6.0;
        refused(&certificate, &damaged, "other weights");
        let renamed = Certificate { weights: digest(&damaged), ..certificate.clone() };
        refused(&renamed, &damaged, "state");
        assert!(matches!(certify(&subject, &damaged, 1).unwrap(), Verdict::Counterexample(..)));

        // Every box but the start, shrunk to a corner; every transition; every class.
        let boxes = certificate.states.iter().enumerate().filter(|(_, state)| state.bounds.is_some());
        let is_wide = |bounds: &[f64; 2]| bounds[0] < bounds[1];
        let wide = boxes.filter(|(_, state)| state.bounds.iter().flatten().all(is_wide));
        let wide: Vec<usize> = wide.map(|(at, _)| at).collect();
        assert!(wide.len() >= 6);
        for at in wide {
            let mut other = certificate.clone();
            for bounds in other.states[at].bounds.iter_mut().flatten() {
                bounds[1] = bounds[0];
            }
            refused(&other, &theta, "state");
        }
        let count = certificate.states.len();
        for at in 0..count {
            for letter in 0..2 {
                for to in (0..count).filter(|to| {
                    certificate.states[*to].class
                        != certificate.states[certificate.states[at].next[letter]].class
                }) {
                    let mut other = certificate.clone();
                    other.states[at].next[letter] = to;
                    refused(&other, &theta, &format!("state {at}, symbol {letter}"));
                }
            }
            let mut other = certificate.clone();
            other.states[at].class = (other.states[at].class + 1) % 6;
            refused(&other, &theta, "state");
        }
    }
}

#[test]
fn nonsense_is_refused_where_it_stands() {
    let (subject, theta) = exact("s3");
    let certificate = certified(&subject, &theta);
    let changed = |change: &dyn Fn(&mut Certificate)| {
        let mut other = certificate.clone();
        change(&mut other);
        other
    };
    refused(&changed(&|c| c.states.clear()), &theta, "state 0");
    refused(&changed(&|c| c.states[0].bounds = None), &theta, "state 0");
    refused(&changed(&|c| c.states[0].last = Some(0)), &theta, "state 0");
    refused(&changed(&|c| c.states[2].next[1] = 99), &theta, "state 2, symbol 1: no state 99");
    refused(&changed(&|c| c.states[1].next.clear()), &theta, "state 1 has not 2 next states");
    refused(&changed(&|c| c.states[1].class = u32::MAX), &theta, "the task says");
    refused(&changed(&|c| c.states[3].bounds = Some(vec![[1.0, 0.0]])), &theta, "state 3");
    refused(
        &changed(&|c| c.states[3].bounds.iter_mut().flatten().for_each(|b| *b = [f64::NAN; 2])),
        &theta,
        "state 3",
    );
    refused(
        &changed(&|c| c.states[3].bounds.iter_mut().flatten().for_each(|b| *b = [-1e300, 1e300])),
        &theta,
        "",
    );
    // Sets without bounds in a circle are not followed for ever.
    let lonely = State { class: 0, last: None, next: vec![0, 0], bounds: None };
    let circle = changed(&|c| {
        for state in c.states.iter_mut().skip(1) {
            state.bounds = None;
        }
        c.states.push(lonely.clone());
    });
    refused(&circle, &theta, "two ways in");
    for text in ["", "{}", "[1]", "{\"schema\": 1}", &"[".repeat(100_000)] {
        assert_eq!(Certificate::read(text).unwrap_err().kind, Kind::Certificate);
    }
    let text = serde_json::to_string(&certificate).unwrap().replace(SCHEMA, "certificate/0");
    assert!(Certificate::read(&text).unwrap_err().message.contains("certificate/0"));
    assert_eq!(checker::check(&certificate, &theta[1..]).unwrap_err().kind, Kind::Certificate);
}

#[test]
fn what_cannot_be_certified_says_why() {
    let says = |cell: &str, sizes: Value, options: Value, task: &str| {
        let subject = subject(cell, &sizes, &options, task);
        let zeros = vec![0.0; subject.cell().unwrap().count()];
        certify(&subject, &zeros, 1).unwrap_err().message
    };
    let sizes = json!({"input": 2, "hidden": 3, "aux": 3, "output": 6});
    let stable = |key: &str, value: Value| {
        let mut options = json!({"preset": "stable", "lambda": [1, 2]});
        options[key] = value;
        options
    };
    assert!(says("gru", sizes.clone(), json!({}), "flip").contains("`flip`"));
    let tape = json!({"input": 10, "hidden": 3, "output": 10, "addresses": 4, "content": 2});
    assert!(says("ntm", tape, json!({}), "copy").contains("`copy`"));
    let rings = json!({"input": 2, "hidden": 3, "output": 6, "addresses": 4, "content": 2});
    assert!(says("ntm", rings, json!({}), "s3").contains("rings"));
    assert!(says("ll", sizes.clone(), stable("v_norm", "tanh".into()), "s3").contains("`V` is normed"));
    let mut table = stable("gate_source", "table".into());
    table["table_len"] = 3.into();
    assert!(says("ll", sizes.clone(), table, "s3").contains("table"));
    let other = json!({"input": 3, "hidden": 3, "output": 6});
    assert!(says("gru", other, json!({}), "s3").contains("inputs"));
}

/// A cell that forgets: right on all short sequences and nearly all long ones, wrong behind enough symbols 0 in a row.
#[test]
fn a_cell_that_is_wrong_has_a_counterexample() {
    let (subject, mut theta) = rough("parity");
    // tanh(0.8 h) by the symbol 0, tanh(6 …) by 1; the readout has a bias for the class 0.
    let v = place(&subject, "V").start;
    theta[v..v + 4].iter_mut().for_each(|v| *v = if *v > 0.0 { 0.8 } else { 0.0 });
    theta[place(&subject, "F")][0] = 0.005;
    let Verdict::Counterexample(found) = certify(&subject, &theta, 1).unwrap() else {
        panic!("no counterexample")
    };
    assert!(found.word.len() > 12, "{found:?}");
    let task = subject.task().unwrap();
    let example = task.example(&found.word, Size::default()).unwrap();
    let wide: Vec<f64> = theta.iter().map(|w| f64::from(*w)).collect();
    let engine = Engine::new(subject.cell().unwrap().step, &wide);
    let sequences = Sequences { inputs: Inputs::Tokens(&found.word), length: found.word.len(), count: 1 };
    let targets = Targets { classes: &example.target, mask: &example.mask };
    let told = engine.predict(sequences, targets).classes;
    assert_eq!((told.last(), example.target.last()), (Some(&found.told), Some(&found.right)));
    assert_ne!(found.told, found.right);
    assert_eq!(told[..told.len() - 1], example.target[..told.len() - 1], "it is the first error");
}

/// The checker is small enough to be read: lines of code, without comments, empty lines and tests.
#[test]
fn the_checker_is_small() {
    let lines = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        code.lines().filter(is_code).count()
    };
    let checker = lines(include_str!("../../src/certify/checker.rs"));
    let enclosure = lines(include_str!("../../src/certify/enclosure.rs"));
    assert!(checker <= 150 && checker + enclosure <= 260, "{checker} and {enclosure}");
}
