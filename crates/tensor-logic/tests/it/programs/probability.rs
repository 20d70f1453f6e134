//! Table 3 and the graphical models, by enumerating all assignments.

use super::plain::{given, matrix};
use super::{Oracle, Want, named, number, rows};

pub(crate) const ORACLES: &[Oracle] = &[
    ("table3-factor", factor),
    ("table3-marginalization", marginalization),
    ("table3-pointwise-product", product),
    ("table3-join-tree", join_tree),
    ("table3-conditional", conditional),
    ("table3-belief-propagation", belief_propagation),
    ("table3-sampling", sampling),
    ("umbrella", umbrella),
    ("loopy-belief-propagation", loopy),
    ("bayes-net", bayes_net),
];

/// The factor that several programs use.
fn attracts(a: usize, b: usize) -> f64 {
    if a == b { 2.0 } else { 1.0 }
}

/// The sum over all assignments of `n` binary variables.
fn over(n: usize, term: impl Fn(&[usize]) -> f64) -> f64 {
    let bits = |at: usize| (0..n).map(|variable| at >> variable & 1).collect::<Vec<usize>>();
    (0..1 << n).map(|at| term(&bits(at))).sum()
}

fn factor() -> Vec<Want> {
    vec![number(attracts(0, 1)), number(over(2, |x| attracts(x[0], x[1])))]
}

fn marginalization() -> Vec<Want> {
    let table = [[2.0, 1.0], [1.0, 3.0]];
    vec![Want::Numbers(table.iter().map(|row| row.iter().sum()).collect()), named("x", &["Ann", "Bob"])]
}

