//! Clauses without functions (Bernays and Schönfinkel's class) are decided over their constants.
//!
//! By Herbrand's theorem they have a model if and only if all their instances over the constants have one. The instances are
//! many, so they come when they are asked for (as in Inst-Gen: Ganzinger and Korovin 2003): the propositional solver makes a
//! model of the instances so far, atoms that it does not know are false, and instances of clauses that are false in it are
//! added, until there is none or the solver refutes what it has. Equations are atoms too; where the model breaks
//! transitivity or congruence, that instance of the axiom is added.

mod proof;

use crate::hash::Map;
use crate::limit::{Budget, Spent};
use crate::logic::{Atom, Clause, FunctionSymbol, PredicateSymbol, Term};
use crate::model::Model;
use crate::proof::Step;
use crate::sat::{Lit, Solver};

/// What a search over constants ends with.
#[derive(Debug)]
pub(crate) enum Found {
    /// Steps from the clauses, which are the first of them, to the empty one.
    Refutation(Vec<Step>),
    Model(Model),
}

/// Of one clause so many false instances are added at a time.
const INSTANCES: usize = 64;

/// Whether clauses have no functions.
pub(crate) fn is_function_free(clauses: &[Clause]) -> bool {
    let flat = |term: &Term| match term {
        Term::Variable(_) => true,
        Term::Apply(_, terms) => terms.is_empty(),
    };
    clauses.iter().flat_map(|clause| &clause.0).all(|literal| match &literal.atom {
        Atom::Predicate(_, terms) => terms.iter().all(flat),
        Atom::Equal(s, t) => flat(s) && flat(t),
    })
}

/// Decides clauses without functions.
pub(crate) fn decide(clauses: &[Clause], budget: &mut Budget) -> Result<Found, Spent> {
    let mut search = Search::new(clauses);
    loop {
        if !search.solver.solve(budget)? {
            return Ok(Found::Refutation(search.refutation(clauses)));
        }
        if search.equality && search.repair(budget)? {
            continue;
        }
        search.tabulate();
        if !search.extend(budget)? {
            return Ok(Found::Model(search.model()));
        }
    }
}

/// An argument: a constant, or a variable of the clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument {
    Constant(u32),
    Variable(u32),
}

#[derive(Debug)]
struct Literal {
    positive: bool,
    /// 0 is equality.
    predicate: u32,
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Compiled {
    /// Negative literals of predicates first: their true atoms are few.
    literals: Vec<Literal>,
    /// How many those are.
    joined: usize,
    variables: usize,
}

/// Where a clause of the solver comes from.
#[derive(Debug, Clone)]
enum Source {
    /// A clause and the constants for its variables.
    Instance(usize, Vec<u32>),
    /// An instance of an axiom of equality.
    Axiom,
}

const EQUALITY: u32 = 0;

struct Search {
    constants: Vec<FunctionSymbol>,
    /// By number, from 1.
    predicates: Vec<PredicateSymbol>,
    clauses: Vec<Compiled>,
    equality: bool,
    solver: Solver,
    /// Predicate and constants, for each variable of the solver.
    atoms: Vec<Vec<u32>>,
    numbers: Map<Vec<u32>, usize>,
    /// By the number of the clause in the solver; learned clauses have none.
    sources: Map<usize, Source>,
    /// The least constant that is equal, in the model.
    representatives: Vec<u32>,
    /// Of each predicate the true tuples of representatives, in the model.
    rows: Vec<Vec<Vec<u32>>>,
    known: Map<Vec<u32>, ()>,
}

impl Search {
    fn new(clauses: &[Clause]) -> Self {
        let mut names = Names::default();
        let compiled: Vec<Compiled> = clauses.iter().map(|clause| names.clause(clause)).collect();
        if names.constants.is_empty() {
            // The domain is not empty: some element has this name.
            names.constants.push(FunctionSymbol::Skolem(0, 0));
        }
        let equality =
            compiled.iter().any(|clause| clause.literals.iter().any(|literal| literal.predicate == EQUALITY));
        Self {
            representatives: (0..names.constants.len() as u32).collect(),
            rows: vec![Vec::new(); names.predicates.len() + 1],
            constants: names.constants,
            predicates: names.predicates,
            clauses: compiled,
            equality,
            solver: Solver::default(),
            atoms: Vec::new(),
            numbers: Map::default(),
            sources: Map::default(),
            known: Map::default(),
        }
    }

    /// The variable of the solver for an atom.
    fn atom(&mut self, mut key: Vec<u32>) -> usize {
        if key[0] == EQUALITY && key[1] > key[2] {
            key.swap(1, 2);
        }
        if let Some(&variable) = self.numbers.get(&key) {
            return variable;
        }
        let variable = self.solver.variable();
        self.numbers.insert(key.clone(), variable);
        self.atoms.push(key);
        variable
    }

    fn lit(&mut self, positive: bool, key: Vec<u32>) -> Lit {
        Lit::new(self.atom(key), positive)
    }

