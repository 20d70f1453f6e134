//! The cases: programs, data, and answers by plain loops.

use std::collections::{BTreeMap, BTreeSet};

use tensor_logic::analyse::analyse;
use tensor_logic::error::Code;
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::Facts;
use tensor_logic::start::all_start_values;
use tensor_logic::value::Const;

use super::super::tl::SplitMix64;
use super::Input;

/// What a query answers.
pub(super) enum Expected {
    /// So many elements or tuples, and the sum of their values.
    Sum(usize, f64),
    /// A refusal.
    Refused(Code),
}

/// A case.
pub(super) struct Case {
    /// Its name.
    pub(super) id: &'static str,
    /// The two sizes that are measured.
    pub(super) sizes: [u32; 2],
    /// A size for the reference interpreter.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test's"))]
    pub(super) tiny: u32,
    /// What it may take at the larger size.
    pub(super) seconds: f64,
    /// What it may take beyond what is given.
    pub(super) bytes: Option<u64>,
    /// The program of a size.
    pub(super) input: fn(u32) -> Input,
}

const MB: u64 = 1_000_000;

/// All cases.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case { id: "closure-count", sizes: [2000, 5000], tiny: 8, seconds: 0.1, bytes: None, input: closure_count },
    Case { id: "closure-degrees", sizes: [2000, 5000], tiny: 8, seconds: 0.1, bytes: None, input: closure_degrees },
    Case { id: "product-count", sizes: [10_000, 20_000], tiny: 12, seconds: 0.015, bytes: None, input: product_count },
    Case { id: "path-of-four", sizes: [300, 600], tiny: 6, seconds: 0.3, bytes: Some(100 * MB), input: path_of_four },
    Case { id: "triangle-nodes", sizes: [30_000, 60_000], tiny: 12, seconds: 0.3, bytes: None, input: triangle_nodes },
    Case { id: "triangle-counts", sizes: [30_000, 60_000], tiny: 12, seconds: 0.3, bytes: None, input: triangle_counts },
    Case { id: "triangle-square", sizes: [30_000, 60_000], tiny: 12, seconds: 0.3, bytes: None, input: triangle_square },
    Case { id: "queries-bound", sizes: [500, 1000], tiny: 8, seconds: 0.05, bytes: None, input: queries_bound },
    Case { id: "queries-whole", sizes: [500, 1000], tiny: 8, seconds: 0.05, bytes: None, input: queries_whole },
    Case { id: "queries-mixed", sizes: [500, 1000], tiny: 8, seconds: 0.05, bytes: None, input: queries_mixed },
    Case { id: "queries-squaring", sizes: [500, 1000], tiny: 8, seconds: 0.05, bytes: None, input: queries_squaring },
    Case { id: "least-square", sizes: [80, 160], tiny: 6, seconds: 0.05, bytes: None, input: least_square },
    Case { id: "least-complete", sizes: [80, 160], tiny: 6, seconds: 0.05, bytes: None, input: least_complete },
    Case { id: "least-doubling", sizes: [80, 160], tiny: 6, seconds: 0.05, bytes: None, input: least_doubling },
    Case { id: "least-guarded", sizes: [400, 800], tiny: 8, seconds: 0.05, bytes: None, input: least_guarded },
    Case { id: "least-guarded-pairs", sizes: [400, 800], tiny: 8, seconds: 0.05, bytes: None, input: least_guarded_pairs },
    Case { id: "reach-guarded", sizes: [400, 800], tiny: 8, seconds: 0.05, bytes: None, input: reach_guarded },
    Case { id: "count-chain", sizes: [200, 400], tiny: 7, seconds: 0.05, bytes: None, input: count_chain },
    Case { id: "closure-of-values", sizes: [400, 800], tiny: 8, seconds: 0.5, bytes: None, input: closure_of_values },
    Case { id: "negative-cycle", sizes: [75, 150], tiny: 6, seconds: 0.05, bytes: None, input: negative_cycle },
    Case { id: "negative-cycle-square", sizes: [75, 150], tiny: 6, seconds: 0.05, bytes: None, input: negative_square },
    Case { id: "scalar-steps", sizes: [250_000, 1_000_000], tiny: 9, seconds: 0.2, bytes: None, input: scalar_steps },
    Case { id: "array-steps", sizes: [20_000, 80_000], tiny: 9, seconds: 6.0, bytes: Some(40 * MB), input: array_steps },
    Case { id: "slow-rounds", sizes: [20_000, 80_000], tiny: 9, seconds: 2.0, bytes: Some(200 * MB), input: slow_rounds },
    Case { id: "window-gradient", sizes: [16_000, 64_000], tiny: 12, seconds: 1.5, bytes: Some(200 * MB), input: window_gradient },
    Case { id: "graph-attention", sizes: [5000, 20_000], tiny: 6, seconds: 2.0, bytes: Some(300 * MB), input: graph_attention },
    Case { id: "graph-layer", sizes: [25_000, 100_000], tiny: 5, seconds: 4.0, bytes: Some(400 * MB), input: graph_layer },
    Case { id: "graph-layer-split", sizes: [25_000, 100_000], tiny: 5, seconds: 4.0, bytes: None, input: graph_layer_split },
    Case { id: "graph-layer-round", sizes: [25_000, 100_000], tiny: 5, seconds: 4.0, bytes: Some(400 * MB), input: graph_layer_round },
    Case { id: "triangle-guard", sizes: [20_000, 40_000], tiny: 12, seconds: 0.2, bytes: Some(60 * MB), input: triangle_guard },
    Case { id: "hops-through-a-hub", sizes: [5000, 20_000], tiny: 6, seconds: 0.1, bytes: Some(60 * MB), input: hops },
    Case { id: "hops-guard", sizes: [1500, 3000], tiny: 6, seconds: 0.3, bytes: Some(100 * MB), input: hops_guard },
    Case { id: "equation-rule", sizes: [20_000, 40_000], tiny: 8, seconds: 0.1, bytes: None, input: equation_rule },
    Case { id: "equation-square", sizes: [20_000, 40_000], tiny: 8, seconds: 0.1, bytes: Some(60 * MB), input: equation_square },
    Case { id: "closure-beside", sizes: [1000, 2000], tiny: 6, seconds: 0.5, bytes: Some(200 * MB), input: closure_beside },
    Case { id: "ranks", sizes: [5000, 20_000], tiny: 7, seconds: 1.0, bytes: Some(40 * MB), input: ranks },
    Case { id: "by-key", sizes: [50_000, 200_000], tiny: 7, seconds: 0.3, bytes: Some(100 * MB), input: by_key },
    Case { id: "adam-rows", sizes: [50_000, 200_000], tiny: 9, seconds: 0.1, bytes: None, input: adam_rows },
];

