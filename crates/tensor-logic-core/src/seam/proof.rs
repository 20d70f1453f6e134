//! Proofs: why a tuple is there.
//!
//! A [`Proof`] is a tree kept in one list, so that a proof of a hundred thousand steps needs no
//! deep recursion. The function `prove` of the crate `tensor-logic-reference` finds one of least height. Of what follows from
//! weighted facts there are [`ProbableProofs`]; an engine finds them as [`Derivations`], which know nothing of a text.

use std::collections::BTreeMap;

use crate::ast::Span;
use crate::error::Places;
use crate::program::{EquationId, IndexId, TensorId};
use crate::value::{Const, Tuple};

/// A proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    steps: Vec<Step>,
    root: usize,
    /// The probabilities of steps that hold by chance.
    weights: BTreeMap<usize, f64>,
}

/// The most probable proofs of a tuple, the most probable first.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbableProofs {
    /// Each proof, and how probable it is that all of its events are the case.
    pub proofs: Vec<(f64, Proof)>,
    /// Whether it is known that none was left out that is as probable as one of these.
    pub exact: bool,
}

/// One node of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is proved: `Ancestor(Alice, Charlie)`.
    pub atom: String,
    /// By what.
    pub kind: StepKind,
    /// The line of the fact or rule.
    pub line: usize,
    /// The file of that line, where it is an included one.
    pub file: Option<String>,
    /// What it follows from, in the order of the body: positions of other steps.
    pub from: Vec<usize>,
}

impl Step {
    /// Where it is said, as people read it: `line 7`, or `gcn.tl:7` in an included file.
    pub fn place(&self) -> String {
        match &self.file {
            None => format!("line {}", self.line),
            Some(file) => format!("{file}:{}", self.line),
        }
    }
}

/// What a step rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// A fact of the text.
    Fact,
    /// A rule.
    Rule,
    /// A file or a tensor.
    Data,
    /// That something is not there.
    Negation,
    /// A comparison or an assignment.
    Builtin,
}

impl StepKind {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Fact => "fact",
            StepKind::Rule => "rule",
            StepKind::Data => "data",
            StepKind::Negation => "negation",
            StepKind::Builtin => "builtin",
        }
    }
}

impl Proof {
    /// A proof of the step at `root`; the premises of a step are positions in `steps`.
    pub fn new(steps: Vec<Step>, root: usize) -> Proof {
        Proof { steps, root, weights: BTreeMap::new() }
    }

    /// The same, of steps whose lines are those of the whole text, with the lines of their files.
    #[must_use]
    pub fn placed(mut self, places: &Places<'_>) -> Proof {
        for step in &mut self.steps {
            let (file, line) = places.numbered(step.line);
            (step.file, step.line) = (file.map(str::to_owned), line);
        }
        self
    }

    /// The same, where some steps hold by chance: with so much probability each, whatever else holds.
    #[must_use]
    pub fn with_weights(self, weights: BTreeMap<usize, f64>) -> Proof {
        Proof { weights, ..self }
    }

    /// How probable it is that a step holds, where it is a weighted fact or the absence of one.
    pub fn weight(&self, at: usize) -> Option<f64> {
        self.weights.get(&at).copied()
    }

    /// The position of what is proved.
    pub fn root(&self) -> usize {
        self.root
    }

    /// A step.
    pub fn step(&self, at: usize) -> Option<&Step> {
        self.steps.get(at)
    }
}

/// The most probable derivations of a tuple from weighted facts, the most probable first.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivations {
    /// Each derivation, and how probable it is that all of its events are the case. Its first step is the tuple.
    pub derivations: Vec<(f64, Vec<Derived>)>,
    /// Whether it is known that none was left out that is as probable as one of these.
    pub exact: bool,
}

/// A step of a derivation from weighted facts; steps that it rests on are positions in the derivation.
#[derive(Debug, Clone, PartialEq)]
pub enum Derived {
    /// A tuple that follows by a rule of a relation with probabilities.
    Rule {
        /// The relation.
        tensor: TensorId,
        /// The tuple.
        tuple: Tuple,
        /// The rule, which has one term.
        equation: EquationId,
        /// The values of its indices.
        binding: Vec<(IndexId, Const)>,
        /// For each factor of its body ([`factors`](crate::weighted::factors)), the steps that it rests on: one that holds, or
        /// all that deny what is denied.
        factors: Vec<Vec<usize>>,
    },
    /// A given tuple or an element of a tensor that holds, or that does not.
    Event {
        /// The tensor.
        tensor: TensorId,
        /// The tuple, or the place of the element.
        tuple: Tuple,
        /// Whether it holds.
        holds: bool,
        /// How probable that is.
        probability: f64,
        /// Where it is given, if it is, and whether the text says it.
        given: Option<(Span, bool)>,
        /// The alternative that holds in its stead, if it does not and nothing else says so.
        from: Vec<usize>,
    },
}
