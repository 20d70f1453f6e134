//! How the commands manage their memory: by mimalloc, which keeps what is freed for a while.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};

/// The allocator of a command.
pub use mimalloc::MiMalloc as Allocator;

/// The option `purge_delay`: after so many milliseconds what is freed goes back to the system.
const PURGE_DELAY: mi_option_t = 15;
/// What the option is where nobody has set it.
const DEFAULT: c_long = 1_000;
/// What it is here.
const LONGER: c_long = 10_000;

/// Keeps what is freed for ten seconds instead of one, unless the environment says how long (`MIMALLOC_PURGE_DELAY`): the system
/// clears every page that it gives out again, which for a step of learning took a quarter of its time.
///
/// To be called once, before there are threads.
pub fn keep_freed_memory() {
    // The option goes by its number. Where it is not what it is by default, it is set already, or another option.
    // SAFETY: they read and write one number of the allocator's; no other thread does meanwhile.
    #[expect(unsafe_code, reason = "functions of C")]
    unsafe {
        if mi_option_get(PURGE_DELAY) == DEFAULT {
            mi_option_set(PURGE_DELAY, LONGER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is that of the option: what the environment calls by its name is found there.
    #[test]
    fn the_number_is_that_of_the_option() {
        const NAME: &str = "MIMALLOC_PURGE_DELAY";
        #[expect(unsafe_code, reason = "functions of C")]
        // SAFETY: they read a number that no other test writes.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        match std::env::var(NAME) {
            Ok(wanted) => {
                keep_freed_memory();
                assert_eq!(delay().to_string(), wanted, "what the environment says is kept");
            }
            Err(_) => {
                let mut command = std::process::Command::new(std::env::current_exe().unwrap());
                let output = command.arg("the_number_is_that").env(NAME, "4321").output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                keep_freed_memory();
                assert_eq!(delay(), LONGER);
            }
        }
    }
}
