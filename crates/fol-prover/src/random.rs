//! Random problems, for tests and measurements: formulas over a small signature, with or without what makes them hard.

use fol::ast::{
    Connective, Constant, Formula, Function, Predicate, Quantifier, Relation, Sort, Term, Variable,
};
use seeded::Stream;

use crate::problem::Problem;
use crate::rules::Letters;

/// What formulas may contain.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Arities of the predicates.
    pub predicates: Vec<usize>,
    /// Arities of the functions.
    pub functions: Vec<usize>,
    /// How many constants there are.
    pub constants: u64,
    /// How many free variables may occur; they share names with bound ones.
    pub parameters: u64,
    /// How many sorts there are.
    pub sorts: u64,
    /// Equations and inequations.
    pub equality: bool,
    /// `<` and its kin.
    pub relations: bool,
    /// ∃! beside ∀ and ∃.
    pub unique: bool,
    /// Largest depth of connectives and quantifiers.
    pub depth: u64,
    /// Largest number of premises.
    pub premises: u64,
}

impl Shape {
    /// The fragment of inference tasks: unary and binary predicates, constants, no functions, no equality.
    pub fn fragment() -> Self {
        Self {
            predicates: vec![1, 1, 1, 2, 2],
            functions: vec![],
            constants: 3,
            parameters: 0,
            sorts: 0,
            equality: false,
            relations: false,
            unique: false,
            depth: 2,
            premises: 5,
        }
    }

    /// Functions and equality over a small signature.
    pub fn equality() -> Self {
        Self {
            predicates: vec![1, 2],
            functions: vec![1, 2],
            constants: 2,
            equality: true,
            depth: 4,
            premises: 4,
            ..Self::fragment()
        }
    }

    /// Predicates of one argument, and neither functions nor equality.
    pub fn monadic() -> Self {
        Self { predicates: vec![1, 1, 1, 0], constants: 2, depth: 6, premises: 3, ..Self::fragment() }
    }

    /// All that formulas may contain.
    pub fn everything() -> Self {
        Self {
            predicates: vec![0, 1, 2],
            functions: vec![1],
            parameters: 2,
            sorts: 1,
            relations: true,
            unique: true,
            ..Self::equality()
        }
    }
}

/// A random problem. Of the fragment, premises and conclusion have ∃*∀* and no quantifier inside once the conclusion is denied.
pub fn problem(draw: &mut Stream, shape: &Shape, is_fragment: bool) -> Option<Problem> {
    let mut source = Source { draw, shape, scope: Vec::new() };
    let count = source.draw.below(shape.premises) + 1;
    let premises =
        (0..count).map(|_| if is_fragment { source.prefixed(true) } else { source.formula(shape.depth) });
    let premises = premises.collect();
    let conclusion = if is_fragment { source.prefixed(false) } else { source.formula(shape.depth) };
    Problem::new(premises, Some(conclusion)).ok()
}

/// Letters for the schemas of rules.
impl Letters for Shape {
    fn formula(&mut self, free: &[Variable], draw: &mut Stream) -> Formula {
        let depth = draw.below(self.depth.min(2) + 1);
        Source { draw, shape: self, scope: free.to_vec() }.formula(depth)
    }

    fn atom(&mut self, free: &[Variable], draw: &mut Stream) -> Formula {
        Source { draw, shape: self, scope: free.to_vec() }.atom()
    }

    fn term(&mut self, free: &[Variable], draw: &mut Stream) -> Term {
        Source { draw, shape: self, scope: free.to_vec() }.term(2)
    }
}

/// A random problem of clauses under ∀, as many as `premises` says, of one to three literals each, and no conclusion: the kind in which proofs and
/// models are hardest to find by chance.
pub fn clauses(draw: &mut Stream, shape: &Shape) -> Option<Problem> {
    let scope: Vec<Variable> = (0..3).map(Variable).collect();
    let mut source = Source { draw, shape, scope: scope.clone() };
    let mut clause = || {
        let length = source.draw.choose(&[2, 3, 3]).unwrap_or(0) + 1;
        let mut literal = || {
            let atom = source.atom();
            if source.draw.below(2) == 0 { Formula::Not(Box::new(atom)) } else { atom }
        };
        let mut body = literal();
        for _ in 1..length {
            body = Formula::Binary(Connective::Or, Box::new(body), Box::new(literal()));
        }
        scope
            .iter()
            .rev()
            .fold(body, |body, x| Formula::Quantified(Quantifier::Forall, *x, None, Box::new(body)))
    };
    Problem::new((0..shape.premises).map(|_| clause()).collect(), None).ok()
}

