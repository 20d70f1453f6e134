//! What happens to the ε's of values.
//!
//! Another ε, or 0, for an ε is a homomorphism of rings, so it passes through a value into its parts: a closure becomes
//! the closure of other captures. The coefficient of a product of ε's is no homomorphism. Of a product it is the sum
//! over all ways to share the ε's out among the factors; of a function it is taken of every result, and until then the
//! ε's are bound ([`Value::Coefficient`]), as they are in a ket. Bound ε's are not seen from outside, and an argument
//! in which the same ε is free never meets them ([`Evaluator::apart`]): no ε is ever captured.
//!
//! Every value knows on which ε's it may depend ([`Evaluator::support`]). A change of others leaves the value as it is,
//! with all that was computed of it, and only those shares of a product are made in which every factor has the ε's that
//! fall to it.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::carrier::{Carrier, Change, Outcome, Scalar};
use super::evaluate::Evaluator;
use super::matrix::Matrix;
use super::value::{Ket, Support, Value, ValueId};
use crate::ring::{Name, Ring};

/// What the steps of an evaluation count for one way to share ε's out: it costs as much as so many nodes.
const SHARE: usize = 8;

impl Change {
    /// The coefficient of the product of some ε's.
    pub(super) fn taking(take: Rc<[Name]>) -> Self {
        Self::Coefficient { take, kill: Rc::new([]) }
    }

    /// 0 for some ε's.
    fn killing(kill: impl IntoIterator<Item = Name>) -> Self {
        Self::Coefficient { take: Rc::new([]), kill: kill.into_iter().collect() }
    }

    /// The change without the ε's that a value does not have; `None` if the coefficient of such an ε is wanted, which
    /// is 0.
    fn within(&self, support: &[Name]) -> Option<Self> {
        let has = |name: &Name| support.binary_search(name).is_ok();
        match self {
            Self::Rename(names) => {
                Some(Self::Rename(names.iter().filter(|(from, _)| has(from)).copied().collect()))
            }
            Self::Coefficient { take, kill } => take.iter().all(has).then(|| Self::Coefficient {
                take: take.clone(),
                kill: kill.iter().filter(|name| has(name)).copied().collect(),
            }),
        }
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::Rename(names) => names.is_empty(),
            Self::Coefficient { take, kill } => take.is_empty() && kill.is_empty(),
        }
    }
}

impl<C: Carrier> Evaluator<C> {
    /// The ε's on which a value may depend, in order; those that are bound in it are not among them.
    pub(super) fn support(&mut self, id: ValueId) -> Outcome<Rc<[Name]>> {
        // Nothing knows an ε before the first is made.
        if self.names == 0 {
            return Ok(Rc::new([]));
        }
        if let Some(support) = self.supports.get(&id) {
            return Ok(support.names.clone());
        }
        let support = self.deeper(|evaluator| evaluator.find_support(id))?;
        let names = support.names.clone();
        self.supports.insert(id, support);
        Ok(names)
    }

    fn find_support(&mut self, id: ValueId) -> Outcome<Support> {
        self.spend(1)?;
        let value = self.values.get(id);
        let (mut names, mut weight) = (BTreeSet::new(), 0);
        let mut visit = |name: Name| {
            weight += 1;
            names.insert(name);
        };
        let ring = self.carrier.ring();
        match &value {
            Value::Scalar(scalar) => ring.epsilons(scalar, &mut visit),
            Value::Vector(vector) => self.carrier.epsilons_of_vector(vector, &mut visit),
            Value::Operator(operator) => self.carrier.epsilons_of_operator(operator, &mut visit),
            Value::Table { matrix, .. } => matrix.entries.iter().for_each(|x| ring.epsilons(x, &mut visit)),
            Value::Tensor(pairs) => pairs.iter().for_each(|(c, ..)| ring.epsilons(c, &mut visit)),
            Value::Sum(sum) => sum.iter().for_each(|(c, _)| ring.epsilons(c, &mut visit)),
            Value::Bang(kets) => kets.iter().for_each(|ket| ring.epsilons(&ket.coefficient, &mut visit)),
            _ => {}
        }
        match &value {
            Value::Pair(a, b) | Value::Chain { first: a, second: b, .. } => {
                names.extend(self.support(*a)?.iter());
                names.extend(self.support(*b)?.iter());
            }
            Value::Tensor(pairs) => {
                for (_, a, b) in pairs.iter() {
                    names.extend(self.support(*a)?.iter());
                    names.extend(self.support(*b)?.iter());
                }
            }
            Value::Bang(kets) => {
                for ket in kets.iter() {
                    names.extend(self.support_of_ket(ket)?);
                }
            }
            Value::Closure { captures, .. } => {
                for captured in captures.iter() {
                    names.extend(self.support(*captured)?.iter());
                }
            }
            Value::Sum(sum) => {
                for (_, function) in sum.iter() {
                    names.extend(self.support(*function)?.iter());
                }
            }
            Value::HalfWord { first: part, .. } | Value::Iterate { function: part, .. } => {
                names.extend(self.support(*part)?.iter());
            }
            Value::Coefficient { take, function } => {
                names.extend(self.support(*function)?.iter().filter(|name| !take.contains(name)));
            }
            Value::Scalar(_)
            | Value::Vector(_)
            | Value::Operator(_)
            | Value::Table { .. }
            | Value::Numeral { .. }
            | Value::Word { .. } => {}
        }
        Ok(Support { names: names.into_iter().collect(), weight })
    }

