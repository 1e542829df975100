//! Runs the future of a command to its end.

use std::pin::Pin;

use anyhow::{Context, Result};
use tokio::runtime::Builder;

/// Runs a future on this thread, for commands that only ask a node.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    run(Builder::new_current_thread(), future)
}

/// Runs a future on all cores, for commands that run several nodes.
pub(crate) fn block_on_all_cores<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    run(Builder::new_multi_thread(), future)
}

/// Runs a future on this many threads, besides this one, which only waits.
pub(crate) fn block_on_threads<T>(
    threads: usize,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads);
    run(builder, future)
}

fn run<T>(builder: Builder, future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut result = None;
    run_boxed(builder, Box::pin(async { result = Some(future.await) }))?;
    result.expect("the future has ended")
}

/// This function is not generic, so tokio's schedulers are compiled once and not for each command.
fn run_boxed(mut builder: Builder, future: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<()> {
    let runtime = builder.enable_all().build();
    let runtime = runtime.context("cannot start the threads that the command needs")?;
    runtime.block_on(future);
    Ok(())
}
