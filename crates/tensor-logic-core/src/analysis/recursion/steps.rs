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

/// How many choices of places are tried for one component.
const TRIES: usize = 10_000;

/// A read inside a component: from the tensor defined to the tensor read.
struct Edge<'a> {
    head: usize,
    read: usize,
    occurrence: &'a Occurrence<'a>,
}

/// Places that move on every cycle, or `None`.
pub(super) fn find(inside: &Inside<'_>) -> Option<Steps> {
    let number: BTreeMap<TensorId, usize> = inside.tensors.iter().copied().zip(0..).collect();
    let edges: Vec<Edge<'_>> = inside
        .occurrences
        .iter()
        .filter_map(|occurrence| {
            let head = *number.get(&occurrence.equation.tensor)?;
            Some(Edge { head, read: *number.get(&occurrence.read.tensor)?, occurrence })
        })
        .collect();
    let ranks = inside.tensors.iter().map(|id| inside.program.tensor(*id).places.len()).collect();
    let mut search = Search {
        inside,
        ranks,
        moving: vec![Vec::new(); inside.tensors.len()],
        order: Vec::new(),
        cycles: 0,
    };
    let all: Vec<usize> = (0..inside.tensors.len()).collect();
    search.component(&all, edges.iter().collect())?;
    let places = search
        .order
        .iter()
        .filter_map(|at| Some((*inside.tensors.get(*at)?, search.moving.get(*at)?.clone())));
    Some(Steps { places: places.collect() })
}

struct Search<'a> {
    inside: &'a Inside<'a>,
    ranks: Vec<usize>,
    moving: Vec<Vec<Moving>>,
    order: Vec<usize>,
    cycles: usize,
}

