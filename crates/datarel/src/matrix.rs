//! Recursion through chains over a small universe: products of Boolean matrices, semi-naive by
//! rows of bits.
//!
//! Every rule is a tree of products ([`Node`]); finished relations are lists, those of the
//! component rows of bits. A round joins what is new on one side of a product with all of the
//! other: one row of 64-bit words is joined for each new bit on the left, and for each bit on the
//! left whose row on the right is new. Enter at [`Matrices::recognise`] and [`Matrices::close`].

use rayon::prelude::*;

use super::bits::{BitMatrix, BitRows, each_bit, or_into};
use super::chain::{Chain, Factor};
use super::database::Database;
use super::limits::{Failure, Limits};
use super::rule::{RelationId, Rule};
use super::sorted::counted;

/// A universe may have so many constants: a matrix then takes 8 MiB.
const UNIVERSE: usize = 8192;

/// Rows are joined in parallel where a matrix has so many words.
const PARALLEL: usize = 1 << 14;

/// A recursion of this shape.
pub(super) struct Matrices {
    relations: Vec<RelationId>,
    chains: Vec<Chain>,
}

/// A relation of the component as a matrix that grows.
struct Pair {
    full: BitMatrix,
    /// What the last round has added; rows that are not marked are empty.
    delta: BitMatrix,
    /// The rows of `delta` that are not empty, as bits.
    marked: Vec<u64>,
}

/// A finished matrix: the list of each row.
struct Lists {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

/// A factor of a product.
enum Node {
    /// A finished relation, or a product of such.
    Fixed(Lists),
    /// A relation of the component, or its transpose.
    Own(usize, bool),
    /// The product of two nodes before it, with what it has become so far.
    Product(usize, usize, Pair),
}

/// A relation of the component at work.
struct Own {
    id: RelationId,
    forward: Pair,
    transposed: Option<Pair>,
    /// What this round finds, and which rows of it are not empty.
    next: BitMatrix,
    touched: Vec<bool>,
}

impl Matrices {
    /// The recursion of these relations, if all its rules are chains of binary Boolean relations.
    pub(super) fn recognise(
        database: &Database,
        relations: &[RelationId],
        rules: &[&Rule],
    ) -> Option<Matrices> {
        let chains: Vec<Chain> = rules.iter().map(|rule| Chain::new(rule)).collect::<Option<_>>()?;
        // As conditions, valued relations are as good as Boolean ones.
        let boolean = relations.iter().all(|id| !database.relation(*id).ring().valued());
        boolean.then(|| Matrices { relations: relations.to_vec(), chains })
    }

    /// Closes the relations, which hold their bases; false where the universe is too large.
    pub(super) fn close(&self, database: &mut Database, limits: &Limits) -> Result<bool, Failure> {
        let Some(universe) = self.universe(database) else { return Ok(false) };
        let matrices = 6 * (self.relations.len() + self.chains.len()) as u64;
        let needed = matrices * (universe.len() as u64 * universe.len() as u64 / 8) + database.bytes();
        if needed > limits.bytes {
            return Ok(false);
        }
        let others = database.tuples()
            - self.relations.iter().map(|id| database.relation(*id).len() as u64).sum::<u64>();
        let mut work = Work::new(self, database, &universe);
        while work.round(limits)? {
            let tuples: usize = work.own.iter().map(|own| own.forward.full.count()).sum();
            if tuples as u64 + others > limits.tuples {
                return Err(Failure::Tuples { relation: self.relations[0], limit: limits.tuples });
            }
        }
        for own in work.own {
            let bits = BitRows::square(universe.clone(), own.forward.full);
            database.relation_mut(own.id).rest_bits(own.id, bits)?;
        }
        Ok(true)
    }

