//! Gradients three ways: the adjoint program, dual numbers, central differences.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use tensor_logic::analyse::analyse;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::fast::Fast;
use tensor_logic::function::UserFunctions;
use tensor_logic::gradient::adjoint;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Action, Class, Program, Role, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;

const BUDGET: Budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };

fn program(text: &str) -> (Program, TensorId) {
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
    let program = match analysed {
        Ok(analysed) => analysed.program,
        Err(reports) => panic!("{text}\n{reports:?}"),
    };
    let goal = program.actions.iter().rev().find_map(|action| match action {
        Action::Query(query) => Some(query.tensor),
        Action::Write { .. } => None,
    });
    (program, goal.unwrap())
}

fn scalar(program: &Program, parameters: &Parameters, goal: TensorId) -> f64 {
    let request = Request { program, parameters, budget: BUDGET };
    match &Reference::default().values(&request, &[goal]).unwrap()[0] {
        Value::Tuples(tuples) => tuples.values.first().copied().unwrap_or(f64::NAN),
        value => value.doubles()[0],
    }
}

/// Checks the gradients of the last query's tensor by all parameters of the program.
fn check(text: &str) {
    let (program, goal) = program(text);
    let wrt: Vec<TensorId> = (0..program.tensors.len() as u32)
        .map(TensorId)
        .filter(|id| program.tensor(*id).role == Role::Parameter)
        .collect();
    assert!(!wrt.is_empty(), "nothing to differentiate by in\n{text}");
    let parameters = all_start_values(&program);
    let adjoint = adjoint(&program, goal, &wrt);
    let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
    let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
    let reference = Reference::default().values(&request, &goals).unwrap();
    let fast = Auto::new(Box::<Fast>::default()).values(&request, &goals).unwrap();
    for (a, b) in reference.iter().zip(&fast) {
        let (Value::Dense(a), Value::Dense(b)) = (a, b) else {
            panic!("gradients of square tensors are square")
        };
        for (a, b) in a.doubles().iter().zip(b.doubles().iter()) {
            assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "reference {a}, fast engine {b}\n{text}");
        }
    }
    let mut values = reference.into_iter();
    let plain = Request { program: &program, parameters: &parameters, budget: BUDGET };
    let (_, dual) = Reference::default().gradient(&plain, goal, &wrt).unwrap();
    let mut all = Vec::new();
    for ((id, gradient), dual) in wrt.iter().zip(&adjoint.gradients).zip(&dual) {
        let start = parameters[id].clone();
        let equations = match gradient.and_then(|_| values.next()) {
            Some(Value::Dense(values)) => values.doubles().to_vec(),
            Some(Value::Tuples(_) | Value::Counts(_)) => panic!("the gradient of a square tensor is square"),
            None => vec![0.0; start.len()],
        };
        for at in 0..start.len() {
            let moved = |by: f64| {
                let mut values = start.to_vec();
                values[at] += by;
                let mut parameters = parameters.clone();
                parameters.insert(*id, values.into());
                scalar(&program, &parameters, goal)
            };
            let step = 1e-5;
            let differences = (moved(step) - moved(-step)) / (2.0 * step);
            let name = program.name(*id);
            let (a, b) = (equations[at], dual[at]);
            let close = |x: f64, y: f64, tolerance: f64| (x - y).abs() <= tolerance * y.abs().max(1.0);
            assert!(close(a, b, 1e-9), "d/d{name}[{at}]: equations {a}, dual numbers {b}\n{text}");
            if !text.contains("# kink") {
                assert!(
                    close(a, differences, 1e-5),
                    "d/d{name}[{at}]: equations {a}, differences {differences}\n{text}"
                );
            }
        }
        all.push(equations);
    }
    if !text.contains("Dist(") {
        emitted(&adjoint.emit().unwrap(), &all, text);
    }
}

