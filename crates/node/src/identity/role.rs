//! What a certificate of the cluster's CA is for.
//!
//! The role is a URI among the certificate's subject alternative names. TLS libraries read that
//! field and ignore URIs when they look for a host name, so the mark disturbs nobody, it is signed
//! with the rest, and it needs no object identifier of our own, as an extended key usage would. That
//! usage is set besides: it keeps a client's certificate from being shown by a server, and the other
//! way round, in every TLS library.

use std::fmt;

use x509_parser::prelude::{GeneralName, X509Certificate};

use super::{IdentityError, pem};

const PREFIX: &str = "soloist://role/";

/// What a certificate is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A node: it dials other nodes and answers them. It may serve the node's API as well.
    Node,
    /// The API of a node, towards clients.
    ApiServer,
    /// A client of the API.
    Client,
}

impl Role {
    const ALL: [Role; 3] = [Role::Node, Role::ApiServer, Role::Client];

    /// As a certificate has it.
    pub fn uri(self) -> &'static str {
        match self {
            Role::Node => "soloist://role/node",
            Role::ApiServer => "soloist://role/api",
            Role::Client => "soloist://role/client",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Node => "a node's certificate",
            Role::ApiServer => "an API server's certificate",
            Role::Client => "a client's certificate",
        })
    }
}

/// Refuses a certificate that is not a node's.
///
/// One without a mark is from before roles were marked. Then, the CA issued certificates for nodes
/// and for their APIs; those of APIs have more than one DNS name, and are refused for that by
/// [`pem::node_name`]. So a cluster can go on with the certificates that it has.
pub(super) fn check_node(
    certificate: &X509Certificate<'_>,
    file: &str,
) -> Result<(), IdentityError> {
    let names = certificate
        .subject_alternative_name()
        .map_err(|error| pem::unusable(file, error.to_string()))?;
    let names = names.map(|names| names.value.general_names.as_slice());
    let marks = names
        .unwrap_or_default()
        .iter()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => uri.starts_with(PREFIX).then_some(*uri),
            _ => None,
        });
    for mark in marks {
        let role = Role::ALL.into_iter().find(|role| role.uri() == mark);
        let found = match role {
            Some(Role::Node) => continue,
            Some(role) => role.to_string(),
            None => format!("a certificate of the role {mark:?}, which this release does not know"),
        };
        let file = file.to_owned();
        return Err(IdentityError::NotANode { file, found });
    }
    Ok(())
}
