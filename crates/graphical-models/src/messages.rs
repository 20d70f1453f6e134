//! Messages of one tile: products at variables, sums of products at factors.
//!
//! Enter at [`products`] and [`Scratch::contracted`]. Mathematically no number of a message is 0, since states that nothing
//! admits have left before; so what is lost below the smallest numbers is kept at [`LEAST`], and a sum in which too much may
//! have been lost is made again in logarithms.

/// A number for each lane.
pub(crate) type Row<const L: usize> = [f64; L];

/// No number of a message is smaller.
pub(crate) const LEAST: f64 = 1e-300;

/// A sum that is smaller is made again in logarithms.
pub(crate) const SMALL: f64 = 1e-100;

/// The messages at these places, `L` numbers from one state to the next.
#[inline(always)]
pub(crate) fn gather<const L: usize>(
    given: &[f64],
    sources: &[[u32; L]],
    shape: &[usize],
    inbox: &mut Vec<Row<L>>,
) {
    inbox.resize(shape.iter().sum(), [0.0; L]);
    let mut rest = inbox.as_mut_slice();
    for (source, size) in sources.iter().zip(shape) {
        let (own, behind) = rest.split_at_mut(*size);
        let furthest = source.iter().fold(0, |most, at| most.max(*at)) as usize + (size - 1) * L;
        assert!(furthest < given.len(), "a message of the other side");
        for (state, row) in own.iter_mut().enumerate() {
            for (slot, at) in row.iter_mut().zip(source) {
                // SAFETY: `at` is no larger than the largest, and `state` than `size - 1`: the sum was compared above. With a
                // comparison for each number a round took a third longer.
                #[expect(unsafe_code, reason = "one comparison for many places")]
                unsafe {
                    *slot = *given.get_unchecked(*at as usize + state * L);
                }
            }
        }
        rest = behind;
    }
}

/// For each factor of a variable the product of its prior and of what all others said.
#[inline(always)]
pub(crate) fn products<const L: usize>(
    prior: &[Row<L>],
    inbox: &[Row<L>],
    shape: &[usize],
    sent: &mut [Row<L>],
) {
    let size = prior.len();
    for (state, prior) in prior.iter().enumerate() {
        let mut product = *prior;
        for at in (state..inbox.len()).step_by(size) {
            sent[at] = product;
            times(&mut product, &inbox[at]);
        }
        let mut product = [1.0; L];
        for at in (state..inbox.len()).step_by(size).rev() {
            times(&mut sent[at], &product);
            times(&mut product, &inbox[at]);
        }
    }
    if !normalised(shape, sent) {
        products_of_logs(prior, inbox, shape, sent);
    }
}

#[inline(always)]
fn times<const L: usize>(row: &mut Row<L>, by: &Row<L>) {
    row.iter_mut().zip(by).for_each(|(slot, value)| *slot *= value);
}

/// Messages whose numbers sum to one; not so where a sum is small, or no number.
#[inline(always)]
fn normalised<const L: usize>(shape: &[usize], mut rows: &mut [Row<L>]) -> bool {
    let mut fine = true;
    for size in shape {
        let (own, rest) = rows.split_at_mut(*size);
        let mut sum = [0.0; L];
        for row in &*own {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        fine &= sum.iter().fold(true, |fine, sum| fine & (*sum >= SMALL));
        sum.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
        for row in own {
            row.iter_mut().zip(&sum).for_each(|(slot, by)| *slot = larger(*slot * by, LEAST));
        }
        rows = rest;
    }
    fine
}

/// The larger number, as one instruction: `f64::max` asks for what is no number too.
#[inline(always)]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The logarithm of the sum of what these are logarithms of.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY { most } else { most + logs.map(|log| (log - most).exp()).sum::<f64>().ln() }
}

/// Numbers that sum to one, of their logarithms but for a common one.
fn write<const L: usize>(logs: &[f64], lane: usize, rows: &mut [Row<L>]) {
    let sum = log_sum(logs.iter().copied());
    rows.iter_mut().zip(logs).for_each(|(row, log)| row[lane] = (log - sum).exp().max(LEAST));
}

/// As [`products`], lane by lane in logarithms.
fn products_of_logs<const L: usize>(
    prior: &[Row<L>],
    inbox: &[Row<L>],
    shape: &[usize],
    sent: &mut [Row<L>],
) {
    let size = prior.len();
    for lane in 0..L {
        let logs: Vec<f64> = inbox.iter().map(|row| row[lane].ln()).collect();
        let mut sums: Vec<f64> = prior.iter().map(|row| row[lane].ln()).collect();
        for own in logs.chunks(size) {
            sums.iter_mut().zip(own).for_each(|(sum, log)| *sum += log);
        }
        for at in 0..shape.len() {
            let own = at * size..(at + 1) * size;
            let others: Vec<f64> = sums.iter().zip(&logs[own.clone()]).map(|(sum, log)| sum - log).collect();
            write(&others, lane, &mut sent[own]);
        }
    }
}

