//! Programs made smaller, as long as something stays true of them.

use std::time::{Duration, Instant};

/// Deletes statements, many at a time at first, then words of statements, as long as it `stays`; no longer than a `while`.
pub(crate) fn shrunk(
    mut lines: Vec<String>,
    patience: Duration,
    stays: &mut dyn FnMut(&[String]) -> bool,
) -> Vec<String> {
    let began = Instant::now();
    let mut keeps = |lines: &[String]| began.elapsed() < patience && stays(lines);
    let mut length = lines.len().div_ceil(2);
    while length > 0 {
        let (mut at, mut less) = (0, false);
        while at < lines.len() {
            let mut fewer = lines.clone();
            fewer.drain(at..(at + length).min(lines.len()));
            if keeps(&fewer) {
                (lines, less) = (fewer, true);
            } else {
                at += length;
            }
        }
        // What could not go may go without what has gone.
        if !(less && length == 1) {
            length /= 2;
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
                if fewer[at].len() < lines[at].len() && keeps(&fewer) {
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

#[test]
fn what_is_shrunk_keeps_what_stays_true() {
    let lines: Vec<String> = (0..40).map(|at| format!("Y{at}[i, j] = A[i] + B[j]")).collect();
    let mut stays = |lines: &[String]| lines.iter().any(|line| line.contains("Y17") && line.contains("B[j]"));
    assert_eq!(shrunk(lines, Duration::from_secs(60), &mut stays), ["Y17 B[j]"]);
}
