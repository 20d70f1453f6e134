//! Demand: rules that derive only what a goal with constants needs (magic sets; Beeri and
//! Ramakrishnan 1991).
//!
//! Enter at [`magic`]. Each relation that rules define gets a copy for each pattern of bound
//! places in which it is asked for, and a relation of the bound constants that are asked for; the
//! rules of the copy are guarded by it. Bodies are ordered so that what is bound comes first.
//!
//! Demand goes through arithmetic: a chain `n(x) <- n(x - 1)` asked for one number asks for those below it. And it stops at
//! what is given: a tuple whose places are all bound and that is a fact is not asked for further. (Where rules make
//! numbers there may be more to ask for than to derive: `n(-3)` of a chain upwards from 0 asks without end. That is
//! for the caller to bound.)
//!
//! Three odd cases. A rule whose recursive atom has the bound places of its head needs no guard,
//! which keeps the shape that [`super::linear`] runs as a search. Linear recursion that carries
//! only the free place (`p(x, z) <- e(x, y), p(y, z)` asked for one `x`) is turned round: a walk
//! from the bound constant, then the rules without recursion at its end. And what is negated, or
//! would be summed within its own demand, is taken as a whole with all below it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::database::Database;
use super::fixpoint::check;
use super::limits::Failure;
use super::linear::step_of;
use super::ring::{Combine, Ring};
use super::rule::{Atom, Literal, RelationId, Rule, Term, Variable};
use super::strata::{Stratum, strata};

/// Rules for a goal.
#[derive(Debug, Clone)]
pub struct Demand {
    /// The rules, over relations that were declared for them.
    pub rules: Vec<Rule>,
    /// Where the goal's tuples are to be found. There may be tuples with other constants too.
    pub answer: RelationId,
    /// For each copy, the relation that it is a copy of.
    pub copies: Vec<(RelationId, RelationId)>,
    /// Relations that will hold all the tuples of others: copies without demand, and relations that are taken as a whole,
    /// of themselves.
    pub complete: Vec<(RelationId, RelationId)>,
    /// Whether some relation is asked for constants.
    pub bound: bool,
    /// Whether the rules have a recursion.
    pub recursive: bool,
    /// Whether what is asked for depends on what is found: there may be as much work as for everything.
    pub entangled: bool,
}

/// The rules that derive the tuples of `goal` with these constants in its places.
///
/// # Errors
/// Those of [`super::evaluate`] that need no evaluation.
pub fn magic(
    database: &mut Database,
    rules: &[Rule],
    goal: RelationId,
    bound: &[Option<u32>],
) -> Result<Demand, Failure> {
    check(database, rules)?;
    let before = database.relations();
    let mut whole = BTreeSet::new();
    loop {
        let mut magic = Magic::new(database, rules, whole.clone());
        let pattern: Vec<bool> = bound.iter().map(Option::is_some).collect();
        let copy = magic.copy(goal, pattern);
        while let Some((relation, pattern)) = magic.open.pop() {
            magic.define(relation, &pattern);
        }
        magic.widen();
        let (mut out, copies, wider) = (magic.out, magic.copies, below(rules, magic.whole));
        out.extend(rules.iter().filter(|rule| whole.contains(&rule.head)).cloned());
        let copied = |rule: &&Rule| !whole.contains(&rule.head);
        let left: BTreeSet<RelationId> = rules.iter().filter(copied).map(|rule| rule.head).collect();
        if wider != whole {
            whole = wider;
        } else if check(database, &out).is_err() && !left.is_empty() {
            let sums: BTreeSet<RelationId> =
                left.iter().filter(|id| !database.relation(**id).ring().idempotent()).copied().collect();
            whole.extend(if sums.is_empty() { left } else { sums });
            whole = below(rules, whole);
        } else {
            let mut complete: Vec<_> = whole.iter().map(|relation| (*relation, *relation)).collect();
            complete.extend(
                copies.iter().filter(|(_, c)| c.demand.is_none()).map(|((of, _), c)| (c.relation, *of)),
            );
            let strata = strata(database.relations(), &out);
            let demands: BTreeSet<RelationId> = copies.values().filter_map(|copy| copy.demand).collect();
            let found: BTreeSet<RelationId> = copies.values().map(|copy| copy.relation).collect();
            let asks = |stratum: &Stratum| stratum.relations.iter().any(|id| demands.contains(id));
            let finds = |stratum: &Stratum| stratum.relations.iter().any(|id| found.contains(id));
            let demand = Demand {
                complete,
                bound: copies.values().any(|copy| copy.demand.is_some()),
                recursive: strata.iter().any(|stratum| stratum.recursive),
                entangled: strata.iter().any(|stratum| asks(stratum) && finds(stratum)),
                answer: copy.map_or(goal, |copy| copy.relation),
                copies: copies.iter().map(|((original, _), copy)| (copy.relation, *original)).collect(),
                rules: out,
            };
            if let Some(asked) = copy.and_then(|copy| copy.demand) {
                let seed: Vec<u32> = bound.iter().flatten().copied().collect();
                database.insert(asked, &seed, &[])?;
            }
            return Ok(demand);
        }
        database.truncate(before);
    }
}

