//! The program over colours: its domains are those constants that stand for others, and its relations count.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::colours::Colours;
use super::places::{Joins, Places, Scope};
use super::{Counts, at, each, elements, relation, settle};
use crate::ast::Span;
use crate::program::{
    Expr, Facts, Given, Guard, Index, IndexId, Place, Program, Range, Read, Role, Style, Tensor, TensorId,
    When,
};
use crate::value::{Const, Domain, Tuple};

/// The lifted program.
pub(super) fn of(
    program: Program,
    places: &Places,
    scopes: &[Scope],
    counts: &[Counts],
    colours: &Colours,
) -> Program {
    let mut lifting = Lifting { program, places, colours, scopes: scopes.iter().zip(counts) };
    lifting.narrow();
    let mut equations = std::mem::take(&mut lifting.program.equations);
    for equation in &mut equations {
        for term in &mut equation.terms {
            lifting.scope(&mut term.over, &mut term.when, &mut term.body);
        }
    }
    let mut program = lifting.program;
    program.equations = equations;
    settle(&mut program);
    program
}

struct Lifting<'a> {
    program: Program,
    places: &'a Places,
    colours: &'a Colours,
    /// The scopes that are still to come.
    scopes: std::iter::Zip<std::slice::Iter<'a, Scope>, std::slice::Iter<'a, Counts>>,
}

impl Lifting<'_> {
    /// Domains, ranges and data of those constants that stand for others.
    fn narrow(&mut self) {
        let mut tensors = std::mem::take(&mut self.program.tensors);
        for (id, tensor) in (0..).map(TensorId).zip(&mut tensors) {
            let classes: Vec<_> = (0..tensor.places.len()).map(|at| self.places.of_place(id, at)).collect();
            if classes.iter().all(Option::is_none) {
                continue;
            }
            let before = tensor.clone();
            for (place, class) in tensor.places.iter_mut().zip(&classes) {
                let Some(class) = class else { continue };
                let domain = self.colours.domain(*class);
                place.limit = place.limit.is_some().then(|| domain.clone());
                place.domain = place.domain.is_some().then_some(domain);
            }
            if tensor.role == Role::Data {
                let stands = |tuple: &[Const]| {
                    let same = |(class, constant): (&Option<usize>, &Const)| {
                        class.is_none_or(|class| self.colours.representative(class, *constant) == *constant)
                    };
                    classes.iter().zip(tuple).all(same)
                };
                tensor.given = vec![narrowed(&before, tensor, stands)];
            }
        }
        self.program.tensors = tensors;
        for (id, index) in (0..).map(IndexId).zip(&mut self.program.indices) {
            if let (Range::Domain(_), Some(class)) = (&index.range, self.places.of_index(id)) {
                index.range = Range::Domain(self.colours.domain(class));
            }
        }
    }

    /// A scope, and those inside it, in the order of [`Places::scopes`].
    fn scope(&mut self, over: &mut Vec<IndexId>, when: &mut When, body: &mut Expr) {
        if let Some((scope, counts)) = self.scopes.next() {
            if scope.is_related() {
                when.guards
                    .retain(|guard| !matches!(guard, Guard::Read(read) if is_among(read, &scope.guards)));
                strip(body, &scope.factors);
                let found = self.counted(scope, counts);
                self.join(scope.joins, found, &scope.indices, over, when, body);
            }
            for index in &scope.alone {
                let Some(class) = self.places.of_index(*index) else { continue };
                let members = self.colours.members(class);
                let counts =
                    members.into_iter().map(|(constant, count)| (vec![constant], count as f64)).collect();
                let places =
                    vec![Place { domain: Some(self.colours.domain(class)), limit: None, star: false }];
                self.join(scope.joins, (places, counts), &[*index], over, when, body);
            }
        }
        for guard in &mut when.guards {
            if let Guard::Compare(_, a, b) = guard {
                self.inside(a);
                self.inside(b);
            }
        }
        self.inside(body);
    }

    fn inside(&mut self, expr: &mut Expr) {
        if let Expr::Reduce(reduce) = expr {
            return self.scope(&mut reduce.over, &mut reduce.when, &mut reduce.body);
        }
        let (parts, when) = expr.parts_mut();
        parts.into_iter().for_each(|part| self.inside(part));
        for guard in when.into_iter().flat_map(|when| &mut when.guards) {
            if let Guard::Compare(_, a, b) = guard {
                self.inside(a);
                self.inside(b);
            }
        }
    }

    /// What a scope counts for the constants that stand for others, and the places of that.
    fn counted(&self, scope: &Scope, counts: &Counts) -> (Vec<Place>, Counts) {
        let classes: Vec<_> = scope.indices.iter().map(|index| self.places.of_index(*index)).collect();
        let mut sums = Counts::new();
        for (tuple, count) in counts {
            let mut stands = true;
            let mut row = Tuple::new();
            for ((index, class), constant) in scope.indices.iter().zip(&classes).zip(tuple) {
                let first = class.map_or(*constant, |class| self.colours.representative(class, *constant));
                stands &= Some(*index) != scope.outside || first == *constant;
                row.push(first);
            }
            if stands {
                *sums.entry(row).or_default() += count;
            }
        }
        // The places of the relations have been narrowed.
        let places = scope.indices.iter().map(|index| scope.place(&self.program, *index)).collect();
        (places, sums)
    }

    /// Gives a scope a relation that counts.
    fn join(
        &mut self,
        joins: Joins,
        (mut places, counts): (Vec<Place>, Counts),
        indices: &[IndexId],
        over: &mut Vec<IndexId>,
        when: &mut When,
        body: &mut Expr,
    ) {
        let mut indices = indices.to_vec();
        let mut rows = counts;
        if joins == Joins::Asks {
            rows.values_mut().for_each(|count| *count = 1.0);
        } else if joins == Joins::Repeats {
            let most = rows.values().fold(0.0_f64, |most, count| most.max(*count));
            places.push(Place { domain: Some(Domain::size(most as usize)), limit: None, star: false });
            let copies = |(row, count): (Tuple, f64)| {
                (0..count as i64)
                    .map(move |copy| (row.iter().copied().chain([Const::Int(copy)]).collect(), 1.0))
            };
            rows = rows.into_iter().flat_map(copies).collect();
            let copy = IndexId(u32::try_from(self.program.indices.len()).unwrap_or(u32::MAX));
            self.program.indices.push(Index {
                name: "copy".to_owned(),
                range: Range::Tuples,
                span: Span::default(),
            });
            over.push(copy);
            indices.push(copy);
        }
        let id = TensorId(u32::try_from(self.program.tensors.len()).unwrap_or(u32::MAX));
        let mut tensor = relation(format!("counts {}", id.0), places.into_iter());
        let mut facts = Facts { arity: tensor.places.len(), ..Facts::default() };
        rows.iter().for_each(|(row, count)| facts.push(row, *count, None));
        tensor.given = vec![Given::Facts(Arc::new(facts))];
        tensor.role = Role::Data;
        self.program.tensors.push(tensor);
        let read = at(id, &indices);
        match joins {
            Joins::Adds => {
                let rest = std::mem::replace(body, Expr::Number(1.0));
                *body = Expr::Product(vec![Expr::Read(read), rest]);
            }
            Joins::Asks | Joins::Repeats => when.guards.push(Guard::Read(read)),
        }
    }
}