type Arcs = BTreeMap<(u32, u32), f64>;

/// `graph(n, m, seed)`: distinct pairs (of the half of all at most), each with a value from 1 to 100.
fn graph(n: u32, m: u32) -> Arcs {
    let (mut source, mut weights) = (SplitMix64::new(42), SplitMix64::new(43));
    let mut arcs = Arcs::new();
    while (arcs.len() as u32) < m.min(n * n / 2) {
        arcs.insert((source.below(n), source.below(n)), 0.0);
    }
    arcs.values_mut().for_each(|value| *value = f64::from(1 + weights.below(100)));
    arcs
}

/// All pairs of different nodes, each as far as the square of its distance: the least paths take all steps between.
fn complete(n: u32) -> Arcs {
    let pairs = (0..n).flat_map(|x| (0..n).map(move |y| (x, y))).filter(|(x, y)| x != y);
    pairs.map(|(x, y)| ((x, y), f64::from(x.abs_diff(y)).powi(2))).collect()
}

/// A chain of cheap arcs among dear ones.
fn guarded(n: u32) -> Arcs {
    let mut arcs = graph(n, 10 * n);
    arcs.values_mut().for_each(|value| *value += 50.0);
    arcs.extend((0..n - 1).map(|x| ((x, x + 1), 1.0)));
    arcs
}

/// A hub with spokes both ways, and a rim of ten arcs: thirty triangles, each once for each of its nodes.
fn star(arcs: u32) -> Arcs {
    let spokes = arcs / 2;
    let both = (1..=spokes).flat_map(|x| [(0, x), (x, 0)]);
    both.chain((1..=10.min(spokes - 1)).map(|x| (x, x + 1))).map(|pair| (pair, 1.0)).collect()
}

fn facts(arcs: &Arcs, valued: bool) -> Facts {
    let mut facts = Facts { arity: 2, count: arcs.len(), ..Facts::default() };
    let int = |node: u32| Const::Int(i64::from(node));
    facts.constants = arcs.keys().flat_map(|(x, y)| [int(*x), int(*y)]).collect();
    if valued {
        facts.values = arcs.values().copied().collect();
    }
    facts
}

/// A program over one relation `E`.
fn over(arcs: &Arcs, valued: bool, text: &str, expected: Vec<Expected>) -> Input {
    let values = if valued { " as values" } else { "" };
    let text = format!("E = \"arcs.csv\"{values}\n{text}");
    Input { text, files: vec![("arcs.csv", facts(arcs, valued))], expected }
}

fn successors(arcs: &Arcs) -> BTreeMap<u32, Vec<u32>> {
    let mut of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    arcs.keys().for_each(|(x, y)| of.entry(*x).or_default().push(*y));
    of
}

/// What each node reaches.
fn closure(arcs: &Arcs) -> BTreeMap<u32, BTreeSet<u32>> {
    let of = successors(arcs);
    let size = arcs.keys().map(|(x, y)| 1 + *x.max(y) as usize).max().unwrap_or(0);
    let search = |from: &u32| {
        let (mut seen, mut open, mut reached) = (vec![false; size], vec![*from], BTreeSet::new());
        while let Some(at) = open.pop() {
            for next in of.get(&at).into_iter().flatten() {
                if !std::mem::replace(&mut seen[*next as usize], true) {
                    reached.insert(*next);
                    open.push(*next);
                }
            }
        }
        reached
    };
    of.keys().map(|from| (*from, search(from))).collect()
}

fn count(closure: &BTreeMap<u32, BTreeSet<u32>>) -> usize {
    closure.values().map(BTreeSet::len).sum()
}

const CLOSURE: &str = "Tc(x, y) <- E(x, y)\nTc(x, z) <- Tc(x, y), E(y, z)\n";

