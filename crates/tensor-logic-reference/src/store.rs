//! What the interpreter holds: the state of a tensor, and cells in which contributions meet.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::number::{Number, added};
use tensor_logic_core::program::{Combine, Style, Tensor, TensorId};
use tensor_logic_core::value::{Const, Domain, Tuple, element};

/// The values of the entries along an axis, by the values of its indices.
pub(super) type Entries<N> = BTreeMap<Vec<Option<Const>>, N>;

/// A weighted tuple: where it stands in the text, the relation, and which of those that are given of it.
pub(super) type Event = (usize, TensorId, usize);

/// What happens in a world.
pub(super) type Events = BTreeSet<Event>;

/// The proofs of each tuple that are kept.
pub(super) type Proofs = BTreeMap<Tuple, Vec<Events>>;

/// The state of a tensor.
#[derive(Debug, Clone)]
pub(super) enum Store<N> {
    /// All elements, row-major.
    Dense(Vec<Domain>, Vec<N>),
    /// Those that exist.
    Sparse(BTreeMap<Tuple, N>),
}

/// The row-major position of an element; `None` outside of the domains.
pub(super) fn position<'a>(
    domains: impl Iterator<Item = Option<&'a Domain>>,
    tuple: &[Const],
) -> Option<usize> {
    domains.zip(tuple).try_fold(0usize, |at, (domain, value)| {
        let domain = domain?;
        Some(at * domain.len() + domain.ordinal(*value)?)
    })
}

impl<N: Number> Store<N> {
    /// The same without derivatives.
    pub(super) fn plain(&self) -> Store<f64> {
        match self {
            Store::Dense(domains, values) => {
                Store::Dense(domains.clone(), values.iter().map(|value| value.value()).collect())
            }
            Store::Sparse(tuples) => {
                Store::Sparse(tuples.iter().map(|(tuple, value)| (tuple.clone(), value.value())).collect())
            }
        }
    }

    /// Before anything was computed.
    pub(super) fn nothing(tensor: &Tensor, value: f64) -> Store<N> {
        match tensor.style {
            Style::Round => Store::Sparse(BTreeMap::new()),
            Style::Square => {
                let domains = tensor.domains();
                let size = domains.iter().map(Domain::len).product();
                Store::Dense(domains, vec![N::new(value); size])
            }
        }
    }

    /// An element, if it exists.
    pub(super) fn at_mut(&mut self, element: &[Const]) -> Option<&mut N> {
        match self {
            Store::Dense(domains, values) => {
                position(domains.iter().map(Some), element).and_then(|at| values.get_mut(at))
            }
            Store::Sparse(tuples) => tuples.get_mut(element),
        }
    }

    /// All elements in order.
    pub(super) fn entries(&self) -> Box<dyn Iterator<Item = (Tuple, N)> + '_> {
        match self {
            Store::Dense(domains, values) => {
                Box::new(values.iter().enumerate().map(|(at, value)| (element(domains, at), *value)))
            }
            Store::Sparse(tuples) => Box::new(tuples.iter().map(|(tuple, value)| (tuple.clone(), *value))),
        }
    }

    /// The largest change from `old` in units of max(1, |value|) where an element is in both;
    /// infinite where one came or went. Slopes count like values.
    pub(super) fn change(&self, old: &Store<N>) -> f64 {
        let differ = |a: N, b: N| match gap(a.value(), b.value())
            .max(gap(a.slope().unwrap_or(0.0), b.slope().unwrap_or(0.0)))
        {
            0.0 if a.differs(b) => f64::MIN_POSITIVE,
            change => change,
        };
        match (self, old) {
            (Store::Dense(_, new), Store::Dense(_, old)) if new.len() == old.len() => {
                new.iter().zip(old).map(|(a, b)| differ(*a, *b)).fold(0.0, f64::max)
            }
            (Store::Sparse(new), Store::Sparse(old)) if new.len() == old.len() => {
                let pairs = new.iter().zip(old);
                let one = |((s, a), (t, b)): ((&Tuple, &N), (&Tuple, &N))| {
                    if s == t { differ(*a, *b) } else { f64::INFINITY }
                };
                pairs.map(one).fold(0.0, f64::max)
            }
            _ => f64::INFINITY,
        }
    }
}

fn gap(new: f64, old: f64) -> f64 {
    if new == old || (new.is_nan() && old.is_nan()) {
        return 0.0;
    }
    let gap = (new - old).abs() / new.abs().max(1.0);
    if gap.is_nan() { f64::INFINITY } else { gap.max(f64::MIN_POSITIVE) }
}

/// Where the contributions to one element meet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<N> {
    joined: N,
    /// Contributions; for maxima and minima those that attain the value.
    count: f64,
}

impl<N: Number> Cell<N> {
    /// The first contribution.
    pub(super) fn first(combine: Combine, value: N) -> Cell<N> {
        let joined = if combine == Combine::Or { N::new(f64::from(value.value() > 0.0)) } else { value };
        Cell { joined, count: 1.0 }
    }

    /// One more.
    pub(super) fn add(&mut self, combine: Combine, value: N) {
        match combine {
            // Proofs are gone through by worlds, slopes come by dual numbers.
            Combine::Sum | Combine::Avg | Combine::Exists | Combine::Proofs | Combine::Slopes => {
                self.joined = self.joined.plus(value);
                self.count += 1.0;
            }
            Combine::Times => self.joined = self.joined.times(value),
            Combine::Or => {
                if value.value() > 0.0 {
                    self.joined = N::new(1.0);
                }
            }
            Combine::Max => self.compete(value, Ordering::Greater),
            Combine::Min => self.compete(value, Ordering::Less),
        }
    }

    fn compete(&mut self, value: N, wins: Ordering) {
        if self.joined.value().is_nan() {
            return;
        }
        let order = value.order(self.joined);
        if order == Some(wins) || value.value().is_nan() {
            *self = Cell { joined: value, count: 1.0 };
        } else if order == Some(Ordering::Equal) {
            self.joined = self.joined.sloped(added(self.joined.slope(), value.slope()));
            self.count += 1.0;
        }
    }

    /// The element's value; `None` where a Boolean combination makes no tuple.
    pub(super) fn finish(self, combine: Combine) -> Option<N> {
        match combine {
            Combine::Sum | Combine::Times | Combine::Proofs | Combine::Slopes => Some(self.joined),
            Combine::Avg => Some(self.joined.over(N::new(self.count))),
            Combine::Max | Combine::Min if self.count > 1.0 => {
                Some(self.joined.sloped(self.joined.slope().map(|slope| slope / self.count)))
            }
            Combine::Max | Combine::Min => Some(self.joined),
            Combine::Or | Combine::Exists => (self.joined.value() > 0.0).then(|| N::new(1.0)),
        }
    }
}
