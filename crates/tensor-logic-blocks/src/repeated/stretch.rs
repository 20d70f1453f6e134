//! Components one behind the other whose operations are all recorded (`again`), done as one.
//!
//! Enter at [`Session::join`] and [`Machine::done_again`]. To look each tensor up, to see whether its record is right, to make
//! arrays that wait and to find the order in which they are done takes longer than to compute small ones, and comes to the same at
//! every step of learning. So once all of that was found, the operations of many components are kept in their order
//! (`kernels::Tape`). What they read from outside is looked up, what somebody outside reads is stored, and what is between
//! stands nowhere.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::error::Result;
use crate::kernels::{Array, Origin, Tape};
use crate::program::{Component, Kind, TensorId};
use crate::store::doubt::Doubt;
use crate::store::machine::{Machine, Stored};
use crate::store::plan::{self, Source, Stamps};
use crate::store::records::Input;
use crate::store::relation::Relation;
use crate::{Session, mine};

/// Components whose operations are done as one.
pub(crate) struct Stretch {
    /// Their positions, in order.
    pub(crate) components: Vec<usize>,
    tape: Tape,
    /// The arrays that it reads.
    given: Vec<Input>,
    /// The tensors outside that it reads, and how they were kept.
    reads: Vec<(TensorId, plan::Kept)>,
    /// What the descriptions depend on besides.
    asked: (u64, usize, Stamps),
    /// What others read or ask for, in the order of the results.
    results: Vec<(TensorId, Option<Relation>)>,
    /// What is doubted, behind them.
    suspects: Vec<(u64, Doubt)>,
    /// The tuples and the bytes of its tensors.
    pub(crate) counted: (u64, u64),
    /// The tuples of its relations.
    derived: Vec<(TensorId, u64)>,
    /// The stamps of what it read when it was done the last time.
    made: Stamps,
}

/// Fewer components are evaluated one by one.
const FEWEST: usize = 2;
/// After so many stretches that were of no use no further one is made.
const TRIES: u32 = 4;
/// So many goals have stretches of their own.
const GOALS: usize = 4;

/// The stretches of one list of goals.
#[derive(Default)]
pub(crate) struct Stretches {
    goals: Vec<TensorId>,
    pub(crate) all: Vec<Stretch>,
    /// By component the one that it belongs to.
    of: Vec<Option<usize>>,
    /// Those that could not be made, or did not hold.
    pub(crate) failed: u32,
    /// How often some were taken out for wider ones.
    widened: u32,
    /// Whether they serve at the moment.
    on: bool,
}

impl Stretches {
    /// The one that a component belongs to.
    pub(crate) fn position(&self, component: usize) -> Option<usize> {
        self.of.get(component).copied().flatten()
    }

    /// One more.
    pub(crate) fn push(&mut self, stretch: Stretch) {
        self.all.push(stretch);
        self.number();
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, at: usize) -> Stretch {
        let stretch = self.all.swap_remove(at);
        self.number();
        stretch
    }

    /// Takes these out, and says which components were done by them.
    pub(crate) fn dissolve(&mut self, those: &BTreeSet<usize>) -> Vec<usize> {
        self.widened += u32::from(!those.is_empty());
        those.iter().rev().flat_map(|at| self.remove(*at).components).collect()
    }

    /// Whether stretches may be taken out for wider ones.
    pub(crate) fn may_widen(&self) -> bool {
        self.widened < TRIES
    }

    fn number(&mut self) {
        let most = self.all.iter().filter_map(|stretch| stretch.components.last()).max();
        self.of = vec![None; most.map_or(0, |most| most + 1)];
        for (at, stretch) in self.all.iter().enumerate() {
            stretch.components.iter().for_each(|component| self.of[*component] = Some(at));
        }
    }

    /// Whether another one may be made.
    pub(crate) fn may_grow(&self) -> bool {
        self.on && self.failed < TRIES
    }
}

