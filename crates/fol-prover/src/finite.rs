//! Finite models of a given number of elements.
//!
//! As in MACE (McCune 2003; Claessen and Sörensson 2003) the value of each function at each tuple of elements is a choice of
//! propositional variables, exactly one true. Clauses are not flattened: the propositional solver makes an interpretation, the clauses
//! are evaluated in it, and of each instance that is false a clause is added: that the cells that were read do not all
//! have these values, or a literal changes. This is an instance of the flattened clause, found when it is needed.
//! Constants are numbered by least numbers: the first is element 0, each other at most one above those before it.

use crate::hash::Map;
use crate::limit::{Budget, Spent};
use crate::logic::{Atom, Clause, FunctionSymbol, PredicateSymbol, Term};
use crate::model::{Model, tuples};
use crate::sat::{Lit, Solver};

/// Of one clause so many false instances are added at a time.
const INSTANCES: usize = 32;
/// Interpretations of more cells are not looked for.
const CELLS: usize = 1 << 18;

/// What a search for models of one size ends with.
pub(crate) enum Looked {
    Model(Model),
    /// There is none.
    None,
    /// Nobody looked: the interpretations have too many cells.
    Beyond,
}

/// A model of the clauses with `size` elements, if there is one.
pub(crate) fn model_of_size(clauses: &[Clause], size: usize, budget: &mut Budget) -> Result<Looked, Spent> {
    let Some(mut search) = Search::new(clauses, size) else { return Ok(Looked::Beyond) };
    search.least_numbers();
    loop {
        if !search.solver.solve(budget)? {
            return Ok(Looked::None);
        }
        search.look();
        if !search.extend(budget)? {
            return Ok(Looked::Model(search.model()));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Function(FunctionSymbol),
    Predicate(PredicateSymbol),
}

/// A term or an atom over tables.
#[derive(Debug, Clone)]
enum Node {
    Variable(usize),
    /// The first cell of the table, and the arguments.
    Cell(usize, Vec<Node>),
}

#[derive(Debug, Clone)]
enum Test {
    Holds(Node),
    Equal(Node, Node),
}

#[derive(Debug, Default)]
struct Compiled {
    literals: Vec<(bool, Test)>,
    variables: usize,
}

/// No variable of the solver yet.
const NONE: usize = usize::MAX;

struct Search {
    size: usize,
    solver: Solver,
    clauses: Vec<Compiled>,
    /// The symbols with the first cell and the arity of their tables, in the order of the cells.
    tables: Vec<(Symbol, usize, usize)>,
    numbers: Map<Symbol, usize>,
    /// Of each cell the first variable of the solver: one for each value, or one for the truth.
    first: Vec<usize>,
    /// Of each cell whether it is one of a function.
    is_function: Vec<bool>,
    /// Of each cell the value in the interpretation; 1 is true.
    values: Vec<usize>,
}

impl Search {
    fn new(clauses: &[Clause], size: usize) -> Option<Self> {
        let mut search = Self {
            size,
            solver: Solver::default(),
            clauses: Vec::with_capacity(clauses.len()),
            tables: Vec::new(),
            numbers: Map::default(),
            first: Vec::new(),
            is_function: Vec::new(),
            values: Vec::new(),
        };
        for clause in clauses {
            let mut compiled = Compiled::default();
            for literal in &clause.0 {
                let variables = &mut compiled.variables;
                let test = match &literal.atom {
                    Atom::Equal(s, t) => Test::Equal(search.term(s, variables)?, search.term(t, variables)?),
                    Atom::Predicate(predicate, terms) => {
                        Test::Holds(search.applied(Symbol::Predicate(*predicate), terms, variables)?)
                    }
                };
                compiled.literals.push((literal.positive, test));
            }
            search.clauses.push(compiled);
        }
        Some(search)
    }

    fn term(&mut self, term: &Term, variables: &mut usize) -> Option<Node> {
        match term {
            Term::Variable(x) => {
                *variables = (*variables).max(x + 1);
                Some(Node::Variable(*x))
            }
            Term::Apply(symbol, terms) => self.applied(Symbol::Function(*symbol), terms, variables),
        }
    }

    fn applied(&mut self, symbol: Symbol, terms: &[Term], variables: &mut usize) -> Option<Node> {
        let number = match self.numbers.get(&symbol) {
            Some(&number) => number,
            None => {
                let base = self.first.len();
                let cells = u32::try_from(terms.len()).ok().and_then(|arity| self.size.checked_pow(arity))?;
                let all = base.checked_add(cells).filter(|all| *all <= CELLS)?;
                self.first.resize(all, NONE);
                self.values.resize(all, 0);
                self.is_function.resize(all, matches!(symbol, Symbol::Function(_)));
                self.numbers.insert(symbol, self.tables.len());
                self.tables.push((symbol, base, terms.len()));
                self.tables.len() - 1
            }
        };
        let base = self.tables[number].1;
        let terms = terms.iter().map(|term| self.term(term, variables)).collect::<Option<_>>()?;
        Some(Node::Cell(base, terms))
    }

    /// Elements are alike until a constant names them.
    fn least_numbers(&mut self) {
        let is_constant = |(symbol, _, arity): &&(Symbol, usize, usize)| {
            *arity == 0 && matches!(symbol, Symbol::Function(_))
        };
        let constants: Vec<usize> = self.tables.iter().filter(is_constant).map(|table| table.1).collect();
        let first: Vec<usize> = constants.iter().map(|cell| self.variable(*cell)).collect();
        for (at, &constant) in first.iter().enumerate().take(self.size) {
            for value in at + 1..self.size {
                self.solver.add(vec![Lit::new(constant + value, false)]);
            }
        }
        // An element is named only after the one before it is: by some earlier constant.
        for (at, &constant) in first.iter().enumerate().take(4 * self.size) {
            for value in 1..self.size.min(at + 1) {
                let earlier = first[..at].iter().map(|earlier| Lit::new(earlier + value - 1, true));
                let lits = earlier.chain([Lit::new(constant + value, false)]).collect();
                self.solver.add(lits);
            }
        }
    }

    /// The first variable of a cell.
    fn variable(&mut self, cell: usize) -> usize {
        if self.first[cell] != NONE {
            return self.first[cell];
        }
        let first = self.solver.variable();
        self.first[cell] = first;
        if self.is_function[cell] {
            for _ in 1..self.size {
                self.solver.variable();
            }
            self.solver.add((0..self.size).map(|value| Lit::new(first + value, true)).collect());
            for one in 0..self.size {
                for other in one + 1..self.size {
                    self.solver.add(vec![Lit::new(first + one, false), Lit::new(first + other, false)]);
                }
            }
        }
        first
    }

    /// Takes the interpretation from the solver. A cell that it does not know has the value 0.
    fn look(&mut self) {
        for (cell, &first) in self.first.iter().enumerate() {
            let is_true = |value: &usize| self.solver.is_true(Lit::new(first + value, true));
            self.values[cell] = match (first, self.is_function[cell]) {
                (NONE, _) => 0,
                (_, true) => (0..self.size).find(is_true).unwrap_or(0),
                (_, false) => usize::from(is_true(&0)),
            };
        }
    }

    /// Adds clauses for instances that are false; false if there is none.
    fn extend(&mut self, budget: &mut Budget) -> Result<bool, Spent> {
        let clauses = std::mem::take(&mut self.clauses);
        let mut some = false;
        for clause in &clauses {
            let mut found = Vec::new();
            self.falsified(clause, &mut Vec::with_capacity(clause.variables), &mut found, budget)?;
            for binding in found {
                some = true;
                self.add_instance(clause, &binding);
            }
        }
        self.clauses = clauses;
        Ok(some)
    }

    /// Collects bindings under which the clause is false.
    fn falsified(
        &self,
        clause: &Compiled,
        binding: &mut Vec<usize>,
        found: &mut Vec<Vec<usize>>,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        budget.spend(1)?;
        for (positive, test) in &clause.literals {
            if self.truth(test, binding) == Some(*positive) {
                return Ok(());
            }
        }
        if binding.len() == clause.variables {
            found.push(binding.clone());
            return Ok(());
        }
        for element in 0..self.size {
            binding.push(element);
            self.falsified(clause, binding, found, budget)?;
            binding.pop();
            if found.len() >= INSTANCES {
                break;
            }
        }
        Ok(())
    }

    /// The truth of an atom, if its variables are bound.
    fn truth(&self, test: &Test, binding: &[usize]) -> Option<bool> {
        match test {
            Test::Equal(s, t) => Some(self.evaluate(s, binding)? == self.evaluate(t, binding)?),
            Test::Holds(atom) => Some(self.evaluate(atom, binding)? == 1),
        }
    }

    fn evaluate(&self, node: &Node, binding: &[usize]) -> Option<usize> {
        match node {
            Node::Variable(x) => binding.get(*x).copied(),
            Node::Cell(base, nodes) => {
                let mut offset = 0;
                for node in nodes {
                    offset = offset * self.size + self.evaluate(node, binding)?;
                }
                Some(self.values[base + offset])
            }
        }
    }

    fn add_instance(&mut self, clause: &Compiled, binding: &[usize]) {
        let mut lits = Vec::new();
        for (positive, test) in &clause.literals {
            match test {
                Test::Holds(Node::Cell(base, nodes)) => {
                    let cell = self.cell(*base, nodes, binding, &mut lits);
                    lits.push(Lit::new(self.variable(cell), *positive));
                }
                // An equation of a cell with a value need not say which other value the cell has.
                Test::Equal(Node::Cell(base, nodes), other) | Test::Equal(other, Node::Cell(base, nodes))
                    if *positive =>
                {
                    let value = self.read(other, binding, &mut lits);
                    let cell = self.cell(*base, nodes, binding, &mut lits);
                    lits.push(Lit::new(self.variable(cell) + value, true));
                }
                Test::Equal(s, t) => {
                    self.read(s, binding, &mut lits);
                    self.read(t, binding, &mut lits);
                }
                Test::Holds(Node::Variable(_)) => {}
            }
        }
        self.solver.add(lits);
    }

    /// The cell of a symbol at the values of its arguments.
    fn cell(&mut self, base: usize, nodes: &[Node], binding: &[usize], lits: &mut Vec<Lit>) -> usize {
        nodes.iter().fold(0, |offset, node| offset * self.size + self.read(node, binding, lits)) + base
    }

    /// The value of a term, and that a cell which it reads has another value.
    fn read(&mut self, node: &Node, binding: &[usize], lits: &mut Vec<Lit>) -> usize {
        match node {
            Node::Variable(x) => binding[*x],
            Node::Cell(base, nodes) => {
                let cell = self.cell(*base, nodes, binding, lits);
                let value = self.values[cell];
                lits.push(Lit::new(self.variable(cell) + value, false));
                value
            }
        }
    }

    fn model(&self) -> Model {
        let mut model = Model { size: self.size, ..Model::default() };
        for (symbol, base, arity) in &self.tables {
            for (row, cell) in tuples(self.size, *arity).zip(*base..) {
                match symbol {
                    Symbol::Function(symbol) => {
                        let table = model.functions.entry(*symbol).or_default();
                        table.values.insert(row, self.values[cell]);
                    }
                    Symbol::Predicate(symbol) => {
                        let rows = model.predicates.entry(*symbol).or_default();
                        if self.values[cell] == 1 {
                            rows.insert(row);
                        }
                    }
                }
            }
        }
        model
    }
}
