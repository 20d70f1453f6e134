//! Saturation by superposition (Bachmair and Ganzinger 1994) with a given clause.
//!
//! Clauses wait by weight and by age, four of the lightest for each of the oldest. A clause that is taken is simplified by
//! the active ones, joins them, simplifies them in turn, and all inferences between it and them are drawn. If the empty clause is among them, the
//! steps that led to it are a proof. If none waits any more the clauses have a model, but it may be infinite; another part of the prover must find
//! one that can be checked.
//!
//! An atom of a predicate is an equation with the truth, so that resolution is superposition, and terms are stored once
//! (`bank`). Inferences replace all parts of a literal that equal the rewritten one at once.

mod bank;
mod clause;
mod extract;
mod index;
mod infer;
mod order;
mod simplify;
mod unify;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::hash::Map;
use crate::limit::{Budget, Spent};
use crate::logic::{Atom, Clause as Given, FunctionSymbol, PredicateSymbol, Term};
use crate::proof::Step;
use bank::{Bank, Id, TOP};
use clause::{Clause, ClauseId, Derivation, Draft, Literal, bit};
use index::Index;
use unify::{Bindings, SHIFT};

/// Clauses with more symbols, deeper terms, or more literals than this are dropped.
const HEAVY: u32 = 600;
const DEEP: u32 = 400;
const LONG: usize = 48;
/// The search ends with more terms or clauses than this.
const TERMS: usize = 3_000_000;
const CLAUSES: usize = 600_000;
/// So many of the lightest clauses are taken for one of the oldest.
const LIGHT: u32 = 4;

/// So many visits of terms are a step.
const WORK: u64 = 256;

/// How a search ends.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The steps to the empty clause. Parents with numbers below that of the given clauses are those.
    Refutation(Vec<Step>),
    /// Nothing more can be inferred. `complete` if nothing was dropped: then the clauses have a model.
    Saturated { complete: bool },
    /// There is no room for more.
    Full,
}

/// What a head stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Function(FunctionSymbol),
    Predicate(PredicateSymbol),
}

/// A search, which can be interrupted and taken up again.
pub(crate) struct Saturation {
    bank: Bank,
    symbols: Vec<Symbol>,
    /// The place of each head in the precedence; 0 is the truth.
    rank: Vec<u32>,
    clauses: Vec<Clause>,
    /// How many clauses were given.
    inputs: usize,
    by_weight: BinaryHeap<Reverse<(u32, ClauseId)>>,
    by_age: BinaryHeap<Reverse<ClauseId>>,
    waiting: Vec<bool>,
    taken: u32,
    /// The clause that was taken last, in its simplest form.
    current: ClauseId,
    index: Index,
    bindings: Bindings,
    empty: Option<ClauseId>,
    /// Something was dropped.
    incomplete: bool,
}

impl Saturation {
    pub(crate) fn new(clauses: &[Given]) -> Self {
        let mut search = Self {
            bank: Bank::new(),
            symbols: Vec::new(),
            rank: Vec::new(),
            clauses: Vec::new(),
            inputs: clauses.len(),
            by_weight: BinaryHeap::new(),
            by_age: BinaryHeap::new(),
            waiting: Vec::new(),
            taken: 0,
            current: 0,
            index: Index::default(),
            bindings: Bindings::new(),
            empty: None,
            incomplete: false,
        };
        search.read(clauses);
        search
    }

    /// Goes on until it ends or the budget is spent.
    pub(crate) fn run(&mut self, budget: &mut Budget) -> Result<Ended, Spent> {
        loop {
            if let Some(empty) = self.empty {
                return Ok(Ended::Refutation(self.steps(empty)));
            }
            if self.bank.len() > TERMS || self.clauses.len() > CLAUSES {
                return Ok(Ended::Full);
            }
            let Some(given) = self.next() else {
                return Ok(Ended::Saturated { complete: !self.incomplete && !self.bindings.gave_up });
            };
            self.current = given;
            if let Err(spent) = budget.spend(1).and_then(|()| self.activate(given, budget)) {
                // Its inferences are not all drawn: it is taken again when the search goes on.
                self.wait_again(self.current);
                return Err(spent);
            }
        }
    }

