//! Drawing from laws of family `depth`, one draw after the other in the order that is fixed (F37, F38).

use seeded::Stream;

use super::choice::Choice;
use super::distinct::take_unused;
use super::facts::Facts;
use crate::ast::{Quantifier, Relation};
use crate::blocks::{arity_in, number_of};
use crate::codec::push_index;
use crate::law::{Arguments, Binder, CONNECTIVE_SYMBOLS, DepthLaw, Predicates};
use crate::measure::level_of;
use crate::symbol::SymbolId;

/// A law with the sums of its weights, and room to draw in.
#[derive(Debug, Clone)]
pub(crate) struct DepthSampler {
    law: DepthLaw,
    depth_mix: Choice,
    levels: Choice,
    kinds: Choice,
    connectives: Choice,
    quantifiers: Choice,
    relations: Choice,
    truth: Choice,
    atoms: Choice,
    sorted: Choice,
    arities: Choice,
    number_of_predicates: u64,
    number_of_functions: u64,
    /// Terms without, and with variables in scope; the second pair where functions are allowed.
    terms: [[Choice; 2]; 2],
    statements: Option<StatementChoices>,
    scope: Vec<u64>,
    above: Vec<u64>,
}

#[derive(Debug, Clone)]
struct StatementChoices {
    count: Choice,
    dot: Choice,
    kinds: Choice,
    premises: Choice,
    conclusion: Choice,
}

impl DepthSampler {
    pub(super) fn new(law: &DepthLaw) -> Self {
        let arities = match &law.predicates {
            Predicates::Overloaded { arities, .. } => arities.iter().map(|a| a.1).collect(),
            Predicates::Blocks(_) => Vec::new(),
        };
        let number_of_functions = number_of(&law.functions);
        let [variable, constant, function] = law.terms;
        let constant = if law.constants > 0 { constant } else { 0 };
        let function = if number_of_functions > 0 { function } else { 0 };
        let terms = [0, function].map(|f| [0, variable].map(|v| Choice::new([v, constant, f])));
        let statements = law.statements.as_ref().map(|parts| StatementChoices {
            count: Choice::new(parts.count.iter().map(|c| c.1)),
            dot: Choice::new(parts.dot),
            kinds: Choice::new(parts.kinds),
            premises: Choice::new(parts.premises.iter().map(|p| p.1)),
            conclusion: Choice::new(parts.conclusion),
        });
        Self {
            depth_mix: Choice::new(law.depth_mix.iter().map(|m| m.1)),
            levels: Choice::new(law.levels.iter().map(|l| l.1)),
            kinds: Choice::new(law.kinds),
            connectives: Choice::new(law.connectives),
            quantifiers: Choice::new(law.quantifiers),
            relations: Choice::new(law.relations),
            truth: Choice::new(law.truth),
            atoms: Choice::new(law.atoms),
            sorted: Choice::new(law.sorted),
            arities: Choice::new(arities),
            number_of_predicates: law.predicates.number(),
            number_of_functions,
            terms,
            statements,
            scope: Vec::new(),
            above: Vec::new(),
            law: law.clone(),
        }
    }

    /// One item. Tokens beyond `limit` + 1 are drawn but not kept.
    pub(super) fn draw(&mut self, stream: &mut Stream, limit: usize, out: &mut Vec<SymbolId>) -> Facts {
        let mut scope = std::mem::take(&mut self.scope);
        let mut above = std::mem::take(&mut self.above);
        scope.clear();
        above.clear();
        let (scoped, bound) = (&mut scope, &mut above);
        let mut text =
            Text { law: self, stream, out, limit, scope: scoped, above: bound, binders: 0, nodes: 0 };
        let facts = if self.statements.is_some() { text.statements() } else { text.item() };
        (self.scope, self.above) = (scope, above);
        facts
    }
}

/// A text while it is drawn.
struct Text<'a> {
    law: &'a DepthSampler,
    stream: &'a mut Stream,
    out: &'a mut Vec<SymbolId>,
    limit: usize,
    /// The variables in scope, outermost first; a shadowed name stands in it twice.
    scope: &'a mut Vec<u64>,
    /// The names of all binders around, with those that bind nothing; kept only where binders are apart.
    above: &'a mut Vec<u64>,
    binders: u64,
    nodes: u32,
}