    /// The ε's of the point of a ket that are not bound.
    fn support_of_ket(&mut self, ket: &Ket<Scalar<C>>) -> Outcome<Vec<Name>> {
        let support = self.support(ket.point)?;
        Ok(support.iter().filter(|name| !ket.names.contains(name)).copied().collect())
    }

    /// A coefficient of a function before an argument: other names for its bound ε's, if the argument has the same.
    pub(super) fn apart(
        &mut self,
        take: Rc<[Name]>,
        function: ValueId,
        argument: ValueId,
    ) -> Outcome<(Rc<[Name]>, ValueId)> {
        let support = self.support(argument)?;
        if take.iter().any(|name| support.binary_search(name).is_ok()) {
            return self.renamed(&take, function);
        }
        Ok((take, function))
    }

    /// A value with fresh ε's for some, and these.
    pub(super) fn renamed(&mut self, names: &[Name], id: ValueId) -> Outcome<(Rc<[Name]>, ValueId)> {
        let renamed: Rc<[(Name, Name)]> = names.iter().map(|name| (*name, self.fresh())).collect();
        let fresh = renamed.iter().map(|(_, to)| *to).collect();
        Ok((fresh, self.change(&Change::Rename(renamed), id)?))
    }

    /// A value with other ε's. New names must be fresh: nothing knows them yet, so nothing binds them.
    pub(super) fn change(&mut self, change: &Change, id: ValueId) -> Outcome<ValueId> {
        let support = self.support(id)?;
        let Some(change) = change.within(&support) else { return Ok(ValueId::ZERO) };
        if change.is_nothing() {
            return Ok(id);
        }
        let key = (change, id);
        if let Some(changed) = self.changes.get(&key) {
            return Ok(*changed);
        }
        let weight = self.supports.get(&id).map_or(0, |support| support.weight);
        self.spend(1 + weight / SHARE)?;
        let changed = self.deeper(|evaluator| match &key.0 {
            Change::Coefficient { take, kill } if !take.is_empty() => {
                let rest = if kill.is_empty() {
                    id
                } else {
                    evaluator.change(&Change::killing(kill.iter().copied()), id)?
                };
                evaluator.coefficient(take, rest)
            }
            homomorphism => evaluator.substitute(homomorphism, id),
        })?;
        self.changes.insert(key, changed);
        Ok(changed)
    }

