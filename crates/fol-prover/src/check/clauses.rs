//! The clauses of a formula that is true or false, made plainly: first a tree of `∧` and `∨` over literals, with a new
//! variable or a witness for each quantifier, then all ways through it. The page of the prover fixes what comes out, and the
//! engine makes the same in one pass (`clausify`), which is how the two hold each other.

use fol::ast::{Connective, Formula, Quantifier, Relation, Sort, Term as Given, Text, Variable};

use crate::logic::{Atom, Clause, FunctionSymbol, Literal, PredicateSymbol, Term};

/// The clauses of formula `number` of a proof, in their order; none if they are more than `most`.
pub(super) fn clauses(number: usize, formula: &Formula, truth: bool, most: usize) -> Option<Vec<Clause>> {
    let tree = Tree::of(&mut Namer { number, witnesses: 0, variables: 0 }, formula, truth, &[]);
    Some(tree.ways(most)?.into_iter().map(tidy).collect())
}

/// Equal literals are one, and variables are numbered by first occurrence.
fn tidy(literals: Vec<Literal>) -> Clause {
    let mut clause = Clause::default();
    for literal in literals {
        if !clause.0.contains(&literal) {
            clause.0.push(literal);
        }
    }
    let mut order = Vec::new();
    let terms = clause.0.iter_mut().flat_map(|literal| match &mut literal.atom {
        Atom::Predicate(_, terms) => terms.iter_mut().collect::<Vec<_>>(),
        Atom::Equal(s, t) => vec![s, t],
    });
    terms.for_each(|term| number(term, &mut order));
    clause
}

fn number(term: &mut Term, order: &mut Vec<usize>) {
    match term {
        Term::Variable(old) => {
            if !order.contains(old) {
                order.push(*old);
            }
            *old = order.iter().position(|known| known == old).unwrap_or_default();
        }
        Term::Apply(_, terms) => terms.iter_mut().for_each(|term| number(term, order)),
    }
}

/// A formula without quantifiers and negations.
enum Tree {
    Literal(Literal),
    All(Vec<Tree>),
    Any(Vec<Tree>),
}

struct Namer {
    number: usize,
    witnesses: usize,
    variables: usize,
}

/// What stands for the bound variables, the innermost last.
type Scope = [(Variable, Term)];

impl Tree {
    fn of(names: &mut Namer, formula: &Formula, truth: bool, scope: &Scope) -> Tree {
        match formula {
            Formula::Truth(value) if *value == truth => Tree::All(vec![]),
            Formula::Truth(_) => Tree::Any(vec![]),
            Formula::Predicate(p, terms) => {
                let symbol = PredicateSymbol::Predicate(*p, terms.len());
                Tree::atom(truth, Atom::Predicate(symbol, terms.iter().map(|t| placed(t, scope)).collect()))
            }
            Formula::Relation(relation, s, t) => {
                let (s, t) = (placed(s, scope), placed(t, scope));
                match relation {
                    Relation::Equals => Tree::atom(truth, Atom::Equal(s, t)),
                    Relation::NotEquals => Tree::atom(!truth, Atom::Equal(s, t)),
                    _ => Tree::atom(truth, Atom::Predicate(PredicateSymbol::Relation(*relation), vec![s, t])),
                }
            }
            Formula::Not(body) => Tree::of(names, body, !truth, scope),
            Formula::Binary(Connective::Iff, left, right) => {
                let mut half = |a, b| {
                    let left = Tree::of(names, left, a, scope);
                    Tree::Any(vec![left, Tree::of(names, right, b, scope)])
                };
                Tree::All(vec![half(!truth, true), half(truth, false)])
            }
            Formula::Binary(connective, left, right) => {
                let left = Tree::of(names, left, truth == (*connective != Connective::Implies), scope);
                Tree::join(*connective, truth, left, Tree::of(names, right, truth, scope))
            }
            Formula::Quantified(Quantifier::Exists1, x, sort, body) if truth => {
                let some = Tree::some(names, *x, *sort, body, true, scope);
                let (u, v) = (names.variable(), names.variable());
                let first = Tree::none(names, *x, *sort, body, &u, scope);
                let second = Tree::none(names, *x, *sort, body, &v, scope);
                Tree::All(vec![some, Tree::Any(vec![first, second, Tree::atom(true, Atom::Equal(u, v))])])
            }
            Formula::Quantified(Quantifier::Exists1, x, sort, body) => {
                let u = names.variable();
                let none = Tree::none(names, *x, *sort, body, &u, scope);
                let v = names.witness(*x, body, scope, Some(&u));
                let mut another = Tree::member(*sort, &v);
                another.push(Tree::of(names, body, true, &with(scope, *x, &v)));
                another.push(Tree::atom(false, Atom::Equal(v, u)));
                Tree::Any(vec![none, Tree::All(another)])
            }
            Formula::Quantified(quantifier, x, sort, body)
                if (*quantifier == Quantifier::Forall) == truth =>
            {
                let u = names.variable();
                let mut parts: Vec<Tree> =
                    sort.map(|s| Tree::atom(false, sorted(s, &u))).into_iter().collect();
                parts.push(Tree::of(names, body, truth, &with(scope, *x, &u)));
                Tree::Any(parts)
            }
            Formula::Quantified(_, x, sort, body) => Tree::some(names, *x, *sort, body, truth, scope),
        }
    }

