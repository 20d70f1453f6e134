//! A proof drawn as a tree: premises above a bar, the conclusion below it, the name of the rule at the end of the bar.
//!
//! First every inference is measured, premises before conclusions, then it is painted at its place: so a proof that is
//! thousands of inferences high is moved once and not at every level.

use super::Proof;

/// The space between two premises.
const GAP: usize = 3;

/// The most characters of a drawing.
const MAX_AREA: usize = 1 << 22;

/// An inference with its place inside that of its conclusion.
struct Measured {
    /// Columns of the whole, with the premises.
    width: usize,
    /// Rows of the whole.
    height: usize,
    /// Where the conclusion begins, and its text.
    conclusion: (usize, String),
    /// Where the bar begins, and its length.
    bar: (usize, usize),
    rule: &'static str,
    /// The premises, each with its first column.
    premises: Vec<(usize, Self)>,
}

impl Proof {
    /// `A, B |- C`, with a name for every hypothesis; formulas are folded.
    fn sequent(&self) -> String {
        let left: Vec<String> = self.left.iter().map(|(h, a)| format!("h{}:{}", h.0, a.short())).collect();
        let right = self.right.short();
        if left.is_empty() { format!("|- {right}") } else { format!("{} |- {right}", left.join(", ")) }
    }

    /// The proof as lines of text; `None` if it is too large to be looked at.
    pub fn drawing(&self) -> Option<Vec<String>> {
        let measured = Measured::new(self);
        if measured.width.checked_mul(measured.height).is_none_or(|area| area > MAX_AREA) {
            return None;
        }
        let mut rows = vec![String::new(); measured.height];
        measured.paint(0, measured.height, &mut rows);
        Some(rows)
    }
}

impl Measured {
    fn new(proof: &Proof) -> Self {
        let mut premises: Vec<(usize, Self)> = Vec::with_capacity(proof.premises.len());
        let mut width = 0;
        for premise in &proof.premises {
            let premise = Self::new(premise);
            let at = if premises.is_empty() { 0 } else { width + GAP };
            width = at + premise.width;
            premises.push((at, premise));
        }
        // The bar covers the conclusions of the premises, and its own.
        let start = premises.first().map_or(0, |(at, first)| at + first.conclusion.0);
        let end = premises.last().map_or(0, |(at, last)| at + last.end());
        let text = proof.sequent();
        let own = text.chars().count();
        let covered = end - start;
        let length = covered.max(own);
        let before = (length - covered) / 2;
        // A conclusion that is wider than what is above it may move all of that to the right.
        let shift = before.saturating_sub(start);
        premises.iter_mut().for_each(|(at, _)| *at += shift);
        let bar = start + shift - before;
        let rule = proof.rule.name();
        Self {
            width: (width + shift).max(bar + length + 1 + rule.len()),
            height: premises.iter().map(|(_, premise)| premise.height).max().unwrap_or(0) + 2,
            conclusion: (bar + (length - own) / 2, text),
            bar: (bar, length),
            rule,
            premises,
        }
    }

    /// Where the conclusion ends.
    fn end(&self) -> usize {
        self.conclusion.0 + self.conclusion.1.chars().count()
    }

    /// Paints from a column on, with the conclusion in the row before `below`.
    fn paint(&self, column: usize, below: usize, rows: &mut [String]) {
        let premises = below.saturating_sub(2);
        for (at, premise) in &self.premises {
            premise.paint(column + at, premises, rows);
        }
        let bar = format!("{} {}", "-".repeat(self.bar.1), self.rule);
        write_at(rows.get_mut(premises), column + self.bar.0, &bar);
        write_at(rows.get_mut(premises + 1), column + self.conclusion.0, &self.conclusion.1);
    }
}

/// Rows are painted from left to right.
fn write_at(row: Option<&mut String>, column: usize, text: &str) {
    let Some(row) = row else { return };
    let there = row.chars().count();
    row.extend(std::iter::repeat_n(' ', column.saturating_sub(there)));
    row.push_str(text);
}
