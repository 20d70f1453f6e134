//! Checking (F20, F21, F22, F23) a tree that was read: arities, scopes, definitions, sorts, and whether a law can produce it.
//!
//! Enter at [`check`]. Every rule looks at the events of one walk and notes its violations; of all of them
//! the one that stands first is reported, at one place the one whose kind comes first in the table of kinds.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Kind, Refusal};
use crate::read::Parsed;
use crate::signature::Signature;
use crate::symbol::SymbolId;
use crate::walk::{Event, Place, walk_placed};

/// Which rules hold beside those that always do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// An index may have several arities.
    pub overloaded: bool,
    /// Only what a law with this signature can produce; implies `overloaded`.
    pub within: Option<Signature>,
    /// No variable is free.
    pub closed: bool,
    /// Every quantifier binds something.
    pub no_vacuous: bool,
    /// No quantifier repeats a variable in whose scope it stands.
    pub no_shadow: bool,
    /// Sorts agree.
    pub sorts: bool,
}

/// What a text uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Predicates with their arities, ascending.
    pub predicates: BTreeSet<(u64, usize)>,
    /// Functions with their arities, ascending.
    pub functions: BTreeSet<(u64, usize)>,
    /// Constants, ascending.
    pub constants: BTreeSet<u64>,
    /// Sorts, ascending.
    pub sorts: BTreeSet<u64>,
    /// Free variables, by first occurrence.
    pub free: Vec<u64>,
    /// Positions of the quantifiers that bind nothing.
    pub vacuous: Vec<usize>,
    /// Positions of the quantifiers that repeat a variable in whose scope they stand.
    pub shadowed: Vec<usize>,
}

/// Checks a text that was read. Positions are those of the input.
///
/// # Errors
/// The first violation.
pub fn check(parsed: &Parsed, options: &Options) -> Result<Report, Refusal> {
    let (report, violations) = examine(parsed, options);
    violations.into_iter().next().map_or(Ok(report), Err)
}

/// What a text uses, and all its violations, the first one first.
pub fn examine(parsed: &Parsed, options: &Options) -> (Report, Vec<Refusal>) {
    let mut checker = Checker::new(options);
    walk_placed(&parsed.text, |at, event| checker.event(at, event));
    checker.finish();
    let Checker { mut report, mut violations, .. } = checker;
    violations.sort_by_key(|(at, refusal)| (*at, refusal.kind));
    for at in report.vacuous.iter_mut().chain(&mut report.shadowed) {
        *at = parsed.positions.get(*at).copied().unwrap_or(*at);
    }
    let violations = violations.into_iter().map(|(at, refusal)| parsed.locate(refusal.at(at)));
    (report, violations.collect())
}

struct Checker<'a> {
    options: &'a Options,
    report: Report,
    violations: Vec<(usize, Refusal)>,
    /// The first arity of each predicate and function.
    arities: BTreeMap<(SymbolId, u64), usize>,
    /// Position of the quantifier, sort and use of each binder.
    binders: Vec<Binder>,
    /// What the current statement defines.
    head: Option<(SymbolId, u64, usize)>,
    /// How many parameters it had so far.
    parameters: usize,
    /// The sort of each argument place.
    places: BTreeMap<Place, Option<u64>>,
}

struct Binder {
    at: usize,
    quantifier: bool,
    sort: Option<u64>,
    used: bool,
}

