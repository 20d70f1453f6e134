//! The seed of tests that draw what they try: `CALCULEMUS_SEED`, or 0. Included by the tests of every crate
//! (`#[path = "…/seeded/tests/seed/mod.rs"] mod seed;`), so that one variable moves them all: continuous integration
//! sets it to a fresh number in each run, and what it finds is repeated by setting the same one.

/// The seed. It is printed, and the harness shows what a test printed once the test fails.
///
/// # Panics
/// If the variable is no number: a test must not try 0 where another seed was meant.
pub(crate) fn first() -> u64 {
    let text = std::env::var("CALCULEMUS_SEED").unwrap_or_else(|_| "0".to_owned());
    let seed = text.trim().parse();
    assert!(seed.is_ok(), "CALCULEMUS_SEED={text}: a number is needed");
    eprintln!("CALCULEMUS_SEED={text} repeats this test");
    seed.unwrap_or_default()
}
