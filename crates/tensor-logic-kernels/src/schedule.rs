//! What waits, in an order in which it can be done, and what of it is done strip after strip.
//!
//! Operations that share an outer index are a *group*: each row of what one makes comes from the same row of what
//! the one before made, as in product → softmax → product, or a sum over rows takes one row after the other, as
//! the products that carry gradients to weights do. A group is done for a few rows at a time, on scratch that stays
//! in the cache, so that what is read inside of it only never stands anywhere in whole (`strips`).

use std::collections::HashMap;
use std::sync::Arc;

use super::array::{Array, Operation, View};
use super::code::{Binary, Code};
use super::fold::Fold;
use super::normalise::Normalise;
use super::number::volume;
use super::point::Point;
use super::product::{Matrices, Product};
use super::tiles::SUMS;

/// An array that waits.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) array: Array,
    pub(super) operation: Arc<dyn Operation>,
    /// What it reads, in the order in which it visits that: the position of what waits too.
    pub(super) inputs: Vec<Option<usize>>,
    /// How often what waits reads it.
    uses: usize,
    /// Whether somebody will look at its numbers who does not wait here.
    wanted: bool,
}

/// Operations that strips go through.
pub(super) enum Kind<'a> {
    Point(&'a Point),
    Fold(&'a Fold),
    Product(&'a Product),
    Normalise(&'a Normalise),
}

impl Node {
    /// One behind which nothing is held any more.
    pub(super) fn done() -> Node {
        let nothing = || Array::truths(Vec::new());
        let view = View { array: nothing(), offset: 0, steps: Vec::new() };
        let operation = Arc::new(Point::of(Vec::new(), view));
        Node { array: nothing(), operation, inputs: Vec::new(), uses: 0, wanted: false }
    }

    /// One that is done by itself.
    pub(super) fn alone(array: Array) -> Node {
        let operation = array.operation().unwrap_or_else(|| Node::done().operation);
        Node { array, operation, inputs: Vec::new(), uses: 0, wanted: false }
    }

    pub(super) fn kind(&self) -> Option<Kind<'_>> {
        let any = self.operation.any();
        (any.downcast_ref().map(Kind::Point))
            .or_else(|| any.downcast_ref().map(Kind::Fold))
            .or_else(|| any.downcast_ref().map(Kind::Product))
            .or_else(|| any.downcast_ref().map(Kind::Normalise))
    }
}

/// How an operation of a group goes along with its strips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each row is made from the same row of what it reads; so many entries in each.
    Rows(usize),
    /// The rows are summed up; so many entries for each position of the batch.
    Sum(usize),
}

/// One operation of a group.
#[derive(Debug)]
pub(super) struct Member {
    /// Its position among what waits.
    pub(super) node: usize,
    pub(super) way: Way,
    /// What it reads, in the order in which it visits that: the position of other members.
    pub(super) inputs: Vec<Option<usize>>,
    /// Whether its numbers are kept.
    pub(super) kept: bool,
    /// The member that is computed in its place.
    pub(super) within: Option<usize>,
}

/// Operations that are done strip after strip together.
#[derive(Debug)]
pub(super) struct Group {
    /// Positions of the batch, each with rows of its own.
    pub(super) batch: usize,
    /// Rows of each of them.
    pub(super) rows: usize,
    pub(super) members: Vec<Member>,
}

/// Products with smaller results are not worth a group.
const LARGE: usize = 1 << 14;
/// The right factor of a product is read once for every strip: so many entries of it stay in the cache.
const PANEL: usize = 1 << 16;
/// Where rows are summed up, a task does all rows of a position of the batch: there must be so many of them.
const TASKS: usize = 8;
/// Strips of fewer rows, or of more entries, are not worth it.
const LEAST_ROWS: usize = 16;
/// The kernels sum in another order where a result has so many entries or fewer, and, where it has at most so many rows
/// and columns, cut longer sums otherwise.
const TINY: usize = 256;
const BLOCK: usize = 64;

/// What is to be computed for the arrays that are asked for, inputs before their readers.
pub(super) fn waiting(arrays: &[(&Array, bool)]) -> Vec<Node> {
    struct Open {
        array: Array,
        operation: Arc<dyn Operation>,
        inputs: Vec<Array>,
        next: usize,
    }
    let open = |array: &Array| -> Option<Open> {
        let operation = array.operation()?;
        let mut inputs = Vec::new();
        operation.inputs(&mut |input| inputs.push(input.clone()));
        Some(Open { array: array.clone(), operation, inputs, next: 0 })
    };
    let mut all: Vec<Node> = Vec::new();
    let mut known: HashMap<usize, usize> = HashMap::new();
    for (root, _) in arrays {
        let mut stack: Vec<Open> = Vec::new();
        if !known.contains_key(&root.name()) {
            stack.extend(open(root));
        }
        while let Some(top) = stack.last_mut() {
            if let Some(input) = top.inputs.get(top.next) {
                top.next += 1;
                if !known.contains_key(&input.name()) {
                    let input = open(input);
                    stack.extend(input);
                }
                continue;
            }
            let Some(Open { array, operation, inputs, .. }) = stack.pop() else { break };
            let inputs = inputs.iter().map(|input| known.get(&input.name()).copied()).collect();
            known.insert(array.name(), all.len());
            all.push(Node { array, operation, inputs, uses: 0, wanted: false });
        }
    }
    // Handles, and what they wait for without being needed, do not look at numbers.
    let mut holders: Vec<usize> = vec![0; all.len()];
    let mut needed: Vec<bool> = vec![false; all.len()];
    for (array, asked) in arrays {
        let Some(at) = known.get(&array.name()).copied() else { continue };
        holders[at] += 1;
        needed[at] |= asked;
        all[at].wanted |= asked;
    }
    for at in (0..all.len()).rev() {
        let inputs: Vec<usize> = all[at].inputs.iter().flatten().copied().collect();
        for input in inputs {
            holders[input] += 1;
            all[input].uses += usize::from(needed[at]);
            needed[input] |= needed[at];
        }
    }
    for (node, holders) in all.iter_mut().zip(&holders) {
        // This list holds it too.
        node.wanted |= node.array.holders() > holders + 1;
    }
    let mut places: Vec<Option<usize>> = Vec::with_capacity(all.len());
    let mut nodes: Vec<Node> = Vec::new();
    for (mut node, needed) in all.into_iter().zip(needed) {
        places.push(needed.then_some(nodes.len()));
        if needed {
            node.inputs.iter_mut().for_each(|input| *input = input.and_then(|input| places[input]));
            nodes.push(node);
        }
    }
    nodes
}

/// What is done at a time.
pub(super) enum Unit {
    One(usize),
    Group(Group),
}

/// The units in an order in which they can be done.
pub(super) fn units(nodes: &[Node]) -> Vec<Unit> {
    let mut groups: Vec<Group> = Vec::new();
    // Of each node the group that it is in.
    let mut of: Vec<Option<usize>> = vec![None; nodes.len()];
    let large = nodes.iter().filter(|node| node.array.len() >= LARGE).count();
    for at in 0..nodes.len() {
        if large < 2 {
            break;
        }
        let Some(kind) = nodes[at].kind() else { continue };
        let mut tried: Vec<usize> =
            nodes[at].inputs.iter().flatten().filter_map(|input| of[*input]).collect();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        tried.dedup();
        let joined = tried.into_iter().find_map(|group| {
            let member = groups[group].admits(nodes, at, &kind)?;
            let free = nodes[at].inputs.iter().zip(&member.inputs).all(|(input, inside)| match input {
                Some(input) if inside.is_none() => !depends(nodes, &groups, &of, *input, group),
                _ => true,
            });
            free.then_some((group, member))
        });
        if let Some((group, member)) = joined {
            groups[group].members.push(member);
            of[at] = Some(group);
        } else if let Kind::Product(product) = kind
            && let Some(group) = Group::from(product, at)
        {
            of[at] = Some(groups.len());
            groups.push(group);
        }
    }
    for (own, group) in groups.iter_mut().enumerate() {
        group.keep(nodes, |reader| of[reader] == Some(own));
        if !group.is_worth_it(nodes) {
            group.members.iter().for_each(|member| of[member.node] = None);
            group.members.clear();
        }
    }
    ordered(nodes, groups, &of)
}

/// Whether a node, or a group that it is in, needs another group.
fn depends(nodes: &[Node], groups: &[Group], of: &[Option<usize>], node: usize, on: usize) -> bool {
    let mut seen = vec![false; nodes.len()];
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        if of[node] == Some(on) {
            return true;
        }
        open.extend(nodes[node].inputs.iter().flatten());
        if let Some(group) = of[node] {
            open.extend(groups[group].members.iter().map(|member| member.node));
        }
    }
    false
}

