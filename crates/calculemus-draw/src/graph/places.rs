//! Where boxes and bends stand: each as near as the others let it to the middle of its neighbours.
//!
//! Enter at [`place`]. The order of a layer is given, and what two neighbours of it keep between them; among all such places
//! those with the least squares of distances to where each would like to stand are found exactly, by pooling those that
//! push each other (isotonic regression). Layers are gone through down and up.

use std::collections::BTreeMap;

use super::layers::Layers;

/// Where everything is: along the layers, and across them.
#[derive(Debug, Default)]
pub(super) struct Laid {
    /// The middles of the boxes.
    pub nodes: Vec<(f64, f64)>,
    pub ways: Vec<Vec<(f64, f64)>>,
    pub along: f64,
    pub across: f64,
}

const SWEEPS: usize = 10;

pub(super) fn place(layers: &Layers, between: f64, beyond: f64) -> Laid {
    let mut at = vec![0.0_f64; layers.sizes.len()];
    for layer in &layers.layers {
        settle(layers, layer, between, &mut at, &vec![0.0; layer.len()]);
    }
    for sweep in 0..2 * SWEEPS {
        let down = sweep % 2 == 0;
        let order: Vec<usize> =
            if down { (0..layers.layers.len()).collect() } else { (0..layers.layers.len()).rev().collect() };
        for number in order {
            let layer = &layers.layers[number];
            let wish = |node: &usize| {
                let (near, far) = (&layers.before[*node], &layers.behind[*node]);
                // Both sides count, the one that was settled last twice.
                let (first, second) = if down { (near, far) } else { (far, near) };
                let sum = |of: &[usize]| of.iter().map(|other| at[*other]).sum::<f64>();
                let weight = 2 * first.len() + second.len();
                if weight == 0 { at[*node] } else { (2.0 * sum(first) + sum(second)) / weight as f64 }
            };
            let wishes: Vec<f64> = layer.iter().map(wish).collect();
            settle(layers, layer, between, &mut at, &wishes);
        }
    }
    laid(layers, &at, beyond)
}

