//! Files of a page, which are part of the binary.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A module of a page's script.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    /// Path of its file in `web/src`.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// Modules by their paths in `web/src`.
macro_rules! modules {
    ($($name:literal),+ $(,)?) => {
        [$($crate::page::Module {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/web/src/", $name)),
        }),+]
    };
}
pub(crate) use modules;

/// A file as a response.
pub(crate) fn text(kind: &str, text: &'static str) -> Response {
    let kind = format!("{kind}; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