/// The printed gradient program gives the same numbers. (For closures it is not required.)
fn emitted(printed: &str, values: &[Vec<f64>], text: &str) {
    let analysed = analyse(printed, &mut NoFiles, &UserFunctions::default(), &Options::default());
    let again = match analysed {
        Ok(analysed) => analysed.program,
        Err(reports) => panic!("{text}\n---\n{printed}\n{reports:?}"),
    };
    let parameters = all_start_values(&again);
    let request = Request { program: &again, parameters: &parameters, budget: BUDGET };
    let goals = again.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query.tensor),
        Action::Write { .. } => None,
    });
    let goals: Vec<TensorId> = goals.collect();
    let found = Reference::default().values(&request, &goals).unwrap();
    assert_eq!(found.len(), values.len(), "{printed}");
    for (a, b) in found.iter().zip(values) {
        let Value::Dense(a) = a else { panic!("gradients of square tensors are square") };
        assert_eq!(a.len(), b.len(), "{text}\n---\n{printed}");
        for (a, b) in a.doubles().iter().zip(b) {
            assert!(
                (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                "printed {a}, program {b}\n{text}\n---\n{printed}"
            );
        }
    }
}

/// Programs whose last query is a scalar that depends on their parameters.
const PROGRAMS: &[&str] = &[
    "M ~ [[1, 2], [3, 4]]\nX ~ [[5, 6], [7, 8]]\nT = [[20, 20], [40, 50]]\nY[i, j] = M[i, k] X[k, j]\nLoss = (Y[i, j] - T[i, j])^2\nLoss?",
    "L ~ [1, 2, 3]\nP[k.] = softmax(L[k])\nLoss = -log(P[2])\nLoss?",
    "# kink\nE ~ [1, 3, 3]\nTop max= E[i]\nTop?",
    "E ~ [1, 3, 2]\nTop max= E[i] E[i]\nLow min= E[i] + 1\nLoss = Top Low\nLoss?",
    "E ~ [1, 3, 2]\nMean avg= E[i]^2\nLoss = sin(Mean)\nLoss?",
    "E ~ [1, 3, 2]\nAll *= E[i] + 0.5\nAll?",
    "# kink\nE ~ [1, 0, 2]\nAll *= E[i]\nAll?",
    "# kink\nE ~ [1, 0, 2]\nAll = prod[i](E[i])\nAll?",
    "E ~ [[1, 4], [3, 2]]\nLoss = prod[i](E[i, j]) max[k](E[k, 0]) + min[k](E[k, 1]) avg[k](E[k, k])\nLoss?",
    "E ~ [[1, 4], [3, 2]]\nLoss = prod[i, j](E[i, j])\nLoss?",
    "U ~ [1, 2]\nV ~ [3, 4]\nA = (U[i] V[i])^2\nB = (U[i] - V[i])^2\nC = exp(-(U[i] - V[i])^2)\nLoss = A + B C\nLoss?",
    "U ~ [1, 2]\nV ~ [3, 4]\nLoss = U[i] / sum[j](U[j] V[j]) V[i]^3 + U[0]^V[1] + 2^U[1]\nLoss?",
    "U ~ [1, 2]\nLoss = (0^U[i] + U[i])^2\nLoss?",
    "X ~ [0.3, -0.7]\nLoss = tanh(X[i]) + sig(X[i]) + gelu(X[i]) + silu(X[i]) + softplus(X[i]) + exp(X[i]) + sin(X[i]) + cos(X[i]) + abs(X[i])\nLoss?",
    "X ~ [0.3, 0.7]\nT ~ 2\nLoss = log(X[i]) sqrt(X[i]) + sig(X[i], T) + leaky(X[i] - 0.5, T) + max(X[i], 0.5) X[0] + min(X[i], 0.5) X[1]\nLoss?",
    "# kink\nX ~ [0, 0]\nLoss = relu(X[i]) + abs(X[i]) + leaky(X[i], 0.3) + max(X[0], X[1]) + gelu(X[i]) + step(X[i]) + sign(X[i]) + floor(X[i]) + sig(X[i], 0)\nLoss?",
    "W1 ~ [[0.5, -0.3], [0.2, 0.8], [-0.6, 0.1]]\nB1 ~ [0.1, 0.2, -0.15]\nW2 ~ [1, -2, 0.5]\nIn = [[0, 1], [1, 1], [1, 0]]\nT = [1, 0, 1]\nH[e, j] = relu(W1[j, k] In[e, k] + B1[j])\nY[e] = sig(W2[j] H[e, j])\nLoss avg= -T[e] log(Y[e]) - (1 - T[e]) log(1 - Y[e])\nLoss?",
    "Q ~ [[1, 0], [0.2, 1], [1, 1]]\nK ~ [[1, 2], [0, 1], [-1, 1]]\nV ~ [[1, 0], [0, 2], [3, -1]]\nW[i, j.] = softmax(Q[i, d] K[j, d] / sqrt(D) | j <= i)\nA[i, d] = W[i, j] V[j, d]\nLoss = A[i, d]^2\nLoss?",
    "X ~ [[1, 2, 4], [0.5, -1, 3]]\nG ~ [1, 2, 0.5]\nN[i, j.] = lnorm(X[i, j] G[j])\nLoss = N[i, j] X[i, j] X[i, 0]\nLoss?",
    "X ~ [[1, 2, 4], [0.5, -1, 3]]\nE ~ 0.1\nN[i, j.] = lnorm(X[i, j] | j < 2, E)\nLoss = N[i, j] X[i, j] X[i, 0]\nLoss?",
    "X ~ [[1, 2], [0.5, -1]]\nP[i., j.] = softmax(X[i, j])\nLoss = P[i, j] X[j, i]\nLoss?",
    "X ~ [[1, 2], [0.5, -1]]\nOut[i] = 2 softmax[j](X[i, j]) X[i, j]^2 + 1\nLoss = Out[i]^2\nLoss?",
    "Image ~ [[1, 0, 2], [3, 1, 0], [0, 2, 1]]\nFilter ~ [[1, 2], [0, -1]]\nF[x, y] = tanh(Filter[dx, dy] Image[x+dx, y+dy])\nP[x/2, y/2] max= F[x, y]\nLoss = P[a, b] + F[a, b]^2\nLoss?",
    "u : 4\nA ~ [1, 4, 9, 16]\nP[u] = A[u+1] - A[u]\nT[u] max= A[u+1]\nLoss = P[u]^2 + T[0] + P[3] A[0]\nLoss?",
    "W ~ 0.5\nV ~ 1\nU = [1, -1, 2]\nX[*t+1] = tanh(W X[*t] + V U[t])\nLoss = X[3]^2\nLoss?",
    "W ~ [[0.1, 0.2], [0.3, -0.4]]\nU = [[1, 0], [0, 1], [1, 1]]\nX[t+1, i] = tanh(W[i, j] X[t, j] + U[t, i])\nLoss = X[3, i]^2 + X[1, i]\nLoss?",
    "A ~ [[0.2, 0.1], [0.3, 0.4]]\nB ~ [1, 2]\nX[i] = A[i, j] X[j] + B[i]\nLoss = X[i]^2\nLoss?",
    "A ~ [[0.2, 0.1], [0.3, 0.4]]\nX[i] = 0.5 cos(A[i, j] X[j])\nLoss = X[i]^2\nLoss?",
    "Edge(0, 1); Edge(1, 2); Edge(2, 0); Edge(0, 0)\nF ~ [[1, 0], [0.5, -1], [2, 1]]\nW ~ [[1, 0.5], [-0.3, 1]]\nH[x, d] = relu(Edge(x, y) F[y, e] W[d, e])\nP[d] avg= H[x, d]\nLoss = P[d]^2\nLoss?",
    "Edge(0, 1); Edge(1, 2); Edge(2, 0); Edge(0, 0)\nQ ~ [[1, 0], [0.5, -1], [2, 1]]\nW[i, j.] = softmax(Q[i, d] Q[j, d] | Edge(i, j))\nO[i, d] = W[i, j] Q[j, d]\nLoss = O[i, d]^3\nLoss?",
    "Edge(0, 1); Edge(1, 2); Edge(2, 0)\nF ~ [1, 2, 3]\nAgg(x) += Edge(y, x) relu(3 F[y])\nH(x) += tanh(0.2 Agg(x))\nB(x) max= Edge(x, y) F[y]\nLoss = H(x) + B(x) F[x]\nLoss?",
    "Road(0, 1); Road(0, 2); Road(2, 1); Road(1, 3)\nC ~ [[0, 4, 1, 0], [0, 0, 0, 1], [0, 2, 0, 0], [0, 0, 0, 0]]\nDist(0) min= 0\nDist(y) min= Dist(x) + C[x, y] | Road(x, y)\nLoss = Dist(x)^2\nLoss?",
    "T[h, d] ~ [[0, 1, 2], [3, 4, 5]]\nU ~ [1, 2]\nC[k] = concat(T[h, d], U[i])\nLoss = C[k]^2 C[0] + C[7] C[4]\nLoss?",
    "X ~ [1, 2]\nY[i] = 10 X[i]\nX[i] := 2 X[i] + 1\nLoss = X[i] Y[i]\nLoss?",
    "X ~ [1, 2, 3, 4]\nLoss = (X[1:3])^2 + X[_]\nLoss?",
    "X ~ [1, 2, 3]\nn : 3\nN(0); N(2)\nLoss = (X[n] + 1 | N(n))^2 + (X[i] X[i] | i < 2)^2\nLoss?",
    "X ~ [1, 2]\nR(0) = 3; R(1) = 5\nS[n] = sig(R(n) X[n])\nLoss = S[n] R(n) + X[0] R[1]\nLoss?",
];

