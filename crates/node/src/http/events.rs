//! `/v1/events`: the live event stream of this node, or of all members.

use std::time::Duration;

use axum::Error;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Deserialize;

use super::error::Failure;
use super::lengths::TooLong;
use super::request::Params;
use super::{Api, lengths};
use crate::Node;
use crate::node::Events;
use crate::node::all_events::{AllEvents, NotACursor};

/// Interval of keep-alive comments on an idle stream. They also reveal a reader that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Query of an event stream.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
pub(super) struct Wanted {
    /// Whether to stream the events of all members, not only of this node. They come a moment
    /// later, and have a `cursor`.
    #[serde(default)]
    all: bool,
    /// Stream only events of locks whose name starts with this.
    prefix: Option<String>,
    /// Begin after this `cursor` of an event, as far as the members still have later ones. Works
    /// with `all` only.
    after: Option<String>,
}

/// Stream the events of this node, or of all members
///
/// Server-sent events, named as in `event`. A client that reads too slowly gets `missed`.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/events", tag = "events",
    params(Wanted),
    responses(
        (status = 200, description = "An endless stream of events", body = soloist_api::Event, content_type = "text/event-stream"),
        (status = 400, description = "Invalid query", body = soloist_api::Error),
    ),
))]
pub(super) async fn events(
    State(api): State<Api>,
    Params(wanted): Params<Wanted>,
) -> Result<Sse<impl Stream<Item = Result<Event, Error>>>, Failure> {
    let prefix = wanted.prefix.unwrap_or_default();
    let events = Watching::start(&api.node, wanted.all, prefix, wanted.after.as_deref());
    let mut events = events.map_err(|error| Failure::bad_request(error.to_string()))?;
    // Before the response starts, so that no later event is missed.
    events.begin().await;
    let stream = stream::unfold((api, events), |(api, mut events)| async {
        let event = tokio::select! {
            event = events.next() => event?,
            () = api.stopping.cancelled() => return None,
        };
        let sent = Event::default().event(event.event.name()).json_data(&event);
        Some((sent, (api, events)))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Why events cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotWatch {
    #[error(transparent)]
    Prefix(#[from] TooLong),
    #[error(transparent)]
    Cursor(#[from] NotACursor),
}

/// What a client watches.
pub(super) enum Watching {
    /// The events of this node, of locks with this prefix.
    This(Events, String),
    /// The events of all members.
    All(AllEvents),
}

impl Watching {
    pub(super) fn start(
        node: &Node,
        all: bool,
        prefix: String,
        after: Option<&str>,
    ) -> Result<Self, CannotWatch> {
        lengths::check("prefix", Some(&prefix))?;
        Ok(match all {
            true => Watching::All(node.all_events(prefix, after)?),
            false => Watching::This(node.events(), prefix),
        })
    }

    /// Waits until no later event is missed. Cancel safe.
    pub(super) async fn begin(&mut self) {
        if let Watching::All(events) = self {
            events.begin().await;
        }
    }

    /// Waits for the next event. Returns `None` when the node has stopped. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<soloist_api::Event> {
        match self {
            Watching::All(events) => events.next().await,
            Watching::This(events, prefix) => loop {
                let event = events.next().await?;
                let is_missed = event.event == soloist_api::EventKind::Missed;
                if is_missed || event.lock.starts_with(prefix.as_str()) {
                    return Some(event);
                }
            },
        }
    }
}
