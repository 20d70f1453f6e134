//! `tl repl`: a dialogue, one statement a line.
//!
//! On a terminal lines are edited, completed, and remembered from one dialogue to the next; from a pipe they are only read.
//! Ctrl-C ends the query at hand; where none is, it clears the line, and from a pipe it ends the dialogue.
//! What is said stands in [`tensor_logic::console`].

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use tensor_logic::console::{Console, Next, Reaction};

use crate::interrupt::Interrupt;
use crate::{answer, history};

/// Loads a program, if there is one, and talks until the end of the input or `:quit`.
pub(crate) fn talk(
    mut console: Console,
    file: Option<&Path>,
    interrupt: &Interrupt,
    history: Option<&Path>,
) -> anyhow::Result<()> {
    if let Some(file) = file
        && !react(interrupt.during(|| console.load(file)))?
    {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return piped(console, interrupt);
    }
    let history = history.map(Path::to_owned).or_else(history::place);
    edited(console, interrupt, history.as_deref())
}

/// Says what there is to say; whether somebody listens still.
fn react(reactions: Vec<Reaction>) -> std::io::Result<bool> {
    for reaction in reactions {
        match reaction {
            Reaction::Say(text) if !answer::say(&text)? => return Ok(false),
            Reaction::Say(_) => {}
            Reaction::Complain(text) => answer::object(&text),
        }
    }
    Ok(true)
}

fn piped(mut console: Console, interrupt: &Interrupt) -> anyhow::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut bytes = Vec::new();
    for number in 1_u64.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let line = match std::str::from_utf8(&bytes[..end]) {
            Ok(line) => line,
            Err(error) => {
                let at = error.valid_up_to() + 1;
                answer::object(&format!("line {number} is passed over: its byte {at} is no UTF-8"));
                continue;
            }
        };
        let (reactions, next) = interrupt.during(|| console.line(line));
        if !react(reactions)? || next == Next::Quit {
            return Ok(());
        }
    }
    // A statement that never ended is what it is.
    react(interrupt.during(|| console.line("").0))?;
    Ok(())
}

fn edited(console: Console, interrupt: &Interrupt, history: Option<&Path>) -> anyhow::Result<()> {
    let mut editor: Editor<Dialogue, DefaultHistory> = Editor::new()?;
    for line in history.map(history::load).unwrap_or_default() {
        editor.add_history_entry(line)?;
    }
    editor.set_helper(Some(Dialogue(console)));
    let done = dialogue(&mut editor, interrupt);
    if let Some(path) = history
        && let Err(error) = history::save(path, editor.history().iter())
    {
        answer::object(&format!("cannot remember the lines in {}: {error}", path.display()));
    }
    done
}

fn dialogue(editor: &mut Editor<Dialogue, DefaultHistory>, interrupt: &Interrupt) -> anyhow::Result<()> {
    answer::say("tensor logic; `:help` says what there is")?;
    let mut prompt = "> ";
    loop {
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                if let Some(Dialogue(console)) = editor.helper_mut() {
                    console.clear();
                }
                prompt = "> ";
                continue;
            }
            Err(ReadlineError::Eof) => {
                // A statement that never ended is what it is.
                if let Some(Dialogue(console)) = editor.helper_mut() {
                    react(interrupt.during(|| console.line("").0))?;
                }
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        editor.add_history_entry(&line)?;
        let Some(Dialogue(console)) = editor.helper_mut() else { return Ok(()) };
        let (reactions, next) = interrupt.during(|| console.line(&line));
        if !react(reactions)? {
            return Ok(());
        }
        prompt = match next {
            Next::Statement => "> ",
            Next::Rest => "| ",
            Next::Quit => return Ok(()),
        };
    }
}

/// Completes names.
struct Dialogue(Console);

impl Completer for Dialogue {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..at).unwrap_or("");
        let word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '\'' | ':');
        let start =
            before.len() - before.chars().rev().take_while(|c| word(*c)).map(char::len_utf8).sum::<usize>();
        let begun = before.get(start..).unwrap_or("");
        let names = if begun.is_empty() { Vec::new() } else { self.0.completions(begun) };
        Ok((start, names))
    }
}

impl Hinter for Dialogue {
    type Hint = String;
}

impl Highlighter for Dialogue {}

impl Validator for Dialogue {}

impl Helper for Dialogue {}
