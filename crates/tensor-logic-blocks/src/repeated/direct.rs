//! Evaluations of which nothing changes but parameters and one stretch, as steps of learning are.
//!
//! Enter at [`Session::done_directly`]. To ask every component whether it is up to date, and what it counts, takes as long as
//! a small stretch, and of a hundred batches that take turns none of that is in a cache. So where everything else hangs on
//! nothing that changed, the next evaluation of the same goals takes the parameters and does the stretch.

use std::sync::Arc;

use super::stretch::Stretches;
use crate::engine::Request;
use crate::error::Result;
use crate::program::{Role, TensorId};
use crate::store::machine::Stored;
use crate::{Data, Needs, Session};

/// What the next evaluation of some goals takes.
pub(crate) struct Direct {
    needs: Arc<Needs>,
    /// The components of parameters.
    parameters: Vec<usize>,
    /// The tuples and the bytes of all that is neither a parameter nor made by the stretch.
    counted: (u64, u64),
}

impl Session {
    /// What the next evaluation takes, if all that was evaluated now are parameters beside the only stretch.
    pub(crate) fn direct(
        &self,
        stretches: &Stretches,
        evaluated: &[usize],
        needs: &Arc<Needs>,
    ) -> Option<Direct> {
        let [stretch] = stretches.all.as_slice() else { return None };
        let machine = &self.machine;
        let watched = self.watches.values().any(|watch| needs.tensors.contains(watch));
        if watched || machine.notes.is_some() || !needs.last.is_empty() {
            return None;
        }
        let mut changes = vec![false; machine.program.tensors.len()];
        for id in stretch.components.iter().flat_map(|at| &self.components[*at].tensors) {
            changes[id.0 as usize] = true;
        }
        let (mut tuples, mut bytes) = (machine.tuples, machine.bytes);
        let mut parameters = Vec::new();
        for at in &needs.components {
            let component = &self.components[*at];
            if stretches.position(*at).is_some() {
                continue;
            }
            let parameter = |id: &TensorId| machine.program.tensor(*id).role == Role::Parameter;
            if let ([id], []) = (component.tensors.as_slice(), component.equations.as_slice())
                && parameter(id)
            {
                let Some(Stored::Dense(array)) = machine.stored(*id) else { return None };
                bytes = bytes.checked_sub(8 * array.len() as u64)?;
                parameters.push(*at);
                changes[id.0 as usize] = true;
            } else if evaluated.contains(at)
                || component.tensors.iter().any(parameter)
                || self.sources[*at].iter().any(|id| changes[id.0 as usize])
            {
                return None;
            }
        }
        let doubtful = |id: &TensorId| machine.is_doubtful_count(*id) || machine.may_cancel(*id);
        if needs.tensors.iter().any(doubtful) {
            return None;
        }
        tuples = tuples.checked_sub(stretch.counted.0)?;
        bytes = bytes.checked_sub(stretch.counted.1)?;
        Some(Direct { needs: Arc::clone(needs), parameters, counted: (tuples, bytes) })
    }

    /// Evaluates the goals so, if that can be. `false`: nobody knows more than before.
    pub(crate) fn done_directly(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        given: &mut Data,
    ) -> Result<bool> {
        let Some(direct) = self.direct.take().filter(|direct| direct.needs.goals == goals) else {
            return Ok(false);
        };
        if self.machine.notes.is_some() {
            return Ok(false);
        }
        (self.machine.tuples, self.machine.bytes) = direct.counted;
        let components = Arc::clone(&self.components);
        for at in &direct.parameters {
            self.up_to_date((*at, &components[*at]), request, &direct.needs, given)?;
        }
        let Some(stretch) = self.stretches.only(goals) else { return Ok(false) };
        if !self.machine.done_again(stretch)? {
            return Ok(false);
        }
        self.direct = Some(direct);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::engine::{Budget, Engine, Parameters, Request};
    use crate::function::UserFunctions;
    use crate::program::TensorId;
    use crate::{Fast, Precision};
    use seeded::Family;
    use tensor_logic_core::analyse::analyse;
    use tensor_logic_core::lower::{NoFiles, Options};

    /// Whatever is asked for between two steps, and however the parameters come: each answer is that of an engine that has seen
    /// nothing before.
    #[test]
    fn whatever_comes_between_two_steps() {
        let text = "i, j : 2
E(0, 1); E(1, 0); E(1, 1)
F(x) <- E(x, y)
W[i, j] ~ 1
V[i] ~ 1
C[i] = exp(i / 2)
A[i] = W[i, j] W[j, i] C[j]
M[i] avg= E(i, j) tanh(A[j] + W[i, j])
H(x, d) += E(x, y) F(y) W[y, d]
S[d] = H(x, d) M[x] V[d]
Loss = (S[d] - 1)^2
Max max= S[d]
";
        let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        let program = analysed.unwrap().program;
        let named = |name: &str| {
            TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
        };
        let goals = [vec!["Loss", "S"], vec!["Loss"], vec!["H", "Loss"], vec!["Max"]];
        let goals = goals.map(|names| names.into_iter().map(named).collect::<Vec<_>>());
        for (nth, (precision, near)) in
            [(Precision::Double, 1e-12), (Precision::Single, 1e-4)].into_iter().enumerate()
        {
            let mut stream = Family::named("tensor logic: steps").stream(nth as u64);
            let fresh = || Fast::default().with_precision(precision);
            let (mut directly, mut engine) = (0, fresh());
            let mut parameters = Parameters::new();
            let mut budget = Budget { tuples: 1 << 20, bytes: 1 << 28 };
            let mut asked = 0;
            for round in 0..600 {
                match stream.below(40) {
                    0 => asked = stream.below(4) as usize,
                    1 => budget.bytes += 8,
                    2 => engine.forget_results(),
                    3 => engine.observe(stream.below(2) == 0),
                    4 => engine.forget_programs(),
                    _ => {}
                }
                for (name, len) in [("W", 4), ("V", 2)] {
                    let id = named(name);
                    let wild = [1e200, f64::INFINITY, 1.5][stream.below(3) as usize];
                    let values = (0..len).map(|_| stream.below(64) as f64 / 16.0 - 2.0).collect();
                    match stream.below(30) {
                        // As it was, or not given: then the start.
                        0..5 => {}
                        5 => drop(parameters.remove(&id)),
                        6 => drop(parameters.insert(id, Arc::new(vec![wild; len]))),
                        // In place, as a learner does.
                        7..18 => {
                            engine.release(id);
                            let known = parameters.entry(id).or_default();
                            *Arc::make_mut(known) = values;
                        }
                        _ => drop(parameters.insert(id, Arc::new(values))),
                    }
                }
                let request = Request { program: &program, parameters: &parameters, budget };
                let mut fresh = fresh();
                let (found, wanted) =
                    (engine.values(&request, &goals[asked]), fresh.values(&request, &goals[asked]));
                let (found, wanted) = (found.unwrap(), wanted.unwrap());
                assert_eq!(engine.derived(), fresh.derived(), "{round}");
                for (found, wanted) in found.iter().zip(&wanted) {
                    let close = |(a, b): (&f64, &f64)| {
                        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= near * b.abs().max(1.0)
                    };
                    let (found, wanted) = (found.doubles(), wanted.doubles());
                    assert!(
                        found.len() == wanted.len() && found.iter().zip(wanted.iter()).all(close),
                        "{round}: {found:?}, not {wanted:?}"
                    );
                }
                directly += u32::from(engine.sessions[0].session.direct.is_some());
            }
            assert!(directly > 100, "{directly} evaluations leave a next one that is done directly");
        }
    }
}
