//! What must be so in every state.

use soloist_lab::breadth_first::Space;

use super::client::Phase;
use super::steps::Action;
use super::world::{HERE, Role, State, THERE};

impl State {
    pub(crate) fn excludes(&self) -> Result<(), String> {
        let now = self.now;
        let before = self.before.as_ref();
        let relies = [
            self.client.relies(now),
            before.is_some_and(|before| before.relies(now)),
            self.rival.is_some(),
        ];
        if relies.into_iter().filter(|relies| *relies).count() > 1 {
            return Err(format!(
                "the client works now, in its session before, or the rival is inside: {relies:?}"
            ));
        }
        Ok(())
    }

    /// Lets the client connect, all messages arrive and the rival leave. Then client and nodes must
    /// agree, whether the client `returns` to the node that it has left or not.
    pub(crate) fn comes_to_an_end(&self, returns: bool) -> Result<(), String> {
        let mut end = self.clone();
        for _ in 0..1000 {
            let up = end.connections.iter().position(|one| !one.up.is_empty());
            let down = [Role::Now, Role::Before].into_iter().find(|role| {
                let open = end.open(*role);
                open.is_some_and(|open| !end.connections[open].down.is_empty())
            });
            let comes_back = returns
                && end.client_of(Role::Before).is_some()
                && end.open(Role::Before).is_none();
            if let Some(number) = up {
                end.up(number)?;
            } else if let Some(role) = down {
                end.down(role)?;
            } else if end.leaving.is_some() {
                end.end_left()?;
            } else if end.rival.is_some() {
                end.apply(Action::RivalReleases)?;
            } else if end.open(Role::Now).is_none() {
                end.connect(Role::Now);
            } else if comes_back {
                end.connect(Role::Before);
            } else {
                return end.agrees();
            }
        }
        Err("messages never stop".to_owned())
    }

    pub(crate) fn agrees(&self) -> Result<(), String> {
        let phase = self.client.phase;
        let holds = [self.tables[HERE].holds(), self.tables[THERE].holds()];
        let mut held = [0, 0];
        if matches!(phase, Phase::Held(..)) {
            held[self.client.node] = 1;
        }
        let mut may_hold = held;
        if let Some(before) = self.client_of(Role::Before) {
            let is_connected = self.open(Role::Before).is_some();
            let is_kept = match before.phase {
                Phase::Held(..) => true,
                phase if is_connected => {
                    return Err(format!("the client was {phase:?} and nothing happens"));
                }
                // Only the session itself can send it again, if it comes back.
                Phase::Releasing(_) => !before.has_named_release,
                _ => false,
            };
            may_hold[HERE] += usize::from(is_kept);
            if is_connected {
                held = may_hold;
            }
        }
        // It may wait for the hold that it has kept.
        let waits = matches!(phase, Phase::Asked(_)) && (holds != may_hold || holds == [0, 0]);
        if waits || matches!(phase, Phase::Releasing(_)) {
            return Err(format!("the client is {phase:?} and nothing happens"));
        }
        // Without a connection, it may not know that its hold has ended.
        if holds != held && holds != may_hold {
            let before = self.client_of(Role::Before).map(|before| before.phase);
            return Err(format!(
                "the client is {phase:?}, and was {before:?}, and the nodes have {holds:?} holds"
            ));
        }
        Ok(())
    }
}
