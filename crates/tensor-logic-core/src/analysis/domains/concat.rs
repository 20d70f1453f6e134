//! `concat` (N10): where each argument's positions begin, and what the new index ranges over.

use super::{Inference, show};
use crate::error::{Code, Refusal};
use crate::lower::Concat;
use crate::program::{EquationId, IndexFn, IndexId, Range};
use crate::value::{Const, Domain};

impl Inference<'_> {
    /// The offsets of `concat`, when the ranges of the merged indices are known.
    pub(super) fn concat_offsets(&mut self, equations: &[EquationId]) {
        let concats = self.draft.concats.clone();
        for concat in concats {
            if !concat.parts.iter().any(|(at, _)| equations.contains(&EquationId(*at as u32))) {
                continue;
            }
            let mut offset = 0_i64;
            for (at, merged) in &concat.parts {
                merged.iter().for_each(|id| self.close(*id));
                let sizes: Vec<i64> = merged.iter().map(|id| self.range_len(*id)).collect();
                let mut position = IndexFn::Const(Const::Int(offset));
                for (nth, id) in merged.iter().enumerate() {
                    let stride: i64 = sizes.iter().skip(nth + 1).product();
                    let ordinal = Box::new(IndexFn::Ordinal(*id));
                    let stride = Box::new(IndexFn::Const(Const::Int(stride)));
                    let step = IndexFn::Multiply(ordinal, stride);
                    position = IndexFn::Add(Box::new(position), Box::new(step));
                }
                offset = offset.saturating_add(sizes.iter().product());
                if let Some(equation) = self.draft.program.equations.get_mut(*at)
                    && let Some(place) = equation.head.get_mut(concat.place)
                {
                    *place = position;
                }
            }
            self.check_concat(&concat, offset);
        }
    }

    /// Gives an index that tuples bind the domain of its class, in which it has a position.
    fn close(&mut self, index: IndexId) {
        let class = self.classes.index(index);
        let domain = match self.draft.program.index(index).range {
            Range::Tuples => self.classes.domain(class, &self.draft.program.symbols),
            Range::Domain(_) | Range::Computed => return,
        };
        match (domain, self.draft.program.indices.get_mut(index.0 as usize)) {
            (Ok(Some(domain)), Some(entry)) => entry.range = Range::Domain(domain),
            (Err(mixed), _) => self.mixed(class, mixed),
            _ => {}
        }
    }

    /// The new index of a `concat` counts its positions: a domain of another size, or of other values, is refused.
    fn check_concat(&mut self, concat: &Concat, positions: i64) {
        let Some((at, _)) = concat.parts.first() else { return };
        let tensor = self.draft.program.equation(EquationId(*at as u32)).tensor;
        let Some(source) = self.classes.source(self.classes.place(tensor, concat.place)) else { return };
        let counted = Domain::size(usize::try_from(positions).unwrap_or(0));
        if source.domain == counted || !self.refused.domains.is_empty() || self.poisoned.contains(&tensor) {
            return;
        }
        let index = self.draft.program.index(concat.index);
        let name = &index.name;
        let shown = show(&source.domain, &self.draft.program.symbols);
        let message = format!(
            "`{name}` has the domain {shown}, and its positions in this concat are {}",
            show(&counted, &self.draft.program.symbols)
        );
        let report = Refusal::new(Code::SizeConflict, index.span, message);
        let report = report.label(source.span(), format!("the domain of `{name}`"));
        self.refused
            .domains
            .push(report.help("give it as many values as there are, from 0 on, or use another index name"));
    }
}
