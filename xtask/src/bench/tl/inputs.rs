//! The inputs of the benches: random relations that any machine makes byte for byte.
//!
//! Enter at [`write()`]. Numbers come from SplitMix64 (Steele, Lea, Flood 2014), rows are sorted and
//! distinct (`hub` and `chain2k` are in the order stated), a file is refused if its SHA-256 is not
//! the one in `inputs.sha256`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The hashes of all files.
const HASHES: &str = include_str!("inputs.sha256");

/// The cases.
pub(super) const CASES: [&str; 11] =
    ["g1k", "g2k", "g5k", "w1k", "blocks", "chain2k", "hub", "cspa3k", "and4000", "onto30k", "big"];

/// SplitMix64: the state starts as the seed.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// In [-1, 1), exact in f32.
    pub(crate) fn signed(&mut self) -> f64 {
        (self.next() >> 40) as f64 / f64::from(1 << 23) - 1.0
    }

    /// In [0, 1), with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below n, without rejection.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
}

/// A relation: its name, and its rows.
type Relation = (&'static str, Vec<Vec<u32>>);

fn rows<const N: usize>(rows: impl IntoIterator<Item = [u32; N]>) -> Vec<Vec<u32>> {
    rows.into_iter().map(|row| row.to_vec()).collect()
}

fn pairs(random: &mut SplitMix64, n: u32, draws: usize) -> BTreeSet<[u32; 2]> {
    (0..draws).map(|_| [random.below(n), random.below(n)]).collect()
}

/// Pairs until m are distinct; loops stay.
fn graph(n: u32, m: usize, seed: u64) -> BTreeSet<[u32; 2]> {
    let mut random = SplitMix64(seed);
    let mut arcs = BTreeSet::new();
    while arcs.len() < m {
        arcs.insert([random.below(n), random.below(n)]);
    }
    arcs
}

/// 50,000 disjoint graphs without cycles, of 12 nodes each; their numbers are scattered.
fn blocks() -> BTreeSet<[u32; 2]> {
    let mut random = SplitMix64(3);
    let node = |i: u64| (i * 331_777 % 600_011) as u32;
    let mut arcs = BTreeSet::new();
    for block in 0..50_000_u64 {
        arcs.extend((0..11).map(|i| [node(12 * block + i), node(12 * block + i + 1)]));
        for _ in 0..4 {
            let i = random.below(11);
            let j = i + 1 + random.below(11 - i);
            arcs.insert([node(12 * block + u64::from(i)), node(12 * block + u64::from(j))]);
        }
    }
    arcs
}

fn cspa() -> Vec<Relation> {
    let mut random = SplitMix64(7);
    let (mut assign, mut dereference) = (BTreeSet::new(), BTreeSet::new());
    while assign.len() < 1900 {
        let u = random.below(3000);
        let v = u + random.below(16) + 1;
        if v < 3000 {
            assign.insert([u, v]);
        }
    }
    while dereference.len() < 600 {
        dereference.insert([random.below(3000), random.below(3000)]);
    }
    vec![("assign", rows(assign)), ("dereference", rows(dereference))]
}

fn andersen() -> Vec<Relation> {
    let mut random = SplitMix64(11);
    let relations = [("addressOf", 2000), ("assign", 3200), ("load", 400), ("store", 400)];
    relations.into_iter().map(|(name, draws)| (name, rows(pairs(&mut random, 4000, draws)))).collect()
}

/// A random ontology in the normal form of the description logic EL.
fn onto() -> Vec<Relation> {
    let (mut random, n, roles) = (SplitMix64(13), 30_000_u32, 40_u32);
    let mut sub = BTreeSet::new();
    for i in 1..n {
        sub.insert([i, random.below(i)]);
        if random.below(4) == 0 {
            sub.insert([i, random.below(i)]);
        }
    }
    let mut draw = |draws: u32, a: u32, b: u32, c: u32| -> BTreeSet<[u32; 3]> {
        (0..draws).map(|_| [random.below(a), random.below(b), random.below(c)]).collect()
    };
    let conj = draw(n / 4, n, n, n);
    let exr = draw(n / 2, n, roles, n);
    let exl = draw(n / 80, roles, n, n);
    vec![
        ("class", rows((0..n).map(|i| [i]))),
        ("sub", rows(sub)),
        ("conj", rows(conj)),
        ("exr", rows(exr)),
        ("exl", rows(exl)),
        ("role", rows((1..roles).map(|r| [r, r / 2]))),
    ]
}

/// The relations of a case.
fn relations(case: &str) -> Result<Vec<Relation>> {
    let arc = |arcs: Vec<Vec<u32>>| vec![("arc", arcs)];
    Ok(match case {
        "g1k" => arc(rows(graph(1000, 5000, 42))),
        "g2k" => arc(rows(graph(2000, 10_000, 42))),
        "g5k" => arc(rows(graph(5000, 25_000, 42))),
        "w1k" => {
            let mut weights = SplitMix64(43);
            arc(rows(graph(1000, 5000, 42).into_iter().map(|[u, v]| [u, v, 1 + weights.below(100)])))
        }
        "blocks" => arc(rows(blocks())),
        "chain2k" => arc(rows((0..2000).map(|i| [i, i + 1]))),
        "hub" => {
            let all = || 1..=200_000_u32;
            arc(rows(all().map(|x| [0, x]).chain(all().map(|x| [x, 0])).chain(all().map(|x| [x, x + 1]))))
        }
        "cspa3k" => cspa(),
        "and4000" => andersen(),
        "onto30k" => onto(),
        "big" => {
            let arcs = pairs(&mut SplitMix64(9), 1_000_000, 4_000_000);
            vec![("arc", rows(arcs)), ("source", vec![vec![0]])]
        }
        other => bail!("unknown input {other}; known: {}", CASES.join(" ")),
    })
}

fn text(rows: &[Vec<u32>]) -> String {
    let mut text = String::new();
    for row in rows {
        for (at, value) in row.iter().enumerate() {
            let tab = if at == 0 { "" } else { "\t" };
            let _ = write!(text, "{tab}{value}");
        }
        text.push('\n');
    }
    text
}

/// The hash that a file should have.
fn expected(file: &str) -> Option<&'static str> {
    HASHES
        .lines()
        .filter_map(|line| line.split_once("  "))
        .find(|(_, name)| *name == file)
        .map(|(hash, _)| hash)
}