    /// All constants of all relations, if they are few.
    fn universe(&self, database: &Database) -> Option<Vec<u32>> {
        let mut universe: Vec<u32> = Vec::new();
        let factors = self.chains.iter().flat_map(|chain| &chain.factors).map(|factor| factor.relation);
        let mut relations: Vec<RelationId> = factors.chain(self.relations.iter().copied()).collect();
        relations.sort_unstable();
        relations.dedup();
        for relation in relations {
            for column in database.relation(relation).unordered() {
                universe.extend(column);
            }
            universe.sort_unstable();
            universe.dedup();
            if universe.len() > UNIVERSE {
                return None;
            }
        }
        Some(universe)
    }
}

struct Work {
    own: Vec<Own>,
    nodes: Vec<Node>,
    /// For each rule: the relation it adds to, its last product, and whether places must differ.
    rules: Vec<(usize, (usize, usize), bool)>,
}

impl Work {
    fn new(matrices: &Matrices, database: &Database, universe: &[u32]) -> Work {
        let size = universe.len();
        let mut work = Work { own: Vec::new(), nodes: Vec::new(), rules: Vec::new() };
        for id in &matrices.relations {
            let mut full = BitMatrix::new(size);
            for (x, y) in pairs(database, *id, universe) {
                full.set(x, y);
            }
            let transposed = matrices.chains.iter().flat_map(|chain| &chain.factors);
            let transposed = transposed.clone().any(|factor| factor.relation == *id && factor.transposed);
            work.own.push(Own {
                id: *id,
                transposed: transposed.then(|| Pair::new(full.transposed())),
                forward: Pair::new(full),
                next: BitMatrix::new(size),
                touched: vec![false; size],
            });
        }
        for chain in &matrices.chains {
            let head = matrices.relations.iter().position(|id| *id == chain.head).unwrap_or(0);
            let leaves: Vec<usize> =
                chain.factors.iter().map(|factor| work.leaf(matrices, database, universe, *factor)).collect();
            let root = work.tree(&leaves, size);
            work.rules.push((head, root, chain.different));
        }
        work
    }

    fn leaf(&mut self, matrices: &Matrices, database: &Database, universe: &[u32], factor: Factor) -> usize {
        let own = matrices.relations.iter().position(|id| *id == factor.relation);
        self.nodes.push(match own {
            Some(own) => Node::Own(own, factor.transposed),
            None => {
                let pairs = pairs(database, factor.relation, universe);
                let turned = pairs.into_iter().map(|(x, y)| if factor.transposed { (y, x) } else { (x, y) });
                Node::Fixed(Lists::new(universe.len(), turned.collect()))
            }
        });
        self.nodes.len() - 1
    }

    /// The two factors of the last product of a chain.
    fn tree(&mut self, leaves: &[usize], size: usize) -> (usize, usize) {
        match leaves {
            // A product with 1.
            [one] => (self.unit(size), *one),
            [left, right] => (*left, *right),
            _ => {
                let last = leaves.len() - 1;
                if self.last_is_last(leaves, size) {
                    let (left, right) = self.tree(&leaves[..last], size);
                    (self.product(left, right, size), leaves[last])
                } else {
                    let (left, right) = self.tree(&leaves[1..], size);
                    (leaves[0], self.product(left, right, size))
                }
            }
        }
    }

    /// Whether the last factor is better multiplied last. What counts is how many bits stand on
    /// the left of each product; a relation of the component may become dense.
    fn last_is_last(&self, leaves: &[usize], size: usize) -> bool {
        let last = leaves.len() - 1;
        let left = self.share(leaves[0], size);
        let right = self.share(leaves[last], size);
        let inner = self.share(leaves[1], size);
        // (F G) H: rows of F times the width of G; F (G H): bits of G that meet H, rows of G.
        left.max(1e-9) < right.min(inner)
    }

    /// The share of rows that are not empty.
    fn share(&self, node: usize, size: usize) -> f64 {
        match &self.nodes[node] {
            Node::Fixed(lists) => {
                lists.starts.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64 / size.max(1) as f64
            }
            Node::Own(..) | Node::Product(..) => 1.0,
        }
    }

    fn unit(&mut self, size: usize) -> usize {
        let pairs = (0..size).map(|x| (x, x)).collect();
        self.nodes.push(Node::Fixed(Lists::new(size, pairs)));
        self.nodes.len() - 1
    }

