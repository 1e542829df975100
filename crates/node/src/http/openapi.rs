//! `/openapi.json`: the machine-readable description of the API.

use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Value, json};

use super::request::WAIT_MS_MAX;
use crate::config::Config;
use crate::node::event::milliseconds;

/// The description of every node's API. A test compares it with the one generated from the code.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Paths that need no token.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

pub(super) async fn serve(document: Bytes) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document)
}

/// Returns the description with this node's own limits and authentication.
pub(super) fn document(config: &Config, token: bool, certificate: bool) -> Bytes {
    let mut document = serde_json::from_str(DESCRIPTION).expect("a test reads it");
    limit(&mut document, milliseconds(config.ttl.max));
    add_failures(&mut document, token);
    demand(&mut document, token, certificate);
    document.to_string().into()
}

/// Adds the limits of durations, some of them from the configuration.
fn limit(document: &mut Value, ttl_max: u64) {
    let schemas = &mut document["components"]["schemas"];
    for request in ["AcquireRequest", "RenewRequest"] {
        schemas[request]["properties"]["ttl_ms"]["maximum"] = ttl_max.into();
    }
    schemas["AcquireRequest"]["properties"]["wait_ms"]["maximum"] = WAIT_MS_MAX.into();
    let params = &mut document["paths"]["/v1/holds/{hold}"]["get"]["parameters"];
    for param in params.as_array_mut().into_iter().flatten() {
        if param["name"] == "wait_ms" {
            param["schema"]["maximum"] = WAIT_MS_MAX.into();
        }
    }
}

/// Adds the failures that every request may have.
fn add_failures(document: &mut Value, token: bool) {
    let failure = |description: &str| {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        json!({ "description": description, "content": { "application/json": { "schema": schema } } })
    };
    for (path, operation) in operations(document) {
        let has_body = operation.get("requestBody").is_some();
        let responses = &mut operation["responses"];
        if responses.get("503").is_none() {
            responses["503"] = failure("The node is stopping");
        }
        let is_open = OPEN.contains(&path.as_str());
        if token && !is_open {
            responses["401"] = failure("No token, or a wrong one");
        }
        if has_body {
            responses["408"] = failure("The body did not arrive in time");
            responses["413"] = failure("The body is too long");
            responses["415"] = failure("The body is not JSON");
        }
    }
}

/// Adds the authentication that clients need.
fn demand(document: &mut Value, token: bool, certificate: bool) {
    let mut schemes = json!({});
    let mut all = json!({});
    if token {
        schemes["token"] = json!({ "type": "http", "scheme": "bearer" });
        all["token"] = json!([]);
    }
    if certificate {
        schemes["certificate"] = json!({ "type": "mutualTLS" });
        all["certificate"] = json!([]);
    }
    if token || certificate {
        document["components"]["securitySchemes"] = schemes;
        document["security"] = json!([all]);
    }
    if certificate {
        // The connection itself requires it.
        for path in OPEN {
            document["paths"][path]["get"]["security"] = json!([{ "certificate": [] }]);
        }
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flatten();
        operations.map(move |(_, operation)| (path, operation))
    })
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use utoipa::OpenApi;

    use super::super::{cluster, events, holds, locks, requests};
    use super::DESCRIPTION;

    #[derive(OpenApi)]
    #[openapi(
        info(
            title = "Soloist",
            description = "Named locks, agreed upon by the nodes of a cluster: the API of one node."
        ),
        paths(
            locks::acquire,
            locks::lock,
            locks::locks,
            requests::give_up,
            holds::hold,
            holds::renew,
            holds::release,
            cluster::cluster,
            cluster::promote,
            cluster::demote,
            cluster::metrics,
            cluster::healthz,
            cluster::readyz,
            events::events,
            describe_itself,
        ),
        components(schemas(soloist_api::Error))
    )]
    struct Description;

    /// This description
    #[utoipa::path(
        get, path = "/openapi.json", tag = "node",
        responses((status = 200, description = "OpenAPI", body = Object)),
    )]
    #[allow(
        dead_code,
        reason = "stands for `serve`, which takes what it serves as its argument"
    )]
    fn describe_itself() {}

    #[test]
    fn the_description_is_the_one_made_from_the_code() {
        let made = Description::openapi().to_pretty_json().expect("it is JSON") + "\n";
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/openapi.json");
            std::fs::write(path, made).expect("the file can be written");
            return;
        }
        assert!(
            made == DESCRIPTION,
            "openapi.json does not match the code: run UPDATE_OPENAPI=1 cargo test -p \
             soloist-node --lib openapi"
        );
    }
}