#[test]
fn gradients_agree_three_ways() {
    let failed: Vec<&&str> =
        PROGRAMS.iter().filter(|text| std::panic::catch_unwind(|| check(text)).is_err()).collect();
    assert!(failed.is_empty(), "{} of {} programs", failed.len(), PROGRAMS.len());
}

/// What stands beside an absent element owes nothing: a number, a declared index and what tuples bind may leave a domain.
const OUTSIDE: &[&str] = &[
    "A ~ [[4, 1, 3]]\nX ~ [1, 2]\nT = 1.5 A[2, j] + X[i]\nLoss = (T - 0.5)^2 + X[i]\nLoss?",
    "A ~ [4, 1, 3]\nX ~ [1, 2, 4]\nY[i] = X[i] (1.5 A[5] + X[i]) + A[i]\nLoss = Y[i]^2\nLoss?",
    "T[0] = 1\ni : 3\nW ~ [1, 2, 3]\nS[i] = tanh(W[i]) (T[i] + W[i]) + W[i]\nLoss = S[i]^2\nLoss?",
    "X ~ [1, 2]\nA = [3, 4]\nR(y+1) += A[y]\nT = R(i) (X[i] + 1)\nLoss = T^2 + X[i]\nLoss?",
    "X ~ [1, 2]\nB = [1, 2, 3]\nZ[m] = 2 B[m]\nR(y+1) += B[y]\nT(i) += R(i) (Z[i] + X[i+0])\nLoss = T(i)^2\nLoss?",
];

