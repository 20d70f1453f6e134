//! Stepped components step by step: each element is computed once, from those of the steps before.
//!
//! Enter at [`Machine::by_steps`]. Rounds compute all steps anew in each of them, which is what an oracle may do and a query
//! of a chain of thousands may not. The numbers are those of the rounds, to the last bit.

use std::collections::BTreeSet;

use super::bind::{Scope, invert, round_reads};
use super::machine::{Cells, Machine};
use super::number::Number;
use super::store::Store;
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{
    Component, Equation, IndexFn, IndexId, Moving, Range, Steps, Style, TensorId,
};
use tensor_logic_core::value::{Const, Domain, Tuple};

/// What says the step of an element that an equation contributes to.
enum Head<'p> {
    /// A constant.
    Fixed(Const),
    /// A function of this index alone.
    Moves(IndexId, &'p IndexFn),
}

/// A tensor of the component, and what its elements are so far.
struct Walked<'p, N> {
    id: TensorId,
    moving: Moving,
    equations: Vec<(&'p Equation, Head<'p>)>,
    cells: Cells<N>,
}

impl<'p, N: Number> Machine<'p, N> {
    /// Evaluates a component; `false` where its steps are not single numbers that one index of each equation says, and
    /// nothing was done.
    pub(super) fn by_steps(&mut self, component: &Component, steps: &Steps) -> Result<bool> {
        let Some(mut walked) = self.walked(component, steps)? else { return Ok(false) };
        let up = walked.iter().all(|one| one.moving.up);
        for one in &walked {
            let tensor = self.program.tensor(one.id);
            self.set(one.id, Store::nothing(tensor, tensor.combine.default_value()));
        }
        let mut all: BTreeSet<i64> = BTreeSet::new();
        for one in &walked {
            let domain = self.program.tensor(one.id).places[one.moving.place].domain.iter();
            let values = domain.flat_map(Domain::values).filter_map(Const::int);
            all.extend(values.filter_map(|value| value.checked_add(one.moving.shift)));
        }
        let mut order: Vec<i64> = all.into_iter().collect();
        if !up {
            order.reverse();
        }
        self.forget();
        for step in order {
            for one in &mut walked {
                let Some(value) = step.checked_sub(one.moving.shift) else { continue };
                self.step(one, Const::Int(value))?;
            }
        }
        Ok(true)
    }