/// The stretches of several lists of goals, the last one used first.
#[derive(Default)]
pub(crate) struct Kept {
    known: Vec<Stretches>,
}

impl Kept {
    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// Those of these goals, taken out; none if they are not to serve.
    pub(crate) fn of(&mut self, goals: &[TensorId], on: bool) -> Stretches {
        if !on {
            self.clear();
        }
        let known = self.known.iter().position(|stretches| stretches.goals == goals);
        let found = known.map(|at| self.known.remove(at));
        Stretches {
            on,
            ..found.unwrap_or_else(|| Stretches { goals: goals.to_vec(), ..Stretches::default() })
        }
    }

    /// Puts them back.
    pub(crate) fn keep(&mut self, stretches: Stretches) {
        self.known.insert(0, stretches);
        self.known.truncate(GOALS);
    }

    /// The one of these goals that there is, if there are no others.
    pub(crate) fn only(&mut self, goals: &[TensorId]) -> Option<&mut Stretch> {
        let own = self.known.iter_mut().find(|stretches| stretches.goals == goals)?;
        match own.all.as_mut_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The tuples of relations that stand nowhere.
    pub(crate) fn lengths(&self, goals: &[TensorId]) -> Vec<(TensorId, u64)> {
        let own = self.known.iter().filter(|stretches| stretches.goals == goals);
        own.flat_map(|stretches| &stretches.all).flat_map(|stretch| &stretch.derived).copied().collect()
    }
}

/// Components whose operations are recorded, one behind the other.
#[derive(Default)]
struct Run<'a> {
    components: Vec<(usize, &'a Component)>,
    /// The stretches between which they stand.
    beside: BTreeSet<usize>,
}

impl Session {
    /// Joins components that were evaluated one behind the other to stretches, where their operations are recorded.
    pub(crate) fn join(
        &mut self,
        stretches: &mut Stretches,
        evaluated: &[usize],
        goals: &[TensorId],
        needed: &BTreeSet<TensorId>,
    ) {
        let components = Arc::clone(&self.components);
        let made = evaluated.iter().filter(|at| !components[**at].equations.is_empty()).count();
        if !stretches.may_grow() || made < FEWEST {
            return;
        }
        let mut runs = vec![Run::default()];
        for (at, component) in components.iter().enumerate() {
            let Some(run) = runs.last_mut() else { break };
            // It may read what comes before, which must be there by then.
            if let Some(within) = stretches.position(at) {
                run.beside.insert(within);
                if !run.components.is_empty() {
                    runs.push(Run { beside: [within].into(), ..Run::default() });
                }
                continue;
            }
            if evaluated.binary_search(&at).is_err() {
                continue;
            }
            // Whether counts are too large is asked of all of them.
            let counts = |id: &TensorId| self.machine.program.tensor(*id).kind == Kind::Count;
            if component.tensors.iter().all(|id| self.machine.is_recorded(*id) && !counts(id)) {
                run.components.push((at, component));
            } else if !component.equations.is_empty() {
                // What has no equations reads nothing of the others.
                runs.push(Run::default());
            }
        }
        // What stands beside a stretch is to be done with it: then what both compute is computed once. Both are evaluated one by
        // one before.
        let wider = stretches.may_widen();
        let joins = |run: &Run<'_>| wider && !run.components.is_empty() && !run.beside.is_empty();
        let (joined, alone): (Vec<_>, Vec<_>) = runs.into_iter().partition(joins);
        let dissolved: BTreeSet<usize> = joined.into_iter().flat_map(|run| run.beside).collect();
        for at in stretches.dissolve(&dissolved) {
            self.made[at] = None;
        }
        for Run { components: run, .. } in alone.into_iter().filter(|run| run.components.len() >= FEWEST) {
            let own = |at: usize| run.iter().any(|(other, _)| *other == at);
            let mut read: BTreeSet<TensorId> = goals.iter().copied().collect();
            for (at, component) in components.iter().enumerate() {
                if !own(at) && mine(component, needed) {
                    read.extend(&self.sources[at]);
                }
            }
            read.extend(self.watches.values());
            if let Some(stretch) = self.machine.stretch(&run, &|id| read.contains(&id)) {
                for (at, component) in &run {
                    self.made[*at] = None;
                    let inner = component.tensors.iter().filter(|id| !read.contains(id));
                    inner.for_each(|id| self.machine.forget(*id));
                }
                stretches.push(stretch);
            } else {
                stretches.failed += 1;
            }
        }
    }
}

/// What a record makes, to be computed.
pub(crate) struct Described {
    pub(crate) stored: Stored,
    pub(crate) suspects: Vec<(u64, Array, Doubt)>,
}

impl Machine {
    /// Whether the operations of a tensor are recorded.
    pub(crate) fn is_recorded(&self, id: TensorId) -> bool {
        self.slots.get(id.0 as usize).is_some_and(|slot| slot.record.is_some())
    }

