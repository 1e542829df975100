//! The lock events of all members, as one stream that can be resumed.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{Event, EventKind, NodeName};
use soloist_core::epochs::roster::Member;

use super::Node;
use super::event::{self, unix_ms};
use super::event_rounds::Round;
use super::inquiry::EventsAsked;
use super::kept::KeptEvents;
use soloist_core::record::Gap;

/// Maximum length of a cursor: one part for each node.
const CURSOR_BYTES_MAX: usize = 64 << 10;

/// Number of nodes in a cursor that are not members. A member that is evicted and comes back is
/// asked for what it has done since; the one that went first is forgotten first.
const GONE_MAX: usize = 32;

/// The events of all members, from the time of subscription or after a cursor. Each member's events
/// are in order, and those of different members nearly so.
pub(crate) struct AllEvents {
    node: Node,
    reader: Reader,
}

/// What a reader of all events has, and what it wants.
struct Reader {
    prefix: Arc<str>,
    /// By node: the number of the last event that it was asked for.
    positions: Arc<Positions>,
    /// By node: the number of the last event that was returned.
    returned: Positions,
    /// Whether the members were asked for the first time.
    has_begun: bool,
    /// Events to return, with the nodes that sent them and their numbers.
    queue: VecDeque<(String, u64, Event)>,
    /// The members of the last round.
    members: Arc<[Member]>,
    /// Nodes with a position that are not members, in the order in which they went.
    gone: VecDeque<String>,
}

/// What a reader wants from the nodes.
pub(super) struct Wanted {
    pub prefix: Arc<str>,
    positions: Arc<Positions>,
    has_begun: bool,
}

/// Up to where a reader has the events. As text, it is a cursor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Positions {
    /// By node: the number of an event.
    numbers: BTreeMap<String, u64>,
    /// When the reader began, in milliseconds since 1970: of other nodes it has no event since.
    since_ms: u64,
}

/// Stands for the name of a node before [`Positions::since_ms`]. No node has this name.
const SINCE: &str = "@";

/// A text that is not a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid cursor: use the `cursor` of an event that a node has sent")]
pub(crate) struct NotACursor;

impl std::fmt::Display for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = (self.since_ms > 0).then_some((SINCE, self.since_ms));
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|(node, number)| (node.as_str(), *number));
        for (index, (node, number)) in since.into_iter().chain(numbers).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{node}:{number:x}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Positions {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        if text.len() > CURSOR_BYTES_MAX {
            return Err(NotACursor);
        }
        let parts = text.split(',').map(|part| {
            let (node, number) = part.split_once(':').ok_or(NotACursor)?;
            let number = u64::from_str_radix(number, 16).map_err(|_| NotACursor)?;
            // Positions are compared with the number after them.
            let is_valid = !node.is_empty() && number < u64::MAX;
            is_valid
                .then(|| (node.to_owned(), number))
                .ok_or(NotACursor)
        });
        let mut numbers: BTreeMap<String, u64> = parts.collect::<Result<_, _>>()?;
        let since_ms = numbers.remove(SINCE).unwrap_or_default();
        Ok(Positions { numbers, since_ms })
    }
}

impl Node {
    /// Subscribes to the events of all members, of locks with this prefix: from now on, or from
    /// after a cursor.
    pub(crate) fn all_events(
        &self,
        prefix: String,
        after: Option<&str>,
    ) -> Result<AllEvents, NotACursor> {
        let mut reader = match after {
            Some(cursor) => Reader::new(prefix, cursor.parse()?, true),
            None => Reader::from_now_on(prefix, unix_ms(Duration::ZERO)),
        };
        let members = self.shared.living().map(|core| core.members());
        reader.forget_others(members.as_ref());
        Ok(AllEvents {
            node: self.clone(),
            reader,
        })
    }
}

impl AllEvents {
    /// Learns where the members' events are now, unless that is known. Later events are not
    /// missed. Cancel safe.
    pub(crate) async fn begin(&mut self) {
        if !self.reader.has_begun {
            let wanted = self.reader.wanted();
            if let Some(round) = self.node.events_in_round(wanted).await {
                self.reader.take(round);
            }
        }
    }

    /// Waits for the next event. Returns `None` when the node has stopped. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.reader.pop() {
                return Some(event);
            }
            // Only what was answered is taken, so nothing is lost if this is dropped.
            let wanted = self.reader.wanted();
            let round = self.node.events_in_round(wanted).await?;
            self.reader.take(round);
        }
    }
}

impl Wanted {
    /// What this node is asked for.
    pub(super) fn of(&self, node: &str) -> EventsAsked {
        let position = self.positions.numbers.get(node).copied();
        EventsAsked {
            // A node that joined later, or did not answer before, is asked for everything since.
            after: position.or_else(|| self.has_begun.then_some(0)),
            since_ms: match position {
                Some(_) => 0,
                None => self.positions.since_ms,
            },
            prefix: self.prefix.to_string(),
        }
    }
}

impl Reader {
    fn from_now_on(prefix: String, now_ms: u64) -> Self {
        let positions = Positions {
            since_ms: now_ms,
            ..Positions::default()
        };
        Self::new(prefix, positions, false)
    }

    fn new(prefix: String, positions: Positions, has_begun: bool) -> Self {
        Reader {
            prefix: prefix.into(),
            has_begun,
            positions: Arc::new(positions),
            returned: Positions::default(),
            queue: VecDeque::new(),
            members: Arc::new([]),
            gone: VecDeque::new(),
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            prefix: Arc::clone(&self.prefix),
            positions: Arc::clone(&self.positions),
            has_begun: self.has_begun,
        }
    }

