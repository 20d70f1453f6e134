//! The seed of tests that draw what they try: `CALCULEMUS_SEED`, or 0. Included by the tests of every crate
//! (`#[path = "…/seeded/tests/seed/mod.rs"] mod seed;`), so that one variable moves them all: continuous integration
//! sets it to a fresh number in each run, and what it finds is repeated by setting the same one.

/// The seed. It is printed, and the harness shows what a test printed once the test fails.
///
/// # Panics
/// If the variable is no number: a test must not try 0 where another seed was meant.
pub(crate) fn first() -> u64 {
    let seed = match std::env::var("CALCULEMUS_SEED") {
        Ok(text) => {
            text.trim().parse().unwrap_or_else(|_| panic!("CALCULEMUS_SEED={text}: a number is needed"))
        }
        Err(_) => 0,
    };
    println!("CALCULEMUS_SEED={seed} repeats this test");
    seed
}