impl Text<'_> {
    fn push(&mut self, symbol: SymbolId) {
        if self.out.len() <= self.limit {
            self.out.push(symbol);
        }
    }

    fn named(&mut self, category: SymbolId, index: u64) {
        if self.out.len() <= self.limit {
            self.out.push(category);
            push_index(self.out, index);
        }
    }

    fn item(&mut self) -> Facts {
        let levels = &self.law.law.levels;
        let wanted = if levels.is_empty() {
            None
        } else {
            self.law.levels.pick(levels, self.stream).map(|level| level.0)
        };
        loop {
            self.out.clear();
            self.nodes = 0;
            let quantifier_depth = self.formula_of_mix();
            let level = level_of(self.nodes.into(), quantifier_depth.into());
            if wanted.is_none_or(|wanted| wanted == level) {
                return Facts { nodes: self.nodes, quantifier_depth, level, redraws: 0 };
            }
        }
    }

    /// A whole formula with a maximal depth of its own.
    fn formula_of_mix(&mut self) -> u32 {
        let depth = self.law.depth_mix.pick(&self.law.law.depth_mix, self.stream).map_or(0, |mix| mix.0);
        self.binders = 0;
        self.formula(depth)
    }

    /// A formula with so many levels left; the answer is its quantifier depth.
    fn formula(&mut self, left: u32) -> u32 {
        self.nodes = self.nodes.saturating_add(1);
        let kind = if left > 0 { self.law.kinds.draw(self.stream) } else { 0 };
        match kind {
            0 => {
                self.atom();
                0
            }
            1 => {
                let quantifier = self.law.quantifiers.pick(Quantifier::ALL, self.stream);
                self.push(quantifier.map_or(SymbolId::FORALL, |q| q.symbol()));
                let binds = self.binder();
                let depth = self.formula(left - 1);
                self.above.pop();
                if binds {
                    self.scope.pop();
                }
                depth + 1
            }
            _ => match self.law.connectives.draw(self.stream) {
                0 => {
                    self.push(SymbolId::NOT);
                    self.formula(left - 1)
                }
                c => {
                    self.push(SymbolId::LPAREN);
                    let first = self.formula(left - 1);
                    self.push(CONNECTIVE_SYMBOLS.get(c).copied().unwrap_or(SymbolId::AND));
                    let second = self.formula(left - 1);
                    self.push(SymbolId::RPAREN);
                    first.max(second)
                }
            },
        }
    }

    /// A binder; the answer is whether its variable is in scope below it.
    fn binder(&mut self) -> bool {
        let law = &self.law.law;
        let binds = !self.percent(law.vacuous);
        let variable = match law.binder {
            Binder::Pool => self.stream.below(law.names),
            Binder::Fresh => self.binders,
            Binder::Apart => self.apart(binds),
        };
        self.binders += 1;
        if binds {
            self.scope.push(variable);
        }
        self.named(SymbolId::VAR, variable);
        if law.sorts > 0 && self.law.sorted.draw(self.stream) == 1 {
            let sort = self.stream.below(law.sorts);
            self.push(SymbolId::COLON);
            self.named(SymbolId::SORT, sort);
        }
        binds
    }

    /// A name apart from those of the binders above, or a name of theirs; what binds nothing never has one.
    fn apart(&mut self, binds: bool) -> u64 {
        let law = &self.law.law;
        let mut above = self.above.clone();
        above.sort_unstable();
        above.dedup();
        let variable = if binds && !above.is_empty() && self.percent(law.shadow) {
            let i = self.stream.below(above.len() as u64);
            above.get(i as usize).copied().unwrap_or(0)
        } else {
            let j = self.stream.below(law.names - above.len() as u64);
            take_unused(j, &mut above)
        };
        self.above.push(variable);
        variable
    }

    /// Whether a draw of so many of 100 cases falls on them; for none nothing is drawn.
    fn percent(&mut self, share: u8) -> bool {
        share > 0 && self.stream.below(100) < u64::from(share)
    }

    fn atom(&mut self) {
        match self.law.atoms.draw(self.stream) {
            0 => {
                let predicate = self.stream.below(self.law.number_of_predicates);
                let arity = self.predicate_arity(predicate);
                self.named(SymbolId::PRED, predicate);
                self.list(arity, |text| text.argument());
            }
            1 => {
                let relation = self.law.relations.pick(Relation::ALL, self.stream);
                self.relation(relation.map_or(SymbolId::EQUALS, |r| r.symbol()));
            }
            _ => {
                let truth = self.law.truth.draw(self.stream);
                self.push(if truth == 0 { SymbolId::TRUE } else { SymbolId::FALSE });
            }
        }
    }

    fn predicate_arity(&mut self, predicate: u64) -> usize {
        match &self.law.law.predicates {
            Predicates::Overloaded { arities, .. } => {
                self.law.arities.pick(arities, self.stream).map_or(0, |arity| arity.0)
            }
            Predicates::Blocks(blocks) => arity_in(blocks, predicate),
        }
    }

    /// Parentheses, commas, and so many of something.
    fn list(&mut self, number: usize, mut each: impl FnMut(&mut Self)) {
        for i in 0..number {
            self.push(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA });
            each(self);
        }
        if number > 0 {
            self.push(SymbolId::RPAREN);
        }
    }

    fn relation(&mut self, symbol: SymbolId) {
        if self.law.law.arguments == Arguments::Terms {
            self.term(0);
            self.push(symbol);
            self.term(0);
            return;
        }
        let scope = self.scope.len() as u64;
        let (left, right) = if scope >= 2 {
            let i = self.stream.below(scope);
            let j = self.stream.below(scope - 1);
            (self.in_scope(i), self.in_scope(if j >= i { j + 1 } else { j }))
        } else {
            let names = self.law.law.names;
            (self.stream.below(names), self.stream.below(names))
        };
        self.named(SymbolId::VAR, left);
        self.push(symbol);
        self.named(SymbolId::VAR, right);
    }

    fn in_scope(&self, i: u64) -> u64 {
        self.scope.get(i as usize).copied().unwrap_or(0)
    }

    fn argument(&mut self) {
        match self.law.law.arguments {
            Arguments::Terms => self.term(0),
            Arguments::Public if self.scope.is_empty() => {
                let variable = self.stream.below(self.law.law.names);
                self.named(SymbolId::VAR, variable);
            }
            Arguments::Public => self.variable(),
        }
    }

    fn variable(&mut self) {
        let scope = self.scope.len() as u64;
        let innermost = self.percent(self.law.law.recent);
        let i = if innermost { scope.saturating_sub(1) } else { self.stream.below(scope) };
        let variable = self.in_scope(i);
        self.named(SymbolId::VAR, variable);
    }

    fn term(&mut self, depth: u32) {
        let [without, with] = &self.law.terms;
        let [open, scoped] = if depth < self.law.law.term_depth { with } else { without };
        match (if self.scope.is_empty() { open } else { scoped }).draw(self.stream) {
            0 => self.variable(),
            1 => {
                let constant = self.stream.below(self.law.law.constants);
                self.named(SymbolId::CONST, constant);
            }
            _ => {
                let function = self.stream.below(self.law.number_of_functions);
                self.named(SymbolId::FUNC, function);
                self.list(arity_in(&self.law.law.functions, function), |text| text.term(depth + 1));
            }
        }
    }

    /// A text of a law with statements.
    fn statements(&mut self) -> Facts {
        self.out.clear();
        let (Some(choices), Some(parts)) = (&self.law.statements, &self.law.law.statements) else {
            return Facts::default();
        };
        let count = choices.count.pick(&parts.count, self.stream).map_or(1, |c| c.0);
        let (mut deepest, mut single) = (0, count == 1);
        for i in 0..count {
            if i > 0 {
                self.push(SymbolId::DOT);
            }
            let (kind, depth) = self.statement();
            deepest = deepest.max(depth);
            single &= kind == 0;
        }
        if choices.dot.draw(self.stream) == 1 {
            self.push(SymbolId::DOT);
            single = false;
        }
        let level = if single { level_of(self.nodes.into(), deepest.into()) } else { 0 };
        Facts { nodes: self.nodes, quantifier_depth: deepest, level, redraws: 0 }
    }

    /// One statement; the answer is its kind and its quantifier depth.
    fn statement(&mut self) -> (usize, u32) {
        let Some(choices) = &self.law.statements else { return (0, 0) };
        let kind = choices.kinds.draw(self.stream);
        let depth = match kind {
            0 => self.formula_of_mix(),
            1 => self.sequent(choices, SymbolId::ENTAILS),
            2 => self.sequent(choices, SymbolId::MODELS),
            3 => {
                let left = self.formula_of_mix();
                self.push(SymbolId::EQUIVALENT);
                left.max(self.formula_of_mix())
            }
            4 => {
                let predicate = self.stream.below(self.law.number_of_predicates);
                let arity = self.predicate_arity(predicate);
                self.head(SymbolId::PRED, predicate, arity);
                self.formula_of_mix()
            }
            _ => {
                let (category, number, blocks) = match kind {
                    5 => (SymbolId::FUNC, self.law.number_of_functions, self.law.law.functions.as_slice()),
                    _ => (SymbolId::CONST, self.law.law.constants, &[][..]),
                };
                let defined = self.stream.below(number);
                self.head(category, defined, arity_in(blocks, defined));
                self.term(0);
                0
            }
        };
        self.scope.clear();
        (kind, depth)
    }

    fn sequent(&mut self, choices: &StatementChoices, turnstile: SymbolId) -> u32 {
        let parts = self.law.law.statements.as_ref();
        let premises = parts.and_then(|p| choices.premises.pick(&p.premises, self.stream)).map_or(0, |p| p.0);
        let mut deepest = 0;
        for i in 0..premises {
            if i > 0 {
                self.push(SymbolId::COMMA);
            }
            deepest = deepest.max(self.formula_of_mix());
        }
        self.push(turnstile);
        if choices.conclusion.draw(self.stream) == 0 {
            return deepest.max(self.formula_of_mix());
        }
        self.push(SymbolId::UNKNOWN);
        deepest
    }

    /// What is defined, its parameters, which are distinct names and then the scope, and DEFINE.
    fn head(&mut self, category: SymbolId, index: u64, arity: usize) {
        self.named(category, index);
        let mut used: Vec<u64> = Vec::with_capacity(arity);
        self.list(arity, |text| {
            let j = text.stream.below(text.law.law.names - used.len() as u64);
            let name = take_unused(j, &mut used);
            text.scope.push(name);
            text.named(SymbolId::VAR, name);
        });
        self.push(SymbolId::DEFINE);
    }
}