impl<'a> Checker<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            report: Report::default(),
            violations: Vec::new(),
            arities: BTreeMap::new(),
            binders: Vec::new(),
            head: None,
            parameters: 0,
            places: BTreeMap::new(),
        }
    }

    fn refuse(&mut self, at: usize, kind: Kind, message: impl Into<String>) {
        self.violations.push((at, Refusal::new(kind, message)));
    }

    fn event(&mut self, at: usize, event: Event) {
        if let Some(signature) = &self.options.within {
            self.within(signature, at, event);
        }
        match event {
            Event::Statement => (self.head, self.parameters) = (None, 0),
            Event::Symbol(_) | Event::Punctuation(_) | Event::Define(_) | Event::Dot { .. } => {}
            Event::Name { category, index, arity, head } => {
                if head {
                    self.head = Some((category, index, arity));
                } else if self.head == Some((category, index, arity)) {
                    self.refuse(
                        at,
                        Kind::CircularDefinition,
                        "a definition does not use the symbol that it defines",
                    );
                }
                self.name(at, category, index, arity);
            }
            Event::Sort(index) => {
                self.report.sorts.insert(index);
            }
            Event::Binder { variable, sort, quantifier, shadows } => {
                self.binders.push(Binder { at, quantifier: quantifier.is_some(), sort, used: false });
                if let (None, Some((category, index, arity))) = (quantifier, self.head) {
                    let argument = self.parameters;
                    self.parameters += 1;
                    self.fill(at, Place { category, index, arity, argument }, None);
                }
                match (shadows, quantifier) {
                    (false, _) => {}
                    (true, None) => {
                        let message = format!("x{} is a parameter already", variable.0);
                        self.refuse(at, Kind::DuplicateParameter, message);
                    }
                    (true, Some(_)) => {
                        self.report.shadowed.push(at);
                        if self.options.no_shadow {
                            let message = format!("x{} is bound here already", variable.0);
                            self.refuse(at, Kind::ShadowedBinder, message);
                        }
                    }
                }
            }
            Event::Occurrence { variable, binder, place } => self.occurrence(at, variable.0, binder, place),
        }
    }

    fn name(&mut self, at: usize, category: SymbolId, index: u64, arity: usize) {
        match category {
            SymbolId::PRED => self.report.predicates.insert((index, arity)),
            SymbolId::FUNC => self.report.functions.insert((index, arity)),
            _ => self.report.constants.insert(index),
        };
        let first = *self.arities.entry((category, index)).or_insert(arity);
        if first != arity && !self.options.overloaded && self.options.within.is_none() {
            let name = format!("{}{index}", category.unicode());
            let message = format!("{name} has {first} arguments at its first use and {arity} here");
            self.refuse(at, Kind::ArityMismatch, message);
        }
    }

    fn occurrence(&mut self, at: usize, variable: u64, binder: Option<usize>, place: Option<Place>) {
        let binder = binder.and_then(|number| self.binders.get_mut(number));
        let sort = binder.as_ref().and_then(|binder| binder.sort);
        if let Some(binder) = binder {
            binder.used = true;
        } else {
            if !self.report.free.contains(&variable) {
                self.report.free.push(variable);
            }
            if self.options.closed {
                self.refuse(at, Kind::FreeVariable, format!("x{variable} is free"));
            }
            if self.head.is_some() {
                let message = format!("x{variable} is free in the body and no parameter");
                self.refuse(at, Kind::FreeInDefinition, message);
            }
        }
        if let Some(place) = place {
            self.fill(at, place, sort);
        }
    }

    /// A variable of some sort, or of none, stands in an argument place.
    fn fill(&mut self, at: usize, place: Place, sort: Option<u64>) {
        let first = *self.places.entry(place).or_insert(sort);
        if first != sort && self.options.sorts {
            let name = |sort: Option<u64>| sort.map_or("no sort".to_owned(), |sort| format!("sort S{sort}"));
            let message = format!("this argument has {} and had {} before", name(sort), name(first));
            self.refuse(at, Kind::SortMismatch, message);
        }
    }

    /// Whether the law can produce what stands here.
    fn within(&mut self, signature: &Signature, at: usize, event: Event) {
        // The category symbol of a quantifier's variable stands after the quantifier.
        let (at, fits) = match event {
            Event::Statement => return,
            Event::Symbol(symbol) | Event::Punctuation(symbol) => (at, signature.has_symbol(symbol)),
            Event::Define(category) => (at, signature.defines(category)),
            Event::Dot { last } => (
                at,
                signature.statements.as_ref().is_some_and(|s| if last { s.terminated } else { s.several }),
            ),
            Event::Name { category, index, arity, .. } => (at, signature.has_name(category, index, arity)),
            Event::Sort(index) => {
                if !signature.has_symbol(SymbolId::COLON) {
                    return; // the COLON before it is refused
                }
                (at, signature.has_name(SymbolId::SORT, index, 0))
            }
            Event::Binder { quantifier: Some(quantifier), .. } if !signature.has_symbol(quantifier) => {
                (at, false)
            }
            Event::Binder { variable, quantifier, .. } => {
                (at + usize::from(quantifier.is_some()), signature.has_name(SymbolId::VAR, variable.0, 0))
            }
            Event::Occurrence { variable, .. } => (at, signature.has_name(SymbolId::VAR, variable.0, 0)),
        };
        if !fits {
            self.refuse(at, Kind::NotInSignature, "the law cannot produce this");
        }
    }

    fn finish(&mut self) {
        let unused = self.binders.iter().filter(|binder| binder.quantifier && !binder.used);
        self.report.vacuous = unused.map(|binder| binder.at).collect();
        if self.options.no_vacuous {
            for at in self.report.vacuous.clone() {
                self.refuse(at, Kind::VacuousBinder, "this quantifier binds nothing");
            }
        }
    }
}