/// Inputs before their readers.
fn ordered(nodes: &[Node], groups: Vec<Group>, of: &[Option<usize>]) -> Vec<Unit> {
    let members: Vec<Vec<usize>> =
        groups.iter().map(|group| group.members.iter().map(|member| member.node).collect()).collect();
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let mut done = vec![false; nodes.len()];
    let mut units = Vec::new();
    let mut open: Vec<usize> = (0..nodes.len()).rev().collect();
    while let Some(node) = open.last().copied() {
        let own = [node];
        let together = of[node].map_or(&own[..], |group| &members[group]);
        let before = open.len();
        if !done[node] {
            let inputs = together.iter().flat_map(|node| nodes[*node].inputs.iter().flatten());
            open.extend(inputs.filter(|input| !done[**input] && !together.contains(input)));
        }
        if open.len() > before {
            continue;
        }
        open.pop();
        if done[node] {
            continue;
        }
        together.iter().for_each(|node| done[*node] = true);
        match of[node].and_then(|group| groups[group].take()) {
            Some(group) => units.push(Unit::Group(group)),
            None => units.push(Unit::One(node)),
        }
    }
    units
}

impl Member {
    /// The entries of one row; of a sum all of them.
    pub(super) fn width(&self) -> usize {
        match self.way {
            Way::Rows(width) | Way::Sum(width) => width,
        }
    }
}

