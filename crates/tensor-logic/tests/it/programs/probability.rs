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