#[test]
fn gradients_beside_absent_elements() {
    let failed: Vec<&&str> =
        OUTSIDE.iter().filter(|text| std::panic::catch_unwind(|| check(text)).is_err()).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), OUTSIDE.len());
}

/// Indices that nothing declares: what binds them in an equation stands in it no more where its adjoints take parts of it.
const UNDECLARED: &[&str] = &[
    // Along an index that the argument lacks the same values stand again.
    "k : 3\nW ~ [0.1, 0.7]\nT[i., k] = softmax(W[i])\nLoss = T[i, 0]^2\nLoss?",
    "k : 3\nW ~ [0.1, 0.7]\nT[i., k] = softmax(W[i])\nLoss = T[i, k]^2 (k + 1)\nLoss?",
    "k : 3\nW ~ [0.1, 0.7]\nT[i., k] = lnorm(W[i], 0.1)\nLoss = T[i, 0]^2 + T[1, 2]\nLoss?",
    "k : 3\nW ~ [0.1, 0.7]\nT[i, k] = tanh(W[i])\nLoss = T[i, 0]^2\nLoss?",
    "k : 3\nW ~ [0.1, 0.7]\nT[i., k] = 2 softmax(W[i]) (k + 1)\nLoss = T[i, k]^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nT[i, j, k] = softmax[i](W[i, j])\nLoss = T[i, k, k]^2\nLoss?",
    // The axis is bound by a round reference.
    "R(0) = 1; R(1) = 3\nW ~ 1.5\nT[j.] = softmax(W R(j))\nLoss = T[0]^2\nLoss?",
    "R(0) = 1; R(1) = 3; R(3) = 2\nW ~ 1.5\nT[j.] = lnorm(W R(j), 0.1)\nLoss = T[0]^2 + T[3]\nLoss?",
    "R(0, 1); R(1, 0); R(1, 1)\nW ~ [1, 2]\nT[j.] = softmax(R(j, k) W[k])\nLoss = (W[k] T[k])^2\nLoss?",
    "S(0, 0) = 1; S(0, 1) = 2; S(1, 1) = 3; S(1, 0) = -1\nW ~ 0.4\nT[i, j.] = softmax(W S(i, j))\nLoss = T[i, j]^2 (i + 1)\nLoss?",
    "S(0, 0) = 1; S(0, 2) = 2; S(1, 1) = 3; S(1, 0) = -1\nW ~ 0.4\nT[i, j.] = lnorm(W S(i, j), 0.2)\nLoss = T[i, j]^3 (i + j + 1)\nLoss?",
    "j : 3\nR(0) = 1; R(2) = 3\nW ~ 1.5\nT[j.] = lnorm(W R(j), 0.1)\nLoss = T[0]^2 + T[2]\nLoss?",
    "j : 3\nR(0) = 1; R(2) = 3\nW ~ 1.5\nT[j.] = softmax(W R(j))\nLoss = T[0]^2 + T[2]\nLoss?",
    "E(0, 1); E(1, 0)\nW ~ [0.3, 0.9]\nT[i, j.] = softmax(W[j] | E(i, j))\nLoss = T[i, j]^2\nLoss?",
    // A largest entry beside what binds an index of its own.
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nR(0); R(1)\nT = R(i) max[j](W[i, j])\nLoss = T^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nR(1)\nT = min[j](W[i, j]) R(i) 3\nLoss = T^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nR(0); R(1)\nT[i] = R(i) W[i, k] max[j](W[i, j])\nLoss = T[i]^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nX = [0.25, 0.5]\nV = [[1, 0], [2, 3]]\nT[j] = min[k](X[k] W[i, j]) V(i, j)\nLoss = T[j]^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nS(0, 5) = 2; S(1, 7) = 3\nT[i] = (S(i, m) 2)^2 max[j](W[i, j])\nLoss = T[i]^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nR(0); R(1)\nT[i] = max[j](W[i, j]) | R(i)\nLoss = T[i]^2\nLoss?",
    "W ~ [[0.1, 0.7], [0.3, 0.2]]\nR(0); R(1)\nT = R(i) (avg[j](W[i, j]) + prod[j](W[i, j]) sum[j](W[j, i]))\nLoss = T^2\nLoss?",
    // A guard computes an index.
    "A ~ [0.3, 0.5]\nT(q) avg= A[m] | q = m + 1\nLoss = T(a)^2\nLoss?",
    "W ~ [1, 7]\nX[0] *= 2\nX[0] *= 3\nX[i] *= W[i]\nLoss = X[0] X[1]\nLoss?",
    "W ~ [4.5, 7]\nX[0] max= 2\nX[0] max= 3\nX[1] max= 7.5\nX[i] max= W[i]\nLoss = X[i]^2\nLoss?",
    "W ~ [4.5, 7]\nX[0] avg= 2\nX[0] avg= 2\nX[1] avg= 7.5\nX[i] avg= W[i]\nLoss = X[i]^2\nLoss?",
    "Is(A); Is(B)\nW ~ [4.5]\nR(A, B) *= 2\nR(A, B) *= 0\nR(A, B) *= 5\nR(x, y) *= W[0] Is(x) Is(y)\nLoss = R(x, y)\nLoss?",
    "A ~ [0.3, 0.5]\nT(q) max= A[m] | q = m + 1\nLoss = T(a)^2\nLoss?",
    "A ~ [0.3, 0.5, 0.9]\nT(q) min= A[m] q | q = m / 2\nLoss = T(a)^2\nLoss?",
    "A ~ [0.3, 0.5, 0.9]\nT(q) *= A[m] | q = m / 2\nLoss = T(a)^2\nLoss?",
    "A ~ [0.3, 0.5]\nR(0) = 2; R(1) = 3\nT(q) avg= A[m] R(m) | q = m + 1\nLoss = T(a)^2\nLoss?",
    "A ~ [0.3, 0.5]\nT(q) : maxtimes\nT(q) <- A[m], q = m + 1\nLoss = T(a)^2\nLoss?",
    "A ~ [0.3, 0.5]\nT(q) : tropical\nT(q) <- A[m], q = m + 1\nLoss = T(a)^2\nLoss?",
];