impl Group {
    /// A group that begins with a product.
    fn from(product: &Product, node: usize) -> Option<Group> {
        let (batch, rows) = (volume(&product.batch), product.m);
        let member =
            Member { node, way: Way::Rows(product.n), inputs: vec![None; 2], kept: true, within: None };
        let large = batch.saturating_mul(rows).saturating_mul(product.n) >= LARGE;
        let group = Group { batch, rows, members: vec![member] };
        (large && rows >= LEAST_ROWS && batch > 0 && is_even(product)).then_some(group)
    }

    fn all_rows(&self) -> usize {
        self.batch * self.rows
    }

    /// The member that a node would be, if its inputs that are members come strip after strip as it wants them.
    fn admits(&self, nodes: &[Node], node: usize, kind: &Kind<'_>) -> Option<Member> {
        let inputs: Vec<Option<usize>> = nodes[node]
            .inputs
            .iter()
            .map(|input| self.members.iter().position(|member| Some(member.node) == *input))
            .collect();
        let mut widths = Vec::new();
        for input in &inputs {
            widths.push(match input.map(|at| self.members[at].way) {
                None => None,
                Some(Way::Rows(width)) => Some(width),
                Some(Way::Sum(_)) => return None,
            });
        }
        let rows = self.all_rows();
        let len = nodes[node].array.len();
        let follow = |point: &Point, widths: &[Option<usize>]| {
            let shape = &point.shape;
            let mut views = point.inputs.iter().zip(widths);
            split(shape, rows).is_some()
                && !point.truth
                && views.all(|(view, width)| width.is_none_or(|width| follows(view, shape, rows, width)))
        };
        let way = match kind {
            Kind::Point(point) => follow(point, &widths).then_some(Way::Rows(len / rows))?,
            Kind::Fold(fold) => {
                let whole = split(&fold.point.shape, rows).is_some_and(|at| at <= fold.kept);
                (whole && follow(&fold.point, &widths) && fold.is_by_rows())
                    .then_some(Way::Rows(len / rows))?
            }
            Kind::Normalise(normalise) => {
                let points = normalise.points();
                let mut first = 0;
                let fine = points.iter().all(|point| {
                    let own = &widths[first..first + point.inputs.len()];
                    first += point.inputs.len();
                    follow(point, own)
                });
                let along = normalise.layout.along;
                let whole =
                    normalise.layout.groups.is_none() && along > 0 && (len / rows).is_multiple_of(along);
                (fine && whole).then_some(Way::Rows(len / rows))?
            }
            Kind::Product(product) => self.product(product, [widths[0], widths[1]])?,
        };
        Some(Member { node, way, inputs, kept: true, within: None })
    }

