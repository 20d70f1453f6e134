//! Stepped components: places that move in one direction on every cycle, lexicographically if
//! one place is not enough.
//!
//! A *ranking* gives every tensor of a component one of its places and all of them one
//! direction, such that no read inside the component goes the other way. Where the cycles move
//! but single reads on them go back, as from `P[t]` to `X[t+1]` on the way from `X[t+2]`, tensors
//! are shifted against each other: the step of an element is its index and the shift of its
//! tensor. Reads that move
//! strictly cannot close a cycle; without them the component falls into smaller ones, which are
//! ranked in turn by further places. If nothing is left, elements can be computed in the
//! lexicographic order of the places found. Taking the first ranking that moves anything is
//! safe: a ranking of a component also ranks what is left of it (the argument of Alias et al.
//! 2010 for lexicographic ranking functions of programs).

use std::collections::BTreeMap;

use crate::program::{Argument, IndexFn, Moving, Steps, TensorId};
use crate::recursion::graph::{Inside, Occurrence, strongly_connected};
use crate::recursion::offset::{Bounds, bounds};

/// How many choices of places are tried for each place of a component's first tensor.
const TRIES: usize = 1_000;

/// A read inside a component: from the tensor defined to the tensor read.
struct Edge {
    head: usize,
    read: usize,
    /// The bounds of how far the index at a place of the left side exceeds the one at a place read.
    differences: Vec<Vec<Option<Bounds>>>,
}

impl Edge {
    fn of(inside: &Inside<'_>, occurrence: &Occurrence<'_>, [head, read]: [usize; 2]) -> Edge {
        let difference = |head: &IndexFn, read: &Argument| match read {
            Argument::At(function) => Some(bounds(inside.program, occurrence, head, function)),
            Argument::Any => None,
        };
        let differences = occurrence.equation.head.iter().map(|place| {
            occurrence.read.arguments.iter().map(|argument| difference(place, argument)).collect()
        });
        Edge { head, read, differences: differences.collect() }
    }

    fn difference(&self, place: usize, read: usize) -> Option<Bounds> {
        *self.differences.get(place)?.get(read)?
    }

    /// How far the index read lies behind the one defined, in the direction of movement: at least.
    fn distance(&self, place: usize, read: usize, up: bool) -> Option<i128> {
        let Bounds { least, largest } = self.difference(place, read)?;
        if up { least } else { largest.and_then(i128::checked_neg) }
    }

    /// The same of the steps.
    fn slack(&self, ranking: &Ranking) -> Option<i128> {
        let shift = |node: usize| ranking.shifts.get(&node).copied().unwrap_or(0);
        let by = shift(self.head).checked_sub(shift(self.read))?;
        self.distance_in(ranking)?.checked_add(by)
    }

    fn distance_in(&self, ranking: &Ranking) -> Option<i128> {
        self.distance(*ranking.places.get(&self.head)?, *ranking.places.get(&self.read)?, ranking.up)
    }

    fn is_weak(&self, ranking: &Ranking) -> bool {
        self.slack(ranking).is_some_and(|slack| slack >= 0)
    }

    fn is_strict(&self, ranking: &Ranking) -> bool {
        self.slack(ranking).is_some_and(|slack| slack > 0)
    }
}

/// Places that move on every cycle, or `None`.
pub(super) fn find(inside: &Inside<'_>) -> Option<Steps> {
    let number: BTreeMap<TensorId, usize> = inside.tensors.iter().copied().zip(0..).collect();
    let edges: Vec<Edge> = inside
        .occurrences
        .iter()
        .filter_map(|occurrence| {
            let head = *number.get(&occurrence.equation.tensor)?;
            Some(Edge::of(inside, occurrence, [head, *number.get(&occurrence.read.tensor)?]))
        })
        .collect();
    let ranks = inside.tensors.iter().map(|id| inside.program.tensor(*id).places.len()).collect();
    let mut search =
        Search { ranks, moving: vec![Vec::new(); inside.tensors.len()], order: Vec::new(), cycles: 0 };
    let all: Vec<usize> = (0..inside.tensors.len()).collect();
    search.component(&all, edges.iter().collect())?;
    let places = search
        .order
        .iter()
        .filter_map(|at| Some((*inside.tensors.get(*at)?, search.moving.get(*at)?.clone())));
    Some(Steps { places: places.collect() })
}

