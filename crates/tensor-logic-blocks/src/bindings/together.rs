//! Several tables joined at a time, by the planner of rules: in the order that it finds, no intermediate kept, and within the
//! fractional cover where they form a cycle.

use std::sync::Arc;

use datarel::rule::{Function, Test};
use datarel::{Atom, Constants, Database, Failure, Limits, Literal, Ring, Rule, Term, evaluate};

use crate::ast::Comparison;
use crate::error::Result;
use crate::linear::{linear, solve};
use crate::presence::extent;
use crate::program::{IndexFn, IndexId};
use crate::store::condition::{Condition, comparison, distinct, holds_const};
use crate::store::machine::{Context, Machine, indices_of};
use crate::store::rows::{Rows, Tag};
use crate::value::{Const, Domain};

/// The values of indices by their ordinals: of those that an argument gives, and of those that have one value.
#[derive(Clone)]
struct Values {
    given: Vec<(IndexId, Domain)>,
    fixed: Vec<(IndexId, Domain, usize)>,
}

impl Values {
    fn ordinal(&self, ordinals: &[Const], index: IndexId) -> Option<usize> {
        match self.given.iter().position(|(other, _)| *other == index) {
            Some(at) => usize::try_from(ordinals.get(at)?.int()?).ok(),
            None => self.fixed.iter().find(|(other, ..)| *other == index).map(|(_, _, ordinal)| *ordinal),
        }
    }

    fn value(&self, ordinals: &[Const], index: IndexId) -> Option<Const> {
        let own = |(other, domain): &(IndexId, Domain)| (*other == index).then(|| domain.clone());
        let fixed = |(other, domain, _): &(IndexId, Domain, usize)| (*other == index).then(|| domain.clone());
        let domain = self.given.iter().find_map(own).or_else(|| self.fixed.iter().find_map(fixed))?;
        domain.value(self.ordinal(ordinals, index)?)
    }

    fn function(&self, ordinals: &[Const], function: &IndexFn) -> Option<Const> {
        function.evaluate(&|index| self.value(ordinals, index), &|index| self.ordinal(ordinals, index))
    }
}

