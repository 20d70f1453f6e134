//! What an element of a tensor owes to each of its contributions (N4).

use std::collections::HashMap;

use super::builder::{Builder, Contributions, Scope};
use super::forms::{self, only_if, product};
use crate::ast::{Comparison, Span};
use crate::present::{self, Covered};
use crate::program::{
    Argument, Combine, Equation, Expr, Facts, Given, Guard, IndexFn, Otherwise, Place, Range, Read, Style,
    TensorId, Term, When,
};
use crate::value::Const;

/// What is known of the whole that a part stands in.
struct Entire<'a> {
    /// The reads of tuples without which it has no value.
    sure: Vec<&'a Read>,
    covered: Covered,
}

impl Builder {
    /// The adjoint equations of one term, whose element's adjoint is the product of `factors`.
    pub(super) fn contribution(
        &mut self,
        equation: &Equation,
        nth: usize,
        term: &Term,
        scope: &Scope,
        factors: Vec<Expr>,
    ) {
        let span = equation.span;
        let combine = self.program.tensor(equation.tensor).combine;
        if matches!(combine, Combine::Sum) {
            return self.walk(&term.body, scope, factors, span);
        }
        if matches!(combine, Combine::Exists | Combine::Or) {
            return;
        }
        let contributions = self.contributions(equation.tensor);
        let at = |tensor| {
            let arguments = equation.head.iter().cloned().map(Argument::At).collect();
            Expr::Read(Read::new(tensor, arguments, Otherwise::Absent, span))
        };
        let count = at(contributions.count);
        match combine {
            Combine::Avg => {
                let shared = Expr::Quotient(Box::new(product(factors)), Box::new(count));
                self.walk(&term.body, scope, vec![shared], span);
            }
            Combine::Max | Combine::Min => {
                let entry = self.entry(equation, nth, term);
                let mut scope = scope.clone();
                scope.when.guards.push(Guard::Compare(
                    Comparison::Equal,
                    entry.clone(),
                    at(contributions.value),
                ));
                let shared = Expr::Quotient(Box::new(product(factors)), Box::new(count));
                self.walk(&term.body, &scope, vec![shared, forms::present(&entry)], span);
            }
            _ => {
                let entry = self.entry(equation, nth, term);
                let zero = Expr::Number(0.0);
                let is = |sign, a: &Expr, b: Expr| Guard::Compare(sign, a.clone(), b);
                // No zero among them: the product without this one.
                let mut regular = scope.clone();
                regular.when.guards.push(is(Comparison::Equal, &count, zero.clone()));
                let mut along = factors.clone();
                along.push(Expr::Quotient(Box::new(at(contributions.value)), Box::new(entry.clone())));
                self.walk(&term.body, &regular, along, span);
                // This one is the only zero: the product of the others.
                let mut only = scope.clone();
                only.when.guards.push(is(Comparison::Equal, &count, Expr::Number(1.0)));
                only.when.guards.push(is(Comparison::Equal, &entry, zero));
                let mut along = factors;
                along.push(at(contributions.value));
                self.walk(&term.body, &only, along, span);
            }
        }
    }

