//! The program beside the relations: two rounds of messages between facts and the constants in them, and for each query a
//! layer over what it names, its sample, and the facts that name nothing (as in Ståhlberg, Bonet and Geffner: Learning
//! general optimal policies with graph neural networks, 2022, where a fact is a node of its own).

use std::fmt::Write;

use super::Sample;
use super::relations::{Relation, Relations};

/// How often facts and constants exchange messages.
const ROUNDS: usize = 2;

/// The program.
pub(super) fn program(name: &str, samples: &[Sample], relations: &mut Relations) -> String {
    let mut page = Page { text: String::new(), relations };
    page.data(name, samples);
    let nodes = page.nodes();
    let queries = page.queries(nodes.as_deref());
    page.learning(samples.len(), &queries);
    page.text
}

struct Page<'a> {
    text: String,
    relations: &'a mut Relations,
}

impl Page<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = writeln!(self.text, "{line}");
    }

    fn fresh(&mut self, wanted: &str) -> String {
        self.relations.names.fresh(wanted)
    }

    fn data(&mut self, name: &str, samples: &[Sample]) {
        let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
        let last = samples.len().saturating_sub(1);
        self.line(format_args!(
            "# {name}: what is asked of a sample, from its facts. Facts and the constants in them exchange messages."
        ));
        if samples.len() >= HELD_OUT_FROM {
            self.line(format_args!(
                "# The best epoch is kept: the one with the lowest loss over the samples that `valid` holds out."
            ));
        }
        self.line(format_args!("s : 0..{last}\nd, e : 8"));
        let most = self.relations.facts.iter().chain(&self.relations.targets).map(|of| of.arity).max();
        if self.relations.nodes > 0 {
            let places: String = (0..most.unwrap_or(0)).map(|at| format!(", {}", number(at))).collect();
            let (nodes, node) = (self.relations.nodes, self.relations.node_name.clone());
            self.line(format_args!("n{places} : {nodes}\n{node} = \"{node}.csv\""));
        }
        for relation in self.relations.facts.iter().chain(&self.relations.targets) {
            for (index, size) in relation.indices.iter().zip(relation.shape.iter().flatten()) {
                // A string takes everything.
                let _ = writeln!(self.text, "{index} : {size}");
            }
            let values = if relation.shape.is_some() { " as values" } else { "" };
            // A string takes everything.
            let _ = writeln!(self.text, "{0} = \"{0}.csv\"{values}", relation.name);
        }
        if !self.relations.known.is_empty() {
            let known = self.relations.known_name.clone();
            self.line(format_args!("{known} = \"{known}.csv\""));
        }
    }

    /// What the constants are after some rounds; `None` where there are none.
    fn nodes(&mut self) -> Option<String> {
        if self.relations.nodes == 0 {
            return None;
        }
        let facts: Vec<Relation> = self.relations.facts.iter().filter(|of| of.arity > 0).cloned().collect();
        let node = self.relations.node_name.clone();
        let (there, start, mut below) = (self.fresh("There"), self.fresh("Start"), self.fresh("H0"));
        self.line(format_args!(
            "\n# The constants of a sample by their numbers in it.\n{there}(s, n) <- {node}(s, _, n)"
        ));
        let mut numbered = Vec::new();
        for of in &facts {
            numbered.push(self.numbered(of));
        }
        self.line(format_args!("{start}[d] ~ normal(0, 1)\n{below}[s, n, d] = {there}(s, n) {start}[d]"));
        if !self.relations.known.is_empty() {
            let (known, last) = (self.relations.known_name.clone(), self.relations.known.len() - 1);
            let (named, own) = (self.fresh("Named"), self.fresh("Embedding"));
            self.line(format_args!(
                "# Who is known by name.\nw : 0..{last}\n{own}[w, d] ~ normal(0, 1)\n\
                 {named}(s, n, w) <- {node}(s, x, n), {known}(x, w)\n\
                 {below}[s, n, d] = {named}(s, n, w) {own}[w, d]"
            ));
        }
        for round in 1..=ROUNDS {
            below = self.round(round, &facts, &numbered, &below);
        }
        Some(below)
    }

    /// The same relation over the numbers of the constants.
    fn numbered(&mut self, of: &Relation) -> String {
        let name = self.fresh(&format!("N_{}", of.name));
        let (node, within) = (self.relations.node_name.clone(), of.within());
        let head = tuple(&name, of.arity, &number, &within);
        let constant = |at: usize| format!("x{}", at + 1);
        let read = tuple(&of.name, of.arity, &constant, &within);
        let nodes = (0..of.arity).map(|at| format!("{node}(s, {}, {})", constant(at), number(at)));
        let nodes: Vec<String> = nodes.collect();
        match of.shape {
            None => self.line(format_args!("{head} <- {read}, {}", nodes.join(", "))),
            Some(_) => self.line(format_args!("{head} += {read} {}", nodes.join(" "))),
        }
        name
    }

    /// A round: each fact hears those whom it names, and they hear it.
    fn round(&mut self, round: usize, facts: &[Relation], numbered: &[String], below: &str) -> String {
        self.line(format_args!("\n# Round {round}: a fact hears whom it names, and they hear it."));
        let own = self.fresh(&format!("Own{round}"));
        let (sum, above) = (self.fresh(&format!("Sum{round}")), self.fresh(&format!("H{round}")));
        self.line(format_args!("{own}[e, d] ~ glorot()\n{sum}[s, n, e] = {own}[e, d] {below}[s, n, d]"));
        for (of, name) in facts.iter().zip(numbered) {
            let mut said = self.linear(&format!("{round}_{}", of.name), of.arity, below);
            said.push(self.bias(&format!("{round}_{}", of.name), of, name));
            for at in 0..of.arity {
                let to = format!("{round}_{}_{}", of.name, at + 1);
                let (heard, out) = (self.fresh(&format!("Heard{to}")), self.fresh(&format!("Out{to}")));
                // Whoever hears is `n`, the others have numbers.
                let place = |other: usize| if other == at { "n".to_owned() } else { number(other) };
                let said: Vec<String> = said.iter().map(|term| term(&place)).collect();
                let (guard, said) = (of.there(name, &place), said.join(" + "));
                self.line(format_args!(
                    "{heard}[s, n, e] += {guard} tanh({said})\n{out}[e, d] ~ glorot()\n\
                     {sum}[s, n, e] = {out}[e, d] {heard}[s, n, d]"
                ));
            }
        }
        self.line(format_args!("{above}[s, n, e] = tanh({sum}[s, n, e])"));
        above
    }

    /// A matrix for each place, applied to all constants: the terms of those that stand at the places.
    fn linear(&mut self, of: &str, arity: usize, below: &str) -> Vec<Term> {
        let mut terms: Vec<Term> = Vec::new();
        for at in 0..arity {
            let (weight, name) =
                (self.fresh(&format!("In{of}_{}", at + 1)), self.fresh(&format!("From{of}_{}", at + 1)));
            self.line(format_args!(
                "{weight}[e, d] ~ glorot()\n{name}[s, n, e] = {weight}[e, d] {below}[s, n, d]"
            ));
            terms.push(Box::new(move |place| format!("{name}[s, {}, e]", place(at))));
        }
        terms
    }

    /// What a fact says by being there, or by its value.
    fn bias(&mut self, suffix: &str, of: &Relation, name: &str) -> Term {
        let (bias, within) = (self.fresh(&format!("Bias{suffix}")), of.within());
        self.line(format_args!("{bias}[e{within}] ~ normal(0, 0.3)"));
        let (arity, has_values, name) = (of.arity, of.shape.is_some(), name.to_owned());
        Box::new(move |place| match has_values {
            true => format!("{} {bias}[e{within}]", tuple(&name, arity, place, &within)),
            false => format!("{bias}[e]"),
        })
    }

    /// For each relation of targets its errors, and what is counted as right.
    fn queries(&mut self, nodes: Option<&str>) -> Vec<Query> {
        let targets = self.relations.targets.clone();
        targets.iter().map(|of| self.query(of, nodes)).collect()
    }

    fn query(&mut self, of: &Relation, nodes: Option<&str>) -> Query {
        let suffix = of.name.strip_prefix("Target_").unwrap_or(&of.name).to_owned();
        self.line(format_args!("\n# What is asked."));
        let target = if of.arity > 0 { self.numbered(of) } else { of.name.clone() };
        let mut named = |what: &str| self.relations.names.fresh(&format!("{what}_{suffix}"));
        let (asked, last, whole) = (named("Asked"), named("Last"), named("Whole"));
        let (score, answer, error) = (named("Score"), named("Answer"), named("Error"));
        let here = tuple(&asked, of.arity, &number, "");
        self.line(format_args!("{here} <- {}", of.there(&target, &number)));
        let mut said = match nodes {
            Some(nodes) => self.linear(&format!("_{suffix}"), of.arity, nodes),
            None => Vec::new(),
        };
        let bias = self.fresh(&format!("Bias_{suffix}"));
        self.line(format_args!("{bias}[e] ~ normal(0, 0.3)\n{whole}[s, e] = {bias}[e]"));
        if let Some(nodes) = nodes {
            let (pool, all) = (self.fresh(&format!("Pool_{suffix}")), self.fresh(&format!("All_{suffix}")));
            let node = self.relations.node_name.clone();
            self.line(format_args!(
                "{pool}[s, d] avg= {node}(s, _, n) {nodes}[s, n, d]\n\
                 {all}[e, d] ~ glorot()\n{whole}[s, e] = {all}[e, d] {pool}[s, d]"
            ));
        }
        let alone: Vec<Relation> = self.relations.facts.iter().filter(|of| of.arity == 0).cloned().collect();
        for fact in &alone {
            let (bias, read) = (self.fresh(&format!("Bias_{suffix}_{}", fact.name)), fact.within());
            let fact = tuple(&fact.name, 0, &number, &read);
            self.line(format_args!(
                "{bias}[e{read}] ~ normal(0, 0.3)\n{whole}[s, e] = {fact} {bias}[e{read}]"
            ));
        }
        said.push(Box::new(move |_| format!("{whole}[s, e]")));
        let said: Vec<String> = said.iter().map(|term| term(&number)).collect();
        let ((open, close), within) = (of.function(), of.within());
        let with = |name: &str| tuple(name, of.arity, &number, &within);
        let (scores, answers, targets, errors) = (with(&score), with(&answer), with(&target), with(&error));
        self.line(format_args!(
            "{last}[e{within}] ~ normal(0, 0.3)\n\
             {scores} += {here} {last}[e{within}] tanh({})\n{answers} += {open}{scores}{close}\n\
             {errors} += ({answers} - {targets})^2",
            said.join(" + ")
        ));
        let right = of.is_yes_or_no().then(|| {
            let right = self.fresh(&format!("Right_{suffix}"));
            (with(&right), targets, answers)
        });
        Query { error: errors, suffix, right, count: of.tuples() }
    }

    fn learning(&mut self, samples: usize, queries: &[Query]) {
        self.line(format_args!("\n# What is learned."));
        let loss = self.fresh("Loss");
        match queries {
            [query] => {
                let error = query.error.clone();
                self.line(format_args!("{loss} avg= {error}"));
            }
            queries => {
                let mut parts = Vec::new();
                for query in queries {
                    let part = self.fresh(&format!("Loss_{}", query.suffix));
                    self.line(format_args!("{part} avg= {}", query.error));
                    parts.push(part);
                }
                self.line(format_args!("{loss} = {}", parts.join(" + ")));
            }
        }
        let size = (samples / 5).clamp(1, 32);
        let batch = if samples > 1 {
            format!("batch=s, size={size}, shuffle=1, epochs=100")
        } else {
            "steps=200".to_owned()
        };
        let valid = if samples >= HELD_OUT_FROM { ", valid=0.2, patience=20" } else { "" };
        self.line(format_args!("{loss}? @minimize(opt=adam, lr=0.01, clip=1, {batch}{valid})"));
        for query in queries {
            let Some((right, target, answer)) = &query.right else { continue };
            let accuracy = self.fresh(&format!("Accuracy_{}", query.suffix));
            let bound = right.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')')).unwrap_or("s");
            self.line(format_args!(
                "\n# Of all queries, those that it has learned from among them.\n\
                 {right} <- {target} > 0.5, {answer} > 0.5\n{right} <- {target} <= 0.5, {answer} <= 0.5\n\
                 {accuracy} = count[{bound}]({right}) / {}\n{accuracy}?",
                query.count
            ));
        }
    }
}

