//! The tasks of section 7: what a sequence of symbols is mapped to, and which positions count.
//!
//! Enter at [`Task::new`] and [`Task::example`]. [`batches::Batches`] draws the batches of training, validation and
//! test; [`batch::Batch`] says how they lie in memory.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod settings;

pub mod aligned;

pub mod group;

pub mod walk;

pub mod tape;

pub mod machine;

mod input;

mod draw;

pub mod batch;

pub mod batches;

mod pool;

#[cfg(test)]
mod tests;

use seeded::Stream;

use crate::error::{Kind, Refusal, Result};
use crate::nearest::did_you_mean;

use aligned::Aligned;
use group::{Group, Rule};
pub use settings::Settings;
use tape::{Divider, Size, Transform, Variable};
use walk::Pattern;

/// Symbols of the longest sequence.
pub const LONGEST: usize = 1 << 24;

/// A map from sequences to targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    name: String,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Aligned(Aligned),
    /// The sum so far, modulo this.
    Sum(u32),
    Group(Group, Rule),
    Tape(Transform),
}

/// What the text of an input may hold besides numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbols {
    Digits,
    /// s and r.
    Letters,
}

/// A sequence, its target, and the positions that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The input symbols.
    pub input: Vec<u32>,
    /// The class at each step.
    pub target: Vec<u32>,
    /// Whether the step counts.
    pub mask: Vec<bool>,
    /// f(content), for tapes.
    pub walk: Option<Vec<u32>>,
}

