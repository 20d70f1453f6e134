//! Family `depth`: a maximal depth is drawn, then the tree node by node from fixed weights (F36).

use serde_json::{Map, Value as Json, json};
use toml::Table;

use super::config::Keys;
use super::parts::Parts;
use super::tables::{MAX_ARITY, MAX_SYMBOLS, SORTED, blocks, drawn, named, spread};
use crate::blocks::number_of;
use crate::error::Refusal;
use crate::signature::Signature;

/// The largest maximal depth.
const MAX_DEPTH: u64 = 1000;

/// The largest depth of terms.
const MAX_TERM_DEPTH: u64 = 64;

/// A mean text longer than this is refused: drawing would not end in practice.
const MAX_MEAN_NODES: f64 = 1e6;

const KEYS: [&str; 27] = [
    "depth_mix",
    "levels",
    "kinds",
    "connectives",
    "quantifiers",
    "relations",
    "truth",
    "atoms",
    "overloaded",
    "predicates",
    "functions",
    "constants",
    "arguments",
    "terms",
    "term_depth",
    "binder",
    "names",
    "shadow",
    "vacuous",
    "recent",
    "parentheses",
    "sorted",
    "sorts",
    "statements",
    "max_tokens",
    "family",
    "preset",
];
/// What a table of weights needs where something is drawn from it.
const POSITIVE: &str = "some weight must be positive";

const KINDS: [&str; 3] = ["atom", "quantifier", "connective"];
const ATOMS: [&str; 3] = ["predicate", "relation", "truth"];
const TERMS: [&str; 3] = ["variable", "constant", "function"];
const CONNECTIVES: [&str; 5] = ["NOT", "AND", "OR", "IMPLIES", "IFF"];
const QUANTIFIERS: [&str; 3] = ["FORALL", "EXISTS", "EXISTS1"];
const RELATIONS: [&str; 6] =
    ["EQUALS", "NOT_EQUALS", "LESS_THAN", "GREATER_THAN", "LESS_EQUAL", "GREATER_EQUAL"];
const BINDERS: [(&str, Binder); 3] =
    [("pool", Binder::Pool), ("fresh", Binder::Fresh), ("apart", Binder::Apart)];
const SHARES: [&str; 4] = ["shadow", "vacuous", "recent", "parentheses"];
const TRUTH: [&str; 2] = ["TRUE", "FALSE"];

/// The keys of family `depth`. Weights stand in the order in which alternatives are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DepthLaw {
    /// Maximal depth and weight.
    pub(crate) depth_mix: Vec<(u32, u64)>,
    /// Level and weight; empty if texts are not conditioned on levels.
    pub(crate) levels: Vec<(u8, u64)>,
    /// Atom, quantifier, connective, where the depth allows all three.
    pub(crate) kinds: [u64; 3],
    /// NOT, AND, OR, IMPLIES, IFF.
    pub(crate) connectives: [u64; 5],
    /// FORALL, EXISTS, EXISTS1.
    pub(crate) quantifiers: [u64; 3],
    /// The six relations.
    pub(crate) relations: [u64; 6],
    /// TRUE, FALSE.
    pub(crate) truth: [u64; 2],
    /// Predicate, relation, truth.
    pub(crate) atoms: [u64; 3],
    pub(crate) predicates: Predicates,
    /// Blocks of arity and number.
    pub(crate) functions: Vec<(usize, u64)>,
    pub(crate) constants: u64,
    pub(crate) arguments: Arguments,
    /// Variable, constant, function.
    pub(crate) terms: [u64; 3],
    pub(crate) term_depth: u32,
    pub(crate) binder: Binder,
    pub(crate) names: u64,
    /// Of 100 binders below others, how many take the name of one of these; the others take none of them.
    pub(crate) shadow: u8,
    /// Of 100 binders, how many bind nothing.
    pub(crate) vacuous: u8,
    /// Of 100 variables, how many are the innermost one in scope for sure.
    pub(crate) recent: u8,
    /// Of 100 binary and atomic formulas, how many are written in a second pair of parentheses (N15).
    pub(crate) parentheses: u8,
    /// Without, with a sort; drawn only if there are sorts.
    pub(crate) sorted: [u64; 2],
    pub(crate) sorts: u64,
    pub(crate) statements: Option<Parts>,
    pub(crate) max_tokens: usize,
}

/// The predicate symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predicates {
    /// The arity is drawn for each use.
    Overloaded { names: u64, arities: Vec<(usize, u64)> },
    /// Blocks of arity and number, symbols numbered through.
    Blocks(Vec<(usize, u64)>),
}

