//! Random programs of middle size: places of 34 to some thousand values over a few dozen facts.
//!
//! The programs of `random_programs` have places of a few values. There every table is small, and what the engine decides by
//! sizes it always decides alike: below a thousand bindings everything is dense, and a square tensor of a dozen elements is
//! never kept by its support. Here the default storage decides by itself, and often keeps tensors by their supports; a
//! forced storage shows what it would have been otherwise. Drawn are sums of reads at moved, turned and folded places, guards
//! of every kind, all signs, products along a path, recursions, new versions by `:=`, blocks of numbers at tuples, rectangles;
//! and losses over parameters, a few or one for each element, whose gradients are compared, and some steps of learning.
//!
//! Every program is asked of the default, the dense and the sparse storage and, for as long as it has patience, of the
//! interpreter; what differs fails, unless the same numbers a little off make answers that differ as far. In some programs all
//! numbers are integers and all functions keep them: there rounding is no excuse, and 32 bits say the same. Work fails too, as
//! limits and counts say and no clock: the default storage refuses for want of room where another storage answers, or it or the
//! sparse one looks at many times as many elements and tuples as another. Where the interpreter alone answers, which needs no
//! room for tables, the program is counted, and such programs are bounded.
//!
//! Not drawn: symbols, more than two places and a block, infinite slopes in gradients, layers over blocks one after the other.
//!
//! A few dozen programs by default; `CALCULEMUS_PROGRAMS`, `CALCULEMUS_SLOW`, `CALCULEMUS_SEED` and `CALCULEMUS_SHOW` as for
//! random programs. One that fails is made smaller before it is shown.
#![expect(clippy::print_stdout, reason = "a long run says what it has compared")]

mod compared;
mod drawn;
mod losses;
mod statements;
mod terms;

use std::sync::mpsc;
use std::time::Duration;

use compared::{Counts, Outcome};
use drawn::{Sizes, Task};

use crate::common::shrink::shrunk;

/// How long the interpreter is waited for, in a short run and in a long one.
const PATIENCE: [Duration; 2] = [Duration::from_millis(400), Duration::from_secs(4)];

/// From so many programs on it is asked what most of them do.
const ENOUGH: u64 = 100;

/// How long a program is made smaller.
const SHRINKING: Duration = Duration::from_secs(120);

/// What is drawn, in a family of programs of its own.
struct Kind {
    name: &'static str,
    task: Task,
    sizes: Sizes,
    /// How many programs in a short run, and in a slow one.
    counts: [u64; 2],
}

/// A program with its engines in a thread of its own: a panic is a difference.
fn outcome(task: Task, text: &str, observed: bool, patience: Duration, exact: bool) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    let owned = text.to_owned();
    std::thread::spawn(move || {
        let found = std::panic::catch_unwind(|| compared::compared(task, &owned, observed, patience, exact));
        let _ = sender.send(found.unwrap_or_else(|_| Outcome::Differs("a panic".to_owned())));
    });
    receiver.recv().unwrap_or(Outcome::Differs("no answer".to_owned()))
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Draws programs and compares what is said of them.
fn draw(kind: &Kind) {
    let slow = std::env::var_os("CALCULEMUS_SLOW").is_some();
    let asked = setting("CALCULEMUS_PROGRAMS");
    let count = asked.unwrap_or(kind.counts[usize::from(slow)]);
    let patience = PATIENCE[usize::from(slow || asked.is_some())];
    let show = std::env::var_os("CALCULEMUS_SHOW").is_some();
    let first = seeded::test_seed();
    let (mut same, mut refused, mut counts) = (0, 0, Counts::default());
    let (mut rounding, mut room, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", kind.name, seed).stream(0);
        let (lines, exact) = drawn::program(&mut stream, kind.sizes, kind.task);
        // Looked at or not, an engine does the same, and some ways are gone only by one of the two.
        let observed = stream.below(2) == 0;
        let outcome = |lines: &[String]| outcome(kind.task, &lines.join("\n"), observed, patience, exact);
        let found = outcome(&lines);
        if show {
            println!("{} {seed}: {found:?}\n{}\n", kind.name, lines.join("\n"));
        }
        match &found {
            Outcome::Refused => refused += 1,
            Outcome::Same(own) => {
                same += 1;
                counts += *own;
            }
            Outcome::Rounding(_) => rounding.push(seed),
            Outcome::Room(_) => room.push(seed),
            Outcome::Differs(_) | Outcome::Work(_) | Outcome::Hangs(_) => {
                let alike = |other: &Outcome| std::mem::discriminant(other) == std::mem::discriminant(&found);
                let least = shrunk(lines, SHRINKING, &mut |lines| alike(&outcome(lines)));
                failures.push(format!(
                    "{}, seed {seed}\n{}\n{:?}\n",
                    kind.name,
                    least.join("\n"),
                    outcome(&least)
                ));
            }
        }
        if failures.len() >= 8 {
            break;
        }
    }
    println!(
        "{}: {same} of {count} have the same answers, {refused} are refused, {rounding:?} hang on rounding, \
         {room:?} have room in the interpreter only; {counts:?}",
        kind.name
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // What most programs do, a few need not.
    if count < ENOUGH {
        return;
    }
    assert!(refused * 2 <= count, "{refused} of {count} programs are refused");
    assert!(counts.alive * 2 > counts.answers, "{counts:?}");
    assert!(counts.supports > 0 && counts.interpreted > 0, "{counts:?}");
    assert!(room.len() as u64 * 10 <= count, "room in the interpreter only: {room:?} of {count}");
    assert!(rounding.len() as u64 * 10 <= count, "hang on rounding: {rounding:?} of {count}");
}

#[test]
fn programs_of_middle_size_mean_the_same_in_every_storage() {
    draw(&Kind { name: "middle", task: Task::Values, sizes: Sizes::Some, counts: [16, 2000] });
}

#[test]
fn larger_programs_mean_the_same_in_every_storage() {
    draw(&Kind { name: "larger", task: Task::Values, sizes: Sizes::Many, counts: [4, 400] });
}

#[test]
fn gradients_of_middle_size_are_the_same_in_every_storage() {
    draw(&Kind { name: "middle gradients", task: Task::Gradients, sizes: Sizes::Some, counts: [8, 800] });
}

#[test]
fn learning_of_middle_size_is_the_same_in_every_storage() {
    draw(&Kind { name: "middle learning", task: Task::Learning, sizes: Sizes::Some, counts: [6, 400] });
}