impl Machine {
    /// The distinct bindings of `head` that these tables admit, as far as conditions on their indices alone let them:
    /// these conditions need not be asked again. `None` where there are more than `most`, or no plan.
    ///
    /// # Errors
    /// The evaluation was interrupted.
    pub(crate) fn together(
        &mut self,
        tables: &[&Rows],
        conditions: &[Condition<'_>],
        context: &Context,
        head: &[IndexId],
        most: usize,
    ) -> Result<Option<Rows>> {
        let indices = distinct(tables.iter().flat_map(|table| table.indices.iter().copied()).collect());
        let largest = indices.iter().map(|index| self.size(*index)).max().unwrap_or(0);
        let mut database = Database::new(Constants::integers(0, i64::try_from(largest).unwrap_or(i64::MAX)));
        let variable = |index: IndexId| {
            let at = indices.iter().position(|other| *other == index)?;
            Some(Term::variable(u32::try_from(at).ok()?))
        };
        let variables = |of: &[IndexId]| of.iter().map(|index| variable(*index)).collect::<Option<Vec<_>>>();
        let mut body = Vec::new();
        for table in tables.iter().filter(|table| !table.indices.is_empty()) {
            let relation = database.declare("", table.indices.len(), Ring::BOOLEAN);
            let row = |row: usize| table.columns.iter().map(move |column| column[row]);
            let rows: Vec<u32> = (0..table.len).flat_map(row).collect();
            let Some(terms) = variables(&table.indices) else { return Ok(None) };
            if table.len > 0 && database.insert(relation, &rows, &[]).is_err() {
                return Ok(None);
            }
            body.push(Literal::Atom(Atom::new(relation, terms)));
        }
        let given = database.tuples();
        for condition in conditions {
            if let Some((sign, a, b)) = comparison(*condition) {
                self.compared_in(&indices, context, (sign, &a, &b), &mut body);
            }
        }
        let Some(terms) = variables(head) else { return Ok(None) };
        let result = database.declare("", head.len(), Ring::BOOLEAN);
        let limits = Limits {
            tuples: given.saturating_add(most as u64),
            bytes: self.budget.bytes,
            stop: self.stop.flag(),
            ..Limits::default()
        };
        // A table without columns and rows is in no atom.
        if tables.iter().all(|table| table.len > 0) {
            match evaluate(&mut database, &[Rule::new(result, terms, body)], &limits) {
                Ok(_) => {}
                Err(Failure::Interrupted) => self.stop.check(self.head)?,
                Err(_) => return Ok(None),
            }
        }
        let (len, flat) = (database.relation(result).len(), database.relation(result).rows());
        let column = |at: usize| flat.iter().skip(at).step_by(head.len().max(1)).copied().collect();
        let columns = (0..head.len()).map(|at| Arc::new(column(at))).collect();
        let id = self.number();
        let mut joined = Rows { id, len, indices: head.to_vec(), columns, tags: Vec::new() };
        // Which tuple each binding met.
        for table in tables {
            if !table.tags.is_empty() && table.indices.iter().all(|index| head.contains(index)) {
                let index = table.by(&table.indices);
                let met = joined.find_in(&index, &table.indices).into_iter();
                let met: Vec<u32> = met.filter_map(|group| index.rows(group).first().copied()).collect();
                let tag = |tag: &Tag| {
                    let met = Arc::new(met.iter().map(|row| tag.met[*row as usize]).collect());
                    Tag { met, ..tag.clone() }
                };
                joined.tags.extend(table.tags.iter().map(tag));
            }
        }
        Ok(Some(joined))
    }

    /// A comparison of indices as literals: what an equation says of each index given the others, so that the join
    /// follows it, and the comparison itself.
    fn compared_in(
        &self,
        indices: &[IndexId],
        context: &Context,
        (sign, a, b): (Comparison, &IndexFn, &IndexFn),
        body: &mut Vec<Literal>,
    ) {
        let mentioned = distinct([indices_of(a), indices_of(b)].concat());
        let mut values = Values { given: Vec::new(), fixed: Vec::new() };
        for index in &mentioned {
            let Some(domain) = self.range(*index).cloned() else { return };
            match context.fixed(*index) {
                Some(ordinal) => values.fixed.push((*index, domain, ordinal as usize)),
                None if indices.contains(index) => values.given.push((*index, domain)),
                None => return,
            }
        }
        let term = |index: &IndexId| {
            let at = indices.iter().position(|other| other == index).unwrap_or(0);
            Term::variable(u32::try_from(at).unwrap_or(0))
        };
        // Symbols are equal or not, and no number says which.
        let given = values.given.iter().map(|(_, domain)| domain);
        let mut domains = given.chain(values.fixed.iter().map(|(_, domain, _)| domain));
        let numbers = domains.all(|domain| extent(domain).is_some());
        let difference = IndexFn::Subtract(Box::new(a.clone()), Box::new(b.clone()));
        if sign == Comparison::Equal
            && numbers
            && let Some((terms, constant)) = linear(&difference)
        {
            let has = |own: &IndexId| terms.iter().any(|(index, times)| index == own && *times != 0);
            for (own, domain) in values.given.iter().filter(|(own, _)| has(own)) {
                let others: Vec<(IndexId, Domain)> =
                    values.given.iter().filter(|(other, _)| other != own).cloned().collect();
                let arguments = others.iter().map(|(index, _)| term(index)).collect();
                let values = Values { given: others, ..values.clone() };
                let (terms, own, domain) = (terms.clone(), *own, domain.clone());
                let function: Function = Arc::new(move |ordinals: &[Const]| {
                    let value = |index| values.value(ordinals, index)?.int();
                    let found = solve(&terms, i128::from(constant), own, &value)?;
                    i64::try_from(domain.ordinal(Const::Int(found))?).ok().map(Const::Int)
                });
                body.push(Literal::Compute { result: term(&own), arguments, function });
            }
        }
        // `y == x / 2` says what y is.
        for (own, other) in [(a, b), (b, a)] {
            let IndexFn::Index(own) = own else { continue };
            let Some((_, domain)) = values.given.iter().find(|(given, _)| given == own) else { continue };
            if sign == Comparison::Equal && linear(&difference).is_none() && !indices_of(other).contains(own)
            {
                let (domain, other) = (domain.clone(), other.clone());
                let others = values.given.iter().filter(|(other, _)| other != own).cloned().collect();
                let values = Values { given: others, ..values.clone() };
                let arguments = values.given.iter().map(|(index, _)| term(index)).collect();
                let function: Function = Arc::new(move |ordinals: &[Const]| {
                    let value = values.function(ordinals, &other)?;
                    i64::try_from(domain.ordinal(value)?).ok().map(Const::Int)
                });
                body.push(Literal::Compute { result: term(own), arguments, function });
            }
        }
        let arguments = values.given.iter().map(|(index, _)| term(index)).collect();
        let (a, b) = (a.clone(), b.clone());
        let test: Test = Arc::new(move |ordinals: &[Const]| {
            holds_const(sign, values.function(ordinals, &a), values.function(ordinals, &b))
        });
        body.push(Literal::Test { arguments, test });
    }
}
