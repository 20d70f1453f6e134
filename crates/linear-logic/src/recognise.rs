//! The numeral or the word that a proof is.
//!
//! A normal form of `int{α}` or `bint{α}` is λs over the operators and the vector, copies and discards of the
//! operators, and a chain of applications: it is read off. Any other proof of these types is run on free generators.

use num_traits::One;

use crate::denote::{Evaluator, Outcome, Words};
use crate::formula::Formula;
use crate::literal::Order;
use crate::ring::Integers;
use crate::term::{Node, NodeId, Term};

/// What a proof of `int{α}` or `bint{α}` is, up to the laws of copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognised {
    /// A numeral.
    Numeral(u64),
    /// A word, as it is written in the order in force.
    Word(Vec<bool>),
}

/// The numeral or the word that a closed proof is; `None` for other types.
pub fn recognise(term: &Term, formula: &Formula, order: Order) -> Option<Recognised> {
    let is_word = match (formula.as_int(), formula.as_bint()) {
        (Some(base), _) if base.as_atom().is_some() => false,
        (_, Some(base)) if base.as_atom().is_some() => true,
        _ => return None,
    };
    let product = read_off(term, is_word).or_else(|| run(term, is_word, order).ok().flatten())?;
    Some(if is_word {
        Recognised::Word(order.product(&product).to_vec())
    } else {
        Recognised::Numeral(product.len() as u64)
    })
}

/// The factors of the product, from a normal form.
fn read_off(term: &Term, is_word: bool) -> Option<Vec<bool>> {
    // What a variable stands for: an operator by its digit, or the vector.
    let mut meanings: Vec<Option<Meaning>> = vec![None; term.names().len()];
    let operators: &[Meaning] = if is_word { &[Some(false), Some(true), None] } else { &[Some(false), None] };
    let mut binders = operators.iter();
    let mut factors = Vec::new();
    let mut id = term.root();
    loop {
        id = match term.node(id) {
            Node::Lambda { variable, body, .. } => {
                *meanings.get_mut(variable.index())? = Some(*binders.next()?);
                *body
            }
            Node::Copy { scrutinee, left, right, body } => {
                let meaning = meaning(term, &meanings, *scrutinee)?;
                *meanings.get_mut(left.index())? = Some(meaning);
                *meanings.get_mut(right.index())? = Some(meaning);
                *body
            }
            Node::Discard { scrutinee, body } => {
                meaning(term, &meanings, *scrutinee)?;
                *body
            }
            Node::Apply(head, argument) => {
                let Node::Derelict(operator) = term.node(*head) else { return None };
                factors.push(meaning(term, &meanings, *operator)??);
                *argument
            }
            Node::Derelict(operator) => {
                // Without its vector: `\q. derelict q` is the numeral 1.
                factors.push(meaning(term, &meanings, *operator)??);
                return (binders.len() == 1 && factors.len() == 1).then_some(factors);
            }
            Node::Variable(_) => {
                let is_vector = meaning(term, &meanings, id)?.is_none();
                return (is_vector && binders.len() == 0).then_some(factors);
            }
            _ => return None,
        };
    }
}

/// The factors of the product, from the value on free generators.
fn run(term: &Term, is_word: bool, order: Order) -> Outcome<Option<Vec<bool>>> {
    let words = Words::new(Integers);
    let generators = [words.word(b"x"), words.word(b"y")];
    let mut evaluator = Evaluator::new(words, order);
    let mut value = evaluator.closed(term)?;
    for generator in generators.into_iter().take(1 + usize::from(is_word)) {
        let operator = evaluator.operator_value(generator);
        let point = evaluator.point(operator);
        value = evaluator.apply(value, point)?;
    }
    let Some(sum) = evaluator.operator(value)? else { return Ok(None) };
    let mut words = sum.iter();
    let (Some((word, coefficient)), None) = (words.next(), words.next()) else { return Ok(None) };
    Ok(coefficient.is_one().then(|| word.letters().iter().map(|letter| *letter == b'y').collect()))
}

/// The digit of an operator, or none for the vector.
type Meaning = Option<bool>;

fn meaning(term: &Term, meanings: &[Option<Meaning>], id: NodeId) -> Option<Meaning> {
    let Node::Variable(variable) = term.node(id) else { return None };
    *meanings.get(variable.index())?
}
