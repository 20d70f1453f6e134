//! What a text is composed of, and splits that hold compositions out of training.
//!
//! *Atoms* are the rules of a text: its connectives, quantifiers, relations, truths, and each predicate, function and
//! constant with its arity; variables are not counted, as renaming changes them. *Compounds* are pairs of a rule and the
//! rule directly under it, with the place where it stands. Two kinds of splits are made of them: one holds named pairs
//! out, the other is one of maximum compound divergence (Keysers et al. 2020, sections 2 and 4): the atoms of training
//! and test are spread alike, the compounds as differently as can be found.

use std::collections::BTreeMap;

use crate::ast::{Definition, Formula, Statement, Term, Text, Variable};
use crate::error::Refusal;
use crate::law::config::bad_value;
use crate::symbol::SymbolId;

/// A rule: what a node of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// The symbol; of a name that of its category.
    pub symbol: SymbolId,
    /// The index and the number of arguments of a predicate, function or constant.
    pub name: Option<(u64, usize)>,
}

impl Rule {
    fn sign(symbol: SymbolId) -> Self {
        Self { symbol, name: None }
    }
}

/// A rule, the number of the child, and the rule of that child.
pub type Compound = (Rule, usize, Rule);

/// What a text is composed of, with how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Composition {
    /// The rules.
    pub atoms: BTreeMap<Rule, u32>,
    /// The pairs of rules.
    pub compounds: BTreeMap<Compound, u32>,
    /// Every predicate with the pattern of its arguments: variables in the order of their first occurrence, 0, 1, …;
    /// none where an argument is no variable.
    pub patterns: BTreeMap<(u64, Vec<usize>), u32>,
}

impl Composition {
    /// That of a text.
    pub fn of(text: &Text) -> Self {
        let mut found = Self::default();
        let mut pending: Vec<(Option<(Rule, usize)>, Node<'_>)> = Vec::new();
        for statement in &text.statements {
            let nodes: Vec<Node<'_>> = match statement {
                Statement::Formula(f) => vec![Node::Formula(f)],
                Statement::Sequent(_, premises, conclusion) => {
                    premises.iter().chain(conclusion).map(Node::Formula).collect()
                }
                Statement::Definition(Definition::Predicate(.., body)) => vec![Node::Formula(body)],
                Statement::Definition(Definition::Function(.., term) | Definition::Constant(_, term)) => {
                    vec![Node::Term(term)]
                }
                Statement::Equivalence(left, right) => vec![Node::Formula(left), Node::Formula(right)],
            };
            pending.extend(nodes.into_iter().map(|node| (None, node)));
            while let Some((above, node)) = pending.pop() {
                let Some((rule, children)) = found.node(node) else { continue };
                *found.atoms.entry(rule).or_default() += 1;
                if let Some((parent, place)) = above {
                    *found.compounds.entry((parent, place, rule)).or_default() += 1;
                }
                pending.extend(children.into_iter().enumerate().map(|(i, child)| (Some((rule, i)), child)));
            }
        }
        found
    }

    /// The rule of a node and its children; none for a variable.
    fn node<'a>(&mut self, node: Node<'a>) -> Option<(Rule, Vec<Node<'a>>)> {
        let named = |category: SymbolId, index: u64, terms: &'a [Term]| {
            (
                Rule { symbol: category, name: Some((index, terms.len())) },
                terms.iter().map(Node::Term).collect(),
            )
        };
        Some(match node {
            Node::Term(Term::Variable(_)) => return None,
            Node::Term(Term::Constant(c)) => named(SymbolId::CONST, c.0, &[]),
            Node::Term(Term::Function(f, terms)) => named(SymbolId::FUNC, f.0, terms),
            Node::Formula(Formula::Truth(true)) => (Rule::sign(SymbolId::TRUE), Vec::new()),
            Node::Formula(Formula::Truth(false)) => (Rule::sign(SymbolId::FALSE), Vec::new()),
            Node::Formula(Formula::Predicate(p, terms)) => {
                if let Some(pattern) = pattern(terms) {
                    *self.patterns.entry((p.0, pattern)).or_default() += 1;
                }
                named(SymbolId::PRED, p.0, terms)
            }
            Node::Formula(Formula::Relation(r, left, right)) => {
                (Rule::sign(r.symbol()), vec![Node::Term(left), Node::Term(right)])
            }
            Node::Formula(Formula::Not(f)) => (Rule::sign(SymbolId::NOT), vec![Node::Formula(f)]),
            Node::Formula(Formula::Binary(c, left, right)) => {
                (Rule::sign(c.symbol()), vec![Node::Formula(left), Node::Formula(right)])
            }
            Node::Formula(Formula::Quantified(q, _, _, f)) => {
                (Rule::sign(q.symbol()), vec![Node::Formula(f)])
            }
        })
    }
}

