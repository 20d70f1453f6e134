//! The product of tables over many variables, folded to tables over some of them, without ever being stored.
//!
//! Enter at [`folds`]. The variables are a nest of loops around a block of the innermost ones. What a table contributes is
//! multiplied in as soon as its variables are bound, so that a product of 0 ends the loops below, and a sum goes to the
//! table that it belongs to as soon as none of that one's variables is bound any more deeply.

use std::f64::consts::LN_2;

/// Numbers for the states of some variables; the last of them moves fastest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) scope: Vec<usize>,
    pub(crate) values: Vec<f64>,
    /// Whether the values are natural logarithms, because the numbers are further apart than [`FAR`].
    pub(crate) logs: bool,
}

/// Numbers so many powers of two from each other, or from 1, are multiplied as they are: what is larger, logarithms hold.
pub(crate) const FAR: f64 = 950.0;

impl Table {
    pub(crate) fn new(scope: Vec<usize>, values: Vec<f64>) -> Table {
        Table { scope, values, logs: false }
    }

    /// A number, as its logarithm.
    pub(crate) fn log(&self, at: usize) -> f64 {
        if self.logs { self.values[at] } else { self.values[at].ln() }
    }

    /// Divides by the largest number; the logarithm of that, which is that of 0 where all are. Logarithms become numbers
    /// where these are near enough.
    pub(crate) fn normalise(&mut self) -> f64 {
        if !self.logs {
            let most = self.values.iter().fold(0.0, |most: f64, value| most.max(*value));
            if most > 0.0 {
                self.values.iter_mut().for_each(|value| *value /= most);
            }
            return most.ln();
        }
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return most;
        }
        self.values.iter_mut().for_each(|value| *value -= most);
        let finite = self.values.iter().filter(|value| value.is_finite());
        if finite.fold(0.0, |least: f64, value| least.min(*value)) > -FAR * LN_2 {
            self.be_numbers();
        }
        most
    }

    /// Numbers in the place of logarithms, 0 where one is too small.
    pub(crate) fn be_numbers(&mut self) {
        if std::mem::take(&mut self.logs) {
            self.values.iter_mut().for_each(|value| *value = value.exp());
        }
    }

    /// The smallest and the largest logarithm, to the base of two, of what is not 0.
    fn ends(&self) -> (f64, f64) {
        let ends = (f64::INFINITY, 0.0_f64);
        let (least, most) = self.values.iter().fold(ends, |(least, most), value| {
            (if *value > 0.0 { least.min(*value) } else { least }, most.max(*value))
        });
        if most > 0.0 { (least.log2(), most.log2()) } else { (0.0, 0.0) }
    }
}

/// Whether no product of numbers of these tables, one of each or fewer, leaves what doubles hold, nor do two such products lie
/// further apart than that.
pub(crate) fn are_near(tables: &[&Table]) -> bool {
    let (mut apart, mut away) = (0.0, 0.0);
    for table in tables {
        if table.logs {
            return false;
        }
        let (least, most) = table.ends();
        apart += most - least;
        away += most.abs().max(least.abs());
    }
    apart <= FAR && away <= FAR
}

/// What products and sums are made of.
trait Number: Copy {
    const ZERO: Self;
    const ONE: Self;
    const LOGS: bool;
    /// A number of a table.
    fn of(table: &Table, at: usize) -> Self;
    /// As a table has it.
    fn value(self) -> f64;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn is_zero(self) -> bool;
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const LOGS: bool = false;
    #[inline(always)]
    fn of(table: &Table, at: usize) -> f64 {
        table.values[at]
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn larger(self, other: f64) -> f64 {
        self.max(other)
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self == 0.0
    }
}

/// A number by its natural logarithm.
#[derive(Debug, Clone, Copy)]
struct Log(f64);

impl Number for Log {
    const ZERO: Log = Log(f64::NEG_INFINITY);
    const ONE: Log = Log(0.0);
    const LOGS: bool = true;
    fn of(table: &Table, at: usize) -> Log {
        Log(table.log(at))
    }
    fn value(self) -> f64 {
        self.0
    }
    fn times(self, other: Log) -> Log {
        Log(self.0 + other.0)
    }
    fn plus(self, other: Log) -> Log {
        let (most, least) = if self.0 > other.0 { (self.0, other.0) } else { (other.0, self.0) };
        if least == f64::NEG_INFINITY { Log(most) } else { Log(most + (least - most).exp().ln_1p()) }
    }
    fn larger(self, other: Log) -> Log {
        Log(self.0.max(other.0))
    }
    fn is_zero(self) -> bool {
        self.0 == f64::NEG_INFINITY
    }
}

/// A block has about so many numbers.
pub(crate) const BLOCK: usize = 256;

/// A table that is multiplied in.
struct Input<N> {
    /// How many loops must be entered before it can be.
    depth: usize,
    /// By how much a state of each loop's variable moves in it.
    steps: Vec<usize>,
    /// Whether it has a block, or one number.
    wide: bool,
    values: Vec<N>,
}

/// A table that sums go to.
struct Output<N> {
    depth: usize,
    steps: Vec<usize>,
    wide: bool,
    values: Vec<N>,
}

/// The loops, and what is at hand in each.
struct Nest<N> {
    loops: Vec<usize>,
    block: usize,
    inputs: Vec<Input<N>>,
    /// The inputs and outputs of each depth.
    ready: Vec<Vec<usize>>,
    outputs: Vec<Output<N>>,
    done: Vec<Vec<usize>>,
    /// Where each input and output stands, by depth.
    places: Vec<Vec<usize>>,
    targets: Vec<Vec<usize>>,
    /// The product of what has a block, and the sums, by depth.
    products: Vec<Vec<N>>,
    totals: Vec<Vec<N>>,
    /// Whether a table above some depth takes sums.
    above: Vec<bool>,
}

/// How the numbers of a product are joined; none is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Folding {
    Sum,
    Max,
}

