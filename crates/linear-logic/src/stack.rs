//! Room for recursion.
//!
//! Text nests at most [`MAX_NESTING`](crate::parse::MAX_NESTING) levels and the evaluator counts its own depth, so
//! every recursion of this crate is bounded; but the bound needs more room than a thread usually has.

/// The stack of the thread on which the command works. Only what is touched becomes memory.
const BYTES: usize = 512 << 20;

/// Runs a function on a thread with room for the deepest recursion that the limits of this crate allow.
///
/// # Errors
/// If the system gives no thread.
pub fn on_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> std::io::Result<R> {
    calculemus_base::process::on_stack_of(BYTES, work)
}