    /// Other ε's, or 0, for some ε's: in every part.
    fn substitute(&mut self, change: &Change, id: ValueId) -> Outcome<ValueId> {
        let substituted = match self.values.get(id) {
            Value::Scalar(scalar) => Value::Scalar(change.of(self.carrier.ring(), &scalar)?),
            Value::Vector(vector) => Value::Vector(self.carrier.change_vector(change, &vector)?),
            Value::Operator(operator) => Value::Operator(self.carrier.change_operator(change, &operator)?),
            Value::Table { matrix, from, to } => {
                let ring = self.carrier.ring();
                let entries = matrix.entries.iter().map(|x| change.of(ring, x)).collect::<Outcome<_>>()?;
                Value::Table { matrix: Rc::new(Matrix { entries, ..*matrix }), from, to }
            }
            Value::Pair(left, right) => {
                let (left, right) = (self.change(change, left)?, self.change(change, right)?);
                return Ok(self.values.pair(left, right));
            }
            Value::Tensor(pairs) => {
                let mut sum = Vec::with_capacity(pairs.len());
                for (coefficient, a, b) in pairs.iter() {
                    let coefficient = change.of(self.carrier.ring(), coefficient)?;
                    sum.push((coefficient, self.change(change, *a)?, self.change(change, *b)?));
                }
                return Ok(self.formal_sum(sum));
            }
            Value::Bang(kets) => {
                let mut sum = Vec::with_capacity(kets.len());
                for ket in kets.iter() {
                    let coefficient = change.of(self.carrier.ring(), &ket.coefficient)?;
                    let point = self.change_free(change, ket)?;
                    sum.push(Ket { coefficient, point, names: ket.names.clone() });
                }
                return self.bang(sum);
            }
            Value::Closure { function, captures } => {
                let captures: Outcome<Rc<[ValueId]>> =
                    captures.iter().map(|captured| self.change(change, *captured)).collect();
                return Ok(self.values.closure(function, captures?));
            }
            Value::Sum(sum) => {
                let mut changed = Vec::with_capacity(sum.len());
                for (coefficient, function) in sum.iter() {
                    let coefficient = change.of(self.carrier.ring(), coefficient)?;
                    changed.push((coefficient, self.change(change, *function)?));
                }
                return self.combine(changed);
            }
            Value::HalfWord { digits, base, first } => {
                Value::HalfWord { digits, base, first: self.change(change, first)? }
            }
            Value::Iterate { function, times } => {
                Value::Iterate { function: self.change(change, function)?, times }
            }
            Value::Chain { digits, first, second } => Value::Chain {
                digits,
                first: self.change(change, first)?,
                second: self.change(change, second)?,
            },
            // The change names none of the bound ε's: they are not in the support.
            Value::Coefficient { take, function } => {
                let function = self.change(change, function)?;
                return self.change(&Change::taking(take), function);
            }
            Value::Numeral { .. } | Value::Word { .. } => return Ok(id),
        };
        Ok(self.values.add(substituted))
    }

    /// The point of a ket with other ε's; those that the ket binds stay.
    fn change_free(&mut self, change: &Change, ket: &Ket<Scalar<C>>) -> Outcome<ValueId> {
        let free = self.support_of_ket(ket)?;
        match change.within(&free) {
            Some(change) => self.change(&change, ket.point),
            None => Ok(ValueId::ZERO),
        }
    }

    /// The coefficient of the product of some ε's, one or more.
    fn coefficient(&mut self, take: &Rc<[Name]>, id: ValueId) -> Outcome<ValueId> {
        let support = self.support(id)?;
        if take.iter().any(|name| support.binary_search(name).is_err()) {
            return Ok(ValueId::ZERO);
        }
        let change = Change::taking(take.clone());
        let found = match self.values.get(id) {
            // Of what has entries, and of what has parts side by side.
            Value::Scalar(_)
            | Value::Vector(_)
            | Value::Operator(_)
            | Value::Table { .. }
            | Value::Pair(..) => return self.substitute(&change, id),
            Value::Tensor(pairs) => {
                let mut sum = Vec::new();
                for (coefficient, a, b) in pairs.iter() {
                    let (left, right) = (self.support(*a)?, self.support(*b)?);
                    let (names, weight) = self.epsilons(coefficient);
                    let Some(mut shares) = Shares::new(take, &[&names, &left, &right]) else { continue };
                    while let Some([of_scalar, of_left, of_right]) = shares.next::<3>() {
                        self.spend(SHARE + weight / SHARE)?;
                        let scalar = of_scalar.of(self.carrier.ring(), coefficient)?;
                        if self.carrier.ring().is_zero(&scalar) {
                            continue;
                        }
                        sum.push((scalar, self.change(&of_left, *a)?, self.change(&of_right, *b)?));
                    }
                }
                return Ok(self.formal_sum(sum));
            }
            Value::Bang(kets) => {
                let mut sum = Vec::new();
                for ket in kets.iter() {
                    let ((names, weight), free) =
                        (self.epsilons(&ket.coefficient), self.support_of_ket(ket)?);
                    let Some(mut shares) = Shares::new(take, &[&names, &free]) else { continue };
                    while let Some([of_scalar, of_ket]) = shares.next::<2>() {
                        self.spend(SHARE + weight / SHARE)?;
                        let coefficient = of_scalar.of(self.carrier.ring(), &ket.coefficient)?;
                        if !self.carrier.ring().is_zero(&coefficient) {
                            sum.push(self.bind(&of_ket, coefficient, ket)?);
                        }
                    }
                }
                return self.bang(sum);
            }
            Value::Coefficient { take: inner, function } => {
                Value::Coefficient { take: inner.iter().chain(take.iter()).copied().collect(), function }
            }
            _ => Value::Coefficient { take: take.clone(), function: id },
        };
        Ok(self.values.add(found))
    }