fn is_among(read: &Read, others: &[Read]) -> bool {
    others.iter().any(|other| same(read, other))
}

/// Whether both read the same elements.
fn same(a: &Read, b: &Read) -> bool {
    let functions =
        |read: &Read| read.arguments.iter().map(|each| each.function().cloned()).collect::<Vec<_>>();
    a.tensor == b.tensor && a.otherwise == b.otherwise && functions(a) == functions(b)
}

/// Puts 1 in the place of these factors.
fn strip(body: &mut Expr, factors: &[Read]) {
    match body {
        Expr::Read(read) if is_among(read, factors) => *body = Expr::Number(1.0),
        Expr::Product(parts) => parts.iter_mut().for_each(|part| strip(part, factors)),
        Expr::Negate(part) | Expr::Quotient(part, _) => strip(part, factors),
        _ => {}
    }
}

/// The data of the constants that stand for others.
fn narrowed(before: &Tensor, after: &Tensor, stands: impl Fn(&[Const]) -> bool) -> Given {
    let mut kept: BTreeMap<Tuple, f64> = BTreeMap::new();
    each(before, |tuple, value| {
        if stands(tuple) {
            *kept.entry(tuple.to_vec()).or_default() += value;
        }
    });
    if after.style == Style::Square {
        let domains = after.domains();
        let values = elements(&domains).map(|element| kept.get(&element).copied().unwrap_or(0.0)).collect();
        let (fixed, shape) = (vec![None; domains.len()], after.sizes());
        return Given::Array { fixed, shape, values, span: after.span };
    }
    let mut facts = Facts { arity: after.places.len(), source: after.span, ..Facts::default() };
    kept.iter().for_each(|(tuple, value)| facts.push(tuple, *value, None));
    Given::Facts(Arc::new(facts))
}
