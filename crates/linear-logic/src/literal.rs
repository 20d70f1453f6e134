//! The order of words, and literals as the proofs that they stand for.

use std::rc::Rc;

use crate::formula::Formula;
use crate::term::{Node, NodeId, Term, Variable};

/// How a word is read as a product.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The product is written as the word reads: ⟦001⟧(X, Y) = X X Y.
    #[default]
    Literal,
    /// The first digit is applied first: ⟦001⟧(X, Y) = Y X X.
    FirstDigitFirst,
}

impl Order {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::FirstDigitFirst => "first-digit-first",
        }
    }

    /// The digits of a word in the order in which its product is written, and back.
    pub fn product(self, digits: &[bool]) -> Rc<[bool]> {
        match self {
            Self::Literal => digits.into(),
            Self::FirstDigitFirst => digits.iter().rev().copied().collect(),
        }
    }
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "literal" => Ok(Self::Literal),
            "first-digit-first" | "fdf" => Ok(Self::FirstDigitFirst),
            _ => Err("an order is `literal`, `first-digit-first` or `fdf`".to_owned()),
        }
    }
}

/// The numeral n: `\q z. derelict q (… (derelict q z))`.
pub fn numeral(value: u32, base: &Formula) -> Term {
    let mut term = Term::default();
    let q = term.variable("q".into());
    let factors = vec![q; value as usize];
    abstracted(term, &[q], &factors, base)
}

/// The word s₁…sₖ: `\p q z. derelict v₁ (… (derelict vₖ z))`, where vᵢ is p if sᵢ is 0 and q if it is 1; in the order
/// first digit first, the digits are reversed.
pub fn word(digits: &[bool], base: &Formula, order: Order) -> Term {
    let mut term = Term::default();
    let (p, q) = (term.variable("p".into()), term.variable("q".into()));
    let factors: Vec<Variable> = order.product(digits).iter().map(|one| if *one { q } else { p }).collect();
    abstracted(term, &[p, q], &factors, base)
}

/// λ over the operators, with their copies at once below each, then λz and the product of the factors.
fn abstracted(mut term: Term, operators: &[Variable], factors: &[Variable], base: &Formula) -> Term {
    let mut chains = Vec::new();
    let mut copies: Vec<std::vec::IntoIter<Variable>> = Vec::new();
    for operator in operators {
        let uses = factors.iter().filter(|factor| *factor == operator).count();
        let (chain, names) = chain(&mut term, *operator, uses);
        chains.push(chain);
        copies.push(names.into_iter());
    }
    let z = term.variable("z".into());
    let named: Vec<Variable> = factors
        .iter()
        .filter_map(|factor| {
            operators.iter().position(|o| o == factor).and_then(|i| copies.get_mut(i)?.next())
        })
        .collect();
    let mut body = term.push(Node::Variable(z));
    for variable in named.into_iter().rev() {
        let operator = term.push(Node::Variable(variable));
        let operator = term.push(Node::Derelict(operator));
        body = term.push(Node::Apply(operator, body));
    }
    let end = Formula::end(base.clone());
    body = term.push(Node::Lambda { variable: z, domain: base.clone(), codomain: base.clone(), body });
    let mut codomain = end.clone();
    for (operator, chain) in operators.iter().zip(chains).rev() {
        body = wrap(&mut term, *operator, chain, body);
        let domain = end.clone().bang();
        body = term.push(Node::Lambda {
            variable: *operator,
            domain: domain.clone(),
            codomain: codomain.clone(),
            body,
        });
        codomain = domain.lolli(codomain);
    }
    term
}

/// The pairs of names that the copies of a variable make, and the name of each use.
fn chain(
    term: &mut Term,
    operator: Variable,
    uses: usize,
) -> (Option<Vec<(Variable, Variable)>>, Vec<Variable>) {
    let Some(copies) = uses.checked_sub(1) else { return (None, Vec::new()) };
    let name: Rc<str> = term.name(operator).into();
    let pairs: Vec<_> =
        (0..copies).map(|_| (term.variable(name.clone()), term.variable(name.clone()))).collect();
    let mut names: Vec<Variable> = pairs.iter().map(|(left, _)| *left).collect();
    names.push(pairs.last().map_or(operator, |(_, right)| *right));
    (Some(pairs), names)
}

fn wrap(
    term: &mut Term,
    operator: Variable,
    chain: Option<Vec<(Variable, Variable)>>,
    mut body: NodeId,
) -> NodeId {
    let Some(pairs) = chain else {
        let scrutinee = term.push(Node::Variable(operator));
        return term.push(Node::Discard { scrutinee, body });
    };
    for (k, (left, right)) in pairs.iter().enumerate().rev() {
        let source = k.checked_sub(1).and_then(|k| pairs.get(k)).map_or(operator, |(_, right)| *right);
        let scrutinee = term.push(Node::Variable(source));
        body = term.push(Node::Copy { scrutinee, left: *left, right: *right, body });
    }
    body
}
