//! The rules of section 4, checked on a kernel term as they stand there: every type, and every variable used once.
//!
//! The elaborator is not trusted with this; tests run it on what elaboration, reduction and mutation make.

use crate::error::{Kind, Refusal, Result};
use crate::formula::{Apart, Connective, Formula, Instance};
use crate::term::{Node, NodeId, Term, Variable};

/// The deepest term that is checked.
const MAX_DEPTH: usize = 20_000;

/// The type of a closed kernel term.
///
/// # Errors
/// The first rule that is broken, without a place; `limit` for terms that are too deep.
pub fn verify(term: &Term) -> Result<Formula> {
    let mut verifier = Verifier { term, types: vec![None; term.names().len()], trail: Vec::new(), depth: 0 };
    let formula = verifier.formula(term.root())?;
    match verifier.trail.first() {
        None => Ok(formula),
        Some(free) => Err(verifier.about(Kind::Unbound, "a variable is free", *free)),
    }
}

struct Verifier<'a> {
    term: &'a Term,
    /// The types of the variables in scope.
    types: Vec<Option<Formula>>,
    /// The variables that were used and are still in scope.
    trail: Vec<Variable>,
    depth: usize,
}

fn refuse(kind: Kind, message: &str) -> Refusal {
    Refusal::new(kind, message)
}

/// Refuses two formulas that differ.
fn same(wanted: &Formula, found: &Formula) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    let [expected, found] = Apart::new(wanted, found).long;
    Err(refuse(Kind::TypeMismatch, "two formulas differ").expected(expected).found(found))
}