    /// Takes a clause from the active ones, or from nowhere, to those that wait.
    fn wait_again(&mut self, id: ClauseId) {
        self.clauses[id].active = false;
        self.waiting[id] = true;
        self.by_weight.push(Reverse((self.clauses[id].weight, id)));
        self.by_age.push(Reverse(id));
    }

    fn read(&mut self, clauses: &[Given]) {
        let mut numbers = Map::default();
        let mut given = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let literals: Vec<Literal> = clause
                .0
                .iter()
                .map(|literal| {
                    let (left, right) = match &literal.atom {
                        Atom::Equal(s, t) => (self.term(s, &mut numbers), self.term(t, &mut numbers)),
                        Atom::Predicate(p, terms) => {
                            (self.applied(Symbol::Predicate(*p), terms, &mut numbers), TOP)
                        }
                    };
                    Literal { positive: literal.positive, left, right }
                })
                .collect();
            given.push(literals);
        }
        self.rank = self.precedence();
        for literals in given {
            let mut variables = Vec::new();
            for literal in &literals {
                self.bank.collect(literal.left, &mut variables);
                self.bank.collect(literal.right, &mut variables);
            }
            let derivation = Derivation { rule: None, parents: vec![], equality: vec![], names: vec![] };
            self.keep(literals, variables.len(), derivation);
        }
    }

    fn term(&mut self, term: &Term, numbers: &mut Map<Symbol, u32>) -> Id {
        match term {
            // A clause of more variables is dropped before it is used.
            Term::Variable(n) => {
                self.bank.variable(u32::try_from(*n).unwrap_or(u32::MAX >> 2).min(u32::MAX >> 2))
            }
            Term::Apply(symbol, terms) => self.applied(Symbol::Function(*symbol), terms, numbers),
        }
    }

    fn applied(&mut self, symbol: Symbol, terms: &[Term], numbers: &mut Map<Symbol, u32>) -> Id {
        let arguments: Vec<Id> = terms.iter().map(|term| self.term(term, numbers)).collect();
        let next = self.symbols.len() as u32 + 1;
        let number = *numbers.entry(symbol).or_insert(next);
        if number == next {
            self.symbols.push(symbol);
        }
        self.bank.apply(number, &arguments)
    }

    /// Predicates are greater than functions; more arguments are greater; then what came later.
    fn precedence(&self) -> Vec<u32> {
        let key = |number: usize| {
            let (is_predicate, arity) = match self.symbols[number] {
                Symbol::Predicate(p) => (true, p.arity()),
                Symbol::Function(FunctionSymbol::Function(_, arity)) => (false, arity),
                // A witness is worth as much as a function of one argument; its arity is not in its name.
                Symbol::Function(FunctionSymbol::Skolem(..)) => (false, 1),
                Symbol::Function(_) => (false, 0),
            };
            (is_predicate, arity, number)
        };
        let mut order: Vec<usize> = (0..self.symbols.len()).collect();
        order.sort_by_key(|number| key(*number));
        let mut rank = vec![0; self.symbols.len() + 1];
        for (place, number) in order.into_iter().enumerate() {
            rank[number + 1] = place as u32 + 1;
        }
        rank
    }

    /// Keeps a clause, which waits.
    fn keep(&mut self, literals: Vec<Literal>, variables: usize, derivation: Derivation) {
        let id = self.clauses.len();
        let weigh = |literal: &Literal| literal.weight(&self.bank);
        let weight = literals.iter().map(weigh).fold(0, u32::saturating_add);
        let mask = literals.iter().fold(0, |mask, literal| mask | bit(&self.bank, literal));
        if literals.is_empty() {
            self.empty = self.empty.or(Some(id));
        }
        let usable = variables < SHIFT as usize;
        self.incomplete |= !usable;
        if usable {
            self.by_weight.push(Reverse((weight, id)));
            self.by_age.push(Reverse(id));
        }
        self.waiting.push(usable);
        let (eligible, active) = (Vec::new(), false);
        self.clauses.push(Clause { literals, variables, weight, mask, eligible, active, derivation });
    }

    /// Counts the visits of terms as steps.
    fn settle(&mut self, budget: &mut Budget) -> Result<(), Spent> {
        let steps = self.bindings.work / WORK;
        self.bindings.work %= WORK;
        budget.spend(steps)
    }

    fn next(&mut self) -> Option<ClauseId> {
        loop {
            let oldest = self.taken % (LIGHT + 1) == LIGHT;
            let next = if oldest { self.by_age.pop().map(|Reverse(id)| id) } else { None };
            let id = match next {
                Some(id) => id,
                None => match self.by_weight.pop() {
                    Some(Reverse((_, id))) => id,
                    None => self.by_age.pop()?.0,
                },
            };
            if std::mem::replace(&mut self.waiting[id], false) {
                self.taken += 1;
                return Some(id);
            }
        }
    }

    /// Makes a clause active and draws all inferences with it.
    fn activate(&mut self, given: ClauseId, budget: &mut Budget) -> Result<(), Spent> {
        let clause = &self.clauses[given];
        let terms = (0..clause.variables as u32).map(|n| self.bank.variable(n)).collect();
        let from = clause::From { clause: given, terms };
        let literals = self.clauses[given].literals.clone();
        let draft = Draft {
            rule: crate::proof::Rule::Simplification,
            literals,
            parents: vec![from],
            equality: vec![],
        };
        let given = match self.simplified(draft, true, budget)? {
            None => return Ok(()),
            // Nothing but the clause itself: it is taken as it is.
            Some(draft) if draft.parents.len() == 1 && draft.literals == self.clauses[given].literals => {
                given
            }
            Some(draft) => {
                self.finish(draft);
                let id = self.clauses.len() - 1;
                if self.empty.is_some() {
                    return Ok(());
                }
                self.waiting[id] = false;
                id
            }
        };
        self.current = given;
        self.simplify_active(given, budget)?;
        self.choose(given);
        self.insert(given);
        self.infer(given, budget)
    }

    /// Numbers the variables of a draft and keeps it.
    fn finish(&mut self, draft: Draft) {
        let mut names = Vec::new();
        for literal in &draft.literals {
            self.bank.collect(literal.left, &mut names);
            self.bank.collect(literal.right, &mut names);
        }
        self.bindings.clear();
        let mut literals = Vec::with_capacity(draft.literals.len());
        let renaming: Map<u32, u32> = names.iter().copied().zip(0..).collect();
        for literal in draft.literals {
            let left = self.renamed(literal.left, &renaming);
            let right = self.renamed(literal.right, &renaming);
            literals.push(Literal { left, right, ..literal });
        }
        let variables = names.len();
        let (rule, parents, equality) = (Some(draft.rule), draft.parents, draft.equality);
        self.keep(literals, variables, Derivation { rule, parents, equality, names });
    }

    fn renamed(&mut self, term: Id, names: &Map<u32, u32>) -> Id {
        if self.bank.is_ground(term) {
            return term;
        }
        if let Some(variable) = self.bank.as_variable(term) {
            return self.bank.variable(names.get(&variable).copied().unwrap_or(0));
        }
        let Some(symbol) = self.bank.symbol(term) else { return term };
        let count = self.bank.arguments(term).len();
        let mut arguments = Vec::with_capacity(count);
        for at in 0..count {
            let argument = self.bank.arguments(term)[at];
            arguments.push(self.renamed(argument, names));
        }
        self.bank.apply(symbol, &arguments)
    }

    /// Whether a draft is too large to be kept.
    fn is_too_large(&self, literals: &[Literal]) -> bool {
        let weigh = |literal: &Literal| literal.weight(&self.bank);
        literals.len() > LONG
            || literals.iter().map(weigh).fold(0, u32::saturating_add) > HEAVY
            || literals
                .iter()
                .any(|literal| self.bank.depth(literal.left) > DEEP || self.bank.depth(literal.right) > DEEP)
    }
}
