//! Ends what a client left behind on the node that it moved away from.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::Left;

use crate::node::inquiry::{Answer, Question};
use crate::node::sessions::LeftSession;
use crate::node::shared::Shared;

/// Pause before the other node is asked again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// When to give up. The session's requests and grants then end when it expires.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// Makes the other node end the session's requests and unread grants. Asks again until that node
/// answers or is no longer a member.
pub(super) async fn end(shared: Arc<Shared>, left: Left) {
    let question = Question::LeaveSession(LeftSession {
        session: left.session,
        secret: left.secret.0,
        seen: left.seen,
        release: left.release,
    });
    let attempts = async {
        loop {
            let members = shared.living()?.members();
            let node = members
                .iter()
                .find(|member| member.name.as_str() == left.node);
            // The holds of a node that is no longer a member have ended.
            let answer = shared.ask(node?.incarnation, &question).await;
            if let Some(Answer::Left(_)) = answer {
                return Some(());
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    };
    let _ = tokio::time::timeout(GIVE_UP_AFTER, attempts).await;
}
