//! Waiting on the clock that determines how long a hold is valid.

use soloist_api::{Moment, wait_until};
use tokio::time::sleep;

/// Waits until `moment`, on time even if timers run slow.
pub async fn reached(moment: Moment) {
    wait_until(moment, Moment::now, sleep).await;
}
