//! The seed of tests that draw what they try.
//!
//! One variable moves the tests of every crate: continuous integration sets it to a fresh number in each run, and what
//! it finds is repeated by setting the same one.

use std::io::Write;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the variable `CALCULEMUS_SEED` says: a number, or `fresh` for one that nobody has seen; 0 without it. It is said
/// once on standard error, whatever becomes of the tests, so that every run can be repeated.
///
/// # Panics
/// If the variable is something else: a test must not try 0 where another seed was meant.
pub fn test_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let text = std::env::var("CALCULEMUS_SEED").unwrap_or_else(|_| "0".to_owned());
        let seed = read(&text);
        assert!(seed.is_some(), "CALCULEMUS_SEED={text}: a number is needed, or `fresh`");
        let seed = seed.unwrap_or_default();
        // Straight to standard error: what a test prints by a macro is shown only if it fails, and only by the first
        // test that asks. Where nobody listens the tests go on.
        let _ = writeln!(std::io::stderr(), "CALCULEMUS_SEED={seed}");
        seed
    })
}

fn read(text: &str) -> Option<u64> {
    match text.trim() {
        "fresh" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
            Some(u64::from(now.subsec_nanos()))
        }
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_seed_is_a_number_or_fresh() {
        assert_eq!(read(" 12\n"), Some(12));
        assert!(read("fresh").is_some());
        assert_eq!([read(""), read("-1"), read("0x10"), read("18446744073709551616")], [None; 4]);
    }
}
