//! Questions between nodes: the holders and waiters of a lock, a node's health, and what it has
//! kept for dashboards.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::kept::{EventRow, Kept, KeptEvents};
use super::longest::Longest;
use super::sessions::LeftSession;
use super::shared::Shared;
use crate::Moment;
use soloist_api::LockName;
use soloist_core::Incarnation;
use soloist_core::locks::LockView;

/// First bytes of frames. Messages of locks start with a different one.
const QUESTION: u8 = 2;
const ANSWER: u8 = 3;

/// Timeout for an answer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum size of an answer, so that it fits into a frame.
pub(super) const ANSWER_BYTES_MAX: usize = 512 << 10;

/// Bytes filled and locks examined while the table is locked and everything else waits for it.
const PIECE_BYTES: usize = 16 << 10;
pub(super) const PIECE_LOOKS: usize = 128;

/// Maximum number of such pieces per answer. If most locks are idle, it takes many pieces to fill
/// an answer.
const PIECES_MAX: usize = 256;

/// A question to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum NodeQuestion {
    /// The holder and waiters of this lock on the node.
    Lock(String),
    /// The locks that are held or waited for on the node, by name, starting after this one.
    Locks(Option<String>),
    /// The node's health.
    Health,
    /// End what a client left behind when it moved to another node.
    LeaveSession(LeftSession),
    /// What the node has kept for dashboards: the seconds since 1970 from `seconds_from` on, and
    /// the notes after `notes_after`.
    Kept { seconds_from: u64, notes_after: u64 },
    /// Some of the node's lock events, for each watcher of the node that asks.
    Events(Vec<EventsAsked>),
    /// The last events of this lock on the node.
    Recent(String),
    /// The locks with this prefix that clients have waited for longest on the node, by name only.
    Longest(String),
    /// The holders and waiters of these locks on the node.
    Views(Vec<String>),
}

/// Some lock events of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct EventsAsked {
    /// The events after this number. Without it, only the number of the last one.
    pub after: Option<u64>,
    /// No event before this time, in milliseconds since 1970.
    pub since_ms: u64,
    /// Only events of locks with this prefix.
    pub prefix: String,
}

/// The answer to a [`NodeQuestion`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum NodeAnswer {
    Lock(Option<LockView>),
    Locks {
        locks: Vec<LockView>,
        /// If set, there may be more locks after this name.
        next: Option<String>,
    },
    Health(Health),
    /// Whether the node had that session.
    Left(bool),
    Kept(Box<Kept>),
    /// In the order of the question. What does not fit is left out at the end.
    Events(Vec<KeptEvents>),
    Recent(Vec<EventRow>),
    Longest(Longest),
    Views {
        /// Those that are held or waited for on the node.
        locks: Vec<LockView>,
        /// Number of locks of the question that were examined. The others did not fit.
        examined: u64,
    },
}

/// Health of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Health {
    pub version: String,
    pub locks: u64,
    pub holds: u64,
    pub waiters: u64,
    pub links_up: u64,
}

/// Questions waiting for an answer.
#[derive(Default)]
pub(crate) struct Inquiries {
    next: AtomicU64,
    open: Mutex<HashMap<u64, (Incarnation, oneshot::Sender<NodeAnswer>)>>,
}

impl Inquiries {
    fn open(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<u64, (Incarnation, oneshot::Sender<NodeAnswer>)>> {
        self.open
            .lock()
            .expect("no thread panics while it has the mutex")
    }
}

/// Removes a question when its future is dropped.
struct Open<'s> {
    inquiries: &'s Inquiries,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.inquiries.open().remove(&self.number);
    }
}

impl Shared {
    /// Asks one node. Returns `None` if it does not answer in time.
    pub(crate) async fn ask(
        &self,
        node: Incarnation,
        question: &NodeQuestion,
    ) -> Option<NodeAnswer> {
        if node == self.living()?.me().incarnation {
            return self.answer(question);
        }
        let (sender, receiver) = oneshot::channel();
        let number = self.inquiries.next.fetch_add(1, Ordering::Relaxed);
        self.inquiries.open().insert(number, (node, sender));
        let _open = Open {
            inquiries: &self.inquiries,
            number,
        };
        let frame = encode(QUESTION, &(number, question));
        if !self.links().send_if_room(node, &frame) {
            return None;
        }
        tokio::time::timeout(TIMEOUT, receiver).await.ok()?.ok()
    }

