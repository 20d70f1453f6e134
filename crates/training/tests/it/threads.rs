//! The products that training is made of do not depend on the number of threads: not by a bit.

use seeded::Family;
use training::kernels::{Mat, MatMut, product};

#[test]
fn products_of_every_shape_are_the_same_with_any_number_of_threads() {
    let mut stream = Family::named("threads").stream(0);
    // Shapes of the four models: a projection, a feed-forward block, the head, a weight's gradient; and odd ones.
    for (m, k, n) in [(512, 512, 2048), (2048, 128, 663), (128, 1052, 512), (333, 77, 1031), (7, 513, 3)] {
        let a: Vec<f32> = (0..m * k).map(|_| stream.normal() as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|_| stream.normal() as f32).collect();
        let run = |threads: usize, turned: bool| {
            let mut out = vec![0.0_f32; m * n];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let left = if turned { Mat::new(&a, k, m).t() } else { Mat::new(&a, m, k) };
            pool.install(|| product(MatMut::new(&mut out, m, n), false, 1.0, left, Mat::new(&b, k, n), true));
            out.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        for turned in [false, true] {
            let one = run(1, turned);
            for threads in [2, 3, 5, 8] {
                assert!(run(threads, turned) == one, "{m} × {k} × {n}, turned {turned}, {threads} threads");
            }
        }
    }
}
