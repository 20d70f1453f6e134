//! Proofs as polynomial maps: section 11.
//!
//! The arguments that are not given become matrices of variables, and the evaluator runs over ℚ\[entries\].

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed};
use serde_json::{Value, json};

use crate::argument::{Denotation, denote, dimensions};
use crate::denote::{Carrier, Dense, Obstacle};
use crate::elaborate::Extension;
use crate::error::{Kind, Refusal, Result};
use crate::formula::Formula;
use crate::json::{Json, fraction_text, rational_json};
use crate::lex::is_name;
use crate::program::{Checked, Program};
use crate::ring::{Epsilons, Polynomial, Polynomials};

/// The letters of generic operators, in order.
const LETTERS: &[u8; 6] = b"xyzuvw";

/// The coordinates of a proof as polynomials.
#[derive(Debug)]
pub struct Polynomialised {
    /// The type of the result.
    pub formula: Formula,
    /// The dimensions of atoms.
    pub dimensions: BTreeMap<Rc<str>, usize>,
    /// The length of a row, if the result is a matrix.
    pub columns: usize,
    /// The names of the variables: entries of generic operators, then scalars.
    pub variables: Vec<String>,
    /// The coordinates, with terms in the order of the text.
    pub entries: Vec<Vec<Term>>,
}

/// A term of a polynomial: its coefficient and the exponent of each variable.
pub type Term = (BigRational, Vec<u64>);

/// The polynomial map of a closed proof at some arguments.
///
/// # Errors
/// `argument`, `dimension`, `not-finite`, `limit`.
pub fn polynomial(
    program: &Program,
    subject: &Checked,
    arguments: &[Json],
    given: &BTreeMap<Rc<str>, usize>,
) -> Result<Polynomialised> {
    let dimensions = dimensions(given, &subject.formula, arguments)?;
    let carrier = Dense::new(Epsilons::new(Polynomials::default()), dimensions.clone());
    let mut denotation = denote(carrier, program, subject, arguments, Extension::None)?;
    let scalars = scalars(arguments);
    // A scalar that is called as an entry of an operator of the caller would be that entry.
    if let Some(name) =
        denotation.evaluator.carrier().generic().iter().find(|name| scalars.contains(&***name))
    {
        return Err(Obstacle::Taken(name.clone()).into());
    }
    supply(&mut denotation, &scalars)?;
    let columns = denotation.columns()?;
    let entries = denotation.coordinates()?;
    let names = denotation.evaluator.carrier().ring().base().names();
    let order = order(&names, denotation.evaluator.carrier().generic());
    let zero = Polynomial::default();
    let entries = entries.iter().map(|entry| terms(entry.finite_part().unwrap_or(&zero), &order)).collect();
    let variables = order.iter().filter_map(|number| names.get(*number).cloned()).collect();
    Ok(Polynomialised { formula: denotation.formula, dimensions, columns, variables, entries })
}

/// The names among the scalars of some arguments.
fn scalars(arguments: &[Json]) -> BTreeSet<&str> {
    let (mut found, mut todo) = (BTreeSet::new(), Vec::from_iter(arguments));
    while let Some(json) = todo.pop() {
        match json {
            Json::Text(text) if is_name(text) => _ = found.insert(&**text),
            Json::Array(items) => todo.extend(items),
            // Their texts are no scalars.
            Json::Object(_) if json.only(["term"]).is_some() || json.only(["gen"]).is_some() => {}
            Json::Object(items) => todo.extend(items.values()),
            _ => {}
        }
    }
    found
}

/// Generic operators for the arguments that are left, each with the first letter that nothing else has.
fn supply<R: crate::ring::Ring>(
    denotation: &mut Denotation<Dense<R>>,
    scalars: &BTreeSet<&str>,
) -> Result<()> {
    while let Some((domain, codomain)) = denotation.formula.as_lolli() {
        let inner = domain.as_bang().unwrap_or(domain);
        let Some((from, to)) = inner.as_operator() else { return Ok(()) };
        let carrier = denotation.evaluator.carrier();
        let mut free = None;
        for letter in LETTERS.iter().filter(|letter| !carrier.is_generator(**letter)) {
            if carrier.entry_names(*letter, from, to)?.iter().all(|name| !scalars.contains(&**name)) {
                free = Some(letter);
                break;
            }
        }
        let letter = free.ok_or_else(|| {
            Refusal::new(Kind::Limit, format!("there are more than {} generic operators", LETTERS.len()))
        })?;
        let evaluator = &mut denotation.evaluator;
        let Some(operator) = evaluator.carrier_mut().generator(*letter, from, to)? else { return Ok(()) };
        let mut argument = evaluator.operator_value(operator);
        if domain.is_banged() {
            argument = evaluator.point(argument);
        }
        denotation.value = evaluator.apply(denotation.value, argument)?;
        denotation.formula = codomain.clone();
    }
    Ok(())
}

/// The numbers of the variables in the order of the answer: those of generic operators come first.
fn order(names: &[String], generic: &[String]) -> Vec<usize> {
    let is_generic = |number: &usize| names.get(*number).is_some_and(|name| generic.contains(name));
    let (first, last): (Vec<usize>, Vec<usize>) = (0..names.len()).partition(is_generic);
    [first, last].concat()
}

/// The terms by decreasing degree, then by decreasing exponents.
fn terms(polynomial: &Polynomial, order: &[usize]) -> Vec<Term> {
    let mut found: Vec<Term> = polynomial
        .terms
        .iter()
        .map(|(monomial, coefficient)| {
            let exponent = |number: &usize| {
                monomial.iter().find(|(v, _)| *v as usize == *number).map_or(0, |(_, exponent)| *exponent)
            };
            (coefficient.clone(), order.iter().map(exponent).collect())
        })
        .collect();
    let degree = |exponents: &[u64]| exponents.iter().map(|e| u128::from(*e)).sum::<u128>();
    found.sort_by(|(_, a), (_, b)| degree(b).cmp(&degree(a)).then_with(|| b.cmp(a)));
    found
}

impl Polynomialised {
    /// The text of an entry.
    pub fn text(&self, terms: &[Term]) -> String {
        let mut out = String::new();
        for (coefficient, exponents) in terms {
            let sign = match (out.is_empty(), coefficient.is_negative()) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            out.push_str(sign);
            let size = coefficient.abs();
            let powers = self.variables.iter().zip(exponents).filter(|(_, exponent)| **exponent > 0);
            let mut factors: Vec<String> = powers
                .map(
                    |(name, exponent)| {
                        if *exponent == 1 { name.clone() } else { format!("{name}^{exponent}") }
                    },
                )
                .collect();
            if factors.is_empty() || !size.is_one() {
                factors.insert(0, fraction_text(&size));
            }
            out.push_str(&factors.join("*"));
        }
        if out.is_empty() { "0".to_owned() } else { out }
    }

    /// An entry as `[[coefficient, [exponents]], …]`.
    pub fn json(terms: &[Term]) -> Value {
        let exponent = |e: &u64| crate::json::integer_json(&BigInt::from(*e));
        terms
            .iter()
            .map(|(coefficient, exponents)| {
                json!([rational_json(coefficient), exponents.iter().map(exponent).collect::<Vec<_>>()])
            })
            .collect()
    }
}