    /// How a product of members goes along.
    fn product(&self, product: &Product, widths: [Option<usize>; 2]) -> Option<Way> {
        let Product { m, k, n, .. } = *product;
        let count = volume(&product.batch);
        // Its batch repeats, or is that of the group.
        let whole = |own: &Matrices, rows: usize, width: usize| {
            let mut step = rows * width;
            product.batch.iter().zip(&own.batch).rev().all(|(size, own)| {
                let fits = *size == 1 || *own == step;
                step *= size;
                fits
            })
        };
        if let [Some(width), None] = widths
            && count * m == self.all_rows()
            && m.is_multiple_of(self.rows)
            && is_even(product)
        {
            let a = &product.a;
            if whole(a, m, width) && a.row == width && a.column == 1 && a.offset + k <= width {
                return Some(Way::Rows(n));
            }
        }
        let small = m > 1 && n > 1 && m.saturating_mul(n) <= PANEL;
        if count != self.batch || k != self.rows || self.batch < TASKS || !small {
            return None;
        }
        let (a, b) = (&product.a, &product.b);
        let left = widths[0].is_none_or(|width| {
            whole(a, k, width) && a.column == width && a.row == 1 && a.offset + m <= width
        });
        let right = widths[1].is_none_or(|width| {
            whole(b, k, width) && b.row == width && b.column == 1 && b.offset + n <= width
        });
        (left && right).then_some(Way::Sum(m * n))
    }

    /// Finds out which members are kept, and which are computed where another will stand.
    fn keep(&mut self, nodes: &[Node], inside: impl Fn(usize) -> bool) {
        let mut outside = vec![0; nodes.len()];
        for (_, node) in nodes.iter().enumerate().filter(|(at, _)| !inside(*at)) {
            node.inputs.iter().flatten().for_each(|input| outside[*input] += 1);
        }
        for member in &mut self.members {
            let sum = matches!(member.way, Way::Sum(_));
            member.kept = sum || nodes[member.node].wanted || outside[member.node] > 0;
        }
        for at in 0..self.members.len() {
            let Some(input) = in_place(nodes, &self.members[at]) else { continue };
            let from = &self.members[input];
            if !from.kept && nodes[from.node].uses == 1 {
                self.members[input].within = Some(at);
            }
        }
    }

    /// Whether strips spare something: numbers that need not be kept.
    fn is_worth_it(&self, nodes: &[Node]) -> bool {
        let spared = |member: &Member| !member.kept && nodes[member.node].array.len() >= LARGE;
        self.members.iter().any(spared) && rows_of_strip(self) >= LEAST_ROWS.min(self.rows)
    }
}

/// The member that is read entry by entry, by one that can work where it stands.
fn in_place(nodes: &[Node], member: &Member) -> Option<usize> {
    let (point, more) = match nodes[member.node].kind()? {
        Kind::Point(point) => (point, true),
        Kind::Normalise(normalise) => (&normalise.values, false),
        Kind::Fold(_) | Kind::Product(_) => return None,
    };
    let [view] = point.inputs.as_slice() else { return None };
    let work = match point.code.as_slice() {
        [Code::Load(0)] => true,
        [Code::Load(0), Code::Number(zero), Code::Binary(Binary::Add)] => more && *zero == 0.0,
        _ => false,
    };
    let input = *member.inputs.first()?;
    input.filter(|_| work && !point.truth && view.is_whole(&point.shape))
}

