//! `/v1/locks`: acquire them, and see who holds and who waits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures_util::stream::StreamExt;
use serde::Deserialize;
use soloist_api::{AcquireRequest, Error, Hold, LockInfo, Locks};
use utoipa::IntoParams;

use super::error::Failure;
use super::gather::{ask_all, look};
use super::request::{Content, Name, Params, wait};
use super::{Api, holds};
use crate::locks::{Ask, LockName, LockView};
use crate::node::core::Held;
use crate::node::inquiry::{Answer, Question};
use crate::{AcquireError, Moment};

/// The longest name of an owner, in bytes.
const OWNER_MAX: usize = 256;

/// Who gives no name.
const ANONYMOUS: &str = "anonymous";

/// How long a lock that nobody has may take to come.
const TRY_MAX: Duration = Duration::from_secs(1);

/// How often the nodes are asked meanwhile whether somebody has got it.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Acquire a lock
///
/// Waits until it is granted, or as long as is said. Whoever disconnects waits no more.
#[utoipa::path(
    post, path = "/v1/locks/{name}/acquire", tag = "locks",
    params(("name" = String, Path, description = "The lock's name: 1 to 256 bytes of UTF-8 without control characters; `/` as `%2F`", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")),
    request_body = AcquireRequest,
    responses(
        (status = 200, description = "It is held", body = Hold),
        (status = 400, description = "The name, a time or the owner cannot be", body = Error),
        (status = 409, description = "Not granted in time", body = Error),
        (status = 410, description = "It was granted, and lost before this was answered", body = Error),
        (status = 429, description = "Too many wait on this node, or it has too many locks", body = Error),
    ),
)]
pub(super) async fn acquire(
    State(api): State<Api>,
    Name(name): Name,
    Content(request): Content<AcquireRequest>,
) -> Result<Json<Hold>, Failure> {
    let owner = request.owner.as_deref().unwrap_or(ANONYMOUS);
    check_owner(owner)?;
    let ttl_default = api.node.shared.config.ttl.default;
    let mut ask = Ask {
        owner: owner.into(),
        ttl: Some(request.ttl_ms.map_or(ttl_default, Duration::from_millis)),
        until: None,
    };
    let limit = request.wait_ms.map(wait).transpose()?;
    let _one_of_many = api.long_request()?;
    let granted = async {
        if limit.is_some_and(|limit| limit.is_zero()) {
            return try_acquire(&api, &name, ask).await;
        }
        ask.until = limit.map(|limit| Moment::now() + limit);
        Ok(api.node.acquire(&name, ask).await?)
    };
    // Between the grant and the answer nothing is awaited: who goes away before it has no hold.
    let held = tokio::select! {
        biased;
        granted = granted => granted?,
        () = api.stopping.cancelled() => return Err(Failure::stopping()),
    };
    // It may have been lost meanwhile, if this machine slept.
    holds::answer(&api.node.shared, &held)
}

fn check_owner(owner: &str) -> Result<(), Failure> {
    if owner.len() > OWNER_MAX {
        return Err(Failure::bad_request(format!(
            "the owner has {} bytes: at most {OWNER_MAX} are allowed, shorten it",
            owner.len()
        )));
    }
    match owner.chars().find(|c| c.is_control()) {
        Some(control) => Err(Failure::bad_request(format!(
            "the owner has the control character {control:?}: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Acquires a lock unless somebody is before this one. Asks for it and asks all nodes at the same time: if
/// it is free, it is there after as few messages as ever.
async fn try_acquire(api: &Api, name: &LockName, mut ask: Ask) -> Result<Arc<Held>, Failure> {
    let asked = Moment::now();
    let own = api.node.shared.core().table().view(asked, name);
    if own.is_some() {
        return Err(taken(name));
    }
    ask.until = Some(asked + TRY_MAX);
    let mut acquire = pin!(api.node.acquire(name, ask));
    let granted = tokio::select! {
        biased;
        granted = &mut acquire => granted,
        () = somebody_before(api, name, asked) => {
            // This may be who was seen: then the answer is there already.
            tokio::select! {
                biased;
                granted = &mut acquire => granted,
                () = std::future::ready(()) => return Err(taken(name)),
            }
        }
    };
    granted.map_err(|error| match error {
        AcquireError::Late(_) => Failure::not_granted(format!(
            "lock {name:?} did not come within {TRY_MAX:?}, though nobody was seen with it: a node may be down or slow"
        )),
        other => other.into(),
    })
}

fn taken(name: &LockName) -> Failure {
    Failure::not_granted(format!(
        "lock {name:?} is not free: somebody holds it or waits for it; give a wait_ms to wait"
    ))
}

/// Returns when somebody holds the lock, or surely began to wait for it before `asked`.
async fn somebody_before(api: &Api, name: &LockName, asked: Moment) {
    let question = Question::Lock(name.to_string());
    loop {
        let mut answers = ask_all(&api.node, &question);
        while let Some((_, answer)) = answers.next().await {
            let Some(Answer::Lock(Some(view))) = answer else {
                continue;
            };
            if is_before(&view, Moment::now().since(asked)) {
                return;
            }
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// Whether somebody there holds the lock, or has waited for longer than this one. If two try at
/// the same time, one of them gets it.
fn is_before(view: &LockView, waited_for: Duration) -> bool {
    let longest = view.waiters.iter().map(|waiter| waiter.waited_for).max();
    view.holder.is_some() || longest.is_some_and(|longest| longest > waited_for)
}

/// Who holds a lock, and who waits for it
///
/// As all nodes together see it.
#[utoipa::path(
    get, path = "/v1/locks/{name}", tag = "locks",
    params(("name" = String, Path, description = "The lock's name: 1 to 256 bytes of UTF-8 without control characters; `/` as `%2F`", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")),
    responses(
        (status = 200, description = "The lock", body = LockInfo),
        (status = 400, description = "The name cannot be", body = Error),
    ),
)]
pub(super) async fn lock(State(api): State<Api>, Name(name): Name) -> Json<LockInfo> {
    let _one_of_few = api.looking.acquire().await;
    let seen = look(&api.node, Question::Lock(name.to_string())).await;
    Json(seen.lock(name.as_str(), api.algorithm(name.as_str())))
}

/// Where a list begins.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct After {
    /// Only locks after this name: the `next` of the answer before.
    after: Option<String>,
}

/// All locks that somebody holds or waits for
///
/// As all nodes together see them, by name; as many as fit an answer.
#[utoipa::path(
    get, path = "/v1/locks", tag = "locks",
    params(After),
    responses(
        (status = 200, description = "The locks", body = Locks),
        (status = 400, description = "The question cannot be", body = Error),
    ),
)]
pub(super) async fn locks(State(api): State<Api>, Params(from): Params<After>) -> Json<Locks> {
    let _one_of_few = api.looking.acquire().await;
    let seen = look(&api.node, Question::Locks(from.after)).await;
    Json(seen.page(|name| api.algorithm(name).to_owned()))
}
