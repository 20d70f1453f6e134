//! Random programs: the fast engine gives the values of the reference interpreter, or the same
//! refusal, however relations are stored.
//!
//! A few hundred programs by default; `CALCULEMUS_PROGRAMS=10000` or `CALCULEMUS_SLOW=1` for
//! more, `CALCULEMUS_FIRST=123` to begin at a seed. A program that disagrees is shrunk by
//! deleting statements before it is shown.

use std::sync::mpsc;
use std::time::Duration;

use crate::common::engines::{STORAGES, analysed, disagreement};

/// How a program disagrees, if it is legal; a program that takes long is left out.
fn wrong(text: &str) -> Option<String> {
    let program = analysed(text).ok()?;
    STORAGES.into_iter().find_map(|storage| disagreement(&program, storage))
}

/// [`wrong`] in a thread of its own: a panic is a disagreement too.
fn outcome(text: &str) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    let owned = text.to_owned();
    std::thread::spawn(move || {
        let found = std::panic::catch_unwind(|| wrong(&owned));
        let _ = sender.send(found.unwrap_or_else(|_| Some("a panic".to_owned())));
    });
    // The reference may take exponential time; such programs say nothing.
    receiver.recv_timeout(Duration::from_secs(2)).unwrap_or(None)
}

/// Deletes statements, then words of statements, as long as the disagreement stays.
fn shrunk(mut lines: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while at < lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if outcome(&fewer.join("\n")).is_some() {
            lines = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    for at in 0..lines.len() {
        for length in [24, 12, 6, 4, 3, 2, 1] {
            let mut from = 0;
            loop {
                let words = words(&lines[at]);
                if from + length > words.len() {
                    break;
                }
                let mut fewer = lines.clone();
                fewer[at] = [&words[..from], &words[from + length..]].concat().concat();
                if fewer[at].len() < lines[at].len() && outcome(&fewer.join("\n")).is_some() {
                    lines = fewer;
                } else {
                    from += 1;
                }
            }
        }
    }
    lines
}

/// A line cut before every blank, bracket and comma.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in line.chars() {
        if " ()[],".contains(letter) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
        if "([".contains(letter) {
            words.push(String::new());
        }
    }
    words
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_programs_mean_the_same_to_both_engines() {
    let slow = std::env::var("CALCULEMUS_SLOW").is_ok();
    let count = setting("CALCULEMUS_PROGRAMS").unwrap_or(if slow { 10_000 } else { 300 });
    let first = setting("CALCULEMUS_FIRST").unwrap_or(0);
    let show = std::env::var("CALCULEMUS_SHOW").is_ok();
    let mut legal = 0;
    let mut failures = Vec::new();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "random programs", seed).stream(0);
        let lines = crate::common::generator::program(&mut stream);
        let text = lines.join("\n");
        match analysed(&text) {
            Ok(_) => legal += 1,
            Err(reports) if show => {
                println!("{seed}: {}: {}\n{text}\n", reports[0].code.name(), reports[0].message)
            }
            Err(_) => {}
        }
        if outcome(&text).is_some() {
            let least = shrunk(lines).join("\n");
            let how = outcome(&least).unwrap_or_default();
            failures.push(format!("seed {seed}\n{least}\n{how}\n"));
            if failures.len() >= 8 {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(legal * 3 > count, "{legal} of {count} programs are legal");
}
