//! The tensors of a program, one for each version of a name, and what is learned.

use std::collections::HashSet;

use super::Context;
use crate::ast::{self, RightSide, Sign, Span, StatementKind};
use crate::error::{Code, Refusal};
use crate::names::TensorName;
use crate::program::{Action, Argument, Combine, Kind, Place, Program, Role, Start, Style, Tensor, TensorId};

impl<'a> Context<'a> {
    /// Makes a tensor for every name, in order of first appearance, and one more for each
    /// redefinition.
    pub(super) fn make_tensors(&mut self, tree: &'a ast::Program) {
        let mut names: Vec<(&'a String, &'a TensorName)> = self.names.tensors.iter().collect();
        names.sort_by_key(|(_, tensor)| tensor.first.start);
        for (name, tensor) in names {
            self.make_version(name, tensor, 0, tensor.first);
        }
        for statement in &tree.statements {
            if let StatementKind::Equation { head, sign: Sign::Redefine, .. } = &statement.kind
                && let Some((name, tensor)) = self.names.tensors.get_key_value(&head.name.text)
            {
                let version = self.versions.get(name.as_str()).map_or(0, Vec::len) as u32;
                self.make_version(name, tensor, version, head.span);
            }
        }
    }

    fn make_version(&mut self, name: &'a str, info: &TensorName, version: u32, span: Span) {
        let asked = self.options.semiring.as_ref().filter(|asked| asked.below.contains(name));
        let semiring = asked.filter(|_| info.style == Style::Round && by_rules(info)).map(|asked| asked.kind);
        let kind = semiring.unwrap_or(info.kind);
        // A redefinition says the whole value anew, whatever the first version combined by: by a sum, of which a Boolean
        // relation says whether it is above 0.
        let combine = match (version, kind, info.style) {
            (0, ..) => semiring.map_or(info.combine, combine_of),
            (_, Kind::Bool, Style::Round) => Combine::Exists,
            _ => Combine::Sum,
        };
        let place = Place { domain: None, limit: None, star: false };
        let role = if version > 0 { Role::Computed } else { role(info) };
        let undeclared_start = role == Role::Parameter && info.parameter.is_none();
        self.push_tensor(Tensor {
            name: name.to_owned(),
            version,
            hidden: false,
            style: info.style,
            kind,
            combine,
            places: vec![place; info.rank],
            role,
            given: Vec::new(),
            start: undeclared_start.then_some(Start::Glorot),
            span,
        });
        let id = TensorId(self.draft.program.tensors.len() as u32 - 1);
        self.versions.entry(name).or_default().push(id);
    }

    pub(super) fn push_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.draft.program.tensors.push(tensor);
        TensorId(u32::try_from(self.draft.program.tensors.len() - 1).unwrap_or(u32::MAX))
    }

    /// What each version of a tensor is: a redefinition has an equation of its own, and the
    /// version before it may be data alone.
    pub(super) fn settle_roles(&mut self) {
        let program = &mut self.draft.program;
        let computed: HashSet<TensorId> = program.equations.iter().map(|equation| equation.tensor).collect();
        for (at, tensor) in program.tensors.iter_mut().enumerate() {
            let has_equation = computed.contains(&TensorId(at as u32));
            tensor.role = match tensor.role {
                Role::Computed | Role::Data if has_equation => Role::Computed,
                Role::Computed | Role::Data if tensor.given.is_empty() && tensor.style == Style::Round => {
                    Role::Empty
                }
                // Only redefinitions follow, and nothing stands before them.
                Role::Computed if tensor.given.is_empty() => Role::Missing,
                Role::Computed | Role::Data => Role::Data,
                other => other,
            };
        }
    }

    /// Settings given as statements.
    pub(super) fn settings(&mut self, tree: &ast::Program) {
        let mut said: Vec<(&str, f64, Span)> = Vec::new();
        for statement in &tree.statements {
            let StatementKind::Directive(directive) = &statement.kind else { continue };
            let number = directive.arguments.iter().flatten().find_map(|argument| argument.value.number());
            let name = directive.name.text.as_str();
            if let (Some(number), "tol" | "rounds" | "seed") = (number, name) {
                // Of two the order of statements would choose one.
                let other = said.iter().find(|(known, value, _)| *known == name && *value != number.value);
                if let Some((.., before)) = other {
                    let message = format!("`@{name}` is given twice");
                    let report = Refusal::new(Code::BadArgument, directive.span, message);
                    let report = report.label(*before, "here it says something else");
                    self.refuse(report.help("keep one of them: it holds for the whole program"));
                    continue;
                }
                said.push((name, number.value, directive.span));
            }
            let whole = number.and_then(ast::Number::whole);
            let settings = &mut self.draft.program.settings;
            match name {
                "tol" => settings.tolerance = number.map_or(settings.tolerance, |number| number.value),
                "rounds" => settings.rounds = whole.unwrap_or(settings.rounds),
                "seed" => settings.seed = whole.unwrap_or(settings.seed),
                _ => {}
            }
        }
    }

    /// Tensors that `@const` names.
    fn constants(&self, tree: &ast::Program) -> Vec<TensorId> {
        let statements = tree.statements.iter().filter_map(|statement| match &statement.kind {
            StatementKind::Directive(directive) if directive.name.text == "const" => Some(directive),
            _ => None,
        });
        let arguments = statements.flat_map(|directive| directive.arguments.iter().flatten());
        let names = arguments.filter_map(|argument| match &argument.value {
            ast::Value::Name(name) => Some(name.text.as_str()),
            _ => None,
        });
        names.filter_map(|name| self.versions.get(name)).flatten().copied().collect()
    }

    /// Under `@minimize`, an undefined square tensor below the goal is a parameter (N11).
    pub(super) fn learned(&mut self, tree: &ast::Program) {
        self.draft.program.settings.constant = self.constants(tree);
        let mut goals = Vec::new();
        for action in &self.draft.program.actions {
            if let Action::Query(query) = action
                && query.directives.minimize.is_some()
            {
                goals.push(query.tensor);
            }
        }
        let mut seen: HashSet<TensorId> = goals.iter().copied().collect();
        while let Some(goal) = goals.pop() {
            let program = &mut self.draft.program;
            let declared = declared(program, goal);
            if let Some(tensor) = program.tensors.get_mut(goal.0 as usize)
                && tensor.role == Role::Missing
            {
                tensor.role = Role::Parameter;
                tensor.start = Some(Start::Glorot);
                let message = format!("`{}` has no data and is learned", tensor.name);
                let help = format!("declare it: `{declared} ~ glorot()`");
                self.draft
                    .warnings
                    .push(Refusal::new(Code::ImplicitParameter, tensor.span, message).help(help));
            }
            for needed in program.reads_of(goal) {
                if seen.insert(needed) {
                    goals.push(needed);
                }
            }
        }
    }
}