impl Task {
    /// Every name.
    pub fn names() -> Vec<&'static str> {
        let aligned = Aligned::NAMED.iter().map(|(name, _)| *name);
        let sums = aligned.chain(["parity", "mod-sum"]);
        sums.chain(GROUPS.iter().map(|(name, _, _)| *name)).chain(TAPES).collect()
    }

    /// The task of this name. Refused: `unknown-task`, `config`, `walk`.
    pub fn new(name: &str, settings: &Settings) -> Result<Self> {
        let aligned = Aligned::NAMED.iter().find(|(known, _)| *known == name);
        let form = match (aligned, name) {
            (Some((_, aligned)), _) => Form::Aligned(*aligned),
            (_, "parity") => Form::Sum(2),
            (_, "mod-sum") => Form::Sum(settings.modulus.unwrap_or(5).max(1)),
            _ => match GROUPS.iter().find(|(known, _, _)| *known == name) {
                Some((_, group, rule)) => Form::Group(group::group(group)?, *rule),
                None => Form::Tape(transform(name, settings)?),
            },
        };
        Ok(Self { name: name.to_owned(), form })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of input symbols: the width of their one-hot vectors.
    pub fn symbols(&self) -> u32 {
        match &self.form {
            Form::Aligned(_) => 2,
            Form::Group(group, rule) => group.letters(*rule),
            Form::Sum(modulus) => *modulus,
            Form::Tape(_) => tape::SYMBOLS,
        }
    }

    /// The number of classes.
    pub fn classes(&self) -> u32 {
        match &self.form {
            Form::Aligned(_) => 2,
            Form::Sum(modulus) => *modulus,
            Form::Group(group, _) => group.order(),
            Form::Tape(_) => tape::SYMBOLS,
        }
    }

    /// Whether the class at each step is the state of an automaton: what a sequence leads to is its last symbol.
    pub fn is_state(&self) -> bool {
        matches!(self.form, Form::Sum(_) | Form::Group(..))
    }

    /// The two programs that the task was made with, and which of them each state asks for, if it was made so.
    pub fn planted(&self) -> Option<Planted> {
        let (group, programs) = match &self.form {
            Form::Group(group, Rule::Numerals) => (group, [vec![0], vec![0, 0]]),
            // s·x′·x: the letter before is multiplied first; s·x·x′.
            Form::Group(group, Rule::Words) => (group, [vec![0, 1], vec![1, 0]]),
            _ => return None,
        };
        let at = (0..group.order()).map(|state| usize::from(group.is_second(state))).collect();
        Some(Planted { programs, at })
    }

    /// The automaton that it follows, if it does.
    pub fn automaton(&self) -> Option<Automaton<'_>> {
        self.is_state().then_some(Automaton(&self.form))
    }

    /// Whether it works on a tape.
    pub fn is_tape(&self) -> bool {
        matches!(self.form, Form::Tape(_))
    }

    /// The least length of a sequence that can be drawn; for tapes, the least n.
    pub fn shortest(&self) -> usize {
        match &self.form {
            Form::Tape(transform) => transform.shortest() + 2,
            _ => 0,
        }
    }

    /// The tokens of a text: digits, or integers between spaces or commas, or letters for groups. For tapes it is the
    /// content alone. Refused: `symbol`.
    pub fn parse(&self, text: &str) -> Result<Vec<u32>> {
        let letters = matches!(self.form, Form::Group(_, Rule::Generators));
        let symbols = if letters { Symbols::Letters } else { Symbols::Digits };
        input::tokens(text, symbols)
    }

    /// Target and mask of a sequence; for tapes the tape of a content. Refused: `symbol`, `walk`,
    /// `walk-out-of-range`, `tape`.
    pub fn example(&self, tokens: &[u32], size: Size) -> Result<Example> {
        if let Form::Tape(transform) = &self.form {
            transform.check(tokens)?;
            return tape::lay(tokens, transform.apply(tokens)?, size);
        }
        if let Some(token) = tokens.iter().find(|&&t| t >= self.symbols()) {
            let message =
                format!("{token} is no symbol of `{}`; it has 0 to {}", self.name, self.symbols() - 1);
            return Err(Refusal::new(Kind::Symbol, message));
        }
        Ok(self.stepwise(tokens.to_vec()))
    }

    /// A random sequence of exactly this length; for tapes of n = `length`, and as long beyond that as its output.
    pub fn draw(&self, length: usize, stream: &mut Stream) -> Result<Example> {
        if length < self.shortest() || length > LONGEST {
            let least = self.shortest();
            let message =
                format!("a sequence of `{}` has {least} to {LONGEST} symbols, not {length}", self.name);
            return Err(Refusal::new(if self.is_tape() { Kind::Tape } else { Kind::Config }, message));
        }
        match &self.form {
            Form::Tape(transform) => {
                let (content, walk) = transform.draw(length.saturating_sub(2), stream)?;
                tape::lay(&content, walk, Size::default())
            }
            _ => Ok(self.stepwise(draw::uniform(self.symbols(), length, stream))),
        }
    }

    /// Whether its inputs are strings of two symbols that are enumerated easily.
    pub(crate) fn is_binary(&self) -> bool {
        !self.is_tape() && self.symbols() == 2
    }

    /// A sequence with a target at every step; its symbols are known to be right.
    fn stepwise(&self, input: Vec<u32>) -> Example {
        let counted = |targets: Vec<u32>| (vec![true; targets.len()], targets);
        let (mask, target) = match &self.form {
            Form::Aligned(aligned) => {
                let targets = (0..input.len()).map(|j| aligned.target(&input, j));
                targets.map(|t| (t.is_some(), t.unwrap_or(0))).unzip()
            }
            Form::Sum(modulus) => counted(sums(&input, *modulus)),
            Form::Group(group, rule) => counted(group.states(*rule, &input)),
            Form::Tape(_) => counted(Vec::new()),
        };
        Example { input, target, mask, walk: None }
    }
}

/// The sum so far, modulo m, at each step.
fn sums(tokens: &[u32], modulus: u32) -> Vec<u32> {
    let modulus = u64::from(modulus.max(1));
    let step = |sum: &mut u64, &token: &u32| {
        *sum = (*sum + u64::from(token)) % modulus;
        Some(*sum as u32)
    };
    tokens.iter().scan(0, step).collect()
}

/// What a task was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The operators of either program in the order in which they are applied, as
    /// [`ProgramText::applied`](crate::ProgramText) has them.
    pub programs: [Vec<usize>; 2],
    /// The number of the program of each state.
    pub at: Vec<usize>,
}

/// The automaton that a task follows.
#[derive(Debug, Clone, Copy)]
pub struct Automaton<'a>(&'a Form);

impl Automaton<'_> {
    /// The state before the first letter.
    pub fn start(&self) -> u32 {
        if let Form::Group(group, _) = self.0 { group.identity() } else { 0 }
    }

    /// The letter that stands before the first: one that changes nothing.
    pub fn first(&self) -> u32 {
        self.start()
    }

    /// Whether the state after a letter depends on the letter before it too.
    pub fn looks_back(&self) -> bool {
        matches!(self.0, Form::Group(_, Rule::Words))
    }

    /// The state after a letter.
    pub fn step(&self, state: u32, before: u32, letter: u32) -> Option<u32> {
        match self.0 {
            Form::Group(group, rule) => group.step(*rule, state, before, letter),
            Form::Sum(modulus) if letter < *modulus && state < *modulus => {
                Some(((u64::from(state) + u64::from(letter)) % u64::from(*modulus)) as u32)
            }
            _ => None,
        }
    }
}

