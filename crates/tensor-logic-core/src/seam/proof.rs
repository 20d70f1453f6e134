//! Proofs: why a tuple is there.
//!
//! A [`Proof`] is a tree kept in one list, so that a proof of a hundred thousand steps needs no
//! deep recursion. The function `prove` of the crate `tensor-logic-reference` finds one of least height.

/// A proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    steps: Vec<Step>,
    root: usize,
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
    /// What it follows from, in the order of the body: positions of other steps.
    pub from: Vec<usize>,
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
        Proof { steps, root }
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
