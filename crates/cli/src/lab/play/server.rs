//! The local server of the player. It keeps no state: each answer follows from the text that the
//! request brings.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use soloist_algorithms::Choice;
use soloist_lab::play::{self, Compared, Comparison, RecordError, SearchLimits};
use soloist_lab::scenario::ScenarioError;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;

use super::assets::{MODULES, PAGE, STYLE};
use crate::page::{Site, text};

/// Longest request. A longer text has more steps than a run may have.
const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Number of searches at the same time. Each may fill the memory that it is allowed.
const SEARCHES_MAX: usize = 1;

/// Number of runs that are played at the same time. Each may fill the memory that a run may.
const RUNS_MAX: usize = 2;

/// What the command line asks to show first.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// The scenario, or `None` for the gallery.
    pub(super) text: Option<String>,
    /// The position in it.
    pub(super) at: usize,
}

#[derive(Debug)]
struct Shared {
    start: Start,
    searches: Semaphore,
    runs: Arc<Semaphore>,
}

impl Shared {
    fn new(start: Start) -> Self {
        Shared {
            start,
            searches: Semaphore::new(SEARCHES_MAX),
            runs: Arc::new(Semaphore::new(RUNS_MAX)),
        }
    }
}

pub(super) const SITE: Site = Site {
    name: "play",
    command: "soloist lab play",
    home: "",
};

/// The answers of the server.
pub(super) fn router(start: Start) -> Router {
    routes(Arc::new(Shared::new(start)))
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(async || text("text/html", PAGE)))
        .route("/style.css", get(async || text("text/css", STYLE)))
        .route("/src/{name}", get(module))
        .route("/start", get(first))
        .route("/gallery", get(gallery))
        .route("/gallery/{name}", get(gallery_text))
        .route("/run", post(run))
        .route("/transcript", post(transcript))
        .route("/compare", post(compare))
        .route("/search", post(search))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(shared)
}

async fn module(Path(name): Path<String>) -> Response {
    match MODULES.iter().find(|module| module.name == name) {
        Some(module) => text("text/javascript", module.text),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn first(State(shared): State<Arc<Shared>>) -> Response {
    let algorithms: Vec<&str> = Choice::all().map(|choice| choice.name).collect();
    let Start { text, at } = &shared.start;
    Json(json!({ "text": text, "at": at, "algorithms": algorithms })).into_response()
}

/// A request that cannot be answered: a sentence, and the line that it is about.
struct Refusal {
    status: StatusCode,
    error: String,
    line: Option<usize>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "line": self.line });
        (self.status, Json(body)).into_response()
    }
}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Self {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            line: match error {
                ScenarioError::Line { line, .. } => Some(line),
                _ => None,
            },
            error: error.to_string(),
        }
    }
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Scenario(error) => error.into(),
            error => Refusal {
                status: StatusCode::BAD_REQUEST,
                line: None,
                error: error.to_string(),
            },
        }
    }
}

impl From<JsonRejection> for Refusal {
    fn from(error: JsonRejection) -> Self {
        Refusal {
            status: error.status(),
            line: None,
            error: match error.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    format!(
                        "the scenario is too long (maximum: {} MB)",
                        REQUEST_BYTES_MAX >> 20
                    )
                }
                _ => error.body_text(),
            },
        }
    }
}

type Answer<T> = Result<Json<T>, Refusal>;

/// Runs what may take long outside of the threads that serve requests, a few at a time.
async fn work<T: Send + 'static, E: Into<Refusal> + Send + 'static>(
    shared: Arc<Shared>,
    job: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Answer<T> {
    let turn = Arc::clone(&shared.runs).acquire_owned().await;
    let turn = turn.expect("it is not closed");
    let result = spawn_blocking(move || {
        // If the client leaves, the job goes on, and its turn too.
        let _turn = turn;
        job()
    });
    let result = result.await.expect("the lab does not panic");
    result.map(Json).map_err(Into::into)
}

/// The gallery. It is made once: each run is played for its picture.
async fn gallery() -> Json<&'static [play::Exhibit]> {
    static GALLERY: OnceLock<Vec<play::Exhibit>> = OnceLock::new();
    let all = tokio::task::spawn_blocking(|| GALLERY.get_or_init(play::gallery));
    Json(all.await.expect("every run of the gallery can be played"))
}

async fn gallery_text(Path(name): Path<String>) -> Answer<Text> {
    let text = play::exhibit(&name);
    let text = text.ok_or_else(|| Refusal {
        status: StatusCode::NOT_FOUND,
        error: format!("the gallery has no run {name:?}"),
        line: None,
    })?;
    Ok(Json(Text { text }))
}

#[derive(Deserialize)]
struct RunQuery {
    text: String,
    /// The first step of the answer: the caller has those before it.
    #[serde(default)]
    from: usize,
}

async fn run(
    State(shared): State<Arc<Shared>>,
    query: Result<Json<RunQuery>, JsonRejection>,
) -> Answer<play::Run> {
    let Json(RunQuery { text, from }) = query?;
    work(shared, move || play::run(&text, from)).await
}

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// Returns the scenario with what the nodes do at each step, which is what tests compare.
async fn transcript(
    State(shared): State<Arc<Shared>>,
    query: Result<Json<Text>, JsonRejection>,
) -> Answer<Text> {
    let Json(Text { text }) = query?;
    work(shared, move || {
        play::transcript(&text).map(|text| Text { text })
    })
    .await
}

async fn compare(
    State(shared): State<Arc<Shared>>,
    query: Result<Json<Comparison>, JsonRejection>,
) -> Answer<Compared> {
    let Json(query) = query?;
    work(shared, move || play::compare(&query)).await
}

#[derive(Deserialize)]
struct SearchQuery {
    text: String,
    /// Maximum number of states.
    states: usize,
    /// How often each node may request from here on.
    requests: u8,
    /// How many more crashes there may be, if the algorithm recovers from them.
    #[serde(default)]
    crashes: u8,
    /// The search is given up after this time.
    seconds: u64,
}

/// Streams the progress of a search and then its result, one JSON object per line. The search stops
/// when the client closes the connection: then nothing can be sent to it.
async fn search(
    State(shared): State<Arc<Shared>>,
    query: Result<Json<SearchQuery>, JsonRejection>,
) -> Result<Response, Refusal> {
    let Json(query) = query?;
    let (lines, received) = mpsc::channel::<String>(4);
    tokio::spawn(async move {
        let turn = tokio::select! {
            turn = shared.searches.acquire() => turn,
            () = lines.closed() => return,
        };
        let searched = spawn_blocking(move || search_into(&query, &lines)).await;
        searched.expect("the lab does not panic");
        drop(turn);
    });
    let lines = stream::unfold(received, async |mut received| {
        let line = received.recv().await?;
        Some((Ok::<_, Infallible>(line), received))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

fn search_into(query: &SearchQuery, lines: &mpsc::Sender<String>) {
    let send = |value: serde_json::Value| lines.blocking_send(format!("{value}\n")).is_ok();
    let begin = Instant::now();
    let limit = Duration::from_secs(query.seconds);
    let limits = SearchLimits {
        states: query.states,
        requests: query.requests,
        crashes: query.crashes,
    };
    let found = play::search(&query.text, limits, &mut |progress| {
        begin.elapsed() < limit && send(json!({ "progress": progress }))
    });
    send(match found {
        Ok(found) => json!(found),
        Err(error) => json!({ "error": error.to_string() }),
    });
}

#[cfg(test)]
mod tests;
