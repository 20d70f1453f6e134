//! The symbols that may follow: one question for each kind of place.
//!
//! Every function here puts the symbols in whose least completion fits the budget. `outer` is always the
//! cost of what comes after the construct in question.

use super::cost::{Cost, NEVER, arguments, cost_if, sum};
use super::indices::{Digits, next_numerals};
use super::options::Grammar;
use super::{Category, Frame, Head, Mask, Phase, Spot};
use crate::codec::BASE_U64;
use crate::error::MAX_DEPTH;
use crate::symbol::{Numeral, SymbolId};
use crate::symbol_set::SymbolSet;

impl Mask {
    /// The symbols that may follow.
    pub(super) fn find_legal(&self) -> SymbolSet {
        let mut set = SymbolSet::EMPTY;
        match self.spot {
            Spot::Statement { after_dot } => {
                if after_dot {
                    self.put(&mut set, SymbolId::EOS, cost_if(self.rules.terminated, 1));
                }
                if !after_dot || self.rules.several {
                    self.statement(&mut set);
                }
            }
            Spot::Conclusion => {
                self.put(&mut set, SymbolId::UNKNOWN, cost_if(self.rules.unknown, 2));
                self.operand(&mut set, self.fewest_digits());
            }
            Spot::Operand => self.operand(&mut set, self.fewest_digits()),
            Spot::Term => self.begin_a_term(&mut set),
            Spot::Binder => {
                let fewest = Some(1); // the least variable has one digit
                let possible = self.rules.variables.is_some();
                self.put(&mut set, SymbolId::VAR, cost_if(possible, sum([2, self.body_of_binder(fewest)])));
            }
            Spot::Sort => {
                let possible = self.rules.sorts.is_some();
                let cost = sum([2, self.body_of_binder(self.fewest_digits())]);
                self.put(&mut set, SymbolId::SORT, cost_if(possible, cost));
            }
            Spot::Index(category, digits) => self.index(&mut set, category, digits),
            Spot::AfterTerm => self.following_term(&mut set),
            Spot::AfterFormula => self.following_formula(&mut set, self.frames.len()),
            Spot::End => {}
        }
        set
    }

    /// Whether so many tokens, `<eos>` included, fit.
    fn fits(&self, cost: Cost) -> bool {
        cost < NEVER && self.budget.is_none_or(|budget| cost <= budget)
    }

    fn put(&self, set: &mut SymbolSet, symbol: SymbolId, cost: Cost) {
        if self.fits(cost) {
            set.insert(symbol);
        }
    }

    fn put_all(&self, set: &mut SymbolSet, symbols: &[SymbolId], cost: Cost) {
        if self.fits(cost) {
            symbols.iter().for_each(|&symbol| set.insert(symbol));
        }
    }

    fn put_numerals(&self, set: &mut SymbolSet, count: u64, cost: Cost) {
        if self.fits(cost) {
            set.insert_numerals_below(count);
        }
    }

    // --- beginnings ------------------------------------------------------------------------------------

    fn statement(&self, set: &mut SymbolSet) {
        self.operand(set, self.fewest_digits());
        if self.rules.grammar == Grammar::Formula {
            return;
        }
        self.put_all(set, &self.rules.turnstiles, sum([1, self.rules.conclusion(), 1]));
        self.put(set, SymbolId::PRED, sum([1, self.rules.predicates.root_head(), 1]));
        self.put(set, SymbolId::FUNC, sum([1, self.rules.functions.root_head(), 1]));
        let constant = self.rules.defines(SymbolId::CONST) && self.rules.constants.is_some();
        self.put(set, SymbolId::CONST, cost_if(constant, sum([3, self.term(), 1])));
    }

    /// A formula, where the variables in scope have at least so many digits.
    fn operand(&self, set: &mut SymbolSet, fewest: Option<u32>) {
        let (rules, outer) = (&self.rules, self.rest());
        let (term, deeper) = (rules.term(fewest), self.depth < MAX_DEPTH);
        if deeper {
            let inner = self.formula(term, self.depth + 1);
            self.put(set, SymbolId::NOT, cost_if(rules.not, sum([1, inner, outer])));
            self.put(
                set,
                SymbolId::LPAREN,
                cost_if(!rules.connectives.is_empty(), sum([3, inner, inner, outer])),
            );
            let short = if rules.closed { rules.term(Some(1)) } else { term };
            let bound =
                cost_if(rules.variables.is_some(), sum([3, self.formula(short, self.depth + 1), outer]));
            self.put_all(set, &rules.quantifiers, cost_if(self.may_bind(), bound));
        }
        self.put_all(set, &rules.truth, sum([1, outer]));
        self.put(set, SymbolId::PRED, sum([1, rules.predicates.root_cost(term), outer]));
        let relation = cost_if(!rules.relations.is_empty(), sum([1, term, outer]));
        self.put(set, SymbolId::VAR, sum([rules.variable(fewest), relation]));
        self.put(set, SymbolId::CONST, cost_if(rules.constants.is_some(), sum([2, relation])));
        self.put(set, SymbolId::FUNC, cost_if(deeper, sum([1, rules.functions.root_cost(term), relation])));
    }

