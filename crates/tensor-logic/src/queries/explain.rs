//! What a program is, before anything runs: domains, classes, equations with their sums, plans.
//!
//! Enter at [`explain`], and at [`Explanation::with_plan`] and [`Explanation::with_measured`] for what evaluates it. The
//! tensors of queries have no names and are not listed; in a plan their queries' texts stand for them.

use std::fmt::Write;

use crate::answer::json;
use crate::domains;
use crate::error::Places;
use crate::profile::{Component as Planned, Profile, component_json, label, words};
use crate::program::{Class, Component, Equation, Moving, Program, Role, Style, Tensor, TensorId};
use crate::show;
use crate::value::Symbols;

/// What is said of a program.
#[derive(Debug)]
pub struct Explanation<'p> {
    program: &'p Program,
    equations: Vec<Explicit<'p>>,
    /// The components that have names.
    components: Vec<&'p Component>,
    lines: Vec<Line<'p>>,
    places: Places<'p>,
    /// Who would evaluate it.
    plan: Option<&'p Profile>,
    /// Who did.
    measured: Option<&'p Profile>,
}

/// The included file in which a line stands, and its number there.
type Line<'p> = (Option<&'p str>, usize);

/// A line as people read it.
fn shown(line: Line<'_>) -> String {
    line.0.map_or_else(|| line.1.to_string(), |file| format!("{file}:{}", line.1))
}

/// A statement with its sums.
#[derive(Debug)]
struct Explicit<'p> {
    line: Line<'p>,
    text: String,
    explicit: String,
}

/// Explains a program.
pub fn explain<'p>(program: &'p Program, text: &'p str) -> Explanation<'p> {
    let places = Places::new(text);
    let visible = |id: &TensorId| program.tensors.get(id.0 as usize).is_some_and(|tensor| !tensor.hidden);
    let line = |offset: usize| places.numbered(places.row(offset));
    let mut last: Option<&Equation> = None;
    let mut equations = Vec::new();
    for equation in program.equations.iter().filter(|equation| visible(&equation.tensor)) {
        // `concat` makes several equations of one statement.
        if last.replace(equation).is_some_and(|last| last.span == equation.span) {
            continue;
        }
        equations.push(Explicit {
            line: line(equation.span.start),
            text: text.get(equation.span.start..equation.span.end).unwrap_or("").to_owned(),
            explicit: show::explicit(program, text, equation),
        });
    }
    let named = |component: &&Component| component.tensors.iter().any(visible);
    let components = program.components.iter().filter(named).collect();
    let lines = program.tensors.iter().map(|tensor| line(tensor.span.start)).collect();
    Explanation { program, equations, components, lines, places, plan: None, measured: None }
}

/// The word for what a tensor is.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Data => "data",
        Role::Parameter => "parameter",
        Role::Computed => "computed",
        Role::Empty | Role::Missing => "empty",
    }
}

fn class_name(class: &Class) -> &'static str {
    match class {
        Class::Plain => "plain",
        Class::Stepped(_) => "stepped",
        Class::Closure => "closure",
        Class::Numeric => "numeric",
    }
}

fn style_name(style: Style) -> &'static str {
    match style {
        Style::Square => "square",
        Style::Round => "round",
    }
}

