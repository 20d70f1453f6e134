//! Warnings about sums that a reader may misplace: `scope` and `broadcast`.
//!
//! Both look at groups in parentheses and at the sums that N3 supplies: inside a product's
//! group, around a sum's. The forms that they offer quote the program's text.

use crate::ast::{
    Expr, ExprKind, Goal, Literal, LiteralKind, RightSide, Sign, Span, Statement, StatementKind,
};
use crate::error::{Code, Warning};
use crate::names::known::{Names, spelling};
use crate::names::scopes;

/// An index that the language sums: where, and where it occurs.
struct Sum<'a> {
    index: &'a str,
    scope: Span,
    occurrences: Vec<Span>,
}

impl Sum<'_> {
    fn occurs_in(&self, span: Span) -> bool {
        self.occurrences.iter().any(|occurrence| holds(span, *occurrence))
    }
}

fn holds(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

struct Check<'a> {
    text: &'a str,
    sums: Vec<Sum<'a>>,
    /// What an equation's right side is combined by, and where it stands.
    sign: Option<(Sign, Span)>,
    reports: &'a mut Vec<Warning>,
}

/// How a scope combines its bindings.
struct Combined {
    /// As a scope that is written out, if there is such a one.
    scope: Option<&'static str>,
    /// In words.
    words: String,
}

/// Checks the groups of a statement.
pub(super) fn check(text: &str, statement: &Statement, names: &Names, reports: &mut Vec<Warning>) {
    let (mut terms, left) = scopes::of(statement, names);
    if let StatementKind::Query { goal: Goal::Literals(literals), .. } = &statement.kind {
        terms.push(scopes::of_literals(statement.span, literals, names));
    }
    let mut sums = Vec::new();
    for term in &terms {
        term.bind(&left, &mut |scope, index, occurrences| {
            let occurrences = occurrences.iter().map(|occurrence| occurrence.span).collect();
            sums.push(Sum { index, scope: scope.span, occurrences });
        });
    }
    if sums.is_empty() {
        return;
    }
    let sign = match &statement.kind {
        StatementKind::Equation { sign, right: RightSide::Expr { expr, .. }, .. } => Some((*sign, expr.span)),
        _ => None,
    };
    let mut check = Check { text, sums, sign, reports };
    match &statement.kind {
        StatementKind::Equation { right: RightSide::Expr { expr, guards }, .. } => {
            check.expr(expr);
            guards.iter().for_each(|guard| check.literal(guard));
        }
        StatementKind::Rule { body: literals, .. }
        | StatementKind::Query { goal: Goal::Literals(literals), .. } => {
            literals.iter().for_each(|literal| check.literal(literal));
        }
        _ => {}
    }
}