    /// Adds instances that are false in the model; false if there is none.
    fn extend(&mut self, budget: &mut Budget) -> Result<bool, Spent> {
        let mut some = false;
        for clause in 0..self.clauses.len() {
            let mut found = Vec::new();
            let compiled = &self.clauses[clause];
            let mut binding = vec![u32::MAX; compiled.variables];
            self.falsified(compiled, 0, &mut binding, &mut found, budget)?;
            for values in found {
                some = true;
                self.add_instance(clause, values);
            }
        }
        Ok(some)
    }

    fn add_instance(&mut self, clause: usize, values: Vec<u32>) {
        let compiled = &self.clauses[clause];
        let mut keys = Vec::with_capacity(compiled.literals.len());
        for literal in &compiled.literals {
            let key = instance(literal, &values);
            // The instance is false in the model, so an equation of one constant with itself is denied here.
            if literal.predicate != EQUALITY || key[1] != key[2] {
                keys.push((literal.positive, key));
            }
        }
        let lits = keys.into_iter().map(|(positive, key)| self.lit(positive, key)).collect();
        let id = self.solver.add(lits);
        self.sources.insert(id, Source::Instance(clause, values));
    }

    /// Collects bindings under which the clause is false in the model.
    fn falsified(
        &self,
        clause: &Compiled,
        at: usize,
        binding: &mut [u32],
        found: &mut Vec<Vec<u32>>,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        budget.spend(1)?;
        if let Some(literal) = clause.literals.get(at).filter(|_| at < clause.joined) {
            for row in &self.rows[literal.predicate as usize] {
                let before: Vec<u32> = binding.to_vec();
                let fits = literal.arguments.iter().zip(row).all(|(argument, &value)| match *argument {
                    Argument::Constant(c) => self.representatives[c as usize] == value,
                    Argument::Variable(x) => {
                        let bound = &mut binding[x as usize];
                        let fits = *bound == u32::MAX || *bound == value;
                        *bound = value;
                        fits
                    }
                });
                if fits {
                    self.falsified(clause, at + 1, binding, found, budget)?;
                }
                binding.copy_from_slice(&before);
                if found.len() >= INSTANCES {
                    return Ok(());
                }
            }
            return Ok(());
        }
        if clause.literals[clause.joined..].iter().any(|literal| self.truth(literal, binding) == Some(true)) {
            return Ok(());
        }
        let Some(open) = binding.iter().position(|value| *value == u32::MAX) else {
            found.push(binding.to_vec());
            return Ok(());
        };
        for constant in 0..self.constants.len() as u32 {
            if self.representatives[constant as usize] == constant {
                binding[open] = constant;
                self.falsified(clause, at, binding, found, budget)?;
                if found.len() >= INSTANCES {
                    break;
                }
            }
        }
        binding[open] = u32::MAX;
        Ok(())
    }

    /// The truth of a literal in the model, if its variables are bound.
    fn truth(&self, literal: &Literal, binding: &[u32]) -> Option<bool> {
        let mut key = Vec::with_capacity(literal.arguments.len() + 1);
        key.push(literal.predicate);
        for argument in &literal.arguments {
            let constant = match *argument {
                Argument::Constant(c) => self.representatives[c as usize],
                Argument::Variable(x) => binding[x as usize],
            };
            if constant == u32::MAX {
                return None;
            }
            key.push(constant);
        }
        let holds =
            if literal.predicate == EQUALITY { key[1] == key[2] } else { self.known.contains_key(&key) };
        Some(holds == literal.positive)
    }

    /// The model over representatives.
    fn tabulate(&mut self) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.known.clear();
        for (variable, atom) in self.atoms.iter().enumerate() {
            if atom[0] == EQUALITY || !self.solver.is_true(Lit::new(variable, true)) {
                continue;
            }
            let mut key = atom.clone();
            key[1..].iter_mut().for_each(|constant| *constant = self.representatives[*constant as usize]);
            if self.known.insert(key.clone(), ()).is_none() {
                self.rows[key[0] as usize].push(key[1..].to_vec());
            }
        }
    }

    /// Adds what the model breaks of the axioms of equality; false if it breaks none. Then equality is an equivalence
    /// in the model, and equal constants are alike.
    fn repair(&mut self, budget: &mut Budget) -> Result<bool, Spent> {
        let n = self.constants.len();
        let mut equal = vec![Vec::new(); n];
        for (variable, atom) in self.atoms.iter().enumerate() {
            if atom[0] == EQUALITY && self.solver.is_true(Lit::new(variable, true)) {
                equal[atom[1] as usize].push(atom[2]);
                equal[atom[2] as usize].push(atom[1]);
            }
        }
        let mut axioms = Vec::new();
        self.representatives = (0..n as u32).collect();
        for middle in 0..n {
            for (i, &a) in equal[middle].iter().enumerate() {
                for &b in &equal[middle][i + 1..] {
                    budget.spend(1)?;
                    if a != b && !equal[a as usize].contains(&b) {
                        let m = middle as u32;
                        axioms.push(vec![
                            (false, vec![EQUALITY, m, a]),
                            (false, vec![EQUALITY, m, b]),
                            (true, vec![EQUALITY, a, b]),
                        ]);
                    }
                }
            }
            let least = equal[middle].iter().copied().chain([middle as u32]).min();
            self.representatives[middle] = least.unwrap_or(middle as u32);
        }
        if axioms.is_empty() {
            self.congruence(&mut axioms, budget)?;
        }
        let some = !axioms.is_empty();
        for axiom in axioms {
            let lits = axiom.into_iter().map(|(positive, key)| self.lit(positive, key)).collect();
            let id = self.solver.add(lits);
            self.sources.insert(id, Source::Axiom);
        }
        Ok(some)
    }

