//! An instance: a task, and why its label is right.

use fol::ast::Formula;
use fol::task::Task;
use fol_prover::Model;
use fol_prover::rules::Name;
use serde_json::{Value, json};

use crate::edit::Edit;

/// How a task is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `φ, … ⊢ ψ`, or `⊢ <unknown>`.
    Conclusion,
    /// `φ, … ⊢ s. … ψ`, or `⊢ <unknown>`.
    Steps,
    /// `φ, … <query> ψ <answer> ⊤ | ⊥ | <unknown>`.
    Question,
    /// `a = b <sep> … <query> a <answer> z`.
    Term,
}

impl Format {
    /// All, in the order of the configuration.
    pub const ALL: [Self; 4] = [Self::Conclusion, Self::Steps, Self::Question, Self::Term];

    /// As a configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Conclusion => "conclusion",
            Self::Steps => "steps",
            Self::Question => "question",
            Self::Term => "term",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// In which order an instance comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// A rule is drawn, and what it concludes is the conclusion; a small edit makes another label.
    RuleFirst,
    /// A conclusion is drawn, and premises for it; new names in all premises make another label.
    LabelFirst,
}

impl Order {
    /// Both.
    pub const ALL: [Self; 2] = [Self::RuleFirst, Self::LabelFirst];

    /// As a configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RuleFirst => "rule-first",
            Self::LabelFirst => "label-first",
        }
    }
}

/// What is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// The conclusion, or what is asked about, follows.
    Follows,
    /// The complement of what is asked about follows.
    Denied,
    /// Neither does; without a question, no conclusion is asked for.
    Unknown,
}

impl Label {
    /// All, in the order of the answers.
    pub const ALL: [Self; 3] = [Self::Follows, Self::Denied, Self::Unknown];

    /// As a data set writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Follows => "follows",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

/// A step of a certificate: a rule, the places of what it is applied to (premises first, as the task has them, and then the conclusions of
/// earlier steps), and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The rule.
    pub rule: Name,
    /// Places.
    pub from: Vec<usize>,
    /// What follows.
    pub conclusion: Formula,
}

/// A task with its label and its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// How it is put.
    pub format: Format,
    /// How it came about.
    pub order: Order,
    /// Rule applications, or equations that are followed.
    pub depth: usize,
    /// What is right.
    pub label: Label,
    /// The sequence.
    pub task: Task,
    /// The rules of the proof; of an instance whose label is unknown, of the proof before the edit.
    pub rules: Vec<Name>,
    /// The proof, where something follows; empty for terms.
    pub proof: Vec<Application>,
    /// What made the label unknown.
    pub edit: Option<Edit>,
    /// Where the label is unknown: premises that hold while the conclusion, and while the complement of what is asked about, does not.
    pub models: Vec<Model>,
}

impl Instance {
    /// What is given.
    pub fn premises(&self) -> &[Formula] {
        match &self.task {
            Task::Deduction { premises, .. } | Task::Question { premises, .. } => premises,
            Task::Term { .. } => &[],
        }
    }

    /// What is asked about, in a three-way question.
    pub fn asked(&self) -> Option<&Formula> {
        match &self.task {
            Task::Question { asked, .. } => Some(asked),
            _ => None,
        }
    }

    /// A line of a data set: `{"item","format","order","depth","label","edit","rules","tokens","text","proof","models"}`.
    pub fn json(&self, item: u64) -> Value {
        let tokens: Vec<u16> = fol::task::encode(&self.task).into_iter().map(|symbol| symbol.get()).collect();
        let text =
            |formula: &Formula| fol::print(&fol::ast::Text::formula(formula.clone()), fol::Style::Unicode);
        let proof: Vec<Value> = self
            .proof
            .iter()
            .map(|step| json!({"rule": step.rule.name(), "from": step.from, "text": text(&step.conclusion)}))
            .collect();
        json!({
            "item": item,
            "format": self.format.name(),
            "order": self.order.name(),
            "depth": self.depth,
            "label": self.label.name(),
            "edit": self.edit.map(Edit::name),
            "rules": self.rules.iter().map(|rule| rule.name()).collect::<Vec<_>>(),
            "tokens": tokens,
            "text": fol::task::print(&self.task, fol::Style::Unicode),
            "proof": proof,
            "models": self.models.iter().map(fol_prover::json::model).collect::<Vec<_>>(),
        })
    }
}