fn closure_count(n: u32) -> Input {
    let arcs = graph(n, 5 * n);
    let pairs = count(&closure(&arcs)) as f64;
    over(&arcs, false, &format!("{CLOSURE}N = Tc(x, y)\nN?\n"), vec![Expected::Sum(1, pairs)])
}

fn closure_degrees(n: u32) -> Input {
    let arcs = graph(n, 5 * n);
    let all = closure(&arcs);
    let pairs = count(&all) as f64;
    let met: BTreeSet<u32> = all.values().flatten().copied().collect();
    let text = format!("{CLOSURE}Out(x) += Tc(x, y)\nIn(y) += Tc(x, y)\nOut(x)?\nIn(x)?\n");
    over(&arcs, false, &text, vec![Expected::Sum(all.len(), pairs), Expected::Sum(met.len(), pairs)])
}

fn product_count(n: u32) -> Input {
    let mut source = SplitMix64::new(131);
    let arcs: Arcs = (0..10 * n).map(|_| ((source.below(n), source.below(n)), 1.0)).collect();
    let of = successors(&arcs);
    let two = |middle: &Vec<u32>| middle.iter().filter_map(|y| of.get(y)).flatten().copied().collect();
    let pairs: usize = of.values().map(|middle| -> BTreeSet<u32> { two(middle) }).map(|set| set.len()).sum();
    over(&arcs, false, "T(x, z) <- E(x, y), E(y, z)\nN = T(x, z)\nN?\n", vec![Expected::Sum(1, pairs as f64)])
}

fn path_of_four(n: u32) -> Input {
    let arcs = graph(n, if n < 20 { 2 * n } else { 25 * n });
    let of = successors(&arcs);
    let mut pairs = 0;
    for from in of.keys() {
        let mut at = BTreeSet::from([*from]);
        for _ in 0..4 {
            at = at.iter().filter_map(|node| of.get(node)).flatten().copied().collect();
        }
        pairs += at.len();
    }
    let text = "P(a, e) <- E(a, b), E(b, c), E(c, d), E(d, e)\nP(a, e)?\n";
    over(&arcs, false, text, vec![Expected::Sum(pairs, pairs as f64)])
}

/// How many triangles begin at each node of a star.
fn triangles(arcs: &Arcs) -> BTreeMap<u32, f64> {
    let mut of = BTreeMap::new();
    for (x, y) in arcs.keys() {
        for z in [0].into_iter().chain((*x == 0 || *y == 0).then_some(1..=12).into_iter().flatten()) {
            if arcs.contains_key(&(*y, z)) && arcs.contains_key(&(z, *x)) {
                *of.entry(*x).or_default() += 1.0;
            }
        }
    }
    of
}

fn triangle_nodes(arcs: u32) -> Input {
    let arcs = star(arcs);
    let nodes = triangles(&arcs).len();
    let text = "T(x) <- E(x, y), E(y, z), E(z, x)\nT(x)?\n";
    over(&arcs, false, text, vec![Expected::Sum(nodes, nodes as f64)])
}

fn triangle_counts(arcs: u32) -> Input {
    let arcs = star(arcs);
    let of = triangles(&arcs);
    let text = "T(x) += E(x, y) E(y, z) E(z, x)\nT(x)?\n";
    over(&arcs, false, text, vec![Expected::Sum(of.len(), of.values().sum())])
}

fn triangle_square(arcs: u32) -> Input {
    let arcs = star(arcs);
    let nodes: BTreeSet<u32> = arcs.keys().map(|(x, _)| *x).collect();
    let text = "T[x] = E(x, y) E(y, z) E(z, x)\nT?\n";
    over(&arcs, false, text, vec![Expected::Sum(nodes.len(), triangles(&arcs).values().sum())])
}

/// The same where the relation is a guard of an equation.
fn triangle_guard(arcs: u32) -> Input {
    let arcs = star(arcs);
    let nodes = arcs.keys().map(|(x, _)| x + 1).max().unwrap_or(0);
    let text =
        format!("x : {nodes}\nW[x] = x - x + 0.5\nT[x] = W[x] W[y] W[z] | E(x, y), E(y, z), E(z, x)\nT?\n");
    let sum = triangles(&arcs).values().sum::<f64>() / 8.0;
    over(&arcs, false, &text, vec![Expected::Sum(nodes as usize, sum)])
}

/// Two steps through a hub, summed with 32 numbers of each node: the paths are the square of the arcs.
fn hops(arcs: u32) -> Input {
    let arcs = star(arcs);
    let nodes = arcs.keys().map(|(x, _)| x + 1).max().unwrap_or(0);
    let text =
        format!("z : {nodes}\nd : 32\nF[z, d] = d\nH[x, d] = E(x, y) E(y, z) F[z, d]\nN = H[x, d]\nN?\n");
    let of = successors(&arcs);
    let paths: usize = arcs.keys().map(|(_, y)| of.get(y).map_or(0, Vec::len)).sum();
    over(&arcs, false, &text, vec![Expected::Sum(1, paths as f64 * 496.0)])
}

/// softmax over what two steps reach.
fn hops_guard(n: u32) -> Input {
    let arcs = graph(n, 7 * n);
    let text = format!(
        "x, y : {n}\nQ[x] = x\nP[x, y.] = softmax(0 Q[x] Q[y] | E(x, z), E(z, y))\nN = P[x, y]\nN?\n"
    );
    let of = successors(&arcs);
    let goes_on = |to: &Vec<u32>| to.iter().any(|z| of.contains_key(z));
    let sources = of.values().filter(|to| goes_on(to)).count();
    over(&arcs, false, &text, vec![Expected::Sum(1, sources as f64)])
}

