//! Symbol invention: definitions that make a corpus shorter.
//!
//! A proposal is a statement `P(x0, …) ≔ φ`, `f(x0, …) ≔ t` or `c ≔ t`. Candidates are the patterns that sub-formulas and
//! terms of the corpus have in common (from the top down, bounded by the most that a pattern can
//! gain, after Bowers et al., *Top-Down Synthesis for Library Learning*, 2023). What a definition gains is counted in tokens of
//! what it leaves: those of the corpus, less those of the definition and of the corpus in which it is used wherever that is
//! shorter. Definitions are explicit, so the extension is conservative, and [`Definitions::expand`] brings the corpus back, up to names of
//! bound variables.
//!
//! ```
//! use fol::invent::{Definitions, Library, Options, text_of};
//! use fol::read::{Mode, Source, parse};
//! use fol::{Style, print};
//!
//! let read = |text| parse(text, Source::Text, Mode::Strict).map(|p| p.text.as_formula().cloned());
//! let corpus = ["(P1(x0) ∧ P2(x0))", "∀x3 (P1(x3) ∧ P2(x3))", "¬(P1(c7) ∧ P2(c7))"];
//! let corpus: Vec<_> = corpus.into_iter().flat_map(read).flatten().collect();
//! let mut library = Library::new(&corpus);
//! library.invent(&Options::default(), &mut |_| true);
//! let found = &library.definitions()[0];
//! assert_eq!(print(&text_of(&found.definition), Style::Unicode), "P0(x0) ≔ (P1(x0) ∧ P2(x0)).");
//! assert_eq!((found.uses, found.gain), (3, 4));
//! let back = Definitions::new([&found.definition])?.expand(&library.folded()[2])?;
//! assert_eq!(back, corpus[2]);
//! # Ok::<(), fol::error::Refusal>(())
//! ```

mod arena;
mod fold;
mod places;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Constant, Definition, Formula, Function, Predicate, Statement, Text, Variable};
use crate::check::{self, check};
use crate::encode;
use crate::error::{Kind, MAX_DEPTH, Refusal};
use crate::read::{Mode, Source, parse};
use crate::symbol::SymbolId;
use crate::walk::{Event, walk};

use arena::Arena;
use search::Reach;

/// How symbols are invented.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Definitions at most.
    pub most: usize,
    /// Parameters of one at most.
    pub arity: usize,
    /// Patterns that are looked at for one definition at most.
    pub patterns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { most: 20, arity: 4, patterns: 2_000_000 }
    }
}

/// A definition with what it brought when it was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Invented {
    /// With a symbol that stood nowhere in the corpus before.
    pub definition: Definition,
    /// Places of the corpus, and of earlier definitions' uses, where it stands now.
    pub uses: u64,
    /// Tokens of the corpus before, less those of the definition with its DOT and of the corpus after. More than 0.
    pub gain: u64,
    /// Whether all patterns were looked at: no other single definition would have gained more.
    pub best: bool,
}

/// A corpus and the definitions that are used in it.
#[derive(Debug)]
pub struct Library {
    arena: Arena,
    /// The formulas as they are now.
    corpus: Vec<usize>,
    definitions: Vec<Invented>,
    used: Used,
    before: u64,
}

/// What is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Symbol {
    Predicate(u64),
    Function(u64),
    Constant(u64),
}

impl Symbol {
    fn name(self) -> (SymbolId, u64) {
        match self {
            Self::Predicate(n) => (SymbolId::PRED, n),
            Self::Function(n) => (SymbolId::FUNC, n),
            Self::Constant(n) => (SymbolId::CONST, n),
        }
    }
}

/// The indices that stand somewhere.
#[derive(Debug, Default)]
struct Used {
    predicates: BTreeSet<u64>,
    functions: BTreeSet<u64>,
    constants: BTreeSet<u64>,
}

impl Used {
    fn of(&mut self, category: SymbolId) -> &mut BTreeSet<u64> {
        match category {
            SymbolId::PRED => &mut self.predicates,
            SymbolId::FUNC => &mut self.functions,
            _ => &mut self.constants,
        }
    }
}

fn unused(of: &BTreeSet<u64>) -> u64 {
    (0..).find(|n| !of.contains(n)).unwrap_or(u64::MAX)
}

