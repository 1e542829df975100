//! One attempt to reach a keeper, directly or through a follower.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Membership;
use super::wire::{FromKeeper, read};
use crate::keepers::KeeperNode;
use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_transport::{ConnectionError, Dialled, Purpose, Stream};

/// How often a node that is connected through a follower tries to reach the leader directly.
const DIRECT_EVERY: Duration = Duration::from_secs(5);

/// Outcome of an attempt.
pub(super) enum Tried {
    Leads(Leading),
    /// The keeper does not lead. It may have named the leader.
    Elsewhere(Option<KeeperNode>),
    /// The keeper cannot be reached. Another keeper may reach it.
    Unreached(String),
    Refused(String),
}

/// A connection to a keeper that leads.
pub(super) struct Leading {
    pub stream: Stream,
    /// All keepers.
    pub keepers: Vec<KeeperNode>,
    pub cluster: ClusterIdentity,
}

/// The route to a keeper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub keeper: KeeperNode,
    /// The follower to connect through, or `None` to dial directly.
    pub through: Option<KeeperNode>,
}

/// The keepers that could not be reached lately.
///
/// For a while they are dialled only if there is no alternative: an attempt that gets no answer
/// uses up part of the lease.
pub(super) struct Unreached {
    me: NodeName,
    noted: Vec<(KeeperNode, Instant)>,
    remember: Duration,
}

impl Unreached {
    pub(super) fn new(membership: &Membership) -> Self {
        Unreached {
            me: membership.me.name.clone(),
            noted: Vec::new(),
            remember: membership.lease.detour_for(),
        }
    }

    /// Remembers that a direct attempt failed.
    pub(super) fn note(&mut self, keeper: &KeeperNode) {
        let (now, remember) = (Instant::now(), self.remember);
        self.noted
            .retain(|(noted, at)| noted != keeper && now - *at < remember);
        self.noted.push((keeper.clone(), now));
    }

    pub(super) fn is(&self, keeper: &KeeperNode) -> bool {
        let mut noted = self.noted.iter();
        noted.any(|(noted, at)| noted == keeper && at.elapsed() < self.remember)
    }

    /// The route to a leader that another keeper has named.
    pub(super) fn way(&self, leader: KeeperNode, told_by: &KeeperNode) -> Way {
        let is_other = leader.name != self.me && told_by.name != self.me;
        let is_detour = is_other && self.is(&leader);
        Way {
            keeper: leader,
            through: is_detour.then(|| told_by.clone()),
        }
    }
}

impl Membership {
    /// Returns when a leader that is reached through a follower can be reached directly.
    pub(super) async fn find_direct(self: &Arc<Self>, way: &Way) -> Leading {
        let direct = Way {
            keeper: way.keeper.clone(),
            through: None,
        };
        loop {
            match way.through {
                Some(_) => sleep(DIRECT_EVERY).await,
                None => std::future::pending().await,
            }
            if let Tried::Leads(leading) = self.knock(&direct).await {
                return leading;
            }
        }
    }

    /// How long a keeper may take to answer.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.lease.answered_within()
    }

    /// Asks a keeper whether it leads.
    pub(super) async fn knock(self: &Arc<Self>, way: &Way) -> Tried {
        let limit = match way.through {
            Some(_) => 2 * self.answer_timeout(),
            None => self.answer_timeout(),
        };
        let knocking = timeout(limit, self.knock_and_wait(way)).await;
        knocking.unwrap_or_else(|_| Tried::Unreached(format!("no answer within {limit:?}")))
    }

    async fn knock_and_wait(self: &Arc<Self>, way: &Way) -> Tried {
        let keeper = &way.keeper;
        let dialled = match &way.through {
            _ if keeper.name == self.me.name => self.dial_itself().await,
            Some(follower) => self.dial_through(follower, keeper).await,
            None => self.dial(keeper, self.answer_timeout()).await,
        };
        let mut stream = match dialled {
            Ok(Dialled { stream, .. }) => stream,
            Err(ConnectionError::Refused(refusal)) if refusal.is_early() => {
                tracing::debug!(%keeper, reason = refusal.reason, "refused by a keeper for now");
                return Tried::Refused(refusal.reason);
            }
            Err(ConnectionError::Refused(refusal)) => {
                return self.refused(keeper, refusal.reason);
            }
            Err(error) => return Tried::Unreached(error.to_string()),
        };
        match read(&mut stream).await {
            Ok(Some(FromKeeper::Welcome {
                keepers,
                cluster,
                epoch,
            })) => match self.memory.admits(&cluster, epoch) {
                Ok(()) => Tried::Leads(Leading {
                    stream,
                    keepers,
                    cluster,
                }),
                Err(stranger) => {
                    tracing::error!(%keeper, "this node rejects that leader: {stranger}");
                    Tried::Refused(stranger.to_string())
                }
            },
            Ok(Some(FromKeeper::Elsewhere { leader, .. })) => Tried::Elsewhere(leader),
            Ok(Some(FromKeeper::Refused(reason))) => self.refused(keeper, reason),
            Ok(_) => Tried::Refused("unexpected answer".to_owned()),
            Err(error) => Tried::Unreached(error.to_string()),
        }
    }

    fn refused(&self, keeper: &KeeperNode, reason: String) -> Tried {
        if let Some(withheld) = self.refused_by.note(keeper.name.as_str(), &reason) {
            tracing::warn!(%keeper, reason, withheld, "refused by a keeper");
        }
        Tried::Refused(reason)
    }

    /// Opens a connection to the leader, as a member, through a follower.
    async fn dial_through(
        &self,
        follower: &KeeperNode,
        leader: &KeeperNode,
    ) -> Result<Dialled, ConnectionError> {
        let (address, limit) = (follower.address.to_string(), 2 * self.answer_timeout());
        let dialling = self
            .endpoint
            .dial(&follower.name, &address, Purpose::Forward, limit);
        // If the follower refuses, only the route failed: the leader has not refused this node.
        let detour = |error: ConnectionError| ConnectionError::Failed(error.to_string());
        let outer = dialling.await.map_err(detour)?.stream;
        let inner = self.endpoint.secure(&leader.name, outer).await?;
        let sending = self
            .endpoint
            .send_hello(inner, &leader.name, self.purpose());
        sending.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(name: &str) -> KeeperNode {
        KeeperNode {
            name: name.parse().unwrap(),
            address: "127.0.0.1:7401".parse().unwrap(),
        }
    }

    #[test]
    fn only_a_leader_that_was_not_reached_lately_is_reached_through_another_keeper() {
        let (leader, follower) = (keeper("leader"), keeper("follower"));
        let mut unreached = Unreached {
            me: "me".parse().unwrap(),
            noted: Vec::new(),
            remember: Duration::from_secs(60),
        };
        assert_eq!(unreached.way(leader.clone(), &follower).through, None);
        unreached.note(&leader);
        unreached.note(&keeper("me"));
        let way = unreached.way(leader.clone(), &follower);
        assert_eq!(way.through, Some(follower.clone()));
        // A node does not reach a leader through itself, nor itself through others.
        assert_eq!(unreached.way(leader.clone(), &keeper("me")).through, None);
        assert_eq!(unreached.way(keeper("me"), &follower).through, None);
        unreached.remember = Duration::ZERO;
        assert_eq!(unreached.way(leader, &follower).through, None);
    }
}