/// An equation between indices of two relations, in a rule.
fn equation_rule(arcs: u32) -> Input {
    let arcs = star(arcs);
    let spokes = arcs.keys().filter(|(x, _)| *x == 0).count();
    let text = "T(x) <- E(0, x), E(y, 0), x == y + 1\nT(x)?\n";
    over(&arcs, false, text, vec![Expected::Sum(spokes - 1, (spokes - 1) as f64)])
}

/// The same in a sum with numbers.
fn equation_square(arcs: u32) -> Input {
    let arcs = star(arcs);
    let spokes = arcs.keys().filter(|(x, _)| *x == 0).count();
    let text = format!(
        "x : {}\nV[x] = x - x + 0.5\nS = E(0, x) E(y, 0) V[x] V[y] | x == y + 1\nS?\n",
        arcs.keys().map(|(x, _)| x + 1).max().unwrap_or(0)
    );
    over(&arcs, false, &text, vec![Expected::Sum(1, (spokes - 1) as f64 / 4.0)])
}

/// How many numbers are smaller, for each of n: all pairs are compared.
fn ranks(n: u32) -> Input {
    let arcs: Arcs = [((0, 0), 1.0)].into();
    let text = format!(
        "t, u : {n}\nA[t] = m + 0 E[0, 0] | m = (7919 * t) % {n}\nR[t] = count[u](1 | A[u] < A[t])\nN = R[t]\nN?\n"
    );
    // 7919 has no factor in common with the sizes: all numbers are different.
    let sum = f64::from(n) * f64::from(n - 1) / 2.0;
    over(&arcs, false, &text, vec![Expected::Sum(1, sum)])
}

/// Sums by a key that is computed.
fn by_key(n: u32) -> Input {
    let arcs: Arcs = [((0, 0), 1.0)].into();
    let text = format!(
        "i, k : {n}\nK[i] = m + 0 E[0, 0] | m = (7919 * i) % {n}\nS[k] = K[i] | K[i] == k\nN = S[k]\nN?\n"
    );
    let sum = f64::from(n) * f64::from(n - 1) / 2.0;
    over(&arcs, false, &text, vec![Expected::Sum(1, sum)])
}

/// The closure of a chain beside an equation with numbers.
fn closure_beside(n: u32) -> Input {
    let arcs: Arcs = (0..n).map(|x| ((x, x + 1), 1.0)).collect();
    let text = format!(
        "R(x, y) <- E(x, y)\nR(x, z) <- R(x, y), E(y, z)\ny : {}\nF[y] = y - y + 0.5\nN = R(x, y) F[y]\nN?\n",
        n + 1
    );
    let pairs = f64::from(n) * f64::from(n + 1) / 2.0;
    over(&arcs, false, &text, vec![Expected::Sum(1, pairs / 2.0)])
}

/// Queries by `text` of one number, for the nodes 0 to 19.
fn queries(
    n: u32,
    rules: &str,
    text: impl Fn(u32) -> String,
    answer: impl Fn(&BTreeMap<u32, BTreeSet<u32>>, u32) -> usize,
) -> Input {
    let arcs = graph(n, 5 * n);
    let all = closure(&arcs);
    let nodes = || (0..20).map(|k| k % n);
    let expected = nodes().map(|k| answer(&all, k)).map(|count| Expected::Sum(count, count as f64)).collect();
    over(&arcs, false, &(rules.to_owned() + &nodes().map(text).collect::<String>()), expected)
}

fn from(all: &BTreeMap<u32, BTreeSet<u32>>, node: u32) -> usize {
    all.get(&node).map_or(0, BTreeSet::len)
}

/// How many reach themselves, and are not the node.
fn round(all: &BTreeMap<u32, BTreeSet<u32>>, node: u32) -> usize {
    all.iter().filter(|(x, reached)| **x != node && reached.contains(x)).count()
}

fn queries_bound(n: u32) -> Input {
    queries(n, CLOSURE, |k| format!("Tc({k}, x)?\n"), from)
}

fn queries_whole(n: u32) -> Input {
    queries(n, CLOSURE, |k| format!("Tc(x, x), x != {k}?\n"), round)
}

fn queries_mixed(n: u32) -> Input {
    let text = |k: u32| {
        if k.is_multiple_of(2) { format!("Tc({k}, x)?\n") } else { format!("Tc(x, x), x != {k}?\n") }
    };
    queries(n, CLOSURE, text, |all, k| if k.is_multiple_of(2) { from(all, k) } else { round(all, k) })
}

fn queries_squaring(n: u32) -> Input {
    let rules = "Tc(x, y) <- E(x, y)\nTc(x, z) <- Tc(x, y), Tc(y, z)\n";
    queries(n, rules, |k| format!("Tc({k}, x)?\n"), from)
}

