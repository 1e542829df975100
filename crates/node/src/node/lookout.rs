//! Looks at the whole cluster from one node: asks the leader and all members, merges what they have
//! kept, and judges it.

mod facts;
mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::StreamExt;
use soloist_api::Departed;
use soloist_api::dashboard::{Change, History, OutsideState, Overview, Problem, ProblemCode};

use self::facts::Answers;
use self::known::Known;
use super::event::unix_ms;
use super::gather::ask_all;
use super::inquiry::{NodeAnswer, NodeQuestion};
use crate::Node;
use crate::membership::{self, Reply};
use soloist_core::epochs::member::MemberState;

/// Timeout for the leader's view.
const LEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a problem is shown after its end, in milliseconds.
const OVER_SHOWN_MS: u64 = 60_000;

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
    /// Problems that are or were known, and until when those that are over are shown.
    problems: BTreeMap<ProblemKey, (Problem, u64)>,
    /// Whether only changes are wanted, and no history.
    is_brief: bool,
}

/// What makes a problem the same as before: its kind, its node and its lock.
type ProblemKey = (ProblemCode, Option<String>, Option<String>);

impl Lookout {
    /// Asks the leader and all members, and judges what they say.
    pub(crate) async fn look(&mut self, node: &Node) -> Look {
        let _one_of_few = node.shared.looking.acquire().await;
        let now_s = unix_ms(Duration::ZERO) / 1000;
        self.known.begin(now_s);
        let mut answers = self.ask(node, now_s).await;
        let state = node.shared.core().member_state();
        let is_member = !matches!(state, MemberState::Outside);
        self.known.learn(&mut answers, now_s, is_member);
        let mut overview = self.facts(node, &answers).await.judge();
        self.remember(&mut overview);
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

    /// Keeps since when each problem is known, and shows problems that are over for a while.
    fn remember(&mut self, overview: &mut Overview) {
        let now_ms = overview.at_ms;
        let shown_to = now_ms + OVER_SHOWN_MS;
        let mut current = BTreeSet::new();
        for problem in &mut overview.problems {
            let key = (problem.code, problem.node.clone(), problem.lock.clone());
            if let Some((known, _)) = self.problems.get(&key)
                && !known.is_over
            {
                problem.since_ms = problem.since_ms.min(known.since_ms);
            }
            self.problems
                .insert(key.clone(), (problem.clone(), shown_to));
            current.insert(key);
        }
        self.problems.retain(|_, (_, shown_to)| *shown_to > now_ms);
        for (key, (problem, _)) in &mut self.problems {
            if !current.contains(key) {
                problem.is_over = true;
                overview.problems.push(problem.clone());
            }
        }
    }
}

impl Node {
    /// Looks at the whole cluster once.
    pub(crate) async fn look(&self) -> Look {
        Lookout::default().look(self).await
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