impl Library {
    /// A corpus without definitions.
    pub fn new<'a>(corpus: impl IntoIterator<Item = &'a Formula>) -> Self {
        let (mut arena, mut used) = (Arena::default(), Used::default());
        let corpus: Vec<usize> = corpus
            .into_iter()
            .map(|formula| {
                let text = Text::formula(formula.clone());
                walk(&text, |event| {
                    if let Event::Name { category, index, .. } = event {
                        used.of(category).insert(index);
                    }
                });
                arena.formula(formula)
            })
            .collect();
        let before = corpus.iter().map(|&root| written(&arena, root)).sum();
        Self { arena, corpus, definitions: Vec::new(), used, before }
    }

    /// The definitions, in the order in which they were accepted: each may use those before it.
    pub fn definitions(&self) -> &[Invented] {
        &self.definitions
    }

    /// The corpus as it is now, in canonical names of bound variables (K1).
    pub fn folded(&self) -> Vec<Formula> {
        self.corpus.iter().map(|&root| self.arena.formula_of(root)).collect()
    }

    /// Tokens of the corpus, and of definitions and corpus now.
    pub fn tokens(&self) -> (u64, u64) {
        let now = self.now();
        let definitions: u64 = self.definitions.iter().map(|d| tokens_of(&d.definition)).sum();
        (self.before, now + definitions)
    }

    fn now(&self) -> u64 {
        self.corpus.iter().map(|&root| written(&self.arena, root)).sum()
    }

    /// The definition that gains most, if one gains anything; `None` as well where `goes_on` says that it shall stop.
    pub fn propose(&self, options: &Options, goes_on: &mut dyn FnMut(u64) -> bool) -> Option<Proposal> {
        self.proposals(options, 1, goes_on).into_iter().next()
    }

    /// The definitions that gain most, each for itself, the best first.
    pub fn proposals(
        &self,
        options: &Options,
        most: usize,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Vec<Proposal> {
        let reach = Reach {
            arity: options.arity,
            patterns: options.patterns,
            keep: most.max(1),
            predicate: unused(&self.used.predicates),
            function: unused(&self.used.functions),
            constant: unused(&self.used.constants),
        };
        let found = search::search(&self.arena, &self.corpus, reach, goes_on);
        let best = found.complete;
        let proposal = |p: search::Pattern| Proposal { steps: p.steps, arity: p.arity, gain: p.gain, best };
        let found = found.patterns.into_iter().map(proposal);
        if self.corpus.iter().all(|&root| self.arena.size(root) < LONG) {
            return found.collect();
        }
        // The search counts a name as one digit.
        let mut exact: Vec<Proposal> = found.filter_map(|p| self.measured(p)).collect();
        exact.sort_by_key(|p| std::cmp::Reverse(p.gain));
        exact
    }

    /// A proposal with what it gains as it is written, if it gains anything.
    fn measured(&self, proposal: Proposal) -> Option<Proposal> {
        let folded =
            self.with(&proposal).into_iter().map(|formula| encode(&Text::formula(formula)).len() as u64);
        let after = folded.sum::<u64>() + tokens_of(&self.definition(&proposal));
        let gain = self.now().checked_sub(after).filter(|gain| *gain > 0)?;
        Some(Proposal { gain, best: false, ..proposal })
    }

    /// What a proposal is as a definition, with the smallest names that stand nowhere.
    pub fn definition(&self, proposal: &Proposal) -> Definition {
        let mut arena = self.arena.clone();
        let body = search::body(&mut arena, &proposal.steps);
        let parameters = (0..proposal.arity as u64).map(Variable).collect();
        match self.symbol(&arena, body, proposal.arity) {
            Symbol::Predicate(n) => Definition::Predicate(Predicate(n), parameters, arena.formula_of(body)),
            Symbol::Function(n) => Definition::Function(Function(n), parameters, arena.term_of(body)),
            Symbol::Constant(n) => Definition::Constant(Constant(n), arena.term_of(body)),
        }
    }

    fn symbol(&self, arena: &Arena, body: usize, arity: usize) -> Symbol {
        if arena.is_formula(body) {
            Symbol::Predicate(unused(&self.used.predicates))
        } else if arity > 0 {
            Symbol::Function(unused(&self.used.functions))
        } else {
            Symbol::Constant(unused(&self.used.constants))
        }
    }

    /// The corpus with a proposal in use, in canonical names of bound variables (K1).
    pub fn with(&self, proposal: &Proposal) -> Vec<Formula> {
        let mut arena = self.arena.clone();
        let body = search::body(&mut arena, &proposal.steps);
        let symbol = self.symbol(&arena, body, proposal.arity);
        let (roots, _) = fold::fold(&mut arena, &self.corpus, body, proposal.arity, symbol);
        roots.into_iter().map(|root| arena.formula_of(root)).collect()
    }

    /// Takes a proposal of this library, as it is now, into it.
    pub fn accept(&mut self, proposal: &Proposal) {
        let definition = self.definition(proposal);
        let body = search::body(&mut self.arena, &proposal.steps);
        let symbol = self.symbol(&self.arena, body, proposal.arity);
        let (roots, uses) = fold::fold(&mut self.arena, &self.corpus, body, proposal.arity, symbol);
        self.corpus = roots;
        let (category, index) = symbol.name();
        self.used.of(category).insert(index);
        let (gain, best) = (proposal.gain, proposal.best);
        self.definitions.push(Invented { definition, uses, gain, best });
    }

    /// Accepts the best definition as long as one gains, at most as many as the options say. `goes_on` hears how many patterns
    /// were looked at, and may end it between two definitions or within one.
    pub fn invent(&mut self, options: &Options, goes_on: &mut dyn FnMut(u64) -> bool) {
        while self.definitions.len() < options.most {
            let Some(proposal) = self.propose(options, goes_on) else { return };
            self.accept(&proposal);
        }
    }
}

