//! The rules and the recursions over relations, by loops.

use super::{Oracle, Want, named, number};

pub(crate) const ORACLES: &[Oracle] = &[
    ("vector-as-facts", vector),
    ("text-as-relation", text),
    ("aunt", aunt),
    ("ancestor", ancestor),
    ("roads", roads),
    ("pagerank", pagerank),
];

fn truth(value: bool) -> Want {
    number(f64::from(u8::from(value)))
}

fn vector() -> Vec<Want> {
    let x = [0.0, 1.0, 1.0, 0.0];
    vec![Want::Numbers(x.to_vec()), named("i", &["1", "2"]), number(x.iter().sum()), truth(x[3] > 0.0)]
}

fn text() -> Vec<Want> {
    let said = include_str!("../../../programs/alice.txt").split_whitespace().enumerate();
    let spelled = |word: &str| {
        if word.starts_with(char::is_uppercase) { word.to_owned() } else { format!("{word:?}") }
    };
    let words = said.map(|(p, word)| format!("p = {p}, w = {}", spelled(word))).collect();
    vec![Want::Bindings(words), truth(true)]
}

fn aunt() -> Vec<Want> {
    let sisters = [("Ann", "Bob"), ("Ann", "Bea")];
    let parents = [("Bob", "Cal"), ("Bea", "Cal")];
    let mut ways = Vec::new();
    for (x, y) in sisters {
        for (parent, z) in parents {
            if y == parent {
                ways.push(format!("x = {x}, z = {z}"));
            }
        }
    }
    let count = ways.len() as f64;
    ways.dedup();
    vec![Want::Bindings(ways), number(count)]
}

fn ancestor() -> Vec<Want> {
    let names = ["Alice", "Bob", "Charlie", "Cora"];
    let mut above = [[false; 4]; 4];
    for (parent, child) in [(0, 1), (1, 2), (1, 3)] {
        above[parent][child] = true;
    }
    // Warshall's algorithm.
    for middle in 0..4 {
        for x in 0..4 {
            for z in 0..4 {
                above[x][z] |= above[x][middle] && above[middle][z];
            }
        }
    }
    let below_alice: Vec<&str> = (0..4).filter(|x| above[0][*x]).map(|x| names[x]).collect();
    let above_charlie: Vec<&str> = (0..4).filter(|x| above[*x][2]).map(|x| names[x]).collect();
    vec![named("x", &below_alice), named("x", &above_charlie), truth(above[2][0])]
}

fn roads() -> Vec<Want> {
    let mut least = [[f64::INFINITY; 4]; 4];
    for (from, to, length) in [(0, 1, 4.0), (0, 2, 1.0), (2, 1, 2.0), (1, 3, 5.0), (3, 0, 1.0)] {
        least[from][to] = length;
    }
    // Floyd's algorithm. The way from a place to itself is a circle.
    for middle in 0..4 {
        for x in 0..4 {
            for z in 0..4 {
                least[x][z] = least[x][z].min(least[x][middle] + least[middle][z]);
            }
        }
    }
    let from = |x: usize, stay: bool| {
        let length = |z: usize| if stay && z == x { 0.0 } else { least[x][z] };
        Want::Valued((0..4).map(|z| (format!("x = {}", ["A", "B", "C", "D"][z]), length(z))).collect())
    };
    vec![from(0, true), from(2, false)]
}

fn pagerank() -> Vec<Want> {
    let links = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2)];
    let out = |page: usize| links.iter().filter(|link| link.0 == page).count() as f64;
    let mut rank = [0.0; 4];
    for _ in 0..500 {
        let mut next = [0.15 / 4.0; 4];
        for (from, to) in links {
            next[to] += 0.85 * rank[from] / out(from);
        }
        rank = next;
    }
    vec![Want::Numbers(rank.to_vec())]
}