/// Whether each strip of a product is summed as the whole of it would be, and the right factor stays in the cache.
fn is_even(product: &Product) -> bool {
    let Product { m, k, n, .. } = *product;
    m > 1 && k > 0 && n * LEAST_ROWS > TINY && (k <= *SUMS.end() || n > BLOCK) && k.saturating_mul(n) <= PANEL
}

/// How many leading dimensions are so many rows.
fn split(shape: &[usize], rows: usize) -> Option<usize> {
    let mut so_far = 1;
    for at in 0..=shape.len() {
        if so_far == rows {
            return Some(at);
        }
        so_far *= shape.get(at)?;
    }
    None
}

/// Whether a reader whose leading dimensions are so many rows finds in each of them the same row of an array, whose
/// rows have so many entries.
fn follows(view: &View, shape: &[usize], rows: usize, width: usize) -> bool {
    let Some(split) = split(shape, rows) else { return false };
    let mut step = width;
    for at in (0..split).rev() {
        if shape[at] > 1 && view.steps[at].by() != Some(step) {
            return false;
        }
        step *= shape[at];
    }
    let mut reach = view.offset;
    for (size, step) in shape.iter().zip(&view.steps).skip(split) {
        match step.by() {
            Some(step) if *size > 0 => reach += (size - 1) * step,
            _ => return false,
        }
    }
    reach < width
}

/// So many bytes of scratch a task works on: what a core has of its second cache holds them beside the factors of products.
const SCRATCH: usize = 3 << 17;
/// Strips have at most so many rows, and mostly at least so many.
const MOST_ROWS: usize = 128;
const FEW_ROWS: usize = 24;

/// Where the strips of members stand while they are worked on.
pub(super) struct Slots {
    /// The slot of each member that is not kept; members that work in the place of another have its own.
    pub(super) of: Vec<Option<usize>>,
    /// Entries of one row in each slot.
    pub(super) widths: Vec<usize>,
}

impl Slots {
    /// A slot is used again behind the last reader of what stands there.
    pub(super) fn of(group: &Group) -> Slots {
        let members = &group.members;
        let mut last = vec![0; members.len()];
        for (at, member) in members.iter().enumerate() {
            for input in member.inputs.iter().flatten() {
                last[place(group, *input)] = at;
            }
        }
        let mut slots = Slots { of: vec![None; members.len()], widths: Vec::new() };
        let mut free: Vec<usize> = Vec::new();
        for (at, member) in members.iter().enumerate() {
            let own = place(group, at);
            if let (Way::Rows(width), false, None) = (member.way, members[own].kept, slots.of[own]) {
                let fitting = free.iter().position(|slot| slots.widths[*slot] == width);
                let slot = fitting.map(|at| free.swap_remove(at)).unwrap_or_else(|| {
                    slots.widths.push(width);
                    slots.widths.len() - 1
                });
                slots.of[own] = Some(slot);
            }
            slots.of[at] = slots.of[own];
            let ended = (0..=at).filter(|other| place(group, *other) == *other && last[*other] == at);
            free.extend(ended.filter_map(|other| slots.of[other]));
        }
        slots
    }
}

/// The member in whose place another is computed: itself, for most.
pub(super) fn place(group: &Group, member: usize) -> usize {
    let mut at = member;
    while let Some(next) = group.members[at].within {
        at = next;
    }
    at
}

/// About how many rows a strip of a group has; fewer than are worth it where rows are long.
pub(super) fn rows_of_strip(group: &Group) -> usize {
    let slots = Slots::of(group);
    let kept = |member: &Member| match member.way {
        Way::Rows(width) if member.kept => width,
        _ => 0,
    };
    let width: usize = slots.widths.iter().sum::<usize>() + group.members.iter().map(kept).sum::<usize>();
    let rows = SCRATCH / (size_of::<f32>() * width.max(1));
    if rows < LEAST_ROWS { rows } else { (rows / 8 * 8).clamp(FEW_ROWS, MOST_ROWS) }
}