/// Formulas of so many tokens may have so many binders that canonical names have two digits.
const LONG: u64 = 625;

/// The tokens of a formula in canonical names.
fn written(arena: &Arena, root: usize) -> u64 {
    let size = arena.size(root);
    if size < LONG { size } else { encode(&Text::formula(arena.formula_of(root))).len() as u64 }
}

/// A definition that would gain something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The body, outermost first.
    steps: Vec<search::Step>,
    arity: usize,
    /// Tokens, more than 0.
    gain: u64,
    best: bool,
}

impl Proposal {
    /// Tokens of the corpus before, less those of the definition and of the corpus after.
    pub fn gain(&self) -> u64 {
        self.gain
    }
}

/// Tokens of a definition with its DOT.
pub fn tokens_of(definition: &Definition) -> u64 {
    encode(&text_of(definition)).len() as u64
}

/// A definition as a text that ends in DOT.
pub fn text_of(definition: &Definition) -> Text {
    Text { statements: vec![Statement::Definition(definition.clone())], terminated: true }
}

/// Definitions, as a text may give them, in an order in which none uses a later one.
#[derive(Debug, Clone)]
pub struct Definitions {
    arena: Arena,
    bodies: BTreeMap<Symbol, (usize, usize)>,
}

/// What a formula may come to when definitions are expanded: a body that has a parameter twice doubles with every level.
const MOST_TOKENS: u64 = 1 << 22;

