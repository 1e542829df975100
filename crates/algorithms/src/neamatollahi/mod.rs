//! Neamatollahi, Sedaghat, Naghibzadeh 2017, *A simple token-based algorithm for the mutual
//! exclusion problem in distributed systems*, J. Supercomputing 73.
//!
//! **Channels**: any order. **Cost**: about 2√N + 1 to 3√N + 1 messages per entry for a single
//! request (more if the token passes before the alert has reached its column), (2N + √N + 1)/N when
//! saturated. The circulating token also moves while no node wants it.
//!
//! Nodes form a torus. The token travels down a column, row by row, and after a full round moves
//! one column to the right. A node that wants to enter alerts its row. When the token reaches an
//! alerted row, it first goes round that row and lets the waiting nodes enter.
//!
//! **Invariants**: a node's Waiting has at most two entries, its own request and one other.
//!
//! **Proved** for any number of nodes: mutual exclusion as printed and as repaired, on any shape;
//! `NeamatollahiResting.v` has the resting form (theorem `neamatollahi_mutual_exclusion` in
//! `proofs/Neamatollahi.v`).
//!
//! **Errata** (Fig. 2; the rules as printed are the variant `as-published`). The token's counters
//! start at 1, so a full round of √N steps ends at √N + 1, as in the text of §3.1, Fig. 3 and §5.
//! As printed (√N in lines 28, 11 and 50), the token leaves the last row of a round to the right
//! without checking Waiting, and a node can wait forever although the token never stops. Also, as
//! printed, a Request that reaches a node inside is ignored and then erased by line 10; here it is
//! handled after line 10.
//!
//! **Deviations**: the torus may be ragged, so the token carries the number of the column that it
//! follows, and R rows of C nodes replace √N; then the next column is not always that of the right
//! neighbour. Of several Requests that reach a node while it is inside, only the last one is kept
//! (`late`), because one alert is enough for the token to stop. The variant `resting` is another
//! form of the algorithm, in which an idle cluster sends nothing: see [`resting`].

mod fields;
pub mod resting;
mod variants;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Torus;
use crate::{
    Algorithm, Channels, Config, Fields, Info, Message, NodeId, Outbox, Phase, Place, Start,
    VariantSet, Violation,
};
use resting::{Resting, RestingToken};

pub use variants::{AS_PUBLISHED, REPAIR_1, REPAIR_2, RESTING};

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Neamatollahi {
    place: Place<Torus>,
    variants: VariantSet,
    phase: Phase,
    /// The other node's request in Waiting. This node's own is in Waiting while the node waits or
    /// is inside.
    alert: Option<NodeId>,
    /// A Request that arrived while this node was inside, to be handled after line 10.
    late: Option<NodeId>,
    /// Present while this node is inside; in a cluster of one node, always.
    token: Option<Token>,
    /// State of the resting form, used instead of `alert`, `late` and `token`.
    resting: Option<Resting>,
}

/// The circulating token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// Number of rows reached in this round down the column, including the first.
    pub row_counter: u32,
    /// Negative: the token changes its column. 0: it came from above. Positive: its position in a
    /// round of the row.
    pub col_counter: i32,
    /// Whether the token changes its column.
    pub chg_col: bool,
    /// The column that the token follows.
    pub column: u32,
}

/// Messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NeamatollahiMessage {
    /// To the right, round the row: the given node waits. A receiver whose Waiting is empty keeps
    /// the request and forwards it. Any other receiver stops it, because the row is already
    /// alerted.
    Request(NodeId),
    /// The privilege: see the module documentation for its route.
    Token(Token),
    /// Resting form: the privilege.
    RestingToken(RestingToken),
    /// Resting form: down the token's column to its home. Some row is alerted.
    Call,
}

