//! What an index ranges over: declared domains, the tuples that bind it, the reads that limit it (N6).

use std::collections::BTreeSet;

use tensor_logic::ast::{
    Brackets, Expr, ExprKind, IndexExpr, IndexKind, IndexOperator, Literal, LiteralKind, PlaceKind, Reference,
};

use super::{Body, Env, FAR, Here, Meaning, Out, Said, Skip, Thing, Use, all, alone, index_of};
use crate::surface::scopes::{self, EXPLICIT, Names};

impl Meaning<'_> {
    /// The values of an index: those of the tuples that must be there, or its range.
    pub(super) fn bound_values(
        &self,
        here: &Here<'_>,
        name: &str,
        must: &[&Reference],
        uses: &[Use],
    ) -> Out<Vec<Thing>> {
        if self.declared.contains_key(name) {
            return self.range_of(here, name, uses);
        }
        // What not every term binds has one range for all of them.
        let left = here.lefts.contains(name);
        let bound = binding(name, must).filter(|_| !left || here.bound.contains(name));
        if let Some((reference, place, index)) = bound {
            let round = self.known.get(&reference.name.text).is_some_and(|known| known.round);
            let column: BTreeSet<Thing> = match self.found.get(&reference.name.text) {
                Some(Ok(found)) => found
                    .elements
                    .iter()
                    .filter(|(_, value)| round || **value != 0.0)
                    .filter_map(|(at, _)| at.get(place).cloned())
                    .collect(),
                Some(Err(skip)) => return Err(*skip),
                None => BTreeSet::new(),
            };
            return match alone(index) {
                Some(_) => Ok(column.into_iter().collect()),
                None => self.solutions(name, index, &|value| column.contains(value)),
            };
        }
        self.range_of(here, name, if left { &here.uses } else { uses })
    }

    pub(super) fn values(
        &self,
        here: &Here<'_>,
        name: &str,
        must: &[&Reference],
        uses: &[Use],
    ) -> Out<Vec<Thing>> {
        let range = self.bound_values(here, name, must, uses)?;
        let Some((from, to)) = self.slices.get(name) else { return Ok(range) };
        let inside = |value: &Thing| match value {
            Thing::Int(value) => from.is_none_or(|from| from <= *value) && to.is_none_or(|to| *value < to),
            Thing::Symbol(_) => from.is_none() && to.is_none(),
        };
        Ok(range.into_iter().filter(inside).collect())
    }

    /// What an index ranges over in an equation.
    pub(super) fn range_of(&self, here: &Here<'_>, name: &str, uses: &[Use]) -> Out<Vec<Thing>> {
        if let Some(domain) = self.declared.get(name) {
            return Ok(domain.clone());
        }
        let names = names_of;
        let own: Vec<&Use> = uses.iter().filter(|one| names(&one.index).contains(name)).collect();
        // What the domains of tensors outside the recursion leave.
        let mut range: Option<BTreeSet<Thing>> = None;
        let mut moved = Vec::new();
        for one in own.iter().filter(|one| !one.loose) {
            let Some(known) = self.known.get(&one.tensor) else { return Err(Skip("a built-in relation")) };
            let Some(domain) = known.domains.get(one.place) else { return Err(Skip("another rank")) };
            if domain.is_empty() && !known.round {
                return Err(Skip("an empty domain"));
            }
            if here.together.contains(&one.tensor) {
                continue;
            }
            let others = names(&one.index).len() > 1;
            if others {
                moved.push((*one, domain));
                continue;
            }
            let found: BTreeSet<Thing> = if alone(&one.index).is_some() {
                domain.iter().cloned().collect()
            } else {
                self.solutions(name, &one.index, &|value| domain.contains(value))?.into_iter().collect()
            };
            range = Some(match range {
                Some(range) => range.intersection(&found).cloned().collect(),
                None => found,
            });
        }
        if let Some(range) = range {
            if moved.iter().any(|(one, _)| {
                names(&one.index).iter().any(|other| other != name && !self.declared.contains_key(other))
            }) {
                return Err(Skip("ranges that hang on each other"));
            }
            return Ok(range.into_iter().collect());
        }
        if !moved.is_empty() {
            let mut found: Option<BTreeSet<i64>> = None;
            for (one, domain) in moved {
                let others = names(&one.index).into_iter().filter(|other| other != name);
                let others: Vec<String> = others.collect();
                let domains: Option<Vec<Vec<Thing>>> =
                    others.iter().map(|other| self.declared.get(other).cloned()).collect();
                let domains = domains.ok_or(Skip("ranges that hang on each other"))?;
                let mut fits = BTreeSet::new();
                for value in -FAR..=FAR {
                    let mut inside = true;
                    for at in all(&domains) {
                        let mut env: Env = others.iter().cloned().zip(at).collect();
                        env.insert(name.to_owned(), Thing::Int(value));
                        inside &= domain.contains(&self.index(&one.index, &env)?);
                    }
                    if inside && value.abs() > FAR - 8 {
                        return Err(Skip("an index without an end"));
                    }
                    if inside {
                        fits.insert(value);
                    }
                }
                found = Some(match found {
                    Some(found) => found.intersection(&fits).copied().collect(),
                    None => fits,
                });
            }
            return Ok(found.into_iter().flatten().map(Thing::Int).collect());
        }
        if uses.iter().any(|one| names(&one.index).contains(name)) {
            return Err(Skip("the domain of a class"));
        }
        // The domain of its class: that of the left side, where it stands alone.
        let left =
            here.head.places.iter().position(|place| index_of(place).ok().and_then(alone) == Some(name));
        let known = self.known.get(&here.head.name.text);
        match left.and_then(|place| known?.domains.get(place)) {
            Some(_)
                if known.is_some_and(|known| known.round)
                    || self.said.get(&here.head.name.text).is_some_and(|said| said.len() > 1) =>
            {
                Err(Skip("the domain of a class"))
            }
            Some(domain) => Ok(domain.clone()),
            None => Err(Skip("an index that nothing limits")),
        }
    }

    /// The integers for which an index expression takes a value that fits.
    pub(super) fn solutions(
        &self,
        name: &str,
        index: &IndexExpr,
        fits: &dyn Fn(&Thing) -> bool,
    ) -> Out<Vec<Thing>> {
        let mut found = Vec::new();
        for value in -FAR..=FAR {
            let env = Env::from([(name.to_owned(), Thing::Int(value))]);
            if fits(&self.index(index, &env)?) {
                if value.abs() > FAR - 8 {
                    return Err(Skip("an index without an end"));
                }
                found.push(Thing::Int(value));
            }
        }
        // `n - n` limits nothing, whatever it is.
        if found.is_empty() {
            return Err(Skip("a range without values"));
        }
        Ok(found)
    }

    /// Where the indices of an equation are read.
    pub(super) fn uses(&self, said: &Said<'_>, square: bool) -> Vec<Use> {
        let mut uses = Vec::new();
        match &said.body {
            Body::Fact | Body::Array(_) => {}
            Body::Rule(body) => {
                body.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses))
            }
            Body::Equation(_, expr, guards) => {
                self.uses_of(expr, square, false, &mut uses);
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses));
            }
        }
        uses
    }

    pub(super) fn uses_in(&self, body: &Expr, guards: &[Literal], square: bool, zero: bool) -> Vec<Use> {
        let mut uses = Vec::new();
        self.uses_of(body, square, zero, &mut uses);
        guards.iter().for_each(|literal| self.uses_of_literal(literal, square, &mut uses));
        uses
    }

    pub(super) fn use_of(&self, reference: &Reference, zero: bool, uses: &mut Vec<Use>) {
        if matches!(reference.name.text.as_str(), "Even" | "Odd") {
            return;
        }
        for (place, at) in reference.places.iter().enumerate() {
            if let PlaceKind::Index(index) = &at.kind {
                let loose = reference.brackets == Brackets::Round && !zero;
                uses.push(Use { tensor: reference.name.text.clone(), place, index: index.clone(), loose });
            }
        }
    }

    /// A denied reference limits nothing.
    pub(super) fn denied(&self, reference: &Reference, uses: &mut Vec<Use>) {
        let from = uses.len();
        self.use_of(reference, false, uses);
        uses.iter_mut().skip(from).for_each(|one| one.loose = true);
    }

    pub(super) fn uses_of_literal(&self, literal: &Literal, square: bool, uses: &mut Vec<Use>) {
        match &literal.kind {
            LiteralKind::Positive(reference) => self.use_of(reference, false, uses),
            LiteralKind::Assign { .. } => {}
            LiteralKind::Negative(reference) => self.denied(reference, uses),
            LiteralKind::Compare { left, right, .. } => {
                self.uses_of(left, square, false, uses);
                self.uses_of(right, square, false, uses);
            }
        }
    }

    pub(super) fn uses_of(&self, expr: &Expr, square: bool, zero: bool, uses: &mut Vec<Use>) {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.uses_of(term, square, zero, uses)),
            ExprKind::Product(factors) => {
                factors.iter().for_each(|(_, factor)| self.uses_of(factor, square, zero, uses));
            }
            ExprKind::Negate(inner) => self.uses_of(inner, square, zero, uses),
            ExprKind::Power(base, exponent, _) => {
                self.uses_of(base, square, zero, uses);
                self.uses_of(exponent, square, zero, uses);
            }
            ExprKind::Reference(reference) => self.use_of(reference, zero, uses),
            ExprKind::Not(reference) => self.denied(reference, uses),
            ExprKind::Number(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
            ExprKind::Call { name, axes, arguments, guards } => {
                let name = name.text.as_str();
                let missing = (axes.is_some() && EXPLICIT.contains(&name))
                    || matches!(name, "softmax" | "lnorm" | "concat");
                let from = uses.len();
                for argument in arguments {
                    self.uses_of(argument, square, square && !missing, uses);
                }
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, uses));
                if EXPLICIT.contains(&name) {
                    // A local index is another one than that of its name outside.
                    let local = axes.iter().flatten().map(|axis| axis.text.as_str());
                    for local in local.filter(|local| !self.declared.contains_key(*local)) {
                        uses.iter_mut().skip(from).for_each(|one| renamed(&mut one.index, local));
                    }
                }
            }
            ExprKind::Group { expr, guards } => {
                self.uses_of(expr, square, zero, uses);
                guards.iter().for_each(|literal| self.uses_of_literal(literal, square, uses));
            }
        }
    }
}

