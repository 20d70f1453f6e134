//! A trained cell read back as a proof: its operators as matrices of 0 and 1, its gates as one program for each state.
//!
//! Enter at [`snap`]. What a cell `ll` computes is read off its own runs, by what its readout tells; the task is asked for
//! nothing but sequences of letters and, at the end, whether the cell that comes out is right. In the basis of the told
//! states an operator V(x) is a map of states, and a gate names a program for each state, so that
//!
//! ```text
//! next(s, x′, x) = ⟦program of s⟧(V(x′), V(x)) s
//! ```
//! is a system of equations for the maps. Where it has a solution that all runs agree with, the cell *snaps*: the maps and
//! the programs are the cell of section 12, which is exact in integers at any length. Where it has none, the answer says
//! what did not fit.

use std::collections::BTreeMap;

use seeded::Family;

use crate::cell::Cell;
use crate::engine::{Engine, Inputs, Sequences, Targets};
use crate::error::{Kind, Refusal, Result};
use crate::options::{CellKind, Options, Sizes};
use crate::program::{ProgramText, normal_form};
use crate::task::Task;

/// Sequences that are run to read a cell, and their length.
const RUNS: (usize, usize) = (400, 64);
/// The length at which a snapped cell is tested.
pub const TESTED: usize = 100_000;
/// Values that are tried for the maps of one letter.
const MOST_TRIED: usize = 200_000;
/// Less than the share of a state's visits that name one program, and of a transition's that lead to one state: what is
/// rounded is said, and whether it fits is decided by the equations.
const AGREEMENT: f64 = 0.5;

/// A cell as programs and maps.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapped {
    /// The programs that some state has, with their normal forms and the states of each.
    pub programs: Vec<Program>,
    /// For each letter the map of states: column s of the matrix of the letter has its 1 in row `maps[letter][s]`.
    pub maps: Vec<Vec<u32>>,
    /// The state before the first letter.
    pub start: u32,
    /// The least share, over states, of visits at which the gate named the state's program.
    pub named: f64,
    /// The least share, over transitions, of visits that led to one state.
    pub agreed: f64,
    /// The cell with those matrices and programs, and its weights.
    pub cell: Cell,
    /// Its options, as a run writes them.
    pub options: serde_json::Value,
    /// Its trained weights, all 0 or 1.
    pub theta: Vec<f64>,
    /// Wrong states on a random sequence of length [`TESTED`].
    pub wrong: usize,
}

/// A program of a snapped cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The numeral, or the word.
    pub text: String,
    /// The proof in normal form, as a text of the language.
    pub normal: String,
    /// The states whose gate names it.
    pub states: Vec<u32>,
}

/// What was read of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// It snaps.
    Snapped(Box<Snapped>),
    /// It does not, and why.
    Not(String),
}

/// What the runs of a cell show.
struct Seen {
    /// For each state, how often each gate was the largest.
    gates: BTreeMap<u32, Vec<u32>>,
    /// For each state, letter before and letter, how often each state followed. Without words the letter before is 0.
    next: BTreeMap<(u32, u32, u32), BTreeMap<u32, u32>>,
    /// What is told after the first letter.
    first: BTreeMap<u32, u32>,
}