    fn contributions(&mut self, id: TensorId) -> Contributions {
        if let Some(known) = self.contributions.get(&id) {
            return *known;
        }
        let original = self.program.tensor(id).clone();
        let span = original.span;
        let mut make = |stem: &str| {
            let places = original.places.iter().map(|place| Place { limit: None, ..place.clone() }).collect();
            self.tensor(format!("{stem}_{}", original.name), Style::Round, places, span)
        };
        let (count, value) = (make("Count"), make("Value"));
        let made = Contributions { count, value };
        self.contributions.insert(id, made);
        let combine = original.combine;
        self.set_combine_to(value, combine);
        let given = self.given_copy(id, span);
        let equations: Vec<Equation> =
            self.program.equations.iter().filter(|equation| equation.tensor == id).cloned().collect();
        for equation in &equations {
            for (nth, term) in equation.terms.iter().enumerate() {
                let mut indices = equation.left.clone();
                indices.extend(&term.over);
                if combine == Combine::Avg && term.when.guards.is_empty() {
                    // How many there are needs no value of them.
                    let scope = Scope { indices, when: When::default() };
                    let body = self.presence(&term.body);
                    self.push(made.count, equation.head.clone(), &scope, body, span);
                    continue;
                }
                let entry = self.entry(equation, nth, term);
                self.count(made, combine, equation.head.clone(), indices, &entry, span);
            }
        }
        for copy in given {
            // A last place, where there is one, tells facts of one tuple apart.
            let indices = self.indices_of(self.program.tensor(copy).places.len(), span);
            let of_tuple = indices.iter().take(original.places.len());
            let head: Vec<IndexFn> = of_tuple.map(|index| IndexFn::Index(*index)).collect();
            let entry = self.read_of(copy, &indices, span);
            self.count(made, combine, head, indices, &entry, span);
        }
        made
    }

    /// 1 where an expression is present.
    fn presence(&self, expr: &Expr) -> Expr {
        let mut factors = Vec::new();
        let free = When::default();
        let mut scope = Entire { sure: present::reads_of(expr, &free), covered: Covered::new() };
        self.presences(expr, &mut scope, &mut factors);
        product(factors)
    }

    /// Factors that are 1, and present together where the expression is.
    fn presences(&self, expr: &Expr, scope: &mut Entire<'_>, into: &mut Vec<Expr>) {
        let is_tuple = matches!(expr, Expr::Read(read) if read.otherwise == Otherwise::Absent);
        if !is_tuple && present::surely(&self.program, expr, scope.sure.clone(), &mut scope.covered) {
            return;
        }
        match expr {
            Expr::Number(_) => {}
            Expr::Read(read) if self.exists(read) => {}
            Expr::Product(parts) | Expr::Plus(parts) => {
                parts.iter().for_each(|part| self.presences(part, scope, into));
            }
            Expr::Quotient(a, b) | Expr::Power(a, b) => {
                self.presences(a, scope, into);
                self.presences(b, scope, into);
            }
            Expr::Negate(a) => self.presences(a, scope, into),
            Expr::Call(call) if call.when.guards.is_empty() => {
                call.arguments.iter().for_each(|part| self.presences(part, scope, into));
            }
            _ => into.push(forms::present(expr)),
        }
    }

    /// Whether every element that a read asks for is there: all its places are indices that range
    /// over the places' own domains.
    pub(super) fn exists(&self, read: &Read) -> bool {
        let tensor = self.program.tensor(read.tensor);
        let whole = |(argument, place): (&Argument, &Place)| {
            let Argument::At(function) = argument else { return false };
            let Some(index) = function.alone() else { return false };
            matches!((&self.program.index(index).range, &place.domain),
                (Range::Domain(range), Some(domain)) if range == domain)
        };
        read.otherwise != Otherwise::Absent
            && tensor.style == Style::Square
            && read.arguments.iter().zip(&tensor.places).all(whole)
    }

    /// One contribution more to the helpers.
    fn count(
        &mut self,
        made: Contributions,
        combine: Combine,
        head: Vec<IndexFn>,
        indices: Vec<crate::program::IndexId>,
        entry: &Expr,
        span: Span,
    ) {
        let scope = Scope { indices, when: When::default() };
        let arguments: Vec<Argument> = head.iter().cloned().map(Argument::At).collect();
        let value = Expr::Read(Read::new(made.value, arguments, Otherwise::Absent, span));
        let where_entry = |sign, b: Expr| {
            let guard = Guard::Compare(sign, entry.clone(), b);
            Scope { indices: scope.indices.clone(), when: vec![guard].into() }
        };
        let one = forms::present(entry);
        match combine {
            Combine::Avg => self.push(made.count, head, &scope, one, span),
            Combine::Max | Combine::Min => {
                self.push(made.value, head.clone(), &scope, entry.clone(), span);
                self.push(made.count, head, &where_entry(Comparison::Equal, value), one, span);
            }
            _ => {
                let (regular, zero) = (
                    where_entry(Comparison::NotEqual, Expr::Number(0.0)),
                    where_entry(Comparison::Equal, Expr::Number(0.0)),
                );
                // A contribution that is 0 counts as 1 in the product of the others.
                self.push(made.value, head.clone(), &regular, entry.clone(), span);
                self.push(made.value, head.clone(), &zero, one.clone(), span);
                self.push(made.count, head.clone(), &zero, one.clone(), span);
                // How many are 0 is known also where none is.
                self.push(made.count, head, &scope, product(vec![Expr::Number(0.0), one]), span);
            }
        }
    }

