//! Which tuples of a recursion hang on which, and the levels that follow.
//!
//! Enter at [`Recursion::arcs`] and [`levels`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Known, Recursion, index_of, sparse};
use crate::present;
use crate::program::{
    Argument, Combine, Equation, Expr, Guard, IndexFn, Kind, Otherwise, Place, Read, Tensor, TensorId, Term,
    When,
};
use crate::rename::Renaming;
use crate::rewritten::tuple_blocks::numbers::{Numbering, Numbers, fresh};
use crate::rewritten::tuple_blocks::{Split, add_component, tensor_of};
use crate::store::relation::Relation;
use crate::value::Const;
use crate::walk::when_indices;

/// The numbers of tuples of one tensor, and behind each those of another that it asks for.
pub(super) type Arcs = (TensorId, TensorId, Arc<Relation>);

impl Recursion<'_> {
    /// Which tuples may hang on which: of each tensor by their numbers, those that are asked for behind those that ask.
    pub(super) fn arcs(
        &mut self,
        terms: &[Known],
        splits: &BTreeMap<TensorId, Split>,
        numbering: &mut Numbering<'_>,
    ) -> Option<Vec<Arcs>> {
        let mut reads = Vec::new();
        for Known { equation, term, .. } in terms {
            let mut found = Vec::new();
            self.asked_in(&term.body, &term.when, Vec::new(), &mut found)?;
            for (guards, read) in found {
                let guards = self.guards(splits, &guards)?;
                reads.push((equation, numbering.tuples.guards(self.program, &guards), read));
            }
        }
        // Nobody needs them behind this.
        let mut scratch = self.program.clone();
        let mut asked = Vec::new();
        for (equation, mut guards, read) in reads {
            let (asks, of) = (splits.get(&equation.tensor)?, splits.get(&read.tensor)?);
            let (from, to) = (asks.numbers.as_ref()?, of.numbers.as_ref()?);
            let numbers = [from, to].map(|numbers| index_of(&mut scratch, fresh(numbers, read.span)));
            let tuple = sparse(&asks.dense, equation.head.iter()).cloned().map(Argument::At);
            guards.push(Guard::Read(from.row(tuple, numbers[0], &read)));
            guards.push(Guard::Read(of.numbered(to, &read, numbers[1]).1));
            let head = numbers.map(IndexFn::Index).to_vec();
            let mut over = Vec::new();
            let when = When::from(guards);
            when_indices(&when, &mut |index| {
                if !numbers.contains(&index) && !over.contains(&index) {
                    over.push(index);
                }
            });
            let place =
                |numbers: &Numbers| Place { domain: Some(numbers.domain.clone()), limit: None, star: false };
            let tensor = Tensor {
                kind: Kind::Bool,
                combine: Combine::Exists,
                places: vec![place(from), place(to)],
                name: "arcs".to_owned(),
                ..self.program.tensor(equation.tensor).clone()
            };
            let made = tensor_of(&mut scratch, tensor);
            let term = Term { over, when, body: Expr::Number(1.0) };
            let arc = Equation {
                tensor: made,
                head,
                left: numbers.to_vec(),
                terms: vec![term],
                node: Default::default(),
                ..equation.clone()
            };
            let arc = Renaming::new(&mut scratch).equation(&arc);
            add_component(&mut scratch, equation.tensor, made, vec![arc]);
            asked.push((equation.tensor, read.tensor, made));
        }
        let made: Vec<TensorId> = asked.iter().map(|(.., made)| *made).collect();
        let relations = numbering.relations(&mut scratch, &made)?;
        Some(asked.into_iter().zip(relations).map(|((from, to, _), arcs)| (from, to, arcs)).collect())
    }

    /// The reads of the own tensors in a scope, each with guards that hold wherever it is asked for.
    fn asked_in(
        &self,
        body: &Expr,
        when: &When,
        mut guards: Vec<Guard>,
        found: &mut Vec<(Vec<Guard>, Read)>,
    ) -> Option<()> {
        for guard in &when.guards {
            match guard {
                Guard::Read(read) if read.otherwise == Otherwise::Absent => guards.push(guard.clone()),
                Guard::CompareIndex(..) | Guard::Bind(..) => guards.push(guard.clone()),
                Guard::Read(_) | Guard::Not(_) | Guard::Compare(..) => {
                    // What decides by values of its own is not gone into.
                    let mut own = false;
                    When::from(vec![guard.clone()]).visit_reads(&mut |read, _| own |= self.is_own(read));
                    (!own).then_some(())?;
                }
            }
        }
        guards.extend(present::reads_of(body, &When::default()).into_iter().cloned().map(Guard::Read));
        // A tuple is asked for by the guard alone, too.
        for guard in &when.guards {
            if let Guard::Read(read) = guard
                && self.is_own(read)
            {
                found.push((guards.clone(), read.clone()));
            }
        }
        self.asked_by(body, &guards, found)
    }

    fn asked_by(&self, expr: &Expr, guards: &[Guard], found: &mut Vec<(Vec<Guard>, Read)>) -> Option<()> {
        match expr {
            Expr::Read(read) if self.is_own(read) => {
                (read.otherwise == Otherwise::Absent).then_some(())?;
                let mut all = guards.to_vec();
                all.push(Guard::Read(read.clone()));
                found.push((all, read.clone()));
                Some(())
            }
            Expr::Reduce(reduce) => self.asked_in(&reduce.body, &reduce.when, guards.to_vec(), found),
            Expr::Missing(read) => (!self.is_own(read)).then_some(()),
            Expr::Axis(_) => {
                // Along an axis indices stand for others.
                let mut own = false;
                expr.visit_reads(&mut |read, _| own |= self.is_own(read));
                (!own).then_some(())
            }
            Expr::Call(call) => {
                let own = When { guards: call.when.guards.clone(), ..When::default() };
                let inside = self.asked_in(&Expr::Number(1.0), &own, guards.to_vec(), found);
                inside?;
                call.arguments.iter().try_for_each(|argument| self.asked_by(argument, guards, found))
            }
            _ => expr.parts().0.into_iter().try_for_each(|part| self.asked_by(part, guards, found)),
        }
    }
}

