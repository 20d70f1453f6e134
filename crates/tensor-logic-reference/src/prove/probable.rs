//! Proofs from derivations that an engine has found: what holds by chance as it says, all else by proofs of least height.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::literals::Literal;
use super::{Scope, Search, Tree, rooted};
use tensor_logic_core::engine::{Engine, Request, Value};
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{Query, TensorId};
use tensor_logic_core::proof::{Derivations, Derived, ProbableProofs, Proof, Step, StepKind};
use tensor_logic_core::weighted::factors;

/// The proofs of a query that derivations say, in their order, but for those that are too large to be shown. `known` are values
/// that the engine need not be asked for.
///
/// # Errors
/// `budget` where the derivations below the query do not fit, and refusals of the evaluation.
pub fn probable(
    request: &Request<'_>,
    engine: &mut dyn Engine,
    query: &Query,
    text: &str,
    derivations: &Derivations,
    known: &[(TensorId, Value)],
) -> Result<ProbableProofs> {
    let mut search = Search::new(request, engine, query, text, known)?;
    search.closed = true;
    let program = request.program;
    search.collect_all(query, &|id| !program.tensor(id).is_proved())?;
    let heights = search.heights();
    let mut proofs = Vec::new();
    for (probability, steps) in &derivations.derivations {
        let mut drawn =
            Drawn { search: &search, heights: &heights, derived: steps, weights: BTreeMap::new() };
        proofs.extend(drawn.proof(query).map(|proof| (*probability, proof)));
    }
    let exact = derivations.exact && proofs.len() == derivations.derivations.len();
    Ok(ProbableProofs { proofs, exact })
}

/// A derivation that becomes a proof.
struct Drawn<'a, 'p> {
    search: &'a Search<'p>,
    heights: &'a [Option<usize>],
    derived: &'a [Derived],
    weights: BTreeMap<usize, f64>,
}

impl Drawn<'_, '_> {
    fn proof(&mut self, query: &Query) -> Option<Proof> {
        // The steps of the derivation stand first, in their order.
        let mut tree = Tree::default();
        tree.steps.extend(self.derived.iter().map(|derived| self.step(derived)));
        for (at, derived) in self.derived.iter().enumerate() {
            if let Derived::Event { probability, .. } = derived {
                self.weights.insert(at, *probability);
            }
        }
        for (at, derived) in self.derived.iter().enumerate() {
            if let Derived::Rule { .. } = derived {
                let from = self.premises(derived, &mut tree);
                if let Some(step) = tree.steps.get_mut(at) {
                    step.from = from;
                }
            }
        }
        let mut steps = tree.steps;
        let root = rooted(&mut steps, query)?;
        Some(
            Proof::new(steps, root)
                .placed(&self.search.places)
                .with_weights(std::mem::take(&mut self.weights)),
        )
    }

    /// A step, of a rule without what it follows from.
    fn step(&self, derived: &Derived) -> Step {
        let (search, program) = (self.search, self.search.program);
        match derived {
            Derived::Rule { tensor, tuple, equation, .. } => {
                let (atom, line) =
                    (search.shown(*tensor, tuple), search.line(program.equation(*equation).span));
                Step { atom, kind: StepKind::Rule, line, file: None, from: Vec::new() }
            }
            Derived::Event { tensor, tuple, holds, given, from, .. } => {
                let shown = search.shown(*tensor, tuple);
                let kind = match (holds, given) {
                    (false, _) => StepKind::Negation,
                    (true, Some((_, true))) => StepKind::Fact,
                    (true, _) => StepKind::Data,
                };
                let atom = if *holds { shown } else { format!("not {shown}") };
                let line = search.line(given.map_or(program.tensor(*tensor).span, |(span, _)| span));
                Step { atom, kind, line, file: None, from: from.clone() }
            }
        }
    }

    /// What a rule follows from, in the order of its text.
    fn premises(&mut self, derived: &Derived, tree: &mut Tree) -> Vec<usize> {
        let Derived::Rule { equation, binding, factors: parts, .. } = derived else { return Vec::new() };
        let (search, machine) = (self.search, &self.search.machine);
        let equation = search.program.equation(*equation);
        let line = search.line(equation.span);
        let mut from = Vec::new();
        for term in &equation.terms {
            let placed = factors(term).into_iter().enumerate();
            let placed =
                placed.map(|(at, (read, denied))| (read.span.start, Literal::Factor(at, read, denied)));
            let literals = search.literals(equation, term, placed.collect());
            binding.iter().for_each(|(index, value)| machine.bind(*index, Some(*value)));
            // What guards say of values that only they know holds for some: the first of them are shown.
            let scope = Scope { indices: &[], when: &term.when, body: None, nearby: &[] };
            let mut premises = None;
            let shown = || literals.iter().map(|literal| search.premise(*literal, line)).collect::<Vec<_>>();
            let _ = machine.witnesses(scope, &mut || {
                premises = Some(shown());
                ControlFlow::Break(())
            });
            let premises = premises.unwrap_or_else(shown);
            binding.iter().for_each(|(index, _)| machine.bind(*index, None));
            for (literal, premise) in literals.into_iter().zip(premises) {
                let below = match literal {
                    Literal::Factor(at, ..) => parts.get(at).map_or(&[][..], Vec::as_slice),
                    _ => &[],
                };
                let next = tree.steps.len();
                match (literal, premise) {
                    (Literal::Factor(_, _, true), Err(mut leaf)) => {
                        match self.denied(&leaf, below, tree) {
                            Some(weight) => drop(self.weights.insert(next, weight)),
                            None => leaf.from = below.to_vec(),
                        }
                        tree.steps.push(leaf);
                        from.push(next);
                    }
                    (Literal::Factor(..), _) => from.extend(below.first()),
                    (_, Err(leaf)) => {
                        tree.steps.push(leaf);
                        from.push(next);
                    }
                    (_, Ok(atom)) => match search.numbers.get(&atom) {
                        Some(number) => from.push(search.grow(*number, self.heights, tree)),
                        None => {
                            let (tensor, tuple) = atom;
                            let line = search.line(search.program.tensor(tensor).span);
                            let atom = search.shown(tensor, &tuple);
                            tree.steps.push(Step {
                                atom,
                                kind: StepKind::Data,
                                line,
                                file: None,
                                from: Vec::new(),
                            });
                            from.push(next);
                        }
                    },
                }
            }
        }
        from
    }

    /// How probable it is that what a literal denies does not hold, where that rests on one event that says the same.
    fn denied(&self, leaf: &Step, below: &[usize], tree: &Tree) -> Option<f64> {
        let [only] = below else { return None };
        let same = tree.steps.get(*only).is_some_and(|step| step.atom == leaf.atom && step.from.is_empty());
        self.weights.get(only).copied().filter(|_| same)
    }
}
