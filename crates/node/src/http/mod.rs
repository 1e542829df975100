//! The HTTP API of a node: on a Unix socket, and on TCP if configured.
//!
//! Requests and responses are defined in [`soloist_api`]; `/openapi.json` describes the API. Every
//! process that may open the Unix socket may use it. Over TCP, the configuration decides whether
//! clients need a token or a certificate.

mod auth;
mod cluster;
mod error;
mod events;
mod holds;
mod lengths;
mod listen;
mod locks;
mod long;
mod openapi;
mod origin;
mod progress;
mod request;
mod requests;
mod session;
mod socket;
mod ui;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{MethodRouter, delete, get, post, put};
use bytes::Bytes;
use soloist_api::compiled_here;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use listen::ApiError;
pub use ui::{PAGE_HEADERS, PageFiles, cookies};

use crate::{Node, files};
use auth::{Guard, Token};
use listen::Door;
use long::LongRequests;
use session::ConnectionIds;
use session::left::ENDINGS_MAX;
use socket::SocketFile;
use ui::{Page, Pass};

/// Timeout for requests to end when the API stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// State shared by all requests. Cheap to clone.
#[derive(Clone)]
struct Api(Arc<ApiState>);

struct ApiState {
    node: Node,
    stopping: CancellationToken,
    /// Cuts what does not end by itself.
    cut: CancellationToken,
    connections: ConnectionIds,
    /// Slots for long-running requests. At most three quarters of a listener's connections may have
    /// one, which leaves room for requests that renew and release.
    long: LongRequests,
    /// Slots for ending what clients left on other nodes.
    endings: LongRequests,
}

impl Deref for Api {
    type Target = ApiState;

    fn deref(&self) -> &ApiState {
        &self.0
    }
}

/// The running API of a node. Dropping it ends it immediately; [`stop`](ApiServer::stop) ends it
/// gracefully.
#[must_use = "the API ends as soon as this is dropped"]
pub struct ApiServer {
    addresses: Addresses,
    socket: SocketFile,
    stopping: CancellationToken,
    /// Cancels requests that do not end by themselves.
    cut: CancellationToken,
    tasks: TaskTracker,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

/// The addresses of an API.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Addresses {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The TCP address, if any. If the configured port is 0, this has the port that was chosen.
    pub tcp: Option<SocketAddr>,
}

/// Serves the API of a node on the addresses in its configuration.
///
/// Stop the node first, then the API, so that holders learn that the node has ended their holds.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use soloist_node::{Node, http, config::Config};
///
/// let node = Node::start(Config::load("soloist.toml".as_ref())?).await?;
/// let server = http::serve(&node).await?;
/// println!("serves on {}", server.addresses().socket.display());
/// node.stop(std::time::Duration::from_secs(30)).await;
/// server.stop().await;
/// # Ok(())
/// # }
/// ```
pub async fn serve(node: &Node) -> Result<ApiServer, ApiError> {
    serve_within(node, files::limit()).await
}

/// As [`serve`], for a program that has the files of the dashboard's page: the node serves them at
/// `/ui` if its configuration says so.
pub fn serve_with_page(
    node: &Node,
    page: PageFiles,
) -> impl Future<Output = Result<ApiServer, ApiError>> + Send {
    compiled_here(listen_and_serve(node, files::limit(), Some(page)))
}

/// As [`serve`], with as many connections as if this process could open only this many files. Half
/// of them are for clients.
pub fn serve_within(
    node: &Node,
    files_max: u64,
) -> impl Future<Output = Result<ApiServer, ApiError>> + Send {
    compiled_here(listen_and_serve(node, files_max, None))
}

