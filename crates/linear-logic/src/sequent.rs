//! Kernel terms read back as sequent proofs: section 7.
//!
//! Introductions are right rules. An elimination is unrolled to its head: a variable gets one left rule for each
//! elimination, any other head is cut. So a normal form is read back without a cut.

mod draw;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::{Kind, Refusal, Result};
use crate::formula::{Connective, Formula};
use crate::literal::Order;
use crate::term::{Node, NodeId, Term, Variable};
use crate::unfold::{Unfolded, unfold};

/// The deepest proof that is read back.
const MAX_DEPTH: usize = 20_000;

/// The most hypotheses that all sequents of a proof may have together.
const MAX_HYPOTHESES: usize = 300_000;

/// The largest [`Proof::weight`] that is read back.
pub const MAX_WEIGHT: u64 = 1 << 24;

/// What a formula of a sequent weighs beside its connectives and atoms: its name, and its share of the inference.
const FORMULA: u64 = 16;

/// A sequent proof, as a tree of inferences.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The last rule.
    pub rule: Rule,
    /// The hypotheses of the conclusion.
    pub left: Vec<(Hypothesis, Formula)>,
    /// What they prove.
    pub right: Formula,
    /// The proofs of the premises.
    pub premises: Vec<Self>,
}

/// The name of a hypothesis; each is introduced in one place of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hypothesis(pub usize);

macro_rules! rules {
    ($($rule:ident = $name:literal),+ $(,)?) => {
        /// A rule of the two-sided calculus; exchange is silent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the rules of section 7")]
        pub enum Rule { $($rule),+ }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$rule),+];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$rule => $name),+ }
            }
        }
    };
}

rules! {
    Ax = "ax",
    Cut = "cut",
    TensorR = "tensor-R",
    TensorL = "tensor-L",
    OneR = "one-R",
    OneL = "one-L",
    LolliR = "lolli-R",
    LolliL = "lolli-L",
    WithR = "with-R",
    WithL1 = "with-L1",
    WithL2 = "with-L2",
    PlusR1 = "plus-R1",
    PlusR2 = "plus-R2",
    PlusL = "plus-L",
    Der = "der",
    Prom = "prom",
    Ctr = "ctr",
    Weak = "weak",
}

/// The sequent proof of a closed kernel term, after its definitions and literals are unfolded.
///
/// # Errors
/// `unsupported` for differential terms, `limit` for proofs that are too large, beyond [`MAX_WEIGHT`] among them.
pub fn read_back(term: &Term, order: Order) -> Result<Proof> {
    let unfolded = unfold(term, order)?;
    let mut reader = Reader {
        hypotheses: vec![None; unfolded.variables],
        root: unfolded.root,
        unfolded,
        depth: 0,
        fresh: 0,
        total: 0,
        weight: 0,
    };
    reader.proof(reader.root)
}

impl Proof {
    /// What the text of the proof costs: the connectives and atoms of all formulas of all sequents, and 16 for each
    /// formula.
    pub fn weight(&self) -> u64 {
        let (mut weight, mut todo) = (0_u64, vec![self]);
        while let Some(proof) = todo.pop() {
            weight = weight.saturating_add(sequent_weight(&proof.left, &proof.right));
            todo.extend(&proof.premises);
        }
        weight
    }

    /// How often each rule is used.
    pub fn rules(&self) -> BTreeMap<Rule, u64> {
        let mut counts = BTreeMap::new();
        let mut todo = vec![self];
        while let Some(proof) = todo.pop() {
            *counts.entry(proof.rule).or_insert(0) += 1;
            todo.extend(&proof.premises);
        }
        counts
    }

    /// `{"rule", "left", "right", "premises"}`.
    pub fn json(&self) -> Value {
        let left: Vec<Value> =
            self.left.iter().map(|(h, a)| json!([format!("h{}", h.0), a.to_string()])).collect();
        let premises: Vec<Value> = self.premises.iter().map(Self::json).collect();
        // `json!` would copy the premises once for every inference below them.
        Value::Object(Map::from_iter([
            ("rule".to_owned(), self.rule.name().into()),
            ("left".to_owned(), left.into()),
            ("right".to_owned(), self.right.to_string().into()),
            ("premises".to_owned(), premises.into()),
        ]))
    }
}

type Named = (Hypothesis, Formula);

fn sequent_weight(left: &[Named], right: &Formula) -> u64 {
    left.iter()
        .map(|(_, formula)| formula)
        .chain([right])
        .fold(0, |sum, formula| formula.size().saturating_add(FORMULA).saturating_add(sum))
}

struct Reader {
    unfolded: Unfolded,
    root: NodeId,
    /// What stands for a variable.
    hypotheses: Vec<Option<Named>>,
    depth: usize,
    fresh: usize,
    total: usize,
    weight: u64,
}