#[test]
fn gradients_where_nothing_declares_an_index() {
    let failed: Vec<&&str> =
        UNDECLARED.iter().filter(|text| std::panic::catch_unwind(|| check(text)).is_err()).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), UNDECLARED.len());
}

/// What makes the tuples of a relation: alone, beside others, several bindings for a tuple, none for some, a recursion.
const RELATIONS: &[&str] = &[
    "H(y, e) += F(E(x, y) X[x, d] W[d, e])",
    "H(y, y) += F(E(x, y) X[x, d] V[d])",
    "H(y+1, e) += F(E(x, y) X[x, d] W[d, e])",
    "H(y/2, e) += F(E(x, y) X[x, d] W[d, e])",
    "H(x+y, e) += F(E(x, y) X[x, d] W[d, e])",
    "H(x%2, e) += F(E(x, y) X[y, d] W[d, e])",
    "H(x, x-x) += F(E(x, y) X[y, d] V[d])",
    "H(0*y, e) += F(E(x, y) X[x, d] W[d, e])",
    "H(3, e) += F(E(0, y) X[y, d] W[d, e])",
    "H(y, e) += F(E(x, y) X[x, d] W[d, e])\nH(y, e) += E(y, x) W[0, e] X[x, e]",
    "H(0, 0) = 0.25\nH(3, 1) = 0.5\nH(y, e) = F(E(x, y) X[x, d] W[d, e])",
    "H(y, e) += F(E(x, y) X[x, d] W[d, e] | x != y)",
    "H(y, e) += F(E(x, y) X[x, d] W[d, e]) | y < 2",
    "H(y, e) += E(x, y) F(X[x, d] W[d, e])",
    "H(y, e) avg= F(E(x, y) X[x, d] W[d, e])",
    "H(y, e) max= F(E(x, y) X[x, d] W[d, e])",
    "H(e, y) += F(E(x, y) X[x, d] W[d, e])",
    "G(y, e) += F(E(x, y) X[x, d] W[d, e])\nH(y, e) += F(E(x, y) G(x, d) W[d, e])",
    "H(y, e) += F(0.1 E(x, y) X[x, d] W[d, e] + 0.1 E(x, y) E(y, x) H(x, e))",
];

