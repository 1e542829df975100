//! Exhausted fences: a new epoch begins, and no request is refused.

use soloist_node::skip_fences;
use tokio::time::timeout;

use crate::{PATIENCE, cluster};

/// Number of fences that each lock has left per epoch.
const LEFT: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_has_used_up_its_fences_gets_more_in_another_epoch() {
    skip_fences((1 << 32) - 1 - LEFT);
    let (cluster, _folder) = cluster(3, "naimi-trehel").await;
    let nodes = &cluster.nodes;
    let held = nodes[2].lock("held").unwrap().acquire().await.unwrap();
    let mut fences = Vec::new();
    for number in 0..3 * LEFT as usize {
        let lock = nodes[number % 3].lock("x").unwrap();
        let guard = timeout(PATIENCE, lock.acquire()).await.expect("served");
        let guard = guard.unwrap();
        fences.push(guard.fence());
        guard.release().await.unwrap();
    }
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    let epochs = fences.last().unwrap().epoch() - fences[0].epoch();
    assert!(epochs >= 2, "{fences:?}");
    held.release().await.expect("it was never lost");
    cluster.stop().await;
}
