//! Exhaustion of fencing tokens and epochs: gauges, warnings at half, and the behaviour when none
//! is left.
//!
//! All of this is one test, the only one of this binary: it changes the number of tokens and epochs
//! that are left, and collects warnings, for the whole process.

use std::fmt::{self, Debug, Write};
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use soloist_node::local::{LocalCluster, LocalSettings};
use soloist_node::{Guard, Locks, skip_epochs, skip_fences};
use soloist_testing::served::Served;
use soloist_testing::wait::within;
use tempfile::TempDir;
use tokio::time::timeout;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Half of the fencing tokens of an epoch, and half of the epochs of a generation.
const FENCES_HALF: u64 = 1 << 31;
const EPOCHS_HALF: u64 = 1 << 23;

/// Collects the warnings and errors of this process.
struct Warnings(Mutex<Vec<String>>);

fn warnings() -> &'static Warnings {
    static ALL: OnceLock<&'static Warnings> = OnceLock::new();
    ALL.get_or_init(|| {
        let warnings: &'static Warnings = Box::leak(Box::new(Warnings(Mutex::default())));
        tracing::subscriber::set_global_default(warnings).expect("no other process listens");
        warnings
    })
}

impl Warnings {
    fn with(&self, text: &str) -> usize {
        let all = self.0.lock().unwrap();
        all.iter().filter(|line| line.contains(text)).count()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for &'static Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lock().unwrap().fmt(f)
    }
}

/// The value of a node's gauge.
fn gauge(served: &Served, name: &str) -> f64 {
    let mut stream = UnixStream::connect(served.socket(0)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = values.next().expect("the gauge is there");
    value.trim().parse().unwrap()
}

async fn use_once(served: &Served) {
    let lock = served.cluster.nodes[0].lock("a").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
}

async fn half_of_the_fences_are_used_up() {
    let warning = "half of the fences of this epoch are used up";
    skip_fences(FENCES_HALF - 2);
    let served = Served::start(1).await;
    use_once(&served).await;
    let used = gauge(&served, "soloist_fences_used_ratio ");
    assert!((0.499..0.5).contains(&used), "{used}");
    // The warning may be logged a little after the release.
    use_once(&served).await;
    let used = gauge(&served, "soloist_fences_used_ratio ");
    assert!((0.5..0.501).contains(&used), "{used}");
    let warns = async || warnings().with(warning) > 0;
    within(TIMEOUT, "it warns", warns).await;
    // Once per epoch.
    use_once(&served).await;
    served.stop().await;
    assert_eq!(warnings().with(warning), 1, "{:?}", warnings());
    skip_fences(0);
}

/// Number of fences that each lock has left per epoch.
const LEFT: u64 = 3;

/// When fences are used up, a new epoch begins, and no request is refused.
async fn a_lock_that_has_used_up_its_fences_gets_more_in_another_epoch() {
    skip_fences((1 << 32) - 1 - LEFT);
    let folder = TempDir::new().unwrap();
    let settings = LocalSettings::new(3, folder.path()).with_algorithm("naimi-trehel");
    let cluster = LocalCluster::start(settings).await.unwrap();
    let nodes = &cluster.nodes;
    let held = nodes[2].lock("held").unwrap().acquire().await.unwrap();
    let mut fences = Vec::new();
    for number in 0..3 * LEFT as usize {
        let lock = nodes[number % 3].lock("x").unwrap();
        let guard = timeout(TIMEOUT, lock.acquire()).await.expect("served");
        let guard = guard.unwrap();
        fences.push(guard.fence());
        guard.release().await.unwrap();
    }
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    let epochs = fences.last().unwrap().epoch() - fences[0].epoch();
    assert!(epochs >= 2, "{fences:?}");
    held.release().await.expect("it was never lost");
    cluster.stop().await;
    skip_fences(0);
}

async fn half_of_the_epochs_are_used_up() {
    let warning = "more than half of the epochs of this generation are used up";
    let plenty = Served::start(1).await;
    assert!(gauge(&plenty, "soloist_epochs_used_ratio ") < 0.001);
    plenty.stop().await;
    assert_eq!(warnings().with(warning), 0, "{:?}", warnings());
    // A leader warns when it passes half, and when it is elected after that.
    for (skipped, told) in [(EPOCHS_HALF - 2, 1), (EPOCHS_HALF - 1, 2)] {
        skip_epochs(skipped);
        let half = Served::start(1).await;
        let used = gauge(&half, "soloist_epochs_used_ratio ");
        assert!((0.499..0.501).contains(&used), "{used}");
        use_once(&half).await;
        half.stop().await;
        assert_eq!(warnings().with(warning), told, "{:?}", warnings());
    }
    skip_epochs(0);
}

async fn the_last_epoch_continues_with_a_warning() {
    let error = "the epochs of this generation are used up: no node can join";
    skip_epochs(2 * EPOCHS_HALF - 2);
    let last = Served::start(1).await;
    assert_eq!(last.cluster.nodes[0].epoch(), Some(2 * EPOCHS_HALF - 1));
    assert!(gauge(&last, "soloist_epochs_used_ratio ") > 0.999);
    use_once(&last).await;
    last.stop().await;
    assert_eq!(warnings().with(error), 1, "{:?}", warnings());
    skip_epochs(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_warn_before_numbers_are_used_up_and_continue_after_that() {
    warnings();
    half_of_the_fences_are_used_up().await;
    a_lock_that_has_used_up_its_fences_gets_more_in_another_epoch().await;
    half_of_the_epochs_are_used_up().await;
    the_last_epoch_continues_with_a_warning().await;
}