/// One elimination of a spine, from the head outwards.
enum Frame {
    Apply(NodeId),
    Derelict,
    First,
    Second,
}

/// What the last hypothesis of a spine is for.
enum Rest<'a> {
    /// It is what is to be proved.
    Ax,
    LetTensor(Variable, Variable, NodeId),
    LetUnit(NodeId),
    Copy(Variable, Variable, NodeId),
    Discard(NodeId),
    Case((Variable, NodeId), (Variable, NodeId)),
    /// It is a source of a box; further sources follow.
    Promote {
        name: Variable,
        sources: &'a [(NodeId, Variable)],
        body: NodeId,
    },
}

impl Reader {
    fn node(&self, id: NodeId) -> Node {
        self.unfolded.nodes.get(id.index()).cloned().unwrap_or(Node::Unit)
    }

    fn hypothesis(&mut self, formula: Formula) -> Named {
        self.fresh += 1;
        (Hypothesis(self.fresh - 1), formula)
    }

    /// A new hypothesis for a variable.
    fn bind(&mut self, variable: Variable, formula: Formula) -> Hypothesis {
        let named = self.hypothesis(formula);
        let hypothesis = named.0;
        self.rename(variable, named);
        hypothesis
    }

    fn rename(&mut self, variable: Variable, named: Named) {
        if let Some(place) = self.hypotheses.get_mut(variable.index()) {
            *place = Some(named);
        }
    }

    /// An inference; a hypothesis that several premises share, in an additive rule, is listed once.
    fn infer(
        &mut self,
        rule: Rule,
        right: Formula,
        premises: Vec<Proof>,
        new: Option<Named>,
        discharged: &[Hypothesis],
    ) -> Result<Proof> {
        let mut left: Vec<Named> = new.into_iter().collect();
        let shared = matches!(rule, Rule::WithR | Rule::PlusL);
        for (i, premise) in premises.iter().enumerate() {
            if shared && i == 1 {
                // The first premise has listed all but what this one discharges.
                continue;
            }
            left.extend(premise.left.iter().filter(|(h, _)| !discharged.contains(h)).cloned());
        }
        self.total += left.len() + 1;
        self.weight = self.weight.saturating_add(sequent_weight(&left, &right));
        if self.total > MAX_HYPOTHESES || self.weight > MAX_WEIGHT {
            return Err(Refusal::new(Kind::Limit, "the sequent proof is too large"));
        }
        Ok(Proof { rule, left, right, premises })
    }