    /// Some x makes the body `truth`.
    fn some(
        names: &mut Namer,
        x: Variable,
        sort: Option<Sort>,
        body: &Formula,
        truth: bool,
        scope: &Scope,
    ) -> Tree {
        match body {
            Formula::Not(body) => return Tree::some(names, x, sort, body, !truth, scope),
            Formula::Binary(connective, left, right) if *connective != Connective::Iff => {
                let all = (*connective == Connective::And) == truth;
                let (in_left, in_right) = (free(left).contains(&x), free(right).contains(&x));
                if !(all && in_left && in_right) {
                    let truth_left = truth == (*connective != Connective::Implies);
                    let mut operand = |inside, formula, truth| match inside {
                        true => Tree::some(names, x, sort, formula, truth, scope),
                        false => Tree::of(names, formula, truth, scope),
                    };
                    let left = operand(!all || in_left, left, truth_left);
                    return Tree::join(*connective, truth, left, operand(!all || !in_left, right, truth));
                }
            }
            _ if sort.is_none() && !free(body).contains(&x) => return Tree::of(names, body, truth, scope),
            _ => {}
        }
        let witness = names.witness(x, body, scope, None);
        let mut parts = Tree::member(sort, &witness);
        parts.push(Tree::of(names, body, truth, &with(scope, x, &witness)));
        Tree::All(parts)
    }

    /// The body is false of an element, or the element is not of the sort.
    fn none(
        names: &mut Namer,
        x: Variable,
        sort: Option<Sort>,
        body: &Formula,
        element: &Term,
        scope: &Scope,
    ) -> Tree {
        let mut parts: Vec<Tree> = sort.map(|s| Tree::atom(false, sorted(s, element))).into_iter().collect();
        parts.push(Tree::of(names, body, false, &with(scope, x, element)));
        Tree::Any(parts)
    }

    fn member(sort: Option<Sort>, element: &Term) -> Vec<Tree> {
        sort.map(|s| Tree::atom(true, sorted(s, element))).into_iter().collect()
    }

    fn join(connective: Connective, truth: bool, left: Tree, right: Tree) -> Tree {
        match (connective == Connective::And) == truth {
            true => Tree::All(vec![left, right]),
            false => Tree::Any(vec![left, right]),
        }
    }

    fn atom(positive: bool, atom: Atom) -> Tree {
        Tree::Literal(Literal { positive, atom })
    }

    /// All clauses: of `∧` those of each part, of `∨` one of each part together.
    fn ways(self, most: usize) -> Option<Vec<Vec<Literal>>> {
        let ways = match self {
            Tree::Literal(literal) => vec![vec![literal]],
            Tree::All(parts) => {
                let parts = parts.into_iter().map(|part| part.ways(most)).collect::<Option<Vec<_>>>()?;
                parts.concat()
            }
            Tree::Any(parts) => {
                let mut ways = vec![vec![]];
                for part in parts {
                    let part = part.ways(most)?;
                    if ways.len().saturating_mul(part.len()) > most {
                        return None;
                    }
                    ways = ways
                        .iter()
                        .flat_map(|way| part.iter().map(move |more| [&way[..], more].concat()))
                        .collect();
                }
                ways
            }
        };
        (ways.len() <= most).then_some(ways)
    }
}

impl Namer {
    fn variable(&mut self) -> Term {
        self.variables += 1;
        Term::Variable(self.variables - 1)
    }

    /// A witness over the universal variables in what stands for the free variables of the body, x aside.
    fn witness(&mut self, x: Variable, body: &Formula, scope: &Scope, beside: Option<&Term>) -> Term {
        let outer = free(body).into_iter().filter(|y| *y != x);
        let mut open: Vec<Term> = outer.map(|y| placed(&Given::Variable(y), scope)).collect();
        open.extend(beside.cloned());
        let mut variables = std::collections::BTreeSet::new();
        while let Some(term) = open.pop() {
            match term {
                Term::Variable(n) => drop(variables.insert(n)),
                Term::Apply(_, terms) => open.extend(terms),
            }
        }
        self.witnesses += 1;
        let symbol = FunctionSymbol::Skolem(self.number, self.witnesses - 1);
        Term::Apply(symbol, variables.into_iter().map(Term::Variable).collect())
    }
}

fn with(scope: &Scope, x: Variable, term: &Term) -> Vec<(Variable, Term)> {
    scope.iter().cloned().chain([(x, term.clone())]).collect()
}

fn sorted(sort: Sort, term: &Term) -> Atom {
    Atom::Predicate(PredicateSymbol::Sort(sort), vec![term.clone()])
}

/// The free variables of a formula.
pub(super) fn free(formula: &Formula) -> Vec<Variable> {
    fol::free_variables(&Text::formula(formula.clone()))
}

/// A term with what stands for the bound variables; others are parameters.
fn placed(term: &Given, scope: &Scope) -> Term {
    match term {
        Given::Variable(x) => match scope.iter().rev().find(|(y, _)| y == x) {
            Some((_, term)) => term.clone(),
            None => Term::constant(FunctionSymbol::Parameter(*x)),
        },
        Given::Constant(c) => Term::constant(FunctionSymbol::Constant(*c)),
        Given::Function(f, terms) => {
            let symbol = FunctionSymbol::Function(*f, terms.len());
            Term::Apply(symbol, terms.iter().map(|term| placed(term, scope)).collect())
        }
    }
}
