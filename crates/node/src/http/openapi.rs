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
pub(super) const OPEN: [&str; 2] = ["/healthz", "/readyz"];

pub(super) async fn serve(document: Bytes) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document)
}

/// Returns the description with this node's own limits, and the authentication of a listener.
pub(super) fn document(config: &Config, token: bool, certificate: bool) -> Bytes {
    let mut document = serde_json::from_str(DESCRIPTION).expect("a test reads it");
    limit(&mut document, milliseconds(config.ttl.max));
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

/// Replaces the authentication that some listener may require by what this one does.
fn demand(document: &mut Value, token: bool, certificate: bool) {
    let mut all = json!({});
    if token {
        all["token"] = json!([]);
    }
    if certificate {
        all["certificate"] = json!([]);
        // The connection itself requires it.
        for path in OPEN {
            document["paths"][path]["get"]["security"] = json!([{ "certificate": [] }]);
        }
    }
    document["security"] = json!([all]);
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use serde_json::Value;
    use utoipa::openapi::path::{Operation, PathItem};
    use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
    use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
    use utoipa::{Modify, OpenApi};

    use super::super::{cluster, events, holds, locks, requests, routes, session};
    use super::{DESCRIPTION, OPEN};

    #[derive(OpenApi)]
    #[openapi(
        info(
            title = "Soloist",
            description = "Named locks, agreed upon by the nodes of a cluster: the API of one node."
        ),
        servers((url = "/", description = "The listener that this description came from")),
        // A listener's own description has the one of these that it requires.
        security((), ("token" = []), ("certificate" = []), ("token" = [], "certificate" = [])),
        paths(
            locks::acquire,
            locks::lock,
            locks::locks,
            requests::give_up,
            holds::hold,
            holds::renew,
            holds::release,
            cluster::cluster,
            cluster::overview,
            cluster::promote,
            cluster::demote,
            cluster::metrics,
            cluster::healthz,
            cluster::readyz,
            events::events,
            session::session,
            describe_itself,
        ),
        components(schemas(soloist_api::Error)),
        modifiers(&Common)
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

    /// What all operations have in common.
    struct Common;

    impl Modify for Common {
        fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
            let components = document.components.as_mut().expect("it has schemas");
            let token = Http::builder()
                .scheme(HttpAuthScheme::Bearer)
                .description(Some(
                    "The content of the node's `token_file`. Only over TCP.",
                ));
            components.add_security_scheme("token", SecurityScheme::Http(token.build()));
            let certificate = SecurityScheme::MutualTls {
                description: Some("A certificate of `client_ca`. Only over TLS.".to_owned()),
                deprecated: None,
                extensions: None,
            };
            components.add_security_scheme("certificate", certificate);
            for (path, item) in &mut document.paths.paths {
                operations(item).for_each(|operation| complete(path, operation));
            }
        }
    }

    fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
        let methods = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.delete,
        ];
        methods.into_iter().flatten()
    }

    /// Adds the failures that every request may have, and that bodies may be left out.
    fn complete(path: &str, operation: &mut Operation) {
        let responses = &mut operation.responses.responses;
        let mut add = |status: &str, detail: &str| {
            let failure = responses.entry(status.to_owned());
            failure.or_insert_with(|| failure_response(detail).into());
        };
        add("503", "The node is stopping");
        if !OPEN.contains(&path) {
            add(
                "401",
                "No token, or a wrong one, on a listener that requires it",
            );
        }
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            body.required = Some(Required::False);
            add(
                "403",
                "A page of another origin, in a browser, sent no body",
            );
            add("408", "The body did not arrive in time");
            add("413", "The body is too long");
            add("415", "The body is not JSON");
        }
    }

    fn failure_response(detail: &str) -> Response {
        let schema = Ref::from_schema_name("Error");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new().description(detail);
        response.content("application/json", content).build()
    }

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

    /// A test of the API compares the methods of each path.
    #[test]
    fn the_description_has_every_path_of_the_router_and_no_other() {
        let document: Value = serde_json::from_str(DESCRIPTION).expect("it is JSON");
        let described = document["paths"].as_object().expect("it has paths").keys();
        let described: Vec<&str> = described.map(String::as_str).collect();
        let mut routed: Vec<&str> = routes(Default::default()).map(|(path, _)| path).into();
        routed.sort_unstable();
        assert_eq!(described, routed);
    }
}