    /// The tensors of a component in the order of a step, if all of them move along one place with the steps.
    fn walked(&self, component: &Component, steps: &Steps) -> Result<Option<Vec<Walked<'p, N>>>> {
        let mut walked: Vec<Walked<'p, N>> = Vec::new();
        for (id, places) in &steps.places {
            let tensor = self.program.tensor(*id);
            let &[moving] = places.as_slice() else { return Ok(None) };
            let apart =
                |other: &Walked<'_, N>| (other.moving.up, other.moving.cycle) != (moving.up, moving.cycle);
            if tensor.style != Style::Square || walked.iter().any(apart) {
                return Ok(None);
            }
            let mut equations = Vec::new();
            for equation in component.equations.iter().map(|equation| self.program.equation(*equation)) {
                if equation.tensor != *id {
                    continue;
                }
                let Some(head) = self.head(equation, moving.place) else { return Ok(None) };
                equations.push((equation, head));
            }
            walked.push(Walked { id: *id, moving, equations, cells: self.given(*id, 0)? });
        }
        Ok((walked.len() == component.tensors.len()).then_some(walked))
    }

    fn head(&self, equation: &'p Equation, place: usize) -> Option<Head<'p>> {
        let function = equation.head.get(place)?;
        let mut indices = BTreeSet::new();
        function.visit(&mut |index| {
            indices.insert(index);
        });
        let mut indices = indices.into_iter();
        let Some(index) = indices.next() else {
            return function.evaluate(&|_| None, &|_| None).map(Head::Fixed);
        };
        let plain = match function {
            IndexFn::Index(_) => true,
            IndexFn::Add(a, b) | IndexFn::Subtract(a, b) => {
                [(a, b), (b, a)].iter().any(|(a, b)| a.alone().is_some() && matches!(***b, IndexFn::Const(_)))
            }
            _ => false,
        };
        let ranges = matches!(self.program.index(index).range, Range::Domain(_));
        let own = indices.next().is_none() && equation.left.contains(&index);
        (plain && ranges && own).then_some(Head::Moves(index, function))
    }

    /// The elements of a tensor whose moving place has this value.
    fn step(&mut self, walked: &mut Walked<'p, N>, value: Const) -> Result<()> {
        let tensor = self.program.tensor(walked.id);
        let domains = tensor.domains();
        let Some(at) = domains[walked.moving.place].ordinal(value) else { return Ok(()) };
        let Walked { id, moving, equations, cells } = walked;
        for (equation, head) in equations.iter() {
            let mut visit = |element: Tuple, value: N| {
                self.contribute(tensor, cells, element, value);
                Ok(())
            };
            match head {
                Head::Fixed(own) if *own == value => self.equation(equation, &mut visit)?,
                Head::Fixed(_) => {}
                Head::Moves(index, function) => {
                    let bound = invert(function, *index, value, &|part| self.index(part));
                    let inside = |value: &Const| match &self.program.index(*index).range {
                        Range::Domain(domain) => domain.contains(*value),
                        Range::Tuples | Range::Computed => true,
                    };
                    if let Some(bound) = bound.filter(inside) {
                        self.bind(*index, Some(bound));
                        let done = self.equation_at(equation, *index, &mut visit);
                        self.bind(*index, None);
                        done?;
                    }
                }
            }
        }
        // The elements of a slice lie in runs, one behind the other.
        let run: usize = domains[moving.place + 1..].iter().map(Domain::len).product();
        let apart = run * domains[moving.place].len();
        let runs: usize = domains[..moving.place].iter().map(Domain::len).product();
        let Cells::Dense(cells) = cells else { return Ok(()) };
        let default = N::new(tensor.combine.default_value());
        let places = (0..runs).flat_map(|nth| (0..run).map(move |inside| nth * apart + at * run + inside));
        for place in places {
            let cell = cells.get(place).copied().flatten();
            let found = cell.and_then(|cell| cell.finish(tensor.combine)).unwrap_or(default);
            self.put(*id, place, found);
        }
        self.forget_state();
        Ok(())
    }

    /// [`Machine::equation`] under a value of one index of its left side.
    fn equation_at(
        &self,
        equation: &'p Equation,
        bound: IndexId,
        visit: &mut dyn FnMut(Tuple, N) -> Result<()>,
    ) -> Result<()> {
        let nearby: Vec<_> =
            equation.terms.iter().flat_map(|term| round_reads(&term.when, Some(&term.body))).collect();
        for term in &equation.terms {
            let indices: Vec<_> =
                equation.left.iter().chain(&term.over).copied().filter(|index| *index != bound).collect();
            let scope =
                Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &nearby };
            self.term(equation, term, scope, visit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tensor_logic_core::analyse::analyse;
    use tensor_logic_core::engine::{Budget, Parameters, Request};
    use tensor_logic_core::function::UserFunctions;
    use tensor_logic_core::lower::{NoFiles, Options};
    use tensor_logic_core::program::{Class, TensorId};

    use crate::store::Store;
    use crate::wide::Wide;

    /// Upwards and downwards, by one step and by several, from constants and beside them, through other tensors of the same
    /// step, with guards and relations, joined by each aggregator; and some that are left to rounds.
    const PROGRAMS: [(&str, bool); 14] = [
        ("F[0, x] = A[x]\nF[t+1, y] = F[t, x] P[x, y]", true),
        ("F[5, x] = A[x]\nF[t, y] = F[t+1, x] P[x, y]", true),
        ("F[0, x] = A[x]\nF[1, x] = 2 A[x]\nF[t+2, y] = F[t, x] P[x, y] + F[t+1, y]", true),
        ("F[0, x] = A[x]\nG[t, x] = F[t, y] P[y, x]\nF[t+1, x] = G[t, x] + G[t, x]^2", true),
        ("F[x, 0] max= A[x]\nF[x, t+1] max= F[y, t] P[y, x]\nF[x, 3] max= 7", true),
        ("F[0, x] = A[x]\nF[t+1, x] = F[t, y] (P[y, x] | x != y)\nF[t+1, x] = 1e-200 F[t, x]", true),
        ("R(0, 1)\nR(1, 2)\nR(2, 0)\nF[0, x] = A[x]\nF[t+1, y] = F[t, x] R(x, y)", true),
        ("F[0] = 1e-250\nF[t+1] = F[t] F[t] + F[t]", true),
        ("F[0, x] = A[x]\nF[1+t, x] = 1e-300 softmax[x](F[t, x])", true),
        ("F[0, x] = A[x]\nG[t+1, x] = F[t, x] / 3\nF[t+1, x] = G[t+1, y] P[y, x]", true),
        ("F[0, x] min= A[x]\nF[t+1, y] min= F[t, x] P[x, y]", true),
        ("F[0, x] = A[x]\nF[t+1, y] = (F[t, x] P[x, y] | F[t, x] > 1)", true),
        ("F[0, x] = A[x]\nF[2*t+1, x] = F[t, x]\nF[2*t+2, x] = F[t, y] P[y, x]", false),
        ("F[0, 0] = 1\nF[t+1, u] = F[t, u]\nF[t, u+1] = 1e-90 F[t, u]", false),
    ];

    #[test]
    fn steps_are_what_rounds_come_to() {
        let mut taken = 0;
        for (text, steps) in PROGRAMS {
            let text = format!(
                "t, u : 6; x, y : 3\nA = [1e-250, 0.5, 0]\nP = [[0.1, 1e-100, 2], [0, 1e150, 1], [3, 1, 1e-300]]\n{text}\n"
            );
            let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
            let program = analysed.unwrap_or_else(|refused| panic!("{text}\n{refused:?}")).program;
            let goals: Vec<TensorId> = (0..program.tensors.len() as u32).map(TensorId).collect();
            let budget = Budget { tuples: 1 << 20, bytes: 1 << 20 };
            let request = Request { program: &program, parameters: &Parameters::new(), budget };
            let values = |stepwise| {
                let mut machine = crate::Machine::<Wide>::new(&request, None);
                machine.stepwise = stepwise;
                machine.evaluate(&goals).unwrap();
                let parts = |goal: &TensorId| match machine.store(*goal) {
                    Some(Store::Dense(_, values)) => {
                        let bits = |(mantissa, exponent): (f64, i64)| (mantissa.to_bits(), exponent);
                        values.iter().map(|value| bits(value.parts())).collect()
                    }
                    _ => Vec::new(),
                };
                goals.iter().map(parts).collect::<Vec<_>>()
            };
            assert_eq!(values(true), values(false), "{text}");
            let mut machine = crate::Machine::<Wide>::new(&request, None);
            machine.evaluate(&goals).unwrap();
            for component in &program.components {
                if let Class::Stepped(own) = &component.class {
                    assert_eq!(machine.by_steps(component, own).unwrap(), steps, "{text}");
                    taken += usize::from(steps);
                }
            }
        }
        assert!(taken > 8);
    }
}