/// The product of tables over these variables, folded to each of some scopes: in doubles where no product can leave them, and
/// in logarithms elsewhere.
pub(crate) fn folds(
    folding: Folding,
    sizes: &[usize],
    variables: &[usize],
    tables: &[&Table],
    scopes: &[Vec<usize>],
) -> Vec<Table> {
    match are_near(tables) {
        true => folds_of::<f64>(folding, sizes, variables, tables, scopes),
        false => folds_of::<Log>(folding, sizes, variables, tables, scopes),
    }
}

fn folds_of<N: Number>(
    folding: Folding,
    sizes: &[usize],
    variables: &[usize],
    tables: &[&Table],
    scopes: &[Vec<usize>],
) -> Vec<Table> {
    let (outer, inner) = layout(sizes, variables, tables);
    let block: usize = inner.iter().map(|variable| sizes[*variable]).product();
    let inputs: Vec<Input<N>> = tables.iter().map(|table| expanded(sizes, &outer, &inner, table)).collect();
    let outputs: Vec<Output<N>> = scopes
        .iter()
        .map(|scope| {
            let wide = scope.iter().any(|variable| inner.contains(variable));
            let (steps, cells) = steps(sizes, &outer, scope, if wide { block } else { 1 });
            let depth = outer.iter().rposition(|variable| scope.contains(variable)).map_or(0, |at| at + 1);
            Output { depth, steps, wide, values: vec![N::ZERO; cells] }
        })
        .collect();
    let depths = outer.len() + 1;
    let by_depth = |all: Vec<usize>| -> Vec<Vec<usize>> {
        (0..depths).map(|depth| (0..all.len()).filter(|at| all[*at] == depth).collect()).collect()
    };
    let ready = by_depth(inputs.iter().map(|input| input.depth).collect());
    let done = by_depth(outputs.iter().map(|output| output.depth).collect());
    let above = (0..depths).map(|depth| done[..depth].iter().any(|done| !done.is_empty())).collect();
    let mut nest = Nest {
        loops: outer.iter().map(|variable| sizes[*variable]).collect(),
        block,
        places: vec![vec![0; inputs.len()]; depths],
        targets: vec![vec![0; outputs.len()]; depths],
        inputs,
        ready,
        outputs,
        done,
        products: vec![vec![N::ONE; block]; depths],
        totals: vec![vec![N::ZERO; block]; depths],
        above,
    };
    match folding {
        Folding::Sum => nest.enter::<false>(0, N::ONE, None),
        Folding::Max => nest.enter::<true>(0, N::ONE, None),
    }
    let outputs = nest.outputs.into_iter().zip(scopes);
    outputs.map(|(output, scope)| folded(folding, sizes, &outer, &inner, output, scope)).collect()
}

