//! The resting form: an idle cluster sends nothing.
//!
//! The token has a *home*, where it starts and rests, and travels only down the column of its home.
//! The node at which that column crosses a row is the row's *gate*. All nodes know both.
//!
//! - A node that wants to enter sends REQUEST to the right, towards its gate. Each node on the way
//!   becomes `alerted` and forwards it, until it reaches the gate. A node that is already alerted
//!   stops it and sets `blocked`: an earlier alert will bring the token here. A node that is
//!   already alerted when it wants to enter itself sends nothing.
//! - A gate that is alerted while the token is not in its row sends CALL down the column to the
//!   home.
//! - A token that rests at home and is called starts down the column. At an alerted gate it goes
//!   round the row to the right, back to the gate, and lets waiting nodes enter. Each node that it
//!   passes is no longer alerted. If a node was `blocked`, the token may have passed the node whose
//!   alert was stopped there before that node made its request. The gate then counts as alerted
//!   again, and the token will make another round. The same holds if an alert reached the gate in
//!   the meantime. The token does not go round the same row twice in succession while there are
//!   other rows, so a busy row does not starve the others.
//! - Back at home, the token makes another round if it was called in the meantime or a row needs
//!   another round. Otherwise it rests.
//!
//! An alert is never lost: while a node waits, an alert is on its way to the gate, or was stopped
//! by a node that the token has yet to pass, or the gate is alerted and the home has been called. A
//! request or a call that arrives too late costs one unnecessary round and nothing worse, so
//! messages may overtake each other. All state is bounded.
//!
//! **Cost** of a single request: at most (C-1) REQUESTs + (R-1) CALLs + R + C moves of the token.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Neamatollahi, NeamatollahiMessage};
use crate::mutant::Mutant;
use crate::shape::Torus;
use crate::{NodeId, Outbox, Phase, Place, Violation};

/// The token of the resting form.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct RestingToken {
    /// The token goes round a row, not down the column.
    pub in_row: bool,
    /// A node of this row stopped an alert: the row needs another round.
    pub row_again: bool,
    /// Some row needs another round.
    pub again: bool,
}

impl fmt::Display for RestingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.in_row { "round the row" } else { "down" })?;
        if self.again || self.row_again {
            f.write_str(", again")?;
        }
        Ok(())
    }
}

/// A node's state in the resting form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Resting {
    home: NodeId,
    /// The gate of this node's row, and those of the rows above and below.
    gate: NodeId,
    gate_above: NodeId,
    gate_below: NodeId,
    /// An alert passed since the token was last here (at a gate: since it last entered the row).
    pub(super) alerted: bool,
    /// An alert was stopped here since then.
    pub(super) blocked: bool,
    /// At a gate: the token is going round this row.
    pub(super) token_in_row: bool,
    /// At home: a CALL arrived since the token last left.
    pub(super) called: bool,
    /// The token, while it rests here or this node is inside.
    pub(super) token: Option<RestingToken>,
}

impl Resting {
    pub(super) fn new(home: NodeId, place: &Place<Torus>) -> Self {
        let torus = &place.shape;
        let (row, _) = torus.position(place.me);
        let gate = |row| torus.at(row, torus.position(home).1);
        Resting {
            home,
            gate: gate(row),
            gate_above: gate((row + torus.rows() - 1) % torus.rows()),
            gate_below: gate(torus.row_below(row)),
            alerted: false,
            blocked: false,
            token_in_row: false,
            called: false,
            token: (home == place.me).then(RestingToken::default),
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(super) fn invariant(&self, place: &Place<Torus>, phase: Phase) -> Result<(), &'static str> {
        if self.called && place.me != self.home {
            return Err("a CALL was stored at a node other than home");
        }
        if self.token_in_row && place.me != self.gate {
            return Err("only a gate knows that the token is in its row");
        }
        if self.blocked && !self.alerted {
            return Err("an alert was stopped although none went before it");
        }
        match (phase, self.token) {
            (Phase::Inside, None) => Err("inside without the token"),
            (Phase::Waiting, Some(_)) => Err("waits although the token is here"),
            (Phase::Idle, Some(_)) if place.me != self.home => {
                Err("the token rests away from home")
            }
            (Phase::Idle, Some(_)) if self.called || self.alerted => {
                Err("the token does not react")
            }
            _ => Ok(()),
        }
    }
}

impl Neamatollahi {
    fn rest(&self) -> &Resting {
        self.resting
            .as_ref()
            .expect("called in the resting form only")
    }

    fn rest_mut(&mut self) -> &mut Resting {
        self.resting
            .as_mut()
            .expect("called in the resting form only")
    }

    fn is_home(&self) -> bool {
        self.rest().home == self.place.me
    }

    fn is_gate(&self) -> bool {
        self.rest().gate == self.place.me
    }

    pub(super) fn request_resting(&mut self, out: &mut Outbox<NeamatollahiMessage>) {
        if self.rest().token.is_some() {
            self.enter(out);
        } else if self.is_gate() {
            self.alert_gate(out);
        } else if !std::mem::replace(&mut self.rest_mut().alerted, true) {
            self.send_right(NeamatollahiMessage::Request(self.place.me), out);
        }
    }