struct Search {
    ranks: Vec<usize>,
    moving: Vec<Vec<Moving>>,
    order: Vec<usize>,
    cycles: usize,
}

impl Search {
    /// Ranks a strongly connected component and what is left of it.
    fn component(&mut self, nodes: &[usize], edges: Vec<&Edge>) -> Option<()> {
        let mut pending = vec![Task::Component(nodes.to_vec(), edges)];
        while let Some(task) = pending.pop() {
            let (nodes, edges) = match task {
                Task::Done(node) => {
                    self.order.push(node);
                    continue;
                }
                Task::Component(nodes, edges) => (nodes, edges),
            };
            let ranking = self.ranking(&nodes, &edges)?;
            let up = ranking.up;
            for (node, place) in &ranking.places {
                let shift = ranking.shifts.get(node).copied().unwrap_or(0);
                let shift = i64::try_from(if up { shift } else { -shift }).ok()?;
                self.moving.get_mut(*node)?.push(Moving { place: *place, up, cycle: self.cycles, shift });
            }
            self.cycles += 1;
            let left = edges.into_iter().filter(|edge| !edge.is_strict(&ranking)).collect();
            pending.extend(fall_apart(&nodes, left).into_iter().rev());
        }
        Some(())
    }

    /// A place for every node, and the direction, such that no edge goes the other way and one
    /// moves strictly.
    fn ranking(&self, nodes: &[usize], edges: &[&Edge]) -> Option<Ranking> {
        let root = *nodes.first()?;
        let rank = |node: usize| self.ranks.get(node).copied().unwrap_or(0);
        for shifted in [false, true] {
            for up in [true, false] {
                for place in 0..rank(root) {
                    let mut choice: Choice =
                        nodes.iter().map(|node| (*node, (0..rank(*node)).collect())).collect();
                    choice.insert(root, vec![place]);
                    if let Some(found) = (Sought { edges, up, shifted }).among(choice) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }
}

/// The places that are still open for each tensor.
type Choice = BTreeMap<usize, Vec<usize>>;

/// What is looked for: places in one direction, as they stand or shifted against each other.
struct Sought<'a> {
    edges: &'a [&'a Edge],
    up: bool,
    shifted: bool,
}

impl Sought<'_> {
    /// The first ranking among what is open. Every choice is carried along the edges to its end,
    /// and left as soon as nothing can move in it: places of one element, which agree with all
    /// others, would otherwise be combined in every way.
    fn among(&self, choice: Choice) -> Option<Ranking> {
        let mut open = vec![choice];
        for _ in 0..TRIES {
            let mut choice = open.pop()?;
            if !self.narrow(&mut choice) || !self.can_move(&choice) {
                continue;
            }
            if let Some((node, places)) = choice.iter().find(|(_, places)| places.len() > 1) {
                open.extend(places.iter().rev().map(|place| {
                    let mut further = choice.clone();
                    further.insert(*node, vec![*place]);
                    further
                }));
            } else if let Some(found) = self.ranking(&choice) {
                return Some(found);
            }
        }
        None
    }

    /// Takes away the places that agree with none at the other end of an edge, until every place
    /// left agrees with one (arc consistency: Mackworth 1977, AC-1). Whether all tensors have one.
    fn narrow(&self, choice: &mut Choice) -> bool {
        loop {
            let mut changed = false;
            for edge in self.edges {
                let [heads, reads] = [edge.head, edge.read].map(|node| places(choice, node).to_vec());
                let agree = |head: usize, read: usize| {
                    (edge.head != edge.read || head == read) && self.agrees(edge, head, read)
                };
                let kept = |of: &[usize], agrees: &dyn Fn(usize) -> bool| -> Vec<usize> {
                    of.iter().copied().filter(|place| agrees(*place)).collect()
                };
                let head = kept(&heads, &|head| reads.iter().any(|read| agree(head, *read)));
                let read = kept(&reads, &|read| heads.iter().any(|head| agree(*head, read)));
                if head.is_empty() || read.is_empty() {
                    return false;
                }
                changed |= head.len() < heads.len() || read.len() < reads.len();
                choice.insert(edge.head, head);
                choice.insert(edge.read, read);
            }
            if !changed {
                return true;
            }
        }
    }

