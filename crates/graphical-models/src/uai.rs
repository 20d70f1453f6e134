//! The format of the UAI inference competitions: `BAYES` and `MARKOV` networks, and evidence.
//!
//! Enter at [`read`] and [`evidence`].

use std::collections::{HashMap, HashSet};

use crate::model::sums_to_one;
use crate::{Factor, Failure, Model, Variable, VariableId};

/// The states of all variables together may be so many, or as many as the text has letters.
const STATES: usize = 1 << 16;

/// Reads a network: variables are called `0`, `1`, …, and so are their states. A table of a `BAYES` network whose rows sum to
/// one is the distribution of the last variable of its scope; another, as evidence that is multiplied in leaves it, is a
/// factor.
///
/// # Errors
///
/// [`Failure::Text`] with the line and column where the text is no network, or distributions go in a circle.
pub fn read(text: &str) -> Result<Model, Failure> {
    let mut words = Words::new(text);
    let (kind, place) = words.word("`MARKOV` or `BAYES`")?;
    if !matches!(kind, "MARKOV" | "BAYES") {
        return Err(place.wrong(format!("`{kind}` where `MARKOV` or `BAYES` was expected")));
    }
    let count = words.number("the number of variables")?;
    let mut sizes: Vec<usize> = Vec::new();
    let mut together = 0_usize;
    for _ in 0..count {
        let place = words.place;
        match words.number("the number of states of a variable")? {
            0 => return Err(place.wrong("a variable without states".to_owned())),
            size => sizes.push(size),
        }
        together = together.saturating_add(*sizes.last().unwrap_or(&0));
        if together > text.len().max(STATES) {
            return Err(place.wrong(format!("{together} states so far, and the text has fewer letters")));
        }
    }
    let factors = words.number("the number of factors")?;
    let mut scopes: Vec<(Place, Vec<VariableId>)> = Vec::new();
    for _ in 0..factors {
        let (begin, mut scope, mut known) = (words.place, Vec::new(), HashSet::new());
        for _ in 0..words.number("the number of variables of a factor")? {
            let place = words.place;
            let id = words.number("a variable")?;
            if id >= sizes.len() {
                return Err(place.wrong(format!("there is no variable {id}")));
            }
            if !known.insert(id) {
                return Err(place.wrong(format!("the variable {id} stands twice")));
            }
            scope.push(VariableId(id));
        }
        scopes.push((begin, scope));
    }
    let states = |size: usize| (0..size).map(|state| state.to_string()).collect();
    let named =
        sizes.iter().enumerate().map(|(at, size)| Variable { name: at.to_string(), states: states(*size) });
    let mut model = Model::new(named.collect())?;
    let mut begins: HashMap<VariableId, Place> = HashMap::new();
    for (begin, scope) in scopes {
        let cells = scope.iter().try_fold(1_usize, |cells, id| cells.checked_mul(sizes[id.0]));
        let place = words.place;
        let count = words.number("the number of entries of a factor")?;
        if cells != Some(count) {
            return Err(
                place.wrong(format!("{count} entries where the variables of the factor have other states"))
            );
        }
        let mut values = Vec::new();
        for _ in 0..count {
            let (word, place) = words.word("a number")?;
            let number: f64 = word.parse().unwrap_or(f64::NAN);
            if !number.is_finite() || number < 0.0 {
                return Err(place.wrong(format!("`{word}` where a number from 0 was expected")));
            }
            values.push(number);
        }
        let width = scope.last().map_or(1, |own| sizes[own.0]);
        let sums = values.chunks(width).all(|row| sums_to_one(row).is_ok());
        match scope.last().filter(|own| kind == "BAYES" && sums && model.definition(**own).is_none()) {
            Some(own) => {
                begins.insert(*own, begin);
                model.define(Factor { scope, values })?;
            }
            None => model.multiply(Factor { scope, values })?,
        }
    }
    words.end()?;
    match model.parents_first() {
        Ok(_) => Ok(model),
        Err(circle) => {
            let first = circle.last().and_then(|id| begins.get(id)).copied();
            Err(first.unwrap_or(words.place).wrong(model.circle(&circle)))
        }
    }
}

/// Reads evidence, `2  0 1  5 0`: two variables are observed, 0 in state 1 and 5 in state 0.
///
/// # Errors
///
/// [`Failure::Text`] with the line and column of a word that is no such number, and of a variable that is observed in one state
/// twice; [`Failure::Unknown`] of what the model has not; [`Failure::Contradiction`] of a variable in two states.
pub fn evidence(text: &str, model: &Model) -> Result<Vec<(VariableId, usize)>, Failure> {
    let mut words = Words::new(text);
    let (mut found, mut known): (Vec<(VariableId, usize)>, HashMap<VariableId, usize>) = Default::default();
    for _ in 0..words.number("the number of observed variables")? {
        let place = words.place;
        let id = VariableId(words.number("a variable")?);
        if id.0 >= model.variables().len() {
            return Err(place.unknown(format!("there is no variable {}", id.0)));
        }
        let (first, place) = (place, words.place);
        let state = words.number("a state")?;
        if state >= model.states(id) {
            return Err(place.unknown(format!("the variable {} has no state {state}", id.0)));
        }
        match known.insert(id, state) {
            None => {}
            Some(other) if other == state => {
                return Err(first.wrong(format!("the variable {} is observed twice", id.0)));
            }
            Some(_) => {
                let Place { line, column } = first;
                let message = format!("the variable {} is observed in two states", id.0);
                return Err(Failure::Contradiction { line, column, message });
            }
        }
        found.push((id, state));
    }
    words.end()?;
    Ok(found)
}

/// Where a word stands.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn wrong(self, message: String) -> Failure {
        Failure::Text { line: self.line, column: self.column, message }
    }

    fn unknown(self, message: String) -> Failure {
        Failure::Unknown { line: self.line, column: self.column, message }
    }
}

struct Words<'t> {
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
    /// What is left of the line at hand.
    rest: &'t str,
    /// Where the next word stands.
    place: Place,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Words<'t> {
        let mut words =
            Words { lines: text.lines().enumerate(), rest: "", place: Place { line: 1, column: 1 } };
        words.go_on();
        // A mark at the beginning that some editors make.
        if let Some(rest) = words.rest.strip_prefix('\u{feff}') {
            words.rest = rest;
            words.place.column += 1;
            words.go_on();
        }
        words
    }

    /// Moves to the next word.
    fn go_on(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            self.place.column += self.rest[..self.rest.len() - trimmed.len()].chars().count();
            self.rest = trimmed;
            if !self.rest.is_empty() {
                return;
            }
            let Some((number, line)) = self.lines.next() else { return };
            (self.rest, self.place) = (line, Place { line: number + 1, column: 1 });
        }
    }

    fn word(&mut self, what: &str) -> Result<(&'t str, Place), Failure> {
        let place = self.place;
        let len = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        if word.is_empty() {
            return Err(place.wrong(format!("the text ends where {what} was expected")));
        }
        self.rest = rest;
        self.place.column += word.chars().count();
        self.go_on();
        Ok((word, place))
    }

    fn number(&mut self, what: &str) -> Result<usize, Failure> {
        let (word, place) = self.word(what)?;
        word.parse().map_err(|_| place.wrong(format!("`{word}` where {what} was expected")))
    }

    fn end(&self) -> Result<(), Failure> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.place.wrong("more words than the network has numbers".to_owned())),
        }
    }
}
