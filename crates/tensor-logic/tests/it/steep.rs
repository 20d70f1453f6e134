//! Gradients where a derivative is infinite and nothing flows along it: under a mask, below a maximum that another one has.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use tensor_logic::answer::Content;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::gradient::evaluate::{gradients, with_respect_to};
use tensor_logic::learn::minimize;
use tensor_logic::program::{Action, Program, Query};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;

const BUDGET: Budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };

fn program(text: &str) -> Program {
    crate::common::engines::analysed(text).unwrap_or_else(|reports| panic!("{text}\n{reports:?}"))
}

fn query(program: &Program) -> &Query {
    let mut queries = program.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    });
    queries.next_back().unwrap()
}

/// All gradients of the last query's tensor, one after the other.
fn slopes(engine: &mut dyn Engine, text: &str) -> Vec<f64> {
    let program = program(text);
    let goal = query(&program).tensor;
    let wrt = with_respect_to(&program, goal, &[]).unwrap();
    let found = gradients(engine, &program, BUDGET, goal, &wrt).unwrap_or_else(|r| panic!("{text}\n{r:?}"));
    let numbers = |(_, content): (String, Content)| match content {
        Content::Scalar(value) => vec![value.unwrap()],
        Content::Tensor { values, .. } => values.to_vec(),
        Content::Relation { values, .. } => values.unwrap(),
    };
    found.gradients.into_iter().flat_map(numbers).collect()
}

const NAN: f64 = f64::NAN;

/// Programs, and the gradients by their parameters in the order of the names.
const STEEP: &[(&str, &[f64])] = &[
    // A clipped logarithm, and distances of which the mask takes the diagonal away.
    (
        "W ~ [0, 2, 3]\nA[i] = max(log(W[i]), -5)\nD[i, j] = sqrt((W[i] - W[j])^2)\nM = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
         Loss = A[i] + M[i, j] D[i, j]\nLoss?",
        &[-4.0, 0.5, 4.0 + 1.0 / 3.0],
    ),
    ("R = [0, 1]\nW ~ 1.5\nT[i] = log(R[i] W)\nLoss max= T[i]\nLoss?", &[1.0 / 1.5]),
    ("W ~ [800, 1]\nY[i] = min(exp(W[i]), 10)\nLoss = Y[i]\nLoss?", &[0.0, std::f64::consts::E]),
    ("A ~ [1, 2]\nB ~ [0, 4]\nY[i] = min(A[i] / B[i], 3)\nLoss = Y[i]\nLoss?", &[0.0, 0.25, 0.0, -0.125]),
    ("M = [0, 1]\nX ~ [0, 4]\nLoss = M[i] X[i]^0.5\nLoss?", &[0.0, 0.25]),
    ("X ~ [0, 4]\nN ~ 2\nLoss = X[i]^N\nLoss?", &[16.0 * 1.3862943611198906, 0.0, 8.0]),
    ("W ~ [0, 4]\nH[0, i] = 1\nH[t+1, i] = max(log(H[t, i] W[i]), -2)\nLoss = H[1, i]\nLoss?", &[0.0, 0.25]),
    ("W ~ [0, 4]\nOn(1)\nT(i) += sqrt(W[i])\nLoss = T(i) On(i)\nLoss?", &[0.0, 0.25]),
    ("W ~ [0, 4, 9]\nT[i] = max(sqrt(W[i]), 1)\nLoss avg= T[i]\nLoss?", &[0.0, 0.25 / 3.0, 0.5 / 9.0]),
    ("W ~ [0, 4]\nV ~ [1, 2]\nM = [0, 1]\nLoss = V[i] M[i] sqrt(W[i])\nLoss?", &[0.0, 2.0, 0.0, 0.5]),
    ("W ~ [0, 4]\nM = [0, 1]\nT *= 1 + M[i] sqrt(W[i])\nLoss = T\nLoss?", &[0.0, 0.25]),
    ("W ~ [0, 4]\nM = [0, 1]\nX[i] = 0.5 X[i] + M[i] sqrt(W[i])\nLoss = X[i]\nLoss?", &[0.0, 0.5]),
    ("C ~ [0, 4]\nD(0) min= 0\nD(1) min= D(0) + max(log(C[0]), 1)\nD(1) min= D(0) + log(C[1])\nLoss = D(1)\nLoss?", &[0.0, 0.0]),
    // A way along which something might flow gives no number: the derivative of W / (W + 2) by way of a logarithm.
    ("W ~ [0, 2]\nP[i.] = softmax(log(W[i]))\nLoss = P[0]\nLoss?", &[NAN, 0.0]),
    ("W ~ 0\nLoss = sqrt(W)^2\nLoss?", &[NAN]),
    ("W ~ [0, 0]\nLoss = sqrt(W[i]^2)\nLoss?", &[NAN, NAN]),
];

