//! Answers of a node about what it has kept for dashboards: its report, its history, its notes and
//! its last lock events.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::{EndReason, Event, EventKind, Fence};

use super::event::{self, unix_ms};
use super::gather::is_down;
use super::inquiry::EventsAsked;
use super::shared::Shared;
use soloist_core::locks::LockEvent;
use soloist_core::record::{Gap, Noted, Report, Second, WAIT_UNUSUAL_MS};

/// Maximum number of a lock's events in an answer.
pub(crate) const RECENT_MAX: usize = 100;

/// Approximate maximum size of the events in one answer, in bytes.
const BYTES_MAX: usize = 128 << 10;

/// The same for each kind of notes: older departures, the membership, and losses and links. With
/// 15 minutes of busy seconds, they fit into a frame.
const NOTES_BYTES_MAX: [usize; 3] = [64 << 10, 64 << 10, 96 << 10];
/// Approximate maximum size of the events for all watchers in one answer, in bytes, and the size of
/// one without events.
const EVENTS_BYTES_MAX: usize = 384 << 10;
const KEPT_BYTES: usize = 32;

/// What a node has kept for dashboards.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub report: Report,
    /// Since when the node records, in seconds since 1970.
    pub since_s: u64,
    /// The second that it is now by the node's clock, since 1970. Earlier ones are complete.
    pub now_s: u64,
    /// The seconds that were asked for in which something happened.
    pub seconds: Vec<(u64, Second)>,
    /// The last notes that were asked for, with their numbers.
    pub notes: Vec<(u64, Noted)>,
}

/// Lock events of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptEvents {
    pub gap: Gap,
    pub events: Vec<EventRow>,
    /// Number of the last event that was examined.
    pub last: u64,
    /// Whether there are more, which did not fit.
    pub is_cut: bool,
}

/// An [`Event`] of a node, with its number. The JSON leaves fields out, which the encoding between
/// nodes cannot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct EventRow {
    pub number: u64,
    pub at_unix_ms: u64,
    event: EventKind,
    lock: String,
    owner: String,
    fence: Option<Fence>,
    after_us: Option<u64>,
    reason: Option<EndReason>,
}

impl EventRow {
    pub(super) fn new(number: u64, at_unix_ms: u64, event: &LockEvent) -> Self {
        let event = event::of(event, at_unix_ms, "");
        EventRow {
            number,
            at_unix_ms,
            event: event.event,
            lock: event.lock,
            owner: event.owner,
            fence: event.fence,
            after_us: event.after_us,
            reason: event.reason,
        }
    }

    pub(crate) fn into_event(self, node: &str) -> Event {
        Event {
            at_unix_ms: self.at_unix_ms,
            lock: self.lock,
            owner: self.owner,
            fence: self.fence,
            after_us: self.after_us,
            reason: self.reason,
            ..event::empty(self.event, node)
        }
    }

    /// Approximate size in bytes.
    fn bytes(&self) -> usize {
        self.lock.len() + self.owner.len() + 32
    }
}

impl Shared {
    /// Returns what this node has kept: the seconds from this one on, and the notes after this
    /// number. Returns `None` if the node has failed.
    pub(super) fn kept(&self, seconds_from: u64, notes_after: u64) -> Option<Kept> {
        let links = self.links().status();
        let links_up = self.links().counters().links_up;
        let now_ms = unix_ms(Duration::ZERO);
        let (links_down, notes) = {
            let journal = self.keeping.membership.journal();
            let down = links.iter().filter(|link| is_down(link)).map(|link| {
                let since = journal.link_down_since(&link.name);
                (
                    link.name.clone(),
                    now_ms.saturating_sub(since.unwrap_or(now_ms)),
                )
            });
            let notes = journal.after(notes_after).into_iter().zip(NOTES_BYTES_MAX);
            let notes = notes.flat_map(|(notes, bytes_max)| last_that_fit(notes, bytes_max));
            (down.collect(), notes.collect())
        };
        let keeper = self.keeping.membership.keeper();
        let mut core = self.living()?;
        core.look(self);
        let recorder = core.memory().recorder();
        let seconds = recorder.seconds().from(seconds_from);
        let seconds = seconds.map(|(at, second)| (at, second.clone())).collect();
        let long = recorder.long_waits(now_ms.saturating_sub(WAIT_UNUSUAL_MS));
        let long_waits = long.waits.iter().map(|wait| {
            let waited_ms = now_ms.saturating_sub(wait.since_ms);
            (wait.lock.to_string(), wait.owner.to_string(), waited_ms)
        });
        let table = core.table();
        Some(Kept {
            report: Report {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                locks: table.locks() as u64,
                holds: table.holds() as u64,
                waiters: table.waiters() as u64,
                links_up,
                certificate_ends_ms: self.certificate_ends_ms,
                keeper_stopped: keeper.and_then(|keeper| keeper.view().stopped),
                links_down,
                long_waits: long_waits.collect(),
                has_more_waits: long.has_more,
            },
            since_s: self.started_ms / 1000,
            now_s: now_ms / 1000,
            seconds,
            notes,
        })
    }