impl Check<'_> {
    fn literal(&mut self, literal: &Literal) {
        if let LiteralKind::Compare { left, right, .. } = &literal.kind {
            for side in [left, right] {
                self.side(side);
                self.expr(side);
            }
        }
    }

    /// A side of a comparison that is one reference: what is summed there is easily taken for what is asked for.
    fn side(&mut self, side: &Expr) {
        if !matches!(side.kind, ExprKind::Reference(_)) {
            return;
        }
        let own: Vec<&Sum<'_>> = self.sums.iter().filter(|sum| holds(side.span, sum.scope)).collect();
        let Some(list) = list(&own) else { return };
        let (indices, content) = (indices(&own), self.quote(side.span));
        let message = format!("{list} summed before this is compared: it stands on this side alone");
        let help = format!(
            "it means `sum[{indices}]({content})`; whether some value satisfies it is asked by a further guard with it"
        );
        self.reports.push(Warning::new(Code::Scope, side.span, message).help(help));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.expr(term)),
            ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| self.expr(factor)),
            ExprKind::Negate(inner) => self.expr(inner),
            ExprKind::Power(base, exponent, _) => {
                self.power(expr, base, exponent);
                self.expr(base);
                self.expr(exponent);
            }
            ExprKind::Call { arguments, guards, .. } => {
                arguments.iter().for_each(|argument| self.expr(argument));
                guards.iter().for_each(|guard| self.literal(guard));
            }
            ExprKind::Group { expr: inner, guards } => {
                if let ExprKind::Sum(terms) = &inner.kind {
                    self.broadcast(expr.span, inner, terms);
                }
                self.expr(inner);
                guards.iter().for_each(|guard| self.literal(guard));
            }
            ExprKind::Number(_)
            | ExprKind::Reference(_)
            | ExprKind::Not(_)
            | ExprKind::Index(_)
            | ExprKind::Text(_) => {}
        }
    }

    /// How these are combined: inside of a right side they are summed, and all of it as the sign says (N3, N4).
    fn combined(&self, sums: &[&Sum<'_>]) -> Combined {
        let whole = |span: Span| sums.iter().any(|sum| holds(sum.scope, span));
        let sign = self.sign.filter(|(_, span)| whole(*span)).map(|(sign, _)| sign);
        let scope = match sign {
            None | Some(Sign::Equal | Sign::Plus | Sign::Redefine) => Some("sum"),
            Some(Sign::Max) => Some("max"),
            Some(Sign::Min) => Some("min"),
            Some(Sign::Avg) => Some("avg"),
            Some(Sign::Times) => Some("prod"),
            Some(Sign::Or) => None,
        };
        let words = match sign {
            Some(sign) if scope != Some("sum") => format!("combined by `{}`", spelling(sign)),
            _ => "summed".to_owned(),
        };
        Combined { scope, words }
    }

    fn quote(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("…")
    }

    /// A power whose base is a group: is the sum inside or outside?
    fn power(&mut self, power: &Expr, base: &Expr, exponent: &Expr) {
        let ExprKind::Group { expr: inner, .. } = &base.kind else { return };
        let between = self.text.get(base.span.end..exponent.span.start).unwrap_or("");
        let start = base.span.end + between.find('^').unwrap_or(0);
        let sign = Span { start, end: start + 1 };
        let behind = self.quote(Span { start, end: power.span.end });
        let content = self.quote(inner.span);
        let report = match &inner.kind {
            _ if scopes::is_product(inner) => {
                let inside: Vec<&Sum<'_>> = self.sums.iter().filter(|sum| sum.scope == inner.span).collect();
                let Some(list) = list(&inside) else { return };
                let message = format!("the base is a product: {list} summed first, then the power is taken");
                let indices = indices(&inside);
                let here = format!("(sum[{indices}]({content})){behind}");
                let there = format!("sum[{indices}](({content}){behind})");
                Warning::new(Code::Scope, sign, message)
                    .help(format!("it means `{here}`; the other is `{there}`"))
            }
            ExprKind::Sum(terms) => {
                let around = |sum: &&Sum<'_>| sum.occurs_in(inner.span) && holds(sum.scope, base.span);
                let outside: Vec<&Sum<'_>> = self.sums.iter().filter(around).collect();
                let Some(list) = list(&outside) else { return };
                let Combined { scope, words } = self.combined(&outside);
                let message = format!("the base is a sum: the power is taken first, then {list} {words}");
                let warning = Warning::new(Code::Scope, sign, message);
                match scope {
                    Some(scope) => {
                        let here = format!("{scope}[{}](({content}){behind})", indices(&outside));
                        let there = format!("({}){behind}", self.apart(inner, terms, &outside, scope));
                        warning.help(format!("it means `{here}`; the other is `{there}`"))
                    }
                    None => warning,
                }
            }
            _ => return,
        };
        self.reports.push(report);
    }

    /// A sum in parentheses some of whose addends are repeated for every value of an index.
    fn broadcast(&mut self, group: Span, inner: &Expr, terms: &[(bool, Expr)]) {
        let around = self.sums.iter().filter(|sum| holds(sum.scope, group));
        let repeats = |sum: &&Sum<'_>| {
            let inside = terms.iter().filter(|(_, term)| sum.occurs_in(term.span)).count();
            0 < inside && inside < terms.len()
        };
        let repeated: Vec<&Sum<'_>> = around.filter(repeats).collect();
        let Some(list) = list(&repeated) else { return };
        let combined = self.combined(&repeated);
        let words = &combined.words;
        let message = format!("{list} {words}, and addends without it are repeated for each of its values");
        let report = Warning::new(Code::Broadcast, group, message);
        let Some(how) = combined.scope else { return self.reports.push(report) };
        let content = self.quote(inner.span);
        let (mut here, mut there) = (content.to_owned(), self.apart(inner, terms, &repeated, how));
        // What stands around the group is summed with it.
        let scope = repeated.iter().map(|sum| sum.scope).max_by_key(|scope| scope.end - scope.start);
        if let Some(scope) = scope.filter(|scope| holds(*scope, group) && *scope != group) {
            let before = self.quote(Span { start: scope.start, end: group.start });
            let behind = self.quote(Span { start: group.end, end: scope.end });
            here = format!("{before}({here}){behind}");
            there = format!("{before}({there}){behind}");
        }
        let here = format!("{how}[{}]({here})", indices(&repeated));
        self.reports.push(report.help(format!("it means `{here}`; the other is `{there}`")));
    }

    /// The addends, each combined on its own.
    fn apart(&self, inner: &Expr, terms: &[(bool, Expr)], sums: &[&Sum<'_>], scope: &str) -> String {
        let mut shown = String::new();
        let mut at = inner.span.start;
        for (_, term) in terms {
            shown.push_str(self.quote(Span { start: at, end: term.span.start }));
            let own: Vec<&Sum<'_>> = sums.iter().copied().filter(|sum| sum.occurs_in(term.span)).collect();
            if own.is_empty() {
                shown.push_str(self.quote(term.span));
            } else {
                shown.push_str(&format!("{scope}[{}]({})", indices(&own), self.quote(term.span)));
            }
            at = term.span.end;
        }
        shown
    }
}

fn indices(sums: &[&Sum<'_>]) -> String {
    let names: Vec<&str> = sums.iter().map(|sum| sum.index).collect();
    names.join(", ")
}

/// `` `i` is ``, `` `i` and `j` are ``; `None` for an empty list.
fn list(sums: &[&Sum<'_>]) -> Option<String> {
    let names: Vec<String> = sums.iter().map(|sum| format!("`{}`", sum.index)).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| format!("{} {verb}", names.join(" and ")))
}