    fn begin_a_term(&self, set: &mut SymbolSet) {
        let (rules, outer) = (&self.rules, self.plain_rest());
        let variable = sum([rules.variable(self.fewest_digits()), outer]);
        let parameter = match (self.head_application(), rules.variables) {
            (Some((head, digits, count)), Some(_)) => {
                sum([2, self.rest_of_head(&self.with_parameter(head), digits, count)])
            }
            _ => NEVER,
        };
        self.put(set, SymbolId::VAR, variable.min(parameter));
        self.put(set, SymbolId::CONST, cost_if(rules.constants.is_some(), sum([2, outer])));
        let function = sum([1, rules.functions.root_cost(self.term()), outer]);
        self.put(set, SymbolId::FUNC, cost_if(self.depth < MAX_DEPTH, function));
    }

    /// The head with a parameter of one digit more.
    fn with_parameter(&self, head: &Head) -> Head {
        let mut head = head.clone();
        head.parameters.push(Digits::NONE);
        head
    }

    /// What follows if the statement is a formula, which it may be excluded to be.
    fn plain_rest(&self) -> Cost {
        cost_if(self.head.as_ref().is_none_or(|head| head.plain), self.rest())
    }

    /// The head whose parameters are being read, its index, and the number of the parameter.
    fn head_application(&self) -> Option<(&Head, Digits, usize)> {
        match (&self.head, self.frames.last()) {
            (Some(head), Some(&Frame::Arguments { digits, count, .. })) => Some((head, digits, count)),
            _ => None,
        }
    }

    /// The formula under a binder and what follows it.
    fn body_of_binder(&self, fewest: Option<u32>) -> Cost {
        let fewest = [self.fewest_digits(), fewest].into_iter().flatten().min();
        sum([self.formula(self.rules.term(fewest), self.depth), self.rest()])
    }

    // --- indices ---------------------------------------------------------------------------------------

    fn index(&self, set: &mut SymbolSet, category: Category, digits: Digits) {
        let rules = &self.rules;
        let ended = digits.count > 0;
        let numerals = |most: Option<u64>| most.map_or(0, |most| next_numerals(digits, most));
        match category {
            Category::Binder => {
                let longer = sum([1, self.body_of_binder(Some(digits.count + 1))]);
                self.put_numerals(set, numerals(rules.variables), longer);
                if ended {
                    let sort = sum([3, self.body_of_binder(Some(digits.count))]);
                    self.put(set, SymbolId::COLON, cost_if(rules.sorts.is_some(), sort));
                    let fewest = self.fewest_digits().map_or(digits.count, |fewest| fewest.min(digits.count));
                    self.operand(set, Some(fewest));
                }
            }
            Category::Sort => {
                self.put_numerals(set, numerals(rules.sorts), sum([1, self.body_of_binder(None)]));
                if ended {
                    self.operand(set, self.fewest_digits());
                }
            }
            Category::Variable => self.variable_index(set, digits),
            Category::Constant => {
                let define = if self.head.is_some() { sum([2, self.term(), 1]) } else { NEVER };
                self.put_numerals(set, numerals(rules.constants), sum([1, self.plain_rest()]).min(define));
                if ended {
                    self.following_term(set);
                }
            }
            Category::Predicate | Category::Function => self.applied_index(set, category, digits),
        }
    }

    fn variable_index(&self, set: &mut SymbolSet, digits: Digits) {
        let outer = self.plain_rest();
        let numerals = self.rules.variables.map_or(0, |most| next_numerals(digits, most));
        let mut ends = digits.count > 0;
        if let Some((head, name, count)) = self.head_application() {
            let mut longer = head.clone();
            if let Some(parameter) = longer.parameters.last_mut() {
                parameter.count = digits.count + 1;
            }
            self.put_numerals(set, numerals, sum([1, self.rest_of_head(&longer, name, count)]));
        } else if self.rules.closed {
            ends &=
                self.scope.iter().any(|bound| bound.index == digits.value && bound.digits == digits.count);
        }
        if self.rules.closed {
            self.scope_digits(set, digits, outer);
        } else {
            self.put_numerals(set, numerals, sum([1, outer]));
        }
        if ends {
            self.following_term(set);
        }
    }