impl Message for NeamatollahiMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "TOKEN", "CALL"];

    fn kind(&self) -> usize {
        match self {
            NeamatollahiMessage::Request(_) => 0,
            NeamatollahiMessage::Token(_) | NeamatollahiMessage::RestingToken(_) => 1,
            NeamatollahiMessage::Call => 2,
        }
    }

    fn is_token(&self) -> bool {
        self.kind() == 1
    }

    /// A request causes the moves round a row, but not those down and to the next column.
    fn is_roaming(&self) -> bool {
        matches!(self, NeamatollahiMessage::Token(token) if token.col_counter <= 0)
    }

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            NeamatollahiMessage::Request(node) => format!("REQUEST {}", name(*node)),
            NeamatollahiMessage::Token(token) => format!("TOKEN {token}"),
            NeamatollahiMessage::RestingToken(token) => format!("TOKEN {token}"),
            NeamatollahiMessage::Call => "CALL".to_owned(),
        }
    }

    fn examples() -> Vec<Self> {
        let token = Token {
            row_counter: 3,
            col_counter: -1,
            chg_col: true,
            column: 300,
        };
        let resting = RestingToken {
            in_row: true,
            row_again: false,
            again: true,
        };
        vec![
            NeamatollahiMessage::Request(NodeId::new(300)),
            NeamatollahiMessage::Token(token),
            NeamatollahiMessage::RestingToken(resting),
            NeamatollahiMessage::Call,
        ]
    }
}

impl fmt::Display for NeamatollahiMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&|node| node.to_string()))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = if self.chg_col { " ChgCol" } else { "" };
        write!(
            f,
            "RowCounter={} ColCounter={}{change}",
            self.row_counter, self.col_counter
        )
    }
}

/// Where the token goes from a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Down,
    /// Round the row.
    Right,
    /// To the next column.
    NextColumn,
    /// The token stays: the node enters.
    Stay,
}

impl Algorithm for Neamatollahi {
    type Message = NeamatollahiMessage;
    type Shape = Torus;

    const INFO: Info = Info {
        name: "neamatollahi",
        aliases: &["torus"],
        paper: "Neamatollahi, Sedaghat, Naghibzadeh 2017, A simple token-based algorithm for the mutual exclusion problem in distributed systems",
        channels: Channels::Any,
        variants: &[AS_PUBLISHED, RESTING, REPAIR_1, REPAIR_2],
        presets: &[],
    };

    fn new(config: &Config<Torus>) -> Self {
        let Config {
            place,
            start,
            variants,
        } = config;
        let resting = variants
            .has(RESTING)
            .then(|| Resting::new(start.token(), place));
        let holds_token = start.token() == place.me && resting.is_none();
        let inside = start.inside == Some(place.me);
        let token = Token {
            row_counter: 1,
            // A node that starts inside has the token as if it had come from above and found a
            // request.
            col_counter: i32::from(inside),
            chg_col: false,
            column: place.shape.position(place.me).1 as u32,
        };
        Neamatollahi {
            place: place.clone(),
            variants: *variants,
            phase: start.phase(place.me),
            alert: None,
            late: None,
            token: holds_token.then_some(token),
            resting,
        }
    }

