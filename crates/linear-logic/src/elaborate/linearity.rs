//! Variables in scope and how often linear ones are used.
//!
//! A trail lists the linear uses in the order of the text. At a pair and at the branches of a `case` the trail is cut
//! in two, and both parts must name the same variables.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::names::Names;
use crate::ast::Name;
use crate::declared::Structure;
use crate::error::{Kind, Result, Span};
use crate::formula::Formula;
use crate::term::{Term, Variable};

struct Binder {
    name: Rc<str>,
    span: Span,
    formula: Formula,
    linear: bool,
    used: bool,
    /// How many boxes are open around the binder.
    boxes: usize,
}

/// The variables of one definition; [`Variable`]s are numbered as in its draft.
#[derive(Default)]
pub(super) struct Scope {
    binders: Vec<Binder>,
    /// The binders of a name that are in scope, the innermost last.
    visible: HashMap<Rc<str>, Vec<Variable>>,
    trail: Vec<Variable>,
    boxes: usize,
}

/// A place of the text: where the branches of an additive construct began, or a term.
pub(super) struct Fork {
    trail: usize,
    binders: usize,
}

impl Scope {
    pub(super) fn bind(
        &mut self,
        names: Names<'_>,
        draft: &mut Term,
        name: &Name,
        formula: Formula,
    ) -> Variable {
        let variable = draft.variable(name.text.clone());
        self.binders.push(Binder {
            name: name.text.clone(),
            span: name.span,
            linear: !formula.is_banged() || names.program.mode().structure == Structure::Explicit,
            formula,
            used: false,
            boxes: self.boxes,
        });
        self.visible.entry(name.text.clone()).or_default().push(variable);
        variable
    }

    /// Ends the scope of a variable; a linear one must have been used.
    pub(super) fn unbind(&mut self, names: Names<'_>, variable: Variable) -> Result<()> {
        let Some(binder) = self.binders.get(variable.index()) else { return Ok(()) };
        if let Some(stack) = self.visible.get_mut(&binder.name) {
            stack.pop();
        }
        if binder.used || !binder.linear {
            return Ok(());
        }
        let message = format!("the linear variable `{}` is not used", binder.name);
        let help = if binder.formula.is_banged() {
            format!("write `discard {} in …`", binder.name)
        } else {
            "use it once: only a variable of a type `!A` may be left unused".to_owned()
        };
        Err(names.refuse(Kind::LinearUnused, binder.span, message).variable(&*binder.name).help(help))
    }

    /// Whether no linear variable from outside was used since then.
    pub(super) fn is_closed_since(&self, fork: &Fork) -> bool {
        self.trail.get(fork.trail..).is_none_or(|uses| uses.iter().all(|v| v.index() >= fork.binders))
    }

    /// The names of the variables in scope.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.binders
            .iter()
            .map(|binder| &*binder.name)
            .filter(|name| self.visible.get(*name).is_some_and(|stack| !stack.is_empty()))
    }

    /// The variable that a name means here.
    pub(super) fn lookup(&self, name: &str) -> Option<Variable> {
        self.visible.get(name)?.last().copied()
    }

    /// Uses a variable at a place and gives its type.
    pub(super) fn mention(&mut self, names: Names<'_>, variable: Variable, span: Span) -> Result<Formula> {
        let boxes = self.boxes;
        let Some(binder) = self.binders.get_mut(variable.index()) else { return Ok(Formula::one()) };
        let name = &*binder.name;
        if binder.linear {
            if binder.boxes < boxes {
                let message = format!("a box cannot mention `{name}`, which is bound outside it");
                let help = if binder.formula.is_banged() {
                    format!("write `promote ({name} for {name}') in …` with `{name}'` inside")
                } else {
                    format!("give `{name}` the type `{}`", binder.formula.clone().bang().short())
                };
                let refusal = names.refuse(Kind::BoxCapture, span, message).variable(name);
                return Err(refusal.found(&binder.formula).help(help));
            }
            if binder.used {
                let message = format!("the linear variable `{name}` is used a second time");
                let help = if binder.formula.is_banged() {
                    format!("write `copy {name} as {name}1, {name}2 in …`")
                } else {
                    "only a variable of a type `!A` may be used more than once".to_owned()
                };
                return Err(names.refuse(Kind::LinearReuse, span, message).variable(name).help(help));
            }
            binder.used = true;
            self.trail.push(variable);
        }
        Ok(binder.formula.clone())
    }

    pub(super) fn enter_box(&mut self) {
        self.boxes += 1;
    }

    pub(super) fn leave_box(&mut self) {
        self.boxes -= 1;
    }

    /// Here: before the first branch, or before a term.
    pub(super) fn fork(&self) -> Fork {
        Fork { trail: self.trail.len(), binders: self.binders.len() }
    }

    /// Between the branches: the second may use again what the first has used. Gives where it begins.
    pub(super) fn other_branch(&mut self, fork: &Fork) -> usize {
        for variable in self.trail.get(fork.trail..).unwrap_or(&[]) {
            if let Some(binder) = self.binders.get_mut(variable.index()) {
                binder.used = false;
            }
        }
        self.trail.len()
    }

    /// Behind the second branch: both must have used the same variables from outside.
    pub(super) fn join(&mut self, names: Names<'_>, fork: &Fork, middle: usize, span: Span) -> Result<()> {
        let second = self.trail.split_off(middle.min(self.trail.len()));
        let outer = |v: &&Variable| v.index() < fork.binders;
        let first = self.trail.get(fork.trail..).unwrap_or(&[]);
        let (left, right): (HashSet<_>, HashSet<_>) =
            (first.iter().filter(outer).collect(), second.iter().filter(outer).collect());
        let mentioned = first.iter().chain(&second).filter(outer);
        if let Some(missing) = mentioned.clone().find(|v| !left.contains(v) || !right.contains(v)) {
            let name = self.binders.get(missing.index()).map_or("", |binder| &*binder.name);
            let message = format!("only one of the two branches uses the linear variable `{name}`");
            let help = format!("use `{name}` in both branches or in neither");
            return Err(names.refuse(Kind::BranchMismatch, span, message).variable(name).help(help));
        }
        for variable in first {
            if let Some(binder) = self.binders.get_mut(variable.index()) {
                binder.used = true;
            }
        }
        Ok(())
    }

    /// Which variables are not linear: those whose uses the second pass counts.
    pub(super) fn banged(&self) -> Vec<bool> {
        self.binders.iter().map(|binder| !binder.linear).collect()
    }
}
