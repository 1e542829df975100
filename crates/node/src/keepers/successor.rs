//! A later generation of the cluster, as shown by other keepers.

use std::sync::Arc;

use tokio::sync::watch;

use soloist_core::cluster_identity::ClusterIdentity;

/// Notes when a keeper shows a later generation of this keeper's cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Successor(Arc<watch::Sender<Option<ClusterIdentity>>>);

impl Successor {
    /// Called with the cluster that another keeper shows.
    pub(super) fn note(&self, mine: Option<ClusterIdentity>, theirs: Option<ClusterIdentity>) {
        if let (Some(mine), Some(theirs)) = (mine, theirs)
            && theirs.succeeds(&mine)
        {
            self.0.send_replace(Some(theirs));
        }
    }

    /// Waits until a later generation was shown.
    pub(super) async fn shown(&self) -> ClusterIdentity {
        let mut shown = self.0.subscribe();
        loop {
            if let Some(successor) = *shown.borrow_and_update() {
                return successor;
            }
            // `self` has the sender, so this does not fail.
            let _ = shown.changed().await;
        }
    }
}