    /// §3.1: the token starts down its column.
    fn start(&mut self, out: &mut Outbox<Self::Message>) {
        if self.phase == Phase::Idle
            && let Some(token) = self.token.take()
        {
            self.go(token, Way::Down, out);
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        if self.resting.is_some() {
            self.request_resting(out);
        } else if self.token.is_some() {
            self.enter(out); // a cluster of one node
        } else if self.alert.is_none() {
            // Lines 5-6. If Waiting has another request, the row is already alerted (PCL_2).
            self.send_right(NeamatollahiMessage::Request(self.place.me), out);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        if self.resting.is_some() {
            return self.receive_resting(from, message, out);
        }
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        match message {
            NeamatollahiMessage::Request(origin) => {
                self.may_be_alerted(from, origin, &message)?;
                self.on_request(origin, out);
            }
            NeamatollahiMessage::Token(token) => {
                if self.token.is_some() {
                    return refuse("the token is here");
                }
                if !self.may_come(from, token) {
                    return refuse("the token cannot come from there like this");
                }
                self.arrive(token, out);
            }
            NeamatollahiMessage::RestingToken(_) | NeamatollahiMessage::Call => {
                return refuse("the token does not rest in this form");
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        if self.resting.is_some() {
            self.release_resting(out);
            return Ok(());
        }
        self.alert = None; // line 10
        let token = self.token.take().expect("a node inside has the token");
        // Lines 11-15.
        let way = self.after_row_step(token);
        self.go(token, way, out);
        // The repair: sent after the token, so that the token does not erase it further on.
        if let Some(origin) = self.late.take() {
            self.on_request(origin, out);
        }
        Ok(())
    }

    /// The token rests where it started, which is not home if another node started inside.
    fn rests_alone(variants: VariantSet, start: Start) -> bool {
        variants.has(RESTING) && start.token() == start.home
    }

    fn fields(&self, fields: &mut dyn Fields) {
        self.name_fields(fields);
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.token.is_some() || self.resting.as_ref().is_some_and(Resting::has_token)
    }

    fn invariant(&self) -> Result<(), &'static str> {
        if let Some(resting) = &self.resting {
            return resting.invariant(&self.place, self.phase);
        }
        let alone = self.place.nodes() == 1;
        if self.token.is_some() != (self.phase == Phase::Inside || alone) {
            return Err("the token is here exactly while the node is inside");
        }
        if self.late.is_some() && self.phase != Phase::Inside {
            return Err("a late Request was not handled on release");
        }
        Ok(())
    }
}

impl Neamatollahi {
    /// Lines 28, 11 and 50 as printed: a round is one step too short.
    fn has_short_rounds(&self) -> bool {
        self.variants.has(AS_PUBLISHED) && !self.variants.has(REPAIR_1)
    }

    /// Whether a Request that arrives while this node is inside is handled afterwards.
    fn keeps_late(&self) -> bool {
        !self.variants.has(AS_PUBLISHED) || self.variants.has(REPAIR_2)
    }

    fn row(&self) -> usize {
        self.place.shape.position(self.place.me).0
    }

    fn send_right(&self, message: NeamatollahiMessage, out: &mut Outbox<NeamatollahiMessage>) {
        let right = self.place.shape.right(self.place.me);
        if right != self.place.me {
            out.send(right, message);
        }
    }

    /// Refuses a Request that does not come along the row.
    fn may_be_alerted(
        &self,
        from: NodeId,
        origin: NodeId,
        message: &NeamatollahiMessage,
    ) -> Result<(), Violation> {
        let torus = &self.place.shape;
        if origin.index() >= self.place.nodes() || torus.position(origin).0 != self.row() {
            return Err(Violation::unexpected(
                from,
                message,
                "it names no node of this row",
            ));
        }
        if torus.right(from) != self.place.me {
            return Err(Violation::unexpected(
                from,
                message,
                "it is not the left neighbour",
            ));
        }
        Ok(())
    }

    /// Lines 18-23.
    fn on_request(&mut self, origin: NodeId, out: &mut Outbox<NeamatollahiMessage>) {
        let waiting_is_empty = self.phase == Phase::Idle && self.alert.is_none();
        if origin == self.place.me {
            return; // it came round the row
        }
        if waiting_is_empty {
            self.alert = Some(origin);
            if !Mutant::NeamatollahiRequestStops.planted() {
                self.send_right(NeamatollahiMessage::Request(origin), out);
            }
        } else if self.phase == Phase::Inside && self.keeps_late() {
            self.late = Some(origin);
        }
    }

    /// Whether this token can come from that node.
    fn may_come(&self, from: NodeId, token: Token) -> bool {
        let torus = &self.place.shape;
        let row = self.row();
        let (their_row, _) = torus.position(from);
        let rows_max = torus.rows() as u32 + u32::from(token.chg_col);
        let in_bounds = (1..=rows_max).contains(&token.row_counter)
            && token.col_counter <= torus.row_length(row) as i32
            && (token.column as usize) < torus.columns()
            && token.chg_col == (token.col_counter == -1);
        let from_there = match token.col_counter {
            -1 => their_row == row,
            0 => torus.row_below(their_row) == row,
            1.. => torus.right(from) == self.place.me,
            _ => false,
        };
        in_bounds && from_there
    }

    /// Handles the arriving token (lines 24-68): passes it on, or keeps it and enters.
    fn arrive(&mut self, mut token: Token, out: &mut Outbox<NeamatollahiMessage>) {
        let waiting_is_empty = self.phase == Phase::Idle && self.alert.is_none();
        let way = if token.col_counter > 0 {
            // Lines 42-54: on a round of the row.
            token.col_counter += 1;
            self.serve(self.after_row_step(token))
        } else if token.col_counter == 0 && {
            token.row_counter += 1;
            token.row_counter >= self.full_column()
        } {
            // Lines 25-31: a full round of the column.
            token.chg_col = true;
            token.col_counter = -1;
            Way::NextColumn
        } else {
            // Lines 32-41, and 55-68 in a new column.
            if token.chg_col {
                token.chg_col = false;
                token.row_counter = 1;
            }
            token.col_counter = i32::from(!waiting_is_empty);
            if waiting_is_empty {
                Way::Down
            } else {
                self.serve(Way::Right)
            }
        };
        self.go(token, way, out);
    }

    /// Lets this node enter if it waits. Otherwise clears Waiting, and the token goes on.
    fn serve(&mut self, else_way: Way) -> Way {
        if self.phase == Phase::Waiting {
            return Way::Stay;
        }
        self.alert = None;
        else_way
    }

    /// The value of RowCounter (line 28) at which the token has reached all rows of its column. As
    /// printed it is one too small, and the row that the token has just reached is not checked.
    fn full_column(&self) -> u32 {
        let short = self.has_short_rounds() || Mutant::NeamatollahiColumnRoundShort.planted();
        self.place.shape.rows() as u32 + u32::from(!short)
    }

    /// Lines 11-15 and 50-54: whether the round of the row is complete. As printed it ends one step
    /// too early, one node before the one at which it began.
    fn after_row_step(&self, token: Token) -> Way {
        let length = self.place.shape.row_length(self.row()) as i32;
        let short = self.has_short_rounds() || Mutant::NeamatollahiRowRoundShort.planted();
        if token.col_counter >= length + i32::from(!short) {
            Way::Down
        } else {
            Way::Right
        }
    }

    /// Sends the token on. If the torus is only one node wide, the token is still here and
    /// continues.
    fn go(&mut self, mut token: Token, way: Way, out: &mut Outbox<NeamatollahiMessage>) {
        let torus = &self.place.shape;
        let (row, place) = torus.position(self.place.me);
        let to = match way {
            Way::Stay => {
                self.token = Some(token);
                return self.enter(out);
            }
            Way::Right => torus.right(self.place.me),
            Way::NextColumn => {
                token.column = (token.column + 1) % torus.columns() as u32;
                torus.at(row, token.column as usize)
            }
            Way::Down => {
                token.col_counter = 0;
                if self.has_short_rounds() || Mutant::NeamatollahiRowRoundShort.planted() {
                    token.column = place as u32; // a round of the row does not end where it began
                }
                torus.at(torus.row_below(row), token.column as usize)
            }
        };
        if to != self.place.me {
            out.send(to, NeamatollahiMessage::Token(token));
        } else if self.place.nodes() == 1 {
            self.token = Some(token);
        } else {
            self.arrive(token, out);
        }
    }

    fn enter(&mut self, out: &mut Outbox<NeamatollahiMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }
}