    pub(super) fn receive_resting(
        &mut self,
        from: NodeId,
        message: NeamatollahiMessage,
        out: &mut Outbox<NeamatollahiMessage>,
    ) -> Result<(), Violation> {
        let refuse = |reason| Err(Violation::unexpected(from, &message, reason));
        match message {
            NeamatollahiMessage::Request(origin) => {
                self.may_be_alerted(from, origin, &message)?;
                if origin == self.place.me {
                    return refuse("an alert does not come round the row");
                }
                if self.is_gate() {
                    self.alert_gate(out);
                } else if std::mem::replace(&mut self.rest_mut().alerted, true) {
                    self.rest_mut().blocked = !Mutant::NeamatollahiBlockedNotNoted.planted();
                } else {
                    self.send_right(message, out);
                }
            }
            NeamatollahiMessage::Call => {
                if !self.is_below(from) {
                    return refuse("this node is not the gate below it");
                }
                self.on_call(out);
            }
            NeamatollahiMessage::RestingToken(token) => {
                if self.rest().token.is_some() {
                    return refuse("the token is here");
                }
                if !self.may_come_resting(from, token) {
                    return refuse("the token cannot come from there like this");
                }
                self.arrive_resting(token, out);
            }
            NeamatollahiMessage::Token(_) => return refuse("the token rests in this form"),
        }
        Ok(())
    }

    /// Whether this node is a gate and `from` is the gate above it.
    fn is_below(&self, from: NodeId) -> bool {
        self.is_gate() && self.rest().gate_above == from
    }

    fn may_come_resting(&self, from: NodeId, token: RestingToken) -> bool {
        if !token.in_row {
            return !token.row_again && !self.rest().token_in_row && self.is_below(from);
        }
        let expected = !self.is_gate() || self.rest().token_in_row;
        expected && self.place.shape.right(from) == self.place.me
    }

    /// Alerts this gate: a node in its row waits.
    fn alert_gate(&mut self, out: &mut Outbox<NeamatollahiMessage>) {
        let idle = self.phase == Phase::Idle;
        let is_home = self.is_home();
        let rest = self.rest_mut();
        if std::mem::replace(&mut rest.alerted, true) || rest.token_in_row {
            return; // the home is already called, or the token will return here
        }
        if !is_home {
            self.send_down(NeamatollahiMessage::Call, out);
        } else if idle && let Some(token) = rest.token.take() {
            self.set_out(token, out);
        }
    }

    fn on_call(&mut self, out: &mut Outbox<NeamatollahiMessage>) {
        if !self.is_home() {
            return self.send_down(NeamatollahiMessage::Call, out);
        }
        self.rest_mut().called = !Mutant::NeamatollahiCallLost.planted();
        if self.phase == Phase::Idle
            && let Some(token) = self.rest_mut().token.take()
        {
            self.set_out(token, out);
        }
    }

    fn arrive_resting(&mut self, mut token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        if !token.in_row {
            return self.at_gate(token, out);
        }
        if self.rest().token_in_row {
            return self.end_round(token, out);
        }
        let rest = self.rest_mut();
        rest.alerted = false;
        token.row_again |= std::mem::take(&mut rest.blocked);
        if self.phase == Phase::Waiting {
            self.rest_mut().token = Some(token);
            self.enter(out);
        } else {
            self.send_right(NeamatollahiMessage::RestingToken(token), out);
        }
    }

    pub(super) fn release_resting(&mut self, out: &mut Outbox<NeamatollahiMessage>) {
        let token = self.rest_mut().token.take();
        let token = token.expect("a node inside has the token");
        if !token.in_row {
            self.at_gate(token, out); // it rested here when this node made its request
        } else if self.place.shape.right(self.place.me) == self.place.me {
            self.end_round(token, out);
        } else {
            self.send_right(NeamatollahiMessage::RestingToken(token), out);
        }
    }

    /// Handles the token at a gate, outside its row. At home the token rests unless it was called.
    fn at_gate(&mut self, token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        let is_home = self.is_home();
        let rest = self.rest_mut();
        if is_home && !(token.again || rest.called || rest.alerted) {
            rest.token = Some(RestingToken::default());
        } else if is_home {
            self.set_out(token, out);
        } else {
            self.look_into_row(token, out);
        }
    }

    /// Sends the token from home on a round.
    fn set_out(&mut self, mut token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        token.again = false;
        self.rest_mut().called = false;
        self.look_into_row(token, out);
    }

    /// Sends the token into the row if it is alerted, and otherwise down the column.
    fn look_into_row(&mut self, mut token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        if !std::mem::take(&mut self.rest_mut().alerted) {
            return self.down_the_column(token, out);
        }
        token.in_row = true;
        self.rest_mut().token_in_row = true;
        if self.phase == Phase::Waiting {
            self.rest_mut().token = Some(token);
            self.enter(out);
        } else if self.place.shape.right(self.place.me) == self.place.me {
            self.end_round(token, out);
        } else {
            self.send_right(NeamatollahiMessage::RestingToken(token), out);
        }
    }

    /// Ends the token's round of the row: it is back at the gate.
    fn end_round(&mut self, mut token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        token.in_row = false;
        let rest = self.rest_mut();
        rest.token_in_row = false;
        rest.alerted |= std::mem::take(&mut token.row_again);
        token.again |= rest.alerted;
        self.down_the_column(token, out);
    }

    fn down_the_column(&mut self, token: RestingToken, out: &mut Outbox<NeamatollahiMessage>) {
        if self.place.shape.rows() == 1 {
            self.at_gate(token, out); // the only gate is the home
        } else {
            self.send_down(NeamatollahiMessage::RestingToken(token), out);
        }
    }

    /// Sends a message to the gate of the row below.
    fn send_down(&self, message: NeamatollahiMessage, out: &mut Outbox<NeamatollahiMessage>) {
        out.send(self.rest().gate_below, message);
    }
}
