//! Events of a run, for those who want to see or process them one by one.

use serde::Serialize;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceKind {
    /// The node requests.
    Request,
    /// The node enters.
    Enter,
    /// The node leaves.
    Leave,
    /// The node sends a message to its peer.
    Send,
    /// A message of its peer arrives at the node.
    Receive,
    /// The node crashes.
    Crash,
    /// The node restarts.
    Restart,
    /// The node has heard from all peers since it restarted.
    Settled,
}

/// One event of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceEvent {
    /// The time in message delays.
    pub time: f64,
    /// What happened.
    pub event: TraceKind,
    /// Where it happened.
    pub node: u32,
    /// The other end, if a message was sent or received.
    pub peer: Option<u32>,
    /// The paper's name for the message.
    pub message: Option<&'static str>,
    /// The whole message, as in transcripts.
    #[serde(skip)]
    pub text: Option<String>,
}

/// Receives the events of a run in order.
pub type Tracer<'a> = &'a mut dyn FnMut(&TraceEvent);