/// `x`, `x + c`, `x - c` or `c - x`.
pub(super) fn is_simple(index: &IndexExpr) -> bool {
    let constant = |index: &IndexExpr| names_of(index).is_empty();
    match &index.kind {
        IndexKind::Binary(IndexOperator::Add | IndexOperator::Subtract, a, b) => {
            (alone(a).is_some() && constant(b)) || (constant(a) && alone(b).is_some())
        }
        IndexKind::Group(inner) => is_simple(inner),
        _ => alone(index).is_some(),
    }
}

/// The references without which literals do not hold.
pub(super) fn positive(literals: &[Literal]) -> Vec<&Reference> {
    let mut found = Vec::new();
    for literal in literals {
        match &literal.kind {
            LiteralKind::Positive(reference) => found.push(reference),
            LiteralKind::Compare { left, right, .. } => {
                for side in [left, right] {
                    if let [(_, term)] = scopes::terms(side).as_slice() {
                        required(term, false, &mut found);
                    }
                }
            }
            LiteralKind::Negative(_) | LiteralKind::Assign { .. } => {}
        }
    }
    found
}

/// The references of a body without which it is absent; in arguments of elementwise functions of a square tensor they are read
/// as 0.
pub(super) fn required<'a>(body: &'a Expr, square: bool, into: &mut Vec<&'a Reference>) {
    match &body.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| required(term, square, into)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| required(factor, square, into)),
        ExprKind::Negate(inner) => required(inner, square, into),
        ExprKind::Power(base, exponent, _) => {
            required(base, square, into);
            required(exponent, square, into);
        }
        ExprKind::Reference(reference) => into.push(reference),
        ExprKind::Group { expr, guards } => {
            required(expr, square, into);
            into.extend(positive(guards));
        }
        ExprKind::Call { name, axes, arguments, guards } => {
            let name = name.text.as_str();
            let explicit = axes.is_some() && EXPLICIT.contains(&name);
            if explicit && matches!(name, "sum" | "count" | "prod") {
                return;
            }
            let mut inner = positive(guards);
            if !square || explicit || matches!(name, "softmax" | "lnorm") {
                for argument in arguments {
                    if let [(_, term)] = scopes::terms(argument).as_slice() {
                        required(term, square, &mut inner);
                    }
                }
            }
            // What is local there has nothing to do with its name here.
            let local = |name: &String| explicit && axes.iter().flatten().any(|axis| axis.text == *name);
            inner.retain(|reference| {
                let mut names = Names::new();
                scopes::of_reference(reference, &mut names);
                !names.iter().any(local)
            });
            into.append(&mut inner);
        }
        ExprKind::Number(_) | ExprKind::Not(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
    }
}