/// These relations and all that rules define them by.
fn below(rules: &[Rule], mut relations: BTreeSet<RelationId>) -> BTreeSet<RelationId> {
    let by_head = by_head(rules);
    let mut open: Vec<RelationId> = relations.iter().copied().collect();
    while let Some(relation) = open.pop() {
        for &at in by_head.get(&relation).into_iter().flatten() {
            for id in needed(&rules[at]).filter(|id| by_head.contains_key(id)) {
                if relations.insert(id) {
                    open.push(id);
                }
            }
        }
    }
    relations
}

/// The relations that a rule reads.
fn needed(rule: &Rule) -> impl Iterator<Item = RelationId> {
    rule.body.iter().filter_map(|literal| match literal {
        Literal::Atom(atom) | Literal::Not(atom) => Some(atom.relation),
        _ => None,
    })
}

/// The rules of each relation, by their numbers.
fn by_head(rules: &[Rule]) -> HashMap<RelationId, Vec<usize>> {
    let mut found: HashMap<RelationId, Vec<usize>> = HashMap::new();
    for (at, rule) in rules.iter().enumerate() {
        found.entry(rule.head).or_default().push(at);
    }
    found
}

/// A copy of a relation for a pattern.
#[derive(Debug, Clone, Copy)]
struct Copy {
    relation: RelationId,
    /// The bound constants that are asked for; `None` where all tuples are.
    demand: Option<RelationId>,
}

/// Which places of a relation are bound.
type Pattern = Vec<bool>;

struct Magic<'a> {
    database: &'a mut Database,
    /// The program's rules, and those that are turned round, and what they define.
    rules: Vec<Rule>,
    heads: HashMap<RelationId, Vec<usize>>,
    copies: BTreeMap<(RelationId, Pattern), Copy>,
    open: Vec<(RelationId, Pattern)>,
    out: Vec<Rule>,
    /// Relations that are taken as a whole, by their own rules.
    whole: BTreeSet<RelationId>,
}