/// A tuple's value, where one function made it, stands for that function in its derivative.
#[test]
fn gradients_of_relations_of_functions() {
    let mut failed = Vec::new();
    for relation in RELATIONS {
        for function in ["relu", "tanh", "sig", "exp"] {
            let head = relation.replace("F(", &format!("{function}("));
            let text = format!(
                "x, y : 4\nd, e : 2\nE(0, 1); E(1, 2); E(0, 2); E(2, 2); E(2, 1)\n\
                 X ~ [[0.3, -0.7], [1.1, 0.4], [-0.6, 0.9], [0.2, 0.8]]\nW ~ [[0.5, -0.4], [0.3, 0.7]]\nV ~ [0.2, -0.6]\n\
                 {head}\nLoss = H(a, b)^2\nLoss?"
            );
            if std::panic::catch_unwind(|| check(&text)).is_err() {
                failed.push(text);
            }
        }
    }
    for function in ["softmax", "lnorm"] {
        for (index, argument) in
            [("x, y.", "X[x, d] X[y, d] | E(x, y)"), ("y, d.", "E(x, y) X[x, d] W[d, 0]")]
        {
            let text = format!(
                "x, y : 4\nd : 2\nE(0, 1); E(1, 2); E(0, 2); E(2, 2); E(2, 1)\n\
                 X ~ [[0.3, -0.7], [1.1, 0.4], [-0.6, 0.9], [0.2, 0.8]]\nW ~ [[0.5, -0.4], [0.3, 0.7]]\n\
                 H({index}) += {function}({argument})\nLoss = H(a, b)^3 + W[d, d]^2\nLoss?"
            );
            if std::panic::catch_unwind(|| check(&text)).is_err() {
                failed.push(text);
            }
        }
    }
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n\n"));
}