impl<'p> Explanation<'p> {
    /// The same with a plan (see [`crate::plan`]).
    #[must_use]
    pub fn with_plan(self, plan: &'p Profile) -> Explanation<'p> {
        Explanation { plan: Some(plan), ..self }
    }

    /// The same with what an engine did.
    #[must_use]
    pub fn with_measured(self, measured: &'p Profile) -> Explanation<'p> {
        Explanation { measured: Some(measured), ..self }
    }

    /// What is said of the tensors of a component.
    fn of(&self, profile: Option<&'p Profile>, component: &Component) -> Vec<&'p Planned> {
        let own: Vec<String> = component.tensors.iter().map(|id| label(self.program, *id)).collect();
        let all = profile.map_or(&[][..], |profile| profile.components.as_slice()).iter();
        all.filter(|planned| planned.tensors.iter().any(|name| own.contains(name))).collect()
    }

    /// What is said of others: what is given, what a query is, gradients, and rules that serve others.
    fn others(&self, profile: Option<&'p Profile>) -> Vec<&'p Planned> {
        let named: Vec<String> = self
            .components
            .iter()
            .flat_map(|component| &component.tensors)
            .map(|id| label(self.program, *id))
            .collect();
        let all = profile.map_or(&[][..], |profile| profile.components.as_slice()).iter();
        all.filter(|planned| !planned.tensors.iter().any(|name| named.contains(name))).collect()
    }

    /// The tensors with names, and the lines where they first stand. The name of a size is none.
    fn tensors(&self) -> impl Iterator<Item = (&Tensor, Line<'p>)> {
        let mut read = vec![false; self.program.tensors.len()];
        for equation in &self.program.equations {
            equation.visit_reads(&mut |element, _| {
                if let Some(slot) = read.get_mut(element.tensor.0 as usize) {
                    *slot = true;
                }
            });
        }
        let all = self.program.tensors.iter().zip(self.lines.iter().copied()).zip(read);
        let listed =
            all.filter(|((tensor, _), read)| !tensor.hidden && (*read || tensor.role != Role::Missing));
        listed.map(|(entry, _)| entry)
    }

    fn names(&self, tensors: &[TensorId]) -> Vec<&str> {
        let entries = tensors.iter().filter_map(|id| self.program.tensors.get(id.0 as usize));
        entries.filter(|tensor| !tensor.hidden).map(|tensor| tensor.name.as_str()).collect()
    }

    /// The places that move in a stepped component: tensor, place, and whether upwards.
    fn moves(&self, component: &Component) -> Vec<(&str, Moving)> {
        let Class::Stepped(steps) = &component.class else { return Vec::new() };
        let places = steps
            .places
            .iter()
            .flat_map(|(id, moving)| moving.iter().map(move |moving| (self.program.name(*id), *moving)));
        places.collect()
    }

    /// The keys of the JSON document with their values.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let symbols = &self.program.symbols;
        let (mut tensors, mut components) = (String::new(), String::new());
        let (mut equations, mut plans) = (String::new(), String::new());
        json::list(&mut tensors, self.tensors(), |out, (tensor, line)| {
            tensor_json(out, symbols, tensor, line)
        });
        json::list(&mut components, &self.components, |out, component| {
            self.names_json(out, component);
            write(out, format_args!(", \"class\": \"{}\"}}", class_name(&component.class)));
        });
        json::list(&mut equations, &self.equations, |out, equation| {
            out.push('{');
            json::line(out, Some(equation.line));
            out.push_str(", \"text\": ");
            json::string(out, &equation.text);
            out.push_str(", \"explicit\": ");
            json::string(out, &equation.explicit);
            out.push('}');
        });
        let besides = self.besides();
        let named = self.components.iter().zip(1_u32..).map(Some).chain(besides.iter().map(|_| None));
        let mut others = besides.iter();
        json::list(&mut plans, named, |out, entry| {
            let Some((component, order)) = entry else {
                return others.next().into_iter().for_each(|names| self.besides_json(out, names));
            };
            self.names_json(out, component);
            let class = class_name(&component.class);
            write(out, format_args!(", \"order\": {order}, \"class\": \"{class}\", \"moves\": "));
            json::list(out, self.moves(component), |out, (name, moving)| {
                out.push_str("{\"tensor\": ");
                json::string(out, name);
                write(out, format_args!(", \"place\": {}, \"up\": {}}}", moving.place, moving.up));
            });
            self.planned_json(out, &self.of(self.plan, component), &self.of(self.measured, component));
        });
        vec![("tensors", tensors), ("components", components), ("equations", equations), ("plans", plans)]
    }

    /// The names of others, each once.
    fn besides(&self) -> Vec<&'p [String]> {
        let mut names: Vec<&[String]> = Vec::new();
        for planned in self.others(self.plan).into_iter().chain(self.others(self.measured)) {
            if !names.contains(&planned.tensors.as_slice()) {
                names.push(&planned.tensors);
            }
        }
        names
    }

    fn besides_json(&self, out: &mut String, names: &[String]) {
        out.push_str("{\"tensors\": ");
        json::list(out, names, |out, name| json::string(out, name));
        out.push_str(", \"order\": null, \"class\": null, \"moves\": []");
        let own = |all: Vec<&'p Planned>| -> Vec<&'p Planned> {
            all.into_iter().filter(|planned| planned.tensors == names).collect()
        };
        self.planned_json(out, &own(self.others(self.plan)), &own(self.others(self.measured)));
    }

    /// Who evaluates a component, and the closing brace.
    fn planned_json(&self, out: &mut String, planned: &[&Planned], measured: &[&Planned]) {
        out.push_str(", \"engine\": ");
        match measured.first().or(planned.first()) {
            Some(first) => json::string(out, first.executor.name()),
            None => out.push_str("null"),
        }
        out.push_str(", \"estimated\": ");
        json::list(out, planned, |out, each| component_json(out, &self.places, each));
        out.push_str(", \"measured\": ");
        json::list(out, measured, |out, each| component_json(out, &self.places, each));
        out.push('}');
    }

    fn names_json(&self, out: &mut String, component: &Component) {
        out.push_str("{\"tensors\": ");
        json::list(out, self.names(&component.tensors), json::string);
    }

    /// The same for people.
    pub fn text(&self) -> String {
        let symbols = &self.program.symbols;
        let mut out = String::from("Tensors\n");
        for (tensor, line) in self.tensors() {
            let domains = tensor.places.iter().map(|place| match &place.domain {
                Some(domain) => domains::show(domain, symbols),
                None => "any".to_owned(),
            });
            let domains = domains.collect::<Vec<_>>().join(", ");
            let (open, close) = if tensor.style == Style::Round { ('(', ')') } else { ('[', ']') };
            let places =
                if tensor.places.is_empty() { String::new() } else { format!("{open}{domains}{close}") };
            let (kind, role) = (tensor.kind.name(), role_name(tensor.role));
            write(
                &mut out,
                format_args!("  {}{places} : {kind}, {role}, line {}\n", tensor.name, shown(line)),
            );
        }
        out.push_str("\nEvaluation, in this order\n");
        for component in &self.components {
            let names = self.names(&component.tensors).join(", ");
            write(&mut out, format_args!("  {names}: {}", class_name(&component.class)));
            for (name, moving) in self.moves(component) {
                let way = if moving.up { "upwards" } else { "downwards" };
                write(&mut out, format_args!("; place {} of {name} moves {way}", moving.place));
            }
            out.push('\n');
            planned_text(&mut out, &self.of(self.plan, component), true);
            planned_text(&mut out, &self.of(self.measured, component), false);
        }
        for names in self.besides() {
            write(&mut out, format_args!("  {}\n", names.join(", ")));
            let own = |planned: &&&Planned| planned.tensors == names;
            let (plan, measured) = (self.others(self.plan), self.others(self.measured));
            planned_text(&mut out, &plan.iter().filter(own).copied().collect::<Vec<_>>(), true);
            planned_text(&mut out, &measured.iter().filter(own).copied().collect::<Vec<_>>(), false);
        }
        out.push_str("\nEquations with their sums\n");
        for equation in &self.equations {
            write(&mut out, format_args!("  {}: {}\n", shown(equation.line), equation.explicit));
        }
        out
    }
}

/// The lines of a plan, or of what was measured.
fn planned_text(out: &mut String, planned: &[&Planned], estimated: bool) {
    let word = if estimated { "" } else { "measured: " };
    for each in planned {
        for (at, line) in words(each, estimated).iter().enumerate() {
            write(out, format_args!("    {}{line}\n", if at == 0 { word } else { "  " }));
        }
    }
}

fn tensor_json(out: &mut String, symbols: &Symbols, tensor: &Tensor, line: Line<'_>) {
    out.push_str("{\"name\": ");
    json::string(out, &tensor.name);
    let (style, rank) = (style_name(tensor.style), tensor.places.len());
    let (kind, role) = (tensor.kind.name(), role_name(tensor.role));
    write(out, format_args!(", \"style\": \"{style}\", \"rank\": {rank}"));
    write(out, format_args!(", \"type\": \"{kind}\", \"role\": \"{role}\", \"domains\": "));
    json::list(out, &tensor.places, |out, place| match &place.domain {
        Some(domain) => json::domain(out, symbols, domain),
        None => out.push_str("null"),
    });
    out.push_str(", ");
    json::line(out, Some(line));
    out.push('}');
}

fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}