/// Tables that are summed place by place.
#[derive(Default)]
pub(crate) struct Scratch<const L: usize> {
    /// The table without the places before the one at hand, and the next such.
    front: Vec<Row<L>>,
    next: Vec<Row<L>>,
    /// The same without those behind it.
    back: Vec<Row<L>>,
    fresh: Vec<Row<L>>,
}

impl<const L: usize> Scratch<L> {
    /// For each variable of a factor the sum of its table times what all others said.
    #[inline(always)]
    pub(crate) fn contracted(&mut self, table: &[Row<L>], inbox: &[Row<L>], shape: &[usize]) -> &[Row<L>] {
        for buffer in [&mut self.front, &mut self.next, &mut self.back] {
            buffer.resize(table.len().max(buffer.len()), [0.0; L]);
        }
        self.fresh.resize(inbox.len(), [0.0; L]);
        let (mut begin, mut cells) = (0, table.len());
        for (slot, size) in shape.iter().enumerate() {
            let own = if slot == 0 { table } else { &self.front[..cells] };
            let mine = &mut self.fresh[begin..begin + size];
            if slot + 1 == shape.len() {
                mine.copy_from_slice(own);
                break;
            }
            // Places behind this one, the last first; what is left after all of them is the message.
            let mut end = inbox.len();
            let mut left = cells;
            for (turn, behind) in shape.iter().enumerate().skip(slot + 1).rev() {
                let message = &inbox[end - behind..end];
                let from = if turn + 1 == shape.len() { own } else { &self.back[..left] };
                (end, left) = (end - behind, left / behind);
                if turn == slot + 1 {
                    without_last(from, message, mine);
                } else {
                    without_last(from, message, &mut self.next[..left]);
                    std::mem::swap(&mut self.back, &mut self.next);
                }
            }
            let rest = cells / size;
            without_first(own, &inbox[begin..begin + size], &mut self.next[..rest]);
            std::mem::swap(&mut self.front, &mut self.next);
            (begin, cells) = (begin + size, rest);
        }
        if !normalised(shape, &mut self.fresh) {
            contracted_in_logs(table, inbox, shape, &mut self.fresh);
        }
        &self.fresh
    }
}

/// Sums over the last place of a table.
#[inline(always)]
fn without_last<const L: usize>(table: &[Row<L>], message: &[Row<L>], sums: &mut [Row<L>]) {
    for (rows, sum) in table.chunks_exact(message.len()).zip(sums) {
        let mut all = [0.0; L];
        for (row, by) in rows.iter().zip(message) {
            add(&mut all, row, by);
        }
        *sum = all;
    }
}

/// Sums over the first place of a table.
#[inline(always)]
fn without_first<const L: usize>(table: &[Row<L>], message: &[Row<L>], sums: &mut [Row<L>]) {
    for (at, sum) in sums.iter_mut().enumerate() {
        let mut all = [0.0; L];
        for (row, by) in table.iter().skip(at).step_by(table.len() / message.len()).zip(message) {
            add(&mut all, row, by);
        }
        *sum = all;
    }
}

#[inline(always)]
fn add<const L: usize>(sum: &mut Row<L>, row: &Row<L>, by: &Row<L>) {
    sum.iter_mut().zip(row).zip(by).for_each(|((sum, value), by)| *sum += value * by);
}

/// As [`Scratch::contracted`], lane by lane in logarithms.
fn contracted_in_logs<const L: usize>(
    table: &[Row<L>],
    inbox: &[Row<L>],
    shape: &[usize],
    fresh: &mut [Row<L>],
) {
    for lane in 0..L {
        let logs: Vec<f64> = inbox.iter().map(|row| row[lane].ln()).collect();
        let mut begin = 0;
        let begins: Vec<usize> = shape
            .iter()
            .map(|size| {
                begin += size;
                begin - size
            })
            .collect();
        for (own, size) in shape.iter().enumerate() {
            // The logarithms of what is summed for each state.
            let mut terms: Vec<Vec<f64>> = vec![Vec::new(); *size];
            for (cell, row) in table.iter().enumerate() {
                let (mut rest, mut log, mut state) = (cell, row[lane].ln(), 0);
                for (slot, size) in shape.iter().enumerate().rev() {
                    let at = rest % size;
                    rest /= size;
                    if slot == own { state = at } else { log += logs[begins[slot] + at] }
                }
                terms[state].push(log);
            }
            let sums: Vec<f64> = terms.iter().map(|terms| log_sum(terms.iter().copied())).collect();
            write(&sums, lane, &mut fresh[begins[own]..begins[own] + size]);
        }
    }
}
