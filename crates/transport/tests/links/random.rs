//! Peers that change at random, at different times on each node, over connections that break.
//! Between two incarnations, each frame arrives at most once and in order. Once all nodes have the
//! same peers, all frames between the last incarnations arrive.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::Incarnation;
use soloist_testing::proxy::{Proxy, Temper};
use soloist_transport::Security;
use soloist_transport::identity::Authority;
use soloist_transport::links::Peer;

use crate::certificates::identity;
use crate::net::{Node, listener, lone, member, settings, until};

const NAMES: [&str; 3] = ["a", "b", "c"];
const EPOCHS: usize = 40;
/// Average number of steps per epoch.
const STEPS: u32 = 25;

/// The incarnation of each node, or `None` if it is not a member.
type Epoch = [Option<Incarnation>; 3];

/// Random epochs. A node that left returns in another incarnation, and some change their
/// incarnation without leaving. All are members of the last epoch.
fn epochs(random: &mut ChaCha8Rng) -> Vec<Epoch> {
    let mut incarnations = (100..).map(Incarnation);
    let mut epochs = vec![[None; 3]];
    for number in 1..=EPOCHS {
        let mut next = *epochs.last().unwrap();
        for incarnation in &mut next {
            *incarnation = match (*incarnation, random.random_range(0..10)) {
                (Some(_), 0) if number < EPOCHS => None,
                (None, 0..5) if number < EPOCHS => None,
                (None, _) | (Some(_), 0..3) => incarnations.next(),
                (Some(incarnation), _) => Some(incarnation),
            };
        }
        epochs.push(next);
    }
    epochs
}

/// Number of frames, per sender and receiver.
type Frames = HashMap<(Incarnation, Incarnation), u32>;

struct Player {
    node: Node,
    me: usize,
    /// Addresses of the proxies to each node.
    addresses: Vec<String>,
    installed: usize,
    incarnation: Incarnation,
    /// The incarnations in the current list of peers.
    list: Vec<Incarnation>,
}

impl Player {
    fn install(&mut self, number: usize, epoch: &Epoch, random: &mut ChaCha8Rng) {
        self.installed = number;
        let mut peers: Vec<Peer> = Vec::new();
        if let Some(incarnation) = epoch[self.me] {
            self.incarnation = incarnation;
            let all = NAMES.iter().zip(epoch).zip(&self.addresses);
            peers.extend(
                all.filter_map(|((name, incarnation), at)| {
                    Some(member(name, (*incarnation)?.0, at))
                }),
            );
            peers.shuffle(random);
        }
        self.list = peers.iter().map(|peer| peer.incarnation).collect();
        self.node.links.set_peers(self.incarnation, peers).unwrap();
    }

    fn send(&self, sent: &mut Frames, random: &mut ChaCha8Rng) {
        let others = self.list.iter().filter(|one| **one != self.incarnation);
        let Some(&&to) = others.collect::<Vec<_>>().choose(random) else {
            return;
        };
        for _ in 0..random.random_range(1..100) {
            let number = sent.entry((self.incarnation, to)).or_default();
            let mut frame = [self.incarnation.0.to_le_bytes(), to.0.to_le_bytes()].concat();
            frame.extend(number.to_le_bytes());
            frame.resize(20 + random.random_range(0..80), 0xee);
            self.node.links.send(to, &frame).unwrap();
            *number += 1;
        }
    }

    /// Number of frames received, per pair of incarnations. Asserts that they arrived in order and
    /// without a gap.
    fn received(&self) -> Frames {
        let mut received = HashMap::new();
        for (sender, frame) in self.node.seen.frames() {
            let incarnation = |at: usize| {
                let bytes = frame[at..at + 8].try_into().unwrap();
                Incarnation(u64::from_le_bytes(bytes))
            };
            let (from, to) = (incarnation(0), incarnation(8));
            assert_eq!(
                sender, from,
                "a frame of one incarnation arrived as another's"
            );
            let next: &mut u32 = received.entry((from, to)).or_default();
            let number = u32::from_le_bytes(frame[16..20].try_into().unwrap());
            assert_eq!(number, *next, "from incarnation {from} to {to}");
            *next += 1;
        }
        received
    }
}

