//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(5);

/// Polls until the condition holds, and returns how long that took. Panics after `limit`.
pub async fn within(
    limit: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) -> Duration {
    let began = Instant::now();
    found(limit, what, async || condition().await.then_some(())).await;
    began.elapsed()
}

/// Polls until the condition returns a value, and returns it. Panics after `limit`.
pub async fn found<T>(
    limit: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let waiting = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    let found = tokio::time::timeout(limit, waiting).await;
    found.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"))
}
