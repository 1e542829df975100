//! `soloist init --add`: adds nodes to a cluster that `soloist init` created.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use soloist_api::{Address, NodeName};
use soloist_node::config::{Config, Nodes};
use soloist_node::identity::{Authority, Identity};

use super::{Made, fill, folder, made};

/// An existing node.
struct Node {
    file: PathBuf,
    text: String,
    config: Config,
}

pub(super) fn add(new: &[(NodeName, Address)], out: &Path) -> Result<Made> {
    let new_nodes = Nodes::new(new.to_vec()).context("--add")?;
    let nodes = existing(out)?;
    let pattern = all_agree(&nodes)?;
    together(new, &nodes)?;
    let entries: Vec<_> = new.iter().map(|(name, _)| name.to_string()).collect();
    folder::refuse_to_overwrite(out, &entries)?;
    let authority = authority(out, &nodes)?;
    folder::make(out, &entries, |whole| {
        for (_, name, address) in new_nodes.iter() {
            let text = Config::text_for(&pattern.text, &pattern.file, name, address)?;
            let file = fill(whole, &authority, (name, address), &text)?;
            let folder = whole.join(name.as_str());
            // Do not hand out a configuration that the node, or the other nodes, would reject.
            let after = pattern.file.display();
            let config = Config::parse(&text, &file)
                .with_context(|| format!("a configuration for {name:?}, based on {after}"))?;
            let same = config.fingerprint() == pattern.config.fingerprint();
            ensure!(
                same && config.name == *name && config.address() == address,
                "cannot create a configuration for {name:?} from {after}: write `name` and \
                 `address` on lines of their own, as `soloist init` does"
            );
            let [ca, certificate, key] =
                ["ca.pem", "node.pem", "node.key"].map(|file| folder.join(file));
            Identity::load(&ca, &certificate, &key)?;
        }
        Ok(())
    })?;
    let rules = &pattern.config.rules;
    let default = rules.all().last().context("there is a default rule")?;
    let kept = &pattern.config.members;
    let keepers = (&kept.keepers, kept.lease.length);
    Ok(made(out, &new_nodes, keepers, default.choice().name))
}

/// All nodes in the folder, ordered by name.
fn existing(out: &Path) -> Result<Vec<Node>> {
    let unreadable = || format!("cannot read {}", out.display());
    let entries = fs::read_dir(out).with_context(unreadable)?;
    let entries: std::io::Result<Vec<_>> = entries.collect();
    let folders = entries.with_context(unreadable)?.into_iter();
    let mut files: Vec<_> = folders
        .map(|entry| entry.path().join("soloist.toml"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    let nodes: Result<Vec<_>> = files.into_iter().map(read).collect();
    let nodes = nodes?;
    let out = out.display();
    ensure!(
        !nodes.is_empty(),
        "{out} has no node's folder with a soloist.toml: use --out with the folder that `soloist \
         init` created"
    );
    Ok(nodes)
}

fn read(file: PathBuf) -> Result<Node> {
    let config = Config::load(&file)?;
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(Node { file, text, config })
}

/// Returns the node whose configuration is the template for new ones, preferably one that is not a
/// keeper. Fails if the nodes differ in settings that must be the same on all of them.
fn all_agree(nodes: &[Node]) -> Result<&Node> {
    let (first, rest) = nodes.split_first().context("there are nodes")?;
    for node in rest {
        let same = node.config.fingerprint() == first.config.fingerprint()
            && node.config.members.keepers == first.config.members.keepers;
        let (one, other) = (first.file.display(), node.file.display());
        ensure!(
            same,
            "{one} and {other} differ in keepers, lease, drift or locks: make them the same first"
        );
    }
    let is_keeper = |node: &&Node| {
        let keepers = &node.config.members.keepers;
        keepers.id(node.config.name.as_str()).is_some()
    };
    let joins = nodes.iter().find(|node| !is_keeper(node));
    Ok(joins.unwrap_or(first))
}

/// Checks that names and addresses are unique across existing and new nodes.
fn together(new: &[(NodeName, Address)], nodes: &[Node]) -> Result<()> {
    let own = nodes.iter().map(|node| {
        let config = &node.config;
        (config.name.clone(), config.address().clone())
    });
    let mut all: Vec<_> = own.collect();
    // A keeper whose folder is gone still exists.
    for (_, name, address) in nodes
        .iter()
        .flat_map(|node| node.config.members.keepers.iter())
    {
        if all.iter().all(|(known, _)| known != name) {
            all.push((name.clone(), address.clone()));
        }
    }
    all.extend_from_slice(new);
    Nodes::new(all).context("--add")?;
    Ok(())
}

/// Loads the cluster's CA and checks that it is the one that the nodes trust.
fn authority(out: &Path, nodes: &[Node]) -> Result<Authority> {
    let (certificate, key) = (out.join("ca.pem"), out.join("ca.key"));
    let loaded = Authority::load(&certificate, &key);
    let authority = loaded.context("creating further nodes needs the cluster's CA")?;
    for node in nodes {
        let trusted = node.file.with_file_name("ca.pem");
        // A CA file at another path is the administrator's own responsibility.
        let Ok(text) = fs::read_to_string(&trusted) else {
            continue;
        };
        ensure!(
            text.trim() == authority.certificate().trim(),
            "{} is not the CA that the nodes trust, which is in {}: put the original CA back",
            certificate.display(),
            trusted.display()
        );
    }
    Ok(authority)
}
