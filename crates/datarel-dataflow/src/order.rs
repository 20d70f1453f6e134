//! The order in which a body is joined.
//!
//! Where there is a recursive atom, the order begins with it: it is what changes. Otherwise it begins with the smallest relation.
//! Next comes the atom of which most places are known. Conditions stand as early as their variables do, and variables that
//! nothing needs any more are let go of: where bindings are counted, the differences count them.

use datarel::{Atom, Combine, Comparison, Database, Failure, Literal, RelationId, Ring, Rule, Term};

use crate::plan::{Factor, Local, Operand, Plan, Side, Source, Step};

/// The steps of a rule; `own` are the relations of its recursion.
///
/// # Errors
/// [`Failure::Rule`] where a variable cannot be bound or a value has the wrong kind.
pub(crate) fn plan(
    database: &Database,
    rule: &Rule,
    number: usize,
    own: &[RelationId],
) -> Result<Plan, Failure> {
    let refuse = |reason| Failure::Rule { rule: number, reason };
    let head_ring = database.relation(rule.head).ring();
    let ring =
        rule.select.as_ref().map_or(head_ring, |select| Ring { combine: Combine::Sum, times: select.times });
    let mut order =
        Order { database, rule, ring, own, steps: Vec::new(), bound: Vec::new(), open: Vec::new() };
    order.open = (0..rule.body.len()).collect();
    let mut fresh = order.fresh();
    let mut atoms = Vec::new();
    for (at, literal) in rule.body.iter().enumerate() {
        if let Literal::Atom(atom) = literal {
            atoms.push((at, order.open_atom(atom, &mut fresh).map_err(refuse)?));
        }
    }
    order.local();
    while let Some(next) = order.next(&atoms) {
        let (at, atom) = atoms.swap_remove(next);
        order.open.retain(|open| *open != at);
        order.take(atom);
        order.local();
    }
    if !order.open.is_empty() {
        return Err(refuse("a variable of a condition is not bound"));
    }
    let head = order.operands(&rule.head_terms).ok_or(refuse("a variable of the head is not bound"))?;
    let computed = rule.computed.iter().map(|one| Some((order.operands(&one.arguments)?, one.clone())));
    let computed: Option<Vec<_>> = computed.collect();
    Ok(Plan {
        rule: number,
        makes: rule.body.iter().any(|literal| rule.makes(literal)),
        ring,
        valued: head_ring.valued(),
        head,
        computed: computed.ok_or(refuse("a variable of a value is not bound"))?,
        weight: rule.weight.unwrap_or(ring.one()),
        select: rule.select.clone(),
        steps: order.steps,
    })
}

/// An atom on its way into a plan; its terms are variables and constants.
struct Open {
    source: Source,
    terms: Vec<Term>,
    factor: Factor,
}

struct Order<'a> {
    database: &'a Database,
    rule: &'a Rule,
    ring: Ring,
    own: &'a [RelationId],
    steps: Vec<Step>,
    /// The variables of the binding, in order.
    bound: Vec<Term>,
    /// The literals that are not placed.
    open: Vec<usize>,
}

/// The terms of a literal.
fn terms(literal: &Literal) -> Vec<Term> {
    match literal {
        Literal::Atom(atom) | Literal::Not(atom) => atom.terms.clone(),
        Literal::Compare(_, left, right) => vec![*left, *right],
        Literal::Shift { to, from, .. } => vec![*to, *from],
        Literal::Compute { result, arguments, .. } => [&[*result], arguments.as_slice()].concat(),
        Literal::Test { arguments, .. } => arguments.clone(),
    }
}