/// The least sums along paths of at least one arc.
fn least(arcs: &Arcs) -> Arcs {
    let nodes: BTreeSet<u32> = arcs.keys().flat_map(|(x, y)| [*x, *y]).collect();
    let size = nodes.last().map_or(0, |last| *last as usize + 1);
    let mut best = vec![vec![f64::INFINITY; size]; size];
    for ((x, y), value) in arcs {
        best[*x as usize][*y as usize] = *value;
    }
    for via in 0..size {
        for x in 0..size {
            for y in 0..size {
                let through = best[x][via] + best[via][y];
                if through < best[x][y] {
                    best[x][y] = through;
                }
            }
        }
    }
    let pairs = (0..size).flat_map(|x| (0..size).map(move |y| (x, y)));
    let found = pairs.filter(|(x, y)| best[*x][*y].is_finite());
    found.map(|(x, y)| ((x as u32, y as u32), best[x][y])).collect()
}

fn sum(values: &Arcs) -> Expected {
    Expected::Sum(values.len(), values.values().sum())
}

fn least_square(n: u32) -> Input {
    let arcs = complete(n);
    let text = "W[x, y] min= E(x, y)\nD[x, y] min= W[x, y]\nD[x, z] min= D[x, y] + W[y, z]\nD?\n";
    over(&arcs, true, text, vec![sum(&least(&arcs))])
}

fn least_complete(n: u32) -> Input {
    let arcs = complete(n);
    let text = "D(x, y) min= E(x, y)\nD(x, z) min= D(x, y) + E(y, z)\nD(x, y)?\n";
    over(&arcs, true, text, vec![sum(&least(&arcs))])
}

fn least_doubling(n: u32) -> Input {
    let arcs = complete(n);
    let text = "D(x, y) min= E(x, y)\nD(x, z) min= D(x, y) + D(y, z)\nD(x, y)?\n";
    over(&arcs, true, text, vec![sum(&least(&arcs))])
}

fn cheap(arcs: &Arcs) -> Arcs {
    arcs.iter().filter(|(_, value)| **value < 50.0).map(|(pair, value)| (*pair, *value)).collect()
}

fn least_guarded(n: u32) -> Input {
    let arcs = guarded(n);
    let mut found = least(&cheap(&arcs));
    found.retain(|(x, _), _| *x == 0);
    // The start is 0 at the beginning, and no cycle is below that.
    found.insert((0, 0), 0.0);
    let text = "P(0) min= 0\nP(y) min= P(x) + E(x, y) | E(x, y) < 50\nP(x)?\n";
    over(&arcs, true, text, vec![sum(&found)])
}

fn least_guarded_pairs(n: u32) -> Input {
    let arcs = guarded(n);
    let sum = least(&cheap(&arcs)).values().sum();
    let text = "P(x, z) min= E(x, z) | E(x, z) < 50\nP(x, z) min= P(x, y) + E(y, z) | E(y, z) < 50\nN = P(x, y)\nN?\n";
    over(&arcs, true, text, vec![Expected::Sum(1, sum)])
}

fn reach_guarded(n: u32) -> Input {
    let arcs = guarded(n);
    let pairs = count(&closure(&cheap(&arcs)));
    let text = "R(x, y) <- E(x, y), E(x, y) < 50\nR(x, z) <- R(x, y), E(y, z), E(y, z) < 50\nR(0, y)?\nN = R(x, y)\nN?\n";
    let first = closure(&cheap(&arcs)).get(&0).map_or(0, BTreeSet::len);
    over(&arcs, true, text, vec![Expected::Sum(first, first as f64), Expected::Sum(1, pairs as f64)])
}

/// A closure over a relation that dense values decide.
fn closure_of_values(n: u32) -> Input {
    let arcs = guarded(n);
    let pairs = count(&closure(&cheap(&arcs))) as f64;
    let text = "W[x, y] min= E(x, y)\nA(x, y) <- W[x, y] < 50\nR(x, y) <- A(x, y)\nR(x, z) <- R(x, y), A(y, z)\nN = R(x, y)\nN?\n";
    over(&arcs, true, text, vec![Expected::Sum(1, pairs)])
}

fn count_chain(n: u32) -> Input {
    let arcs: Arcs = (0..n).map(|x| ((x, x + 1), 1.0)).collect();
    let pairs = (n * (n + 1) / 2) as usize;
    let text = "N(x, z) : count\nN(x, z) += E(x, z)\nN(x, z) += E(x, y) N(y, z)\nN(x, z)?\n";
    over(&arcs, false, text, vec![Expected::Sum(pairs, pairs as f64)])
}

/// A graph whose arcs weigh 1 to 100, and one cycle of −1 through the first three nodes.
fn negative(n: u32) -> Arcs {
    let mut arcs = graph(n, 3 * n);
    arcs.extend([((0, 1), 1.0), ((1, 2), 1.0), ((2, 0), -3.0)]);
    arcs
}

fn negative_cycle(n: u32) -> Input {
    let text = "D(x, y) min= E(x, y)\nD(x, z) min= D(x, y) + E(y, z)\nD(x, y)?\n";
    over(&negative(n), true, text, vec![Expected::Refused(Code::Divergence)])
}

fn negative_square(n: u32) -> Input {
    let text = "W[x, y] min= E(x, y)\nD[x, y] min= W[x, y]\nD[x, z] min= D[x, y] + W[y, z]\nD?\n";
    over(&negative(n), true, text, vec![Expected::Refused(Code::Divergence)])
}