    /// Returns what was asked for of this node's events, as much as fits.
    pub(super) fn events_after(&self, asked: &[EventsAsked]) -> Option<Vec<KeptEvents>> {
        let mut bytes = 0;
        let mut all = Vec::new();
        for asked in asked {
            let kept = self.events_asked(asked)?;
            bytes += kept.events.iter().map(EventRow::bytes).sum::<usize>() + KEPT_BYTES;
            if bytes > EVENTS_BYTES_MAX && !all.is_empty() {
                break;
            }
            all.push(kept);
        }
        Some(all)
    }

    /// The core is locked for one watcher's events at a time.
    fn events_asked(&self, asked: &EventsAsked) -> Option<KeptEvents> {
        let core = self.living()?;
        let events = core.memory().recorder().events();
        let mut kept = KeptEvents {
            gap: Gap::None,
            events: Vec::new(),
            last: events.last(),
            is_cut: false,
        };
        let Some(after) = asked.after else {
            return Some(kept);
        };
        let (gap, events) = events.after(after);
        kept.gap = gap;
        let mut bytes = 0;
        for (number, (at_ms, event)) in events {
            if *at_ms < asked.since_ms || !lock_of(event).starts_with(&asked.prefix) {
                continue;
            }
            let row = EventRow::new(number, *at_ms, event);
            bytes += row.bytes();
            kept.events.push(row);
            if bytes > BYTES_MAX {
                kept.last = number;
                kept.is_cut = true;
                break;
            }
        }
        Some(kept)
    }

    /// Returns the last events of a lock on this node, oldest first.
    pub(super) fn recent_events(&self, lock: &str) -> Option<Vec<EventRow>> {
        let core = self.living()?;
        let mut recent = VecDeque::new();
        for (number, (at_ms, event)) in core.memory().recorder().events().iter() {
            if lock_of(event) == lock {
                if recent.len() == RECENT_MAX {
                    recent.pop_front();
                }
                recent.push_back((number, at_ms, event));
            }
        }
        let rows = recent.into_iter();
        Some(
            rows.map(|(number, at_ms, event)| EventRow::new(number, *at_ms, event))
                .collect(),
        )
    }
}

/// Returns the last notes that fit into this many bytes.
fn last_that_fit(mut notes: Vec<(u64, Noted)>, bytes_max: usize) -> Vec<(u64, Noted)> {
    let mut bytes = 0;
    let fits = |(_, noted): &&(u64, Noted)| {
        bytes += noted.bytes();
        bytes <= bytes_max
    };
    let fitting = notes.iter().rev().take_while(fits).count();
    notes.drain(..notes.len() - fitting);
    notes
}

fn lock_of(event: &LockEvent) -> &str {
    match event {
        LockEvent::Granted { grant, .. } => grant.lock.as_str(),
        LockEvent::Waiting { lock, .. }
        | LockEvent::Denied { lock, .. }
        | LockEvent::Cancelled { lock, .. }
        | LockEvent::Ended { lock, .. } => lock.as_str(),
    }
}