impl Order<'_> {
    /// A variable that the rule does not have.
    fn fresh(&self) -> u32 {
        let of_body = self.rule.body.iter().flat_map(terms);
        let of_values = self.rule.computed.iter().flat_map(|one| one.arguments.iter().copied());
        let all = self.rule.head_terms.iter().copied().chain(of_body).chain(of_values);
        all.filter_map(Term::as_variable).map(|variable| variable.0 + 1).max().unwrap_or(0)
    }

    /// In a factor `_` is a variable of its own; in a condition it asks whether there is one, and is never counted.
    fn open_atom(&self, atom: &Atom, fresh: &mut u32) -> Result<Open, &'static str> {
        let from = self.database.relation(atom.relation).ring();
        let factor = (atom.factor && self.ring.valued()).then_some(from);
        if factor.is_some() && self.ring.counts() && from.valued() && !from.counts() {
            return Err("a count has a real factor");
        }
        let whole = factor.is_some() || self.ring.idempotent() || !atom.terms.contains(&Term::Any);
        let places = (0..atom.terms.len()).filter(|at| atom.terms.get(*at) != Some(&Term::Any));
        let mut variable = |term: &Term| match term {
            Term::Any => {
                *fresh += 1;
                Term::variable(*fresh - 1)
            }
            known => *known,
        };
        let terms = if whole {
            atom.terms.iter().map(&mut variable).collect()
        } else {
            atom.terms.iter().copied().filter(|term| *term != Term::Any).collect()
        };
        let places = (!whole).then(|| places.collect());
        Ok(Open { source: Source { relation: atom.relation, places }, terms, factor })
    }

    fn operand(&self, term: Term) -> Option<Operand> {
        match term {
            Term::Constant(code) => Some(Operand::Constant(code)),
            Term::Any => None,
            known => self.bound.iter().position(|bound| *bound == known).map(Operand::Slot),
        }
    }

    fn operands(&self, terms: &[Term]) -> Option<Vec<Operand>> {
        terms.iter().map(|term| self.operand(*term)).collect()
    }

    /// The atom that is joined next, by its place in the list.
    fn next(&self, atoms: &[(usize, Open)]) -> Option<usize> {
        let rank = |(_, atom): &(usize, Open)| {
            let open = atom.terms.iter().filter(|term| self.operand(**term).is_none()).count();
            let known = atom.terms.len() - open;
            let own = self.steps.is_empty() && self.own.contains(&atom.source.relation);
            let size = self.database.relation(atom.source.relation).len();
            // Without a variable in common it is a product, and comes last.
            (std::cmp::Reverse(own), known == 0 && open > 0, open, size)
        };
        (0..atoms.len()).min_by_key(|at| atoms.get(*at).map(rank))
    }

    /// What the literals that are not placed, `rest` and the head need.
    fn needed(&self, variable: Term) -> bool {
        let body = self.open.iter().filter_map(|at| self.rule.body.get(*at));
        body.into_iter().any(|literal| terms(literal).contains(&variable))
            || self.rule.head_terms.contains(&variable)
            || self.rule.computed.iter().any(|one| one.arguments.contains(&variable))
    }

    fn take(&mut self, atom: Open) {
        let Open { source, terms, factor } = atom;
        let first = self.steps.is_empty() && self.bound.is_empty();
        let known: Vec<Option<Operand>> = terms.iter().map(|term| self.operand(*term)).collect();
        let key: Vec<usize> =
            (0..terms.len()).filter(|at| known.get(*at).copied().flatten().is_some()).collect();
        let rest: Vec<Term> = terms.iter().copied().filter(|term| self.operand(*term).is_none()).collect();
        let mut equal: Vec<(usize, usize)> = Vec::new();
        let mut fresh: Vec<(usize, Term)> = Vec::new();
        for (at, term) in rest.iter().enumerate() {
            match fresh.iter().find(|(_, known)| known == term) {
                Some((known, _)) => equal.push((*known, at)),
                None => fresh.push((at, *term)),
            }
        }
        fresh.retain(|(_, term)| self.needed(*term));
        if first {
            // Places of the whole tuple: those of the rest, and constants.
            let place = |at: usize| (0..terms.len()).filter(|at| !key.contains(at)).nth(at).unwrap_or(at);
            let constants = key.iter().filter_map(|at| match known.get(*at) {
                Some(Some(Operand::Constant(code))) => Some((*at, *code)),
                _ => None,
            });
            self.steps.push(Step::Scan {
                constants: constants.collect(),
                equal: equal.iter().map(|(a, b)| (place(*a), place(*b))).collect(),
                keep: fresh.iter().map(|(at, _)| place(*at)).collect(),
                source,
                factor,
            });
            self.bound = fresh.into_iter().map(|(_, term)| term).collect();
            return;
        }
        let kept: Vec<usize> = (0..self.bound.len())
            .filter(|at| self.bound.get(*at).is_some_and(|term| self.needed(*term)))
            .collect();
        let keep = kept.iter().map(|at| Side::Left(*at)).chain(fresh.iter().map(|(at, _)| Side::Right(*at)));
        let step = Step::Join {
            source,
            key,
            probe: known.into_iter().flatten().collect(),
            equal,
            keep: keep.collect(),
            factor,
        };
        self.steps.push(step);
        let left = kept.iter().filter_map(|at| self.bound.get(*at).copied());
        self.bound = left.chain(fresh.into_iter().map(|(_, term)| term)).collect();
    }

    /// Places every condition whose variables are bound.
    fn local(&mut self) {
        let mut does = Vec::new();
        let mut missing = Vec::new();
        let mut again = true;
        while std::mem::take(&mut again) {
            for at in self.open.clone() {
                let Some(literal) = self.rule.body.get(at) else { continue };
                match literal {
                    Literal::Atom(_) => continue,
                    Literal::Not(atom) => {
                        let asked =
                            atom.terms.iter().all(|term| *term == Term::Any || self.operand(*term).is_some());
                        if !asked {
                            continue;
                        }
                        missing.push(atom);
                    }
                    _ => match self.filter(literal) {
                        Some(step) => does.push(step),
                        None => continue,
                    },
                }
                self.open.retain(|open| *open != at);
                again = true;
            }
        }
        if !does.is_empty() {
            let asked = |term: &Term| missing.iter().any(|atom| atom.terms.contains(term));
            let kept = (0..self.bound.len())
                .filter(|at| self.bound.get(*at).is_some_and(|term| self.needed(*term) || asked(term)));
            let keep: Vec<usize> = kept.collect();
            self.bound = keep.iter().filter_map(|at| self.bound.get(*at).copied()).collect();
            self.steps.push(Step::Local { does, keep });
        }
        for atom in missing {
            let places: Vec<usize> =
                (0..atom.terms.len()).filter(|at| atom.terms.get(*at) != Some(&Term::Any)).collect();
            let asked: Vec<Term> = atom.terms.iter().copied().filter(|term| *term != Term::Any).collect();
            let places = (places.len() < atom.terms.len()).then_some(places);
            // All are bound, as was asked above.
            let probe = self.operands(&asked).unwrap_or_default();
            self.steps.push(Step::Missing { source: Source { relation: atom.relation, places }, probe });
        }
    }

    /// A condition as a step, if its variables are bound so far as it needs; a variable that it binds is one more place.
    fn filter(&mut self, literal: &Literal) -> Option<Local> {
        let (step, binds) = match literal {
            Literal::Atom(_) | Literal::Not(_) => return None,
            Literal::Compare(sign, left, right) => match (self.operand(*left), self.operand(*right), sign) {
                (Some(left), Some(right), _) => (Local::Compare(*sign, left, right), None),
                // x == 3 binds x.
                (Some(known), None, Comparison::Equal) => (Local::Assign(known), Some(*right)),
                (None, Some(known), Comparison::Equal) => (Local::Assign(known), Some(*left)),
                _ => return None,
            },
            Literal::Shift { to, from, by } => match (self.operand(*to), self.operand(*from)) {
                (Some(to), Some(from)) => (Local::ShiftTest(to, from, *by), None),
                (None, Some(from)) => (Local::Shift(from, *by), Some(*to)),
                (Some(to), None) => (Local::Shift(to, by.checked_neg()?), Some(*from)),
                (None, None) => return None,
            },
            Literal::Compute { result, arguments, function } => {
                let arguments = self.operands(arguments)?;
                match self.operand(*result) {
                    Some(known) => (Local::ComputeTest(known, arguments, function.clone()), None),
                    None => (Local::Compute(arguments, function.clone()), Some(*result)),
                }
            }
            Literal::Test { arguments, test } => (Local::Test(self.operands(arguments)?, test.clone()), None),
        };
        if let Some(term) = binds {
            term.as_variable()?;
            self.bound.push(term);
        }
        Some(step)
    }
}
