//! Exit codes.

use std::process::ExitCode;

/// A run failed, a fence is stale, a lock is free, a node is down, or `doctor` has warnings.
pub(crate) const FAILED: u8 = 1;
/// The input is invalid.
pub(crate) const INVALID: u8 = 2;
/// A search was not exhausted.
pub(crate) const NOT_EXHAUSTED: u8 = 3;
/// `doctor` found a critical problem.
pub(crate) const CRITICAL: u8 = 3;
/// No node can be reached. Same value as `EX_UNAVAILABLE`.
pub(crate) const NO_NODE: u8 = 69;
/// The node panicked. Same value as `EX_SOFTWARE`.
pub(crate) const PANICKED: u8 = 70;
/// The cluster cannot determine who holds what: there is no majority of keepers, or some nodes do
/// not answer. Same value as `EX_IOERR`.
pub(crate) const UNKNOWN: u8 = 74;
/// The lock was not acquired in time. Same value as `EX_TEMPFAIL`; `lock -E` sets another one.
pub(crate) const NOT_ACQUIRED: u8 = 75;
/// The lock was lost while the command ran.
pub(crate) const LOST: u8 = 76;
/// The command of `soloist lock` cannot be run, or was not found, as in a shell.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// Outcome of a command that ran to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Well,
    /// Mutual exclusion was violated, a waiter was never served, or the command's question is
    /// answered with no (a stale fence, a free lock, a node that is down).
    Failed,
    /// A search was not exhausted, so nothing is claimed.
    Unknown,
    /// The node that was asked is not a member, or other members do not answer it.
    CannotTell,
    /// An exit code chosen by the command.
    Code(u8),
}

impl Verdict {
    pub fn of(well: bool) -> Self {
        if well { Verdict::Well } else { Verdict::Failed }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Well => ExitCode::SUCCESS,
            Verdict::Failed => ExitCode::from(FAILED),
            Verdict::Unknown => ExitCode::from(NOT_EXHAUSTED),
            Verdict::CannotTell => ExitCode::from(UNKNOWN),
            Verdict::Code(code) => ExitCode::from(code),
        }
    }
}