/// What stands in argument places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// A variable in scope, or any name if there is none.
    Public,
    /// A term; no variable is free.
    Terms,
}

/// How binders are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binder {
    /// Uniformly from the names; may shadow.
    Pool,
    /// Binder k in preorder is index k.
    Fresh,
    /// A name that no binder above has, or in `shadow` of 100 cases one that some binder above has.
    Apart,
}

impl DepthLaw {
    /// The law of a complete table.
    pub(super) fn read(table: Table) -> Result<Self, Refusal> {
        let keys = Keys::new(table, "", &KEYS)?;
        let law = Self {
            depth_mix: keys
                .weighted("depth_mix", MAX_DEPTH)?
                .into_iter()
                .map(|(d, w)| (d as u32, w))
                .collect(),
            levels: keys.weighted("levels", 4)?.into_iter().map(|(l, w)| (l as u8, w)).collect(),
            kinds: keys.weights("kinds", &KINDS)?,
            connectives: keys.weights("connectives", &CONNECTIVES)?,
            quantifiers: keys.weights("quantifiers", &QUANTIFIERS)?,
            relations: keys.weights("relations", &RELATIONS)?,
            truth: keys.weights("truth", &TRUTH)?,
            atoms: keys.weights("atoms", &ATOMS)?,
            predicates: Predicates::read(&keys)?,
            functions: blocks(&keys, "functions", 1)?,
            constants: keys.number("constants")?,
            arguments: keys
                .word("arguments", &[("public", Arguments::Public), ("terms", Arguments::Terms)])?,
            terms: keys.weights("terms", &TERMS)?,
            term_depth: match keys.number("term_depth")? {
                e if e <= MAX_TERM_DEPTH => e as u32,
                _ => return Err(keys.bad("term_depth", format!("at most {MAX_TERM_DEPTH} is possible"))),
            },
            binder: keys.word("binder", &BINDERS)?,
            names: keys.number("names")?,
            shadow: percent(&keys, "shadow", 100)?,
            vacuous: percent(&keys, "vacuous", 99)?,
            recent: percent(&keys, "recent", 100)?,
            parentheses: percent(&keys, "parentheses", 99)?,
            sorted: keys.weights("sorted", &SORTED)?,
            sorts: keys.number("sorts")?,
            statements: Parts::read(&keys)?,
            max_tokens: keys.size("max_tokens")?,
        };
        law.check(&keys)?;
        Ok(law)
    }

    /// Refuses tables that leave a draw without an alternative.
    fn check(&self, keys: &Keys) -> Result<(), Refusal> {
        let need = |holds: bool, key: &str, why: &str| if holds { Ok(()) } else { Err(keys.bad(key, why)) };
        let some = |weights: &[u64]| weights.iter().any(|&w| w > 0);
        let deepest = self.deepest();
        let [_, quantifier, connective] = self.kinds.map(|weight| deepest > 0 && weight > 0);
        let [predicate, relation, truth] = self.atoms.map(|weight| weight > 0);
        need(self.depth_mix.iter().any(|m| m.1 > 0), "depth_mix", POSITIVE)?;
        need(deepest == 0 || some(&self.kinds), "kinds", POSITIVE)?;
        need(!quantifier || some(&self.quantifiers), "quantifiers", POSITIVE)?;
        need(!connective || some(&self.connectives), "connectives", POSITIVE)?;
        need(some(&self.atoms), "atoms", POSITIVE)?;
        need(!predicate || self.predicates.number() > 0, "predicates", "there are none")?;
        need(!relation || some(&self.relations), "relations", POSITIVE)?;
        need(!truth || some(&self.truth), "truth", POSITIVE)?;
        need(self.names > 0, "names", "at least one is needed")?;
        need(self.sorts == 0 || some(&self.sorted), "sorted", POSITIVE)?;
        self.check_binders(keys)?;
        self.check_terms(keys)?;
        self.check_levels(keys)?;
        if let Some(parts) = &self.statements {
            self.check_parts(parts, keys)?;
        }
        let nodes = self.mean_nodes(deepest) * self.mean_term_leaves();
        need(nodes < MAX_MEAN_NODES, "depth_mix", "the mean text has more than a million nodes")
    }

