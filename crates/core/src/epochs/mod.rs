//! Epochs: which nodes are members and how that changes, so that the algorithms need not handle
//! failures.
//!
//! - [`roster`]: the state that the keepers agree on: the epochs and their members.
//! - [`leader`]: the decisions of the keepers' leader: leases, and the change from one epoch to the
//!   next.
//! - [`member`]: a node's part: its lease and its lock table; it freezes, reports and installs.
//! - `candidates`: nodes that may join. `backoff`: nodes that must wait before they join. `pace`:
//!   how often an epoch may begin.
//! - [`pieces`]: splits long reports and long lists of held locks.
//! - `partitions`: members that cannot reach each other, and which of them are evicted.
//! - [`message`]: the messages between members and the leader. [`lease`]: how long a grant is
//!   valid.
//!
//! All of these are pure state machines: the caller passes the time in. Sockets and Raft are
//! elsewhere.
//!
//! Why no two nodes are inside a lock at the same time, although members may crash, sleep or be
//! partitioned:
//! - A member whose lease is no longer valid has lost its holds, by its own clock, before the
//!   keepers' leader acts without it.
//! - A member that has reported neither sends nor handles messages of earlier epochs. So no lock
//!   moves between the first report and the last, and no two members report the same lock.
//! - An epoch starts from exactly what was reported, with fresh instances of the algorithms.
//!
//! Reports and epochs have hashes of lock names instead of the names: see
//! [`name_hash`](crate::name_hash). If two names have the same hash, this holds all the same:
//! - One member holds both locks. It reports the hash once, and starts inside both.
//! - Two members hold one each. Both report the hash. The leader believes neither, as if both had
//!   reported the same lock, and evicts both. Their holds end with their leases.
//! - A member holds one, and nobody the other. All members start with it inside the other as well.
//!   That is what happens to a lock that is released between report and installation, and it leaves
//!   as that one does: as soon as it takes part in that lock. The holder of the first lock is not
//!   concerned. Whether a lock was forgotten since the epoch began is known by its name, so the two
//!   never change each other's state. In two algorithms, a request need not reach the node that is
//!   inside, so requests may have to wait for the next epoch, which has another key.
//!
//! With 128 bits and a key that clients do not know, none of this is expected to happen ever.
//!
//! The keepers do not store what is held. A member's report for an epoch never changes, so every
//! leader that collects the reports for an epoch starts it from the same. If the leader that
//! installed an epoch is gone, and a member has not installed it, another epoch begins: that member
//! has not taken part in anything since its last report, and reports what it still holds.

mod backoff;
mod candidates;
mod early;
pub mod leader;
pub mod lease;
pub mod member;
pub mod message;
mod pace;
mod partitions;
pub mod pieces;
pub mod roster;
