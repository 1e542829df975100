//! What a keeper knows at a moment, for the rest of the node.

use std::collections::BTreeSet;
use std::sync::Arc;

use openraft::ServerState;
use openraft::error::Fatal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::reason;
use super::handover::Handover;
use super::types::{KeeperNode, Metrics};
use soloist_core::epochs::roster::Roster;

/// What a keeper knows at a moment. All of it may be out of date; what must be known for certain, the leader
/// knows after [`Keeper::confirm_leadership`](super::Keeper::confirm_leadership).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Whether this keeper takes itself for the leader, and does not hand leadership over.
    pub leads: bool,
    /// Who leads.
    pub leader: Option<KeeperNode>,
    /// The term. In one term there may be several leaders, one after the other; but whoever was deposed by another leads
    /// again only in a later one.
    pub term: u64,
    /// The roster, as far as this keeper has it.
    pub roster: Arc<Roster>,
    /// All keepers, in the order of their names.
    pub keepers: Vec<KeeperNode>,
    /// Why this keeper does not run any more.
    pub stopped: Option<String>,
}

/// What a view follows from.
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
    let (mut told_to, mut more_rosters, mut runs) = (false, true, true);
    while runs {
        tokio::select! {
            () = stop.cancelled(), if !told_to => told_to = true,
            changed = metrics.changed() => runs = changed.is_ok(),
            // It ends a moment before or after Raft does; why, only Raft's own last words say.
            changed = rosters.changed(), if more_rosters => more_rosters = changed.is_ok(),
            // Its sender is in `handover`.
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
            if let (None, Some(reason), false) = (&before.stopped, &now.stopped, told_to) {
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
        term: metrics.current_term,
        roster,
        keepers,
        stopped,
    }
}