/// The sum below a function is not taken once more for its derivative.
#[test]
fn a_derivative_is_read_off_the_tuple() {
    let text = "x, y : 4\nd : 2\nE(0, 1)\nX[x, d] ~ normal(0, 1)\nH(y, d) += relu(E(x, y) X[x, d])\nLoss = H(y, d)^2\nLoss?";
    let (program, goal) = program(text);
    let wrt = program.tensors.iter().position(|tensor| tensor.name == "X").unwrap();
    let printed = adjoint(&program, goal, &[TensorId(wrt as u32)]).emit().unwrap();
    assert_eq!(printed.matches("relu").count(), 1, "{printed}");
    assert_eq!(printed.matches("E(x, y) X[x, d]").count(), 1, "{printed}");
}

/// A recurrent cell as a program, of every small size: one step, one string and one unit too, where places of one element
/// agree with all others. Its gradient is computed step by step, never by iteration, and is right.
#[test]
fn cells_of_every_size_go_back_step_by_step() {
    let lstm = include_str!("../../programs/learner-lstm.tl");
    let cell = include_str!("../../programs/learner-cell.tl");
    let mut stepped = 0;
    for text in [lstm, cell] {
        for at in 0..27 {
            let [units, steps, strings] = [1 + at % 3, 1 + at / 3 % 3, 1 + at / 9];
            let text = sized(text, [units, steps, strings]);
            let (program, goal) = program(&text);
            let wrt: Vec<TensorId> = (0..program.tensors.len() as u32)
                .map(TensorId)
                .filter(|id| program.tensor(*id).role == Role::Parameter)
                .collect();
            let adjoint = adjoint(&program, goal, &wrt).program;
            for component in &adjoint.components {
                let names = || component.tensors.iter().map(|id| adjoint.name(*id)).collect::<Vec<&str>>();
                assert!(!matches!(component.class, Class::Numeric), "{:?}\n{text}", names());
                stepped += usize::from(matches!(component.class, Class::Stepped(_)));
            }
            if at % 13 == 0 {
                check(&text);
            }
        }
    }
    assert!(stepped >= 2 * 54, "{stepped} components are stepped");
}