fn product() -> Vec<Want> {
    let (u, v) = ([[2.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [4.0, 1.0]]);
    let joint = matrix(4, 2, |xy, z| u[xy / 2][xy % 2] * v[xy % 2][z]);
    let both = ["Ann", "Cal"].map(|x| format!("x = {x}, y = Bob, z = Rome"));
    vec![rows(&joint), Want::Bindings(both.to_vec())]
}

fn chain(x: &[usize]) -> f64 {
    x.windows(2).map(|pair| attracts(pair[0], pair[1])).product()
}

fn join_tree() -> Vec<Want> {
    let ends = |last: usize| over(5, |x| if x[0] == 0 && x[4] == last { chain(x) } else { 0.0 });
    let given_start = [0, 1].map(|last| ends(last) / (ends(0) + ends(1)));
    vec![number(over(5, chain)), Want::Numbers(given_start.to_vec())]
}

fn conditional() -> Vec<Want> {
    // Clouds, sprinkler, rain, wet grass.
    let joint = |x: &[usize]| {
        let (c, s, r, w) = (x[0], x[1], x[2], x[3]);
        let sprinkler = [0.5, 0.1][c];
        let rain = [0.2, 0.8][c];
        let wet = [[0.0, 0.9], [0.9, 0.99]][s][r];
        let of = |p: f64, value: usize| if value == 1 { p } else { 1.0 - p };
        0.5 * of(sprinkler, s) * of(rain, r) * of(wet, w)
    };
    let where_ = |holds: &dyn Fn(&[usize]) -> bool| over(4, |x| if holds(x) { joint(x) } else { 0.0 });
    let wet = where_(&|x| x[3] == 1);
    let sprinkler = where_(&|x| x[3] == 1 && x[1] == 1) / wet;
    let rain = where_(&|x| x[3] == 1 && x[2] == 1);
    let both = where_(&|x| x[3] == 1 && x[2] == 1 && x[1] == 1);
    vec![
        number(1.0),
        number(wet),
        Want::Numbers(vec![1.0 - sprinkler, sprinkler]),
        number(rain / wet),
        number(both / rain),
    ]
}

fn belief_propagation() -> Vec<Want> {
    let (theta, psi) = ([[2.0, 1.0], [1.0, 1.0], [1.0, 4.0]], [[3.0, 1.0], [1.0, 2.0]]);
    let joint =
        |x: &[usize]| theta[0][x[0]] * theta[1][x[1]] * theta[2][x[2]] * psi[x[0]][x[1]] * psi[x[1]][x[2]];
    let z = over(3, joint);
    let marginals =
        matrix(3, 2, |node, value| over(3, |x| if x[node] == value { joint(x) } else { 0.0 }) / z);
    let each = marginals.iter().map(|row| Want::Numbers(row.clone()));
    std::iter::once(rows(&marginals)).chain(each).collect()
}

fn sampling() -> Vec<Want> {
    let exact = over(5, chain);
    vec![number(exact), Want::About(exact)]
}

fn umbrella() -> Vec<Want> {
    let (moves, seen) = (given(&[[0.7, 0.3], [0.3, 0.7]]), [0.9, 0.2]);
    let mut belief = [0.5, 0.5];
    let mut said = Vec::new();
    for _ in 0..2 {
        belief = [0, 1].map(|s| (0..2).map(|r| belief[r] * moves[r][s] * seen[s]).sum());
        let total = belief[0] + belief[1];
        said.push(Want::Numbers(belief.map(|p| p / total).to_vec()));
    }
    said.push(number(belief[0] + belief[1]));
    said
}

/// Messages in both directions along four arcs, passed on at the same time until they rest.
fn loopy() -> Vec<Want> {
    let theta = [[2.0, 1.0], [1.0, 1.0], [1.0, 4.0], [3.0, 2.0]];
    let psi = [[3.0, 1.0], [1.0, 2.0]];
    let links = [(0, 1), (1, 2), (2, 0), (2, 3)];
    let arcs: Vec<(usize, usize)> = links.iter().flat_map(|(u, v)| [(*u, *v), (*v, *u)]).collect();
    let mut messages = vec![[0.5; 2]; arcs.len()];
    let into = |messages: &[[f64; 2]], node: usize, but: Option<usize>, x: usize| -> f64 {
        let others = arcs.iter().zip(messages).filter(|((from, to), _)| *to == node && Some(*from) != but);
        others.map(|(_, message)| message[x]).product()
    };
    for _ in 0..1000 {
        let passed = |(u, v): &(usize, usize)| {
            let raw = [0, 1].map(|y| {
                (0..2).map(|x| theta[*u][x] * psi[x][y] * into(&messages, *u, Some(*v), x)).sum::<f64>()
            });
            raw.map(|value| value / (raw[0] + raw[1]))
        };
        messages = arcs.iter().map(passed).collect();
    }
    let belief = |node: usize, x: usize| theta[node][x] * into(&messages, node, None, x);
    let beliefs = matrix(4, 2, |node, x| belief(node, x) / (belief(node, 0) + belief(node, 1)));
    let joint = |x: &[usize]| {
        let nodes: f64 = (0..4).map(|node| theta[node][x[node]]).product();
        nodes * links.iter().map(|(u, v)| psi[x[*u]][x[*v]]).product::<f64>()
    };
    let z = over(4, joint);
    let marginals = matrix(4, 2, |node, x| over(4, |all| if all[node] == x { joint(all) } else { 0.0 }) / z);
    // A loop makes them sure of too much, and not by much.
    let pairs = beliefs.concat().into_iter().zip(marginals.concat());
    let far = pairs.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
    assert!(far > 1e-3 && far < 0.05, "{far}");
    std::iter::once(rows(&beliefs)).chain(marginals.into_iter().map(Want::Numbers)).collect()
}

fn bayes_net() -> Vec<Want> {
    let (s, r) = ([[0.5, 0.9], [0.5, 0.1]], [[0.8, 0.2], [0.2, 0.8]]);
    let w = [[[1.0, 0.1], [0.1, 0.01]], [[0.0, 0.9], [0.9, 0.99]]];
    let marginal = |table: [[f64; 2]; 2]| table.map(|row| 0.5 * (row[0] + row[1]));
    let (ps, pr) = (marginal(s), marginal(r));
    let apart = [0, 1].map(|wet| over(2, |x| w[wet][x[0]][x[1]] * ps[x[0]] * pr[x[1]]));
    let joint = |x: &[usize]| 0.5 * s[x[1]][x[0]] * r[x[2]][x[0]] * w[x[3]][x[1]][x[2]];
    let of = |node: usize| [0, 1].map(|value| over(4, |x| if x[node] == value { joint(x) } else { 0.0 }));
    [ps, apart, of(1), of(3)].map(|values| Want::Numbers(values.to_vec())).into()
}
