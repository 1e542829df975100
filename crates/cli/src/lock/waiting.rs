//! Reports the holder of the lock that `soloist lock` waits for.

use std::convert::Infallible;
use std::time::Duration;

use soloist_client::Client;
use soloist_client::api::LockInfo;
use tokio::time::sleep;

use crate::output;
use crate::show::quoted;

/// Shorter waits are not reported.
const FIRST_AFTER: Duration = Duration::from_millis(500);
/// How often to check whether the holder has changed.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Prints the holder of the lock on stderr, and again whenever it changes. Never returns.
pub(super) async fn tell(client: &Client, lock: &str) -> Infallible {
    let mut last = String::new();
    sleep(FIRST_AFTER).await;
    loop {
        let line = match client.lock_info(lock).await {
            Ok(info) => whom(&info),
            Err(error) => error.to_string(),
        };
        if line != last {
            output::complain(&format!("waiting for lock {lock:?}: {line}"));
            last = line;
        }
        sleep(LOOK_EVERY).await;
    }
}

fn whom(lock: &LockInfo) -> String {
    match (&lock.holder, &lock.reason) {
        (Some(holder), _) => format!(
            "held by {} on node {}, fence {}",
            quoted(&holder.owner),
            holder.node,
            holder.fence
        ),
        (None, Some(reason)) => format!("holder unknown: {reason}"),
        (None, None) => "no holder now".to_owned(),
    }
}
