//! What the interpreter refuses: budgets, counts that leave 64 bits, and recursion without rest.

use std::cell::Cell as Slot;

use super::machine::{Cells, Machine};
use super::number::Number;
use super::store::Store;
use tensor_logic_core::ast::Span;
use tensor_logic_core::digits::COUNT_LIMIT;
use tensor_logic_core::divergence::{diverges, falls};
use tensor_logic_core::error::{Code, Refusal, Result};
use tensor_logic_core::program::{Class, Combine, Component, Given, Kind, Program, Style, Tensor, TensorId};
use tensor_logic_core::value::Tuple;

impl<N: Number> Machine<'_, N> {
    /// Refuses a square tensor that does not fit.
    pub(super) fn reserve(&mut self, id: TensorId) -> Result<()> {
        let tensor = self.program.tensor(id);
        if tensor.style == Style::Round {
            return Ok(());
        }
        let needed = tensor.sizes().into_iter().fold(8u128, |bytes, size| bytes.saturating_mul(size as u128));
        let limit = self.request.budget.bytes;
        if needed.saturating_add(u128::from(self.bytes)) > u128::from(limit) {
            let name = &tensor.name;
            let message = format!("`{name}` needs {needed} bytes, and {limit} are allowed (`--max-bytes`)");
            let help = "smaller domains, round brackets where few elements exist, or a higher `--max-bytes`";
            return Err(Refusal::new(Code::TooLarge, self.program.left_side(id), message).help(help));
        }
        self.bytes += needed as u64;
        Ok(())
    }

    /// Refuses more tuples than the budget has; `others` are those of other relations.
    pub(super) fn within_budget(&self, others: u64, cells: &Cells<N>, span: Span) -> Result<()> {
        let budget = self.request.budget;
        let tuples = others.saturating_add(cells.tuples());
        // A tuple in a tree takes about this much, whatever its arity is.
        let bytes = tuples.saturating_mul(96);
        if tuples > budget.tuples {
            let message = format!("more than {} tuples (`--max-tuples`) are derived", budget.tuples);
            let help = "end the rule with a comparison or a declared index, or raise `--max-tuples`";
            return Err(Refusal::new(Code::Budget, span, message).help(help));
        }
        if bytes > budget.bytes {
            let message =
                format!("{tuples} tuples need more than the {} bytes of `--max-bytes`", budget.bytes);
            let help = "end the rule with a comparison or a declared index, or raise `--max-bytes`";
            return Err(Refusal::new(Code::Budget, span, message).help(help));
        }
        Ok(())
    }

    /// Whether a number of the component is none: not a number, or an infinity that no
    /// aggregator puts where nothing contributes.
    pub(super) fn exploded(&self, component: &Component) -> bool {
        component.tensors.iter().any(|id| {
            let default = self.program.tensor(*id).combine.default_value();
            let wild = |value: N| !value.value().is_finite() && value.value() != default;
            match self.store(*id) {
                Some(Store::Dense(_, values)) => values.iter().any(|value| wild(*value)),
                Some(Store::Sparse(tuples)) => tuples.values().any(|value| wild(*value)),
                None => false,
            }
        })
    }

    /// Refuses a further round where the class says so.
    /// `before` elements differed from nothing before the last one.
    pub(super) fn may_go_on(
        &self,
        component: &Component,
        (rounds, before): (u64, u64),
        changes: &[f64],
    ) -> Result<()> {
        let within = match component.class {
            Class::Plain | Class::Stepped(_) => true,
            Class::Numeric => rounds < self.program.settings.rounds && !self.exploded(component),
            Class::Closure => {
                let boolean =
                    |id: &TensorId| matches!(self.program.tensor(*id).combine, Combine::Exists | Combine::Or);
                // Without values tuples are only added, if no number below 0 takes one away.
                let all = if component.tensors.iter().all(boolean) { before + 1 } else { rounds };
                all <= self.reached(component)
            }
        };
        if within { Ok(()) } else { Err(self.divergence(component, rounds, changes)) }
    }

    /// Refuses a number below 0 that a relation without values adds up for a tuple by way of itself.
    pub(super) fn nothing_falls(&self, component: &Component) -> Result<()> {
        for equation in component.equations.iter().map(|at| self.program.equation(*at)) {
            let mut recursive = false;
            equation.visit_reads(&mut |read, _| recursive |= component.tensors.contains(&read.tensor));
            if !recursive || self.program.tensor(equation.tensor).combine != Combine::Exists {
                continue;
            }
            self.equation(equation, &mut |element, value| match value.value() < 0.0 {
                true => Err(falls(self.program, equation.tensor, &element)),
                false => Ok(()),
            })?;
        }
        Ok(())
    }

    /// The number of elements of a component that differ from nothing.
    pub(super) fn reached(&self, component: &Component) -> u64 {
        let of = |id: &TensorId| {
            let default = self.program.tensor(*id).combine.default_value();
            match self.store(*id) {
                Some(Store::Dense(_, values)) => {
                    values.iter().filter(|value| value.value() != default).count() as u64
                }
                Some(Store::Sparse(tuples)) => tuples.len() as u64,
                None => 0,
            }
        };
        component.tensors.iter().map(of).sum()
    }

    fn divergence(&self, component: &Component, rounds: u64, changes: &[f64]) -> Refusal {
        let largest = |best: Option<(TensorId, f64)>, (id, change): (&TensorId, &f64)| match best {
            Some((_, most)) if most >= *change => best,
            _ => Some((*id, *change)),
        };
        let grew = component.tensors.iter().zip(changes).fold(None, largest).map(|(id, _)| id);
        diverges(self.program, component, rounds, grew)
    }

    /// Refuses a count that is not whole, and one beyond 64 bits.
    pub(super) fn counts_fit(&self, id: TensorId) -> Result<()> {
        let tensor = self.program.tensor(id);
        if tensor.kind != Kind::Count {
            return Ok(());
        }
        let entries = self.store(id).into_iter().flat_map(|store| store.entries());
        let fits = |value: N| value.is_whole() && value.fits_count();
        let Some((element, value)) = entries.into_iter().find(|(_, value)| !fits(*value)) else {
            return Ok(());
        };
        let mut span = fraction(tensor, &element);
        let sum = Slot::new(N::new(0.0));
        for equation in self.program.equations.iter().filter(|equation| equation.tensor == id) {
            self.equation(equation, &mut |at, part: N| {
                if at == element {
                    sum.set(sum.get().plus(part));
                    if !fits(sum.get()) && span.is_none() {
                        span = Some(equation.head_span);
                    }
                }
                Ok(())
            })?;
        }
        let span = span.unwrap_or_else(|| self.program.left_side(id));
        let shown = shown(self.program, id, &element);
        let whole = value.is_whole();
        let value = value.value();
        let (code, what) = match (whole, value.abs() < COUNT_LIMIT) {
            (false, _) => {
                (Code::TypeConflict, format!("{value}, which is no whole number, and counts are whole"))
            }
            (true, false) => {
                (Code::Overflow, format!("about {value:.3e}, and more than a count of 64 bits holds"))
            }
            (true, true) => (Code::Overflow, format!("about {value:.3e}, and not all its digits are known")),
        };
        let message = format!("{shown} would be {what}");
        let help = format!("`: real` instead of `: count` for `{}`", tensor.name);
        Err(Refusal::new(code, span, message).help(help))
    }
}

/// Where an element of a tensor is given as what is not whole.
fn fraction(tensor: &Tensor, element: &Tuple) -> Option<Span> {
    let mut found = None;
    for given in &tensor.given {
        match given {
            Given::Facts(facts) => {
                let at = (0..facts.count)
                    .find(|at| facts.tuple(*at) == element && facts.value(*at).fract() != 0.0);
                let place = at.map(|at| facts.spans.get(at).copied().unwrap_or(facts.source));
                found = found.or(place);
            }
            Given::Array { span, .. } => given.each(&tensor.domains(), |at, value| {
                found = found.or((at == element && value.fract() != 0.0).then_some(*span));
            }),
            Given::Columns(_) => {}
        }
    }
    found
}

/// An element as it is written: `` `N[3]` ``.
fn shown(program: &Program, id: TensorId, element: &Tuple) -> String {
    let tensor = program.tensor(id);
    let inside = program.show_tuple(element);
    match tensor.style {
        _ if element.is_empty() => format!("`{}`", tensor.name),
        Style::Square => format!("`{}[{inside}]`", tensor.name),
        Style::Round => format!("`{}({inside})`", tensor.name),
    }
}
