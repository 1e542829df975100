//! Dashboards that follow the cluster from a node. All of them share one [`Lookout`], which works
//! only while there are any.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use soloist_api::dashboard::{Change, Changes, History};
use soloist_api::session::NodeMessage;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::Node;
use super::fault::again_after_panics;
use super::lookout::{Look, Lookout};

/// Pause between looks.
const EVERY: Duration = Duration::from_secs(1);

/// Minimum pause between looks, when there is news.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// The dashboards that follow from this node.
pub(crate) struct Follow {
    looks: watch::Sender<Option<Arc<Look>>>,
    /// Whether a task looks. It is started by the first follower, and ends after the last.
    is_looking: Mutex<bool>,
    /// Notified when this node has noted something about its cluster.
    pub news: Notify,
}

impl Default for Follow {
    fn default() -> Self {
        Follow {
            looks: watch::Sender::new(None),
            is_looking: Mutex::default(),
            news: Notify::new(),
        }
    }
}

impl Node {
    /// Follows the cluster from now on.
    pub(crate) fn follow(&self) -> Following {
        let follow = &self.shared.follow;
        let mut is_looking = follow
            .is_looking
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut looks = follow.looks.subscribe();
        looks.mark_changed();
        if !*is_looking {
            *is_looking = true;
            let node = self.clone();
            let look = move || look_for_all(node.clone());
            tokio::spawn(again_after_panics("a look at the cluster", EVERY, look));
        }
        Following {
            looks,
            history: None,
            changes: Arc::default(),
        }
    }
}

/// Looks at the cluster every second, and soon after news, until no dashboard is left.
async fn look_for_all(node: Node) {
    let shared = &node.shared;
    let follow = &shared.follow;
    let mut lookout = Lookout::default();
    loop {
        if shared.fault.has_happened() {
            return;
        }
        let look = lookout.look(&node).await;
        {
            let is_looking = follow.is_looking.lock();
            let mut is_looking = is_looking.unwrap_or_else(PoisonError::into_inner);
            if follow.looks.receiver_count() == 0 || shared.stopped.is_cancelled() {
                // The next follower must not get an old look.
                follow.looks.send_replace(None);
                *is_looking = false;
                return;
            }
            follow.looks.send_replace(Some(Arc::new(look)));
        }
        sleep(PAUSE_MIN).await;
        tokio::select! {
            () = sleep(EVERY - PAUSE_MIN) => {}
            () = follow.news.notified() => {}
            () = shared.stopped.cancelled() => {}
        }
    }
}

/// A dashboard: what it was sent last.
pub(crate) struct Following {
    looks: watch::Receiver<Option<Arc<Look>>>,
    /// The history that it has, once it was sent one.
    history: Option<Arc<History>>,
    changes: Arc<Vec<Change>>,
}

impl Following {
    /// Waits for the next look, and returns what is new in it. Cancel safe.
    pub(crate) async fn next(&mut self) -> Vec<NodeMessage> {
        loop {
            if self.looks.changed().await.is_err() {
                return std::future::pending().await;
            }
            let look = self.looks.borrow_and_update().clone();
            if let Some(look) = look {
                return self.news(&look);
            }
        }
    }

    fn news(&mut self, look: &Look) -> Vec<NodeMessage> {
        let is_first = self.history.is_none();
        let mut news = vec![NodeMessage::Overview(Box::new(look.overview.clone()))];
        let news_of = |sent: &Arc<History>| match Arc::ptr_eq(sent, &look.history) {
            true => None,
            false => new_points(sent, &look.history),
        };
        let history = match &self.history {
            None => Some((*look.history).clone()),
            Some(sent) => news_of(sent),
        };
        news.extend(history.map(NodeMessage::History));
        self.history = Some(Arc::clone(&look.history));
        if !Arc::ptr_eq(&self.changes, &look.changes) || is_first {
            let known: HashSet<&Change> = self.changes.iter().collect();
            let new = look.changes.iter().filter(|change| !known.contains(change));
            let changes: Vec<Change> = new.cloned().collect();
            if !changes.is_empty() || is_first {
                news.push(NodeMessage::Changes(Changes { changes }));
            }
            self.changes = Arc::clone(&look.changes);
        }
        news
    }
}

/// The points from the first one on that is new or has changed since this history was sent.
fn new_points(sent: &History, now: &History) -> Option<History> {
    let end = |history: &History| history.from_s + history.points.len() as u64;
    let known = |second: u64| {
        let index = second.checked_sub(sent.from_s)?;
        sent.points.get(usize::try_from(index).ok()?)
    };
    let is_new = |(second, point)| known(second) != Some(point);
    let skipped = match end(now) < end(sent) {
        // The clock was set back: all is replaced.
        true => 0,
        false => (now.from_s..).zip(&now.points).position(is_new)?,
    };
    Some(History {
        from_s: now.from_s + skipped as u64,
        points: now.points[skipped..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use soloist_api::dashboard::Point;

    use super::*;

    fn history(from_s: u64, entries: &[u64]) -> History {
        let point = |entries: &u64| {
            Some(Point {
                entries: *entries,
                ..Point::default()
            })
        };
        History {
            from_s,
            points: entries.iter().map(point).collect(),
        }
    }

    #[test]
    fn points_are_sent_once_and_again_if_a_member_tells_more() {
        let sent = history(10, &[1, 2, 3]);
        assert_eq!(new_points(&sent, &sent), None);
        let new = new_points(&sent, &history(11, &[2, 3, 4]));
        assert_eq!(new, Some(history(13, &[4])));
        let more = new_points(&sent, &history(11, &[2, 5, 4]));
        assert_eq!(more, Some(history(12, &[5, 4])));
        assert_eq!(new_points(&history(10, &[]), &sent), Some(sent.clone()));
    }

    #[test]
    fn a_clock_that_was_set_back_replaces_the_history() {
        let sent = history(100, &[1, 2, 3]);
        for back in [history(99, &[0, 1, 2]), history(5, &[1, 2, 3])] {
            assert_eq!(new_points(&sent, &back), Some(back));
        }
    }
}
