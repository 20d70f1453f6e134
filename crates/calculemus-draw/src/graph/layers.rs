//! Which box stands in which layer, and in which order.
//!
//! Enter at [`Layers::of`]. Circles are opened where a walk from the first box comes back to where it is; what an arc comes from
//! is at least one layer further than what it leads to. An arc over several layers has a bend in each of those between
//! (Sugiyama, Tagawa and Toda 1981), and bends keep other boxes out of its way. Layers are put in order by the middle of their
//! neighbours, back and forth, and the order with the fewest crossings stays.

use std::collections::BTreeSet;

/// Boxes and bends by layers.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// Their size along the layer, and across it.
    pub sizes: Vec<(f64, f64)>,
    /// Which boxes and bends stand in each, in their order.
    pub layers: Vec<Vec<usize>>,
    /// What each is joined to in the layer before, and in the layer behind.
    pub before: Vec<Vec<usize>>,
    pub behind: Vec<Vec<usize>>,
    /// The boxes and bends of each arc, from its start.
    pub ways: Vec<Vec<usize>>,
    /// How many are boxes: they come first.
    pub boxes: usize,
}

/// The width of a bend.
const BEND: f64 = 4.0;

/// How often the layers are put in order.
const SWEEPS: usize = 12;

impl Layers {
    pub(super) fn of(sizes: &[(f64, f64)], arcs: &[(usize, usize)]) -> Layers {
        let count = sizes.len();
        let is_there = |arc: &&(usize, usize)| arc.0 < count && arc.1 < count;
        // From what is nearer to the first box to what is further: against the arcs.
        let mut further = vec![Vec::new(); count];
        for (from, to) in arcs.iter().filter(is_there).filter(|(from, to)| from != to) {
            further[*to].push(*from);
        }
        let back = circles(&further);
        let mut inner: Vec<(usize, usize)> = Vec::new();
        for (near, fars) in further.iter().enumerate() {
            let turned = |far: &usize| if back.contains(&(near, *far)) { (*far, near) } else { (near, *far) };
            inner.extend(fars.iter().map(turned));
        }
        let depth = depths(count, &inner);
        let mut made = Layers {
            sizes: sizes.to_vec(),
            layers: vec![Vec::new(); depth.iter().max().map_or(0, |deepest| deepest + 1)],
            before: vec![Vec::new(); count],
            behind: vec![Vec::new(); count],
            ways: Vec::new(),
            boxes: count,
        };
        depth.iter().enumerate().for_each(|(node, layer)| made.layers[*layer].push(node));
        for (from, to) in arcs {
            let way = match (depth.get(*from), depth.get(*to)) {
                (Some(a), Some(b)) if a != b => made.way((*from, *a), (*to, *b)),
                _ => Vec::new(),
            };
            made.ways.push(way);
        }
        made.order();
        made
    }

    /// The bends of an arc.
    fn way(&mut self, from: (usize, usize), to: (usize, usize)) -> Vec<usize> {
        let (near, far) = if from.1 < to.1 { (from, to) } else { (to, from) };
        let mut way = vec![near.0];
        for layer in near.1 + 1..=far.1 {
            let next = if layer == far.1 { far.0 } else { self.bend(layer) };
            if let Some(last) = way.last() {
                self.behind[*last].push(next);
                self.before[next].push(*last);
            }
            way.push(next);
        }
        if from.1 > to.1 {
            way.reverse();
        }
        way
    }

    fn bend(&mut self, layer: usize) -> usize {
        self.sizes.push((BEND, 0.0));
        self.before.push(Vec::new());
        self.behind.push(Vec::new());
        self.layers[layer].push(self.sizes.len() - 1);
        self.sizes.len() - 1
    }

    /// Puts the layers in an order with few crossings.
    fn order(&mut self) {
        self.follow();
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            let layers: Vec<usize> = match sweep % 2 {
                0 => (1..self.layers.len()).collect(),
                _ => (0..self.layers.len().saturating_sub(1)).rev().collect(),
            };
            for layer in layers {
                let at = self.positions();
                let neighbours = if sweep % 2 == 0 { &self.before } else { &self.behind };
                let mut keyed: Vec<(f64, usize)> = self.layers[layer]
                    .iter()
                    .map(|node| (middle(&neighbours[*node], &at).unwrap_or(at[*node] as f64), *node))
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
            if best.0 == 0 {
                break;
            }
        }
        self.layers = best.1;
    }

    /// The first order: what belongs to the first boxes of a layer comes first in the next one.
    fn follow(&mut self) {
        for layer in 1..self.layers.len() {
            let mut next: Vec<usize> = Vec::new();
            for node in &self.layers[layer - 1] {
                for far in &self.behind[*node] {
                    if !next.contains(far) {
                        next.push(*far);
                    }
                }
            }
            let rest = self.layers[layer].iter().filter(|node| !next.contains(node));
            let rest: Vec<usize> = rest.copied().collect();
            next.extend(rest);
            self.layers[layer] = next;
        }
    }

    /// The position of each in its layer.
    fn positions(&self) -> Vec<usize> {
        let mut at = vec![0; self.sizes.len()];
        for layer in &self.layers {
            layer.iter().enumerate().for_each(|(position, node)| at[*node] = position);
        }
        at
    }

    /// How many pairs of arcs between neighbouring layers cross.
    fn crossings(&self) -> usize {
        let at = self.positions();
        let mut crossings = 0;
        for layer in &self.layers {
            let mut ends: Vec<(usize, usize)> = Vec::new();
            for node in layer {
                ends.extend(self.behind[*node].iter().map(|far| (at[*node], at[*far])));
            }
            ends.sort_unstable();
            for (number, (near, far)) in ends.iter().enumerate() {
                crossings += ends[..number].iter().filter(|other| other.0 < *near && other.1 > *far).count();
            }
        }
        crossings
    }
}

/// The middle of the positions of some.
fn middle(of: &[usize], at: &[usize]) -> Option<f64> {
    (!of.is_empty()).then(|| of.iter().map(|node| at[*node] as f64).sum::<f64>() / of.len() as f64)
}

/// The arcs that close a circle on a walk that begins with the first box.
fn circles(further: &[Vec<usize>]) -> BTreeSet<(usize, usize)> {
    let mut back = BTreeSet::new();
    // 0: not met; 1: on the way; 2: left.
    let mut state = vec![0u8; further.len()];
    for first in 0..further.len() {
        if state[first] != 0 {
            continue;
        }
        let mut walk = vec![(first, 0)];
        state[first] = 1;
        while let Some((node, next)) = walk.last_mut() {
            let Some(far) = further[*node].get(*next).copied() else {
                state[*node] = 2;
                walk.pop();
                continue;
            };
            *next += 1;
            match state[far] {
                0 => {
                    state[far] = 1;
                    walk.push((far, 0));
                }
                1 => {
                    back.insert((*node, far));
                }
                _ => {}
            }
        }
    }
    back
}

/// The length of the longest way to each.
fn depths(count: usize, arcs: &[(usize, usize)]) -> Vec<usize> {
    let (mut depth, mut open) = (vec![0; count], vec![0usize; count]);
    arcs.iter().for_each(|(_, far)| open[*far] += 1);
    let mut behind = vec![Vec::new(); count];
    arcs.iter().for_each(|(near, far)| behind[*near].push(*far));
    let mut ready: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(near) = ready.pop() {
        for far in &behind[near] {
            depth[*far] = depth[*far].max(depth[near] + 1);
            open[*far] -= 1;
            if open[*far] == 0 {
                ready.push(*far);
            }
        }
    }
    depth
}