#[derive(Clone, Copy)]
enum Node<'a> {
    Formula(&'a Formula),
    Term(&'a Term),
}

/// Which arguments are the same variable; none where one is no variable.
fn pattern(terms: &[Term]) -> Option<Vec<usize>> {
    let mut seen: Vec<Variable> = Vec::new();
    let mut number = |term: &Term| {
        let Term::Variable(v) = term else { return None };
        let known = seen.iter().position(|s| s == v);
        Some(known.unwrap_or_else(|| {
            seen.push(*v);
            seen.len() - 1
        }))
    };
    terms.iter().map(&mut number).collect()
}

/// A composition that training never sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldOut {
    /// A rule directly under another, at any place: `EXISTS IMPLIES`.
    Pair(SymbolId, SymbolId),
    /// A predicate on a pattern of variables: `PRED 3 0 0` is P3(x, x).
    Pattern(u64, Vec<usize>),
}

impl HeldOut {
    /// Reads two labels of symbols, or `PRED`, an index and the pattern.
    ///
    /// # Errors
    /// `BadValue` with what is possible.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            bad_value(
                "hold_out",
                format!(
                    "\"{text}\": two symbols, as \"EXISTS IMPLIES\", or a predicate and which arguments are the same \
                     variable, as \"PRED 3 0 0\""
                ),
            )
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["PRED", index, pattern @ ..] if !pattern.is_empty() => {
                let pattern: Vec<usize> =
                    pattern.iter().map(|n| n.parse().ok()).collect::<Option<_>>().ok_or_else(wrong)?;
                // First occurrences come in order: 0, then at most 1, …
                let ordered = pattern
                    .iter()
                    .enumerate()
                    .all(|(i, &n)| n <= pattern.iter().take(i).map(|m| m + 1).max().unwrap_or(0));
                let index = index.parse().ok().filter(|_| ordered).ok_or_else(wrong)?;
                Ok(Self::Pattern(index, pattern))
            }
            [above, below] => {
                let rule = |label: &str| {
                    let symbol = SymbolId::from_label(label).filter(|s| is_rule(*s));
                    symbol.ok_or_else(wrong)
                };
                Ok(Self::Pair(rule(above)?, rule(below)?))
            }
            _ => Err(wrong()),
        }
    }

    /// As the configuration writes it.
    pub fn name(&self) -> String {
        match self {
            Self::Pair(above, below) => format!("{} {}", above.label(), below.label()),
            Self::Pattern(index, pattern) => {
                let pattern: Vec<String> = pattern.iter().map(ToString::to_string).collect();
                format!("PRED {index} {}", pattern.join(" "))
            }
        }
    }

    /// Whether a text has it.
    pub fn is_in(&self, text: &Composition) -> bool {
        match self {
            Self::Pair(above, below) => {
                text.compounds.keys().any(|(p, _, c)| p.symbol == *above && c.symbol == *below)
            }
            Self::Pattern(index, pattern) => text.patterns.contains_key(&(*index, pattern.clone())),
        }
    }

    /// Its components that a text has: the rule above, the rule below; or the predicate, the pattern on any other.
    pub fn components_in(&self, text: &Composition) -> [bool; 2] {
        match self {
            Self::Pair(above, below) => {
                let has = |symbol: &SymbolId| text.atoms.keys().any(|rule| rule.symbol == *symbol);
                [has(above), has(below)]
            }
            Self::Pattern(index, pattern) => [
                text.patterns.keys().any(|(p, _)| p == index),
                text.patterns.keys().any(|(_, other)| other == pattern),
            ],
        }
    }
}

