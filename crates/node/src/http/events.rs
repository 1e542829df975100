//! `/v1/events`: what happens on this node, as it happens.

use std::time::Duration;

use axum::Error;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};

use super::Api;

/// How often a silent stream shows that it is alive; also how a reader that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What happens on this node, as it happens
///
/// Server-sent events, named as in `event`. Who reads too slowly gets `missed`.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/events", tag = "events",
    responses((status = 200, description = "Events without end", body = soloist_api::Event, content_type = "text/event-stream")),
))]
pub(super) async fn events(
    State(api): State<Api>,
) -> Sse<impl Stream<Item = Result<Event, Error>>> {
    // Subscribed before the answer begins: what happens after that is seen.
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