    /// The contributions of a term, stored: equality with the best of them is then that of
    /// stored numbers, whatever order a sum is taken in. A plain read is stored already.
    fn entry(&mut self, equation: &Equation, nth: usize, term: &Term) -> Expr {
        let span = equation.span;
        let mut indices = equation.left.clone();
        indices.extend(&term.over);
        let key = (equation.span, equation.tensor, nth);
        if let Some(known) = self.entries.get(&key) {
            return self.read_of(*known, &indices, span);
        }
        let helper = self.helper("Entry", &indices, true, span);
        self.entries.insert(key, helper);
        let mut factors = vec![term.body.clone()];
        let mut scope = Scope { indices: indices.clone(), when: When::default() };
        if term.when.exists.is_empty() {
            scope.when = term.when.clone();
        } else {
            factors.push(only_if(term.when.clone(), span));
        }
        let head = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        self.push(helper, head, &scope, product(factors), span);
        self.read_of(helper, &indices, span)
    }

    /// What is given of a tensor, as relations of their own: where a tuple is given more than once, with a place more that
    /// counts its facts, for each of them is a contribution.
    fn given_copy(&mut self, id: TensorId, span: Span) -> Vec<TensorId> {
        let original = self.program.tensor(id).clone();
        let mut copies = Vec::new();
        for given in &original.given {
            let facts = match given {
                Given::Facts(facts) => facts.as_ref().clone(),
                Given::Columns(columns) => columns.facts(),
                Given::Array { .. } => {
                    let mut facts = Facts { arity: original.places.len(), ..Facts::default() };
                    given.each(&original.domains(), |tuple, value| facts.push(tuple, value, Some(span)));
                    facts
                }
            };
            let facts = told_apart(&facts).unwrap_or(facts);
            let mut places = original.places.clone();
            places.resize(facts.arity, Place { domain: None, limit: None, star: false });
            let name = format!("Given_{}_{}", original.name, copies.len());
            let copy = self.tensor(name, Style::Round, places, span);
            if let Some(tensor) = self.program.tensors.get_mut(copy.0 as usize) {
                tensor.role = crate::program::Role::Data;
                tensor.given = vec![Given::Facts(std::sync::Arc::new(facts))];
            }
            copies.push(copy);
        }
        copies
    }
}

/// Facts with a last place that says how many of the same tuple come before; nothing where no tuple comes twice.
fn told_apart(facts: &Facts) -> Option<Facts> {
    let mut seen: HashMap<&[Const], i64> = HashMap::new();
    let before: Vec<i64> = (0..facts.count)
        .map(|at| {
            let count = seen.entry(facts.tuple(at)).or_default();
            *count += 1;
            *count - 1
        })
        .collect();
    if seen.len() == facts.count {
        return None;
    }
    let mut apart = Facts { arity: facts.arity + 1, source: facts.source, ..Facts::default() };
    for (at, before) in before.into_iter().enumerate() {
        let mut tuple = facts.tuple(at).to_vec();
        tuple.push(Const::Int(before));
        apart.push(&tuple, facts.value(at), facts.spans.get(at).copied());
    }
    Some(apart)
}