async fn players(seed: u64, security: impl Fn(&str) -> Security) -> (Vec<Player>, Vec<Proxy>) {
    let (mut nodes, mut proxies) = (Vec::new(), Vec::new());
    for name in NAMES {
        let mut settings = settings(name);
        settings.endpoint.security = security(name);
        nodes.push(lone(settings, listener().await.0));
    }
    let targets: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let mut players = Vec::new();
    for (me, node) in nodes.into_iter().enumerate() {
        let mut addresses = Vec::new();
        for (to, target) in targets.iter().enumerate() {
            let seed = seed * 100 + (me * 10 + to) as u64;
            let proxy = Proxy::to(target, seed, Temper::FLOOD).await;
            addresses.push(proxy.address.clone());
            proxies.push(proxy);
        }
        players.push(Player {
            node,
            me,
            addresses,
            installed: 0,
            incarnation: Incarnation(0),
            list: Vec::new(),
        });
    }
    (players, proxies)
}

/// How much a game has exercised.
#[derive(Default)]
struct Roughness {
    /// Number of pairs of incarnations that exchanged frames.
    pairs: usize,
    /// Number of connections that were cut.
    cuts: u64,
}

/// Plays these games, and more until enough pairs met and enough connections were cut. How many
/// pairs meet in one game depends on the speed of this machine, but the last incarnations always
/// do.
async fn play_until_rough(seeds: RangeInclusive<u64>, security: impl Fn(&str) -> Security) {
    let mut all = Roughness::default();
    let (mut seed, last) = seeds.into_inner();
    while seed <= last || all.pairs < 100 || all.cuts < 100 {
        let game = play(seed, &security).await;
        all.pairs += game.pairs;
        all.cuts += game.cuts;
        seed += 1;
    }
}

async fn play(seed: u64, security: impl Fn(&str) -> Security) -> Roughness {
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let epochs = epochs(&mut random);
    let (mut players, proxies) = players(seed, security).await;
    let mut sent = HashMap::new();
    let mut newest = 1;
    while newest < EPOCHS || players.iter().any(|player| player.installed < EPOCHS) {
        if newest < EPOCHS && random.random_ratio(1, STEPS) {
            newest += 1;
        }
        let player = players.choose_mut(&mut random).unwrap();
        // Some nodes learn of every epoch, others skip some.
        if player.installed < newest && random.random_ratio(3, STEPS) {
            let number = random.random_range(player.installed + 1..=newest);
            player.install(number, &epochs[number], &mut random);
        }
        player.send(&mut sent, &mut random);
        let pause = random.random_range(0..3000);
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }
    for player in &players {
        player.send(&mut sent, &mut random);
    }
    let cuts = proxies
        .iter()
        .map(|proxy| proxy.cuts.load(Ordering::Relaxed));
    let cuts: u64 = cuts.sum();
    for proxy in &proxies {
        proxy.healed.store(true, Ordering::Relaxed);
    }
    let last = epochs[EPOCHS].map(Option::unwrap);
    for player in &players {
        let to = player.incarnation;
        let expected = |from: &Incarnation| sent.get(&(*from, to)).copied();
        until("all frames of the last incarnations arrive", || {
            let received = player.received();
            let all = last.iter().filter(|from| **from != to);
            let mut all = all.map(|from| (received.get(&(*from, to)).copied(), expected(from)));
            all.all(|(received, sent)| received == sent)
        })
        .await;
    }
    let pairs = check(&players, &sent);
    println!(
        "{pairs} of {} pairs of incarnations, {cuts} cuts",
        sent.len()
    );
    for player in &players {
        player.node.links.close(Duration::from_secs(5)).await;
        // Frames that arrived while closing must be correct, too.
        player.received();
    }
    Roughness { pairs, cuts }
}

/// Asserts that no connection was refused or hostile. Returns the number of pairs of incarnations
/// that exchanged frames.
fn check(players: &[Player], sent: &Frames) -> usize {
    let mut pairs = 0;
    for player in players {
        let counters = player.node.links.counters();
        assert_eq!((counters.refused, counters.hostile), (0, 0));
        assert_eq!(
            counters.refused_by_peers,
            0,
            "{:?}",
            player.node.seen.changes()
        );
        let received = player.received();
        assert!(received.iter().all(|(pair, number)| *number <= sent[pair]));
        let all: u32 = received.values().sum();
        assert_eq!(counters.frames_received, u64::from(all));
        pairs += received.len();
    }
    pairs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_change_while_connections_break() {
    play_until_rough(1..=4, |_| Security::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_under_tls() {
    let ca = Authority::new("orchestra").unwrap();
    play_until_rough(101..=101, |name| Security::tls(&identity(&ca, name))).await;
}