/// The numbers that [`folds`] holds beside its tables: each laid out anew by the loops, results before and after that.
pub(crate) fn held(sizes: &[usize], variables: &[usize], tables: &[&Table], scopes: &[Vec<usize>]) -> f64 {
    let (outer, inner) = layout(sizes, variables, tables);
    let states = |variable: &usize| sizes[*variable] as f64;
    let block: f64 = inner.iter().map(states).product();
    let laid = |scope: &[usize]| -> f64 {
        let outside: f64 = scope.iter().filter(|variable| outer.contains(variable)).map(states).product();
        // Beside each block its place.
        outside * if scope.iter().any(|variable| inner.contains(variable)) { block + 1.0 } else { 2.0 }
    };
    let results = |scope: &Vec<usize>| laid(scope) + scope.iter().map(states).product::<f64>();
    tables.iter().map(|table| laid(&table.scope)).sum::<f64>() + scopes.iter().map(results).sum::<f64>()
}

/// The variables of the loops, from the outermost, and those of a block.
fn layout(sizes: &[usize], variables: &[usize], tables: &[&Table]) -> (Vec<usize>, Vec<usize>) {
    let mut by_use: Vec<(usize, usize)> = variables
        .iter()
        .map(|variable| (tables.iter().filter(|table| table.scope.contains(variable)).count(), *variable))
        .collect();
    // What few tables hold is innermost: the others are multiplied in further out.
    by_use.sort_unstable();
    let (mut block, mut inner) = (1, Vec::new());
    for (_, variable) in &by_use {
        if block * sizes[*variable] <= BLOCK || (inner.is_empty() && sizes[*variable] <= 4 * BLOCK) {
            block *= sizes[*variable];
            inner.push(*variable);
        }
    }
    inner.reverse();
    let mut outer: Vec<usize> = Vec::new();
    let mut open: Vec<&Table> = tables.to_vec();
    loop {
        // Of thousands of tables over the same variables only the first binds any.
        open.retain(|table| table.scope.iter().any(|own| !inner.contains(own) && !outer.contains(own)));
        if open.is_empty() {
            break;
        }
        let more = |table: &&Table| -> usize {
            let new =
                table.scope.iter().filter(|variable| !inner.contains(variable) && !outer.contains(variable));
            new.map(|variable| sizes[*variable]).product()
        };
        let least = (0..open.len()).min_by_key(|at| more(&open[*at])).unwrap_or(0);
        let table = open.swap_remove(least);
        let new: Vec<usize> = table
            .scope
            .iter()
            .copied()
            .filter(|variable| !inner.contains(variable) && !outer.contains(variable))
            .collect();
        outer.extend(new);
    }
    let rest = variables.iter().copied().filter(|variable| !inner.contains(variable));
    let rest: Vec<usize> = rest.filter(|variable| !outer.contains(variable)).collect();
    outer.extend(rest);
    (outer, inner)
}

/// By how much a state of each loop moves in a table of blocks of this size, and its cells.
fn steps(sizes: &[usize], outer: &[usize], scope: &[usize], block: usize) -> (Vec<usize>, usize) {
    let mut cells = block;
    let mut steps = vec![0; outer.len()];
    for (step, variable) in steps.iter_mut().zip(outer).rev() {
        if scope.contains(variable) {
            *step = cells;
            cells *= sizes[*variable];
        }
    }
    (steps, cells)
}

/// For each cell of some variables its place in a table of this scope, where other variables stand still.
fn places(sizes: &[usize], along: &[usize], scope: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; along.len()];
    let mut stride = 1;
    for variable in scope.iter().rev() {
        if let Some(at) = along.iter().position(|other| other == variable) {
            strides[at] = stride;
        }
        stride *= sizes[*variable];
    }
    let mut places = vec![0];
    for (variable, stride) in along.iter().zip(strides) {
        places = places
            .iter()
            .flat_map(|place| (0..sizes[*variable]).map(move |state| place + state * stride))
            .collect();
    }
    places
}

fn expanded<N: Number>(sizes: &[usize], outer: &[usize], inner: &[usize], table: &Table) -> Input<N> {
    let own: Vec<usize> = outer.iter().copied().filter(|variable| table.scope.contains(variable)).collect();
    let wide = table.scope.iter().any(|variable| inner.contains(variable));
    let blocks = places(sizes, &own, &table.scope);
    let within = if wide { places(sizes, inner, &table.scope) } else { vec![0] };
    let (steps, cells) = steps(sizes, outer, &table.scope, within.len());
    let mut values = Vec::with_capacity(cells);
    for block in blocks {
        values.extend(within.iter().map(|at| N::of(table, block + at)));
    }
    let depth = outer.iter().rposition(|variable| table.scope.contains(variable)).map_or(0, |at| at + 1);
    Input { depth, steps, wide, values }
}

