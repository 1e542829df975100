//! The operator of the manual (docs/operations.md): replaces keepers and brings machines back,
//! using only the command line and files.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::TIMEOUT;
use crate::cluster::{Cluster, stderr};
use crate::referee::Referee;

/// The file in the first keeper's data folder that `soloist init` creates.
const FIRST_START: &str = "data/first-start";
const STORE: &str = "data/keeper.redb";

/// A change of the keepers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Promote,
    Demote,
}

impl Cluster {
    /// Asks a node to change the keepers, and retries until the cluster reports the change.
    pub(crate) async fn change(&self, asked: usize, change: Change, node: usize) {
        let word = match change {
            Change::Promote => "promote",
            Change::Demote => "demote",
        };
        let began = Instant::now();
        loop {
            let command = format!("cluster {word} n{node}");
            let output = block_in_place(|| self.soloist_at(asked, &command));
            if output.status.success() {
                return;
            }
            let said = stderr(&output);
            assert!(began.elapsed() < TIMEOUT, "{word} n{node}: {said}");
            let keeps = self.keepers(asked).await.map(|all| all.contains(&node));
            if keeps == Some(change == Change::Promote) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn promote(&self, asked: usize, node: usize) {
        self.change(asked, Change::Promote, node).await;
    }

    pub(crate) async fn demote(&self, asked: usize, node: usize) {
        self.change(asked, Change::Demote, node).await;
    }

    /// The keepers as a node sees them, or `None` if it does not answer or knows no leader.
    pub(crate) async fn keepers(&self, asked: usize) -> Option<Vec<usize>> {
        let view = self
            .view(asked)
            .await
            .filter(|view| view.leader.is_some())?;
        let keepers = view.nodes.iter().filter(|node| node.keeper);
        let numbers = keepers.map(|node| node.name.strip_prefix('n')?.parse().ok());
        numbers.collect()
    }

    /// Gives a stopped machine a new disk: everything that its node wrote is gone.
    pub(crate) fn reimage(&self, node: usize) {
        let data = self.file(node, "data");
        if data.exists() {
            fs::remove_dir_all(data).unwrap();
        }
    }

    /// Deploys a stopped machine again from the folder that `soloist init` created, including
    /// `first-start`, which only the first keeper has.
    pub(crate) fn redeploy(&self, node: usize) {
        self.reimage(node);
        if node == 0 {
            create_folder(&self.file(node, "data"));
            fs::write(self.file(node, FIRST_START), "").unwrap();
        }
    }

    /// Copies the data folder of a stopped node.
    pub(crate) fn copy_disk(&self, node: usize, name: &str) {
        copy(&self.file(node, "data"), &self.file(node, name));
    }

    /// Restores a copied data folder on a stopped node.
    pub(crate) fn restore_disk(&self, node: usize, name: &str) {
        self.reimage(node);
        copy(&self.file(node, name), &self.file(node, "data"));
    }

    /// Writes the list of keepers into the configuration of a node.
    pub(crate) fn list_keepers(&self, node: usize, keepers: &[usize]) {
        let file = self.file(node, "soloist.toml");
        let text = fs::read_to_string(&file).unwrap();
        let mut written = format!("name = \"n{node}\"\n");
        if !keepers.contains(&node) {
            let _ = writeln!(written, "address = \"{}\"", self.address(node));
        }
        let mut is_list = false;
        for line in text.lines() {
            is_list = match line.starts_with('[') {
                true => line == "[keepers]",
                false => is_list,
            };
            let is_own = line.starts_with("name =") || line.starts_with("address =");
            let is_entry = is_list && line.starts_with('n');
            if !is_own && !is_entry {
                let _ = writeln!(written, "{line}");
            }
            if line == "[keepers]" {
                for &keeper in keepers {
                    let _ = writeln!(written, "n{keeper} = \"{}\"", self.address(keeper));
                }
            }
        }
        fs::write(file, written).unwrap();
    }

    pub(crate) fn has_store(&self, node: usize) -> bool {
        self.file(node, STORE).exists()
    }

    /// Returns whether a node's data folder has an earlier store under another name.
    pub(crate) fn has_store_set_aside(&self, node: usize) -> bool {
        let Ok(files) = fs::read_dir(self.file(node, "data")) else {
            return false;
        };
        let mut names = files.flatten().map(|file| file.file_name());
        names.any(|name| {
            let name = name.to_string_lossy();
            name.starts_with("keeper") && name != "keeper.redb"
        })
    }

    /// The nodes that report themselves as leader.
    pub(crate) async fn leaders(&self, nodes: &[usize]) -> Vec<usize> {
        let mut leaders = Vec::new();
        for &node in nodes {
            let leader = self.view(node).await.and_then(|view| view.leader);
            if leader == Some(format!("n{node}")) {
                leaders.push(node);
            }
        }
        leaders
    }

    /// Waits until these nodes are members under one leader, with these keepers. Fails at the first
    /// violation that the referee finds.
    pub(crate) async fn settles(&self, referee: &Referee, nodes: &[usize], keepers: &[usize]) {
        self.watched(referee, async || self.oddity(nodes, keepers).await)
            .await;
    }

    /// Waits until `odd` returns `None`. Fails at the first violation that the referee finds.
    async fn watched(&self, referee: &Referee, mut odd: impl AsyncFnMut() -> Option<String>) {
        let began = Instant::now();
        loop {
            let odd = odd().await;
            let violations = referee.violations();
            if violations.is_empty() && odd.is_none() {
                return;
            }
            if !violations.is_empty() || began.elapsed() > TIMEOUT {
                let running: Vec<usize> =
                    (0..self.size()).filter(|&node| self.runs(node)).collect();
                let leaders = self.leaders(&running).await;
                let first = &violations[..violations.len().min(5)];
                panic!(
                    "after {:?}: {odd:?}; nodes that say they lead: {leaders:?}; {} violations, such as {first:#?}",
                    began.elapsed(),
                    violations.len()
                );
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Why these nodes are not yet members under one leader with these keepers. `None` if they are.
    async fn oddity(&self, nodes: &[usize], keepers: &[usize]) -> Option<String> {
        let names = |numbers: &[usize]| -> Vec<String> {
            numbers.iter().map(|number| format!("n{number}")).collect()
        };
        let mut seen = None;
        for &node in nodes {
            let Some(view) = self.view(node).await else {
                return Some(format!("n{node} does not answer"));
            };
            let members = view.nodes.iter().filter(|node| node.lease_ms.is_some());
            let members: Vec<String> = members.map(|node| node.name.clone()).collect();
            let kept = view.nodes.iter().filter(|node| node.keeper);
            let kept: Vec<String> = kept.map(|node| node.name.clone()).collect();
            let now = (view.leader.clone(), view.epoch);
            let is_same = *seen.get_or_insert_with(|| now.clone()) == now;
            let is_led = view
                .leader
                .as_ref()
                .is_some_and(|leader| kept.contains(leader));
            if !is_same || !is_led || members != names(nodes) || kept != names(keepers) {
                let (leader, epoch, state) = (view.leader, view.epoch, view.state);
                return Some(format!(
                    "n{node} ({state:?}) sees epoch {epoch}, leader {leader:?}, keepers {kept:?}, members {members:?}"
                ));
            }
        }
        None
    }

    /// Waits until a demoted keeper has set its store aside.
    pub(crate) async fn sets_store_aside(&self, referee: &Referee, node: usize) {
        self.watched(referee, async || {
            let is_aside = !self.has_store(node) && self.has_store_set_aside(node);
            (!is_aside).then(|| format!("n{node} has not set its old store aside"))
        })
        .await;
    }

    /// Runs `soloist cluster recover` on a stopped keeper.
    pub(crate) fn recover(&self, node: usize) -> Output {
        let command = "cluster recover --the-others-are-lost --json --config";
        self.soloist_at(node, &format!("{command} n{node}/soloist.toml"))
    }
}

/// Creates a data folder, which only its owner may access.
fn create_folder(folder: &Path) {
    DirBuilder::new().mode(0o700).create(folder).unwrap();
}

fn copy(from: &Path, to: &Path) {
    create_folder(to);
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}
