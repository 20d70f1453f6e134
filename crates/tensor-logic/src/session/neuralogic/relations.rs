//! The relations of a data set: their names, and the tables that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{Constant, Literal, Sample};

/// Names of relations and files that differ, not in case alone: there are disks that do not tell cases apart.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// The name that is wanted, or that with the first number behind it that makes it a new one.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2_usize;
        while !self.taken.insert(name.to_lowercase()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}

/// A predicate of one arity.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// Its name in the program, and before `.csv`.
    pub name: String,
    /// How many constants stand behind the sample.
    pub arity: usize,
    /// The shape of its values; `None` where all of them are 1.
    pub shape: Option<Vec<usize>>,
    /// The indices of the program for the places in a value.
    pub indices: Vec<String>,
    /// Its literals.
    literals: Vec<(usize, Literal)>,
}

/// All relations of a data set, in the order of their first literals.
#[derive(Debug)]
pub(super) struct Relations {
    pub facts: Vec<Relation>,
    pub targets: Vec<Relation>,
    /// What has a number in the table of [`Relations::known`], with the name of that.
    pub known: Vec<Constant>,
    pub known_name: String,
    /// The samples, their constants and the numbers of these in the sample, with the name of that table.
    numbers: Vec<(usize, Constant, usize)>,
    pub node_name: String,
    /// How many constants the sample has that has most.
    pub nodes: usize,
    pub names: Names,
}

impl Relations {
    pub(super) fn new(samples: &[Sample]) -> Relations {
        let mut names = Names::default();
        let mut facts = relations(samples.iter().map(|sample| &sample.facts), "", &mut names);
        // A fact that is worth 1 is one without a value.
        for relation in &mut facts {
            let is_one =
                |(_, literal): &(usize, Literal)| literal.shape().is_empty() && literal.numbers() == [1.0];
            if relation.literals.iter().all(is_one) {
                relation.shape = None;
            }
        }
        let mut targets = relations(samples.iter().map(|sample| &sample.queries), "Target_", &mut names);
        for (number, relation) in facts.iter_mut().chain(&mut targets).enumerate() {
            let places = relation.shape.iter().flatten();
            relation.indices = places.zip(["k", "l"]).map(|(_, index)| format!("{index}{number}")).collect();
        }
        let known = known(samples);
        let known_name = names.fresh("Known");
        let node_name = names.fresh("Node");
        let numbers = numbers(samples);
        let nodes = numbers.iter().map(|(.., number)| number + 1).max().unwrap_or(0);
        Relations { facts, targets, known, known_name, numbers, node_name, nodes, names }
    }

    /// The names and texts of the tables.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let table = |relation: &Relation| (format!("{}.csv", relation.name), relation.table());
        let mut files: Vec<_> = self.facts.iter().chain(&self.targets).map(table).collect();
        if !self.numbers.is_empty() {
            let mut text = String::new();
            for (sample, constant, number) in &self.numbers {
                // A string takes everything.
                let _ = write!(text, "{sample},");
                cell(constant, &mut text);
                let _ = writeln!(text, ",{number}");
            }
            files.push((format!("{}.csv", self.node_name), text));
        }
        if !self.known.is_empty() {
            let mut text = String::new();
            for (number, constant) in self.known.iter().enumerate() {
                cell(constant, &mut text);
                // A string takes everything.
                let _ = writeln!(text, ",{number}");
            }
            files.push((format!("{}.csv", self.known_name), text));
        }
        files
    }
}

impl Relation {
    /// The least and the largest of all numbers.
    pub(super) fn range(&self) -> (f64, f64) {
        let numbers = self.literals.iter().flat_map(|(_, literal)| literal.numbers());
        numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
            (low.min(*number), high.max(*number))
        })
    }

    /// Whether all values are 0 or 1.
    pub(super) fn is_yes_or_no(&self) -> bool {
        let mut numbers = self.literals.iter().flat_map(|(_, literal)| literal.numbers());
        self.indices.is_empty() && numbers.all(|number| *number == 0.0 || *number == 1.0)
    }

    /// How many tuples there are.
    pub(super) fn tuples(&self) -> usize {
        let tuples = self.literals.iter().map(|(sample, literal)| (sample, &literal.arguments));
        tuples.collect::<BTreeSet<_>>().len()
    }

    /// A tuple a line: sample, constants, places in the value, value. Equal literals are one line.
    fn table(&self) -> String {
        let (mut text, mut seen) = (String::new(), BTreeSet::new());
        for (sample, literal) in &self.literals {
            let mut tuple = sample.to_string();
            for constant in &literal.arguments {
                tuple.push(',');
                cell(constant, &mut tuple);
            }
            if !seen.insert(tuple.clone()) {
                continue;
            }
            let Some(shape) = &self.shape else {
                text.push_str(&tuple);
                text.push('\n');
                continue;
            };
            let width = shape.last().copied().unwrap_or(1).max(1);
            for (at, number) in literal.numbers().iter().enumerate() {
                text.push_str(&tuple);
                // A string takes everything.
                let _ = match shape.as_slice() {
                    [] => writeln!(text, ",{number:?}"),
                    [_] => writeln!(text, ",{at},{number:?}"),
                    _ => writeln!(text, ",{},{},{number:?}", at / width, at % width),
                };
            }
        }
        text
    }
}

