//! Scopes and guards.

use std::collections::BTreeSet;

use super::index::{self, Spacing};
use super::names::Sharing;
use super::piece::{self, Level, Piece};
use super::presence;
use super::value::{Printer, Stands, bar, bracketed};
use crate::ast::Comparison;
use crate::domains;
use crate::program::{
    Argument, Expr, Guard, IndexFn, IndexId, Operation, Range, Read, Reduce, Role, Tensor, When,
};
use crate::value::{Const, Domain};
use crate::walk;

/// The name of a scope's operation.
pub(super) fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Sum => "sum",
        Operation::Product => "prod",
        Operation::Max => "max",
        Operation::Min => "min",
        Operation::Avg => "avg",
        Operation::Count => "count",
    }
}

/// The indices of a value and its guards.
pub(super) fn used(body: Option<&Expr>, when: &When) -> BTreeSet<IndexId> {
    let mut used = BTreeSet::new();
    let mut visit = |index| {
        used.insert(index);
    };
    if let Some(body) = body {
        walk::expr_indices(body, &mut visit);
    }
    walk::when_indices(when, &mut visit);
    used
}

/// Whether an assignment among these guards computes an index.
fn is_computed(index: IndexId, when: &When) -> bool {
    when.guards.iter().any(|guard| matches!(guard, Guard::Bind(own, _) if *own == index))
}

