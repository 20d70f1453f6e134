//! Weighted facts and rules over them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Alone, Context};
use crate::ast::{self, Literal, Reference, Span, StatementKind};
use crate::error::{Code, Refusal};
use crate::function::Function;
use crate::names::literals_of;
use crate::program::{
    Argument, Call, Combine, Equation, Expr, Facts, Given, IndexFn, Kind, Otherwise, Read, Role, Stamp,
    Tensor, TensorId, Term, When,
};
use crate::value::Const;

/// How far weights may add up to more than 1.
const ROUNDING: f64 = 1e-9;

impl Context<'_> {
    /// `=` on a relation whose tuples have probabilities is an arrow: every additive term is a body.
    pub(super) fn proofs(
        &mut self,
        span: Span,
        head: &Reference,
        sign: Span,
        expr: &ast::Expr,
        guards: &[Literal],
    ) {
        for (minus, term) in super::expression::additive(expr) {
            match literals_of(term) {
                Some(literals) if !minus => {
                    let body: Vec<Literal> = literals.into_iter().chain(guards.iter().cloned()).collect();
                    self.rule(span, head, sign, &body);
                }
                _ => {
                    let name = &head.name.text;
                    let message =
                        format!("`{name}` is true with a probability, and this is no product of literals");
                    let report = Refusal::new(Code::TypeConflict, term.span, message);
                    self.refuse(report.help(format!(
                        "compute the numbers in a relation of their own, `Weight(…) += …`, and write `{name}(…) <- Weight(…)`"
                    )));
                }
            }
        }
    }

    /// `@exclusive(R, k)`
    pub(super) fn exclusive(&mut self, tree: &ast::Program) {
        for statement in &tree.statements {
            let StatementKind::Directive(directive) = &statement.kind else { continue };
            let arguments = directive.arguments.as_deref().unwrap_or(&[]);
            let ("exclusive", [relation, place]) = (directive.name.text.as_str(), arguments) else {
                continue;
            };
            let (ast::Value::Name(name), ast::Value::Number(number)) = (&relation.value, &place.value) else {
                continue;
            };
            let Some(tensor) = self.seen(&name.text) else { continue };
            let (at, rank) = (number.value as usize, self.draft.program.tensor(tensor).places.len());
            let other = self.draft.program.exclusive.iter().find(|(id, place)| *id == tensor && *place != at);
            if let Some((_, other)) = other {
                let message =
                    format!("tuples of `{}` exclude each other along place {other} already", name.text);
                let report = Refusal::new(Code::BadArgument, place.span, message);
                self.refuse(report.help("one place says what is an alternative to what"));
                continue;
            }
            if at < rank {
                self.draft.program.exclusive.push((tensor, at));
                self.has_weights(tensor, relation.span);
                continue;
            }
            let message = format!("`{}` has {rank} places, and {at} is none of them", name.text);
            let report = Refusal::new(Code::BadArgument, place.span, message);
            self.refuse(report.help("places count from 0"));
        }
    }

    /// Refuses alternatives among tuples that only follow: what they follow from has the weights.
    fn has_weights(&mut self, id: TensorId, at: Span) {
        let tensor = self.draft.program.tensor(id);
        let follows = self.draft.program.equations.iter().any(|equation| equation.tensor == id);
        if tensor.is_proved() && tensor.given.is_empty() && follows {
            let name = tensor.name.clone();
            let message = format!("`{name}` has no weights of its own: its tuples follow by rules");
            let help = "name the relation or the tensor that its rules take weights from";
            self.refuse(Refusal::new(Code::BadArgument, at, message).help(help));
        }
    }

    /// Given tuples of relations with probabilities: each is a probability, and those that exclude each other are at most 1
    /// together.
    pub(super) fn given_weights(&mut self) {
        self.certain_facts_once();
        let mut reports = Vec::new();
        let program = &self.draft.program;
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            let apart = program.exclusive.iter().find(|(other, _)| *other == id).map(|(_, place)| *place);
            // What has no weights is certain, and so are alternatives of it.
            if !tensor.is_proved() && (tensor.kind != Kind::Bool || apart.is_none()) {
                continue;
            }
            let mut certain: HashSet<Vec<Const>> = HashSet::new();
            let mut sums: HashMap<Vec<Const>, f64> = HashMap::new();
            for given in &tensor.given {
                let Given::Facts(facts) = given else { continue };
                for at in 0..facts.count {
                    let (tuple, weight) = (facts.tuple(at).to_vec(), facts.value(at));
                    let place = facts.spans.get(at).copied().unwrap_or(facts.source);
                    let shown = format!("{}({})", tensor.name, program.show_tuple(&tuple));
                    if !(0.0..=1.0).contains(&weight) {
                        let message = format!("`{shown}` is {weight}, which is no probability");
                        let report = Refusal::new(Code::BadProbability, place, message);
                        reports.push(report.help("a probability lies between 0 and 1"));
                        continue;
                    }
                    let Some(apart) = apart else { continue };
                    if !tensor.is_proved() && !certain.insert(tuple.clone()) {
                        continue;
                    }
                    let mut rest = tuple;
                    rest.remove(apart);
                    let sum = sums.entry(rest).or_insert(0.0);
                    *sum += weight;
                    if *sum > 1.0 + ROUNDING {
                        let together = (*sum * 1e9).round() / 1e9;
                        let message = format!("`{shown}` and what excludes it have {together} together");
                        let report = Refusal::new(Code::BadProbability, place, message);
                        let help = "probabilities of tuples that exclude each other add up to 1 at most";
                        reports.push(report.help(help));
                    }
                }
            }
        }
        reports.into_iter().for_each(|report| self.refuse(report));
    }

    /// A tuple of a Boolean relation is there or not, however often it is given: of the proofs that `topk` keeps, none is to be
    /// another one with its twin.
    fn certain_facts_once(&mut self) {
        if !self.options.semiring.as_ref().is_some_and(|asked| matches!(asked.kind, Kind::TopK(_))) {
            return;
        }
        let names = &self.names.tensors;
        for tensor in self.draft.program.tensors.iter_mut().filter(|tensor| tensor.is_proved()) {
            if names.get(&tensor.name).is_none_or(|info| info.kind != Kind::Bool) {
                continue;
            }
            let mut known: HashSet<Vec<Const>> = HashSet::new();
            for given in &mut tensor.given {
                let Given::Facts(facts) = given else { continue };
                let mut once = Facts { arity: facts.arity, source: facts.source, ..Facts::default() };
                for at in 0..facts.count {
                    if known.insert(facts.tuple(at).to_vec()) {
                        once.push(facts.tuple(at), facts.value(at), facts.spans.get(at).copied());
                    }
                }
                *facts = Arc::new(once);
            }
        }
    }

    /// In `addmult` contributions are summed up to 1: the sums stand in a relation of their own, and the relation itself is
    /// the smaller of 1 and them.
    pub(super) fn clamp_sums(&mut self) {
        for at in 0..self.draft.program.tensors.len() {
            let tensor = self.draft.program.tensors[at].clone();
            if tensor.kind != Kind::AddMult || tensor.combine != Combine::Sum {
                continue;
            }
            let id = TensorId(at as u32);
            let span = tensor.span;
            let mut name = format!("{}_sum", tensor.name);
            while self.names.tensors.contains_key(&name) {
                name.push('\'');
            }
            let sums = Tensor { name, kind: Kind::Real, ..tensor.clone() };
            let sums = self.push_tensor(sums);
            let mut notes: Vec<Alone> = Vec::new();
            for equation in self.draft.program.equations.iter_mut().filter(|equation| equation.tensor == id) {
                equation.tensor = sums;
            }
            for note in &mut self.draft.alone {
                if note.tensor == id {
                    notes.push(Alone { tensor: sums, ..*note });
                }
            }
            self.draft.alone.extend(notes);
            let left: Vec<_> = (0..tensor.places.len())
                .map(|place| {
                    let index = self.fresh_index("_", span, super::IndexNote::default());
                    for tensor in [id, sums] {
                        self.draft.alone.push(Alone { index, tensor, place, query: false, span });
                    }
                    index
                })
                .collect();
            let head: Vec<IndexFn> = left.iter().copied().map(IndexFn::Index).collect();
            let places = head.iter().cloned().map(Argument::At).collect();
            let read = Expr::Read(Read::new(sums, places, Otherwise::Absent, span));
            let arguments = vec![Expr::Number(1.0), read];
            let call = Call { function: Function::Min, arguments, when: When::default(), span };
            let body = Expr::Call(Box::new(call));
            let terms = vec![Term { over: Vec::new(), when: When::default(), body }];
            let (head_span, sign_span, node) = (span, span, Stamp::default());
            let clamped = Equation { tensor: id, head, left, terms, node, span, head_span, sign_span };
            self.push_equation(clamped);
            let own = &mut self.draft.program.tensors[at];
            own.given.clear();
            own.role = Role::Computed;
        }
    }
}