/// An output without the variables of the block that are not its own, in the order of its scope.
fn folded<N: Number>(
    folding: Folding,
    sizes: &[usize],
    outer: &[usize],
    inner: &[usize],
    output: Output<N>,
    scope: &[usize],
) -> Table {
    let own: Vec<usize> = outer.iter().copied().filter(|variable| scope.contains(variable)).collect();
    let blocks = places(sizes, &own, scope);
    let within = if output.wide { places(sizes, inner, scope) } else { vec![0] };
    let cells: usize = scope.iter().map(|variable| sizes[*variable]).product();
    let mut values = vec![N::ZERO; cells];
    for (block, sums) in blocks.into_iter().zip(output.values.chunks(within.len())) {
        for (at, sum) in within.iter().zip(sums) {
            let slot = &mut values[block + at];
            *slot = match folding {
                Folding::Sum => slot.plus(*sum),
                Folding::Max => slot.larger(*sum),
            };
        }
    }
    Table { scope: scope.to_vec(), values: values.into_iter().map(N::value).collect(), logs: N::LOGS }
}

impl<N: Number> Nest<N> {
    /// So many loops are entered; `scale` is the product of what has one number, `product` the depth at which that of the
    /// blocks stands, if there is one. Adds to the sums of this depth.
    fn enter<const MAX: bool>(&mut self, depth: usize, mut scale: N, mut product: Option<usize>) {
        for at in 0..self.ready[depth].len() {
            let input = &self.inputs[self.ready[depth][at]];
            let place = self.places[depth][self.ready[depth][at]];
            if !input.wide {
                scale = scale.times(input.values[place]);
                if scale.is_zero() {
                    return;
                }
                continue;
            }
            let values = &input.values[place..place + self.block];
            let mut most = N::ZERO;
            match product {
                None => {
                    for (slot, value) in self.products[depth].iter_mut().zip(values) {
                        *slot = *value;
                        most = most.larger(*value);
                    }
                }
                Some(known) if known == depth => {
                    for (slot, value) in self.products[depth].iter_mut().zip(values) {
                        *slot = slot.times(*value);
                        most = most.larger(*slot);
                    }
                }
                Some(known) => {
                    let (left, right) = self.products.split_at_mut(depth);
                    for ((slot, value), before) in right[0].iter_mut().zip(values).zip(&left[known]) {
                        *slot = before.times(*value);
                        most = most.larger(*slot);
                    }
                }
            }
            if most.is_zero() {
                return;
            }
            product = Some(depth);
        }
        let is_leaf = depth == self.loops.len();
        if is_leaf {
            let total = &mut self.totals[depth];
            match product {
                Some(known) => {
                    for (slot, value) in total.iter_mut().zip(&self.products[known]) {
                        *slot = scale.times(*value);
                    }
                }
                None => total.fill(scale),
            }
        } else {
            self.totals[depth].fill(N::ZERO);
            self.places.copy_within_down(depth);
            self.targets.copy_within_down(depth);
            for state in 0..self.loops[depth] {
                if state > 0 {
                    for (place, input) in self.places[depth + 1].iter_mut().zip(&self.inputs) {
                        *place += input.steps[depth];
                    }
                    for (target, output) in self.targets[depth + 1].iter_mut().zip(&self.outputs) {
                        *target += output.steps[depth];
                    }
                }
                self.enter::<MAX>(depth + 1, scale, product);
            }
        }
        for at in 0..self.done[depth].len() {
            let at = self.done[depth][at];
            let (output, target) = (&mut self.outputs[at], self.targets[depth][at]);
            if output.wide {
                let slots = &mut output.values[target..target + self.block];
                slots
                    .iter_mut()
                    .zip(&self.totals[depth])
                    .for_each(|(slot, value)| join::<MAX, N>(slot, *value));
            } else {
                let mut all = N::ZERO;
                self.totals[depth].iter().for_each(|value| join::<MAX, N>(&mut all, *value));
                join::<MAX, N>(&mut output.values[target], all);
            }
        }
        if depth > 0 && self.above[depth] {
            let (above, own) = self.totals.split_at_mut(depth);
            above[depth - 1].iter_mut().zip(&own[0]).for_each(|(slot, value)| join::<MAX, N>(slot, *value));
        }
    }
}

/// Adds a number, or takes the larger one.
fn join<const MAX: bool, N: Number>(slot: &mut N, value: N) {
    *slot = if MAX { slot.larger(value) } else { slot.plus(value) };
}

/// Copies a row over the next one.
trait CopyDown {
    fn copy_within_down(&mut self, row: usize);
}

impl CopyDown for Vec<Vec<usize>> {
    fn copy_within_down(&mut self, row: usize) {
        let (left, right) = self.split_at_mut(row + 1);
        right[0].copy_from_slice(&left[row]);
    }
}
