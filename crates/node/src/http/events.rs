//! `/v1/events`: the live event stream of this node.

use std::time::Duration;

use axum::Error;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};

use super::Api;

/// Interval of keep-alive comments on an idle stream. They also reveal a reader that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Stream the events of this node
///
/// Server-sent events, named as in `event`. A client that reads too slowly gets `missed`.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/events", tag = "events",
    responses((status = 200, description = "An endless stream of events", body = soloist_api::Event, content_type = "text/event-stream")),
))]
pub(super) async fn events(
    State(api): State<Api>,
) -> Sse<impl Stream<Item = Result<Event, Error>>> {
    // Subscribe before the response starts, so that no later event is missed.
    let events = api.node.events();
    let stream = stream::unfold((api, events), |(api, mut events)| async {
        let event = tokio::select! {
            event = events.next() => event?,
            () = api.stopping.cancelled() => return None,
        };
        let sent = Event::default().event(event.event.name()).json_data(&event);
        Some((sent, (api, events)))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}