/// Reads a trained cell. `theta` holds its trained weights in the order of the step.
///
/// # Errors
/// `config` for a cell that has no programs with gates, and for a task that follows no state.
pub fn snap(cell: &Cell, theta: &[f32], task: &Task) -> Result<Reading> {
    let refuse = |what: &str| Refusal::new(Kind::Config, format!("nothing to snap: {what}"));
    if cell.kind != CellKind::LinearLogic {
        return Err(refuse("only the cell `ll` has programs that gates choose from"));
    }
    if !task.is_state() {
        return Err(refuse("the task asks for no state"));
    }
    let words = programs(cell, "pi[");
    let looks_back = !words.is_empty();
    let programs = if looks_back { words } else { programs(cell, "lambda[") };
    // Words over more places are no programs of this letter and the one before.
    if cell.step.states.len() > 1 {
        return Err(refuse("words over more than two places are not read"));
    }
    let Some(digits) = programs.into_iter().map(|p| digits(p, looks_back)).collect::<Option<Vec<_>>>() else {
        return Err(refuse("a program is neither a numeral nor a word"));
    };
    let programs: Vec<String> = digits.iter().map(|digits| spelling(digits, looks_back)).collect();
    let report = if looks_back { "q" } else { "p" };
    let gates = cell.step.reports.iter().find(|(name, _)| name == report).map(|(_, value)| *value);
    let gates = match gates {
        Some(gates) if cell.step.len_of(gates) == digits.len() => Some(gates),
        // One program needs no gate.
        _ if digits.len() == 1 => None,
        _ => return Err(refuse("there is not one gate for each program")),
    };

    let (states, letters) = (task.classes(), task.symbols());
    let seen = observe(cell, theta, task, gates.map(|gates| (gates, digits.len())), looks_back)?;
    let mut named = 1.0_f64;
    let mut program = vec![0; states as usize];
    for (state, counts) in &seen.gates {
        let (most, share) = majority(counts.iter().copied().enumerate());
        named = named.min(share);
        program[*state as usize] = most;
    }
    if named <= AGREEMENT {
        return Ok(Reading::Not(format!(
            "the gates name no program: at some state the largest one is it at {named:.3} of the visits"
        )));
    }
    let mut agreed = 1.0_f64;
    let mut table = BTreeMap::new();
    for (from, counts) in &seen.next {
        let (to, share) = majority(counts.iter().map(|(to, count)| (*to, *count)));
        agreed = agreed.min(share);
        table.insert(*from, to);
    }
    if agreed <= AGREEMENT {
        return Ok(Reading::Not(format!(
            "what is told follows no automaton: a transition led to one state at {agreed:.3} of the visits"
        )));
    }
    let found =
        Solver { states, letters, table: &table, program: &program, digits: &digits, looks_back }.solve();
    let (maps, unit) = match found {
        Ok(found) => found,
        Err(why) => return Ok(Reading::Not(why)),
    };
    // Where the first letter leads from decides where sequences begin.
    let after = |start: u32| {
        seen.first.iter().all(|(letter, told)| {
            let digits = &digits[program[start as usize]];
            run(digits, &maps, unit, *letter, start) == *told
        })
    };
    let Some(start) = (0..states).find(|start| after(*start)) else {
        return Ok(Reading::Not("no state leads to what is told after the first letter".to_owned()));
    };

    let (cell, options, theta) = exact(task, &programs, looks_back, &program, &maps, start, unit)?;
    let wrong = wrong(&cell, &theta, task)?;
    let mut listed = Vec::new();
    for (at, text) in programs.iter().enumerate() {
        let states: Vec<u32> = (0..states).filter(|state| program[*state as usize] == at).collect();
        if !states.is_empty() {
            let written = if looks_back { format!("0b{text}") } else { text.clone() };
            listed.push(Program { text: text.clone(), normal: normal_form(&written)?, states });
        }
    }
    let programs = listed;
    Ok(Reading::Snapped(Box::new(Snapped {
        programs,
        maps,
        start,
        named,
        agreed,
        cell,
        options,
        theta,
        wrong,
    })))
}

/// The programs of a list.
fn programs<'a>(cell: &'a Cell, list: &str) -> Vec<&'a ProgramText> {
    cell.programs.iter().filter(|program| program.place.starts_with(list)).collect()
}

/// The operators of a program in the order in which they are applied: true for this letter, false for the one before.
fn digits(program: &ProgramText, is_word: bool) -> Option<Vec<bool>> {
    let applied = program.applied.as_ref()?;
    Some(applied.iter().map(|digit| !is_word || *digit == 1).collect())
}

/// A numeral, or a word as `order = "literal"` has it: the last digit is applied first.
fn spelling(digits: &[bool], is_word: bool) -> String {
    if is_word {
        return digits.iter().rev().map(|is_this| if *is_this { '1' } else { '0' }).collect();
    }
    digits.len().to_string()
}

/// The value with the greatest count, and its share.
fn majority<T: Default>(counts: impl Iterator<Item = (T, u32)>) -> (T, f64) {
    let (mut best, mut most, mut all) = (T::default(), 0, 0);
    for (value, count) in counts {
        all += count;
        if count > most {
            (best, most) = (value, count);
        }
    }
    (best, f64::from(most) / f64::from(all.max(1)))
}

