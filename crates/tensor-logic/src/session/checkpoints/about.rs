//! Whose state it is: what the outcome of a `@minimize` hangs on, each part as a digest, so that a state of another
//! learning is refused and the refusal can say what is different.
//!
//! Rather too much than too little: all statements but queries and writes, all data and domains, the start of every parameter
//! that the loss needs. Comments, blanks and other queries are no part of it, unless they change a domain.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ast::{self, Span, StatementKind};
use crate::engine::Parameters;
use crate::lex::lex;
use crate::program::{Program, Range, Role, Tensor, TensorId};
use crate::value::{Const, Domain, Symbols};

/// What a learning is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// The query, word by word.
    query: String,
    /// The seed, and how it is evaluated.
    settings: BTreeMap<String, String>,
    /// The statements, in order.
    statements: String,
    /// The elements that are given to each tensor, and its domains.
    data: BTreeMap<String, String>,
    /// The values of indices.
    indices: String,
    /// Where each parameter starts.
    start: BTreeMap<String, String>,
}

/// What is learned: the program as text, as a tree and in core form, and the query.
pub(in crate::session) struct Learning<'a> {
    pub text: &'a str,
    pub tree: &'a ast::Program,
    pub program: &'a Program,
    pub goal: TensorId,
    /// The directive.
    pub span: Span,
    pub parameters: &'a Parameters,
}

impl Learning<'_> {
    /// The number of the `@minimize` among all that are asked for, from 1, and its query.
    pub(super) fn query(&self) -> (usize, Span) {
        let learns = |statement: &&ast::Statement| match &statement.kind {
            StatementKind::Query { directives, .. } => {
                directives.iter().any(|directive| directive.name.text == "minimize")
            }
            _ => false,
        };
        let queries = self.tree.statements.iter().filter(learns);
        let holds = |span: Span| span.start <= self.span.start && self.span.end <= span.end;
        let found = (1..).zip(queries).find(|(_, statement)| holds(statement.span));
        found.map_or((0, self.span), |(number, statement)| (number, statement.span))
    }

    /// What it hangs on, with what is set beside the program.
    pub(super) fn about(&self, set: &[(&str, String)]) -> About {
        let mut settings: BTreeMap<String, String> =
            set.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let known = &self.program.settings;
        settings.insert("seed".to_owned(), known.seed.to_string());
        settings.insert("@tol".to_owned(), format!("{:e}", known.tolerance));
        settings.insert("@rounds".to_owned(), known.rounds.to_string());
        About {
            query: self.words(self.query().1).join(" "),
            settings,
            statements: self.statements(),
            data: self.data(),
            indices: self.indices(),
            start: self.start(),
        }
    }

    /// The words of a part of the text, without blanks and comments.
    fn words(&self, span: Span) -> Vec<&str> {
        let part = self.text.get(span.start..span.end).unwrap_or("");
        let tokens = lex(part).tokens;
        tokens.iter().filter_map(|token| part.get(token.span.start..token.span.end)).collect()
    }

    fn statements(&self) -> String {
        let mut digest = Digest::default();
        for statement in &self.tree.statements {
            if !matches!(statement.kind, StatementKind::Query { .. } | StatementKind::Write { .. }) {
                let words = self.words(statement.span);
                digest.number(words.len() as u64);
                words.iter().for_each(|word| digest.text(word));
            }
        }
        digest.end()
    }

    fn data(&self) -> BTreeMap<String, String> {
        let visible = self.program.tensors.iter().filter(|tensor| !tensor.hidden);
        visible
            .map(|tensor| {
                (named(tensor), {
                    let mut digest = Digest::default();
                    let symbols = &self.program.symbols;
                    for place in &tensor.places {
                        digest.domain(symbols, place.domain.as_ref());
                        digest.domain(symbols, place.limit.as_ref());
                    }
                    let domains = tensor.domains();
                    for given in &tensor.given {
                        given.each(&domains, |tuple, value| {
                            tuple.iter().for_each(|constant| digest.constant(symbols, *constant));
                            digest.number(value.to_bits());
                        });
                    }
                    digest.end()
                })
            })
            .collect()
    }

    fn indices(&self) -> String {
        let mut digest = Digest::default();
        for equation in &self.program.equations {
            if self.program.tensor(equation.tensor).hidden && equation.tensor != self.goal {
                continue;
            }
            digest.number(equation.left.len() as u64);
            let terms = equation.terms.iter().flat_map(|term| &term.over);
            for index in equation.left.iter().chain(terms) {
                match &self.program.index(*index).range {
                    Range::Domain(domain) => digest.domain(&self.program.symbols, Some(domain)),
                    Range::Tuples => digest.number(1),
                    Range::Computed => digest.number(2),
                }
            }
        }
        digest.end()
    }

    fn start(&self) -> BTreeMap<String, String> {
        let needed = self.program.needs(&[self.goal]);
        let parameters = needed.iter().filter(|id| self.program.tensor(**id).role == Role::Parameter);
        let values = parameters.filter_map(|id| Some((id, self.parameters.get(id)?)));
        let digested = values.map(|(id, values)| {
            let mut digest = Digest::default();
            values.iter().for_each(|value| digest.number(value.to_bits()));
            (named(self.program.tensor(*id)), digest.end())
        });
        digested.collect()
    }
}