async fn listen_and_serve(
    node: &Node,
    files_max: u64,
    page: Option<PageFiles>,
) -> Result<ApiServer, ApiError> {
    let config = &node.shared.config.api;
    let page = match (config.ui, page) {
        (false, _) => None,
        (true, None) => return Err(ApiError::NoPage),
        (true, Some(files)) => Some(Page {
            files,
            pass: Pass::new(node.name()),
        }),
    };
    let tcp = match &config.tcp {
        Some(tcp) => Some(listen::open_tcp(tcp).await?),
        None => None,
    };
    let (socket, listener) = SocketFile::bind(&config.socket, &config.access).await?;
    let stopping = CancellationToken::new();
    let cut = CancellationToken::new();
    let tasks = TaskTracker::new();
    let listeners = 1 + usize::from(tcp.is_some());
    let connections_max = files::api_connections_max(files_max, listeners);
    let long_max = (connections_max / 4 * 3).max(1);
    let api = Api(Arc::new(ApiState {
        node: node.clone(),
        stopping: stopping.clone(),
        cut: cut.clone(),
        connections: ConnectionIds::default(),
        long: LongRequests::new(long_max),
        endings: LongRequests::new(ENDINGS_MAX),
    }));
    let door = |token: Option<Token>, certificate| {
        let has_token = token.is_some();
        let router = router(api.clone(), token, certificate, page.as_ref());
        Door::new(router, &stopping, &cut, &tasks, connections_max, has_token)
    };
    tasks.spawn(listen::unix(listener, door(None, false)));
    // A failed node must not look like one that serves.
    tasks.spawn({
        let (node, stopping, cut) = (node.clone(), stopping.clone(), cut.clone());
        async move {
            tokio::select! {
                _ = node.shared.fault.happened() => cut.cancel(),
                () = stopping.cancelled() => {}
            }
            stopping.cancel();
        }
    });
    let address = tcp.as_ref().map(|tcp| tcp.address);
    if let Some(tcp) = tcp {
        let door = door(tcp.token, tcp.certificate);
        tasks.spawn(listen::tcp(tcp.listener, tcp.tls, door));
    }
    Ok(ApiServer {
        addresses: Addresses {
            socket: config.socket.clone(),
            tcp: address,
        },
        socket,
        stopping,
        cut,
        tasks,
    })
}

impl ApiServer {
    /// Returns the addresses of the API.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns the path of the Unix socket.
    pub fn socket(&self) -> &Path {
        &self.addresses.socket
    }

    /// Accepts no new connections, tells waiting clients that the node is stopping, and returns
    /// when all requests are answered, or cuts them off after five seconds. Stop the node first:
    /// its clients need the API until it has left.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.socket.remove();
        self.tasks.close();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await;
        self.cut.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.cut.cancel();
    }
}

/// All paths of the API.
fn routes(document: Bytes) -> [(&'static str, MethodRouter<Api>); 15] {
    let description = get(move || openapi::serve(document.clone()));
    let keeper = put(cluster::promote).delete(cluster::demote);
    [
        ("/v1/locks", get(locks::locks)),
        ("/v1/locks/{name}", get(locks::lock)),
        ("/v1/locks/{name}/acquire", post(locks::acquire)),
        ("/v1/requests/{request}", delete(requests::give_up)),
        ("/v1/holds/{hold}", get(holds::hold).delete(holds::release)),
        ("/v1/holds/{hold}/renew", post(holds::renew)),
        ("/v1/cluster", get(cluster::cluster)),
        ("/v1/overview", get(cluster::overview)),
        ("/v1/cluster/keepers/{node}", keeper),
        ("/v1/events", get(events::events)),
        ("/v1/session", get(session::session)),
        ("/metrics", get(cluster::metrics)),
        ("/openapi.json", description),
        ("/healthz", get(cluster::healthz)),
        ("/readyz", get(cluster::readyz)),
    ]
}

/// Routes all paths. `/openapi.json` says whether a token or a certificate is required.
fn router(api: Api, token: Option<Token>, certificate: bool, page: Option<&Page>) -> Router {
    let document = openapi::document(&api.node.shared.config, token.is_some(), certificate);
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for (path, methods) in routes(document) {
        if openapi::OPEN.contains(&path) {
            open = open.route(path, methods);
        } else {
            guarded = guarded.route(path, methods);
        }
    }
    if let Some(page) = page {
        guarded = guarded.merge(page.guarded_routes());
        open = open.merge(page.open_routes());
    }
    let mut guarded = guarded.fallback(error::no_such_path);
    if let Some(token) = token {
        let pass = page.map(|page| page.pass.clone());
        let guard = Guard { token, pass };
        guarded = guarded.layer(axum::middleware::from_fn_with_state(guard, auth::check));
    }
    guarded
        .merge(open)
        .method_not_allowed_fallback(error::no_such_method)
        .with_state(api)
}