/// Whether a symbol is that of a node above or below others: a connective, a quantifier, a relation, or a category of
/// names.
fn is_rule(symbol: SymbolId) -> bool {
    let names =
        [SymbolId::PRED, SymbolId::FUNC, SymbolId::CONST, SymbolId::NOT, SymbolId::TRUE, SymbolId::FALSE];
    names.contains(&symbol)
        || crate::ast::Connective::ALL.iter().any(|c| c.symbol() == symbol)
        || crate::ast::Quantifier::ALL.iter().any(|q| q.symbol() == symbol)
        || crate::ast::Relation::ALL.iter().any(|r| r.symbol() == symbol)
}

/// How far the two sides of a split are apart.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Divergence {
    /// 1 − Σ √(p q) over atoms: 0 for the same distribution, 1 for none in common.
    pub atoms: f64,
    /// 1 − Σ p^0.1 q^0.9 over compounds, p of training and q of test: it asks whether training has what test has, more
    /// than how often.
    pub compounds: f64,
}

/// The largest divergence of atoms.
pub(super) const MOST_ATOMS: f64 = 0.02;
/// Exponents of the share of training.
const ALPHA_ATOMS: f64 = 0.5;
const ALPHA_COMPOUNDS: f64 = 0.1;
/// Exchanges tried for each text.
const TRIES: u64 = 40;

/// The counts of one kind of parts on both sides, and Σ c^α d^(1−α) over them.
struct Spread {
    alpha: f64,
    counts: Vec<[i64; 2]>,
    totals: [i64; 2],
    sum: f64,
}

impl Spread {
    fn new(alpha: f64, kinds: usize) -> Self {
        Self { alpha, counts: vec![[0, 0]; kinds], totals: [0, 0], sum: 0.0 }
    }

    fn term(&self, [train, test]: [i64; 2]) -> f64 {
        (train.max(0) as f64).powf(self.alpha) * (test.max(0) as f64).powf(1.0 - self.alpha)
    }

    /// Adds a text to a side, or takes it away.
    fn add(&mut self, parts: &[(u32, u32)], side: usize, sign: i64) {
        for &(part, times) in parts {
            let Some(before) = self.counts.get(part as usize).copied() else { continue };
            let mut after = before;
            if let (Some(count), Some(total)) = (after.get_mut(side), self.totals.get_mut(side)) {
                *count += sign * i64::from(times);
                *total += sign * i64::from(times);
            }
            self.sum += self.term(after) - self.term(before);
            if let Some(counts) = self.counts.get_mut(part as usize) {
                *counts = after;
            }
        }
    }

    /// One minus the Chernoff coefficient.
    fn divergence(&self) -> f64 {
        let [train, test] = self.totals;
        let scale = self.term([train, test]);
        if scale > 0.0 { 1.0 - self.sum / scale } else { 1.0 }
    }

    /// The sum anew, without what rounding left in it.
    fn settle(&mut self) {
        self.sum = self.counts.iter().map(|counts| self.term(*counts)).sum();
    }
}

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Train,
    Test,
    /// Nowhere: which texts are left out is a part of what the climb chooses.
    Out,
}

impl Place {
    const ALL: [Self; 3] = [Self::Train, Self::Test, Self::Out];
}