    /// A ket keeps the ε's whose coefficient is taken: they become bound. The others are 0.
    fn bind(
        &mut self,
        change: &Change,
        coefficient: Scalar<C>,
        ket: &Ket<Scalar<C>>,
    ) -> Outcome<Ket<Scalar<C>>> {
        let Change::Coefficient { take, kill } = change else { return Ok(ket.clone()) };
        let point = self.change_free(&Change::killing(kill.iter().copied()), ket)?;
        let names = ket.names.iter().chain(take.iter()).copied().collect();
        Ok(Ket { coefficient, point, names })
    }

    /// The ε's of a scalar, in order, and how often they are written.
    fn epsilons(&self, scalar: &Scalar<C>) -> (Vec<Name>, usize) {
        let (mut names, mut weight) = (BTreeSet::new(), 0);
        self.carrier.ring().epsilons(scalar, &mut |name| {
            weight += 1;
            names.insert(name);
        });
        (names.into_iter().collect(), weight)
    }

    /// A formal sum of pairs, without those that are 0.
    fn formal_sum(&mut self, mut pairs: Vec<(Scalar<C>, ValueId, ValueId)>) -> ValueId {
        let ring = self.carrier.ring();
        pairs.retain(|(c, a, b)| *a != ValueId::ZERO && *b != ValueId::ZERO && !ring.is_zero(c));
        if pairs.is_empty() {
            return ValueId::ZERO;
        }
        self.values.add(Value::Tensor(pairs.into()))
    }
}

/// The ways to share ε's out among the factors of a product, so that each falls to a factor that has it.
struct Shares<'a> {
    take: &'a [Name],
    /// For each ε, the factors that have it.
    owners: Vec<Vec<usize>>,
    /// For each ε, the place of its factor among them; `None` when all ways are through.
    chosen: Option<Vec<usize>>,
}

impl<'a> Shares<'a> {
    /// `None` if some ε is in no factor: then the coefficient is 0. The names of each factor are in order.
    fn new(take: &'a [Name], factors: &[&[Name]]) -> Option<Self> {
        let owners = |name: &Name| {
            let has =
                |factor: &usize| factors.get(*factor).is_some_and(|all| all.binary_search(name).is_ok());
            let owners: Vec<usize> = (0..factors.len()).filter(has).collect();
            (!owners.is_empty()).then_some(owners)
        };
        let owners: Vec<Vec<usize>> = take.iter().map(owners).collect::<Option<_>>()?;
        let chosen = Some(vec![0; take.len()]);
        Some(Self { take, owners, chosen })
    }

    /// The next way: what happens to each of the `N` factors.
    fn next<const N: usize>(&mut self) -> Option<[Change; N]> {
        let mut chosen = self.chosen.take()?;
        let factor_of = |(owners, place): (&Vec<usize>, &usize)| owners.get(*place).copied();
        let factors: Vec<Option<usize>> = self.owners.iter().zip(&chosen).map(factor_of).collect();
        let change = |factor: usize| {
            let (take, kill): (Vec<_>, Vec<_>) =
                self.take.iter().zip(&factors).partition(|(_, own)| **own == Some(factor));
            let names =
                |part: Vec<(&Name, &Option<usize>)>| part.into_iter().map(|(name, _)| *name).collect();
            Change::Coefficient { take: names(take), kill: names(kill) }
        };
        let changes = std::array::from_fn(change);
        // As a counter counts on.
        for (place, owners) in chosen.iter_mut().zip(&self.owners) {
            *place += 1;
            if *place < owners.len() {
                self.chosen = Some(chosen);
                break;
            }
            *place = 0;
        }
        Some(changes)
    }
}
