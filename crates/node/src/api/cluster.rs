//! How the node and its cluster are.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use futures_util::stream::StreamExt;
use soloist_api::{Cluster, NodeHealth, NodeInfo};

use super::Api;
use super::error::Failure;
use super::gather::ask_all;
use crate::node::EPOCH;
use crate::node::inquiry::{Answer, Question};

/// All nodes, and how they are
#[utoipa::path(
    get, path = "/v1/cluster", tag = "cluster",
    responses((status = 200, description = "The cluster", body = Cluster)),
)]
pub(super) async fn cluster(State(api): State<Api>) -> Json<Cluster> {
    let _one_of_few = api.looking.acquire().await;
    let config = &api.node.shared.config;
    let nodes = config.nodes.iter().map(|(_, name, address)| NodeInfo {
        name: name.to_string(),
        address: address.to_string(),
        health: None,
    });
    let mut nodes: Vec<_> = nodes.collect();
    let mut answers = ask_all(&api.node, &Question::Health);
    while let Some((id, answer)) = answers.next().await {
        if let Some(Answer::Health(health)) = answer {
            nodes[id.index()].health = Some(NodeHealth {
                version: health.version,
                locks: health.locks,
                holds: health.holds,
                waiters: health.waiters,
                links_up: health.links_up,
            });
        }
    }
    let default = config.rules.all().last();
    Json(Cluster {
        node: api.node.name().to_owned(),
        epoch: EPOCH,
        algorithm: default.map_or("", |rule| rule.choice().name).to_owned(),
        nodes,
    })
}

/// Counts and times of this node, as Prometheus reads them
#[utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    let shared = &api.node.shared;
    let links = shared.links().counters();
    shared.metrics.observe(shared.core().table(), &links);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.render())
}

/// Whether this node serves
#[utoipa::path(
    get, path = "/healthz", tag = "node",
    responses((status = 200, description = "`ok`", body = String, content_type = "text/plain")),
    security(()),
)]
pub(super) async fn healthz(State(api): State<Api>) -> Result<&'static str, Failure> {
    let stops = api.node.shared.stopping.is_cancelled() || api.stopping.is_cancelled();
    match stops {
        true => Err(Failure::stopping()),
        false => Ok("ok"),
    }
}