fn relations<'a>(
    samples: impl Iterator<Item = &'a Vec<Literal>>,
    prefix: &str,
    names: &mut Names,
) -> Vec<Relation> {
    let mut order: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    let mut made: Vec<(&str, Relation)> = Vec::new();
    let mut arities: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (sample, literals) in samples.enumerate() {
        for literal in literals {
            let (predicate, arity) = (literal.predicate.as_str(), literal.arguments.len());
            arities.entry(predicate).or_default().insert(arity);
            let at = *order.entry((predicate, arity)).or_insert_with(|| {
                let relation = Relation {
                    name: String::new(),
                    arity,
                    shape: None,
                    indices: Vec::new(),
                    literals: Vec::new(),
                };
                made.push((predicate, relation));
                made.len() - 1
            });
            if let Some((_, relation)) = made.get_mut(at) {
                if relation.shape.is_none() {
                    relation.shape = literal.value.as_ref().map(|value| value.shape.clone());
                }
                relation.literals.push((sample, literal.clone()));
            }
        }
    }
    let named = |(predicate, relation): (&str, Relation)| {
        let mut wanted = format!("{prefix}{}", spelled(predicate));
        if arities.get(predicate).is_some_and(|arities| arities.len() > 1) {
            // A string takes everything.
            let _ = write!(wanted, "_{}", relation.arity);
        }
        Relation { name: names.fresh(&wanted), ..relation }
    };
    made.into_iter().map(named).collect()
}

/// The longest name that is made of a predicate, in characters: a name of a file has 255 bytes on most disks.
const LONGEST: usize = 50;

/// A predicate as the name of a tensor: the first letter is a capital one, other signs than letters and digits are `_`.
fn spelled(predicate: &str) -> String {
    let sign = |letter: char| if letter.is_alphanumeric() { letter } else { '_' };
    let mut letters = predicate.chars().map(sign).take(LONGEST);
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    let name = first + &letters.collect::<String>();
    if crate::lex::is_capital_name(&name) {
        return name;
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("P_{}", predicate.chars().map(plain).take(LONGEST).collect::<String>())
}

/// The constants that have a vector of their own: all in a single sample; else the words that two samples have.
fn known(samples: &[Sample]) -> Vec<Constant> {
    let mut last: BTreeMap<&Constant, (usize, bool)> = BTreeMap::new();
    for (at, sample) in samples.iter().enumerate() {
        for constant in sample.facts.iter().chain(&sample.queries).flat_map(|literal| &literal.arguments) {
            let (before, again) = last.entry(constant).or_insert((at, samples.len() == 1));
            *again |= *before != at && matches!(constant, Constant::Word(_));
        }
    }
    last.into_iter().filter(|(_, (_, again))| *again).map(|(constant, _)| constant.clone()).collect()
}

/// The constants of each sample, numbered in the order in which they come.
fn numbers(samples: &[Sample]) -> Vec<(usize, Constant, usize)> {
    let mut all = Vec::new();
    for (at, sample) in samples.iter().enumerate() {
        let mut seen = BTreeSet::new();
        let literals = sample.facts.iter().chain(&sample.queries);
        for constant in literals.flat_map(|literal| &literal.arguments) {
            let number = seen.len();
            if seen.insert(constant) {
                all.push((at, constant.clone(), number));
            }
        }
    }
    all
}

/// A cell of a table, quoted where it has to be.
fn cell(constant: &Constant, out: &mut String) {
    match constant {
        Constant::Int(number) => {
            // A string takes everything.
            let _ = write!(out, "{number}");
        }
        Constant::Word(word) if word.is_empty() || word.contains(['"', ',', '\n', '\r']) => {
            out.push('"');
            out.push_str(&word.replace('"', "\"\""));
            out.push('"');
        }
        Constant::Word(word) => out.push_str(word),
    }
}
