//! Certificates for clients of the API.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use soloist_api::NodeName;
use soloist_node::identity::{Authority, Role};

use super::folder::{self, write};

/// The client certificates that were created.
#[derive(Serialize)]
pub(super) struct MadeClients {
    folder: PathBuf,
    clients: Vec<MadeClient>,
}

#[derive(Serialize)]
struct MadeClient {
    name: String,
    folder: PathBuf,
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// Creates a folder per client, with a certificate issued by the CA in `out`.
pub(super) fn issue(names: &[NodeName], out: &Path) -> Result<MadeClients> {
    let mut sorted = names.to_vec();
    sorted.sort();
    sorted.dedup();
    ensure!(
        sorted.len() == names.len(),
        "--client: the same name is listed twice"
    );
    let authority = Authority::load(&out.join("ca.pem"), &out.join("ca.key"))
        .context("creating a client's certificate needs the cluster's CA")?;
    let entries: Vec<_> = names.iter().map(|name| format!("client-{name}")).collect();
    folder::refuse_to_overwrite(out, &entries)?;
    folder::make(out, &entries, |whole| {
        for (name, entry) in names.iter().zip(&entries) {
            let folder = whole.join(entry);
            fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
            let issued = authority.issue_as(Role::Client, name, &[])?;
            write(&folder.join("ca.pem"), authority.certificate(), 0o644)?;
            write(&folder.join("client.pem"), &issued.certificate, 0o644)?;
            write(&folder.join("client.key"), &issued.key, 0o600)?;
        }
        Ok(())
    })?;
    let clients = names.iter().zip(&entries).map(|(name, entry)| {
        let folder = out.join(entry);
        MadeClient {
            name: name.to_string(),
            ca: folder.join("ca.pem"),
            certificate: folder.join("client.pem"),
            key: folder.join("client.key"),
            folder,
        }
    });
    Ok(MadeClients {
        folder: out.to_owned(),
        clients: clients.collect(),
    })
}

/// Instructions for the next steps.
pub(super) fn text(made: &MadeClients) -> String {
    let mut text = String::new();
    for client in &made.clients {
        text.push_str(&format!("Made {}.\n", client.folder.display()));
    }
    text.push_str(
        "\nNext:\n\
         1. On each node whose API such clients use, let [api.tls] have client_ca = \"ca.pem\".\n\
         2. Copy the folder to the client's machine, with the key's permissions, and there:\n     \
         export SOLOIST_API=https://HOST:PORT SOLOIST_CA=ca.pem\n     \
         export SOLOIST_CERTIFICATE=client.pem SOLOIST_KEY=client.key\n     \
         soloist status\n",
    );
    text
}