fn observe(
    cell: &Cell,
    theta: &[f32],
    task: &Task,
    gates: Option<(crate::step::ValueId, usize)>,
    looks_back: bool,
) -> Result<Seen> {
    let logits = cell.step.logits.ok_or_else(|| Refusal::config("the cell has no readout"))?;
    let wide: Vec<f64> = theta.iter().map(|w| f64::from(*w)).collect();
    let engine = Engine::new(cell.step.clone(), &wide);
    let mut seen = Seen { gates: BTreeMap::new(), next: BTreeMap::new(), first: BTreeMap::new() };
    let family = Family::new("linear-logic-rnn-v1", "snap", 0);
    for item in 0..RUNS.0 as u64 {
        let tokens = task.draw(RUNS.1, &mut family.stream(item))?.input;
        let one = Sequences { inputs: Inputs::Tokens(&tokens), length: tokens.len(), count: 1 };
        let mut before: Option<u32> = None;
        engine.observe(one, |time, view| {
            let told = greatest(&view.value(logits)) as u32;
            let letter = tokens[time];
            if let Some(from) = before {
                if let Some((gates, count)) = gates {
                    let largest = greatest(&view.value(gates));
                    seen.gates.entry(from).or_insert_with(|| vec![0; count])[largest] += 1;
                }
                let last = if looks_back { tokens[time - 1] } else { 0 };
                *seen.next.entry((from, last, letter)).or_default().entry(told).or_default() += 1;
            } else {
                seen.first.insert(letter, told);
            }
            before = Some(told);
        });
    }
    Ok(seen)
}

fn greatest(values: &[f64]) -> usize {
    let better = |best: usize, at: usize| if values[at] > values[best] { at } else { best };
    (0..values.len()).reduce(better).unwrap_or(0)
}

/// Where a program leads from a state.
fn run(digits: &[bool], maps: &[Vec<u32>], before: u32, letter: u32, state: u32) -> u32 {
    let apply =
        |state: u32, is_this: &bool| maps[if *is_this { letter } else { before } as usize][state as usize];
    digits.iter().fold(state, apply)
}

/// The equations of the maps.
struct Solver<'a> {
    states: u32,
    letters: u32,
    table: &'a BTreeMap<(u32, u32, u32), u32>,
    /// For each state its program.
    program: &'a [usize],
    digits: &'a [Vec<bool>],
    looks_back: bool,
}

/// The maps as far as they are known: [letter][state].
type Maps = Vec<Vec<Option<u32>>>;

impl Solver<'_> {
    /// The maps of all letters and the letter that changes nothing (0 where no program looks back).
    ///
    /// Maps are taken to be one to one, as those of a group are. What an equation with one gap says is filled in until
    /// nothing more follows; then a value is tried.
    fn solve(&self) -> std::result::Result<(Vec<Vec<u32>>, u32), String> {
        let size = self.letters as usize * self.states as usize;
        let mut maps: Maps = vec![vec![None; self.states as usize]; self.letters as usize];
        let mut unit = 0;
        if self.looks_back {
            let stays = |e: u32| {
                let mut met =
                    (0..self.states).filter_map(|s| Some((s, *self.table.get(&(s, e, e))?))).peekable();
                met.peek().is_some() && met.all(|(s, to)| s == to)
            };
            unit = (0..self.letters).find(|e| stays(*e)).ok_or("no letter changes nothing")?;
            maps[unit as usize] = (0..self.states).map(Some).collect();
        }
        let mut tried = 0;
        match self.extend(maps, &mut tried) {
            Some(maps) => {
                Ok((maps.into_iter().map(|map| map.into_iter().flatten().collect()).collect(), unit))
            }
            None if tried > MOST_TRIED => {
                Err(format!("no maps were found among {MOST_TRIED} of {size} entries"))
            }
            None => {
                Err("no maps of states do what the cell does, with the programs that its gates name"
                    .to_owned())
            }
        }
    }

    /// Maps that fit everything, if there are any that agree with what is known.
    fn extend(&self, mut maps: Maps, tried: &mut usize) -> Option<Maps> {
        *tried += 1;
        if *tried > MOST_TRIED || !self.follow(&mut maps) {
            return None;
        }
        let gap =
            maps.iter().enumerate().find_map(|(x, map)| Some((x, map.iter().position(Option::is_none)?)));
        let Some((letter, state)) = gap else { return Some(maps) };
        (0..self.states).filter(|to| !maps[letter].contains(&Some(*to))).find_map(|to| {
            let mut maps = maps.clone();
            maps[letter][state] = Some(to);
            self.extend(maps, tried)
        })
    }

    /// Fills in what follows; false where two equations contradict each other.
    fn follow(&self, maps: &mut Maps) -> bool {
        loop {
            let mut is_new = false;
            for ((state, before, letter), end) in self.table {
                let digits = &self.digits[self.program[*state as usize]];
                let which = |is_this: &bool| if *is_this { *letter } else { *before } as usize;
                // From the state forward and from its end backward, as far as is known.
                let (mut from, mut to) = (*state, *end);
                let (mut low, mut high) = (0, digits.len());
                while low < high
                    && let Some(next) = maps[which(&digits[low])][from as usize]
                {
                    (from, low) = (next, low + 1);
                }
                while low < high
                    && let Some(back) = maps[which(&digits[high - 1])].iter().position(|m| *m == Some(to))
                {
                    (to, high) = (back as u32, high - 1);
                }
                match high - low {
                    0 if from != to => return false,
                    1 => {
                        let map = &mut maps[which(&digits[low])];
                        if map.contains(&Some(to)) {
                            return false;
                        }
                        map[from as usize] = Some(to);
                        is_new = true;
                    }
                    _ => {}
                }
            }
            if !is_new {
                return true;
            }
        }
    }
}