    /// Whether an edge does not go the other way; where tensors are shifted: goes equally far
    /// everywhere.
    fn agrees(&self, edge: &Edge, head: usize, read: usize) -> bool {
        if self.shifted {
            let bounds = edge.difference(head, read);
            return bounds.is_some_and(|bounds| bounds.least.is_some() && bounds.least == bounds.largest);
        }
        edge.distance(head, read, self.up).is_some_and(|distance| distance >= 0)
    }

    /// Whether an edge moves with some places that are open.
    fn can_move(&self, choice: &Choice) -> bool {
        self.edges.iter().any(|edge| {
            let moves = |head: usize, read: usize| {
                let distance = edge.distance(head, read, self.up);
                distance.is_some_and(|distance| distance > 0 || self.shifted && distance != 0)
            };
            let reads = places(choice, edge.read);
            places(choice, edge.head).iter().any(|head| reads.iter().any(|read| moves(*head, *read)))
        })
    }

    /// The ranking of a choice of one place for each tensor, if it is one.
    fn ranking(&self, choice: &Choice) -> Option<Ranking> {
        let places = choice.iter().filter_map(|(node, places)| Some((*node, *places.first()?)));
        let mut ranking = Ranking { places: places.collect(), up: self.up, shifts: BTreeMap::new() };
        if self.shifted {
            ranking.shifts = self.shifts(&ranking)?;
        }
        let holds = self.edges.iter().all(|edge| edge.is_weak(&ranking));
        (holds && self.edges.iter().any(|edge| edge.is_strict(&ranking))).then_some(ranking)
    }

    /// Shifts with which no edge goes the other way: distances from anywhere, along the edges (Bellman
    /// and Ford). There are none where a cycle goes back.
    fn shifts(&self, chosen: &Ranking) -> Option<BTreeMap<usize, i128>> {
        let mut shifts: BTreeMap<usize, i128> = chosen.places.keys().map(|node| (*node, 0)).collect();
        for _ in 0..=shifts.len() {
            let mut changed = false;
            for edge in self.edges {
                let least = shifts.get(&edge.head)?.checked_add(edge.distance_in(chosen)?)?;
                let shift = shifts.get_mut(&edge.read)?;
                if least < *shift {
                    (*shift, changed) = (least, true);
                }
            }
            if !changed {
                return Some(shifts);
            }
        }
        None
    }
}

fn places(choice: &Choice, node: usize) -> &[usize] {
    choice.get(&node).map_or(&[], Vec::as_slice)
}

/// A place for tensors, and a direction.
struct Ranking {
    places: BTreeMap<usize, usize>,
    up: bool,
    /// What is added to an index, counted in the direction; 0 where there is none.
    shifts: BTreeMap<usize, i128>,
}

/// What is to be done, the last first.
enum Task<'a> {
    Component(Vec<usize>, Vec<&'a Edge>),
    Done(usize),
}

/// The components of what is left, in the order in which they are computed within a step.
fn fall_apart<'a>(nodes: &[usize], edges: Vec<&'a Edge>) -> Vec<Task<'a>> {
    let position: BTreeMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
    let mut targets = vec![Vec::new(); nodes.len()];
    for edge in &edges {
        if let (Some(from), Some(to)) = (position.get(&edge.head), position.get(&edge.read))
            && let Some(list) = targets.get_mut(*from)
        {
            list.push(*to);
        }
    }
    let mut tasks = Vec::new();
    for component in strongly_connected(&targets) {
        let members: Vec<usize> = component.iter().filter_map(|at| nodes.get(*at).copied()).collect();
        let holds = |node: &usize| members.binary_search(node).is_ok();
        let own = |edge: &&Edge| holds(&edge.head) && holds(&edge.read);
        let inner: Vec<&Edge> = edges.iter().copied().filter(own).collect();
        if inner.is_empty() {
            tasks.extend(members.into_iter().map(Task::Done));
        } else {
            tasks.push(Task::Component(members, inner));
        }
    }
    tasks
}