/// Divides texts into training, test and what is left out, as many of each as `start` has, so that the compounds of
/// training and test diverge as far as a climb by exchanges finds while the atoms stay within [`MOST_ATOMS`]. Texts
/// without compounds stay where they start.
///
/// # Errors
/// `BadValue` where the atoms cannot be brought so near to each other.
pub(super) fn diverge(
    texts: &[Composition],
    start: &[Place],
    stream: &mut seeded::Stream,
) -> Result<(Vec<Place>, Divergence), Refusal> {
    let (atom_kinds, atoms) = numbered(texts.iter().map(|text| &text.atoms));
    let (compound_kinds, compounds) = numbered(texts.iter().map(|text| &text.compounds));
    let mut spread = [Spread::new(ALPHA_ATOMS, atom_kinds), Spread::new(ALPHA_COMPOUNDS, compound_kinds)];
    let change = |spread: &mut [Spread; 2], text: usize, place: Place, sign: i64| {
        if place == Place::Out {
            return;
        }
        for (spread, parts) in spread.iter_mut().zip([&atoms, &compounds]) {
            spread.add(parts.get(text).map(Vec::as_slice).unwrap_or_default(), place as usize, sign);
        }
    };
    for (text, &place) in start.iter().enumerate() {
        change(&mut spread, text, place, 1);
    }
    // Atoms too far apart weigh so much that no gain in compounds pays for them.
    let worth = |spread: &[Spread; 2]| {
        let [atoms, compounds] = spread;
        compounds.divergence() - 20.0 * (atoms.divergence() - MOST_ATOMS).max(0.0)
    };
    // Were texts without a compound exchanged, test would fill with them, and any compound left there be far from
    // training's.
    let composed = |text: &usize| texts.get(*text).is_some_and(|t| !t.compounds.is_empty());
    let mut members = Place::ALL.map(|place| -> Vec<usize> {
        (0..start.len()).filter(|&text| start.get(text) == Some(&place)).filter(composed).collect()
    });
    let mut best = worth(&spread);
    for attempt in 0..TRIES * texts.len() as u64 {
        // Two of the three places, each as often as the others.
        let pair = stream.below(3) as usize;
        let [one, other] = [pair, (pair + 1) % 3];
        let drawn = [one, other].map(|place| {
            let of_place = members.get(place).map_or(0, Vec::len);
            let at = (of_place > 0).then(|| stream.below(of_place as u64) as usize)?;
            Some((at, *members.get(place)?.get(at)?))
        });
        let [Some((i, a)), Some((j, b))] = drawn else { continue };
        let places = [one, other].map(|place| Place::ALL.get(place).copied().unwrap_or(Place::Out));
        let exchange = |spread: &mut [Spread; 2], sign: i64| {
            for (text, from, to) in [(a, places[0], places[1]), (b, places[1], places[0])] {
                change(spread, text, from, -sign);
                change(spread, text, to, sign);
            }
        };
        exchange(&mut spread, 1);
        let found = worth(&spread);
        if found > best {
            best = found;
            for (place, at, text) in [(one, i, b), (other, j, a)] {
                if let Some(member) = members.get_mut(place).and_then(|of_place| of_place.get_mut(at)) {
                    *member = text;
                }
            }
        } else {
            exchange(&mut spread, -1);
        }
        if attempt % 4096 == 0 {
            spread.iter_mut().for_each(Spread::settle);
            best = worth(&spread);
        }
    }
    let mut places = start.to_vec();
    for (place, texts) in Place::ALL.into_iter().zip(members) {
        for text in texts {
            if let Some(at) = places.get_mut(text) {
                *at = place;
            }
        }
    }
    spread.iter_mut().for_each(Spread::settle);
    let [atoms, compounds] = spread;
    let found = Divergence { atoms: atoms.divergence(), compounds: compounds.divergence() };
    if found.atoms > MOST_ATOMS {
        let why = format!(
            "the atoms stay {:.3} apart, {MOST_ATOMS} is allowed: more draws are needed",
            found.atoms
        );
        return Err(bad_value("split", why));
    }
    Ok((places, found))
}