pub(super) fn names_of(index: &IndexExpr) -> Names {
    let mut names = Names::new();
    scopes::of_index(index, &mut names);
    names
}

/// The place of a reference that binds an index to the tuples there are.
pub(super) fn binding<'a>(
    name: &str,
    must: &[&'a Reference],
) -> Option<(&'a Reference, usize, &'a IndexExpr)> {
    let may = |reference: &&&Reference| {
        reference.brackets == Brackets::Round && !matches!(reference.name.text.as_str(), "Even" | "Odd")
    };
    must.iter().filter(may).find_map(|reference| {
        reference.places.iter().enumerate().find_map(|(nth, place)| {
            let PlaceKind::Index(index) = &place.kind else { return None };
            let names = names_of(index);
            (names.len() == 1 && names.contains(name) && is_simple(index)).then_some((*reference, nth, index))
        })
    })
}

/// Gives an index a name that no text has.
pub(super) fn renamed(index: &mut IndexExpr, local: &str) {
    match &mut index.kind {
        IndexKind::Index(name) if name == local => name.push('~'),
        IndexKind::Negate(inner) | IndexKind::Group(inner) => renamed(inner, local),
        IndexKind::Binary(_, a, b) => {
            renamed(a, local);
            renamed(b, local);
        }
        _ => {}
    }
}

/// Whether the terms of an argument bind an index each by itself: then it takes the values of all of them.
pub(super) fn each_binds(body: &Expr, square: bool) -> bool {
    let inside = |part: &Expr| each_binds(part, square);
    match &body.kind {
        ExprKind::Sum(terms) => terms.iter().any(|(_, term)| inside(term)),
        ExprKind::Product(factors) => factors.iter().any(|(_, factor)| inside(factor)),
        ExprKind::Negate(inner) | ExprKind::Group { expr: inner, .. } => inside(inner),
        ExprKind::Power(base, exponent, _) => inside(base) || inside(exponent),
        ExprKind::Call { arguments, .. } => arguments.iter().any(|argument| {
            let terms = scopes::terms(argument);
            let binds = |name: &String| {
                terms.iter().all(|(_, term)| {
                    let mut must = Vec::new();
                    required(term, square, &mut must);
                    binding(name, &must).is_some()
                })
            };
            inside(argument) || (terms.len() > 1 && scopes::all(argument).iter().any(binds))
        }),
        ExprKind::Number(_)
        | ExprKind::Reference(_)
        | ExprKind::Not(_)
        | ExprKind::Index(_)
        | ExprKind::Text(_) => false,
    }
}