/// The level of each tuple; `None` where some hang on themselves.
pub(super) fn levels(
    own: &[TensorId],
    rows: &BTreeMap<TensorId, Arc<Relation>>,
    arcs: Vec<Arcs>,
) -> Option<BTreeMap<TensorId, Vec<u32>>> {
    let mut first = BTreeMap::new();
    let mut total = 0_usize;
    for id in own {
        first.insert(*id, total);
        total += rows.get(id)?.len;
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (from, to, arcs) in &arcs {
        let [a, b] = arcs.dictionaries.as_slice() else { return None };
        let [left, right] = arcs.columns.as_slice() else { return None };
        for (left, right) in left.iter().zip(right.iter()) {
            let number = |value: Option<&Const>| usize::try_from(value?.int()?).ok();
            let asks = first.get(from)? + number(a.get(*left as usize))?;
            pairs.push((first.get(to)? + number(b.get(*right as usize))?, asks));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut waits = vec![0_u32; total];
    let mut start = vec![0_usize; total + 1];
    for (of, asks) in &pairs {
        waits[*asks] += 1;
        start[*of + 1] += 1;
    }
    (0..total).for_each(|at| start[at + 1] += start[at]);
    let asks: Vec<usize> = pairs.iter().map(|(_, asks)| *asks).collect();
    let mut level = vec![0_u32; total];
    let mut open: Vec<usize> = (0..total).filter(|at| waits[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = open.pop() {
        done += 1;
        for next in &asks[start[at]..start[at + 1]] {
            level[*next] = level[*next].max(level[at] + 1);
            waits[*next] -= 1;
            if waits[*next] == 0 {
                open.push(*next);
            }
        }
    }
    if done < total {
        return None;
    }
    let of = |id: &TensorId| {
        let from = *first.get(id)?;
        Some((*id, level.get(from..from + rows.get(id)?.len)?.to_vec()))
    };
    own.iter().map(of).collect()
}