/// A tensor as a declaration would name it, with the indices that its first reading has.
fn declared(program: &Program, id: TensorId) -> String {
    let tensor = program.tensor(id);
    let mut indices: Option<Vec<&str>> = None;
    for equation in &program.equations {
        equation.visit_reads(&mut |read, _| {
            if read.tensor == id && indices.is_none() {
                let alone =
                    |argument: &Argument| Some(program.index(argument.function()?.alone()?).name.as_str());
                let names: Option<Vec<&str>> = read.arguments.iter().map(alone).collect();
                indices = names.filter(|names| !names.contains(&"_"));
            }
        });
    }
    let places = tensor.places.len();
    let indices = match indices {
        Some(indices) => indices.iter().map(|name| (*name).to_owned()).collect(),
        None if places <= 3 => ["i", "j", "k"].iter().take(places).map(|name| (*name).to_owned()).collect(),
        None => (1..=places).map(|place| format!("i{place}")).collect::<Vec<String>>(),
    };
    if places == 0 { tensor.name.clone() } else { format!("{}[{}]", tensor.name, indices.join(", ")) }
}

/// Whether rules make the relation, and no aggregator: then a semiring of a query applies to it.
fn by_rules(info: &TensorName) -> bool {
    let rules = matches!(info.combine, Combine::Exists) || info.kind != Kind::Real;
    rules || !info.computed || info.sign.is_none_or(|(sign, _)| sign == Sign::Equal)
}

/// The ⊕ of a type, as rules of relations have it.
pub(super) fn combine_of(kind: Kind) -> Combine {
    match kind {
        Kind::Bool => Combine::Exists,
        Kind::Count | Kind::Real | Kind::AddMult => Combine::Sum,
        Kind::Prob | Kind::TopK(_) => Combine::Proofs,
        Kind::Tropical => Combine::Min,
        Kind::MaxTimes | Kind::MaxMin => Combine::Max,
    }
}

fn role(info: &TensorName) -> Role {
    if info.parameter.is_some() {
        Role::Parameter
    } else if info.computed {
        Role::Computed
    } else if info.given {
        Role::Data
    } else if info.style == Style::Round {
        Role::Empty
    } else if info.declared {
        Role::Parameter
    } else {
        Role::Missing
    }
}

/// The number that an equation's right side is, as it is written and with its sign.
pub(super) fn plain_number(right: &RightSide) -> Option<(&ast::Number, f64)> {
    let RightSide::Expr { expr, guards } = right else { return None };
    if !guards.is_empty() {
        return None;
    }
    match &expr.kind {
        ast::ExprKind::Number(number) => Some((number, number.value)),
        ast::ExprKind::Negate(inner) => match &inner.kind {
            ast::ExprKind::Number(number) => Some((number, -number.value)),
            _ => None,
        },
        _ => None,
    }
}
