//! Arguments of proofs, from JSON: section 10.6.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::denote::{Carrier, Evaluator, ValueId, Words};
use crate::elaborate::{Extension, elaborate_against};
use crate::error::{Kind, Refusal, Result, Source};
use crate::formula::{Connective, Formula};
use crate::json::{Json, refuse, scalar};
use crate::parse;
use crate::program::{Checked, Program};
use crate::ring::{Name, Ring};
use crate::term::Term;

/// The most ν of all kets of a command.
const MAX_ALONG: usize = 16;

/// The value of a proof at some arguments.
pub struct Denotation<C: Carrier> {
    /// Holds the value.
    pub evaluator: Evaluator<C>,
    /// The value.
    pub value: ValueId,
    /// Its type.
    pub formula: Formula,
    /// The ε's of kets among the arguments: the coefficient of their product is the result.
    pub names: Vec<Name>,
}

/// The value of a closed proof at arguments.
///
/// # Errors
/// `argument`, `unsupported` for differential terms without the extension, and what stands in the way of the value.
pub fn denote<C: Carrier>(
    carrier: C,
    program: &Program,
    subject: &Checked,
    arguments: &[Json],
    extension: Extension,
) -> Result<Denotation<C>> {
    supported(&subject.term, extension)?;
    let mut evaluator = Evaluator::new(carrier, program.order());
    let mut value = evaluator.closed(&subject.term)?;
    let mut formula = subject.formula.clone();
    let mut names = Vec::new();
    for argument in arguments {
        let Some((domain, codomain)) = formula.as_lolli() else {
            return Err(refuse(format!("there are more arguments than `{}` takes", subject.formula.short())));
        };
        let argument = Reader { evaluator: &mut evaluator, program, extension, names: &mut names }
            .top(argument, domain)?;
        value = evaluator.apply(value, argument)?;
        formula = codomain.clone();
    }
    Ok(Denotation { evaluator, value, formula, names })
}

/// Refuses differential terms where they cannot be used.
pub(crate) fn supported(term: &Term, extension: Extension) -> Result<()> {
    if extension == Extension::None && term.is_differential() {
        return Err(Refusal::new(Kind::Unsupported, "a differential term can only be checked and denoted"));
    }
    Ok(())
}

struct Reader<'a, C: Carrier> {
    evaluator: &'a mut Evaluator<C>,
    program: &'a Program,
    extension: Extension,
    names: &'a mut Vec<Name>,
}