    /// The proof that a term is.
    fn proof(&mut self, id: NodeId) -> Result<Proof> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::new(
                Kind::Limit,
                format!("the sequent proof is deeper than {MAX_DEPTH} inferences"),
            ));
        }
        let proof = self.proof_of(id)?;
        self.depth -= 1;
        Ok(proof)
    }

    fn proof_of(&mut self, id: NodeId) -> Result<Proof> {
        match self.node(id) {
            Node::Lambda { variable, domain, body, .. } => {
                let h = self.bind(variable, domain.clone());
                let premise = self.proof(body)?;
                let right = domain.lolli(premise.right.clone());
                self.infer(Rule::LolliR, right, vec![premise], None, &[h])
            }
            Node::Tensor(a, b) => {
                let (a, b) = (self.proof(a)?, self.proof(b)?);
                let right = a.right.clone().tensor(b.right.clone());
                self.infer(Rule::TensorR, right, vec![a, b], None, &[])
            }
            Node::With(a, b) => {
                let (a, b) = (self.proof(a)?, self.proof(b)?);
                let right = a.right.clone().with(b.right.clone());
                self.infer(Rule::WithR, right, vec![a, b], None, &[])
            }
            Node::Unit => self.infer(Rule::OneR, Formula::one(), Vec::new(), None, &[]),
            Node::InLeft(other, a) => {
                let a = self.proof(a)?;
                let right = a.right.clone().plus(other);
                self.infer(Rule::PlusR1, right, vec![a], None, &[])
            }
            Node::InRight(other, a) => {
                let a = self.proof(a)?;
                let right = other.plus(a.right.clone());
                self.infer(Rule::PlusR2, right, vec![a], None, &[])
            }
            Node::Promote { sources, body } => self.promote(&sources, body),
            Node::LetTensor { scrutinee, left, right, body } => {
                self.spine(scrutinee, Rest::LetTensor(left, right, body))
            }
            Node::LetUnit { scrutinee, body } => self.spine(scrutinee, Rest::LetUnit(body)),
            Node::Copy { scrutinee, left, right, body } => {
                self.spine(scrutinee, Rest::Copy(left, right, body))
            }
            Node::Discard { scrutinee, body } => self.spine(scrutinee, Rest::Discard(body)),
            Node::Case { scrutinee, left, right } => self.spine(scrutinee, Rest::Case(left, right)),
            _ => self.spine(id, Rest::Ax),
        }
    }

    /// The sources of a box, one after the other, then the box.
    fn promote(&mut self, sources: &[(NodeId, Variable)], body: NodeId) -> Result<Proof> {
        if let Some(((source, name), sources)) = sources.split_first() {
            return self.spine(*source, Rest::Promote { name: *name, sources, body });
        }
        let premise = self.proof(body)?;
        let right = premise.right.clone().bang();
        self.infer(Rule::Prom, right, vec![premise], None, &[])
    }

    /// Unrolls eliminations to their head.
    fn spine(&mut self, id: NodeId, rest: Rest<'_>) -> Result<Proof> {
        let (mut head, mut frames) = (id, Vec::new());
        let node = loop {
            let node = self.node(head);
            let (inner, frame) = match node {
                Node::Apply(function, argument) => (function, Frame::Apply(argument)),
                Node::Derelict(inner) => (inner, Frame::Derelict),
                Node::First(pair) => (pair, Frame::First),
                Node::Second(pair) => (pair, Frame::Second),
                node => break node,
            };
            frames.push(frame);
            head = inner;
        };
        if let Node::Variable(variable) = node {
            let named = self.hypotheses.get(variable.index()).cloned().flatten();
            let named = named.unwrap_or((Hypothesis(0), Formula::one()));
            return self.left(named, frames, rest);
        }
        let proof = self.proof(head)?;
        let named = self.hypothesis(proof.right.clone());
        let h = named.0;
        let with = self.left(named, frames, rest)?;
        let right = with.right.clone();
        self.infer(Rule::Cut, right, vec![proof, with], None, &[h])
    }

    /// Left rules for the eliminations of a hypothesis, the innermost first, and then what it is for.
    fn left(&mut self, named: Named, mut frames: Vec<Frame>, rest: Rest<'_>) -> Result<Proof> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::new(
                Kind::Limit,
                format!("the sequent proof is deeper than {MAX_DEPTH} inferences"),
            ));
        }
        let Some(frame) = frames.pop() else {
            let proof = self.close(named, rest)?;
            self.depth -= 1;
            return Ok(proof);
        };
        let (rule, next, mut premises) = match (frame, named.1.connective()) {
            (Frame::Apply(argument), Connective::Lolli(_, b)) => {
                (Rule::LolliL, b, vec![self.proof(argument)?])
            }
            (Frame::Derelict, Connective::Bang(a)) => (Rule::Der, a, Vec::new()),
            (Frame::First, Connective::With(a, _)) => (Rule::WithL1, a, Vec::new()),
            (Frame::Second, Connective::With(_, b)) => (Rule::WithL2, b, Vec::new()),
            _ => return Err(Refusal::ill_typed()),
        };
        let next = self.hypothesis(next.clone());
        let h = next.0;
        let premise = self.left(next, frames, rest)?;
        let right = premise.right.clone();
        premises.push(premise);
        self.depth -= 1;
        self.infer(rule, right, premises, Some(named), &[h])
    }

    /// What a hypothesis is for, once it is eliminated far enough.
    fn close(&mut self, named: Named, rest: Rest<'_>) -> Result<Proof> {
        let formula = named.1.clone();
        let (rule, body, bound) = match (rest, formula.connective()) {
            (Rest::Ax, _) => return self.infer(Rule::Ax, formula, Vec::new(), Some(named), &[]),
            (Rest::Promote { name, sources, body }, _) => {
                // The hypothesis is the one inside the box; the rule adds nothing of its own.
                self.rename(name, named);
                return self.promote(sources, body);
            }
            (Rest::LetTensor(x, y, body), Connective::Tensor(a, b)) => {
                (Rule::TensorL, body, vec![self.bind(x, a.clone()), self.bind(y, b.clone())])
            }
            (Rest::LetUnit(body), Connective::One) => (Rule::OneL, body, Vec::new()),
            (Rest::Copy(x, y, body), Connective::Bang(_)) => {
                (Rule::Ctr, body, vec![self.bind(x, formula.clone()), self.bind(y, formula.clone())])
            }
            (Rest::Discard(body), Connective::Bang(_)) => (Rule::Weak, body, Vec::new()),
            (Rest::Case(left, right), Connective::Plus(a, b)) => {
                let x = self.bind(left.0, a.clone());
                let first = self.proof(left.1)?;
                let y = self.bind(right.0, b.clone());
                let second = self.proof(right.1)?;
                let goal = first.right.clone();
                return self.infer(Rule::PlusL, goal, vec![first, second], Some(named), &[x, y]);
            }
            _ => return Err(Refusal::ill_typed()),
        };
        let premise = self.proof(body)?;
        let right = premise.right.clone();
        self.infer(rule, right, vec![premise], Some(named), &bound)
    }
}