    /// Refuses shares of binders and variables that the other keys cannot give.
    fn check_binders(&self, keys: &Keys) -> Result<(), Refusal> {
        let need = |holds: bool, key: &str, why: &str| if holds { Ok(()) } else { Err(keys.bad(key, why)) };
        let (apart, plain) = (self.binder == Binder::Apart, self.statements.is_none());
        need(
            apart || self.shadow == 0,
            "shadow",
            "only binder = \"apart\" keeps the names of binders apart",
        )?;
        need(apart || self.vacuous == 0, "vacuous", "only with binder = \"apart\" nothing else is caught")?;
        need(!apart || plain, "binder", "with statements binders cannot be apart")?;
        need(!apart || self.names >= u64::from(self.deepest()), "names", "fewer than binders on one path")?;
        let terms = self.arguments == Arguments::Terms;
        need(terms || self.recent == 0, "recent", "only with arguments = \"terms\"")?;
        need(plain || self.recent == 0, "recent", "with statements no variable is more recent")?;
        need(plain || self.parentheses == 0, "parentheses", "texts of statements have no second pairs")
    }

    /// Refuses statements that leave a draw without an alternative.
    fn check_parts(&self, parts: &Parts, keys: &Keys) -> Result<(), Refusal> {
        let need = |holds: bool, key: &str, why: &str| {
            if holds { Ok(()) } else { Err(keys.bad(&format!("statements.{key}"), why)) }
        };
        let sequents = parts.kinds[1] > 0 || parts.kinds[2] > 0;
        need(parts.count.iter().any(|c| c.1 > 0), "count", POSITIVE)?;
        need(parts.count.iter().all(|c| c.0 > 0 || c.1 == 0), "count", "a text has at least one statement")?;
        need(parts.dot.iter().any(|&w| w > 0), "dot", POSITIVE)?;
        need(parts.kinds.iter().any(|&w| w > 0), "kinds", POSITIVE)?;
        need(!sequents || parts.premises.iter().any(|p| p.1 > 0), "premises", POSITIVE)?;
        need(!sequents || parts.conclusion.iter().any(|&w| w > 0), "conclusion", POSITIVE)?;
        need(
            parts.kinds[4] == 0 || self.predicates.number() > 0,
            "kinds",
            "there are no predicates to define",
        )?;
        need(parts.kinds[5] == 0 || !self.functions.is_empty(), "kinds", "there are no functions to define")?;
        need(parts.kinds[6] == 0 || self.constants > 0, "kinds", "there are no constants to define")?;
        let functions = self.functions.iter().map(|f| f.0).max().filter(|_| parts.kinds[5] > 0).unwrap_or(0);
        let used = self.predicates.arities_and_weights().iter().filter(|a| a.1 > 0 && parts.kinds[4] > 0);
        let predicates = used.map(|a| a.0).max().unwrap_or(0);
        need(self.names >= functions.max(predicates) as u64, "kinds", "there are fewer names than parameters")
    }

    /// Where terms stand, one must always be drawable.
    fn check_terms(&self, keys: &Keys) -> Result<(), Refusal> {
        let constant = self.terms[1] > 0 && self.constants > 0;
        let (open, scoped) = self.term_places();
        if open && !constant {
            return Err(keys.bad("constants", "outside all binders a term can only be a constant"));
        }
        if scoped && !constant && self.terms[0] == 0 {
            return Err(keys.bad("terms", "neither variables nor constants can be drawn"));
        }
        Ok(())
    }

    /// Whether terms are drawn outside all binders, and inside some.
    fn term_places(&self) -> (bool, bool) {
        let with_arguments = self.predicates.arities_and_weights().iter().any(|a| a.0 > 0 && a.1 > 0);
        let in_atoms = self.arguments == Arguments::Terms
            && (self.atoms[1] > 0 || (self.atoms[0] > 0 && with_arguments));
        let shallow = self.depth_mix.iter().any(|m| m.0 == 0 && m.1 > 0);
        let below_connectives = self.deepest() > 0 && (self.kinds[0] > 0 || self.kinds[2] > 0);
        let kinds = self.statements.as_ref().map_or([0; 7], |parts| parts.kinds);
        let below_binders = self.deepest() > 0 && self.kinds[1] > 0;
        let below_vacuous = below_binders && self.vacuous > 0;
        let open = (in_atoms && (shallow || below_connectives || below_vacuous)) || kinds[6] > 0;
        let scoped = (in_atoms && (below_binders || kinds[4] > 0)) || kinds[5] > 0;
        (open, scoped)
    }

