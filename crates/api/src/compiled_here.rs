//! Where the code of a future is compiled.

use std::pin::Pin;

/// Boxes a future, so that its code is compiled in the crate that calls this.
///
/// The code of an `async fn` is compiled in the crate that awaits it, with everything that it calls
/// or spawns. For the start of a node, that is all of Raft and HTTP, in each program and each test.
/// Call this in a function that is not `async`, and only for what does not run often.
#[doc(hidden)]
pub fn compiled_here<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}