impl Printer<'_> {
    pub(super) fn reduce(&mut self, reduce: &Reduce, stands: Stands) -> Piece {
        if let Some(size) = self.size(reduce) {
            return size;
        }
        if reduce.over.is_empty() {
            return self.guarded(reduce, stands);
        }
        let text = self.written_out(reduce.operation, &reduce.over, &reduce.when, &reduce.body);
        if reduce.over.iter().all(|index| is_computed(*index, &reduce.when)) {
            return Piece::base(text);
        }
        let neutral = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
        let needed = stands.neutral != Some(reduce.operation) || self.hides(reduce);
        let absent = neutral && !reduce.explicit && needed;
        if !absent {
            return Piece::base(text);
        }
        let guards = self.presence(&reduce.over, &reduce.when, &reduce.body);
        if guards.is_empty() { Piece::base(text) } else { Piece::base(format!("({text}{})", bar(&guards))) }
    }

    /// Whether relations inside bind an index around, whose range would be another one if they
    /// did not: a sum that is written out binds nothing outside, because it is never absent.
    fn hides(&self, reduce: &Reduce) -> bool {
        let mut around = self.names.visible().filter(|index| !self.left.contains(index));
        around.any(|index| {
            self.is_by_tuples(index)
                && self.limited.contains(&index)
                && domains::binds(index, &reduce.body, &reduce.when)
        })
    }

    /// `sum[j](… | …)`. What an assignment computes is not listed: an index that is takes all values of its range, and the
    /// assignment is a comparison then. Where nothing is listed it is a group, which must be a product.
    pub(super) fn written_out(
        &mut self,
        operation: Operation,
        over: &[IndexId],
        when: &When,
        body: &Expr,
    ) -> String {
        let depth = self.names.depth();
        let inside = used(Some(body), when);
        let mut names = Vec::new();
        for index in over {
            // What is not listed is not local: the same name in a scope beside this one would be the same index.
            let listed = !is_computed(*index, when);
            let sharing = if listed { Sharing::Local } else { Sharing::Own };
            let name = self.names.bind(*index, &inside, sharing);
            if listed {
                names.push(name);
            }
        }
        let neutral = (operation == Operation::Sum).then_some(operation);
        let stands = Stands { split: true, zero: false, neutral };
        let is_product = matches!(body, Expr::Product(factors) if factors.len() > 1);
        let text = match names.is_empty() && !is_product {
            // Of parentheses a product is in, and no other value, what is in them is a scope.
            true => piece::side_by_side(["1".to_owned(), self.value(body, stands.inside()).at(Level::Power)]),
            false => self.value(body, stands).text,
        };
        let mut guards = self.when(when);
        guards.extend(self.slices(over, when, body));
        // An index that nothing holds needs an occurrence.
        let listed = over.iter().filter(|index| !is_computed(**index, when));
        let idle = listed.zip(&names).filter(|(index, _)| !inside.contains(index));
        guards.extend(idle.map(|(_, name)| format!("{name} == {name}")));
        self.names.leave(depth);
        let scope = match names.as_slice() {
            [] => String::new(),
            names => format!("{}[{}]", operation_name(operation), names.join(", ")),
        };
        format!("{scope}({text}{})", bar(&guards))
    }

    /// The guards that keep wildcards within their slices.
    pub(super) fn slices(&mut self, over: &[IndexId], when: &When, body: &Expr) -> Vec<String> {
        let mut guards = Vec::new();
        for index in over {
            let Some(entry) = self.program.indices.get(index.0 as usize) else { continue };
            let Range::Domain(Domain::Interval { from, to }) = &entry.range else { continue };
            if entry.name != "_" || self.reads_whole(*index, when, body) {
                continue;
            }
            let (low, high) = (IndexFn::Const(Const::Int(*from)), IndexFn::Const(Const::Int(*to)));
            let index = IndexFn::Index(*index);
            guards.push(Guard::CompareIndex(Comparison::LessEqual, low, index.clone()));
            guards.push(Guard::CompareIndex(Comparison::LessEqual, index, high));
        }
        guards.iter().map(|guard| self.guard(guard)).collect()
    }

    /// Whether some place that the index stands alone in has the index's range.
    fn reads_whole(&self, index: IndexId, when: &When, body: &Expr) -> bool {
        let range = self.program.indices.get(index.0 as usize).map(|index| &index.range);
        let mut whole = false;
        let mut visit = |read: &Read, _| {
            let tensor = self.program.tensors.get(read.tensor.0 as usize);
            let places = tensor.into_iter().flat_map(|tensor| &tensor.places).zip(&read.arguments);
            for (place, argument) in places {
                let alone = matches!(argument, Argument::At(function) if function.alone() == Some(index));
                let same = matches!((range, &place.domain), (Some(Range::Domain(a)), Some(b)) if a == b);
                whole |= alone && same;
            }
        };
        body.visit_reads(&mut visit);
        when.visit_reads(&mut visit);
        whole
    }

    /// A value under guards, without summed indices.
    fn guarded(&mut self, reduce: &Reduce, stands: Stands) -> Piece {
        let body = &reduce.body;
        if reduce.when.guards.is_empty() {
            let absent = reduce.explicit && !crate::presence::always(self.program, body);
            let inner = Stands { split: true, zero: self.square, neutral: None };
            return match absent {
                true => Piece::base(format!("leaky({} + 0, 1)", self.value(body, inner).at(Level::Negative))),
                false => self.value(body, stands),
            };
        }
        // A round reference is 0 where round references are read as 0.
        if (reduce.explicit || !stands.zero)
            && let Some(parity) = self.parity(reduce)
        {
            return parity;
        }
        if !reduce.explicit {
            let text = self.value(body, stands.inside()).text;
            let guards = self.when(&reduce.when);
            return Piece::base(format!("({text}{})", bar(&guards)));
        }
        // 0 where a guard fails: the terms of an argument skip what is absent.
        let inner = Stands { split: false, zero: self.square, neutral: None };
        let text = self.value(body, inner).text;
        let guards = self.when(&reduce.when);
        Piece::base(format!("leaky(({text}{}) + 0, 1)", bar(&guards)))
    }

    /// `Even[d]`: 1 or 0; `Even(d)`: 1 or absent.
    fn parity(&mut self, reduce: &Reduce) -> Option<Piece> {
        let (Expr::Number(1.0), [Guard::CompareIndex(Comparison::Equal, left, right)]) =
            (&reduce.body, reduce.when.guards.as_slice())
        else {
            return None;
        };
        // A guard with indices of its own asks whether there are any; a factor would be summed over them.
        if !reduce.when.exists.is_empty() {
            return None;
        }
        let (IndexFn::Remainder(index, two), IndexFn::Const(Const::Int(rest))) = (left, right) else {
            return None;
        };
        let name = match (two.as_ref(), rest) {
            (IndexFn::Const(Const::Int(2)), 0) => "Even",
            (IndexFn::Const(Const::Int(2)), 1) => "Odd",
            _ => return None,
        };
        let defined =
            |tensor: &Tensor| tensor.name == name && !matches!(tensor.role, Role::Missing | Role::Empty);
        if self.program.tensors.iter().any(defined) {
            return None;
        }
        let index = index::function(self.program, &self.names, index, Spacing::Tight).text;
        Some(Piece::base(bracketed(name, &[index], !reduce.explicit, true)))
    }

    /// The size of a range: `Dk` where the index `dk` stands for it, otherwise a number. In a whole program that index must be
    /// declared: others have the ranges that the text gives them.
    fn size(&self, reduce: &Reduce) -> Option<Piece> {
        let ([counted], Operation::Count, Expr::Number(1.0), true) =
            (reduce.over.as_slice(), reduce.operation, &reduce.body, reduce.explicit)
        else {
            return None;
        };
        let entry = self.program.indices.get(counted.0 as usize)?;
        let Range::Domain(domain) = &entry.range else { return None };
        if !reduce.when.guards.is_empty() {
            return None;
        }
        let mut letters = entry.name.chars();
        let name: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let original = self.names.find(&entry.name).and_then(|id| self.program.indices.get(id.0 as usize));
        let same = original.is_some_and(|index| match &index.range {
            Range::Domain(range) => range == domain,
            Range::Tuples | Range::Computed => true,
        });
        let same = same && self.names.declarations.is_none_or(|known| known.borrow().is(&entry.name, domain));
        let given = |tensor: &Tensor| tensor.name == name && tensor.role != Role::Missing;
        let free = !self.program.tensors.iter().any(given);
        let named = same && free && name.to_lowercase() == entry.name;
        Some(Piece::base(if named { name } else { domain.len().to_string() }))
    }

    /// Guards that hold where a scope has a contribution.
    pub(super) fn presence(&mut self, over: &[IndexId], when: &When, body: &Expr) -> Vec<String> {
        let presence = presence::of_scope(self.program, over, when, body);
        let guards = When { exists: presence.exists, ..presence.guards.into() };
        let mut texts = self.when(&guards);
        if !presence.exact {
            let contributions = match self.loses(&guards, when, body) {
                false => self.written_out(Operation::Count, over, when, body),
                true => {
                    let one = Expr::Power(Box::new(body.clone()), Box::new(Expr::Number(0.0)));
                    self.written_out(Operation::Max, over, when, &one)
                }
            };
            texts.push(format!("{contributions} > 0"));
        }
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(text.clone()));
        texts
    }

    /// Whether relations inside bind an index around that these guards do not bind. A count binds nothing, because it is
    /// never absent; a maximum over nothing is, and what it is of, to the power 0, is 1 whatever its value.
    fn loses(&self, guards: &When, when: &When, body: &Expr) -> bool {
        let nothing = Expr::Number(1.0);
        self.names
            .visible()
            .filter(|index| self.is_by_tuples(*index))
            .any(|index| domains::binds(index, body, when) && !domains::binds(index, &nothing, guards))
    }

    /// Whether an index takes its values from tuples.
    fn is_by_tuples(&self, index: IndexId) -> bool {
        let entry = self.program.indices.get(index.0 as usize);
        entry.is_some_and(|entry| matches!(entry.range, Range::Tuples))
    }

    /// Guards; their own indices get names that nothing else has.
    pub(super) fn when(&mut self, when: &When) -> Vec<String> {
        let depth = self.names.depth();
        let inside = used(None, when);
        for index in &when.exists {
            self.names.bind(*index, &inside, Sharing::Own);
        }
        let mut texts: Vec<String> = when.guards.iter().map(|guard| self.guard(guard)).collect();
        texts.extend(self.slices(&when.exists, when, &Expr::Number(1.0)));
        self.names.leave(depth);
        texts
    }

    pub(super) fn guard(&mut self, guard: &Guard) -> String {
        match guard {
            Guard::Read(read) => self.read(read),
            Guard::Not(read) => format!("not {}", self.read(read)),
            Guard::CompareIndex(comparison, a, b) => {
                let (a, b) = (self.index_side(a), self.index_side(b));
                format!("{a} {comparison} {b}")
            }
            Guard::Compare(comparison, a, b) => {
                let index = |side: &Expr| matches!(side, Expr::Index(_) | Expr::Number(_));
                let both = index(a) && index(b);
                let (a, b) = (self.side(a, both), self.side(b, both));
                format!("{a} {comparison} {b}")
            }
            Guard::Bind(index, function) => {
                let value = index::function(self.program, &self.names, function, Spacing::Loose).text;
                format!("{} = {value}", self.names.of(*index))
            }
        }
    }

    fn index_side(&self, side: &IndexFn) -> String {
        index::function(self.program, &self.names, side, Spacing::Loose).text
    }

    /// A side of a comparison of values. Where both look like index expressions, a point keeps
    /// a number a value; and in one that has operations, of which `/` is another one there.
    fn side(&mut self, side: &Expr, both: bool) -> String {
        match side {
            Expr::Index(function) => self.index_side(function),
            Expr::Number(value) if both && value.fract() == 0.0 => {
                let text = piece::value(*value).text;
                if text.contains(['e', '/']) { text } else { format!("{text}.0") }
            }
            _ => {
                let stands = Stands { split: true, zero: false, neutral: None };
                let text = self.value(side, stands).text;
                if is_like_index(side) && divides(side) { format!("{text} + 0.0") } else { text }
            }
        }
    }
}

/// Whether a value would be read as an index expression.
fn is_like_index(side: &Expr) -> bool {
    match side {
        Expr::Index(_) => true,
        Expr::Number(value) => value.fract() == 0.0,
        Expr::Product(parts) | Expr::Plus(parts) | Expr::Terms(parts) => parts.iter().all(is_like_index),
        Expr::Quotient(a, b) => is_like_index(a) && is_like_index(b),
        Expr::Negate(part) => is_like_index(part),
        _ => false,
    }
}

fn divides(side: &Expr) -> bool {
    matches!(side, Expr::Quotient(..)) || side.parts().0.into_iter().any(divides)
}
