//! How the commands manage their memory: by mimalloc, which keeps what is freed for a while.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// The allocator of a command.
pub use mimalloc::MiMalloc as Allocator;

/// The option `purge_delay`: after so many milliseconds what is freed goes back to the system.
const PURGE_DELAY: mi_option_t = 15;
/// What it is here, where nobody has set it: by itself it is 1,000.
const LONGER: c_long = 10_000;

/// Keeps what is freed for ten seconds instead of one, unless the environment says how long (`MIMALLOC_PURGE_DELAY`): the system
/// clears every page that it gives out again, which for a step of learning took a quarter of its time.
///
/// To be called once, before there are threads.
pub fn keep_freed_memory() {
    // The option goes by its number, which a test compares with its name.
    // SAFETY: this writes one number of the allocator's, unless the environment has; no other thread does meanwhile.
    #[expect(unsafe_code, reason = "a function of C")]
    unsafe {
        mi_option_set_default(PURGE_DELAY, LONGER);
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

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
                // 1,000 is what the option is by itself: who says so wants it as well.
                for wanted in ["4321", "1000", "0", "-1"] {
                    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
                    let output = command.arg("the_number_is_that").env(NAME, wanted).output().unwrap();
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                }
                keep_freed_memory();
                assert_eq!(delay(), LONGER);
            }
        }
    }
}