fn named(tensor: &Tensor) -> String {
    match tensor.version {
        0 => tensor.name.clone(),
        version => format!("{} ({version})", tensor.name),
    }
}

impl About {
    /// How it differs from what a state was kept of, in words.
    pub(super) fn differs(&self, kept: &About) -> Option<String> {
        if self.query != kept.query {
            let (here, there) = apart(&self.query, &kept.query);
            return Some(format!("there the query says `{there}`, and here `{here}`"));
        }
        for (name, value) in &self.settings {
            let before = kept.settings.get(name).map_or("not known", String::as_str);
            if before != value {
                return Some(format!("there {name} is {before}, and here {value}"));
            }
        }
        if self.statements != kept.statements {
            return Some("the statements of the program are not the same".to_owned());
        }
        let other = |ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>| {
            let names = ours.keys().chain(theirs.keys());
            names.into_iter().find(|name| ours.get(*name) != theirs.get(*name)).cloned()
        };
        if let Some(name) = other(&self.data, &kept.data) {
            return Some(format!("`{name}` does not have the same data"));
        }
        if let Some(name) = other(&self.start, &kept.start) {
            return Some(format!("`{name}` does not start with the same values"));
        }
        (self != kept).then(|| "indices do not have the same values".to_owned())
    }
}

/// The words around the first in which two texts differ.
fn apart(one: &str, other: &str) -> (String, String) {
    let same = one.split(' ').zip(other.split(' ')).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let words: Vec<&str> = text.split(' ').skip(same.saturating_sub(2)).take(5).collect();
        calculemus_base::word::shortened(&words.join(" "))
    };
    (around(one), around(other))
}

/// A digest of numbers and words.
#[derive(Default)]
struct Digest(blake3::Hasher);

impl Digest {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn constant(&mut self, symbols: &Symbols, constant: Const) {
        match constant {
            Const::Int(value) => {
                self.number(0);
                self.number(value.cast_unsigned());
            }
            Const::Symbol(symbol) => {
                self.number(1);
                self.text(symbols.name(symbol));
            }
        }
    }

    fn domain(&mut self, symbols: &Symbols, domain: Option<&Domain>) {
        match domain {
            None => self.number(2),
            Some(Domain::Interval { from, to }) => {
                self.number(3);
                self.number(from.cast_unsigned());
                self.number(to.cast_unsigned());
            }
            Some(listed) => {
                self.number(4);
                self.number(listed.len() as u64);
                listed.values().for_each(|value| self.constant(symbols, value));
            }
        }
    }

    fn end(self) -> String {
        self.0.finalize().to_hex().chars().take(32).collect()
    }
}
