//! Messages, decisions and events of a cluster in words.

use std::fmt::Display;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::{Fence, NodeName};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Change, Command};
use soloist_core::locks::{Denial, HeldLock, LockEvent, wire};
use soloist_core::notice::Notice;
use soloist_core::rows::Rows;
use soloist_core::{Incarnation, Term};

/// A span of time in seconds, rounded up to milliseconds.
pub fn seconds(span: Duration) -> String {
    let millis = span.as_nanos().div_ceil(1_000_000);
    format!("{}.{:03}s", millis / 1000, millis % 1000)
}

/// A fence as its epoch and the number of the entry within it.
pub fn fence(fence: Fence) -> String {
    format!("{}:{}", fence.epoch(), fence.count())
}

/// The keepers' leader of a term.
pub fn leader(term: Term) -> String {
    format!("L{term}")
}

/// Words with spaces between them, or `nothing` if there are none.
pub fn list(words: impl IntoIterator<Item = impl Display>, nothing: &str) -> String {
    let words: Vec<_> = words.into_iter().map(|word| word.to_string()).collect();
    match words.is_empty() {
        true => nothing.to_owned(),
        false => words.join(" "),
    }
}

fn members(change: &Change) -> String {
    list(change.members.iter().map(|member| &member.name), "nobody")
}

fn of_pieces(number: u32, pieces: u32) -> String {
    match pieces {
        0 | 1 => String::new(),
        _ => format!(", piece {} of {pieces}", number + 1),
    }
}

fn locks(number: usize) -> String {
    match number {
        0 => "nothing".to_owned(),
        1 => "1 lock".to_owned(),
        _ => format!("{number} locks"),
    }
}

/// Holders of the locks in a piece.
fn holders(change: &Change, piece: Option<&Rows<HeldLock>>) -> String {
    let holds = piece.into_iter().flat_map(|piece| piece.iter());
    let members = holds.filter_map(|held| change.members.get(held.holder.index()));
    let holders: Vec<_> = members.map(|member| &member.name).collect();
    if holders.is_empty() {
        return "nothing is held".to_owned();
    }
    format!("held by {}", list(holders, "nobody"))
}

/// A message to the keepers' leader. `name` returns the node of an incarnation.
pub fn to_keepers(message: &ToKeepers, name: impl Fn(Incarnation) -> String) -> String {
    match message {
        ToKeepers::Join => "JOIN".to_owned(),
        ToKeepers::Probed { number } => format!("PROBED {number}"),
        ToKeepers::Renew { number, .. } => format!("RENEW {number}"),
        ToKeepers::Report {
            epoch,
            pieces,
            number,
            held,
        } => {
            let (holds, piece) = (locks(held.len()), of_pieces(*number, *pieces));
            format!("REPORT epoch {epoch}: holds {holds}{piece}")
        }
        ToKeepers::SendHolds { epoch, number } => {
            format!("SEND-HOLDS epoch {epoch}, piece {}", number + 1)
        }
        ToKeepers::Leave => "LEAVE".to_owned(),
        ToKeepers::Suspect { epoch } => format!("SUSPECT epoch {epoch}"),
        ToKeepers::Unreached { incarnations } => {
            let names = incarnations.iter().map(|incarnation| name(*incarnation));
            format!("UNREACHED {}", list(names, "nobody"))
        }
        ToKeepers::Exhausted { epoch } => format!("EXHAUSTED epoch {epoch}"),
    }
}

/// A message of the keepers' leader.
pub fn to_member(message: &ToMember) -> String {
    match message {
        ToMember::Granted { number } => format!("GRANTED {number}"),
        ToMember::NoMember => "NO-MEMBER".to_owned(),
        ToMember::Probe { number } => format!("PROBE {number}"),
        ToMember::TooSlow { took, limit } => {
            let (took, limit) = (seconds(*took), seconds(*limit));
            format!("TOO-SLOW {took}, at most {limit}")
        }
        ToMember::HeldOff { left } => format!("HELD-OFF for {}", seconds(*left)),
        ToMember::NameTaken => "NAME-TAKEN".to_owned(),
        ToMember::Begin(change) => format!("BEGIN epoch {} of {}", change.epoch, members(change)),
        ToMember::SendReport { epoch, number } => {
            format!("SEND-REPORT epoch {epoch}, piece {}", number + 1)
        }
        ToMember::Install {
            change,
            pieces,
            first,
        } => {
            let (members, holders) = (members(change), holders(change, first.as_ref()));
            let piece = of_pieces(0, *pieces);
            format!(
                "INSTALL epoch {} of {members}: {holders}{piece}",
                change.epoch
            )
        }
        ToMember::Holds { epoch, number, .. } => {
            format!("HOLDS epoch {epoch}, piece {}", number + 1)
        }
        ToMember::Barred { apart_from } => {
            format!("BARRED, cannot reach {}", list(apart_from, "nobody"))
        }
    }
}