struct Source<'a> {
    draw: &'a mut Stream,
    shape: &'a Shape,
    /// The bound variables.
    scope: Vec<Variable>,
}

impl Source<'_> {
    /// ∃*∀* before a formula without quantifiers, or ∀*∃* where it will be denied.
    fn prefixed(&mut self, premise: bool) -> Formula {
        let outer = self.draw.choose(&[5, 3, 1]).unwrap_or(0);
        let inner = self.draw.choose(&[3, 5, 3]).unwrap_or(0);
        let (first, second) = if premise {
            (Quantifier::Exists, Quantifier::Forall)
        } else {
            (Quantifier::Forall, Quantifier::Exists)
        };
        let quantifiers: Vec<Quantifier> =
            std::iter::repeat_n(first, outer).chain(std::iter::repeat_n(second, inner)).collect();
        self.scope = (0..quantifiers.len() as u64).map(Variable).collect();
        let body = self.matrix(self.shape.depth);
        self.scope.clear();
        (0..quantifiers.len()).rev().fold(body, |body, at| {
            Formula::Quantified(quantifiers[at], Variable(at as u64), None, Box::new(body))
        })
    }

    fn matrix(&mut self, depth: u64) -> Formula {
        if depth == 0 || self.draw.below(4) == 0 {
            let atom = self.atom();
            return if self.draw.below(3) == 0 { Formula::Not(Box::new(atom)) } else { atom };
        }
        let connective = self.connective();
        let left = Box::new(self.matrix(depth - 1));
        Formula::Binary(connective, left, Box::new(self.matrix(depth - 1)))
    }

    fn connective(&mut self) -> Connective {
        [Connective::And, Connective::Or, Connective::Implies, Connective::Iff]
            [self.draw.choose(&[3, 3, 4, 1]).unwrap_or(0)]
    }

    fn formula(&mut self, depth: u64) -> Formula {
        if depth == 0 {
            return self.atom();
        }
        match self.draw.below(10) {
            0 => self.atom(),
            1 | 2 => Formula::Not(Box::new(self.formula(depth - 1))),
            3..=5 => {
                let connective = self.connective();
                let left = Box::new(self.formula(depth - 1));
                Formula::Binary(connective, left, Box::new(self.formula(depth - 1)))
            }
            _ => {
                let weights = [4, 4, u64::from(self.shape.unique)];
                let all = [Quantifier::Forall, Quantifier::Exists, Quantifier::Exists1];
                let quantifier = all[self.draw.choose(&weights).unwrap_or(0)];
                let sort = (self.shape.sorts > 0 && self.draw.below(4) == 0)
                    .then(|| self.draw.below(self.shape.sorts));
                let variable = Variable(self.draw.below(4));
                self.scope.push(variable);
                let body = self.formula(depth - 1);
                self.scope.pop();
                Formula::Quantified(quantifier, variable, sort.map(Sort), Box::new(body))
            }
        }
    }

    fn atom(&mut self) -> Formula {
        let weights = [6, 4 * u64::from(self.shape.equality), u64::from(self.shape.relations)];
        match self.draw.choose(&weights) {
            Some(1) => {
                let relation = if self.draw.below(4) == 0 { Relation::NotEquals } else { Relation::Equals };
                Formula::Relation(relation, self.term(2), self.term(2))
            }
            Some(2) => Formula::Relation(Relation::LessThan, self.term(1), self.term(1)),
            _ => {
                let at = self.draw.below(self.shape.predicates.len() as u64);
                let arity = self.shape.predicates[at as usize];
                Formula::Predicate(Predicate(at), (0..arity).map(|_| self.term(2)).collect())
            }
        }
    }

    fn term(&mut self, depth: u64) -> Term {
        let functions = self.shape.functions.len() as u64;
        if depth > 0 && functions > 0 && self.draw.below(4) == 0 {
            let at = self.draw.below(functions);
            let arity = self.shape.functions[at as usize];
            return Term::Function(Function(at), (0..arity).map(|_| self.term(depth - 1)).collect());
        }
        if !self.scope.is_empty() && self.draw.below(4) != 0 {
            let at = self.draw.below(self.scope.len() as u64);
            return Term::Variable(self.scope[at as usize]);
        }
        if self.shape.parameters > 0 && self.draw.below(3) == 0 {
            // A name that is bound here is the bound variable.
            return Term::Variable(Variable(self.draw.below(self.shape.parameters)));
        }
        Term::Constant(Constant(self.draw.below(self.shape.constants.max(1))))
    }
}
