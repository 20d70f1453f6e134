//! The second pass: counts the uses of banged variables and writes the copies, discards and sources of boxes.
//!
//! A *region* is a place where a variable is counted by itself: the whole definition, the body of a box, a branch of
//! an additive construct. Within a region a construct that mentions a variable inside is one use of it. The first walk
//! over the draft lists the uses of each variable in each region, in the order of the text; the second builds the
//! kernel term, and at the top of each scope it writes what the number of uses asks for:
//!
//! | uses | inserted |
//! |---|---|
//! | 0 | `discard x in …` |
//! | 1 | nothing |
//! | n ≥ 2 | `copy x as x₁, y₁ in copy y₁ as x₂, y₂ in … copy yₙ₋₂ as xₙ₋₁, xₙ in …` |

use std::collections::{HashMap, HashSet};

use crate::term::{Node, NodeId, Term, Variable};

/// The kernel term of a draft; `banged` says which variables may be used any number of times.
pub(super) fn insert(draft: Term, banged: &[bool]) -> Term {
    if !banged.contains(&true) {
        return draft;
    }
    let mut uses = Uses::new(&draft, banged);
    uses.walk(draft.root(), Region::TOP);
    let built = Term::from_parts(Vec::with_capacity(draft.size()), draft.names().to_vec());
    let mut builder = Builder { uses, built, copies: HashMap::new() };
    builder.build(draft.root(), Region::TOP);
    builder.built
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Region(usize);

impl Region {
    const TOP: Self = Self(0);
}

/// What uses a variable: an occurrence, or a construct as a whole.
type Site = NodeId;

struct Uses<'a> {
    draft: &'a Term,
    banged: &'a [bool],
    /// For each region but the top, the construct it belongs to and the region around that.
    outside: Vec<Option<(NodeId, Region)>>,
    /// The first region of a box, a pair or a case; a second branch has the next number.
    regions: HashMap<NodeId, Region>,
    /// The region in which a variable is bound.
    home: HashMap<Variable, Region>,
    sites: HashMap<(Region, Variable), Vec<Site>>,
    /// The outer variables that a construct mentions, in the order of their first mention.
    mentions: HashMap<NodeId, Vec<Variable>>,
    mentioned: HashSet<(NodeId, Variable)>,
}

impl<'a> Uses<'a> {
    fn new(draft: &'a Term, banged: &'a [bool]) -> Self {
        Self {
            draft,
            banged,
            outside: vec![None],
            regions: HashMap::new(),
            home: HashMap::new(),
            sites: HashMap::new(),
            mentions: HashMap::new(),
            mentioned: HashSet::new(),
        }
    }

    fn is_banged(&self, variable: Variable) -> bool {
        self.banged.get(variable.index()).copied().unwrap_or(false)
    }

    fn open(&mut self, construct: NodeId, around: Region) -> Region {
        self.outside.push(Some((construct, around)));
        Region(self.outside.len() - 1)
    }

    fn walk(&mut self, id: NodeId, region: Region) {
        let draft = self.draft;
        let node = draft.node(id);
        match node {
            Node::Variable(variable) => self.mention(*variable, region, id),
            Node::With(left, right) => self.branches(id, region, *left, *right),
            Node::Case { scrutinee, left, right } => {
                self.walk(*scrutinee, region);
                self.branches(id, region, left.1, right.1);
            }
            Node::Promote { sources, body } => {
                sources.iter().for_each(|(source, _)| self.walk(*source, region));
                let inside = self.open(id, region);
                self.regions.insert(id, inside);
                sources.iter().for_each(|(_, name)| _ = self.home.insert(*name, inside));
                self.walk(*body, inside);
            }
            _ => {
                node.binders(|variable, _| _ = self.home.insert(variable, region));
                node.children(|child| self.walk(child, region));
            }
        }
    }

    fn branches(&mut self, id: NodeId, region: Region, left: NodeId, right: NodeId) {
        let (first, second) = (self.open(id, region), self.open(id, region));
        self.regions.insert(id, first);
        self.draft.node(id).binders(|variable, part| {
            self.home.insert(variable, if part == 1 { first } else { second });
        });
        self.walk(left, first);
        self.walk(right, second);
    }

    /// Notes a use in a region, and the constructs through which it reaches the binder.
    fn mention(&mut self, variable: Variable, region: Region, site: Site) {
        if !self.is_banged(variable) {
            return;
        }
        let (home, mut region, mut site) = (self.home.get(&variable).copied(), region, site);
        loop {
            self.sites.entry((region, variable)).or_default().push(site);
            let Some((construct, around)) = self.outside.get(region.0).copied().flatten() else { return };
            if Some(region) == home || !self.mentioned.insert((construct, variable)) {
                return;
            }
            self.mentions.entry(construct).or_default().push(variable);
            (region, site) = (around, construct);
        }
    }

    fn mentions(&self, construct: NodeId) -> Vec<Variable> {
        self.mentions.get(&construct).cloned().unwrap_or_default()
    }

    fn regions(&self, construct: NodeId) -> (Region, Region) {
        let first = self.regions.get(&construct).copied().unwrap_or(Region::TOP);
        (first, Region(first.0 + 1))
    }
}

/// What stands at the top of a scope, outermost first.
#[derive(Default)]
struct Prologue(Vec<Structural>);

