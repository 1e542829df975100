//! Rounds of questions for lock events. All watchers of a node share them: each member gets one
//! question per round, whatever the number of watchers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::StreamExt;
use soloist_api::NodeName;
use soloist_core::epochs::roster::Member;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::Node;
use super::all_events::Wanted;
use super::fault::again_after_panics;
use super::gather::ask_all;
use super::inquiry::{EventsAsked, NodeAnswer, NodeQuestion};
use super::kept::KeptEvents;

/// Time between rounds, unless members had more than fits into an answer.
const EVERY: Duration = Duration::from_millis(200);

/// Maximum size of the prefixes in a question, in bytes, and of their number. Further watchers wait
/// for the next round.
const PREFIX_BYTES_MAX: usize = 64 << 10;
const ASKS_MAX: usize = 1024;

/// The watchers that wait for the next round.
#[derive(Default)]
pub(crate) struct EventRounds(Mutex<PendingAsks>);

#[derive(Default)]
struct PendingAsks {
    asks: Vec<Ask>,
    /// Whether a task asks. It is started by the first watcher, and ends after the last.
    is_asking: bool,
}

struct Ask {
    wanted: Wanted,
    answer: oneshot::Sender<Round>,
}

/// What a watcher gets of a round.
pub(super) struct Round {
    /// The members, or none if this node is not one.
    pub members: Arc<[Member]>,
    /// By node: what was asked for. A node that did not answer, or had no room for it, is missing.
    pub answers: Vec<(NodeName, KeptEvents)>,
}

impl EventRounds {
    fn pending(&self) -> MutexGuard<'_, PendingAsks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes as many watchers as fit into a question. Returns `None` if there are none: then the
    /// task ends.
    fn take(&self) -> Option<Vec<Ask>> {
        let mut pending = self.pending();
        pending.asks.retain(|ask| !ask.answer.is_closed());
        let mut bytes = 0;
        let fits = |ask: &&Ask| {
            bytes += ask.wanted.prefix.len();
            bytes <= PREFIX_BYTES_MAX
        };
        let count = pending.asks.iter().take(ASKS_MAX).take_while(fits).count();
        // A prefix that is longer than a question may be has a round of its own.
        let count = count.max(1).min(pending.asks.len());
        pending.is_asking = count > 0;
        (count > 0).then(|| pending.asks.drain(..count).collect())
    }
}

impl Node {
    /// Asks all nodes for events, in the next round. Returns `None` if the node has stopped or
    /// failed. Cancel safe.
    pub(super) async fn events_in_round(&self, wanted: Wanted) -> Option<Round> {
        let (answer, received) = oneshot::channel();
        {
            let mut pending = self.shared.event_rounds.pending();
            pending.asks.push(Ask { wanted, answer });
            if !pending.is_asking {
                pending.is_asking = true;
                let node = self.clone();
                let ask = move || ask_in_rounds(node.clone());
                tokio::spawn(again_after_panics("a round of questions", EVERY, ask));
            }
        }
        received.await.ok()
    }
}

/// Asks until no watcher is left, or the node has stopped or failed.
async fn ask_in_rounds(node: Node) {
    let shared = &node.shared;
    let mut first = 0_usize;
    while let Some(mut asks) = shared.event_rounds.take() {
        let next = Instant::now() + EVERY;
        // If answers have no room for all, others are first in the next round.
        first = first.wrapping_add(1);
        let count = asks.len();
        asks.rotate_left(first % count);
        let is_cut = tokio::select! {
            is_cut = ask_once(&node, asks) => is_cut,
            () = shared.stopped.cancelled() => false,
        };
        if !is_cut {
            tokio::select! {
                () = sleep_until(next) => {}
                () = shared.stopped.cancelled() => {}
            }
        }
        if shared.stopped.is_cancelled() || shared.fault.has_happened() {
            let mut pending = shared.event_rounds.pending();
            pending.asks.clear();
            pending.is_asking = false;
            return;
        }
    }
}

/// Asks once for all of these watchers. Returns whether a node has more than fits into its answer.
async fn ask_once(node: &Node, asks: Vec<Ask>) -> bool {
    let members = node.shared.living().map(|core| core.members());
    let members = members.unwrap_or_else(|| Arc::new([]));
    let mut rounds: Vec<Vec<(NodeName, KeptEvents)>> = asks.iter().map(|_| Vec::new()).collect();
    let mut is_cut = false;
    let mut answers = ask_all(node, |name| NodeQuestion::Events(questions(&asks, name).0));
    while let Some((name, answer)) = answers.next().await {
        let Some(NodeAnswer::Events(kept)) = answer else {
            continue;
        };
        let (asked, places) = questions(&asks, name.as_str());
        is_cut |= kept.len() < asked.len() || kept.iter().any(|kept| kept.is_cut);
        for (round, place) in rounds.iter_mut().zip(places) {
            let kept = kept.get(place).cloned();
            round.extend(kept.map(|kept| (name.clone(), kept)));
        }
    }
    drop(answers);
    for (ask, answers) in asks.into_iter().zip(rounds) {
        let members = Arc::clone(&members);
        // A watcher that is gone does not matter.
        let _ = ask.answer.send(Round { members, answers });
    }
    is_cut
}

/// What a node is asked for these watchers, each thing once, and the place of each watcher's in it.
fn questions(asks: &[Ask], node: &str) -> (Vec<EventsAsked>, Vec<usize>) {
    let mut asked = Vec::new();
    let mut places = HashMap::new();
    let place_of = |ask: &Ask| {
        let wanted = ask.wanted.of(node);
        *places.entry(wanted.clone()).or_insert_with(|| {
            asked.push(wanted);
            asked.len() - 1
        })
    };
    let places = asks.iter().map(place_of).collect();
    (asked, places)
}
