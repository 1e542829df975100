//! Questions between nodes: who holds, who waits, how are you?

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::shared::Shared;
use crate::Moment;
use soloist_api::LockName;
use soloist_core::locks::LockView;

/// First bytes of frames; a lock's message has another.
const QUESTION: u8 = 2;
const ANSWER: u8 = 3;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much an answer may weigh, so that it fits a frame.
const ANSWER_BYTES_MAX: usize = 512 << 10;

/// How many bytes are filled, and how many locks looked at, while everybody else waits for the table.
const PIECE_BYTES: usize = 16 << 10;
const PIECE_LOOKS: usize = 128;

/// How many such pieces make an answer at most: most locks may be idle, and then it takes many to fill it.
const PIECES_MAX: usize = 256;

/// What a node may be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// Who holds this lock on your side, and who waits?
    Lock(String),
    /// Which locks does somebody on your side hold or wait for? By name, those after this one.
    Locks(Option<String>),
    /// How are you?
    Health,
}

/// What it answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Lock(Option<LockView>),
    Locks {
        locks: Vec<LockView>,
        /// There may be others after this name.
        next: Option<String>,
    },
    Health(Health),
}

/// How a node is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Health {
    pub version: String,
    pub locks: u64,
    pub holds: u64,
    pub waiters: u64,
    pub links_up: u64,
}

/// Questions that wait for their answers.
#[derive(Default)]
pub(crate) struct Inquiries {
    next: AtomicU64,
    open: Mutex<HashMap<u64, (u64, oneshot::Sender<Answer>)>>,
}

impl Inquiries {
    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (u64, oneshot::Sender<Answer>)>> {
        self.open.lock().expect("no thread panicked in it")
    }
}

/// Forgets a question that is asked no more.
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
    /// Asks one node; nothing, if it does not answer in time.
    pub async fn ask(&self, node: u64, question: &Question) -> Option<Answer> {
        if node == self.core().me().incarnation {
            return Some(self.answer(question));
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
        tokio::time::timeout(PATIENCE, receiver).await.ok()?.ok()
    }

    fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Lock(name) => {
                let mut core = self.core();
                core.look(self);
                let name = LockName::new(name).ok();
                let view = name.and_then(|name| core.table().view(Moment::now(), &name));
                Answer::Lock(view)
            }
            Question::Locks(after) => self.locks_after(after.as_deref()),
            Question::Health => {
                let mut core = self.core();
                core.look(self);
                let table = core.table();
                Answer::Health(Health {
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    locks: table.locks() as u64,
                    holds: table.holds() as u64,
                    waiters: table.waiters() as u64,
                    links_up: self.links().counters().links_up,
                })
            }
        }
    }

    /// The locks after this name. The table is locked for one piece at a time.
    fn locks_after(&self, after: Option<&str>) -> Answer {
        let mut locks = Vec::new();
        let mut next = after.map(str::to_owned);
        let mut left = ANSWER_BYTES_MAX;
        for _ in 0..PIECES_MAX {
            let page = {
                let mut core = self.core();
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
            // The mutex is not fair: without this, the same thread would likely get it again.
            std::thread::yield_now();
        }
        Answer::Locks { locks, next }
    }
}

/// A frame that is no lock's message arrived. It may be anything.
pub(super) fn receive(shared: &Shared, from: u64, frame: &[u8]) -> Result<(), String> {
    let unreadable = || format!("a frame of {} bytes that nobody can read", frame.len());
    match frame.split_first() {
        Some((&QUESTION, rest)) => {
            let (number, question): (u64, Question) = decode(rest).ok_or_else(unreadable)?;
            let answer = shared.answer(&question);
            let frame = encode(ANSWER, &(number, answer));
            // Who hears nothing asks again.
            shared.links().send_if_room(from, &frame);
            Ok(())
        }
        Some((&ANSWER, rest)) => {
            let (number, answer): (u64, Answer) = decode(rest).ok_or_else(unreadable)?;
            let mut open = shared.inquiries.open();
            // An answer that comes too late, or from somebody else, is to nobody.
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
    postcard::to_extend(content, vec![kind]).expect("it has no part that cannot be encoded")
}

fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((content, [])) => Some(content),
        _ => None,
    }
}