enum Structural {
    Discard(Variable),
    Copy(Variable, Variable, Variable),
}

struct Builder<'a> {
    uses: Uses<'a>,
    built: Term,
    /// The variable that stands at a use.
    copies: HashMap<(Site, Variable), Variable>,
}

impl Builder<'_> {
    /// Enters the scope of a variable in a region, where it is called `base`.
    fn enter(&mut self, prologue: &mut Prologue, region: Region, variable: Variable, base: Variable) {
        if !self.uses.is_banged(variable) {
            return;
        }
        let sites = self.uses.sites.remove(&(region, variable)).unwrap_or_default();
        let Some((last, rest)) = sites.split_last() else {
            prologue.0.push(Structural::Discard(base));
            return;
        };
        let name = self.built.name(base).to_owned();
        let mut current = base;
        for (k, site) in rest.iter().enumerate() {
            let left = self.built.variable(format!("{name}{}", subscript(k + 1)).into());
            let more = if k + 1 == rest.len() { subscript(k + 2) } else { format!("_{}", subscript(k + 1)) };
            let right = self.built.variable(format!("{name}{more}").into());
            prologue.0.push(Structural::Copy(current, left, right));
            self.copies.insert((*site, variable), left);
            current = right;
        }
        self.copies.insert((*last, variable), current);
    }

    /// Writes the prologue around a body.
    fn wrap(&mut self, prologue: Prologue, mut body: NodeId) -> NodeId {
        for structural in prologue.0.into_iter().rev() {
            body = match structural {
                Structural::Discard(variable) => {
                    let scrutinee = self.built.push(Node::Variable(variable));
                    self.built.push(Node::Discard { scrutinee, body })
                }
                Structural::Copy(variable, left, right) => {
                    let scrutinee = self.built.push(Node::Variable(variable));
                    self.built.push(Node::Copy { scrutinee, left, right, body })
                }
            };
        }
        body
    }

    /// The variable that stands for a variable of the draft at a use.
    fn at(&self, site: Site, variable: Variable) -> Variable {
        self.copies.get(&(site, variable)).copied().unwrap_or(variable)
    }

    fn build(&mut self, id: NodeId, region: Region) -> NodeId {
        let draft = self.uses.draft;
        let mut node = draft.node(id).clone();
        match &mut node {
            Node::Variable(variable) => *variable = self.at(id, *variable),
            Node::With(left, right) => {
                (*left, *right) = self.branches(id, (None, *left), (None, *right));
            }
            Node::Case { scrutinee, left, right } => {
                *scrutinee = self.build(*scrutinee, region);
                (left.1, right.1) = self.branches(id, (Some(left.0), left.1), (Some(right.0), right.1));
            }
            Node::Promote { sources, body } => {
                sources.iter_mut().for_each(|(source, _)| *source = self.build(*source, region));
                *body = self.capture(id, sources, *body);
            }
            _ => {
                let mut prologue = Prologue::default();
                let mut scope = None;
                draft.node(id).binders(|variable, part| {
                    self.enter(&mut prologue, region, variable, variable);
                    scope = Some(part);
                });
                let mut prologue = Some(prologue);
                let mut part = 0;
                node.children_mut(|child| {
                    *child = self.build(*child, region);
                    if scope == Some(part) {
                        *child = self.wrap(prologue.take().unwrap_or_default(), *child);
                    }
                    part += 1;
                });
            }
        }
        self.built.push(node)
    }

    /// Both branches: each enters the shared variables in the order of their first mention, then its own binder.
    fn branches(
        &mut self,
        construct: NodeId,
        left: (Option<Variable>, NodeId),
        right: (Option<Variable>, NodeId),
    ) -> (NodeId, NodeId) {
        let (first, second) = self.uses.regions(construct);
        let shared = self.uses.mentions(construct);
        let mut branch = |(binder, body): (Option<Variable>, NodeId), region: Region| {
            let mut prologue = Prologue::default();
            for variable in &shared {
                let base = self.at(construct, *variable);
                self.enter(&mut prologue, region, *variable, base);
            }
            if let Some(binder) = binder {
                self.enter(&mut prologue, region, binder, binder);
            }
            let body = self.build(body, region);
            self.wrap(prologue, body)
        };
        (branch(left, first), branch(right, second))
    }

    /// The body of a box; the variables that it captures become sources behind the written ones.
    fn capture(&mut self, construct: NodeId, sources: &mut Vec<(NodeId, Variable)>, body: NodeId) -> NodeId {
        let (inside, _) = self.uses.regions(construct);
        let mut prologue = Prologue::default();
        for (_, name) in sources.iter() {
            self.enter(&mut prologue, inside, *name, *name);
        }
        for variable in self.uses.mentions(construct) {
            let source = self.built.push(Node::Variable(self.at(construct, variable)));
            let name = self.built.variable(self.uses.draft.name(variable).into());
            sources.push((source, name));
            self.enter(&mut prologue, inside, variable, name);
        }
        let body = self.build(body, inside);
        self.wrap(prologue, body)
    }
}

fn subscript(number: usize) -> String {
    let digit = |d: char| d.to_digit(10).and_then(|d| char::from_u32('₀' as u32 + d)).unwrap_or(d);
    number.to_string().chars().map(digit).collect()
}
