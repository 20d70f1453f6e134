//! Engines that are asked to end while they are at work do so soon.
#![expect(clippy::unwrap_used, reason = "a test whose program is refused has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, is_interrupted};
use tensor_logic::fast::Fast;
use tensor_logic::program::{Action, Program};
use tensor_logic::reference::Reference;

use crate::common::engines::analysed;

/// How long it takes to end an engine that is at work on the last query; and it answers another program as ever.
fn ends(engine: &mut dyn Engine, program: &Program) -> Duration {
    let stop = Arc::new(AtomicBool::new(false));
    engine.stop_when(Arc::clone(&stop));
    let mut queries = program.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    });
    let query = queries.next_back().unwrap();
    let budget = Budget { tuples: 1_000_000_000, bytes: 1 << 33 };
    let parameters = Parameters::new();
    let flag = Arc::clone(&stop);
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        flag.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let refused =
        engine.values(&Request { program, parameters: &parameters, budget }, &[query.tensor]).unwrap_err();
    let ended = Instant::now();
    assert!(is_interrupted(&refused), "{refused}");
    let asked = other.join().unwrap();
    stop.store(false, Ordering::Relaxed);
    let small = analysed("i : 5\nS = i").unwrap();
    let goal = small.tensors.iter().position(|tensor| tensor.name == "S").unwrap();
    let goal = tensor_logic::program::TensorId(goal as u32);
    let values =
        engine.values(&Request { program: &small, parameters: &parameters, budget }, &[goal]).unwrap();
    assert_eq!(values[0].doubles().to_vec(), [10.0]);
    ended.duration_since(asked)
}

/// Each would take minutes.
#[test]
fn long_operations_end_when_they_are_asked_to() {
    let waves = "sin(cos(".repeat(80) + "U[i] U[j]" + &"))".repeat(80);
    let elementwise = format!("i, j : 4000\nU[i] = i\nV[i, j] = {waves}\nV?");
    let programs = [
        // A fold, elementwise work, products of many matrices, a closure, a table that is filled element by element.
        "i, j, k : 1000\nU[i] = i\nS = sum[i, j, k](sin(U[i] U[j] U[k]))\nS?",
        &elementwise,
        "i, j, k : 600\nb : 60\nU[i] = i\nW[b] = b\nA[b, i, j] = U[i] W[b] + U[j]\nC[b, i, k] = A[b, i, j] A[b, j, k]\n\
         D[b, i, k] = C[b, i, j] C[b, j, k]\nE[b, i, k] = D[b, i, j] C[b, j, k]\nF[b, i, k] = E[b, i, j] D[b, j, k]\n\
         G[b, i, k] = F[b, i, j] E[b, j, k]\nH[b, i, k] = G[b, i, j] F[b, j, k]\nM max= H[b, i, k]\nM?",
        "N(0); N(y) <- N(x), y = x + 1\nN(x)?",
        "i, j : 2000\nk : 400\nD[i, j] = sum[k](sin(k D[i-1, j] + D[i, j-1]))\nM max= D[i, j]\nM?",
    ];
    for text in programs {
        let program = analysed(text).unwrap();
        let took = ends(&mut Auto::new(Box::<Fast>::default()), &program);
        assert!(took < Duration::from_secs(8), "{text}: {took:?}");
    }
    let text = "i, j, k : 1000\nA[i] = i\nS = A[i] A[j] A[k]\nS?";
    let took = ends(&mut Reference::default(), &analysed(text).unwrap());
    assert!(took < Duration::from_secs(1), "{took:?}");
    let text = "x, y, z : 6000\nR(x) <- x > 5\nS max= sum[y, z](x y z | not R(y))\nS?";
    let took = ends(&mut Reference::default(), &analysed(text).unwrap());
    assert!(took < Duration::from_secs(1), "{took:?}");
}