fn scalar_steps(n: u32) -> Input {
    let text = format!("X[0] = 1\nX[t+1] = 0.5 X[t] + 1\nX[{n}]?\n");
    let last = 2.0 - 0.5_f64.powi(n.min(1000) as i32);
    Input { text, files: Vec::new(), expected: vec![Expected::Sum(1, last)] }
}

/// A recursion of a thousand numbers a step, of which the last ones are asked for.
fn array_steps(n: u32) -> Input {
    let text = format!("i : 1000\nX[0, i] = 1\nX[t+1, i] = 0.5 X[t, i] + 0.01 i\nX[{n}, i]?\n");
    let last = |i: u32| (0..n.min(2000)).fold(1.0, |x, _| 0.5 * x + 0.01 * f64::from(i));
    Input { text, files: Vec::new(), expected: vec![Expected::Sum(1000, (0..1000).map(last).sum())] }
}

/// What states are worth from which two ways lead on, where a step keeps 0.9999: rounds would take a quarter of a million.
/// As many ways lead to each state, so that the sum is known.
fn slow_rounds(n: u32) -> Input {
    let keeps = if n < 100 { 0.9 } else { 0.9999 };
    let mut arcs = Arcs::new();
    for x in 0..n {
        *arcs.entry((x, (x + 1) % n)).or_default() += 0.5;
        *arcs.entry((x, (7 * x + 3) % n)).or_default() += 0.5;
    }
    let sum = (f64::from(n) + f64::from(n - 1) / 2.0) / (1.0 - keeps);
    let text = format!("x, y : {n}\nV[x] = 1 + x / {n} + {keeps} E(x, y) V[y]\nV?\n");
    over(&arcs, true, &text, vec![Expected::Sum(n as usize, sum)])
}

/// Attention over a window of nine places, and its gradient as `tl grad --emit` prints it.
fn window_gradient(n: u32) -> Input {
    let window = "0 <= i - j, i - j <= 8";
    let text = format!(
        "i, j, j1 : {n}\nd : 16\nGrad_Axis(a0, a1) : real\nGrad_Part(a0, a1) : real\n\
         Q[i, d] = sin(i + 3 * d)\nK[j, d] = cos(2 * j + d)\nV[j, d] = sin(3 * j + 5 * d)\n\
         P[i, j] = softmax[j](Q[i, d] K[j, d] / 4 | {window})\nO[i, d] = P[i, j] V[j, d]\nLoss = O[i, d]^2\n\
         Grad_O[i, d] = 2 O[i, d]\nGrad_P[i, j] = sum[d](Grad_O[i, d] V[j, d])\n\
         Grad_Axis(i+0, j+0) += Grad_P[i, j] | {window}\n\
         Grad_Part(i+0, j+0) += (P[i, j] (leaky(Grad_Axis(i+0, j+0) + 0, 1) - sum[j1](P[i, j1] \
         leaky(Grad_Axis(i+0, j1+0) + 0, 1) | 0 <= i - j1, i - j1 <= 8)) | {window})\n\
         Grad_Q[i, d] = sum[j](Grad_Part(i+0, j+0) / 4 K[j, d])\n\
         Grad_K[j, d] = sum[i](Grad_Part(i+0, j+0) / 4 Q[i, d])\nGrad_V[j, d] = sum[i](Grad_O[i, d] P[i, j])\n\
         NQ = Grad_Q[i, d]^2\nNK = Grad_K[j, d]^2\nNV = Grad_V[j, d]^2\nLoss?\nNQ?\nNK?\nNV?\n"
    );
    let rows = |f: fn(f64, f64) -> f64| -> Vec<[f64; 16]> {
        (0..n).map(|at| std::array::from_fn(|d| f(f64::from(at), d as f64))).collect()
    };
    let (q, k) = (rows(|i, d| (i + 3.0 * d).sin()), rows(|j, d| (2.0 * j + d).cos()));
    let v = rows(|j, d| (3.0 * j + 5.0 * d).sin());
    let dot = |a: &[f64; 16], b: &[f64; 16]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mut loss, mut of_q) = (0.0, 0.0);
    let (mut of_k, mut of_v) = (vec![[0.0; 16]; q.len()], vec![[0.0; 16]; q.len()]);
    for (i, q) in q.iter().enumerate() {
        let places = i.saturating_sub(8)..i + 1;
        let powers: Vec<f64> = k[places.clone()].iter().map(|k| (dot(q, k) / 4.0).exp()).collect();
        let total: f64 = powers.iter().sum();
        let weights: Vec<f64> = powers.iter().map(|power| power / total).collect();
        let mut out = [0.0; 16];
        for (v, weight) in v[places.clone()].iter().zip(&weights) {
            (0..16).for_each(|d| out[d] += weight * v[d]);
        }
        loss += dot(&out, &out);
        let slope = out.map(|value| 2.0 * value);
        let of_weights: Vec<f64> = v[places.clone()].iter().map(|v| dot(&slope, v)).collect();
        let mean: f64 = weights.iter().zip(&of_weights).map(|(a, b)| a * b).sum();
        let mut own = [0.0; 16];
        for (at, j) in places.enumerate() {
            let part = weights[at] * (of_weights[at] - mean) / 4.0;
            for d in 0..16 {
                own[d] += part * k[j][d];
                of_k[j][d] += part * q[d];
                of_v[j][d] += slope[d] * weights[at];
            }
        }
        of_q += dot(&own, &own);
    }
    let squares = |rows: &[[f64; 16]]| rows.iter().map(|row| dot(row, row)).sum::<f64>();
    let expected = [loss, of_q, squares(&of_k), squares(&of_v)].map(|value| Expected::Sum(1, value));
    Input { text, files: Vec::new(), expected: expected.into() }
}