/// A term, by the indices of the constants at the places.
type Term = Box<dyn Fn(&dyn Fn(usize) -> String) -> String>;

/// From how many samples on a fifth of them is held out.
const HELD_OUT_FROM: usize = 5;

/// What the loss takes from a relation of targets.
struct Query {
    error: String,
    suffix: String,
    /// What is right, what is asked and what is answered, where answers are yes and no.
    right: Option<(String, String, String)>,
    count: usize,
}

impl Relation {
    /// That a tuple is there, whatever its value, under a name of the relation.
    fn there(&self, name: &str, place: &dyn Fn(usize) -> String) -> String {
        tuple(name, self.arity, place, &", _".repeat(self.indices.len()))
    }

    /// The indices of its values, with commas before them.
    fn within(&self) -> String {
        self.indices.iter().map(|index| format!(", {index}")).collect()
    }

    /// What keeps answers between the least and the largest target.
    fn function(&self) -> (&'static str, &'static str) {
        match self.range() {
            (0.0.., ..=1.0) => ("sig(", ")"),
            (-1.0.., ..=1.0) => ("tanh(", ")"),
            _ => ("", ""),
        }
    }
}

/// `Name(s, x1, x2, rest)`.
fn tuple(name: &str, arity: usize, place: &dyn Fn(usize) -> String, rest: &str) -> String {
    let places: String = (0..arity).map(|at| format!(", {}", place(at))).collect();
    format!("{name}(s{places}{rest})")
}

/// The index of the number of a constant at a place.
fn number(at: usize) -> String {
    format!("n{}", at + 1)
}
