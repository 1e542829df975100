//! What a node remembers of the last minutes, and how a cluster is judged.
//!
//! [`Recorder`] keeps a node's lock events and one-second aggregates, [`Journal`] its notes about
//! the cluster. Both are bounded: see their documentation. A node that serves a dashboard merges
//! what all members have kept ([`merged_changes`], [`Seconds::add`]), collects [`Facts`], and
//! [`judge`](Facts::judge)s them beside the [`SeenProblems`] of earlier looks.
//!
//! Times are wall-clock times, in milliseconds or seconds since 1970. They are for people, and
//! nothing in a cluster is decided by them.

mod changes;
mod departures;
mod facts;
mod journal;
mod problems;
mod recorder;
mod ring;
mod seconds;
mod well;
mod words;

pub use changes::merged_changes;
pub use departures::{DEPARTURES_MAX, Departures};
pub use facts::{Facts, HolderFact, KeeperFact, MemberFact, OwnMembership, Report, WaitFact};
pub use journal::{JOURNAL_MAX, Journal, Note, Noted, settled};
pub use problems::{OUTSIDE_SHOWN_MS, SeenProblems, WAIT_UNUSUAL_MS};
pub use recorder::{EVENTS_KEPT, LongWaits, OldestWait, Recorder, TimedEvent};
pub use ring::{Gap, Ring};
pub use seconds::{Buckets, SECONDS_KEPT, Second, Seconds};
pub(crate) use words::names;
