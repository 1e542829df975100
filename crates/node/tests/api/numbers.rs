//! Exhaustion of fencing tokens and epochs: gauges, warnings at half, and the behaviour when none
//! is left.

use std::fmt::{self, Debug, Write};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use soloist_node::config::{Api, Metrics};
use soloist_node::http;
use soloist_node::{skip_epochs, skip_fences};
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

use crate::cluster::{Lonely, lonely, until};
use crate::http::Http;

/// Half of the fencing tokens of an epoch, and half of the epochs of a generation.
const FENCES_HALF: u64 = 1 << 31;
const EPOCHS_HALF: u64 = 1 << 23;

/// Collects the warnings and errors of this process.
struct Warnings(Mutex<Vec<String>>);

fn warnings() -> &'static Warnings {
    static ALL: OnceLock<&'static Warnings> = OnceLock::new();
    ALL.get_or_init(|| {
        let warnings: &'static Warnings = Box::leak(Box::new(Warnings(Mutex::default())));
        tracing::subscriber::set_global_default(warnings).expect("nobody else listens");
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

struct Served {
    node: Lonely,
    server: http::ApiServer,
    http: Http,
    _folder: TempDir,
}

async fn served() -> Served {
    let folder = TempDir::new().unwrap();
    let api = Api {
        socket: folder.path().join("s.sock"),
        tcp: None,
    };
    let node = lonely(api, Metrics::default()).await;
    let server = http::serve(&node).await.unwrap();
    Served {
        http: Http::Unix(server.socket().to_owned()),
        node,
        server,
        _folder: folder,
    }
}

impl Served {
    async fn gauge(&self, name: &str) -> f64 {
        let metrics = self.http.get("/metrics").await;
        let text = str::from_utf8(&metrics.body).unwrap();
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        let value = values.next().expect("the gauge is there");
        value.trim().parse().unwrap()
    }

    async fn use_once(&self) {
        let lock = self.node.lock("a").unwrap();
        lock.acquire().await.unwrap().release().await.unwrap();
    }

    async fn stop(self) {
        self.node.stop(Duration::ZERO).await;
        self.server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_the_fences_are_used_up() {
    let warning = "half of the fences of this epoch are used up";
    warnings();
    skip_fences(FENCES_HALF - 2);
    let served = served().await;
    served.use_once().await;
    let used = served.gauge("soloist_fences_used_ratio ").await;
    assert!((0.499..0.5).contains(&used), "{used}");
    // The warning may be logged a little after the release.
    served.use_once().await;
    let used = served.gauge("soloist_fences_used_ratio ").await;
    assert!((0.5..0.501).contains(&used), "{used}");
    until("it warns", async || {
        (warnings().with(warning) > 0).then_some(())
    })
    .await;
    // Once per epoch.
    served.use_once().await;
    served.stop().await;
    assert_eq!(warnings().with(warning), 1, "{:?}", warnings());
}

#[tokio::test(flavor = "multi_thread")]
async fn half_of_the_epochs_are_used_up() {
    let warning = "more than half of the epochs of this generation are used up";
    warnings();
    let plenty = served().await;
    assert!(plenty.gauge("soloist_epochs_used_ratio ").await < 0.001);
    plenty.stop().await;
    assert_eq!(warnings().with(warning), 0, "{:?}", warnings());
    // A leader warns when it passes half, and when it is elected after that.
    for (skipped, told) in [(EPOCHS_HALF - 2, 1), (EPOCHS_HALF - 1, 2)] {
        skip_epochs(skipped);
        let half = served().await;
        let used = half.gauge("soloist_epochs_used_ratio ").await;
        assert!((0.499..0.501).contains(&used), "{used}");
        half.use_once().await;
        half.stop().await;
        assert_eq!(warnings().with(warning), told, "{:?}", warnings());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_epoch_goes_on_and_says_that_it_is_the_last() {
    let error = "the epochs of this generation are used up: nobody can join";
    warnings();
    skip_epochs(2 * EPOCHS_HALF - 2);
    let last = served().await;
    assert_eq!(last.node.epoch(), Some(2 * EPOCHS_HALF - 1));
    assert!(last.gauge("soloist_epochs_used_ratio ").await > 0.999);
    last.use_once().await;
    last.stop().await;
    assert_eq!(warnings().with(error), 1, "{:?}", warnings());
}
