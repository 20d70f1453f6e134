//! How a command ends, and room for recursion.
//!
//! Exit status: 0 done, 1 refused, 2 wrong usage, 128 + n after signal n.

use std::fmt::Display;
use std::process::ExitCode;

use crate::stream::say;

/// The exit of `main`: the status of the work, or the message of what went wrong and status 1.
pub fn exit<E: Display>(name: &str, done: Result<u8, E>) -> ExitCode {
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(&format!("{name}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a function on a thread with a stack of so many bytes; only what is touched becomes memory. A panic goes on here.
///
/// # Errors
/// If the system gives no thread.
pub fn on_stack_of<R: Send>(bytes: usize, work: impl FnOnce() -> R + Send) -> std::io::Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes).spawn_scoped(scope, work)?;
        thread.join().map_err(|payload| std::panic::resume_unwind(payload))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_recursion_fits() {
        fn depth(n: u32) -> u32 {
            let kept = [n; 64];
            if n == 0 { 0 } else { std::hint::black_box(kept)[0].min(1) + depth(n - 1) }
        }
        assert_eq!(on_stack_of(512 << 20, || depth(200_000)).unwrap(), 200_000);
    }
}