/// A program of a cell with other sizes, random strings and targets, and the loss as its only query.
fn sized(text: &str, [units, steps, strings]: [usize; 3]) -> String {
    let mut stream = crate::common::stream("cells");
    let mut sized = String::new();
    for line in text.lines() {
        match line.split(" = ").next() {
            Some("Units") => sized.push_str(&format!("Units = {units}\n")),
            Some("Steps") => sized.push_str(&format!("Steps = {steps}\n")),
            Some("Strings") => sized.push_str(&format!("Strings = {strings}\n")),
            Some(facts) if facts.starts_with("Token(") || facts.starts_with("Target(") => {}
            Some(query) if query.contains('?') => {}
            _ => sized.push_str(&format!("{line}\n")),
        }
    }
    for (string, step) in (0..strings).flat_map(|string| (0..steps).map(move |step| (string, step))) {
        let [token, target] = [0; 2].map(|_: u64| stream.below(2));
        sized.push_str(&format!("Token({string}, {step}, {token}); Target({string}, {step}, {target})\n"));
    }
    sized + "Loss?\n"
}

/// A parameter that equations join with other numbers in another way than by a sum: it is one contribution among them.
#[test]
fn parameters_among_other_contributions() {
    for text in [
        "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ 0.5\nR[i] avg= A[i, j]\nLoss = tanh(R[i])^2",
        "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ 0.25\nR[i] max= A[i, j]\nLoss = R[i] R[i]",
        "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ -0.25\nR[i] min= A[i, j]\nLoss = R[i] R[i]",
        "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ 1.5\nR[i] *= A[i, j]\nLoss = R[i] R[i] + R[0]",
        "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ 1.5\nR[i] = A[i, j]\nS[i] ~ 2\nS[i] avg= R[i]\nS[i] avg= A[i, 0]\nLoss = R[i] S[i]",
        "t : 4\nX[t] ~ 0.5\nX[t+1] = tanh(2 X[t])\nLoss = X[3]^2",
        "t : 4\nX[t] ~ 0.5\nX[t+1] avg= tanh(2 X[t])\nLoss = X[3]^2",
        "i : 3\nLoss ~ 1\nLoss = W[i]^2\nW[i] ~ normal(0, 1)",
        "i : 3\nLoss ~ 1\nLoss avg= W[i]^2\nW[i] ~ normal(0, 1)",
    ] {
        check(&format!("{text}\nLoss?"));
    }
}

/// Who asks for other gradients only has that parameter counted too.
#[test]
fn parameters_count_beside_other_contributions() {
    let text = "i, j : 3\nA[i, j] ~ normal(0, 1)\nR[i] ~ 0.5\nR[i] avg= A[i, j]\nM[i] ~ 0.2\nM[i] max= A[i, j]\n\
                T[i] ~ 0.5\nT[i] *= A[i, j]\nLoss = tanh(R[i])^2 + M[i]^2 + T[i]\nLoss?";
    let (program, goal) = program(text);
    let by = (0u32..).map(TensorId).find(|id| program.name(*id) == "A").unwrap();
    let parameters = all_start_values(&program);
    let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
    let (_, dual) = Reference::default().gradient(&request, goal, &[by]).unwrap();
    let adjoint = adjoint(&program, goal, &[by]);
    let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
    let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
    let found = Auto::new(Box::<Fast>::default()).values(&request, &goals).unwrap();
    assert!(dual[0].iter().all(|wanted| *wanted != 0.0) && found[0].doubles().len() == dual[0].len());
    for (found, wanted) in found[0].doubles().iter().zip(&dual[0]) {
        assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{found}, dual numbers {wanted}");
    }
}