impl Verifier<'_> {
    /// A refusal about a variable.
    fn about(&self, kind: Kind, message: &str, variable: Variable) -> Refusal {
        refuse(kind, message).variable(self.term.name(variable))
    }

    fn formula(&mut self, id: NodeId) -> Result<Formula> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(refuse(Kind::Limit, "the term is too deep to be verified"));
        }
        let formula = self.rule(id)?;
        self.depth -= 1;
        Ok(formula)
    }

    /// A body under binders; each is used once.
    fn under(&mut self, binders: &[(Variable, Formula)], body: NodeId) -> Result<Formula> {
        for (variable, formula) in binders {
            if let Some(place) = self.types.get_mut(variable.index()) {
                *place = Some(formula.clone());
            }
        }
        let formula = self.formula(body)?;
        for (variable, _) in binders {
            let place = self.trail.iter().position(|used| used == variable);
            let unused = || self.about(Kind::LinearUnused, "a variable is not used", *variable);
            let place = place.ok_or_else(unused)?;
            self.trail.remove(place);
            if let Some(place) = self.types.get_mut(variable.index()) {
                *place = None;
            }
        }
        Ok(formula)
    }

    fn banged(&mut self, id: NodeId) -> Result<Formula> {
        let found = self.formula(id)?;
        found.as_bang().cloned().ok_or_else(|| refuse(Kind::NotBanged, "the type is not !A").found(&found))
    }

    /// Two branches use the same variables; they are used once.
    fn branches<T>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<T>,
        second: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, T)> {
        let before = std::mem::take(&mut self.trail);
        let left = first(self)?;
        let mut used = std::mem::take(&mut self.trail);
        let right = second(self)?;
        used.sort_unstable();
        self.trail.sort_unstable();
        if used != self.trail {
            let lacking =
                |here: &[Variable], there: &[Variable]| here.iter().find(|v| !there.contains(v)).copied();
            let lacking = lacking(&used, &self.trail).or(lacking(&self.trail, &used));
            let message = "two branches use different variables";
            return Err(self.about(Kind::BranchMismatch, message, lacking.unwrap_or(Variable::new(0))));
        }
        let shared = std::mem::replace(&mut self.trail, before);
        shared.into_iter().try_for_each(|variable| self.mark(variable))?;
        Ok((left, right))
    }

    fn mark(&mut self, variable: Variable) -> Result<()> {
        if self.trail.contains(&variable) {
            return Err(self.about(Kind::LinearReuse, "a variable is used twice", variable));
        }
        self.trail.push(variable);
        Ok(())
    }

    fn rule(&mut self, id: NodeId) -> Result<Formula> {
        let term = self.term;
        Ok(match term.node(id) {
            Node::Variable(variable) => {
                self.mark(*variable)?;
                let formula = self.types.get(variable.index()).cloned().flatten();
                formula.ok_or_else(|| self.about(Kind::Unbound, "a variable is out of scope", *variable))?
            }
            Node::Lambda { variable, domain, codomain, body } => {
                let found = self.under(&[(*variable, domain.clone())], *body)?;
                same(codomain, &found)?;
                domain.clone().lolli(found)
            }
            Node::Apply(function, argument) => {
                let function = self.formula(*function)?;
                let no_function = || refuse(Kind::NotAFunction, "the head is no function").found(&function);
                let (domain, codomain) = function.as_lolli().ok_or_else(no_function)?;
                same(domain, &self.formula(*argument)?)?;
                codomain.clone()
            }
            Node::Tensor(left, right) => self.formula(*left)?.tensor(self.formula(*right)?),
            Node::LetTensor { scrutinee, left, right, body } => {
                let found = self.formula(*scrutinee)?;
                let Connective::Tensor(a, b) = found.connective() else {
                    return Err(refuse(Kind::NotATensor, "the type is not A ⊗ B").found(&found));
                };
                self.under(&[(*left, a.clone()), (*right, b.clone())], *body)?
            }
            Node::Unit => Formula::one(),
            Node::LetUnit { scrutinee, body } => {
                let found = self.formula(*scrutinee)?;
                if found != Formula::one() {
                    return Err(refuse(Kind::NotAUnit, "the type is not 1").found(&found));
                }
                self.formula(*body)?
            }
            Node::Derelict(inner) => self.banged(*inner)?,
            Node::Promote { sources, body } => {
                let mut binders = Vec::with_capacity(sources.len());
                for (source, name) in sources {
                    binders.push((*name, self.banged(*source)?.bang()));
                }
                let outside = std::mem::take(&mut self.trail);
                let found = self.under(&binders, *body)?;
                if let Some(outer) = self.trail.first() {
                    let formula = self.types.get(outer.index()).cloned().flatten().unwrap_or(Formula::one());
                    let message = "a box uses a variable from outside";
                    return Err(self.about(Kind::BoxCapture, message, *outer).found(formula));
                }
                self.trail = outside;
                found.bang()
            }
            Node::Copy { scrutinee, left, right, body } => {
                let banged = self.banged(*scrutinee)?.bang();
                self.under(&[(*left, banged.clone()), (*right, banged)], *body)?
            }
            Node::Discard { scrutinee, body } => {
                self.banged(*scrutinee)?;
                self.formula(*body)?
            }
            Node::With(left, right) => {
                let (left, right) = self.branches(|v| v.formula(*left), |v| v.formula(*right))?;
                left.with(right)
            }
            Node::First(pair) | Node::Second(pair) => {
                let found = self.formula(*pair)?;
                let Connective::With(a, b) = found.connective() else {
                    return Err(refuse(Kind::NotAWith, "the type is not A & B").found(&found));
                };
                if matches!(term.node(id), Node::First(_)) { a.clone() } else { b.clone() }
            }
            Node::InLeft(other, inner) => self.formula(*inner)?.plus(other.clone()),
            Node::InRight(other, inner) => other.clone().plus(self.formula(*inner)?),
            Node::Case { scrutinee, left, right } => {
                let found = self.formula(*scrutinee)?;
                let Connective::Plus(a, b) = found.connective() else {
                    return Err(refuse(Kind::NotAPlus, "the type is not A ⊕ B").found(&found));
                };
                let (first, second) = self.branches(
                    |v| v.under(&[(left.0, a.clone())], left.1),
                    |v| v.under(&[(right.0, b.clone())], right.1),
                )?;
                same(&first, &second)?;
                first
            }
            Node::Global { definition, arguments } => {
                definition.formula.instantiate(&Instance::new(&definition.parameters, arguments))
            }
            Node::Numeral { base, .. } => Formula::int(base.clone()),
            Node::Word { base, .. } => Formula::bint(base.clone()),
            Node::Coweaken(inner) => inner.clone().bang(),
            Node::Cocopy(left, right) => {
                let left = self.banged(*left)?.bang();
                same(&left, &self.formula(*right)?)?;
                left
            }
            Node::Coderelict(inner) => self.formula(*inner)?.bang(),
        })
    }
}