impl Search<'_> {
    /// Ranks a strongly connected component and what is left of it.
    fn component(&mut self, nodes: &[usize], edges: Vec<&Edge<'_>>) -> Option<()> {
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
            let left = edges.into_iter().filter(|edge| !self.is_strict(edge, &ranking)).collect();
            pending.extend(fall_apart(&nodes, left).into_iter().rev());
        }
        Some(())
    }

    /// A place for every node, and the direction, such that no edge goes the other way and one
    /// moves strictly.
    fn ranking(&self, nodes: &[usize], edges: &[&Edge<'_>]) -> Option<Ranking> {
        let root = *nodes.first()?;
        let mut leaving: BTreeMap<usize, Vec<&Edge<'_>>> = BTreeMap::new();
        for edge in edges {
            leaving.entry(edge.head).or_default().push(edge);
        }
        let mut tries = TRIES;
        for shifted in [false, true] {
            for up in [true, false] {
                for place in 0..*self.ranks.get(root)? {
                    let places = BTreeMap::from([(root, place)]);
                    let chosen = Ranking { places, up, shifts: BTreeMap::new() };
                    if let Some(found) = self.extend(chosen, &leaving, edges, shifted, &mut tries) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// Extends a choice along the edges; where a tensor read offers several places, each is tried.
    fn extend(
        &self,
        chosen: Ranking,
        leaving: &BTreeMap<usize, Vec<&Edge<'_>>>,
        edges: &[&Edge<'_>],
        shifted: bool,
        tries: &mut usize,
    ) -> Option<Ranking> {
        let mut open = vec![chosen];
        while let Some(mut chosen) = open.pop() {
            *tries = tries.checked_sub(1)?;
            let reached = chosen.places.keys().filter_map(|node| leaving.get(node)).flatten();
            let next = reached.into_iter().find(|edge| !chosen.places.contains_key(&edge.read));
            let Some(edge) = next else {
                if shifted {
                    let Some(shifts) = self.shifts(&chosen, edges) else { continue };
                    chosen.shifts = shifts;
                }
                let holds = edges.iter().all(|edge| self.is_weak(edge, &chosen));
                if holds && edges.iter().any(|edge| self.is_strict(edge, &chosen)) {
                    return Some(chosen);
                }
                continue;
            };
            for place in (0..self.ranks.get(edge.read).copied().unwrap_or(0)).rev() {
                let mut further = chosen.clone();
                further.places.insert(edge.read, place);
                if if shifted { self.is_constant(edge, &further) } else { self.is_weak(edge, &further) } {
                    open.push(further);
                }
            }
        }
        None
    }

    /// Shifts with which no edge goes the other way: distances from anywhere, along the edges (Bellman
    /// and Ford). There are none where a cycle goes back.
    fn shifts(&self, chosen: &Ranking, edges: &[&Edge<'_>]) -> Option<BTreeMap<usize, i128>> {
        let mut shifts: BTreeMap<usize, i128> = chosen.places.keys().map(|node| (*node, 0)).collect();
        for _ in 0..=shifts.len() {
            let mut changed = false;
            for edge in edges {
                let least = shifts.get(&edge.head)?.checked_add(self.distance(edge, chosen)?)?;
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

    /// The bounds of how far the element defined exceeds the one read.
    fn difference(&self, edge: &Edge<'_>, ranking: &Ranking) -> Option<Bounds> {
        let head = edge.occurrence.equation.head.get(*ranking.places.get(&edge.head)?)?;
        let read: &IndexFn = match edge.occurrence.read.arguments.get(*ranking.places.get(&edge.read)?)? {
            Argument::At(function) => function,
            Argument::Any => return None,
        };
        Some(bounds(self.inside.program, edge.occurrence, head, read))
    }

    /// Whether both differ by the same everywhere.
    fn is_constant(&self, edge: &Edge<'_>, ranking: &Ranking) -> bool {
        let bounds = self.difference(edge, ranking);
        bounds.is_some_and(|bounds| bounds.least.is_some() && bounds.least == bounds.largest)
    }

    /// How far the index read lies behind the one defined, in the direction of movement: at least.
    fn distance(&self, edge: &Edge<'_>, ranking: &Ranking) -> Option<i128> {
        let Bounds { least, largest } = self.difference(edge, ranking)?;
        if ranking.up { least } else { largest.and_then(i128::checked_neg) }
    }

    /// The same of the steps.
    fn slack(&self, edge: &Edge<'_>, ranking: &Ranking) -> Option<i128> {
        let shift = |node: usize| ranking.shifts.get(&node).copied().unwrap_or(0);
        let by = shift(edge.head).checked_sub(shift(edge.read))?;
        self.distance(edge, ranking)?.checked_add(by)
    }

    fn is_weak(&self, edge: &Edge<'_>, ranking: &Ranking) -> bool {
        self.slack(edge, ranking).is_some_and(|slack| slack >= 0)
    }

    fn is_strict(&self, edge: &Edge<'_>, ranking: &Ranking) -> bool {
        self.slack(edge, ranking).is_some_and(|slack| slack > 0)
    }
}

/// A place for tensors, and a direction.
#[derive(Clone)]
struct Ranking {
    places: BTreeMap<usize, usize>,
    up: bool,
    /// What is added to an index, counted in the direction; 0 where there is none.
    shifts: BTreeMap<usize, i128>,
}

/// What is to be done, the last first.
enum Task<'a> {
    Component(Vec<usize>, Vec<&'a Edge<'a>>),
    Done(usize),
}

/// The components of what is left, in the order in which they are computed within a step.
fn fall_apart<'a>(nodes: &[usize], edges: Vec<&'a Edge<'a>>) -> Vec<Task<'a>> {
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
        let own = |edge: &&Edge<'_>| holds(&edge.head) && holds(&edge.read);
        let inner: Vec<&Edge<'_>> = edges.iter().copied().filter(own).collect();
        if inner.is_empty() {
            tasks.extend(members.into_iter().map(Task::Done));
        } else {
            tasks.push(Task::Component(members, inner));
        }
    }
    tasks
}
