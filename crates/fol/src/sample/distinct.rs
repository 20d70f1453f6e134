//! Distinct names: the j-th that is not used yet.

/// Takes the j-th smallest number that is not among the sorted `used`.
pub(crate) fn take_unused(j: u64, used: &mut Vec<u64>) -> u64 {
    let number = used.iter().fold(j, |x, &u| if u <= x { x + 1 } else { x });
    insert_sorted(used, number);
    number
}

/// Puts a number into a sorted list.
pub(crate) fn insert_sorted(used: &mut Vec<u64>, n: u64) {
    let at = used.partition_point(|&u| u < n);
    used.insert(at, n);
}