/// The start values of a parameter `~ normal(0, 1)` with so many rows and columns, as the language draws them; none where its
/// program is refused.
fn start(name: &str, rows: u32, columns: u32) -> Vec<f64> {
    let text = format!("r : {rows}\nc : {columns}\n{name}[r, c] ~ normal(0, 1)\n");
    let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
    let drawn = analysed.map(|analysed| all_start_values(&analysed.program)).unwrap_or_default();
    drawn.values().next().map(|values| values.to_vec()).unwrap_or_default()
}

fn row(values: &[f64], at: u32, width: usize) -> &[f64] {
    &values[at as usize * width..(at as usize + 1) * width]
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(into: &mut [f64], at: u32, factor: f64, other: &[f64]) {
    let width = other.len();
    let own = &mut into[at as usize * width..(at as usize + 1) * width];
    own.iter_mut().zip(other).for_each(|(own, other)| *own += factor * other);
}

fn relation(name: &'static str, arcs: &Arcs) -> (&'static str, Facts) {
    let mut facts = Facts { arity: 2, ..Facts::default() };
    for (a, b) in arcs.keys() {
        facts.push(&[Const::Int(i64::from(*a)), Const::Int(i64::from(*b))], 1.0, None);
    }
    (name, facts)
}

/// What a step of gradient descent with lr 0.01 leaves of parameters: sums of squares.
fn stepped(parameters: &[(&[f64], &[f64])]) -> Vec<Expected> {
    let left = |(values, slopes): &(&[f64], &[f64])| -> f64 {
        values.iter().zip(*slopes).map(|(value, slope)| (value - 0.01 * slope).powi(2)).sum()
    };
    parameters.iter().map(|each| Expected::Sum(1, left(each))).collect()
}

/// What is done with a node: its neighbours, their weights, its output.
type Attended<'a> = &'a mut dyn FnMut(u32, &[u32], &[f64], &[f64]);

/// What is done with a node: the sum over its neighbours, its output.
type Summed<'a> = &'a mut dyn FnMut(u32, &[f64], &[f64]);

/// Attention of every node to its neighbours in a graph of five arcs a node, and a step down its gradient.
fn graph_attention(n: u32) -> Input {
    const D: usize = 16;
    let arcs = graph(n, 5 * n);
    let text = format!(
        "i, j : {n}\nd : {D}\nEdge = \"edges\"\nQ[i, d] ~ normal(0, 1)\nK[j, d] ~ normal(0, 1)\nV[j, d] ~ normal(0, 1)\n\
         P[i, j.] = softmax(Q[i, d] K[j, d] / 4 | Edge(i, j))\nO[i, d] = P[i, j] V[j, d]\nLoss = sum[i, d](O[i, d]^2)\n\
         Loss? @minimize(opt=sgd, lr=0.01, steps=1)\nSQ = Q[i, d]^2\nSK = K[j, d]^2\nSV = V[j, d]^2\nSQ?\nSK?\nSV?\n"
    );
    let (q, k, v) = (start("Q", n, 16), start("K", n, 16), start("V", n, 16));
    let forward = |q: &[f64], k: &[f64], v: &[f64], back: Attended<'_>| -> f64 {
        let mut loss = 0.0;
        for i in 0..n {
            let near: Vec<u32> = arcs.range((i, 0)..(i + 1, 0)).map(|((_, j), _)| *j).collect();
            let powers: Vec<f64> =
                near.iter().map(|j| (dot(row(q, i, D), row(k, *j, D)) / 4.0).exp()).collect();
            let total: f64 = powers.iter().sum();
            let weights: Vec<f64> = powers.iter().map(|power| power / total).collect();
            let mut out = vec![0.0; D];
            near.iter().zip(&weights).for_each(|(j, weight)| add(&mut out, 0, *weight, row(v, *j, D)));
            loss += dot(&out, &out);
            back(i, &near, &weights, &out);
        }
        loss
    };
    let (mut of_q, mut of_k, mut of_v) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
    forward(&q, &k, &v, &mut |i, near, weights, out| {
        let slope: Vec<f64> = out.iter().map(|value| 2.0 * value).collect();
        let of_weights: Vec<f64> = near.iter().map(|j| dot(&slope, row(&v, *j, D))).collect();
        let mean = dot(weights, &of_weights);
        for ((j, weight), of_weight) in near.iter().zip(weights).zip(&of_weights) {
            let part = weight * (of_weight - mean) / 4.0;
            add(&mut of_q, i, part, row(&k, *j, D));
            add(&mut of_k, *j, part, row(&q, i, D));
            add(&mut of_v, *j, *weight, &slope);
        }
    });
    let moved = |values: &[f64], slopes: &[f64]| -> Vec<f64> {
        values.iter().zip(slopes).map(|(value, slope)| value - 0.01 * slope).collect()
    };
    let after = forward(&moved(&q, &of_q), &moved(&k, &of_k), &moved(&v, &of_v), &mut |_, _, _, _| {});
    let mut expected = vec![Expected::Sum(1, after)];
    expected.extend(stepped(&[(&q, &of_q), (&k, &of_k), (&v, &of_v)]));
    Input { text, files: vec![relation("edges", &arcs)], expected }
}

