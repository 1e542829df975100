//! The purpose of a certificate issued by the cluster's CA.
//!
//! The role is a URI among the certificate's subject alternative names. TLS libraries ignore URIs
//! in that field when they look for a host name, so the role does not interfere. It is signed with
//! the rest, and it needs no object identifier of our own, unlike an extended key usage. The
//! standard extended key usages are set too: they keep every TLS library from accepting a client's
//! certificate from a server, or a server's from a client.

use std::fmt;

use x509_parser::prelude::{GeneralName, X509Certificate};

use super::{IdentityError, pem};

const PREFIX: &str = "soloist://role/";

/// The purpose of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A node: dials other nodes and answers them. It may serve the node's API as well.
    Node,
    /// The API server of a node.
    ApiServer,
    /// A client of the API.
    Client,
}

impl Role {
    const ALL: [Role; 3] = [Role::Node, Role::ApiServer, Role::Client];

    /// Returns the role as it appears in a certificate.
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

/// Rejects a certificate that is not a node's.
///
/// A certificate without a role is from before roles existed. At that time the CA issued
/// certificates for nodes and for their APIs. Those for APIs have more than one DNS name, for which
/// [`pem::node_name`] rejects them. So a cluster can keep using its existing certificates.
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
            None => {
                format!("a certificate with the role {mark:?}, which is unknown to this release")
            }
        };
        let file = file.to_owned();
        return Err(IdentityError::NotANode { file, found });
    }
    Ok(())
}
