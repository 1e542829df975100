//! Ends what a client left behind on the node that it moved away from.

use std::time::Duration;

use soloist_api::session::Left;
use soloist_core::locks::Client;
use tokio::time::{sleep, timeout};

use super::super::Api;
use crate::node::inquiry::{NodeAnswer, NodeQuestion};
use crate::node::sessions::LeftSession;

/// Number of sessions on other nodes that a node ends at a time. What is left beyond that expires.
pub(in crate::http) const ENDINGS_MAX: usize = 1024;

/// Pause before the other node is asked again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Makes the other node end the session's requests and unread grants. Asks again while this node or
/// the other one is not a member, or the other one does not answer: a request that waits there may
/// be granted when that node is back. Gives up after the session's time to live, when it has
/// expired.
pub(super) async fn end(api: Api, client: Client, left: Left, ttl: Duration) {
    let Ok(_one_of_many) = api.endings.place(&client) else {
        tracing::debug!(node = left.node, "what client {client} left there expires");
        return;
    };
    let question = NodeQuestion::LeaveSession(LeftSession {
        session: left.session,
        secret: left.secret.0,
        seen: left.seen,
        release: left.release,
    });
    let ended = async {
        while !has_ended(&api, &left.node, &question).await {
            sleep(RETRY_EVERY).await;
        }
    };
    tokio::select! {
        () = api.stopping.cancelled() => {}
        _ = timeout(ttl, ended) => {}
    }
}

/// Asks the other node once. Returns whether nothing is left to do.
async fn has_ended(api: &Api, node: &str, question: &NodeQuestion) -> bool {
    let shared = &api.node.shared;
    let Some(members) = shared.living().map(|core| core.members()) else {
        return true;
    };
    let member = members.iter().find(|member| member.name.as_str() == node);
    let Some(member) = member else {
        return false;
    };
    let answer = shared.ask(member.incarnation, question).await;
    matches!(answer, Some(NodeAnswer::Left(_)))
}
