//! Tiles beside one chain of fused multiply-adds for each entry, to the last bit.

use training::kernels::{VECTORS, instruction_set, instruction_sets};

use super::super::tiles::{Right, Stands, Strip, TALL, are_panels, pack, packed_len};
use super::*;

/// One product of a strip; in slices that end with the last entry that is asked for.
fn one<T: Number>(stream: &mut Stream, (m, k, n): (usize, usize, usize)) {
    let numbers = |stream: &mut Stream, len: usize| -> Vec<T> {
        // Of numbers that are rounded at every step.
        (0..len).map(|_| T::of(stream.below(2001) as f64 / 7.0 - 143.0)).collect()
    };
    let slack = stream.below(3) as usize;
    let (stands, row, column) = match stream.below(2) {
        0 => (Stands::ByRows(k + slack), k + slack, 1),
        _ => (Stands::ByColumns(m + slack), 1, m + slack),
    };
    let a = numbers(stream, (m - 1) * row + (k - 1) * column + 1);
    let (below, beside) = if stream.below(2) == 0 { (n + slack, 1) } else { (1, k + slack) };
    let b = numbers(stream, (k - 1) * below + (n - 1) * beside + 1);
    let mut packed = vec![T::of(f64::NAN); packed_len::<T>(k, n)];
    pack(&b, (below, beside), (k, n), &mut packed);
    let right = match beside == 1 && are_panels::<T>(n) && stream.below(2) == 0 {
        true => Right::ByRows(&b, below),
        false => Right::Packed(&packed),
    };
    let scale = T::of([1.0, -1.5, 0.3][stream.below(3) as usize]);
    let adds = stream.below(3) == 0;
    let before = if adds { numbers(stream, m * n) } else { vec![T::of(f64::NAN); m * n] };
    // What stands behind the product is not its own.
    let behind = [T::of(7.0); 20];
    let mut out = [&before[..], &behind].concat();
    Strip { a: &a, stands, b: right, sizes: (m, k, n), scale, adds, out: &mut out }.multiply();
    assert_eq!(out[m * n..], behind, "{m} x {k} x {n} writes behind its end");
    for (at, (found, before)) in out.iter().zip(&before).enumerate() {
        let (i, j) = (at / n, at % n);
        let term = |sum: T, l: usize| a[i * row + l * column].times_plus(b[l * below + j * beside], sum);
        let product = scale * (0..k).fold(T::ZERO, term) + T::ZERO;
        let wanted = if adds { *before + product } else { product };
        assert_eq!(
            found.double().to_bits(),
            wanted.double().to_bits(),
            "{m} x {k} x {n}, {stands:?}, {right:?}, adds: {adds}, with {}: entry ({i}, {j})",
            instruction_set()
        );
    }
}

/// Heights that are whole tiles of either kind, and others, and widths around whole registers of all sizes.
#[test]
fn a_tile_is_a_chain_of_fused_multiply_adds() {
    let mut stream = stream("tiles");
    for n in 1..=70 {
        for _ in 0..6 {
            let m = TALL + stream.below(30) as usize;

            let k = 1 + stream.below(40) as usize;
            one::<f32>(&mut stream, (m, k, n));
            one::<f64>(&mut stream, (m, k, n));
        }
    }
}

/// What is made of registers of this or that size, once more with each narrower set of instructions, in processes of their own.
#[test]
fn the_narrower_instruction_sets_pass_the_same_tests() {
    if std::env::var_os(VECTORS).is_some() {
        return;
    }
    let sets: Vec<&str> = instruction_sets().collect();
    assert_eq!(sets.last(), Some(&instruction_set()), "without a word the widest");
    for set in &sets[..sets.len() - 1] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command
            .args(["tests::tiles", "tests::products", "tests::strips"])
            .env(VECTORS, set)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{set}:\n{said}");
        let passed = said.rsplit_once(" passed").and_then(|(head, _)| head.rsplit(' ').next()?.parse().ok());
        assert!(passed.is_some_and(|n: usize| n >= 4), "{set} ran too few tests:\n{said}");
    }
}