/// The tasks in groups: the name, the group, what a letter does.
const GROUPS: [(&str, &str, Rule); 12] = [
    ("s3", "s3", Rule::Generators),
    ("s5", "s5", Rule::Generators),
    ("d5", "d5", Rule::Generators),
    ("word-s3", "s3", Rule::Letters),
    ("word-s4", "s4", Rule::Letters),
    ("word-s5", "s5", Rule::Letters),
    ("word-a5", "a5", Rule::Letters),
    ("word-d5", "d5", Rule::Letters),
    ("planted-lambda-d5", "d5", Rule::Numerals),
    ("planted-lambda-z7", "z7", Rule::Numerals),
    ("planted-pi-s3", "s3", Rule::Words),
    ("planted-pi-s4", "s4", Rule::Words),
];

const TAPES: [&str; 17] = [
    "copy",
    "repeat-copy",
    "pattern-1",
    "pattern-2",
    "pattern-3",
    "pattern-4",
    "pattern-5",
    "pattern",
    "multi-pattern-1",
    "multi-pattern-2",
    "multi-pattern-3",
    "multi-pattern-4",
    "multi-pattern",
    "variable-pattern-1",
    "variable-pattern-2",
    "variable-pattern-3",
    "variable-pattern-4",
];

/// f of a tape by its name.
fn transform(name: &str, settings: &Settings) -> Result<Transform> {
    let needed = |key: &str| Refusal::config(format!("`{name}` needs `{key}`"));
    let listed = |patterns: &[&[i64]]| Variable::Listed(patterns.iter().map(|p| p.to_vec()).collect());
    match name {
        "copy" => walk(&[1]),
        "repeat-copy" => walk(&[0, 1]),
        "pattern-1" => walk(&[0, 1, 1]),
        "pattern-2" => walk(&[0, 2]),
        "pattern-3" => walk(&[0, 2, -1]),
        "pattern-4" => walk(&[0, 2, 1, 2, -2, -1]),
        "pattern-5" => walk(&[4, 1, 1, -4]),
        "pattern" => walk(settings.pattern.as_deref().ok_or_else(|| needed("pattern"))?),
        "multi-pattern-1" => sections(&[&[1], &[0, 1]], Divider::Free),
        "multi-pattern-2" => sections(&[&[1], &[0, 1]], Divider::Forced),
        "multi-pattern-3" => sections(&[&[1], &[0, 1], &[0, 2]], Divider::Free),
        "multi-pattern-4" => sections(&[&[0, 1], &[2, -1]], Divider::Free),
        "multi-pattern" => {
            let patterns = settings.patterns.as_deref().ok_or_else(|| needed("patterns"))?;
            sections(&patterns.iter().map(Vec::as_slice).collect::<Vec<_>>(), Divider::Free)
        }
        "variable-pattern-1" => Ok(Transform::Variable(listed(&[&[1], &[0, 1], &[2], &[0, 1, 1], &[0, 2]]))),
        "variable-pattern-2" => Ok(Transform::Variable(Variable::Listed(draw::primitive_words()))),
        "variable-pattern-3" => Ok(Transform::Variable(Variable::Random { below: 0 })),
        "variable-pattern-4" => Ok(Transform::Variable(Variable::Random { below: 2 })),
        _ => {
            let near = did_you_mean(name, Task::names());
            Err(Refusal::new(Kind::UnknownTask, format!("there is no task \"{name}\"{near}")))
        }
    }
}

fn walk(entries: &[i64]) -> Result<Transform> {
    Ok(Transform::Walk(Pattern::new(entries.to_vec())?))
}

fn sections(patterns: &[&[i64]], divider: Divider) -> Result<Transform> {
    if patterns.is_empty() {
        return Err(Refusal::config("`patterns` is empty; it needs at least one pattern"));
    }
    let patterns = patterns.iter().map(|p| Pattern::new(p.to_vec())).collect::<Result<_>>()?;
    Ok(Transform::Sections { patterns, divider })
}
