//! A network for nodes on this machine, in which any nodes can be cut off from any others.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kernel namespace. It exists while its process lives.
pub(crate) struct Namespace {
    process: Child,
    kind: &'static str,
}

impl Namespace {
    /// Creates a namespace of kind `net` or `mnt`.
    pub(crate) fn new(kind: &'static str) -> Self {
        let option = match kind {
            "net" => "--net",
            _ => "--mount",
        };
        let process = Command::new("unshare")
            .args([option, "sleep", "infinity"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("`unshare` (util-linux) can be run");
        let mut namespace = Namespace { process, kind };
        let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let began = Instant::now();
        loop {
            let link = format!("/proc/{}/ns/{kind}", namespace.process.id());
            match std::fs::read_link(link) {
                Ok(link) if link != own => return namespace,
                _ => {}
            }
            let ended = namespace.process.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < Duration::from_secs(10),
                "no new namespace ({kind}): this test needs the rights of root; {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The option with which `nsenter` enters this namespace.
    pub(crate) fn enter(&self) -> [String; 1] {
        let option = match self.kind {
            "net" => "net",
            _ => "mount",
        };
        let (process, kind) = (self.process.id(), self.kind);
        [format!("--{option}=/proc/{process}/ns/{kind}")]
    }

    /// Runs a shell script in this namespace. It must succeed.
    pub(crate) fn run(&self, script: &str) {
        let mut command = Command::new("nsenter");
        command.args(self.enter()).args(["sh", "-e"]);
        feed(command, script);
    }

    fn nft(&self, script: &str) {
        let mut command = Command::new("nsenter");
        command.args(self.enter()).args(["nft", "-f", "-"]);
        feed(command, script);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn feed(mut command: Command, script: &str) {
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("`nsenter` (util-linux) can be run");
    let mut stdin = running.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let output = running.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "failed: {script}\n{}\nthis test needs `ip` (iproute2), `nft` (nftables) and the rights of root",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Each node has a namespace, and a cable to a switch; or all nodes are in one namespace.
pub(crate) struct Network {
    _switch: Option<Namespace>,
    nodes: Vec<Arc<Namespace>>,
}

/// Packets of these senders are dropped or answered with a reset. An established connection has
/// a reset when something is sent on it, on the side that sends.
const FILTER: &str = "table ip cut {
    set from { type ipv4_addr; }
    set resets { type ipv4_addr; }
    chain input {
        type filter hook input priority 0;
        ip saddr @from drop;
        ip saddr @resets tcp flags & rst == 0 reject with tcp reset;
    }
}";

impl Network {
    pub(crate) fn new(nodes: usize) -> Self {
        let switch = Namespace::new("net");
        switch.run("ip link add switch type bridge\nip link set switch up");
        let namespaces = (0..nodes).map(|_| Arc::new(Namespace::new("net")));
        let namespaces: Vec<_> = namespaces.collect();
        for (node, namespace) in namespaces.iter().enumerate() {
            let (host, hub) = (host(node), switch.process.id());
            namespace.run(&format!(
                "ip link set lo up\n\
                 ip link add cable type veth peer name n{node} netns {hub}\n\
                 ip address add {host}/24 dev cable\n\
                 ip link set cable up"
            ));
            switch.run(&format!("ip link set n{node} master switch up"));
            namespace.nft(FILTER);
        }
        Network {
            _switch: Some(switch),
            nodes: namespaces,
        }
    }

    /// All nodes are on one machine, so that connections between all of them are reset at once.
    pub(crate) fn on_one_machine(nodes: usize) -> Self {
        let machine = Namespace::new("net");
        machine.run("ip link set lo up");
        for node in 0..nodes {
            machine.run(&format!("ip address add {}/32 dev lo", host(node)));
        }
        machine.nft(FILTER);
        let machine = Arc::new(machine);
        Network {
            _switch: None,
            nodes: vec![machine; nodes],
        }
    }

    /// A node's address.
    pub(crate) fn host(&self, node: usize) -> String {
        host(node)
    }

    /// The namespace of a node.
    pub(crate) fn of(&self, node: usize) -> &Namespace {
        &self.nodes[node]
    }

    /// Drops all packets in one direction.
    pub(crate) fn cut_one_way(&self, from: &[usize], to: &[usize]) {
        let from: Vec<String> = from.iter().map(|&node| host(node)).collect();
        for &node in to {
            let from = from.join(", ");
            self.nodes[node].nft(&format!("add element ip cut from {{ {from} }}"));
        }
    }

    /// Drops all packets in both directions.
    pub(crate) fn cut(&self, some: &[usize], others: &[usize]) {
        self.cut_one_way(some, others);
        self.cut_one_way(others, some);
    }

    /// On one machine: whatever a node sends is answered with a reset, and nobody can connect.
    pub(crate) fn reset_all(&self) {
        let hosts: Vec<String> = (0..self.nodes.len()).map(host).collect();
        let hosts = hosts.join(", ");
        self.nodes[0].nft(&format!("add element ip cut resets {{ {hosts} }}"));
    }

    /// Everything goes everywhere again.
    pub(crate) fn heal(&self) {
        for namespace in &self.nodes {
            namespace.nft("flush set ip cut from\nflush set ip cut resets");
        }
    }
}

fn host(node: usize) -> String {
    format!("10.77.0.{}", node + 1)
}
