//! The value of an expression for given indices, and the sums in it.

use std::collections::BTreeMap;

use tensor_logic::ast::{
    self, Brackets, Expr, ExprKind, IndexExpr, IndexKind, IndexOperator, Joint, Literal, LiteralKind, Place,
    PlaceKind, Reference,
};

use super::ranges::{positive, required};
use super::{Env, Here, Known, Meaning, Out, Skip, Thing, Use, WORK, alone, index_of};
use crate::surface::scopes::{self, EXPLICIT, Names, Parts};

impl Meaning<'_> {
    /// Goes through all values of some indices; what a guard computes takes that value.
    pub(super) fn each(
        &self,
        here: &Here<'_>,
        mut open: Vec<String>,
        (guards, must, uses): (&[Literal], &[&Reference], &[Use]),
        env: &mut Env,
        then: &mut dyn FnMut(&Env) -> Out<()>,
    ) -> Out<()> {
        self.work.set(self.work.get() + 1);
        if self.work.get() > WORK {
            return Err(Skip("many bindings"));
        }
        if open.is_empty() {
            return then(env);
        }
        let computed = |name: &String| {
            guards.iter().find_map(|literal| match &literal.kind {
                LiteralKind::Assign { index, value } if index.text == *name => Some(value),
                _ => None,
            })
        };
        let is_bound = |value: &IndexExpr| {
            let mut names = Names::new();
            scopes::of_index(value, &mut names);
            names.iter().all(|name| env.contains_key(name))
        };
        let ready = open.iter().position(|name| computed(name).is_some_and(is_bound));
        let free = open.iter().position(|name| computed(name).is_none());
        let (at, values) = match (ready, free) {
            (Some(at), _) => {
                let value = computed(&open[at]).ok_or(Skip("nothing computed"))?;
                let value = self.index(value, env)?;
                let declared = self.declared.get(&open[at]);
                let inside = declared.is_none_or(|domain| domain.contains(&value));
                (at, if inside { vec![value] } else { Vec::new() })
            }
            (None, Some(at)) => (at, self.values(here, &open[at], must, uses)?),
            (None, None) => (0, self.values(here, &open[0], must, uses)?),
        };
        let name = open.remove(at);
        for value in values {
            env.insert(name.clone(), value);
            self.each(here, open.clone(), (guards, must, uses), env, then)?;
        }
        env.remove(&name);
        Ok(())
    }

    /// The indices of literals that none of their comparisons sums by itself.
    pub(super) fn open(&self, literals: &[Literal], bound: &dyn Fn(&str) -> bool) -> Names {
        let mut lists: Vec<(bool, Names)> = Vec::new();
        for literal in literals {
            match &literal.kind {
                LiteralKind::Compare { left, right, .. } => {
                    for side in [left, right] {
                        lists.push((!self.is_index(side), scopes::all(side)));
                    }
                }
                _ => {
                    let mut names = Names::new();
                    scopes::of_literal(literal, &mut names);
                    lists.push((false, names));
                }
            }
        }
        let all: Names = lists.iter().flat_map(|(_, names)| names.clone()).collect();
        let own = |name: &String| {
            let mut holding = lists.iter().filter(|(_, names)| names.contains(name));
            !bound(name)
                && (holding.any(|(value, _)| !value)
                    || lists.iter().filter(|(_, names)| names.contains(name)).count() > 1)
        };
        all.into_iter().filter(own).collect()
    }

    /// Whether there are values of the indices that only these guards have for which all hold.
    pub(super) fn hold(&self, here: &Here<'_>, guards: &[Literal], env: &Env) -> Out<bool> {
        let open = self.open(guards, &|name| env.contains_key(name));
        let mut holds = false;
        let must = positive(guards);
        let mut uses = Vec::new();
        guards.iter().for_each(|literal| self.uses_of_literal(literal, here.square, &mut uses));
        self.each(here, open.into_iter().collect(), (guards, &must, &uses), &mut env.clone(), &mut |env| {
            if !holds {
                holds = guards
                    .iter()
                    .try_fold(true, |all, guard| Ok(all && self.holds_one(here, guard, env)?))?;
            }
            Ok(())
        })?;
        Ok(holds)
    }

    pub(super) fn is_index(&self, side: &Expr) -> bool {
        fn names(index: &IndexExpr, check: &dyn Fn(&str) -> bool) -> bool {
            match &index.kind {
                IndexKind::Name(name) => check(name),
                IndexKind::Integer(_) | IndexKind::Index(_) | IndexKind::Text(_) => true,
                IndexKind::Negate(inner) | IndexKind::Group(inner) => names(inner, check),
                IndexKind::Binary(_, a, b) => names(a, check) && names(b, check),
            }
        }
        let known = |name: &str| self.numbers.contains_key(name) || !self.known.contains_key(name);
        side.as_index().is_some_and(|index| names(&index, &known))
    }

    pub(super) fn holds_one(&self, here: &Here<'_>, literal: &Literal, env: &Env) -> Out<bool> {
        Ok(match &literal.kind {
            LiteralKind::Positive(reference) => match reference.brackets {
                Brackets::Round => self.is_present(reference, env)?,
                _ => self.read(reference, env, false, here)?.is_some_and(|value| value > 0.0),
            },
            LiteralKind::Negative(reference) => !self.exists(reference, env)?,
            LiteralKind::Assign { index, value } => env.get(&index.text) == Some(&self.index(value, env)?),
            LiteralKind::Compare { left, comparison, right, .. } => {
                if self.is_index(left) && self.is_index(right) {
                    let side = |side: &Expr| {
                        let index = side.as_index().ok_or(Skip("no index"))?;
                        self.index(&index, env)
                    };
                    return match (side(left)?, side(right)?) {
                        (Thing::Int(a), Thing::Int(b)) => Ok(of(*comparison, a.cmp(&b))),
                        (a, b) => match comparison {
                            ast::Comparison::Equal => Ok(a == b),
                            ast::Comparison::NotEqual => Ok(a != b),
                            _ => Err(Skip("symbols in an order")),
                        },
                    };
                }
                let (left, right) = (
                    self.argument(here, left, &[], env, false)?,
                    self.argument(here, right, &[], env, false)?,
                );
                let (Some(left), Some(right)) = (left, right) else { return Ok(false) };
                match left.partial_cmp(&right) {
                    Some(order) => of(*comparison, order),
                    None => *comparison == ast::Comparison::NotEqual,
                }
            }
        })
    }

    /// The element that a reference names, and whether it is inside.
    pub(super) fn element(&self, reference: &Reference, env: &Env) -> Out<(Option<f64>, bool)> {
        let name = &reference.name.text;
        let known = self.known.get(name).ok_or(Skip("a built-in relation"))?;
        let at: Vec<Thing> =
            reference.places.iter().map(|place| self.index(index_of(place)?, env)).collect::<Out<_>>()?;
        let found = match self.found.get(name) {
            Some(Ok(found)) => found.elements.get(&at).copied(),
            Some(Err(skip)) => return Err(*skip),
            None if known.round && !self.said.contains_key(name) => None,
            None => return Err(Skip("a tensor without values")),
        };
        Ok((found, self.is_inside(known, &at)))
    }

    pub(super) fn read(
        &self,
        reference: &Reference,
        env: &Env,
        zero: bool,
        here: &Here<'_>,
    ) -> Out<Option<f64>> {
        let name = &reference.name.text;
        if reference.brackets == Brackets::None {
            if let Some(number) = self.numbers.get(name) {
                return Ok(Some(*number));
            }
            if !self.known.contains_key(name) || !self.said.contains_key(name) {
                let index = name.to_lowercase();
                if !self.declared.contains_key(&index) {
                    return Err(Skip("the size of an index that is not declared"));
                }
                return Ok(Some(self.range_of(here, &index, &here.uses)?.len() as f64));
            }
        }
        if reference.brackets == Brackets::Round && matches!(name.as_str(), "Even" | "Odd") {
            return Ok(self.is_present(reference, env)?.then_some(1.0));
        }
        let round = self.known.get(name).is_some_and(|known| known.round);
        let (found, inside) = self.element(reference, env)?;
        // What nothing gives of a virtual place is read as 0.
        if reference.places.iter().any(|place| place.star) {
            return Ok(Some(found.unwrap_or(0.0)));
        }
        Ok(match reference.brackets {
            Brackets::Round if !round && found.is_some_and(is_near_zero) => {
                return Err(Skip("an element near 0"));
            }
            Brackets::Round => match found.filter(|value| round || *value != 0.0) {
                Some(value) => Some(value),
                None if zero && !inside => return Err(Skip("a tuple outside of a domain")),
                None => (zero && inside).then_some(0.0),
            },
            // Integers and symbols together are no domain.
            _ if round && !self.said.contains_key(name) => return Err(Skip("an empty relation")),
            _ if round && found.is_none() && known_mixed(&self.known, name) => {
                return Err(Skip("integers and symbols in one place"));
            }
            _ if round => found.or(inside.then_some(0.0)),
            _ => found,
        })
    }

    pub(super) fn is_present(&self, reference: &Reference, env: &Env) -> Out<bool> {
        let name = reference.name.text.as_str();
        if matches!(name, "Even" | "Odd") && !self.said.contains_key(name) {
            let [place] = reference.places.as_slice() else { return Err(Skip("a built-in relation")) };
            let Thing::Int(value) = self.index(index_of(place)?, env)? else { return Ok(false) };
            return Ok((value.rem_euclid(2) == 0) == (name == "Even"));
        }
        let round = self.known.get(name).is_some_and(|known| known.round);
        Ok(self.element(reference, env)?.0.is_some_and(|value| round || value != 0.0))
    }

    /// Whether there is such a tuple, for any value where a wildcard or a slice stands.
    pub(super) fn exists(&self, reference: &Reference, env: &Env) -> Out<bool> {
        if reference.places.iter().all(|place| matches!(place.kind, PlaceKind::Index(_))) {
            return self.is_present(reference, env);
        }
        let name = &reference.name.text;
        let round = self.known.get(name).is_some_and(|known| known.round);
        let found = match self.found.get(name) {
            Some(Ok(found)) => found,
            Some(Err(skip)) => return Err(*skip),
            None if round => return Ok(false),
            None => return Err(Skip("a tensor without values")),
        };
        for (at, value) in &found.elements {
            let mut fits = round || *value != 0.0;
            for (place, at) in reference.places.iter().zip(at) {
                fits &= match &place.kind {
                    PlaceKind::Wildcard => true,
                    PlaceKind::Index(index) => self.index(index, env)? == *at,
                    PlaceKind::Slice(..) => return Err(Skip("a slice that is denied")),
                };
            }
            if fits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn index(&self, index: &IndexExpr, env: &Env) -> Out<Thing> {
        Ok(match &index.kind {
            IndexKind::Integer(value) => Thing::Int(*value),
            IndexKind::Index(name) => env.get(name).cloned().ok_or(Skip("an index without a value"))?,
            IndexKind::Name(name) => match self.numbers.get(name) {
                Some(number) if number.fract() == 0.0 => Thing::Int(*number as i64),
                Some(_) => return Err(Skip("a constant that is no integer")),
                None => Thing::Symbol(name.clone()),
            },
            IndexKind::Text(text) => Thing::Symbol(text.clone()),
            IndexKind::Group(inner) => self.index(inner, env)?,
            IndexKind::Negate(inner) => match self.index(inner, env)? {
                Thing::Int(value) => Thing::Int(-value),
                Thing::Symbol(_) => return Err(Skip("a symbol in arithmetic")),
            },
            IndexKind::Binary(operator, a, b) => {
                let (Thing::Int(a), Thing::Int(b)) = (self.index(a, env)?, self.index(b, env)?) else {
                    return Err(Skip("a symbol in arithmetic"));
                };
                Thing::Int(match operator {
                    IndexOperator::Add => a + b,
                    IndexOperator::Subtract => a - b,
                    IndexOperator::Multiply => a * b,
                    IndexOperator::Divide if b != 0 => a.div_euclid(b),
                    IndexOperator::Remainder if b != 0 => a.rem_euclid(b),
                    _ => return Err(Skip("a division by 0")),
                })
            }
        })
    }

    pub(super) fn value(&self, here: &Here<'_>, expr: &Expr, env: &Env, zero: bool) -> Out<Option<f64>> {
        let value = |expr: &Expr| self.value(here, expr, env, zero);
        Ok(match &expr.kind {
            ExprKind::Number(number) => Some(number.value),
            ExprKind::Text(_) => return Err(Skip("a symbol as a value")),
            ExprKind::Index(name) => match env.get(&name.text) {
                Some(Thing::Int(value)) => Some(*value as f64),
                _ => return Err(Skip("a symbol as a value")),
            },
            ExprKind::Reference(reference) => self.read(reference, env, zero, here)?,
            ExprKind::Not(reference) => (!self.exists(reference, env)?).then_some(1.0),
            ExprKind::Negate(inner) => value(inner)?.map(|value| 0.0 - value),
            ExprKind::Power(base, exponent, _) => match (value(base)?, value(exponent)?) {
                (Some(base), Some(exponent)) => Some(base.powf(exponent)),
                _ => None,
            },
            ExprKind::Sum(terms) => {
                let mut sum = Some(0.0);
                for (minus, term) in terms {
                    let value = value(term)?;
                    sum = sum.zip(value).map(|(sum, value)| if *minus { sum - value } else { sum + value });
                }
                sum
            }
            ExprKind::Product(factors) => {
                let (mut product, mut near) = (Some(1.0), false);
                for (joint, factor) in factors {
                    let value = value(factor)?;
                    product = product.zip(value).map(|(product, value)| match joint {
                        Joint::Over => {
                            near |= is_near_zero(value);
                            product / value
                        }
                        _ => product * value,
                    });
                    if *joint == Joint::Remainder {
                        return Err(Skip("a remainder as a value"));
                    }
                    if near {
                        return Err(Skip("a divisor near 0"));
                    }
                }
                product
            }
            ExprKind::Group { expr, guards } if scopes::is_product(expr) => {
                self.sum(here, expr, guards, env, zero)?
            }
            ExprKind::Group { expr, guards } => {
                if self.hold(here, guards, env)? {
                    self.value(here, expr, env, zero)?
                } else {
                    None
                }
            }
            ExprKind::Call { name, axes, arguments, guards } => {
                let name = name.text.as_str();
                match axes {
                    Some(local) if EXPLICIT.contains(&name) => {
                        let local: Vec<String> = local.iter().map(|name| name.text.clone()).collect();
                        self.explicit(here, name, local, arguments, guards, env)?
                    }
                    _ if matches!(name, "softmax" | "lnorm") => {
                        self.along(here, name, axes.as_deref(), arguments, guards, env)?
                    }
                    Some(_) => return Err(Skip("another function along an axis")),
                    None => {
                        if arguments.len() > 1
                            && !scopes::of_literals(guards).iter().all(|name| env.contains_key(name))
                        {
                            return Err(Skip("a guard of two arguments"));
                        }
                        let mut values = Vec::new();
                        for argument in arguments {
                            let Some(value) = self.argument(here, argument, guards, env, here.square)? else {
                                return Ok(None);
                            };
                            values.push(value);
                        }
                        Some(function(name, &values)?)
                    }
                }
            }
        })
    }

    /// The sum over a body's own indices; absent without contributions.
    pub(super) fn sum(
        &self,
        here: &Here<'_>,
        body: &Expr,
        guards: &[Literal],
        env: &Env,
        zero: bool,
    ) -> Out<Option<f64>> {
        let mut parts = Parts::of(body);
        parts.guards.push(scopes::of_literals(guards));
        let own = parts.own(&|name| env.contains_key(name)).ok_or(Skip("guards share an index"))?;
        let mut sum = None;
        let mut must = positive(guards);
        if !zero {
            required(body, here.square, &mut must);
        }
        let uses = self.uses_in(body, guards, here.square, zero);
        self.each(here, own.into_iter().collect(), (guards, &must, &uses), &mut env.clone(), &mut |env| {
            if self.hold(here, guards, env)?
                && let Some(value) = self.value(here, body, env, zero)?
            {
                sum = Some(sum.unwrap_or(0.0) + value);
            }
            Ok(())
        })?;
        Ok(sum)
    }

    /// An argument: each additive term summed by itself, those without contributions left out. A guard acts in the terms that
    /// have its indices.
    pub(super) fn argument(
        &self,
        here: &Here<'_>,
        argument: &Expr,
        guards: &[Literal],
        env: &Env,
        zero: bool,
    ) -> Out<Option<f64>> {
        let terms = scopes::terms(argument);
        let names: Vec<Names> = terms.iter().map(|(_, term)| scopes::all(term)).collect();
        let anywhere: Names =
            names.iter().flatten().filter(|name| !env.contains_key(*name)).cloned().collect();
        let mut sum = None;
        for ((minus, term), own) in terms.iter().zip(&names) {
            let acting = acting(guards, own, &anywhere, env)?;
            if let Some(value) = self.sum(here, term, &acting, env, zero)? {
                sum = Some(sum.unwrap_or(0.0) + if *minus { -value } else { value });
            }
        }
        Ok(sum)
    }

    pub(super) fn explicit(
        &self,
        here: &Here<'_>,
        name: &str,
        local: Vec<String>,
        arguments: &[Expr],
        guards: &[Literal],
        env: &Env,
    ) -> Out<Option<f64>> {
        let [argument] = arguments else { return Err(Skip("a scope of several arguments")) };
        let mut outer = env.clone();
        local.iter().for_each(|name| {
            outer.remove(name);
        });
        let mut values = Vec::new();
        let mut must = positive(guards);
        if let [(_, term)] = scopes::terms(argument).as_slice() {
            required(term, here.square, &mut must);
        }
        let uses = self.uses_in(argument, guards, here.square, false);
        // A local index is none of the left side.
        let mut inner = here.clone();
        inner.lefts.retain(|name| !local.contains(name));
        let here = &inner;
        self.each(here, local, (guards, &must, &uses), &mut outer, &mut |env| {
            values.extend(self.argument(here, argument, guards, env, false)?);
            Ok(())
        })?;
        if values.iter().any(|value| value.is_nan()) && matches!(name, "max" | "min") {
            return Err(Skip("what is no number"));
        }
        let any = !values.is_empty();
        Ok(match name {
            "sum" => Some(values.iter().sum()),
            "count" => Some(values.len() as f64),
            "prod" => Some(values.iter().product()),
            "max" => any.then(|| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            "min" => any.then(|| values.iter().copied().fold(f64::INFINITY, f64::min)),
            _ => any.then(|| values.iter().sum::<f64>() / values.len() as f64),
        })
    }

    pub(super) fn along(
        &self,
        here: &Here<'_>,
        name: &str,
        axes: Option<&[ast::Name]>,
        arguments: &[Expr],
        guards: &[Literal],
        env: &Env,
    ) -> Out<Option<f64>> {
        let axes: Vec<String> = match axes {
            Some(axes) => axes.iter().map(|name| name.text.clone()).collect(),
            None => {
                let places = || here.head.places.iter();
                let lone = |place: &Place| index_of(place).ok().and_then(alone).map(str::to_owned);
                let dotted: Vec<String> = places().filter(|place| place.dot).filter_map(lone).collect();
                match (dotted.is_empty(), places().last().and_then(lone)) {
                    (false, _) => dotted,
                    (true, Some(last)) => vec![last],
                    (true, None) => return Err(Skip("no axis")),
                }
            }
        };
        let Some((argument, rest)) = arguments.split_first() else { return Err(Skip("no argument")) };
        if !axes.iter().all(|axis| env.contains_key(axis)) {
            return Err(Skip("an axis without a value"));
        }
        let epsilon = match rest {
            [] => 1e-5,
            [Expr { kind: ExprKind::Number(number), .. }] => number.value,
            _ => return Err(Skip("a computed epsilon")),
        };
        let Some(own) = self.argument(here, argument, guards, env, false)? else { return Ok(None) };
        // What a relation beside the function binds may be more than it goes along.
        for axis in &axes {
            let range = self.range_of(here, axis, &here.uses)?;
            if env.get(axis).is_some_and(|value| !range.contains(value)) {
                return Err(Skip("an axis of another range"));
            }
        }
        let mut outer = env.clone();
        axes.iter().for_each(|axis| {
            outer.remove(axis);
        });
        let mut values = Vec::new();
        let mut must = positive(guards);
        if let [(_, term)] = scopes::terms(argument).as_slice() {
            required(term, here.square, &mut must);
        }
        self.each(here, axes, (&[], &must, &here.uses), &mut outer, &mut |env| {
            values.extend(self.argument(here, argument, guards, env, false)?);
            Ok(())
        })?;
        if values.is_empty() {
            return Err(Skip("an axis of another range"));
        }
        if values.len() == 1 && name == "softmax" {
            return Ok(Some(1.0));
        }
        if values.iter().any(|value| value.is_nan()) {
            return Err(Skip("what is no number"));
        }
        Ok(Some(if name == "softmax" {
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (own - most).exp() / values.iter().map(|value| (value - most).exp()).sum::<f64>()
        } else {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            (own - mean) / (variance + epsilon).sqrt()
        }))
    }
}

/// The guards that act in a term: those whose indices it has, or nobody, with what they compute.
pub(super) fn acting(guards: &[Literal], own: &Names, anywhere: &Names, env: &Env) -> Out<Vec<Literal>> {
    let mut groups: Vec<(Names, Vec<&Literal>)> = Vec::new();
    for guard in guards {
        let mut names = Names::new();
        scopes::of_literal(guard, &mut names);
        let shared = |group: &(Names, Vec<&Literal>)| {
            group.0.intersection(&names).any(|name| !anywhere.contains(name) && !env.contains_key(name))
        };
        // Literals that share an index of theirs alone stay together.
        let (joined, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(shared);
        groups = rest;
        let mut all = (names, vec![guard]);
        for (names, literals) in joined {
            all.0.extend(names);
            all.1.splice(0..0, literals);
        }
        groups.push(all);
    }
    let mut acting = Vec::new();
    for (names, literals) in groups {
        let elsewhere = names.iter().any(|name| anywhere.contains(name) && !own.contains(name));
        let here = names.iter().any(|name| anywhere.contains(name) && own.contains(name));
        match (here, elsewhere) {
            (true, true) => return Err(Skip("a guard of two terms")),
            (false, true) => return Err(Skip("a guard of one term")),
            _ => acting.extend(literals.into_iter().cloned()),
        }
    }
    Ok(acting)
}

pub(super) fn of(comparison: ast::Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        ast::Comparison::Less => order.is_lt(),
        ast::Comparison::LessEqual => order.is_le(),
        ast::Comparison::Greater => order.is_gt(),
        ast::Comparison::GreaterEqual => order.is_ge(),
        ast::Comparison::Equal => order.is_eq(),
        ast::Comparison::NotEqual => order.is_ne(),
    }
}

pub(super) fn function(name: &str, values: &[f64]) -> Out<f64> {
    let nan = values.iter().any(|value| value.is_nan());
    Ok(match (name, values) {
        ("max" | "min" | "relu" | "leaky" | "step" | "sign" | "sig", _) if nan => {
            return Err(Skip("what is no number"));
        }
        ("step", [x]) => f64::from(*x > 0.0),
        ("sig", [x]) => 1.0 / (1.0 + (-x).exp()),
        ("sig", [x, t]) if *t == 0.0 => f64::from(*x > 0.0),
        ("sig", [x, t]) => 1.0 / (1.0 + (-x / t).exp()),
        ("tanh", [x]) => x.tanh(),
        ("relu", [x]) => x.max(0.0),
        ("leaky", [x, a]) => {
            if *x > 0.0 {
                *x
            } else {
                a * x
            }
        }
        ("silu", [x]) => x / (1.0 + (-x).exp()),
        ("softplus", [x]) => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        ("exp", [x]) => x.exp(),
        ("log", [x]) => x.ln(),
        ("sqrt", [x]) => x.sqrt(),
        ("sin" | "cos", [x]) if x.abs() > 1e6 => return Err(Skip("an angle that hangs on rounding")),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("abs", [x]) => x.abs(),
        ("sign", [x]) => {
            if *x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        ("floor", [x]) => x.floor(),
        ("max", [x, y]) => x.max(*y),
        ("min", [x, y]) => x.min(*y),
        _ => return Err(Skip("another function")),
    })
}

/// Whether rounding alone may have made it something else than 0.
pub(super) fn is_near_zero(value: f64) -> bool {
    value != 0.0 && value.abs() < 1e-11
}

/// Whether a place has no domain, as where integers and symbols meet.
pub(super) fn known_mixed(known: &BTreeMap<String, Known>, name: &str) -> bool {
    known.get(name).is_some_and(|known| known.domains.iter().any(Vec::is_empty))
}