#[test]
fn nothing_flows_along_a_way_with_a_zero_that_stays() {
    for (text, wanted) in STEEP {
        let fast = slopes(&mut Auto::new(Box::<Fast>::default()), text);
        let duals = slopes(&mut Reference::default(), text);
        for (how, found) in [("engine", fast), ("dual numbers", duals)] {
            let close = |(a, b): (&f64, &f64)| a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * b.abs();
            let same = found.len() == wanted.len() && found.iter().zip(*wanted).all(close);
            assert!(same, "{how}: {found:?} instead of {wanted:?}\n{text}");
        }
    }
}

/// Learning takes the same gradients, of all data and in batches, and goes on.
#[test]
fn learning_goes_on_beside_a_steep_zero() {
    let text =
        "s : 4\nX[s] = [0, 1, 0, 2]\nW ~ 1.5\nB ~ 0.5\nT[s] = max(log(W X[s]), -3)\nLoss avg= (T[s] - B)^2\n";
    for directive in
        ["steps=5, lr=0.01", "batch=s, size=1, epochs=2, lr=0.01", "batch=s, size=3, epochs=2, lr=0.01"]
    {
        let program = program(&format!("{text}Loss? @minimize(opt=sgd, {directive})\n"));
        let query = query(&program);
        let settings = query.directives.minimize.clone().unwrap();
        let mut engine = Auto::new(Box::<Fast>::default());
        let mut parameters: Parameters = all_start_values(&program);
        let done = minimize(
            &mut engine,
            &program,
            BUDGET,
            &mut parameters,
            query.tensor,
            &settings,
            &mut |_, _, _| {},
        );
        let done = done.unwrap_or_else(|refusal| panic!("{directive}: {refusal:?}"));
        assert!(
            done.last < done.first && done.last.is_finite(),
            "{directive}: {} to {}",
            done.first,
            done.last
        );
        assert!(parameters.values().all(|values| values.iter().all(|value| value.is_finite())));
    }
}

/// The gradients of a printed program have the shapes of their parameters, also where no equation names all elements or
/// nothing flows to any.
#[test]
fn printed_gradients_are_whole() {
    let texts = [
        (
            "W ~ 2\nA = [[2, 3], [4, 5]]\nR(1) = 4\nN[i, c] = concat(R[i], A[i, j], R[i])\nLoss = W N[i, c]\nLoss?",
            "22.0",
        ),
        ("W ~ [[1, 4], [3, 2]]\nLoss = W[0, 1]^2\nLoss?", "[[0.0, 8.0], [0.0, 0.0]]"),
        ("W ~ [1.5, 2.5]\nA[i] = W[i]^2\nB[i] = floor(A[i])\nLoss = B[i] + W[i]\nLoss?", "[1.0, 1.0]"),
        ("W ~ [1.5, 2.5]\nLoss = floor(W[i])\nLoss?", "[0.0, 0.0]"),
        ("x : {Red, Green}\nW[x] ~ [1, 2]\nLoss = W[Green]^2\nLoss?", "[0.0, 4.0]"),
        ("W ~ 2\nLoss = step(W)\nLoss?", "0.0"),
        ("W ~ [1, 2]\nT[i] = W[i]^2\nR(i) <- T[i]\nLoss = W[i] + R(i)\nLoss?", "[1.0, 1.0]"),
        (
            "E ~ [[1, 4], [3, 2]]\nR(0)\nR(1)\nT[i] *= E[i, j] R(j)\nLoss = T[i]\nLoss?",
            "[[4.0, 1.0], [2.0, 3.0]]",
        ),
        (
            "E ~ [[1, 0], [3, 2]]\nR(0)\nR(1)\nT[i] *= E[i, j] R(j)\nLoss = T[i]\nLoss?",
            "[[0.0, 1.0], [2.0, 3.0]]",
        ),
    ];
    for (text, wanted) in texts {
        let program = program(text);
        let goal = query(&program).tensor;
        let wrt = with_respect_to(&program, goal, &[]).unwrap();
        let printed = adjoint(&program, goal, &wrt).emit().unwrap();
        let again = self::program(&printed);
        let asked = query(&again);
        let found = Reference::default()
            .values(
                &tensor_logic::engine::Request {
                    program: &again,
                    parameters: &all_start_values(&again),
                    budget: BUDGET,
                },
                &[asked.tensor],
            )
            .unwrap();
        let shape: Vec<usize> =
            again.tensor(asked.tensor).domains().iter().map(|domain| domain.len()).collect();
        let values = found[0].doubles().to_vec();
        let shown = match shape[..] {
            [] => format!("{:?}", values[0]),
            [_, columns] => format!("{:?}", values.chunks(columns).collect::<Vec<_>>()),
            _ => format!("{values:?}"),
        };
        assert_eq!(shown, wanted, "{text}\n---\n{printed}");
    }
}
