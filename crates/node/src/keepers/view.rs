//! A keeper's view of the cluster, for the rest of the node.

use std::collections::BTreeSet;
use std::sync::Arc;

use openraft::ServerState;
use openraft::error::Fatal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::reason;
use super::handover::Handover;
use super::types::{KeeperNode, Metrics};
use soloist_core::Term;
use soloist_core::epochs::roster::Roster;

/// What a keeper knows at a moment. All of it may be out of date. Only the leader can know for
/// certain, after [`Keeper::confirm_leadership`](super::Keeper::confirm_leadership).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Whether this keeper believes that it leads, and is not handing leadership over.
    pub leads: bool,
    /// The leader, if known.
    pub leader: Option<KeeperNode>,
    /// The term. One term may have several leaders, one after the other, but a keeper that was
    /// deposed by another leads again only in a later term.
    pub term: Term,
    /// The roster according to this keeper's applied log.
    pub roster: Arc<Roster>,
    /// All keepers, ordered by name.
    pub keepers: Vec<KeeperNode>,
    /// Why this keeper has stopped, or `None` while it runs.
    pub stopped: Option<String>,
}

/// The inputs of a view.
type Sources = (
    watch::Receiver<Metrics>,
    watch::Receiver<Arc<Roster>>,
    Handover,
);

pub(super) async fn watch_views(
    sources: Sources,
    tell: watch::Sender<View>,
    stop: CancellationToken,
) {
    let (mut metrics, mut rosters, handover) = sources;
    let mut handovers = handover.subscribe();
    let (mut more_rosters, mut runs) = (true, true);
    while runs {
        tokio::select! {
            changed = metrics.changed() => runs = changed.is_ok(),
            // This channel closes shortly before or after Raft stops. Only Raft's last metrics show
            // why.
            changed = rosters.changed(), if more_rosters => more_rosters = changed.is_ok(),
            // `handover` has the sender, so this does not fail.
            _ = handovers.changed() => {}
        }
        let mut now = view(
            &metrics.borrow_and_update(),
            rosters.borrow_and_update().clone(),
            handover.is_under_way(),
        );
        if !runs && now.stopped.is_none() {
            now.leads = false;
            now.stopped = Some(reason(&Fatal::Panicked));
        }
        tell.send_if_modified(|before| {
            // `stop` is cancelled before Raft is shut down.
            let is_told_to = stop.is_cancelled();
            if let (None, Some(reason), false) = (&before.stopped, &now.stopped, is_told_to) {
                tracing::error!("this keeper has stopped: {reason}");
            }
            let news = *before != now;
            if news {
                *before = now;
            }
            news
        });
    }
}

pub(super) fn view(metrics: &Metrics, roster: Arc<Roster>, is_handing_over: bool) -> View {
    let membership = metrics.membership_config.membership();
    let node = |id: &u64| membership.get_node(id).cloned();
    let stopped = metrics.running_state.as_ref().err().map(reason);
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let mut keepers: Vec<_> = voters.iter().filter_map(node).collect();
    keepers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    View {
        leads: metrics.state == ServerState::Leader && stopped.is_none() && !is_handing_over,
        leader: metrics.current_leader.as_ref().and_then(node),
        term: Term(metrics.current_term),
        roster,
        keepers,
        stopped,
    }
}