    /// Answers a question, unless this node has failed.
    fn answer(&self, question: &NodeQuestion) -> Option<NodeAnswer> {
        match question {
            NodeQuestion::Lock(name) => {
                let mut core = self.living()?;
                core.look(self);
                let name = LockName::new(name).ok();
                let view = name.and_then(|name| core.table().view(Moment::now(), &name));
                Some(NodeAnswer::Lock(view))
            }
            NodeQuestion::Locks(after) => self.locks_after(after.as_deref()),
            NodeQuestion::Kept {
                seconds_from,
                notes_after,
            } => {
                let kept = self.kept(*seconds_from, *notes_after)?;
                Some(NodeAnswer::Kept(Box::new(kept)))
            }
            NodeQuestion::Events(asked) => self.events_after(asked).map(NodeAnswer::Events),
            NodeQuestion::Recent(lock) => self.recent_events(lock).map(NodeAnswer::Recent),
            NodeQuestion::Longest(prefix) => self.longest(prefix).map(NodeAnswer::Longest),
            NodeQuestion::Views(names) => self.views(names),
            NodeQuestion::LeaveSession(left) => {
                Some(NodeAnswer::Left(self.living()?.leave_session(self, left)))
            }
            NodeQuestion::Health => {
                let mut core = self.living()?;
                core.look(self);
                let table = core.table();
                Some(NodeAnswer::Health(Health {
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    locks: table.locks() as u64,
                    holds: table.holds() as u64,
                    waiters: table.waiters() as u64,
                    links_up: self.links().counters().links_up,
                }))
            }
        }
    }

    /// Returns the locks after this name. The table is locked for one piece at a time.
    fn locks_after(&self, after: Option<&str>) -> Option<NodeAnswer> {
        let mut locks = Vec::new();
        let mut next = after.map(str::to_owned);
        let mut left = ANSWER_BYTES_MAX;
        for _ in 0..PIECES_MAX {
            let page = {
                let mut core = self.living()?;
                core.look(self);
                let bytes = left.min(PIECE_BYTES);
                let table = core.table();
                table.views(Moment::now(), next.as_deref(), bytes, PIECE_LOOKS)
            };
            locks.extend(page.locks);
            next = page.next;
            left = left.saturating_sub(page.bytes);
            if next.is_none() || left == 0 {
                break;
            }
            // The mutex is not fair: without this, the same thread would probably get it again.
            std::thread::yield_now();
        }
        Some(NodeAnswer::Locks { locks, next })
    }
}

/// Handles a frame that is not a lock's message. Its bytes are untrusted.
pub(super) fn receive(shared: &Shared, from: Incarnation, frame: &[u8]) -> Result<(), String> {
    let unreadable = || format!("a frame of {} bytes that cannot be decoded", frame.len());
    match frame.split_first() {
        Some((&QUESTION, rest)) => {
            let (number, question): (u64, NodeQuestion) = decode(rest).ok_or_else(unreadable)?;
            if let Some(answer) = shared.answer(&question) {
                let frame = encode(ANSWER, &(number, answer));
                // If this is lost, the other node asks again.
                shared.links().send_if_room(from, &frame);
            }
            Ok(())
        }
        Some((&ANSWER, rest)) => {
            let (number, answer): (u64, NodeAnswer) = decode(rest).ok_or_else(unreadable)?;
            let mut open = shared.inquiries.open();
            // Ignore an answer that is late or comes from another node.
            if open.get(&number).is_some_and(|(asked, _)| *asked == from)
                && let Some((_, sender)) = open.remove(&number)
            {
                let _ = sender.send(answer);
            }
            Ok(())
        }
        _ => Err(unreadable()),
    }
}

fn encode(kind: u8, content: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(content, vec![kind]).expect("every field can be encoded")
}

fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((content, [])) => Some(content),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use soloist_api::{EndReason, Fence};
    use soloist_core::locks::{HolderView, LockEvent, WaiterView};
    use soloist_core::record::{Gap, Note, Noted, Report, Second};

    use super::*;
    use crate::golden::GoldenBytes;
    use crate::node::longest::LockWait;

    fn kept_question() -> NodeQuestion {
        NodeQuestion::Kept {
            seconds_from: 1_700_000_000,
            notes_after: 300,
        }
    }

    fn events_question() -> NodeQuestion {
        NodeQuestion::Events(vec![EventsAsked {
            after: Some(300),
            since_ms: 1_700_000_000_000,
            prefix: "a/".to_owned(),
        }])
    }

    fn kept() -> Kept {
        let mut second = Second {
            entries: 2,
            lost: 1,
            ..Second::default()
        };
        second.wait.note(Duration::from_millis(1));
        let note = |note| Noted { at_ms: 5, note };
        let node = || "b".to_owned();
        let notes = [
            Note::Installed {
                epoch: 7,
                before: Some(6),
                members: 3,
                joined: vec![node()],
                gone: vec![node()],
                stood_still_us: Some(38_000),
            },
            Note::Left {
                node: node(),
                epoch: 7,
            },
            Note::Evicted {
                node: node(),
                epoch: 7,
                reason: "because".to_owned(),
                holds: Some(2),
            },
            Note::Elected { term: 4 },
            Note::Lost {
                reason: EndReason::EpochLost,
                holds: 2,
                locks: vec!["x".to_owned()],
            },
            Note::LinkDown {
                to: node(),
                reason: "because".to_owned(),
            },
            Note::LinkUp { to: node() },
        ];
        Kept {
            report: Report {
                version: "0.1.0".to_owned(),
                locks: 3,
                holds: 2,
                waiters: 1,
                links_up: 4,
                certificate_ends_ms: Some(1_800_000_000_000),
                keeper_stopped: Some("because".to_owned()),
                links_down: vec![(node(), 900)],
                long_waits: vec![("x".to_owned(), "one".to_owned(), 900)],
                has_more_waits: true,
            },
            since_s: 1_700_000_000,
            now_s: 1_700_000_002,
            seconds: vec![(1_700_000_001, second)],
            notes: (300..).zip(notes.map(note)).collect(),
        }
    }

    fn events() -> KeptEvents {
        let lock = LockName::new("x").unwrap();
        let event = LockEvent::Ended {
            hold: "00112233445566778899aabbccddeeff".parse().unwrap(),
            lock,
            owner: "one".into(),
            fence: Fence::first_of(7),
            end: EndReason::Expired,
            held: Duration::from_millis(900),
        };
        KeptEvents {
            gap: Gap::Items(3),
            events: vec![EventRow::new(300, 1_700_000_000_000, &event)],
            last: 300,
            is_cut: false,
        }
    }

    fn longest() -> Longest {
        Longest {
            locks: vec![LockWait {
                name: "x".to_owned(),
                waited_for: Some(Duration::from_millis(900)),
                held_for: None,
            }],
            held: 3,
            is_cut: true,
        }
    }

    #[test]
    fn questions_and_answers_have_golden_bytes() {
        // A new question or answer goes into the lists below.
        let _ = |question| match question {
            NodeQuestion::Lock(_)
            | NodeQuestion::Locks(_)
            | NodeQuestion::Health
            | NodeQuestion::LeaveSession(_)
            | NodeQuestion::Kept { .. }
            | NodeQuestion::Events(_)
            | NodeQuestion::Recent(_)
            | NodeQuestion::Longest(_)
            | NodeQuestion::Views(_) => {}
        };
        let _ = |answer| match answer {
            NodeAnswer::Lock(_)
            | NodeAnswer::Locks { .. }
            | NodeAnswer::Health(_)
            | NodeAnswer::Left(_)
            | NodeAnswer::Kept(_)
            | NodeAnswer::Events(_)
            | NodeAnswer::Recent(_)
            | NodeAnswer::Longest(_)
            | NodeAnswer::Views { .. } => {}
        };
        let mut golden = GoldenBytes::default();
        let left = LeftSession {
            session: "s".to_owned(),
            secret: "x".to_owned(),
            seen: 4,
            release: vec![3],
        };
        for (label, question) in [
            ("ask for a lock", NodeQuestion::Lock("x".to_owned())),
            ("ask for the first locks", NodeQuestion::Locks(None)),
            (
                "ask for more locks",
                NodeQuestion::Locks(Some("x".to_owned())),
            ),
            ("ask for health", NodeQuestion::Health),
            ("leave a session", NodeQuestion::LeaveSession(left)),
            ("ask what was kept", kept_question()),
            ("ask for events", events_question()),
            (
                "ask for a lock's events",
                NodeQuestion::Recent("x".to_owned()),
            ),
            ("ask for waits", NodeQuestion::Longest("a/".to_owned())),
            (
                "ask for some locks",
                NodeQuestion::Views(vec!["x".to_owned()]),
            ),
        ] {
            golden.add_bytes(label, &encode(QUESTION, &(300_u64, question)));
        }
        let lock = LockView {
            name: "x".to_owned(),
            algorithm: "raymond".to_owned(),
            fence: Fence::first_of(7),
            holder: Some(HolderView {
                owner: "one".to_owned(),
                fence: Fence::first_of(7),
                held_for: Duration::from_millis(1_500),
                expires_in: Some(Duration::from_secs(30)),
            }),
            waiters: vec![WaiterView {
                owner: "two".to_owned(),
                waited_for: Duration::from_millis(900),
            }],
            waiting: 1,
        };
        let health = Health {
            version: "0.1.0".to_owned(),
            locks: 3,
            holds: 2,
            waiters: 1,
            links_up: 4,
        };
        let locks = NodeAnswer::Locks {
            locks: vec![lock.clone()],
            next: Some("x".to_owned()),
        };
        let views = NodeAnswer::Views {
            locks: vec![lock.clone()],
            examined: 1,
        };
        for (label, answer) in [
            ("no lock", NodeAnswer::Lock(None)),
            ("a lock", NodeAnswer::Lock(Some(lock))),
            ("locks", locks),
            ("health", NodeAnswer::Health(health)),
            ("left", NodeAnswer::Left(true)),
            ("what was kept", NodeAnswer::Kept(Box::new(kept()))),
            ("events", NodeAnswer::Events(vec![events()])),
            ("a lock's events", NodeAnswer::Recent(events().events)),
            ("waits", NodeAnswer::Longest(longest())),
            ("some locks", views),
        ] {
            let bytes = encode(ANSWER, &(300_u64, &answer));
            assert_eq!(
                decode::<(u64, NodeAnswer)>(&bytes[1..]),
                Some((300, answer))
            );
            golden.add_bytes(label, &bytes);
        }
        golden.check("inquiry.txt");
    }
}
