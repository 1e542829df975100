//! Looks at the whole cluster from one node: asks the leader and all members, merges what they have
//! kept, and judges it.

mod facts;
mod known;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::StreamExt;
use soloist_api::Departed;
use soloist_api::dashboard::{Change, History, OutsideState, Overview};

use self::facts::Answers;
use self::known::Known;
use super::event::unix_ms;
use super::gather::ask_all;
use super::inquiry::{NodeAnswer, NodeQuestion};
use crate::Node;
use crate::membership::{self, Reply};
use soloist_core::epochs::member::MemberState;
use soloist_core::record::SeenProblems;

/// Timeout for the leader's view.
const LEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// What a dashboard shows.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub overview: Overview,
    /// The whole history, up to the last complete second.
    pub history: Arc<History>,
    /// All changes that are known.
    pub changes: Arc<Vec<Change>>,
}

impl Look {
    /// Nodes that left or were evicted and have not come back, the latest first.
    pub(crate) fn departed(&self) -> Vec<Departed> {
        let outside = self.overview.outside.iter();
        let departed = outside.filter_map(|node| {
            let evicted = match node.state {
                OutsideState::Evicted => true,
                OutsideState::Left => false,
                _ => return None,
            };
            Some(Departed {
                name: node.name.clone(),
                at_unix_ms: node.since_ms?,
                evicted,
                reason: node.reason.clone(),
            })
        });
        let mut departed: Vec<Departed> = departed.collect();
        departed.sort_by_key(|node| std::cmp::Reverse(node.at_unix_ms));
        departed
    }
}

/// What was learned by earlier looks, so that each look asks only for what is new.
#[derive(Default)]
pub(crate) struct Lookout {
    known: Known,
    /// Whether only changes are wanted, and no history.
    is_brief: bool,
}

impl Lookout {
    /// Asks the leader and all members, and judges what they say.
    pub(crate) async fn look(&mut self, node: &Node) -> Look {
        let _one_of_few = node.shared.looking.acquire().await;
        let now_s = unix_ms(Duration::ZERO) / 1000;
        self.known.begin(now_s);
        let mut answers = self.ask(node, now_s).await;
        let state = node.shared.core().member_state();
        let is_member = !matches!(state, MemberState::Outside);
        let lease = node.shared.lease().length;
        self.known.learn(&mut answers, now_s, is_member, lease);
        let facts = self.facts(node, &answers).await;
        let overview = match self.is_brief {
            // It does not know which waits are unusual.
            true => facts.judge(&mut SeenProblems::default()),
            false => {
                let seen = node.shared.seen_problems.lock();
                facts.judge(&mut seen.unwrap_or_else(PoisonError::into_inner))
            }
        };
        Look {
            overview,
            history: Arc::clone(&self.known.history),
            changes: Arc::clone(&self.known.changes),
        }
    }

    async fn ask(&self, node: &Node, now_s: u64) -> Answers {
        let began = Instant::now();
        let leader_client = &node.shared.keeping.leader_client;
        let leader = leader_client.ask(membership::LeaderQuestion::Overview, LEADER_TIMEOUT);
        let members = async {
            let mut kept = BTreeMap::new();
            let question = |name: &str| NodeQuestion::Kept {
                seconds_from: match self.is_brief {
                    true => u64::MAX,
                    false => self.known.seconds_from(name, now_s),
                },
                notes_after: self.known.notes_after(name),
            };
            let mut answers = ask_all(node, question);
            while let Some((name, answer)) = answers.next().await {
                let took_ms = began.elapsed().as_secs_f64() * 1e3;
                let answer = match answer {
                    Some(NodeAnswer::Kept(answer)) => Some((*answer, took_ms)),
                    _ => None,
                };
                kept.insert(name.to_string(), answer);
            }
            kept
        };
        let (led, kept) = tokio::join!(leader, members);
        let led = match led {
            Ok(Reply::Overview(view)) => Some(view),
            _ => None,
        };
        Answers { led, kept }
    }
}

impl Node {
    /// Looks at the whole cluster once. Problems that are over are left out.
    pub(crate) async fn look(&self) -> Look {
        let mut look = Lookout::default().look(self).await;
        look.overview.problems.retain(|problem| !problem.is_over);
        look
    }

    /// Returns the nodes that left or were evicted and have not come back, the latest first.
    pub(crate) async fn departed(&self) -> Vec<Departed> {
        let mut lookout = Lookout {
            is_brief: true,
            ..Lookout::default()
        };
        lookout.look(self).await.departed()
    }
}
