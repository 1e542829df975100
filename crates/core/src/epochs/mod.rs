//! Epochs: which nodes are members and how that changes, so that the algorithms need not handle
//! failures.
//!
//! - [`roster`]: the state that the keepers agree on: the epochs, their members, and which member
//!   starts inside which lock.
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