    /// The operations of these components as one, if all of them are recorded; `wanted` are the tensors that somebody else
    /// reads.
    pub(crate) fn stretch(
        &mut self,
        components: &[(usize, &Component)],
        wanted: &impl Fn(TensorId) -> bool,
    ) -> Option<Stretch> {
        let own: BTreeSet<TensorId> = components.iter().flat_map(|(_, c)| &c.tensors).copied().collect();
        let slots: Vec<_> =
            own.iter().map(|id| (*id, self.tensors.get_mut(id.0 as usize).and_then(Option::take))).collect();
        let found = self.described_as_one(components, &own, wanted);
        for (id, slot) in slots {
            if let Some(place) = self.tensors.get_mut(id.0 as usize) {
                *place = slot;
            }
            self.note_address(id);
        }
        found
    }

    /// The same, while none of their tensors is stored.
    fn described_as_one(
        &mut self,
        components: &[(usize, &Component)],
        own: &BTreeSet<TensorId>,
        wanted: &impl Fn(TensorId) -> bool,
    ) -> Option<Stretch> {
        let mut reads: Vec<(TensorId, plan::Kept)> = Vec::new();
        let (mut things, mut fixed, mut doubts) = (Stamps::new(), Vec::new(), Vec::new());
        let (mut tuples, mut bytes, mut derived) = (0_u64, 0, Vec::new());
        for id in components.iter().flat_map(|(_, component)| &component.tensors) {
            let record = self.slots.get_mut(id.0 as usize)?.record.take();
            let described = record.as_ref().filter(|record| self.is_right(record)).and_then(|record| {
                bytes += record.bytes;
                reads.extend(record.reads.iter().filter(|(read, _)| !own.contains(read)));
                things.extend(record.asked.things.iter().filter(|(source, _)| match source {
                    Source::Tensor(id) | Source::Tuples(id) => !own.contains(id),
                    Source::Range(_) => true,
                }));
                let sources =
                    record.operations.iter().flat_map(|(_, sources)| sources).chain([&record.result.1]);
                fixed.extend(sources.filter_map(|source| match source {
                    Input::Given(array) => Some(array.clone()),
                    _ => None,
                }));
                self.described_again(record)
            });
            self.slots.get_mut(id.0 as usize)?.record = record;
            let Described { stored, suspects } = described?;
            doubts.extend(suspects);
            self.store(*id, stored);
            let count = self.tuples_of(*id);
            tuples = tuples.saturating_add(count);
            if let Some(Stored::Relation(relation)) = self.stored(*id) {
                derived.push((*id, relation.len as u64));
            }
        }
        reads.sort_unstable_by_key(|(id, _)| *id);
        reads.dedup();
        things.dedup();
        let outside = self.outside(&reads);
        fixed.iter().for_each(|array| drop(self.force(array)));
        let (mut results, mut arrays) = (Vec::new(), Vec::new());
        for id in own {
            let (relation, array) = match self.stored(*id)? {
                Stored::Dense(array) => (None, array.clone()),
                Stored::Relation(relation) => {
                    (Some(Relation { values: None, ..Relation::clone(relation) }), relation.array()?)
                }
            };
            if wanted(*id) {
                results.push((*id, relation));
                arrays.push(array);
            }
        }
        let (suspects, doubted): (Vec<_>, Vec<_>) =
            doubts.into_iter().map(|(scope, array, doubt)| ((scope, doubt), array)).unzip();
        arrays.extend(doubted);
        // The first of those that are one.
        let mut given: HashMap<usize, usize> = HashMap::new();
        for (at, (other, _)) in outside.iter().enumerate() {
            given.entry(other.address()).or_insert(at);
        }
        let held: HashSet<usize> = fixed.iter().map(Array::address).collect();
        let origin = |array: &Array| match given.get(&array.address()) {
            Some(at) => Some(Origin::Given(*at)),
            None => held.contains(&array.address()).then_some(Origin::Fixed),
        };
        let tape = Tape::of(&arrays.iter().collect::<Vec<_>>(), origin, (self.precision, &self.pool))?;
        Some(Stretch {
            components: components.iter().map(|(at, _)| *at).collect(),
            tape,
            given: outside.into_iter().map(|(_, input)| input).collect(),
            reads,
            asked: (self.ranged, self.exact.len(), things),
            results,
            suspects,
            counted: (tuples, bytes),
            derived,
            made: Stamps::new(),
        })
    }