fn hash(text: &[u8]) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The files of a case that are missing in `folder/CASE`; those that are there are checked.
pub(super) fn write(folder: &Path, case: &str) -> Result<()> {
    let names: Vec<&str> = HASHES
        .lines()
        .filter_map(|line| line.split_once("  ")?.1.strip_prefix(case)?.strip_prefix('/'))
        .collect();
    let path = folder.join(case);
    if !names.is_empty() && names.iter().all(|name| path.join(name).exists()) {
        for name in names {
            check(&format!("{case}/{name}"), &std::fs::read(path.join(name))?)?;
        }
        return Ok(());
    }
    std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    for (name, rows) in relations(case)? {
        let text = text(&rows);
        check(&format!("{case}/{name}.facts"), text.as_bytes())?;
        let mut file = tempfile::NamedTempFile::new_in(&path)?;
        file.write_all(text.as_bytes())?;
        file.persist(path.join(format!("{name}.facts")))?;
    }
    Ok(())
}

fn check(file: &str, text: &[u8]) -> Result<()> {
    let found = hash(text);
    ensure!(
        expected(file) == Some(found.as_str()),
        "{file} has the hash {found}, which is not that of the case"
    );
    Ok(())
}

/// The rows of a file, one behind the other, and how many constants a row has.
pub(super) fn read(path: &Path) -> Result<(Vec<u32>, usize)> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    let (mut rows, mut width, mut value, mut digits) = (Vec::new(), 0, 0_u32, false);
    for byte in &text {
        match byte {
            b'0'..=b'9' => {
                (value, digits) = (value.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')), true)
            }
            _ if digits => {
                rows.push(value);
                (value, digits) = (0, false);
                if *byte == b'\n' && width == 0 {
                    width = rows.len();
                }
            }
            _ => {}
        }
    }
    ensure!(width > 0 && rows.len() % width == 0, "{} is no table", path.display());
    Ok((rows, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_definition() {
        let mut random = SplitMix64(42);
        let first = [0; 3].map(|_| random.next());
        assert_eq!(first, [0xbdd7_3226_2feb_6e95, 0x28ef_e333_b266_f103, 0x4752_6757_130f_9f52]);
        let mut random = SplitMix64(42);
        assert_eq!([0; 4].map(|_| random.below(1000)), [741, 159, 278, 344]);
    }

    #[test]
    fn every_input_has_its_hash() {
        let slow = std::env::var_os("CALCULEMUS_SLOW").is_some();
        for case in CASES.into_iter().filter(|case| slow || !["blocks", "hub", "big"].contains(case)) {
            for (name, rows) in relations(case).unwrap() {
                check(&format!("{case}/{name}.facts"), text(&rows).as_bytes()).unwrap();
            }
        }
    }

    #[test]
    fn a_file_with_another_hash_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "chain2k").unwrap();
        write(folder.path(), "chain2k").unwrap();
        let path = folder.path().join("chain2k/arc.facts");
        assert_eq!(read(&path).unwrap().0[..6], [0, 1, 1, 2, 2, 3]);
        std::fs::write(&path, "0\t1\n").unwrap();
        assert!(write(folder.path(), "chain2k").unwrap_err().to_string().contains("hash"));
    }
}