/// Gives those of a layer their places, in their order.
fn settle(layers: &Layers, layer: &[usize], between: f64, at: &mut [f64], wishes: &[f64]) {
    // What is before each, so that only the order is left to be kept.
    let mut offsets: Vec<f64> = Vec::with_capacity(layer.len());
    for (number, node) in layer.iter().enumerate() {
        let before = number.checked_sub(1).map_or(0.0, |last| {
            let gap = (layers.sizes[layer[last]].0 + layers.sizes[*node].0) / 2.0 + between;
            offsets[last] + gap
        });
        offsets.push(before);
    }
    // Pools: their mean, and how many are in each.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wish, offset) in wishes.iter().zip(&offsets) {
        pools.push((wish - offset, 1));
        while let [.., (a, n), (b, m)] = pools[..] {
            if a <= b {
                break;
            }
            pools.truncate(pools.len() - 2);
            pools.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    let means = pools.iter().flat_map(|(mean, count)| std::iter::repeat_n(*mean, *count));
    for ((node, offset), mean) in layer.iter().zip(&offsets).zip(means) {
        at[*node] = mean + offset;
    }
}

/// Across the layers, and the ends of arcs at the sides of their boxes.
fn laid(layers: &Layers, at: &[f64], beyond: f64) -> Laid {
    let left = (0..at.len()).map(|node| at[node] - layers.sizes[node].0 / 2.0).fold(f64::INFINITY, f64::min);
    let right = (0..at.len()).map(|node| at[node] + layers.sizes[node].0 / 2.0).fold(0.0, f64::max);
    let left = if left.is_finite() { left } else { 0.0 };
    let (mut across, mut bands) = (0.0, vec![Band::default(); at.len()]);
    for (number, layer) in layers.layers.iter().enumerate() {
        let thick = layer.iter().map(|node| layers.sizes[*node].1).fold(0.0, f64::max);
        across += if number > 0 { beyond } else { 0.0 };
        layer.iter().for_each(|node| bands[*node] = Band { middle: across + thick / 2.0, half: thick / 2.0 });
        across += thick;
    }
    let along: Vec<f64> = at.iter().map(|at| at - left).collect();
    let point = |node: usize| (along[node], bands[node].middle);
    let mut laid = Laid {
        nodes: (0..layers.boxes).map(point).collect(),
        ways: Vec::new(),
        along: (right - left).max(0.0),
        across,
    };
    let ports = Ports::of(layers, at);
    for (number, way) in layers.ways.iter().enumerate() {
        laid.ways.push(ports.way(layers, (&along, &bands), number, way));
    }
    laid
}

/// Where the layer of a box lies.
#[derive(Debug, Clone, Copy, Default)]
struct Band {
    middle: f64,
    half: f64,
}

impl Band {
    /// The side that is turned to another layer.
    fn side(self, other: Band, half: f64) -> f64 {
        if other.middle > self.middle { self.middle + half } else { self.middle - half }
    }
}

/// An end of an arc: where it goes along the layer, which arc it is, and whether it is the start.
type End = (f64, usize, bool);

/// Where arcs meet their boxes: side by side, in the order of where they come from.
struct Ports {
    /// By arc: how far from the middle it starts and ends.
    shifts: Vec<(f64, f64)>,
}

impl Ports {
    fn of(layers: &Layers, at: &[f64]) -> Ports {
        let mut shifts = vec![(0.0, 0.0); layers.ways.len()];
        // By box and side: which end of which arc, and where it goes.
        let mut sides: BTreeMap<(usize, bool), Vec<End>> = BTreeMap::new();
        let layer_of = layer_of(layers);
        for (number, way) in layers.ways.iter().enumerate() {
            if let [first, second, ..] = way[..] {
                let side = layer_of[second] > layer_of[first];
                sides.entry((first, side)).or_default().push((at[second], number, true));
            }
            if let [.., before, last] = way[..] {
                let side = layer_of[before] > layer_of[last];
                sides.entry((last, side)).or_default().push((at[before], number, false));
            }
        }
        for ((node, _), mut ends) in sides {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
            let room = (layers.sizes[node].0 - 12.0).max(0.0);
            let step = (room / ends.len() as f64).min(14.0);
            let middle = (ends.len() as f64 - 1.0) / 2.0;
            for (position, (_, number, is_start)) in ends.iter().enumerate() {
                let shift = (position as f64 - middle) * step;
                if *is_start { shifts[*number].0 = shift } else { shifts[*number].1 = shift }
            }
        }
        Ports { shifts }
    }

    /// The points of an arc. Within layers it is straight, so that no box is in its way.
    fn way(
        &self,
        layers: &Layers,
        (along, bands): (&[f64], &[Band]),
        number: usize,
        way: &[usize],
    ) -> Vec<(f64, f64)> {
        let shifts = self.shifts[number];
        let mut points = Vec::new();
        for (position, pair) in way.windows(2).enumerate() {
            let [from, to] = *pair else { continue };
            let (is_first, is_last) = (position == 0, position + 2 == way.len());
            let start = along[from] + if is_first { shifts.0 } else { 0.0 };
            let end = along[to] + if is_last { shifts.1 } else { 0.0 };
            if is_first {
                points.push((start, bands[from].side(bands[to], layers.sizes[from].1 / 2.0)));
            }
            points.push((start, bands[from].side(bands[to], bands[from].half)));
            points.push((end, bands[to].side(bands[from], bands[to].half)));
            if is_last {
                points.push((end, bands[to].side(bands[from], layers.sizes[to].1 / 2.0)));
            }
        }
        points
    }
}

fn layer_of(layers: &Layers) -> Vec<usize> {
    let mut found = vec![0; layers.sizes.len()];
    for (number, layer) in layers.layers.iter().enumerate() {
        layer.iter().for_each(|node| found[*node] = number);
    }
    found
}