    /// The arrays of tensors that are stored, computed.
    fn outside(&self, reads: &[(TensorId, plan::Kept)]) -> Vec<(Array, Input)> {
        let mut outside = Vec::new();
        for (id, _) in reads {
            match self.stored(*id) {
                Some(Stored::Dense(array)) => {
                    self.force(array);
                    outside.push((array.clone(), Input::Tensor(*id, array.len())));
                }
                Some(Stored::Relation(relation)) => {
                    if let Some(array) = relation.computed() {
                        self.force(&array);
                        outside.push((array, Input::Values(*id)));
                    }
                }
                None => {}
            }
        }
        outside
    }

    /// Does a stretch again, if anything that it reads has changed. `false`: its components must be evaluated one by one.
    pub(crate) fn done_again(&mut self, stretch: &mut Stretch) -> Result<bool> {
        let (ranged, exact, things) = &stretch.asked;
        let right = *ranged == self.ranged
            && *exact == self.exact.len()
            && stretch.reads.iter().all(|(id, kept)| self.is_kept(*id, *kept))
            && things.iter().all(|(source, stamp)| self.source_stamp(*source) == *stamp);
        if !right {
            return Ok(false);
        }
        let (tuples, bytes) = stretch.counted;
        self.tuples = self.tuples.saturating_add(tuples);
        if let Some((id, _)) = stretch.results.first() {
            self.within_tuples(*id, 0)?;
        }
        self.bytes += bytes;
        let made = self.stamps(stretch.reads.iter().map(|(id, _)| Source::Tensor(*id)));
        if stretch.made == made && stretch.results.iter().all(|(id, _)| self.stored(*id).is_some()) {
            return Ok(true);
        }
        let given = stretch.given.iter().map(|input| {
            let array = self.array_of(input, &[])?;
            let numbers = array.done().unwrap_or_else(|| self.force(&array));
            Some((array, Some(numbers)))
        });
        let Some(given) = given.collect::<Option<Vec<_>>>() else { return Ok(false) };
        let arrays = stretch.tape.run_on(given, self.precision, &self.pool);
        self.stop.check(self.head)?;
        let (results, doubted) = arrays.split_at(stretch.results.len().min(arrays.len()));
        for ((scope, doubt), array) in stretch.suspects.iter().zip(doubted) {
            self.suspect_array(*scope, array.clone(), *doubt);
        }
        if self.must_repeat() {
            return Ok(false);
        }
        for ((id, relation), array) in stretch.results.iter().zip(results) {
            let stored = match relation {
                Some(tuples) => Stored::Relation(Arc::new(tuples.valued(array.clone()))),
                None => Stored::Dense(array.clone()),
            };
            self.store(*id, stored);
        }
        stretch.made = made;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::Fast;
    use crate::engine::{Budget, Engine, Parameters, Request};
    use crate::function::UserFunctions;
    use crate::program::{Program, Range, TensorId};
    use crate::value::{Const, Domain};
    use tensor_logic_core::analyse::analyse;
    use tensor_logic_core::lower::{NoFiles, Options};
    use tensor_logic_rewrites::gradient::adjoint;

    fn analysed(text: &str) -> Program {
        let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        analysed.unwrap().program
    }

    fn named(program: &Program, name: &str) -> TensorId {
        TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
    }

    /// The values of the goals for some numbers of the parameters, and how many components are done as one.
    fn asked(
        engine: &mut Fast,
        program: &Program,
        goals: &[TensorId],
        numbers: &[f64],
    ) -> (Vec<Vec<u64>>, usize) {
        let mut values = Vec::new();
        for number in numbers {
            let values_of_w = (0..4).map(|at| number + f64::from(at)).collect();
            let parameters: Parameters = [(named(program, "W"), Arc::new(values_of_w))].into();
            let budget = Budget { tuples: 1 << 20, bytes: 1 << 28 };
            let request = Request { program, parameters: &parameters, budget };
            let found = engine.values(&request, goals).unwrap();
            values.extend(found.iter().map(|value| value.doubles().iter().map(|x| x.to_bits()).collect()));
        }
        let known = engine.sessions.iter().flat_map(|kept| &kept.session.stretches.known);
        (values, known.flat_map(|stretches| &stretches.all).map(|stretch| stretch.components.len()).sum())
    }

    #[test]
    fn what_is_recorded_is_done_as_one_until_numbers_are_none() {
        let text = "i, j : 2
E(0, 1); E(1, 0); E(1, 1)
W[i, j] ~ 1
A[i] = W[i, j] W[j, i]
M[i] avg= E(i, j) tanh(A[j] + W[i, j])
H(x, d) += E(x, y) W[y, d]
S[d] = H(x, d) M[x]
Loss = (S[d] - 1)^2
";
        let numbers = [0.5, -1.0, 2.0, 0.25, 1e200, 0.75, 1.5, f64::INFINITY, 0.125, -2.0, 3.0];
        let program = analysed(text);
        let goals = ["Loss", "S"].map(|name| named(&program, name));
        let mut engine = Fast::default();
        let (early, none) = asked(&mut engine, &program, &goals, &numbers[..1]);
        assert_eq!(none, 0);
        let mut engine = Fast::default();
        let (some, members) = asked(&mut engine, &program, &goals, &numbers[..4]);
        assert!(members >= 4, "{members} components are done as one");
        assert_eq!(some[..2], early[..]);
        // Another engine for each, and one for all of them.
        let mut engine = Fast::default();
        let (all, _) = asked(&mut engine, &program, &goals, &numbers);
        for (at, number) in numbers.iter().enumerate() {
            let (own, _) = asked(&mut Fast::default(), &program, &goals, &[*number]);
            for (found, wanted) in all[2 * at..2 * at + 2].iter().zip(&own) {
                let close = |(a, b): (&u64, &u64)| {
                    let (a, b) = (f64::from_bits(*a), f64::from_bits(*b));
                    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * b.abs()
                };
                assert!(found.iter().zip(wanted).all(close), "{at}: {number}");
            }
        }
    }

    /// Which tuples the gradient of `Y` has is computed, from what does not change.
    #[test]
    fn what_a_structure_admits_is_recorded() {
        let text = "d, e : 2
E(0, 0); E(0, 1); E(1, 0)
T(0) = 1; T(1) = -2
W[d, e] ~ 1
L[s, x, d] = E(s, x) W[d, e]
Y(s) avg= E(s, x) sig(L[s, x, d])
Loss = (Y(s) - T(s))^2
";
        let program = analysed(text);
        let goal = named(&program, "Loss");
        let mut adjoint = adjoint(&program, goal, &[named(&program, "W")]);
        // A batch of the first sample.
        for index in adjoint.program.indices.iter_mut().filter(|index| index.name == "s") {
            index.range = Range::Domain(Domain::listed([Const::Int(0)]));
        }
        let goals = [goal, adjoint.gradients[0].unwrap()];
        let numbers = [0.5, -1.0, 2.0, 0.25, 0.75, 1.5];
        let mut engine = Fast::default();
        let (all, members) = asked(&mut engine, &adjoint.program, &goals, &numbers);
        assert!(members >= 8, "of the components {members} are done as one");
        for (at, number) in numbers.iter().enumerate() {
            let (own, _) = asked(&mut Fast::default(), &adjoint.program, &goals, &[*number]);
            assert_eq!(all[2 * at..2 * at + 2], own, "{number}");
        }
    }

    /// A stretch that does not hold is evaluated one by one; others that are joined then must not run across it.
    #[test]
    fn what_no_stretch_does_any_more_is_done_in_its_place() {
        let text = "d, e : 2
E(0, 0, 1, 0); E(0, 1, 0, 1); E(0, 1, 1, 0); E(1, 0, 1, 0); E(1, 1, 0, 1)
N(s, x) <- E(s, x, y, b)
T(0) = 1; T(1) = -2
W[d, e] ~ 1
L0[s, x, d] = N(s, x) tanh(W[x, d])
A1[s, x, e] = W[e, d] L0[s, x, d]
L1[s, x, e] avg= E(s, x, y, b) tanh(A1[s, x, e] + A1[s, y, e] + W[b, e])
A2[s, x, e] = W[e, d] L1[s, x, d]
L2[s, x, e] avg= E(s, x, y, b) tanh(A2[s, x, e] + A2[s, y, e] + W[b, e])
Y(s) avg= N(s, x) sig(W[0, d] L2[s, x, d])
Loss = (Y(s) - T(s))^2
";
        let program = analysed(text);
        let goal = named(&program, "Loss");
        let mut adjoint = adjoint(&program, goal, &[named(&program, "W")]);
        for index in adjoint.program.indices.iter_mut().filter(|index| index.name.starts_with('s')) {
            index.range = Range::Domain(Domain::listed([Const::Int(0)]));
        }
        let goals = [goal, adjoint.gradients[0].unwrap()];
        let numbers = [0.5, -1.0, 0.2, 0.25, -0.75, 0.1, 0.3];
        let mut engine = Fast::default();
        let (all, members) = asked(&mut engine, &adjoint.program, &goals, &numbers);
        assert!(members >= 15, "of the components {members} are done as one");
        // What was recorded later than what stands beside it is done with it.
        let lists = engine.sessions.iter().flat_map(|kept| &kept.session.stretches.known);
        let stretches: Vec<usize> = lists.map(|stretches| stretches.all.len()).collect();
        assert_eq!(stretches, [1]);
        for (at, number) in numbers.iter().enumerate() {
            let (own, _) = asked(&mut Fast::default(), &adjoint.program, &goals, &[*number]);
            for (found, wanted) in all[2 * at..2 * at + 2].iter().zip(&own) {
                let close = |(a, b): (&u64, &u64)| {
                    let (a, b) = (f64::from_bits(*a), f64::from_bits(*b));
                    (a - b).abs() <= 1e-12 * b.abs().max(1.0)
                };
                assert!(found.iter().zip(wanted).all(close), "{at}: {number}");
            }
        }
    }
}
