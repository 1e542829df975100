//! Status of the node and its cluster, and changes of the keepers.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream::StreamExt;
use soloist_api::dashboard::Overview;
use soloist_api::{Cluster, NodeHealth, NodeInfo, NodeState};
use tokio::time::{Instant, timeout_at};

use super::Api;
use super::error::Failure;
use super::request::NodeOf;
use crate::Moment;
use crate::membership::{self, ClusterView, Reply};
use crate::metrics::Observed;
use crate::node::gather::ask_all;
use crate::node::inquiry::{NodeAnswer, NodeQuestion};
use crate::node::shared::Shared;
use soloist_core::epochs::member::MemberState;
use soloist_core::epochs::roster::Member;

/// Timeout for the leader's view of the cluster.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout for a change of the keepers.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// List all nodes and their state
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/cluster", tag = "cluster",
    responses((status = 200, description = "The cluster", body = Cluster)),
))]
pub(super) async fn cluster(State(api): State<Api>) -> Json<Cluster> {
    let departed = api.node.departed().await;
    let _one_of_few = api.node.shared.looking.acquire().await;
    let shared = &api.node.shared;
    let led = ask_leader(shared).await;
    let (state, members) = {
        let mut core = shared.core();
        core.look(shared);
        (core.member_state(), core.members())
    };
    let mut nodes = nodes(shared, led.as_ref(), &members);
    let mut answers = ask_all(&api.node, |_| NodeQuestion::Health);
    while let Some((name, answer)) = answers.next().await {
        let node = nodes.iter_mut().find(|node| node.name == name.as_str());
        if let (Some(node), Some(NodeAnswer::Health(health))) = (node, answer) {
            node.health = Some(NodeHealth {
                version: health.version,
                locks: health.locks,
                holds: health.holds,
                waiters: health.waiters,
                links_up: health.links_up,
            });
        }
    }
    let tried = shared.keeping.leader_client.way().tried;
    for node in nodes.iter_mut().filter(|node| node.health.is_none()) {
        let known = tried.iter().find(|(name, _)| name.as_str() == node.name);
        node.problem = known.map(|(_, problem)| problem.clone());
    }
    let default = shared.config.rules.all().last();
    let (state, epoch) = match state {
        MemberState::Member(epoch) => (NodeState::Member, epoch),
        MemberState::Changing(epoch) => (NodeState::Changing, epoch),
        MemberState::Outside => (NodeState::Outside, led.as_ref().map_or(0, |led| led.epoch)),
    };
    Json(Cluster {
        node: api.node.name().to_owned(),
        state,
        reason: shared.why_unknown(),
        epoch,
        leader: led.map(|led| led.leader.to_string()),
        algorithm: default.map_or("", |rule| rule.choice().name).to_owned(),
        nodes,
        departed,
    })
}

/// Judge the cluster
///
/// What is wrong, what is well, and what to do, as this node sees it. A node without a lease
/// does not know the state of the others, and says so.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/overview", tag = "cluster",
    responses((status = 200, description = "The overview", body = Overview)),
))]
pub(super) async fn overview(State(api): State<Api>) -> Json<Overview> {
    Json(api.node.look().await.overview)
}

async fn ask_leader(shared: &Shared) -> Option<ClusterView> {
    let leader_client = &shared.keeping.leader_client;
    match leader_client
        .ask(membership::LeaderQuestion::Cluster, TIMEOUT)
        .await
    {
        Ok(Reply::Cluster(view)) => Some(view),
        _ => None,
    }
}

/// Returns all nodes, by name: as the leader sees them, or as this node does if it has no answer
/// from the leader.
fn nodes(shared: &Shared, led: Option<&ClusterView>, members: &[Member]) -> Vec<NodeInfo> {
    let info = |member: &Member, lease_ms| NodeInfo {
        name: member.name.to_string(),
        address: member.address.to_string(),
        keeper: false,
        lease_ms,
        health: None,
        problem: None,
    };
    let mut nodes: Vec<NodeInfo> = match led {
        Some(led) => {
            let members = led.members.iter();
            members.map(|(m, lease)| info(m, Some(*lease))).collect()
        }
        None => members.iter().map(|member| info(member, None)).collect(),
    };
    for keeper in shared
        .keeping
        .leader_client
        .way()
        .keepers
        .unwrap_or_default()
    {
        let mut known = nodes.iter_mut();
        match known.find(|node| node.name == keeper.name.as_str()) {
            Some(node) => node.keeper = true,
            // A keeper that is not a member is down or cut off.
            None => nodes.push(NodeInfo {
                name: keeper.name.to_string(),
                address: keeper.address.to_string(),
                keeper: true,
                lease_ms: None,
                health: None,
                problem: None,
            }),
        }
    }
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

/// Make a node a keeper
///
/// The node must be a member. Answers once it has everything that the keepers have stored.
#[cfg_attr(feature = "schema", utoipa::path(
    put, path = "/v1/cluster/keepers/{node}", tag = "cluster",
    params(("node" = String, Path, description = "The node's name", pattern = "^[a-z][a-z0-9-]{0,62}$")),
    responses(
        (status = 204, description = "The node is a keeper"),
        (status = 400, description = "Invalid name", body = soloist_api::Error),
        (status = 409, description = "The node cannot become a keeper now; `detail` has the reason", body = soloist_api::Error),
        (status = 503, description = "The keepers' leader cannot be reached", body = soloist_api::Error),
    ),
))]
pub(super) async fn promote(
    State(api): State<Api>,
    NodeOf(name): NodeOf,
) -> Result<StatusCode, Failure> {
    change_keepers(&api, membership::LeaderQuestion::Promote(name)).await
}