    /// Steps from atoms to those with equal constants that have another truth.
    fn congruence(&self, axioms: &mut Vec<Vec<(bool, Vec<u32>)>>, budget: &mut Budget) -> Result<(), Spent> {
        let mut first: Map<Vec<u32>, usize> = Map::default();
        for (variable, atom) in self.atoms.iter().enumerate() {
            if atom[0] == EQUALITY {
                continue;
            }
            budget.spend(1)?;
            let mut key = atom.clone();
            key[1..].iter_mut().for_each(|constant| *constant = self.representatives[*constant as usize]);
            let other = *first.entry(key).or_insert(variable);
            let truth = |variable| self.solver.is_true(Lit::new(variable, true));
            if truth(other) == truth(variable) {
                continue;
            }
            let (from, to) = if truth(variable) { (variable, other) } else { (other, variable) };
            let (mut atom, to) = (self.atoms[from].clone(), &self.atoms[to]);
            for place in 1..atom.len() {
                let (old, new) = (atom[place], to[place]);
                if old != new {
                    let mut next = atom.clone();
                    next[place] = new;
                    axioms.push(vec![(false, vec![EQUALITY, old, new]), (false, atom), (true, next.clone())]);
                    atom = next;
                }
            }
        }
        Ok(())
    }

    fn model(&self) -> Model {
        let element: Vec<usize> = {
            let mut next = 0;
            let mut element = vec![0; self.constants.len()];
            for (constant, &representative) in self.representatives.iter().enumerate() {
                if representative as usize == constant {
                    element[constant] = next;
                    next += 1;
                } else {
                    element[constant] = element[representative as usize];
                }
            }
            element
        };
        let mut model = Model { size: element.iter().max().map_or(1, |most| most + 1), ..Model::default() };
        for (constant, symbol) in self.constants.iter().enumerate() {
            model.functions.entry(*symbol).or_default().values.insert(Vec::new(), element[constant]);
        }
        for (predicate, rows) in self.predicates.iter().zip(self.rows.iter().skip(1)) {
            let row = |row: &Vec<u32>| row.iter().map(|constant| element[*constant as usize]).collect();
            model.predicates.insert(*predicate, rows.iter().map(row).collect());
        }
        model
    }
}

/// The atom of a literal under a binding.
fn instance(literal: &Literal, values: &[u32]) -> Vec<u32> {
    let value = |argument: &Argument| match *argument {
        Argument::Constant(c) => c,
        Argument::Variable(x) => values[x as usize],
    };
    [literal.predicate].into_iter().chain(literal.arguments.iter().map(value)).collect()
}

/// Numbers for symbols.
#[derive(Default)]
struct Names {
    constants: Vec<FunctionSymbol>,
    constant_numbers: Map<FunctionSymbol, u32>,
    predicates: Vec<PredicateSymbol>,
    predicate_numbers: Map<PredicateSymbol, u32>,
}

impl Names {
    fn clause(&mut self, clause: &Clause) -> Compiled {
        let mut literals: Vec<Literal> = Vec::with_capacity(clause.0.len());
        for literal in &clause.0 {
            let (predicate, arguments) = match &literal.atom {
                Atom::Equal(s, t) => (EQUALITY, vec![self.argument(s), self.argument(t)]),
                Atom::Predicate(predicate, terms) => {
                    let next = self.predicates.len() as u32 + 1;
                    let number = *self.predicate_numbers.entry(*predicate).or_insert(next);
                    if number == next {
                        self.predicates.push(*predicate);
                    }
                    (number, terms.iter().map(|term| self.argument(term)).collect())
                }
            };
            literals.push(Literal { positive: literal.positive, predicate, arguments });
        }
        let is_joined = |literal: &Literal| !literal.positive && literal.predicate != EQUALITY;
        literals.sort_by_key(|literal| !is_joined(literal));
        let joined = literals.iter().filter(|literal| is_joined(literal)).count();
        let variable = |argument: &Argument| match argument {
            Argument::Variable(x) => *x as usize + 1,
            Argument::Constant(_) => 0,
        };
        let variables =
            literals.iter().flat_map(|literal| &literal.arguments).map(variable).max().unwrap_or(0);
        Compiled { literals, joined, variables }
    }

    fn argument(&mut self, term: &Term) -> Argument {
        match term {
            Term::Variable(x) => Argument::Variable(*x as u32),
            Term::Apply(symbol, _) => {
                let next = self.constants.len() as u32;
                let number = *self.constant_numbers.entry(*symbol).or_insert(next);
                if number == next {
                    self.constants.push(*symbol);
                }
                Argument::Constant(number)
            }
        }
    }
}