    /// The next event, with its cursor. The text is made here: events that wait need none.
    fn pop(&mut self) -> Option<Event> {
        let (node, number, mut event) = self.queue.pop_front()?;
        self.returned.numbers.insert(node, number);
        event.cursor = Some(self.returned.to_string());
        Some(event)
    }

    /// Takes the answers of a round. All events of the rounds before were returned.
    fn take(&mut self, round: Round) {
        self.forget_others(Some(&round.members));
        let mut events = Vec::new();
        let mut ends = Vec::new();
        for (name, kept) in round.answers {
            self.read(&name, kept, &mut events, &mut ends);
        }
        self.has_begun = true;
        if !events.is_empty() {
            events.sort_by_key(|(at, ..)| *at);
            self.returned.clone_from(&self.positions);
            let rows = events.into_iter();
            self.queue
                .extend(rows.map(|(_, name, number, event)| (name, number, event)));
        }
        let is_known =
            |(name, last): &(String, u64)| self.positions.numbers.get(name) == Some(last);
        if !ends.iter().all(is_known) {
            let positions = Arc::make_mut(&mut self.positions);
            positions.numbers.extend(ends);
        }
    }

    fn read(
        &self,
        name: &NodeName,
        kept: KeptEvents,
        events: &mut Vec<(u64, String, u64, Event)>,
        ends: &mut Vec<(String, u64)>,
    ) {
        let missed = match (kept.gap, self.positions.numbers.get(name.as_str())) {
            (Gap::None, _) | (_, None) => None,
            (Gap::Items(missed), Some(_)) => Some(Some(missed)),
            (Gap::Unknown, Some(_)) => Some(None),
        };
        let first = kept.events.first();
        // Wall clocks can be set back, but a member's events stay in order.
        let mut latest = first.map_or(0, |row| row.at_unix_ms);
        if let Some(missed) = missed {
            let before = first.map_or(kept.last, |row| row.number.saturating_sub(1));
            let event = Event {
                missed,
                ..event::empty(EventKind::Missed, name.as_str())
            };
            events.push((latest, name.to_string(), before, event));
        }
        for row in kept.events {
            latest = latest.max(row.at_unix_ms);
            let (number, event) = (row.number, row.into_event(name.as_str()));
            events.push((latest, name.to_string(), number, event));
        }
        ends.push((name.to_string(), kept.last));
    }

    /// Forgets nodes that are not members, except the last few. Cursors are a client's, and name
    /// whatever it likes.
    fn forget_others(&mut self, members: Option<&Arc<[Member]>>) {
        // A node that is not a member does not know the others.
        let Some(members) = members.filter(|members| !members.is_empty()) else {
            return;
        };
        if Arc::ptr_eq(members, &self.members) {
            return;
        }
        self.members = Arc::clone(members);
        let names: HashSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
        self.gone.retain(|name| !names.contains(name.as_str()));
        let known: HashSet<&String> = self.gone.iter().collect();
        let others = self.positions.numbers.keys();
        let new = others.filter(|name| !names.contains(name.as_str()) && !known.contains(name));
        let new: Vec<String> = new.cloned().collect();
        self.gone.extend(new);
        let excess = self.gone.len().saturating_sub(GONE_MAX);
        if excess > 0 {
            let positions = Arc::make_mut(&mut self.positions);
            for name in self.gone.drain(..excess) {
                positions.numbers.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let mut positions = Positions {
            numbers: [("n1".to_owned(), 300), ("n2".to_owned(), 0)].into(),
            since_ms: 0,
        };
        assert_eq!(positions.to_string(), "n1:12c,n2:0");
        assert_eq!("n1:12c,n2:0".parse(), Ok(positions.clone()));
        positions.since_ms = 10;
        assert_eq!(positions.to_string(), "@:a,n1:12c,n2:0");
        assert_eq!("@:a,n1:12c,n2:0".parse(), Ok(positions));
        for bad in [
            "",
            "n1",
            "n1:",
            "n1:x",
            ":1",
            "n1:1,",
            "n1:ffffffffffffffff",
        ] {
            assert_eq!(bad.parse::<Positions>(), Err(NotACursor), "{bad}");
        }
    }

    fn round(answers: &[(&str, u64)]) -> Round {
        let kept = |last| KeptEvents {
            gap: Gap::None,
            events: Vec::new(),
            last,
            is_cut: false,
        };
        let answers = answers.iter();
        Round {
            members: Arc::new([]),
            answers: answers
                .map(|(name, last)| (name.parse().unwrap(), kept(*last)))
                .collect(),
        }
    }

    #[test]
    fn a_member_that_was_silent_at_the_beginning_is_asked_for_what_it_did_since() {
        let mut reader = Reader::from_now_on("a-".to_owned(), 1_700_000_000_000);
        let asked = |reader: &Reader, node| {
            let asked = reader.wanted().of(node);
            (asked.after, asked.since_ms)
        };
        let now = (None, 1_700_000_000_000);
        assert_eq!((asked(&reader, "n1"), asked(&reader, "n2")), (now, now));
        reader.take(round(&[("n1", 300)]));
        assert_eq!(asked(&reader, "n1"), (Some(300), 0));
        assert_eq!(asked(&reader, "n2"), (Some(0), 1_700_000_000_000));
        // A reader that resumes asks it for the same.
        let cursor = reader.positions.to_string();
        let resumed = Reader::new("a-".to_owned(), cursor.parse().unwrap(), true);
        assert_eq!(asked(&resumed, "n1"), (Some(300), 0));
        assert_eq!(asked(&resumed, "n2"), (Some(0), 1_700_000_000_000));
        reader.take(round(&[("n1", 300), ("n2", 7)]));
        assert_eq!(asked(&reader, "n2"), (Some(7), 0));
    }
}