impl Definitions {
    /// Checks definitions: parameters are distinct, bodies have no other free variables, no symbol is defined twice, and none uses
    /// itself, directly or through others.
    ///
    /// # Errors
    /// The first definition for which that does not hold, and why.
    pub fn new<'a>(definitions: impl IntoIterator<Item = &'a Definition>) -> Result<Self, Refusal> {
        let all: Vec<&Definition> = definitions.into_iter().collect();
        // Laws may give an index several arities; what is defined has one, and expanding looks at that.
        let options = check::Options { overloaded: true, ..check::Options::default() };
        for definition in &all {
            let tokens: Vec<String> =
                encode(&text_of(definition)).iter().map(|s| s.get().to_string()).collect();
            check(&parse(&tokens.join(" "), Source::Tokens, Mode::Strict)?, &options)?;
        }
        let mut given: BTreeMap<Symbol, &Definition> = BTreeMap::new();
        for definition in &all {
            if given.insert(head(definition), definition).is_some() {
                let message = format!("{} is defined twice", shown(head(definition)));
                return Err(Refusal::new(Kind::CircularDefinition, message));
            }
        }
        let mut found = Self { arena: Arena::default(), bodies: BTreeMap::new() };
        for &symbol in given.keys() {
            found.define(symbol, &given, &mut Vec::new())?;
        }
        Ok(found)
    }

    /// Expands the body of a definition after those that it uses.
    fn define(
        &mut self,
        symbol: Symbol,
        given: &BTreeMap<Symbol, &Definition>,
        open: &mut Vec<Symbol>,
    ) -> Result<(), Refusal> {
        let Some(&definition) = given.get(&symbol).filter(|_| !self.bodies.contains_key(&symbol)) else {
            return Ok(());
        };
        if open.contains(&symbol) {
            let names: Vec<String> = open.iter().map(|&s| shown(s)).collect();
            let message = format!("{} is defined by itself, through {}", shown(symbol), names.join(", "));
            return Err(Refusal::new(Kind::CircularDefinition, message));
        }
        open.push(symbol);
        let (body, arity) = match definition {
            Definition::Predicate(_, parameters, body) => {
                (self.arena.formula_with(body, parameters), parameters.len())
            }
            Definition::Function(_, parameters, body) => {
                (self.arena.term_with(body, parameters), parameters.len())
            }
            Definition::Constant(_, body) => (self.arena.term_with(body, &[]), 0),
        };
        for used in self.arena.symbols(body) {
            self.define(used, given, open)?;
        }
        open.pop();
        let body = fold::expand(&mut self.arena, body, &self.bodies)?;
        readable(&self.arena, body)?;
        self.bodies.insert(symbol, (body, arity));
        Ok(())
    }

    /// A formula in which every defined symbol is replaced by its body, in canonical names of bound variables (K1).
    ///
    /// # Errors
    /// A defined symbol with other arguments than its definition has parameters, or a formula that would become too long.
    pub fn expand(&self, formula: &Formula) -> Result<Formula, Refusal> {
        let mut arena = self.arena.clone();
        let root = arena.formula(formula);
        let root = fold::expand(&mut arena, root, &self.bodies)?;
        readable(&arena, root)?;
        Ok(arena.formula_of(root))
    }

    /// Where a definition could stand in a formula without definitions: of every part that has the outermost sign of the
    /// expanded body the last of its tokens, counted from 0 in the formula in canonical names (K1), and whether the part is an instance.
    /// Parts that end together are one, and an instance if one of them is.
    ///
    /// # Errors
    /// A formula of 625 tokens or more, in which a canonical name may have two digits, or a symbol that is not defined here.
    pub fn places(
        &self,
        definition: &Definition,
        formula: &Formula,
    ) -> Result<BTreeMap<usize, bool>, Refusal> {
        let symbol = head(definition);
        let &(body, arity) = self.bodies.get(&symbol).ok_or_else(|| {
            Refusal::new(Kind::NotInSignature, format!("{} is not defined here", shown(symbol)))
        })?;
        let mut arena = self.arena.clone();
        let root = arena.formula(formula);
        places::places(&mut arena, root, (symbol, body, arity)).ok_or_else(|| {
            Refusal::new(Kind::TooLong, "in 625 tokens and more a canonical name may have two digits")
        })
    }
}

/// Refuses what no reader would take, or no memory has room for.
fn readable(arena: &Arena, root: usize) -> Result<(), Refusal> {
    let (tokens, depth) = (arena.size(root), arena.height(root));
    if tokens > MOST_TOKENS {
        let message = format!("expanded it has {tokens} tokens, and {MOST_TOKENS} are the most");
        return Err(Refusal::new(Kind::TooLong, message));
    }
    if depth > MAX_DEPTH {
        return Err(Refusal::new(
            Kind::TooDeep,
            format!("expanded it is {depth} deep, and {MAX_DEPTH} is the most"),
        ));
    }
    Ok(())
}

fn head(definition: &Definition) -> Symbol {
    match definition {
        Definition::Predicate(p, ..) => Symbol::Predicate(p.0),
        Definition::Function(f, ..) => Symbol::Function(f.0),
        Definition::Constant(c, _) => Symbol::Constant(c.0),
    }
}

fn shown(symbol: Symbol) -> String {
    match symbol {
        Symbol::Predicate(n) => format!("P{n}"),
        Symbol::Function(n) => format!("f{n}"),
        Symbol::Constant(n) => format!("c{n}"),
    }
}