    /// The digits by which the index of a variable in scope goes on.
    fn scope_digits(&self, set: &mut SymbolSet, digits: Digits, outer: Cost) {
        for bound in &self.scope {
            let Some(left) = bound.digits.checked_sub(digits.count + 1) else { continue };
            let next = BASE_U64.checked_pow(left).map_or(0, |power| bound.index / power);
            if (digits.count == 0 || next / BASE_U64 == digits.value) && (digits.count > 0 || next < BASE_U64)
            {
                self.put(set, Numeral::last_of(next).symbol(), sum([1, left, outer]));
            }
        }
    }

    fn applied_index(&self, set: &mut SymbolSet, category: Category, digits: Digits) {
        let function = category == Category::Function;
        let (indices, term, outer) = (self.indices(function), self.term(), self.plain_rest());
        // Only the application at the start of a statement is the head, not one in its arguments.
        let head = self.head.as_ref();
        indices.fill(set, digits, term, |plain, define| {
            self.fits(sum([plain, outer])) || head.is_some() && self.fits(sum([define, 1]))
        });
        if digits.count == 0 {
            return;
        }
        if !function && indices.ends(digits) && indices.least_arity(digits, 0) == Some(0) {
            self.following_formula(set, self.frames.len());
        }
        if let Some(arity) = indices.least_arity(digits, 1) {
            let plain = sum([arguments(arity, term), outer]);
            let define = head.map_or(NEVER, |head| {
                let rest = self.rest_of_head(&self.with_parameter(head), digits, 1);
                cost_if(self.rules.variables.is_some(), sum([3, rest]))
            });
            self.put(set, SymbolId::LPAREN, plain.min(define));
        }
    }

    // --- what follows something complete ---------------------------------------------------------------

    fn following_term(&self, set: &mut SymbolSet) {
        let plain = self.head.as_ref().is_none_or(|head| head.plain);
        match self.frames.last() {
            Some(&Frame::Relation { right: false, outer }) => {
                self.put_all(set, &self.rules.relations, cost_if(plain, sum([1, self.term(), outer])));
                if let Some(head) = &self.head {
                    self.put(set, SymbolId::DEFINE, self.body(head, false));
                }
            }
            Some(Frame::Relation { right: true, .. }) => self.following_formula(set, self.frames.len() - 1),
            Some(&Frame::Arguments { function, digits, count, outer, .. }) => {
                let indices = self.indices(function);
                let closes = indices.least_arity(digits, count) == Some(count);
                let term = self.term();
                let more = self.more_arguments(function, digits, count + 1, term);
                let mut comma = cost_if(plain, sum([1, term, more, outer]));
                let mut close = cost_if(plain && closes, sum([1, outer]));
                if let Some(head) = &self.head {
                    let rest = self.rest_of_head(&self.with_parameter(head), digits, count + 1);
                    comma = comma.min(cost_if(self.rules.variables.is_some(), sum([3, rest])));
                    close = close.min(cost_if(closes, sum([1, self.body(head, false)])));
                }
                self.put(set, SymbolId::COMMA, comma);
                self.put(set, SymbolId::RPAREN, close);
            }
            Some(Frame::Paren { .. }) | None => self.following_statement(set),
        }
    }

    /// After a formula with so many frames around it.
    fn following_formula(&self, set: &mut SymbolSet, frames: usize) {
        match frames.checked_sub(1).and_then(|top| self.frames.get(top)) {
            Some(&Frame::Paren { connective: true, outer, .. }) => {
                self.put(set, SymbolId::RPAREN, sum([1, outer]))
            }
            Some(frame @ Frame::Paren { .. }) => {
                self.put_all(set, &self.rules.connectives, self.rest_of(frame))
            }
            _ => self.following_top(set),
        }
    }

    /// After a formula at the top of a statement.
    fn following_top(&self, set: &mut SymbolSet) {
        let rules = &self.rules;
        if let Some(head) = self.head.as_ref().filter(|_| self.phase == Phase::First) {
            self.put(set, SymbolId::DEFINE, self.body(head, false));
            if !head.plain {
                return;
            }
        }
        if self.phase == Phase::Last {
            return self.following_statement(set);
        }
        let (formula, conclusion) = (rules.formula(rules.term(None), true), rules.conclusion());
        self.put_all(set, &rules.turnstiles, sum([1, conclusion, 1]));
        let premise = sum([1, formula, 1, conclusion, 1]);
        self.put(set, SymbolId::COMMA, cost_if(!rules.turnstiles.is_empty(), premise));
        if self.phase == Phase::First {
            self.put(set, SymbolId::EQUIVALENT, cost_if(rules.equivalence, sum([1, formula, 1])));
            self.following_statement(set);
        }
    }

    fn following_statement(&self, set: &mut SymbolSet) {
        self.put(set, SymbolId::EOS, 1);
        let last = cost_if(self.rules.terminated, 2);
        let more = cost_if(self.rules.several, sum([1, self.rules.statement, 1]));
        self.put(set, SymbolId::DOT, last.min(more));
    }
}