    /// Every level with a weight must be reachable.
    fn check_levels(&self, keys: &Keys) -> Result<(), Refusal> {
        if self.levels.is_empty() {
            return Ok(());
        }
        if self.statements.is_some() {
            return Err(keys.bad("levels", "texts of several statements have no level"));
        }
        if self.levels.iter().all(|l| l.1 == 0) {
            return Err(keys.bad("levels", POSITIVE));
        }
        for &(level, _) in self.levels.iter().filter(|l| l.1 > 0) {
            if !(self.depth_mix.iter().any(|m| m.1 > 0 && self.reaches(level, m.0))) {
                return Err(keys.bad("levels", format!("no text of this law has level {level}")));
            }
        }
        Ok(())
    }

    fn reaches(&self, level: u8, depth: u32) -> bool {
        let [atom, quantifier, connective] = self.kinds.map(|w| w > 0);
        match (level, depth) {
            (1, 0) => true,
            (1, _) => atom,
            (2, d) => d >= 1 && connective,
            // One quantifier only: below it connectives, or the end of the depth, or an atom.
            (3, d) => d >= 1 && quantifier && (d == 1 || atom || connective),
            (4, d) => d >= 2 && quantifier,
            _ => false,
        }
    }

    /// The largest maximal depth that can be drawn.
    pub(crate) fn deepest(&self) -> u32 {
        self.depth_mix.iter().filter(|m| m.1 > 0).map(|m| m.0).max().unwrap_or(0)
    }

    fn mean_nodes(&self, depth: u32) -> f64 {
        let total = self.kinds.iter().sum::<u64>().max(1) as f64;
        let not = self.connectives[0] as f64 / self.connectives.iter().sum::<u64>().max(1) as f64;
        let children = (self.kinds[1] as f64 + self.kinds[2] as f64 * (2.0 - not)) / total;
        mean_size(children, depth)
    }

    fn mean_term_leaves(&self) -> f64 {
        let number = number_of(&self.functions);
        let places: f64 = self.functions.iter().map(|f| f.0 as f64 * f.1 as f64).sum();
        if number == 0 {
            return 1.0;
        }
        let share = self.terms[2] as f64 / self.terms.iter().sum::<u64>().max(1) as f64;
        let children = share * places / number as f64;
        mean_size(children, self.term_depth)
    }

    /// What the law can produce.
    pub(super) fn signature(&self) -> Signature {
        let terms = self.arguments == Arguments::Terms;
        let kinds = self.statements.as_ref().map_or([0; 7], |parts| parts.kinds);
        let constant = self.terms[1] > 0 && (terms || kinds[5] > 0 || kinds[6] > 0);
        let function = self.terms[2] > 0 && self.term_depth > 0 && (terms || kinds[5] > 0 || kinds[6] > 0);
        let deep = self.deepest() > 0;
        let quantified = deep && self.kinds[1] > 0;
        let compound = deep && self.kinds[2] > 0;
        let [not, connectives @ ..] = &self.connectives;
        let [yes, no] = self.truth.map(|weight| self.atoms[2] > 0 && weight > 0);
        Signature {
            not: compound && *not > 0,
            connectives: if compound { drawn(connectives) } else { Vec::new() },
            quantifiers: if quantified { drawn(&self.quantifiers) } else { Vec::new() },
            relations: if self.atoms[1] > 0 { drawn(&self.relations) } else { Vec::new() },
            truth: yes.then_some(true).into_iter().chain(no.then_some(false)).collect(),
            predicates: if self.atoms[0] > 0 || kinds[4] > 0 {
                self.predicates.arities()
            } else {
                Vec::new()
            },
            functions: if function || kinds[5] > 0 { spread(&self.functions) } else { Vec::new() },
            constants: if constant || kinds[6] > 0 { self.constants } else { 0 },
            variables: self.variables(),
            sorts: if self.sorted[1] > 0 { self.sorts } else { 0 },
            unsorted: self.sorts == 0 || self.sorted[0] > 0,
            closed: terms,
            statements: self.statements.as_ref().map(Parts::signature),
        }
    }

    /// Variables are the indices below this number.
    pub(crate) fn variables(&self) -> u64 {
        let parameters = self.statements.as_ref().is_some_and(|p| p.kinds[4] > 0 || p.kinds[5] > 0);
        match self.binder {
            Binder::Pool | Binder::Apart => self.names,
            Binder::Fresh if self.arguments == Arguments::Public || parameters => {
                self.names.max(self.most_binders())
            }
            Binder::Fresh => self.most_binders(),
        }
    }