/// The cell of section 12 with these maps: its state is one-hot, its weights are 0 and 1.
fn exact(
    task: &Task,
    programs: &[String],
    looks_back: bool,
    program: &[usize],
    maps: &[Vec<u32>],
    start: u32,
    unit: u32,
) -> Result<(Cell, serde_json::Value, Vec<f64>)> {
    let n = program.len();
    let mut options = serde_json::json!({
        "preset": "paper", "v": "full", "project": "identity", "hh": false, "h0": "learned",
    });
    if looks_back {
        options["pi"] = programs.into();
        options["x0"] = "learned".into();
    } else {
        let numerals: Vec<u64> = programs.iter().filter_map(|text| text.parse().ok()).collect();
        options["lambda"] = numerals.into();
    }
    let sizes = Sizes {
        input: Some(task.symbols() as usize),
        hidden: Some(n),
        output: Some(n),
        readout: Some(0),
        ..Sizes::default()
    };
    let cell = Cell::new(CellKind::LinearLogic, &sizes, &Options::read(&options)?)?;
    let mut theta = Vec::new();
    for (_, weight) in cell.step.trained() {
        let mut entries = vec![0.0; weight.len()];
        match weight.name.as_str() {
            "V" => {
                for (letter, map) in maps.iter().enumerate() {
                    for (from, to) in map.iter().enumerate() {
                        entries[(letter * n + *to as usize) * n + from] = 1.0;
                    }
                }
            }
            "P" | "Q" => program.iter().enumerate().for_each(|(state, at)| entries[at * n + state] = 1.0),
            "h0" => entries[start as usize] = 1.0,
            "x0" => entries[unit as usize] = 1.0,
            "E" => (0..n).for_each(|state| entries[state * n + state] = 1.0),
            _ => {}
        }
        theta.extend(entries);
    }
    Ok((cell, options, theta))
}