impl<'a> Magic<'a> {
    fn new(database: &'a mut Database, rules: &[Rule], whole: BTreeSet<RelationId>) -> Magic<'a> {
        let (copies, open, out) = (BTreeMap::new(), Vec::new(), Vec::new());
        let heads = by_head(rules);
        Magic { database, rules: rules.to_vec(), heads, copies, open, out, whole }
    }

    /// Whether rules define a relation, and it is not taken as a whole.
    fn derived(&self, relation: RelationId) -> bool {
        !self.whole.contains(&relation) && self.heads.contains_key(&relation)
    }

    /// The rules that define a relation.
    fn rules_of(&self, relation: RelationId) -> impl Iterator<Item = &Rule> {
        self.heads.get(&relation).into_iter().flatten().map(|at| &self.rules[*at])
    }

    /// The copy of a relation, if it has one.
    fn copy(&mut self, relation: RelationId, pattern: Pattern) -> Option<Copy> {
        if !self.derived(relation) {
            return None;
        }
        let key = (relation, pattern);
        if let Some(copy) = self.copies.get(&key) {
            return Some(*copy);
        }
        let stored = self.database.relation(relation);
        let (name, arity, ring) = (stored.name().to_owned(), stored.arity(), stored.ring());
        let bound = key.1.iter().filter(|bound| **bound).count();
        let demand =
            (bound > 0).then(|| self.database.declare(format!("demand of {name}"), bound, Ring::BOOLEAN));
        let copy = Copy { relation: self.database.declare(name, arity, ring), demand };
        self.copies.insert(key.clone(), copy);
        self.open.push(key);
        Some(copy)
    }

    /// What is asked for without a bound place and with one too is asked for as a whole.
    fn widen(&mut self) {
        let asked = |bound: bool| -> BTreeSet<RelationId> {
            let keys = self.copies.keys().filter(|(_, pattern)| pattern.contains(&true) == bound);
            keys.map(|(relation, _)| *relation).collect()
        };
        let both: Vec<RelationId> = asked(true).intersection(&asked(false)).copied().collect();
        self.whole.extend(both);
    }

    /// Makes the rules of a copy.
    fn define(&mut self, relation: RelationId, pattern: &Pattern) {
        let Some(copy) = self.copies.get(&(relation, pattern.clone())).copied() else { return };
        if !self.database.relation(relation).is_empty() {
            let places = 0..self.database.relation(relation).arity() as u32;
            let terms: Vec<Term> = places.map(Term::variable).collect();
            let mut body: Vec<Literal> =
                guard(copy, &terms, pattern).into_iter().map(Literal::Atom).collect();
            body.push(Atom::factor(relation, terms.clone()).into());
            self.out.push(Rule::new(copy.relation, terms, body));
        }
        let rules = match self.turned(relation, pattern) {
            Some(rules) => rules,
            None => self.rules_of(relation).cloned().collect(),
        };
        for rule in rules {
            self.adorn(&rule, copy, pattern);
        }
    }

    /// Makes the rule of a copy from a rule, and the rules of the demand that its body has.
    fn adorn(&mut self, rule: &Rule, copy: Copy, pattern: &Pattern) {
        let guard = guard(copy, &rule.head_terms, pattern);
        let mut bound: BTreeSet<Variable> =
            guard.iter().flat_map(|g| &g.terms).filter_map(|t| t.as_variable()).collect();
        let mut atoms: Vec<&Atom> = rule.atoms().collect();
        let mut guard: Vec<Literal> = guard.into_iter().map(Literal::Atom).collect();
        let given = self.database.relation(rule.head);
        if !guard.is_empty()
            && !pattern.contains(&false)
            && given.ring() == Ring::BOOLEAN
            && !given.is_empty()
        {
            guard.push(Literal::Not(Atom::new(rule.head, rule.head_terms.clone())));
        }
        let mut before = guard.clone();
        let mut arithmetic: Vec<&Literal> = rule
            .body
            .iter()
            .filter(|literal| !matches!(literal, Literal::Atom(_) | Literal::Not(_)))
            .collect();
        follow(&mut arithmetic, &mut bound, &mut before);
        let mut body: Vec<Literal> = Vec::new();
        let mut carried = false;
        while let Some(at) = self.next(&atoms, &bound) {
            let atom = atoms.remove(at);
            let known = |term: &Term| match term {
                Term::Constant(_) => true,
                Term::Variable(variable) => bound.contains(variable),
                Term::Any => false,
            };
            let asked: Pattern = atom.terms.iter().map(known).collect();
            let mut atom = atom.clone();
            if let Some(other) = self.copy(atom.relation, asked.clone()) {
                if let Some(demand) = other.demand {
                    let wanted = filtered(&atom.terms, &asked);
                    let own = other.relation == copy.relation && asks(&guard, &wanted);
                    carried |= own;
                    if !own {
                        self.out.push(Rule::new(demand, wanted, before.clone()));
                    }
                }
                atom.relation = other.relation;
            }
            bound.extend(atom.terms.iter().filter_map(|term| term.as_variable()));
            before.push(Atom { factor: false, ..atom.clone() }.into());
            body.push(atom.into());
            follow(&mut arithmetic, &mut bound, &mut before);
        }
        for literal in &rule.body {
            match literal {
                Literal::Atom(_) => {}
                Literal::Not(atom) => {
                    if self.derived(atom.relation) {
                        self.whole.insert(atom.relation);
                    }
                    body.push(literal.clone());
                }
                other => body.push(other.clone()),
            }
        }
        if !carried {
            body.splice(0..0, guard);
        }
        self.out.push(Rule { head: copy.relation, body, ..rule.clone() });
    }

    /// The atom to be joined next: what is bound before what is not, what is stored before what is
    /// derived.
    fn next(&self, atoms: &[&Atom], bound: &BTreeSet<Variable>) -> Option<usize> {
        let rank = |atom: &Atom| {
            let derived = self.derived(atom.relation);
            let touched = atom.terms.iter().any(|term| match term {
                Term::Constant(_) => true,
                Term::Variable(variable) => bound.contains(variable),
                Term::Any => false,
            });
            (!touched, derived)
        };
        (0..atoms.len()).min_by_key(|at| rank(atoms[*at]))
    }

    /// Linear recursion that carries only the free place, asked for the other: a walk along its
    /// steps, backwards, and at its end the rules without recursion.
    fn turned(&mut self, relation: RelationId, pattern: &Pattern) -> Option<Vec<Rule>> {
        let carried = match pattern.as_slice() {
            [true, false] => 1,
            [false, true] => 0,
            _ => return None,
        };
        let ring = self.database.relation(relation).ring();
        let own = self.heads.get(&relation).into_iter().flatten().map(|at| &self.rules[*at]);
        let (recursive, plain): (Vec<&Rule>, Vec<&Rule>) =
            own.partition(|rule| rule.atoms().any(|atom| atom.relation == relation));
        if ring.combine != Combine::Exists || recursive.is_empty() || self.is_mutual(relation) {
            return None;
        }
        let before = self.database.relations();
        let walk = self.database.declare("walk", 2, Ring::BOOLEAN);
        let end = self.database.declare("end", 2, Ring::BOOLEAN);
        let steps = recursive.iter().map(|rule| step_of(rule, relation, Some(carried), walk, ring));
        let Some(steps) = steps.collect::<Option<Vec<Rule>>>() else {
            self.database.truncate(before);
            return None;
        };
        let mut rules = Vec::new();
        let [start, free] = [0, 1].map(Term::variable);
        rules.push(Rule::new(walk, [start, start], []));
        for (step, origin) in steps.into_iter().zip(recursive.iter().map(|rule| rule.origin)) {
            let [from, to] = step.head_terms[..] else { return None };
            let used = step.body.iter().flat_map(super::plan::terms).chain([from, to]);
            let fresh = used.filter_map(Term::as_variable).map(|variable| variable.0 + 1).max().unwrap_or(0);
            let start = Term::variable(fresh);
            let mut body = step.body.clone();
            body.push(Atom::new(walk, [start, to]).into());
            rules.push(Rule { origin, ..Rule::new(walk, [start, from], body) });
        }
        let ordered = |moving: Term, kept: Term| if carried == 1 { [moving, kept] } else { [kept, moving] };
        for rule in plain {
            let mut rule = rule.clone();
            rule.head = end;
            rules.push(rule);
        }
        if !self.database.relation(relation).is_empty() {
            // What is given of the relation stands at the end of walks too.
            let given = self.database.declare("given", 2, ring);
            let stored = self.database.relation(relation).clone();
            self.database.relation_mut(given).copy(&stored);
            rules.push(Rule::new(end, [start, free], [Atom::new(given, [start, free]).into()]));
        }
        let last = Term::variable(2);
        let body = [Atom::new(walk, [start, last]).into(), Atom::new(end, ordered(last, free)).into()];
        let answer = Rule::new(relation, ordered(start, free), body);
        for (at, rule) in (self.rules.len()..).zip(&rules) {
            self.heads.entry(rule.head).or_default().push(at);
        }
        self.rules.extend(rules);
        Some(vec![answer])
    }

    /// Whether a relation is defined through others that it defines.
    fn is_mutual(&self, relation: RelationId) -> bool {
        let (mut met, mut open) = (BTreeSet::from([relation]), vec![relation]);
        while let Some(reader) = open.pop() {
            for read in self.rules_of(reader).flat_map(needed) {
                if read == relation && reader != relation {
                    return true;
                }
                if met.insert(read) {
                    open.push(read);
                }
            }
        }
        false
    }
}

/// Whether a guard asks for these terms.
fn asks(guard: &[Literal], wanted: &[Term]) -> bool {
    matches!(guard.first(), Some(Literal::Atom(atom)) if atom.terms == wanted)
}

/// Moves what follows from bound variables alone, numbers made from them and conditions on them, behind what comes before.
fn follow(open: &mut Vec<&Literal>, bound: &mut BTreeSet<Variable>, before: &mut Vec<Literal>) {
    let known = |term: &Term, bound: &BTreeSet<Variable>| match term {
        Term::Constant(_) => true,
        Term::Variable(variable) => bound.contains(variable),
        Term::Any => false,
    };
    let mut moved = true;
    while moved {
        moved = false;
        open.retain(|literal| {
            let all = |terms: &[Term]| terms.iter().all(|term| known(term, bound));
            let follows = match literal {
                Literal::Shift { to, from, .. } => known(to, bound) || known(from, bound),
                Literal::Compute { arguments, .. } | Literal::Test { arguments, .. } => all(arguments),
                Literal::Compare(_, left, right) => known(left, bound) && known(right, bound),
                Literal::Atom(_) | Literal::Not(_) => false,
            };
            if follows {
                let made = match literal {
                    Literal::Shift { to, from, .. } => vec![*to, *from],
                    Literal::Compute { result, .. } => vec![*result],
                    _ => Vec::new(),
                };
                bound.extend(made.into_iter().filter_map(Term::as_variable));
                before.push((*literal).clone());
                moved = true;
            }
            !follows
        });
    }
}

/// The bound places of a list of terms.
fn filtered(terms: &[Term], pattern: &Pattern) -> Vec<Term> {
    terms.iter().zip(pattern).filter(|(_, bound)| **bound).map(|(term, _)| *term).collect()
}

/// The condition that a tuple is asked for.
fn guard(copy: Copy, terms: &[Term], pattern: &Pattern) -> Option<Atom> {
    Some(Atom::new(copy.demand?, filtered(terms, pattern)))
}