impl<C: Carrier> Reader<'_, C> {
    /// A whole argument, where kets may stand.
    fn top(&mut self, json: &Json, formula: &Formula) -> Result<ValueId> {
        let (Some([point, along]), Some(inner)) = (json.only(["ket", "along"]), formula.as_bang()) else {
            return self.value(json, formula);
        };
        let Json::Array(along) = along else { return Err(refuse("`along` is a list of values")) };
        if self.names.len() + along.len() > MAX_ALONG {
            return Err(refuse(format!("kets have at most {MAX_ALONG} values in `along` together")));
        }
        let mut sum = vec![(self.evaluator.carrier().ring().one(), self.value(point, inner)?)];
        for direction in along {
            let direction = self.value(direction, inner)?;
            let name = self.evaluator.fresh();
            let epsilon = self.evaluator.carrier().ring().epsilon(name);
            sum.push((epsilon.ok_or_else(|| refuse("kets need infinitesimals"))?, direction));
            self.names.push(name);
        }
        let point = self.evaluator.combine(sum)?;
        Ok(self.evaluator.point(point))
    }

    fn value(&mut self, json: &Json, formula: &Formula) -> Result<ValueId> {
        if let Some([term]) = json.only(["term"]) {
            let Json::Text(term) = term else { return Err(refuse("`term` is a text")) };
            let source = Source::new("<argument>", term.clone().into_bytes());
            let term = elaborate_against(self.program, &source, &parse::query(&source)?, formula)?;
            supported(&term.term, self.extension)?;
            return Ok(self.evaluator.closed(&term.term)?);
        }
        if let Some([Json::Array(sum)]) = json.only(["lin"]) {
            let sum = sum.iter().map(|summand| self.summand(summand, formula)).collect::<Result<_>>()?;
            return Ok(self.evaluator.combine(sum)?);
        }
        if let Some(inner) = formula.as_bang() {
            let point = match (json.only(["bang"]), json) {
                (Some([point]), _) => point,
                (_, Json::Number(_) | Json::Text(_) | Json::Array(_)) => json,
                _ if json.only(["gen"]).is_some() => json,
                _ => return Err(misfit(formula)),
            };
            let point = self.value(point, inner)?;
            return Ok(self.evaluator.point(point));
        }
        if let Some([generator]) = json.only(["gen"]) {
            return self.generator(generator, formula);
        }
        if formula.connective() == &Connective::One {
            let scalar = scalar(self.evaluator.carrier().ring(), json)?;
            return Ok(self.evaluator.scalar(scalar));
        }
        let Json::Array(items) = json else { return Err(misfit(formula)) };
        self.array(items, formula)
    }

    fn summand(&mut self, json: &Json, formula: &Formula) -> Result<(<C::Ring as Ring>::Element, ValueId)> {
        let Json::Array(pair) = json else { return Err(refuse("a summand of `lin` is a pair")) };
        let [coefficient, value] = pair.as_slice() else {
            return Err(refuse("a summand of `lin` is a pair"));
        };
        let coefficient = scalar(self.evaluator.carrier().ring(), coefficient)?;
        Ok((coefficient, self.value(value, formula)?))
    }

    fn generator(&mut self, json: &Json, formula: &Formula) -> Result<ValueId> {
        let letter = match json {
            Json::Text(text) if text.len() == 1 => text.bytes().next().filter(u8::is_ascii_alphabetic),
            _ => None,
        };
        let letter = letter.ok_or_else(|| refuse("a generator is one ASCII letter"))?;
        let Some((from, to)) = formula.as_operator().filter(|(from, to)| from == to) else {
            return Err(misfit(formula));
        };
        let operator = self.evaluator.carrier_mut().generator(letter, from, to)?;
        let operator = operator.ok_or_else(|| refuse("generators need the carrier `words`, or `poly`"))?;
        Ok(self.evaluator.operator_value(operator))
    }

    /// Coordinates: a matrix for A ⊸ B, else a list.
    fn array(&mut self, items: &[Json], formula: &Formula) -> Result<ValueId> {
        if !formula.is_finite() {
            return Err(misfit(formula));
        }
        if !self.evaluator.carrier().has_coordinates() {
            return Err(refuse("words take no matrices and no vectors"));
        }
        let shape = match formula.as_lolli() {
            Some((a, b)) => Some((self.dimension(b)?, self.dimension(a)?)),
            None => None,
        };
        let mut entries = Vec::new();
        let Some((rows, columns)) = shape else {
            let dimension = self.dimension(formula)?;
            if items.len() != dimension {
                return Err(refuse(format!("{dimension} coordinates are wanted, not {}", items.len())));
            }
            for item in items {
                entries.push(scalar(self.evaluator.carrier().ring(), item)?);
            }
            return Ok(self.evaluator.from_coordinates(entries, formula)?);
        };
        for row in items {
            let Json::Array(row) = row else { return Err(misfit(formula)) };
            if row.len() != columns || items.len() != rows {
                return Err(refuse(format!("a matrix of {rows} rows and {columns} columns is wanted")));
            }
            for item in row {
                entries.push(scalar(self.evaluator.carrier().ring(), item)?);
            }
        }
        if items.len() != rows {
            return Err(refuse(format!("a matrix of {rows} rows and {columns} columns is wanted")));
        }
        Ok(self.evaluator.from_coordinates(entries, formula)?)
    }

    fn dimension(&mut self, formula: &Formula) -> Result<usize> {
        Ok(self.evaluator.dimension(formula)?)
    }
}

fn no_basis(formula: &Formula) -> String {
    format!("the result has the type `{}`, whose space has no finite basis here", formula.short())
}

/// The refusal of a result without coordinates.
fn not_finite(formula: &Formula) -> Refusal {
    let help = match formula.as_lolli() {
        Some((domain, _)) => Some(format!("give its argument of type `{}` by `--arg`", domain.short())),
        None => Some("a result has coordinates if no `!` occurs in its type".to_owned()),
    };
    Refusal::new(Kind::NotFinite, no_basis(formula)).found(formula).help(help)
}