/// Numbers for the parts, and each text by them.
fn numbered<'a, P: Ord + Clone + 'a>(
    texts: impl Iterator<Item = &'a BTreeMap<P, u32>>,
) -> (usize, Vec<Vec<(u32, u32)>>) {
    let mut numbers: BTreeMap<P, u32> = BTreeMap::new();
    let mut all = Vec::new();
    for text in texts {
        let mut parts = Vec::with_capacity(text.len());
        for (part, &times) in text {
            let next = numbers.len() as u32;
            parts.push((*numbers.entry(part.clone()).or_insert(next), times));
        }
        all.push(parts);
    }
    (numbers.len(), all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Mode, Source, parse};

    fn composition(text: &str) -> Composition {
        let tokens = parse(text, Source::Text, Mode::Strict).unwrap().tokens;
        Composition::of(&crate::decode(&tokens).unwrap())
    }

    #[test]
    fn parts_of_a_formula() {
        let found = composition("∀x1 (P2(x1, x3) → ¬∃x2 P2(x2, x2))");
        let labels: Vec<String> = found
            .compounds
            .keys()
            .map(|(p, i, c)| format!("{} {i} {}", p.symbol.label(), c.symbol.label()))
            .collect();
        let mut labels_sorted = labels.clone();
        labels_sorted.sort();
        assert_eq!(
            labels_sorted,
            ["EXISTS 0 PRED", "FORALL 0 IMPLIES", "IMPLIES 0 PRED", "IMPLIES 1 NOT", "NOT 0 EXISTS"]
        );
        assert_eq!(found.atoms.values().sum::<u32>(), 6);
        assert_eq!(found.patterns.keys().cloned().collect::<Vec<_>>(), [(2, vec![0, 0]), (2, vec![0, 1])]);
        let has = |held: &str| HeldOut::read(held).unwrap().is_in(&found);
        assert!(has("FORALL IMPLIES") && has("PRED 2 0 0") && has("NOT EXISTS") && has("PRED 2 0 1"));
        assert!(!has("EXISTS IMPLIES") && !has("PRED 2 0") && !has("PRED 1 0 0") && !has("IMPLIES FORALL"));
        let components = HeldOut::read("EXISTS IMPLIES").unwrap().components_in(&found);
        assert_eq!(components, [true, true]);
        assert_eq!(HeldOut::read("PRED 1 0 0").unwrap().components_in(&found), [false, true]);
        // Constants and functions are rules, and no pattern of variables.
        let terms = composition("P1(f2(c3), x0)");
        assert!(terms.patterns.is_empty() && terms.compounds.len() == 2);
    }

    #[test]
    fn what_cannot_be_held_out_is_refused() {
        for wrong in [
            "",
            "EXISTS",
            "EXISTS IMPLIES AND",
            "EXISTS SOMETHING",
            "PRED 1",
            "PRED x 0",
            "PRED 1 1",
            "PRED 1 0 2",
            "VAR AND",
            "LPAREN AND",
        ] {
            assert!(HeldOut::read(wrong).is_err(), "{wrong}");
        }
        for right in ["EXISTS IMPLIES", "NOT PRED", "PRED 3 0 0", "PRED 3 0 1 0 2"] {
            assert_eq!(HeldOut::read(right).unwrap().name(), right);
        }
    }

    /// The sums that are kept up to date are those of the definition.
    #[test]
    fn divergences_by_definition() {
        let law = crate::law::Law::named("public", &[]).unwrap();
        let mut sampler = crate::sample::Sampler::new(&law).unwrap();
        let family = crate::sample::family("divergence-test", 0);
        let texts: Vec<Composition> = (0..1500)
            .map(|item| {
                let mut tokens = Vec::new();
                sampler.sample(&mut family.stream(item), &mut tokens);
                Composition::of(&crate::decode(&tokens).unwrap())
            })
            .collect();
        let places = [Place::Test, Place::Train, Place::Out, Place::Train, Place::Out];
        let start: Vec<Place> = places.into_iter().cycle().take(1500).collect();
        let by_definition = |side: &[Place]| {
            fn chernoff<P: Ord + Clone>(texts: &[(&BTreeMap<P, u32>, bool)], alpha: f64) -> f64 {
                let mut counts: BTreeMap<P, [f64; 2]> = BTreeMap::new();
                let mut totals = [0.0; 2];
                for (parts, test) in texts {
                    for (part, times) in *parts {
                        counts.entry(part.clone()).or_default()[usize::from(*test)] += f64::from(*times);
                        totals[usize::from(*test)] += f64::from(*times);
                    }
                }
                let share =
                    |c: &[f64; 2]| (c[0] / totals[0]).powf(alpha) * (c[1] / totals[1]).powf(1.0 - alpha);
                1.0 - counts.values().map(share).sum::<f64>()
            }
            let of = |place: Place| (place != Place::Out).then_some(place == Place::Test);
            let sides = || texts.iter().zip(side).filter_map(|(t, place)| Some((t, of(*place)?)));
            let atoms: Vec<_> = sides().map(|(t, test)| (&t.atoms, test)).collect();
            let compounds: Vec<_> = sides().map(|(t, test)| (&t.compounds, test)).collect();
            [chernoff(&atoms, 0.5), chernoff(&compounds, 0.1)]
        };
        let before = by_definition(&start);
        let (side, found) = diverge(&texts, &start, &mut family.stream(u64::MAX)).unwrap();
        let after = by_definition(&side);
        assert!((found.atoms - after[0]).abs() < 1e-9 && (found.compounds - after[1]).abs() < 1e-9);
        assert!(after[0] <= MOST_ATOMS && after[1] > 2.0 * before[1], "{before:?} {after:?}");
        assert_eq!([Place::Train, Place::Test].map(|p| side.iter().filter(|q| **q == p).count()), [600, 300]);
        // The same stream, the same split.
        assert_eq!(diverge(&texts, &start, &mut family.stream(u64::MAX)).unwrap().0, side);
    }
}