/// One layer over a graph of ten arcs a node, width 64, in one equation, and a step down its gradient.
fn graph_layer(n: u32) -> Input {
    layer(n, "H[x, e] = relu(S(x, y) X[y, d] W[d, e])", "H[x, e]")
}

/// The same with the messages first.
fn graph_layer_split(n: u32) -> Input {
    layer(n, "M[x, d] = S(x, y) X[y, d]\nH[x, e] = relu(M[x, d] W[d, e])", "H[x, e]")
}

/// The same as a relation: nodes without arcs have no tuple.
fn graph_layer_round(n: u32) -> Input {
    layer(n, "H(x, e) += relu(S(x, y) X[y, d] W[d, e])", "H(x, e)")
}

fn layer(n: u32, equations: &str, read: &str) -> Input {
    const D: usize = 64;
    let arcs = graph(n, 10 * n);
    let text = format!(
        "x, y : {n}\nd, e : {D}\nS = \"edges\"\nX[y, d] ~ normal(0, 1)\nW[d, e] ~ normal(0, 1)\n{equations}\n\
         Loss = sum[x, e]({read}^2) / {}\nLoss? @minimize(opt=sgd, lr=0.01, steps=1)\nSX = X[y, d]^2\nSW = W[d, e]^2\nSX?\nSW?\n",
        100 * n
    );
    let scale = f64::from(100 * n);
    let (x, w) = (start("X", n, 64), start("W", 64, 64));
    let forward = |x: &[f64], w: &[f64], back: Summed<'_>| -> f64 {
        let mut loss = 0.0;
        for at in 0..n {
            let mut sum = vec![0.0; D];
            arcs.range((at, 0)..(at + 1, 0)).for_each(|((_, y), _)| add(&mut sum, 0, 1.0, row(x, *y, D)));
            let mut out = vec![0.0; D];
            sum.iter().zip(0..).for_each(|(value, d)| add(&mut out, 0, *value, row(w, d, D)));
            out.iter_mut().for_each(|value| *value = value.max(0.0));
            loss += dot(&out, &out) / scale;
            back(at, &sum, &out);
        }
        loss
    };
    let (mut of_x, mut of_w) = (vec![0.0; x.len()], vec![0.0; w.len()]);
    forward(&x, &w, &mut |at, sum, out| {
        let slope: Vec<f64> = out.iter().map(|value| 2.0 * value / scale).collect();
        let of_sum: Vec<f64> = (0..D as u32).map(|d| dot(row(&w, d, D), &slope)).collect();
        sum.iter().zip(0..).for_each(|(value, d)| add(&mut of_w, d, *value, &slope));
        arcs.range((at, 0)..(at + 1, 0)).for_each(|((_, y), _)| add(&mut of_x, *y, 1.0, &of_sum));
    });
    let moved = |values: &[f64], slopes: &[f64]| -> Vec<f64> {
        values.iter().zip(slopes).map(|(value, slope)| value - 0.01 * slope).collect()
    };
    let after = forward(&moved(&x, &of_x), &moved(&w, &of_w), &mut |_, _, _| {});
    let mut expected = vec![Expected::Sum(1, after)];
    expected.extend(stepped(&[(&x, &of_x), (&w, &of_w)]));
    Input { text, files: vec![relation("edges", &arcs)], expected }
}

/// Twenty steps of Adam for a table of `n` rows, of which the loss reads fifty.
fn adam_rows(n: u32) -> Input {
    const D: usize = 32;
    let picks = n.min(50);
    let picked: Arcs = (0..picks).map(|s| ((s, s * (n / picks)), 1.0)).collect();
    let text = format!(
        "n : {n}\nd : {D}\ns : {picks}\nPick = \"edges\"\nE[n, d] ~ normal(0, 1)\nT[s, d] = 0.1 s + 0.01 d\n\
         R[s, d] = Pick(s, n) E[n, d]\nLoss = sum[s, d]((R[s, d] - T[s, d])^2)\n\
         Loss? @minimize(opt=adam, lr=0.01, steps=20)\n"
    );
    let all = start("E", n, 32);
    let mut loss = 0.0;
    for (s, at) in picked.keys() {
        for (d, value) in row(&all, *at, D).iter().enumerate() {
            let wanted = 0.1 * f64::from(*s) + 0.01 * d as f64;
            let (mut weight, mut mean, mut square) = (*value, 0.0, 0.0);
            for step in 1..=20 {
                let slope = 2.0 * (weight - wanted);
                mean = 0.9 * mean + 0.1 * slope;
                square = 0.999 * square + 0.001 * slope * slope;
                let (m, v) = (mean / (1.0 - 0.9_f64.powi(step)), square / (1.0 - 0.999_f64.powi(step)));
                weight -= 0.01 * m / (v.sqrt() + 1e-8);
            }
            loss += (weight - wanted).powi(2);
        }
    }
    Input { text, files: vec![relation("edges", &picked)], expected: vec![Expected::Sum(1, loss)] }
}
