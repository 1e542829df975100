//! Waiting by the clock that decides how long a hold is valid.

use soloist_api::{Moment, wait_until};
use tokio::time::sleep;

/// Waits until a moment has come, however slow timers are.
pub async fn reached(moment: Moment) {
    wait_until(moment, Moment::now, sleep).await;
}