/// A command that the keepers agree on.
pub fn command(command: &Command) -> String {
    match command {
        Command::Lead { lease } => format!("a leader with leases of {}", seconds(*lease)),
        Command::Settle { lease } => format!("all leases are at most {}", seconds(*lease)),
        Command::Begin(change) => format!("begin epoch {} of {}", change.epoch, members(change)),
        Command::Install { epoch } => format!("install epoch {epoch}"),
        Command::Identify { .. } => "the cluster's identity".to_owned(),
        Command::HoldOff(nodes) => {
            let nodes = nodes.iter();
            let nodes = nodes.map(|it| format!("{} for {}", it.name, seconds(it.pause)));
            format!("hold off {}", list(nodes, "nobody"))
        }
    }
}

/// A message of a lock, with the nodes' numbers in the epoch.
pub fn frame(choice: Choice, bytes: &[u8]) -> String {
    match wire::decode(bytes) {
        Ok(message) if message.kind == wire::KIND => {
            let text = choice.describe_message(message.payload);
            text.unwrap_or_else(|| "a message that cannot be decoded".to_owned())
        }
        Ok(_) => "IDLE".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A message of one of several locks.
pub fn named_frame(choice: Choice, bytes: &[u8]) -> String {
    let lock = wire::decode(bytes).map(|message| format!("{}: ", message.name));
    lock.unwrap_or_default() + &frame(choice, bytes)
}

/// What a client of a node observes. `names_locks` is whether there are several locks.
pub fn lock_event(event: &LockEvent, names_locks: bool) -> String {
    let (text, lock) = match event {
        LockEvent::Waiting { lock, .. } => ("waits".to_owned(), lock),
        LockEvent::Granted { grant, .. } => {
            let text = format!("enters with fence {}", fence(grant.fence));
            (text, &grant.lock)
        }
        LockEvent::Denied { lock, denial, .. } => match denial {
            Denial::NotGranted => ("gives up".to_owned(), lock),
            Denial::NodeStopped => ("is refused: the node stops".to_owned(), lock),
            Denial::NotMember => ("is refused: the node is not a member".to_owned(), lock),
        },
        LockEvent::Cancelled { lock, .. } => ("cancels its request".to_owned(), lock),
        LockEvent::Ended { lock, end, .. } if end.is_loss() => {
            (format!("loses the lock: {end}"), lock)
        }
        LockEvent::Ended { lock, .. } => ("releases".to_owned(), lock),
    };
    match names_locks {
        true => format!("{lock}: {text}"),
        false => text,
    }
}

/// What a node or a leader would log.
pub fn notice(notice: &Notice) -> String {
    let names = |names: &[NodeName]| list(names, "nobody");
    match notice {
        Notice::Left(member) => format!("removes {member}, which has left"),
        Notice::Evicted { member, reason } => format!("evicts {member}: {reason}"),
        Notice::LateReport(member) => format!("holds {member} off: it did not report in time"),
        Notice::Partitioned { member, from } => {
            format!("decides to evict {member}: it cannot reach {}", names(from))
        }
        Notice::MostPartitioned => {
            "evicts no member, because most cannot reach each other".to_owned()
        }
        Notice::TooMuchHeld { member, .. } => {
            format!("evicts {member}: more is held than fits")
        }
        Notice::HeldTwice(members) => {
            format!("evicts {}: they report the same lock", names(members))
        }
        Notice::EarlyMessage(error) => format!("refuses an early message: {error}"),
        Notice::TooManyPieces(pieces) => format!("refuses an epoch of {pieces} pieces"),
        Notice::UnsoundPieces => "refuses pieces that contradict each other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_to_milliseconds() {
        for (nanos, text) in [
            (0, "0.000s"),
            (1, "0.001s"),
            (3_157_894_737, "3.158s"),
            (61_000_000_000, "61.000s"),
        ] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), text);
        }
    }
}