/// Wrong states of a cell on a random sequence.
fn wrong(cell: &Cell, theta: &[f64], task: &Task) -> Result<usize> {
    let mut stream = Family::new("linear-logic-rnn-v1", "snap-test", 0).stream(0);
    let example = task.draw(TESTED, &mut stream)?;
    let engine = Engine::new(cell.step.clone(), theta);
    let one = Sequences { inputs: Inputs::Tokens(&example.input), length: TESTED, count: 1 };
    let targets = Targets { classes: &example.target, mask: &example.mask };
    let told = engine.predict(one, targets).classes;
    Ok(told.iter().zip(&example.target).filter(|(told, right)| told != right).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Settings;

    fn task(name: &str) -> Task {
        Task::new(name, &Settings::default()).unwrap()
    }

    /// The maps of the task itself, and the program that was planted at each state, as a cell.
    fn planted(name: &str, programs: &[&str]) -> (Cell, Vec<f32>, Task) {
        let task = task(name);
        let automaton = task.automaton().unwrap();
        let looks_back = automaton.looks_back();
        let program = task.planted().map_or_else(|| vec![0; task.classes() as usize], |planted| planted.at);
        let unit = automaton.first();
        let map = |x: u32| (0..task.classes()).map(|s| product(&task, s, x)).collect();
        let maps: Vec<Vec<u32>> = (0..task.symbols()).map(map).collect();
        let programs: Vec<String> = programs.iter().map(|text| (*text).to_owned()).collect();
        let (cell, _, theta) =
            exact(&task, &programs, looks_back, &program, &maps, automaton.start(), unit).unwrap();
        let theta = theta.iter().map(|w| *w as f32).collect();
        (cell, theta, task)
    }

    /// s·x in the group of a planted task.
    fn product(task: &Task, s: u32, x: u32) -> u32 {
        let plain = match task.name() {
            "planted-lambda-d5" => "word-d5",
            "planted-pi-s3" => "word-s3",
            "planted-lambda-z7" => return (s + x) % 7,
            other => other,
        };
        self::task(plain).automaton().unwrap().step(s, 0, x).unwrap()
    }

    #[test]
    fn cells_of_zeros_and_ones_are_read_as_what_they_are() {
        for (name, programs) in [
            ("planted-lambda-d5", &["1", "2"][..]),
            ("planted-lambda-z7", &["1", "2"]),
            ("planted-pi-s3", &["10", "01"]),
            ("word-s3", &["1"]),
        ] {
            let (cell, theta, task) = planted(name, programs);
            let Reading::Snapped(found) = snap(&cell, &theta, &task).unwrap() else {
                panic!("{name}: {:?}", snap(&cell, &theta, &task))
            };
            assert_eq!(found.wrong, 0, "{name}");
            assert_eq!((found.named, found.agreed), (1.0, 1.0));
            let texts: Vec<&str> = found.programs.iter().map(|p| p.text.as_str()).collect();
            assert_eq!(texts, programs, "{name}");
            if let Some(planted) = task.planted() {
                for (at, program) in found.programs.iter().enumerate() {
                    assert!(program.states.iter().all(|state| planted.at[*state as usize] == at));
                }
            }
            // A numeral of one, and a word, written out.
            assert!(found.programs.iter().all(|p| p.normal.starts_with('\\')), "{:?}", found.programs);
            assert!(found.theta.iter().all(|w| *w == 0.0 || *w == 1.0));
        }
    }

    /// However words are read, what is applied first is applied first.
    #[test]
    fn words_are_read_in_their_order() {
        let (cell, theta, task) = planted("planted-pi-s3", &["10", "01"]);
        let options = serde_json::json!({
            "preset": "paper", "v": "full", "project": "identity", "hh": false, "h0": "learned", "x0": "learned",
            "pi": ["01", "10"], "order": "first-digit-first",
        });
        let sizes =
            Sizes { input: Some(6), hidden: Some(6), output: Some(6), readout: Some(0), ..Sizes::default() };
        let turned = |options: &serde_json::Value| {
            Cell::new(CellKind::LinearLogic, &sizes, &Options::read(options).unwrap()).unwrap()
        };
        let Reading::Snapped(literal) = snap(&cell, &theta, &task).unwrap() else { panic!("literal") };
        let Reading::Snapped(other) = snap(&turned(&options), &theta, &task).unwrap() else { panic!("fdf") };
        assert_eq!((other.wrong, &other.programs, &other.maps), (0, &literal.programs, &literal.maps));
        let longer = serde_json::json!({
            "preset": "paper", "v": "full", "project": "identity", "hh": false, "h0": "learned", "x0": "learned",
            "pi": ["10", "01"], "window": 3,
        });
        assert!(snap(&turned(&longer), &theta, &task).unwrap_err().message.contains("two places"));
    }

    #[test]
    fn what_does_not_snap_says_why() {
        // Gates that say nothing: the same bias for both.
        let (cell, mut theta, task) = planted("planted-pi-s3", &["10", "01"]);
        let mut at = 0;
        for (_, weight) in cell.step.trained() {
            if weight.name == "Q" {
                theta[at..at + weight.len()].fill(0.5);
            }
            at += weight.len();
        }
        let reading = snap(&cell, &theta, &task).unwrap();
        assert!(matches!(&reading, Reading::Not(why) if !why.is_empty()), "{reading:?}");
        // A damaged operator: two states become one.
        let (cell, mut theta, task) = planted("planted-lambda-z7", &["1", "2"]);
        let mut at = 0;
        for (_, weight) in cell.step.trained() {
            if weight.name == "V" {
                theta.swap(at + 7 * 7, at + 7 * 7 + 7);
            }
            at += weight.len();
        }
        if let Reading::Snapped(found) = snap(&cell, &theta, &task).unwrap() {
            assert!(found.wrong > 0, "the task says otherwise");
        }
        let elman = Cell::new(
            CellKind::Elman,
            &Sizes { input: Some(6), hidden: Some(3), output: Some(6), ..Sizes::default() },
            &Options::default(),
        )
        .unwrap();
        let zeros = vec![0.0; elman.count()];
        assert!(snap(&elman, &zeros, &self::task("word-s3")).unwrap_err().message.contains("`ll`"));
        let (cell, theta, _) = planted("word-s3", &["1"]);
        assert!(snap(&cell, &theta, &self::task("flip")).unwrap_err().message.contains("no state"));
    }
}
