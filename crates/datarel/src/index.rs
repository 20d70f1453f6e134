//! The rows of a table by what stands in some of its columns: grouped, and found by the columns of another table.

use super::sorted::{Sorted, counted, sorting};

/// No group, and no row.
pub const NONE: u32 = u32::MAX;

/// Groups of rows whose columns agree, in ascending order of these.
#[derive(Debug, Clone)]
pub struct Index {
    /// A row for each group.
    keys: Sorted,
    /// The group of each row.
    of: Vec<u32>,
    /// Where the rows of each group begin, and the rows, in their order within each group.
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Index {
    /// The index of a table of so many rows by these columns.
    pub fn new(columns: &[&[u32]], len: usize) -> Index {
        let rows = sorting(columns, len).unwrap_or_else(|| (0..len as u32).collect());
        let (mut starts, mut of) = (Vec::new(), vec![0; len]);
        for (at, row) in rows.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| rows[at] as usize);
            let same = |before| columns.iter().all(|column| column[before] == column[*row as usize]);
            if !before.is_some_and(same) {
                starts.push(at as u32);
            }
            of[*row as usize] = starts.len() as u32 - 1;
        }
        let key = |column: &&[u32]| starts.iter().map(|at| column[rows[*at as usize] as usize]).collect();
        let keys = Sorted::distinct(columns.iter().map(key).collect(), starts.len());
        starts.push(len as u32);
        Index { keys, of, starts, rows }
    }

    /// The number of groups.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The group of each row.
    pub fn into_groups(self) -> Vec<u32> {
        self.of
    }

    /// The first row of each group.
    pub fn firsts(&self) -> Vec<u32> {
        self.starts[..self.count()].iter().map(|at| self.rows[*at as usize]).collect()
    }

    /// The rows of a group; none for [`NONE`].
    #[inline]
    pub fn rows(&self, group: u32) -> &[u32] {
        match self.starts.get(group as usize..) {
            Some([from, to, ..]) => &self.rows[*from as usize..*to as usize],
            _ => &[],
        }
    }

    /// For each row of another table the group that agrees with it in these columns, or [`NONE`].
    pub fn find(&self, columns: &[&[u32]], len: usize) -> Vec<u32> {
        let group = |row: usize| {
            let key = columns.iter().map(|column| column[row]);
            self.keys.range(key).next().map_or(NONE, |group| group as u32)
        };
        (0..len).map(group).collect()
    }
}

/// Rows by groups that are numbered already, so many: where those of each begin, and the rows, in their order.
pub fn by_group(groups: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let starts = counted(groups.iter().copied(), count);
    let (mut next, mut rows) = (starts.clone(), vec![0; groups.len()]);
    for (row, group) in (0..).zip(groups) {
        let slot = &mut next[*group as usize];
        rows[*slot as usize] = row;
        *slot += 1;
    }
    (starts, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every index of small random tables, beside nested loops.
    #[test]
    fn groups_are_the_rows_that_agree() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            ((state >> 33) % bound) as u32
        };
        for round in 0..400_u32 {
            let (arity, spread) =
                (round as usize % 4, [2, 5, 1 << 20, u64::from(u32::MAX)][round as usize / 4 % 4]);
            let mut table = |len: usize| -> Vec<Vec<u32>> {
                (0..arity)
                    .map(|_| (0..len).map(|_| below(spread.min(8)) * (spread / 8).max(1) as u32).collect())
                    .collect()
            };
            let len = [0, 1, 7, 40, 600][round as usize % 5];
            let (one, other) = (table(len), table(30));
            let one: Vec<&[u32]> = one.iter().map(Vec::as_slice).collect();
            let other: Vec<&[u32]> = other.iter().map(Vec::as_slice).collect();
            let key =
                |table: &[&[u32]], row: usize| table.iter().map(|column| column[row]).collect::<Vec<u32>>();
            let index = Index::new(&one, len);
            let mut keys: Vec<Vec<u32>> = (0..len).map(|row| key(&one, row)).collect();
            keys.sort();
            keys.dedup();
            assert_eq!(index.firsts().iter().map(|row| key(&one, *row as usize)).collect::<Vec<_>>(), keys);
            for (row, group) in index.find(&other, 30).into_iter().enumerate() {
                let agree = |with: &usize| key(&one, *with) == key(&other, row);
                let wanted: Vec<u32> = (0..len).filter(agree).map(|with| with as u32).collect();
                assert_eq!(index.rows(group), wanted);
            }
            let count = index.count();
            let (starts, rows) = (index.starts.clone(), index.rows.clone());
            assert_eq!(by_group(&index.into_groups(), count), (starts, rows));
        }
    }
}
