//! Random programs: the fast engine gives the values of the reference interpreter, or the same
//! refusal, however relations are stored; and it ends.
//!
//! A few hundred programs by default; `CALCULEMUS_PROGRAMS=10000` or `CALCULEMUS_SLOW=1` for
//! more, `CALCULEMUS_SEED=123` to begin at a program, `CALCULEMUS_SEED=fresh` for programs that
//! nobody has seen. A program that disagrees is shrunk by deleting statements before it is shown.

use std::sync::mpsc;
use std::time::Duration;

use tensor_logic::program::Program;

use crate::common;
use crate::common::engines::{STORAGES, Wanted, analysed, difference, wanted};

/// How long one program may take.
#[derive(Clone, Copy)]
struct Limits {
    /// The reference, which may need exponential time: such a program says nothing.
    reference: Duration,
    /// All engines together: one that needs longer hangs.
    engines: Duration,
}

const LIMITS: Limits = Limits { reference: Duration::from_secs(5), engines: Duration::from_secs(60) };

/// Of a hundred programs at most one may be too long for the reference.
const SLOW_IN: u64 = 100;

/// What comes of a program.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It is refused before it runs, or all agree.
    Same,
    /// How an engine disagrees; a panic is a disagreement too.
    Differs(String),
    /// The reference did not end in time.
    Slow,
    /// The reference ended, and an engine did not.
    Hangs,
}

/// What engines make of a program beside what the reference says.
type Engines = fn(&Program, &Wanted) -> Option<String>;

fn storages(program: &Program, wanted: &Wanted) -> Option<String> {
    STORAGES.into_iter().find_map(|storage| difference(program, storage, wanted))
}

/// Runs the reference, then the engines, in a thread of their own that is left behind if it hangs.
fn outcome(text: &str, engines: Engines, limits: Limits) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    let owned = text.to_owned();
    std::thread::spawn(move || {
        let said = sender.clone();
        let found = std::panic::catch_unwind(move || {
            let Ok(program) = analysed(&owned) else { return None };
            let wanted = wanted(&program);
            let _ = said.send(None);
            engines(&program, &wanted)
        });
        let _ = sender.send(Some(found.unwrap_or_else(|_| Some("a panic".to_owned()))));
    });
    let ended = |found: Option<String>| found.map_or(Outcome::Same, Outcome::Differs);
    match receiver.recv_timeout(limits.reference) {
        Ok(Some(found)) => ended(found),
        Ok(None) => match receiver.recv_timeout(limits.engines) {
            Ok(found) => ended(found.flatten()),
            Err(_) => Outcome::Hangs,
        },
        Err(_) => Outcome::Slow,
    }
}

fn differs(lines: &[String]) -> Option<String> {
    match outcome(&lines.join("\n"), storages, LIMITS) {
        Outcome::Differs(how) => Some(how),
        _ => None,
    }
}

/// Deletes statements, then words of statements, as long as the disagreement stays.
fn shrunk(mut lines: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while at < lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if differs(&fewer).is_some() {
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
                if fewer[at].len() < lines[at].len() && differs(&fewer).is_some() {
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
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 10_000 } else { 300 };
    let count = setting("CALCULEMUS_PROGRAMS").unwrap_or(most);
    let first = seeded::test_seed();
    let show = std::env::var("CALCULEMUS_SHOW").is_ok();
    let (mut legal, mut slow) = (0, Vec::new());
    let mut failures = Vec::new();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "random programs", seed).stream(0);
        let lines = common::generator::program(&mut stream);
        let text = lines.join("\n");
        match analysed(&text) {
            Ok(_) => legal += 1,
            Err(reports) if show => {
                println!("{seed}: {}: {}\n{text}\n", reports[0].code.name(), reports[0].message)
            }
            Err(_) => {}
        }
        match outcome(&text, storages, LIMITS) {
            Outcome::Same => {}
            Outcome::Slow => slow.push(seed),
            Outcome::Hangs => failures.push(format!("seed {seed}: an engine does not end\n{text}\n")),
            Outcome::Differs(how) => {
                let least = shrunk(lines);
                let how = differs(&least).unwrap_or(how);
                failures.push(format!("seed {seed}\n{}\n{how}\n", least.join("\n")));
            }
        }
        if failures.len() >= 8 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(legal * 3 > count, "{legal} of {count} programs are legal");
    assert!(
        slow.len() as u64 * SLOW_IN <= count.max(SLOW_IN),
        "too long for the reference: {slow:?} of {count}"
    );
}

/// The watch itself: what an engine may do wrong is seen.
#[test]
fn an_engine_that_hangs_panics_or_differs_is_seen() {
    let short = Limits { engines: Duration::from_millis(300), ..LIMITS };
    let hangs: Engines = |_, _| {
        loop {
            std::thread::park();
        }
    };
    assert_eq!(outcome("A = 1", hangs, short), Outcome::Hangs);
    let panics: Engines = |_, _| panic!("on purpose");
    assert_eq!(outcome("A = 1", panics, LIMITS), Outcome::Differs("a panic".to_owned()));
    let differs: Engines = |_, wanted| Some(format!("{} tensors", wanted.len()));
    assert_eq!(outcome("A = 1; B = 2", differs, LIMITS), Outcome::Differs("2 tensors".to_owned()));
    assert_eq!(outcome("A = (", hangs, short), Outcome::Same);
}