    /// The largest number of binders in a formula.
    pub(crate) fn most_binders(&self) -> u64 {
        let quantifier = self.kinds[1] > 0;
        let binary = self.kinds[2] > 0 && self.connectives.iter().skip(1).any(|&w| w > 0);
        (0..self.deepest()).fold(0u64, |most, _| {
            let quantified = if quantifier { most.saturating_add(1) } else { 0 };
            quantified.max(if binary { most.saturating_mul(2) } else { 0 })
        })
    }

    /// Every key.
    pub(super) fn to_json(&self) -> Json {
        let mut map = Map::from_iter([("family".to_owned(), json!("depth"))]);
        let mut put = |key: &str, value: Json| drop(map.insert(key.to_owned(), value));
        put("depth_mix", json!(self.depth_mix));
        put("levels", json!(self.levels));
        put("kinds", named(&KINDS, &self.kinds));
        put("connectives", named(&CONNECTIVES, &self.connectives));
        put("quantifiers", named(&QUANTIFIERS, &self.quantifiers));
        put("relations", named(&RELATIONS, &self.relations));
        put("truth", named(&TRUTH, &self.truth));
        put("atoms", named(&ATOMS, &self.atoms));
        match &self.predicates {
            Predicates::Overloaded { names, arities } => {
                put("overloaded", json!({"names": names, "arities": arities}));
            }
            Predicates::Blocks(blocks) => put("predicates", json!(blocks)),
        }
        put("functions", json!(self.functions));
        put("constants", json!(self.constants));
        put("arguments", json!(if self.arguments == Arguments::Terms { "terms" } else { "public" }));
        put("terms", named(&TERMS, &self.terms));
        put("term_depth", json!(self.term_depth));
        put("binder", json!(BINDERS.iter().find(|b| b.1 == self.binder).map(|b| b.0)));
        put("names", json!(self.names));
        // Only where they say something, so that laws without them keep their digest.
        let shares = [self.shadow, self.vacuous, self.recent, self.parentheses];
        for (key, share) in SHARES.into_iter().zip(shares).filter(|(_, share)| *share > 0) {
            put(key, json!(share));
        }
        put("sorted", named(&SORTED, &self.sorted));
        put("sorts", json!(self.sorts));
        if let Some(parts) = &self.statements {
            put("statements", parts.to_json());
        }
        put("max_tokens", json!(self.max_tokens));
        Json::Object(map)
    }
}

/// A share in percent.
fn percent(keys: &Keys, key: &str, most: u8) -> Result<u8, Refusal> {
    let share = u8::try_from(keys.number(key)?).ok().filter(|&share| share <= most);
    share.ok_or_else(|| keys.bad(key, format!("of 100 at most {most} are possible")))
}

/// The mean number of nodes of a tree of some depth, from the mean number of children.
fn mean_size(children: f64, depth: u32) -> f64 {
    (0..depth).fold(1.0, |nodes, _| (1.0 + children * nodes).min(MAX_MEAN_NODES))
}

impl Predicates {
    fn read(keys: &Keys) -> Result<Self, Refusal> {
        if keys.get("predicates").is_some() {
            return Ok(Self::Blocks(blocks(keys, "predicates", 0)?));
        }
        let Some(table) = keys.get("overloaded").and_then(|v| v.as_table()) else {
            return Err(keys.bad("overloaded", "a table with the keys names, arities is needed"));
        };
        let inner = Keys::new(table.clone(), "overloaded.", &["names", "arities"])?;
        let arities = inner.weighted("arities", MAX_ARITY)?;
        if arities.iter().all(|a| a.1 == 0) {
            return Err(inner.bad("arities", POSITIVE));
        }
        let names = inner.number("names")?;
        if names > MAX_SYMBOLS {
            return Err(inner.bad("names", format!("at most {MAX_SYMBOLS} are possible")));
        }
        Ok(Self::Overloaded { names, arities: arities.into_iter().map(|(a, w)| (a as usize, w)).collect() })
    }

    /// Arities with their weights, or with the sizes of their blocks.
    fn arities_and_weights(&self) -> &[(usize, u64)] {
        match self {
            Self::Overloaded { arities: list, .. } | Self::Blocks(list) => list,
        }
    }

    /// The number of predicate symbols.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Overloaded { names, .. } => *names,
            Self::Blocks(blocks) => number_of(blocks),
        }
    }

    fn arities(&self) -> Vec<Vec<usize>> {
        match self {
            Self::Overloaded { names, arities } => {
                let mut possible: Vec<usize> = arities.iter().filter(|a| a.1 > 0).map(|a| a.0).collect();
                possible.sort_unstable();
                possible.dedup();
                vec![possible; *names as usize]
            }
            Self::Blocks(blocks) => spread(blocks),
        }
    }
}
