//! The certificate of a refutation: a finite interpretation in which the premises hold and the conclusion does not.

use std::collections::{BTreeMap, BTreeSet};

use fol::ast::{Formula, Term, Variable};

use crate::logic::{FunctionSymbol, PredicateSymbol};
use crate::problem::Problem;

/// An interpretation over the elements 0 to `size` − 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// How many elements there are, at least one.
    pub size: usize,
    /// Constants, parameters and functions.
    pub functions: BTreeMap<FunctionSymbol, Table>,
    /// The tuples of which each predicate is true.
    pub predicates: BTreeMap<PredicateSymbol, BTreeSet<Vec<usize>>>,
}

/// A function: its values, and the one where none is listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// By arguments.
    pub values: BTreeMap<Vec<usize>, usize>,
    /// Everywhere else.
    pub default: usize,
}

impl Table {
    /// The value for arguments.
    pub fn value(&self, arguments: &[usize]) -> usize {
        self.values.get(arguments).copied().unwrap_or(self.default)
    }
}

/// Tables of more rows are listed without those of the default value.
const ROWS: usize = 4096;

impl Model {
    /// The interpretation of the symbols of a problem alone; what was not given a meaning gets the plainest one.
    #[must_use]
    pub(crate) fn of_problem(mut self, problem: &Problem) -> Self {
        let mut symbols = Symbols::default();
        for formula in problem.premises().iter().chain(problem.conclusion()) {
            symbols.formula(formula, &mut Vec::new());
        }
        let functions =
            symbols.functions.into_iter().map(|f| (f, self.functions.remove(&f).unwrap_or_default()));
        let predicates =
            symbols.predicates.into_iter().map(|p| (p, self.predicates.remove(&p).unwrap_or_default()));
        Self { size: self.size, functions: functions.collect(), predicates: predicates.collect() }
    }

    /// All rows of a function, arguments and then the value, in order. Of a very large table only those that differ from its
    /// default, and then the default.
    pub fn rows(&self, table: &Table, arity: usize) -> (Vec<Vec<usize>>, Option<usize>) {
        let count = u32::try_from(arity).ok().and_then(|arity| self.size.checked_pow(arity));
        if count.is_some_and(|count| count <= ROWS) {
            let rows = tuples(self.size, arity).map(|mut row| {
                row.push(table.value(&row));
                row
            });
            return (rows.collect(), None);
        }
        let rows = table.values.iter().filter(|(_, value)| **value != table.default);
        let rows = rows.map(|(row, value)| row.iter().chain([value]).copied().collect());
        (rows.collect(), Some(table.default))
    }
}

/// All tuples of elements, in order.
pub(crate) fn tuples(size: usize, arity: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next = (size > 0 || arity == 0).then(|| vec![0; arity]);
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        for place in (0..arity).rev() {
            following[place] += 1;
            if following[place] < size {
                next = Some(following);
                break;
            }
            following[place] = 0;
        }
        Some(current)
    })
}

/// The symbols of formulas.
#[derive(Debug, Default)]
struct Symbols {
    functions: BTreeSet<FunctionSymbol>,
    predicates: BTreeSet<PredicateSymbol>,
}

impl Symbols {
    fn formula(&mut self, formula: &Formula, bound: &mut Vec<Variable>) {
        use fol::ast::Relation::{Equals, NotEquals};
        match formula {
            Formula::Truth(_) => {}
            Formula::Predicate(p, terms) => {
                self.predicates.insert(PredicateSymbol::Predicate(*p, terms.len()));
                terms.iter().for_each(|term| self.term(term, bound));
            }
            Formula::Relation(relation, s, t) => {
                if !matches!(relation, Equals | NotEquals) {
                    self.predicates.insert(PredicateSymbol::Relation(*relation));
                }
                self.term(s, bound);
                self.term(t, bound);
            }
            Formula::Not(body) => self.formula(body, bound),
            Formula::Binary(_, left, right) => {
                self.formula(left, bound);
                self.formula(right, bound);
            }
            Formula::Quantified(_, x, sort, body) => {
                self.predicates.extend(sort.map(PredicateSymbol::Sort));
                bound.push(*x);
                self.formula(body, bound);
                bound.pop();
            }
        }
    }

    fn term(&mut self, term: &Term, bound: &[Variable]) {
        match term {
            Term::Variable(x) if bound.contains(x) => {}
            Term::Variable(x) => drop(self.functions.insert(FunctionSymbol::Parameter(*x))),
            Term::Constant(c) => drop(self.functions.insert(FunctionSymbol::Constant(*c))),
            Term::Function(f, terms) => {
                self.functions.insert(FunctionSymbol::Function(*f, terms.len()));
                terms.iter().for_each(|term| self.term(term, bound));
            }
        }
    }
}