/// Make a keeper an ordinary node
#[cfg_attr(feature = "schema", utoipa::path(
    delete, path = "/v1/cluster/keepers/{node}", tag = "cluster",
    params(("node" = String, Path, description = "The keeper's name", pattern = "^[a-z][a-z0-9-]{0,62}$")),
    responses(
        (status = 204, description = "The node is not a keeper"),
        (status = 400, description = "Invalid name", body = soloist_api::Error),
        (status = 409, description = "The node must remain a keeper; `detail` has the reason", body = soloist_api::Error),
        (status = 503, description = "The keepers' leader cannot be reached", body = soloist_api::Error),
    ),
))]
pub(super) async fn demote(
    State(api): State<Api>,
    NodeOf(name): NodeOf,
) -> Result<StatusCode, Failure> {
    change_keepers(&api, membership::LeaderQuestion::Demote(name)).await
}

/// Asks the leader for this change. A leader does not remove itself from the keepers: it hands
/// over, and the next leader is asked.
async fn change_keepers(
    api: &Api,
    change: membership::LeaderQuestion,
) -> Result<StatusCode, Failure> {
    let _one_of_few = api.node.shared.looking.acquire().await;
    let leader_client = &api.node.shared.keeping.leader_client;
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let former = match leader_client.ask(change.clone(), left).await {
            Ok(Reply::Done) => return Ok(StatusCode::NO_CONTENT),
            Ok(Reply::Refused(reason)) => return Err(Failure::conflict(reason)),
            Ok(Reply::HandsOver(former)) => former,
            Ok(Reply::Cluster(_) | Reply::Overview(_)) => {
                let reason = "unexpected answer".to_owned();
                return Err(Failure::unavailable(reason));
            }
            Err(error) => return Err(Failure::unavailable(error.to_string())),
        };
        let next = timeout_at(deadline, leader_client.next_leader(&former)).await;
        if let Ok(Some(next)) = next
            && next.name != former
        {
            continue;
        }
        return Err(Failure::conflict(format!(
            "{former} is the keepers' leader, and no other keeper took over from it; check that \
             the other keepers run and reach each other, and try again"
        )));
    }
}

/// Metrics of this node, in Prometheus format
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain")),
))]
pub(super) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    let shared = &api.node.shared;
    let membership = &shared.keeping.membership;
    let keeper = membership.keeper();
    let keepers_refused = keeper.as_ref().map_or(0, |keeper| keeper.refusals());
    let keeper_view = keeper.as_ref().map(|keeper| keeper.view());
    let links = shared.links().counters();
    let peers = shared.links().status().into_iter();
    let peers = peers.map(|link| (link.name, link.out_up)).collect();
    let observed = {
        let mut core = shared.core();
        core.look(shared);
        let until = core.valid_until();
        let table = core.table();
        let counts = table.counts();
        let is_current = table.epoch() == Some(counts.fence.epoch());
        Observed {
            epoch: match core.member_state() {
                MemberState::Member(epoch) => epoch,
                MemberState::Changing(_) | MemberState::Outside => 0,
            },
            members: core.members().len(),
            lease: until.map_or(Duration::ZERO, |until| until.since(Moment::now())),
            leads: keeper_view.as_ref().is_some_and(|view| view.leads),
            store_ok: keeper_view.map(|view| view.stopped.is_none()),
            certificate_ends_s: shared.certificate_ends_ms.map(|ends| ends / 1000),
            fences_used: if is_current { counts.fence.used() } else { 0.0 },
            locks: table.locks(),
            holds: table.holds(),
            waiters: table.waiters(),
            longest_wait: table.longest_wait(Moment::now()).unwrap_or_default(),
            sessions: table.sessions(),
            counts: counts.clone(),
            links,
            peers,
            refused: membership.refused.count() + keepers_refused,
            refused_elsewhere: membership.refused_by.count(),
        }
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    (
        [(header::CONTENT_TYPE, kind)],
        shared.metrics.render(&observed),
    )
}

/// Check that this node's process works
///
/// Succeeds even while the node is not a member or is stopping; see `/readyz`.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/healthz", tag = "node",
    responses((status = 200, description = "`ok`", body = String, content_type = "text/plain")),
    security(()),
))]
pub(super) async fn healthz(State(api): State<Api>) -> Result<&'static str, Failure> {
    if api.node.shared.fault.has_happened() {
        Err(Failure::stopping())
    } else {
        Ok("ok")
    }
}

/// Check that this node can grant locks
///
/// It can if it is a member of an epoch that has begun, has a valid lease, and is not stopping.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/readyz", tag = "node",
    responses(
        (status = 200, description = "`ok`", body = String, content_type = "text/plain"),
        (status = 503, description = "The node cannot grant locks; `detail` has the reason", body = soloist_api::Error),
    ),
    security(()),
))]
pub(super) async fn readyz(State(api): State<Api>) -> Result<&'static str, Failure> {
    let shared = &api.node.shared;
    let stops = shared.stopping.is_cancelled() || api.stopping.is_cancelled();
    if stops || shared.fault.has_happened() {
        return Err(Failure::stopping());
    }
    match shared.why_unknown() {
        Some(reason) => Err(Failure::unavailable(reason)),
        None => Ok("ok"),
    }
}
