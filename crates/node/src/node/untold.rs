//! Holds that ended with their node, and whose holders have not heard of it yet.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::locks::HoldId;

/// A holder that has just been granted a lock, or that connects anew, is not heard of for a moment. If its node went away
/// right then, it would rely on its hold for as long as its time to live, while somebody else is let in.
#[derive(Default)]
pub(crate) struct Untold {
    state: Mutex<State>,
    heard: Notify,
}

#[derive(Default)]
struct State {
    holds: HashSet<HoldId>,
    /// When the last of them ended.
    since: Option<Instant>,
}

impl Untold {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panicked in it")
    }

    /// These have ended.
    pub fn note(&self, holds: impl Iterator<Item = HoldId>) {
        let mut state = self.state();
        state.holds.extend(holds);
        state.since = Some(Instant::now());
    }

    /// A holder was told, or tells itself that it needs it no more.
    pub fn told(&self, hold: HoldId) {
        let mut state = self.state();
        if state.holds.remove(&hold) && state.holds.is_empty() {
            self.heard.notify_waiters();
        }
    }

    /// Waits until all were told, up to `within` after their holds ended: some may be dead.
    pub async fn all_told(&self, within: Duration) {
        let heard = self.heard.notified();
        let since = {
            let state = self.state();
            state.since.filter(|_| !state.holds.is_empty())
        };
        if let Some(since) = since {
            let _ = timeout_at(since + within, heard).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(number: u8) -> HoldId {
        format!("{number:032x}").parse().unwrap()
    }

    #[tokio::test]
    async fn waits_for_all_who_were_not_told_and_not_for_ever() {
        let untold = Untold::default();
        let long = Duration::from_secs(3600);
        untold.all_told(long).await;
        untold.note([hold(1), hold(2)].into_iter());
        untold.told(hold(1));
        untold.told(hold(3));
        untold.all_told(Duration::from_millis(1)).await;
        tokio::join!(untold.all_told(long), async { untold.told(hold(2)) });
        untold.all_told(long).await;
    }
}