    fn product(&mut self, left: usize, right: usize, size: usize) -> usize {
        let node = match (&self.nodes[left], &self.nodes[right]) {
            (Node::Fixed(left), Node::Fixed(right)) => Node::Fixed(left.times(right, size)),
            _ => Node::Product(left, right, Pair::new(BitMatrix::new(size))),
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A round; false where it added nothing.
    fn round(&mut self, limits: &Limits) -> Result<bool, Failure> {
        for at in 0..self.nodes.len() {
            limits.interrupted()?;
            let (before, rest) = self.nodes.split_at_mut(at);
            if let Some(Node::Product(left, right, pair)) = rest.first_mut() {
                let left = View::new(&before[*left], &self.own);
                let right = View::new(&before[*right], &self.own);
                pair.clear_delta();
                let Pair { full, delta, marked } = pair;
                let found = each_row(delta, full, |x, new, full| {
                    multiply(x, &left, &right, new);
                    or_new(full, new)
                });
                mark(marked, &found);
            }
        }
        for (head, (left, right), different) in &self.rules {
            limits.interrupted()?;
            // The next rows leave the relation while views of it are open.
            let mut next = std::mem::replace(&mut self.own[*head].next, BitMatrix::of(0, 0));
            let mut touched = std::mem::take(&mut self.own[*head].touched);
            {
                let left = View::new(&self.nodes[*left], &self.own);
                let right = View::new(&self.nodes[*right], &self.own);
                let found = rows_of(&mut next, |x, row, scratch| {
                    scratch.fill(0);
                    multiply(x, &left, &right, scratch);
                    if *different {
                        scratch[x / 64] &= !(1 << (x % 64));
                    }
                    or_into(row, scratch);
                    scratch.iter().any(|word| *word != 0)
                });
                for (touched, found) in touched.iter_mut().zip(found) {
                    *touched |= found;
                }
            }
            self.own[*head].next = next;
            self.own[*head].touched = touched;
        }
        let mut changed = false;
        for own in &mut self.own {
            changed |= own.advance();
        }
        Ok(changed)
    }
}

/// The tuples of a binary relation as positions in the universe.
fn pairs(database: &Database, id: RelationId, universe: &[u32]) -> Vec<(usize, usize)> {
    let columns = database.relation(id).unordered();
    let position = |constant: &u32| universe.binary_search(constant).unwrap_or(0);
    match &columns[..] {
        [left, right] => left.iter().zip(right).map(|(x, y)| (position(x), position(y))).collect(),
        _ => Vec::new(),
    }
}

impl Lists {
    fn new(size: usize, mut pairs: Vec<(usize, usize)>) -> Lists {
        pairs.sort_unstable();
        pairs.dedup();
        let (from, targets): (Vec<u32>, Vec<u32>) = pairs.iter().map(|(x, y)| (*x as u32, *y as u32)).unzip();
        Lists { starts: counted(from, size), targets }
    }

    fn row(&self, x: usize) -> &[u32] {
        &self.targets[self.starts[x] as usize..self.starts[x + 1] as usize]
    }

    fn times(&self, right: &Lists, size: usize) -> Lists {
        let mut pairs = Vec::new();
        for x in 0..size {
            for y in self.row(x) {
                pairs.extend(right.row(*y as usize).iter().map(|z| (x, *z as usize)));
            }
        }
        Lists::new(size, pairs)
    }
}

impl Pair {
    /// Everything is new.
    fn new(full: BitMatrix) -> Pair {
        let rows = full.data.len() / full.words.max(1);
        let mut marked = vec![0; rows.div_ceil(64)];
        for x in 0..rows {
            if full.row(x).iter().any(|word| *word != 0) {
                marked[x / 64] |= 1 << (x % 64);
            }
        }
        Pair { delta: full.clone(), full, marked }
    }

    fn clear_delta(&mut self) {
        let Pair { delta, marked, .. } = self;
        each_bit(marked, |x| delta.row_mut(x).fill(0));
        marked.fill(0);
    }
}

impl Own {
    /// Ends a round; false where it found nothing new.
    fn advance(&mut self) -> bool {
        self.forward.clear_delta();
        let Pair { full, delta, marked } = &mut self.forward;
        for x in 0..self.touched.len() {
            if std::mem::take(&mut self.touched[x]) {
                let next = self.next.row_mut(x);
                if or_new(full.row_mut(x), next) {
                    delta.row_mut(x).copy_from_slice(next);
                    marked[x / 64] |= 1 << (x % 64);
                }
                next.fill(0);
            }
        }
        if let Some(transposed) = &mut self.transposed {
            transposed.clear_delta();
            let Pair { full, delta: turned, marked: rows } = transposed;
            each_bit(marked, |x| {
                each_bit(delta.row(x), |y| {
                    turned.set(y, x);
                    full.set(y, x);
                    rows[y / 64] |= 1 << (y % 64);
                });
            });
        }
        self.forward.marked.iter().any(|word| *word != 0)
    }
}

/// Takes from `new` what is in `full`, and adds the rest to it; false where nothing is left.
fn or_new(full: &mut [u64], new: &mut [u64]) -> bool {
    let mut any = 0;
    for (full, new) in full.iter_mut().zip(new) {
        *new &= !*full;
        *full |= *new;
        any |= *new;
    }
    any != 0
}

fn mark(marked: &mut [u64], found: &[bool]) {
    for (x, _) in found.iter().enumerate().filter(|(_, found)| **found) {
        marked[x / 64] |= 1 << (x % 64);
    }
}

/// Runs `one` on every pair of rows.
fn each_row(
    a: &mut BitMatrix,
    b: &mut BitMatrix,
    one: impl Fn(usize, &mut [u64], &mut [u64]) -> bool + Sync,
) -> Vec<bool> {
    let words = a.words.max(1);
    if a.data.len() < PARALLEL {
        let rows = a.data.chunks_mut(words).zip(b.data.chunks_mut(words));
        return rows.enumerate().map(|(x, (a, b))| one(x, a, b)).collect();
    }
    let rows = a.data.par_chunks_mut(words).zip(b.data.par_chunks_mut(words));
    rows.enumerate().with_min_len(16).map(|(x, (a, b))| one(x, a, b)).collect()
}

/// Runs `one` on every row, with a row to work in.
fn rows_of(matrix: &mut BitMatrix, one: impl Fn(usize, &mut [u64], &mut [u64]) -> bool + Sync) -> Vec<bool> {
    let words = matrix.words.max(1);
    if matrix.data.len() < PARALLEL {
        let mut scratch = vec![0; words];
        let rows = matrix.data.chunks_mut(words).enumerate();
        return rows.map(|(x, row)| one(x, row, &mut scratch)).collect();
    }
    let rows = matrix.data.par_chunks_mut(words).enumerate().with_min_len(16);
    rows.map_init(|| vec![0; words], |scratch, (x, row)| one(x, row, scratch)).collect()
}

/// A factor as products see it.
struct View<'a> {
    rows: Rows<'a>,
    delta: Option<&'a Pair>,
    /// The words of the marks that are not 0.
    marks: Vec<(usize, u64)>,
}

enum Rows<'a> {
    Lists(&'a Lists),
    Bits(&'a BitMatrix),
}

impl<'a> View<'a> {
    fn new(node: &'a Node, own: &'a [Own]) -> View<'a> {
        let pair = match node {
            Node::Fixed(lists) => {
                return View { rows: Rows::Lists(lists), delta: None, marks: Vec::new() };
            }
            Node::Product(_, _, pair) => pair,
            Node::Own(at, false) => &own[*at].forward,
            Node::Own(at, true) => own[*at].transposed.as_ref().unwrap_or(&own[*at].forward),
        };
        let marks = pair.marked.iter().copied().enumerate().filter(|(_, word)| *word != 0).collect();
        View { rows: Rows::Bits(&pair.full), delta: Some(pair), marks }
    }
}

/// to |= the new part of row x of left · right
#[inline]
fn multiply(x: usize, left: &View<'_>, right: &View<'_>, to: &mut [u64]) {
    if let Some(new) = left.delta
        && new.marked[x / 64] >> (x % 64) & 1 != 0
    {
        match &right.rows {
            Rows::Bits(all) => each_bit(new.delta.row(x), |y| or_into(to, all.row(y))),
            Rows::Lists(all) => each_bit(new.delta.row(x), |y| {
                for z in all.row(y) {
                    to[*z as usize / 64] |= 1 << (z % 64);
                }
            }),
        }
    }
    let Some(new) = right.delta else { return };
    match &left.rows {
        Rows::Lists(all) => {
            for y in all.row(x) {
                let y = *y as usize;
                if new.marked[y / 64] >> (y % 64) & 1 != 0 {
                    or_into(to, new.delta.row(y));
                }
            }
        }
        Rows::Bits(all) => {
            let row = all.row(x);
            for (at, mark) in &right.marks {
                let mut word = row[*at] & mark;
                while word != 0 {
                    or_into(to, new.delta.row(at * 64 + word.trailing_zeros() as usize));
                    word &= word - 1;
                }
            }
        }
    }
}