fn misfit(formula: &Formula) -> Refusal {
    refuse(format!("the value does not fit the type `{}`", formula.short()))
}

/// The dimensions of atoms: those given, then those that the first argument shows.
///
/// # Errors
/// `argument`, if an array shows a dimension 0.
pub fn dimensions(
    given: &BTreeMap<Rc<str>, usize>,
    formula: &Formula,
    arguments: &[Json],
) -> Result<BTreeMap<Rc<str>, usize>> {
    let mut found = given.clone();
    let mut rest = formula;
    for argument in arguments {
        let Some((domain, codomain)) = rest.as_lolli() else { break };
        show(&mut found, argument, domain)?;
        rest = codomain;
    }
    Ok(found)
}

/// Looks through `!`, `bang` and `ket` for a matrix between atoms or a vector at an atom.
fn show(found: &mut BTreeMap<Rc<str>, usize>, json: &Json, formula: &Formula) -> Result<()> {
    if let Some(inner) = formula.as_bang() {
        if let Some([point]) = json.only(["bang"]) {
            return show(found, point, inner);
        }
        if let Some([point, along]) = json.only(["ket", "along"]) {
            show(found, point, inner)?;
            if let Json::Array(along) = along {
                return along.iter().try_for_each(|direction| show(found, direction, inner));
            }
            return Ok(());
        }
        return show(found, json, inner);
    }
    let Json::Array(items) = json else { return Ok(()) };
    let mut note = |atom: &Rc<str>, dimension: usize| {
        if dimension == 0 {
            return Err(refuse(format!("an array shows the dimension 0 for `{atom}`")));
        }
        found.entry(atom.clone()).or_insert(dimension);
        Ok(())
    };
    if let Some((from, to)) = formula.as_operator() {
        note(to, items.len())?;
        if let Some(Json::Array(row)) = items.first() {
            note(from, row.len())?;
        }
    } else if let Some(atom) = formula.as_atom() {
        note(atom, items.len())?;
    }
    Ok(())
}

impl<C: Carrier> Denotation<C> {
    /// The coordinates of the value, after the coefficient of all ε's of kets is taken.
    ///
    /// # Errors
    /// `not-finite`, `dimension`, and what stands in the way of the value.
    pub fn coordinates(&mut self) -> Result<Vec<<C::Ring as Ring>::Element>> {
        if !self.formula.is_finite() {
            return Err(not_finite(&self.formula));
        }
        let found = self.evaluator.coordinates(self.value, &self.formula)?;
        let ring = self.evaluator.carrier().ring();
        Ok(found.iter().map(|entry| ring.coefficient(entry, &self.names, &[])).collect())
    }

    /// The length of a row of the coordinates, if they are a matrix.
    ///
    /// # Errors
    /// As for [`Denotation::coordinates`].
    pub fn columns(&mut self) -> Result<usize> {
        if !self.formula.is_finite() {
            return Err(not_finite(&self.formula));
        }
        let Some((domain, _)) = self.formula.as_lolli() else { return Ok(1) };
        Ok(self.evaluator.dimension(&domain.clone())?)
    }
}

impl<R: Ring> Denotation<Words<R>> {
    /// The words of a value of type α ⊸ α, sorted by length and then by their letters, with their coefficients.
    ///
    /// # Errors
    /// `not-finite` for values of other types, and what stands in the way of the value.
    pub fn words(&mut self) -> Result<Vec<(String, R::Element)>> {
        if self.formula.as_operator().is_none_or(|(from, to)| from != to) {
            let help = "only a result of a type `α -o α` is a sum of words";
            let refusal = Refusal::new(Kind::NotFinite, no_basis(&self.formula)).found(&self.formula);
            return Err(refusal.help(help.to_owned()));
        }
        let operator = self.evaluator.operator(self.value)?.unwrap_or_default();
        let ring = self.evaluator.carrier().ring();
        let found = operator.iter().map(|(word, coefficient)| {
            let letters = String::from_utf8_lossy(&word.letters()).into_owned();
            (letters, ring.coefficient(coefficient, &self.names, &[]))
        });
        Ok(found.filter(|(_, coefficient)| !ring.is_zero(coefficient)).collect())
    }
}
