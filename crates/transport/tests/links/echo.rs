//! A handler that sends from within its call, as a node's lock table does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use soloist_core::Incarnation;
use soloist_transport::links::{Handler, LinkChange, Links};

use crate::net::{B, listener, only, roster, settings, until};

/// Sends each number back incremented, up to a limit.
struct Echo {
    links: OnceLock<Links>,
    limit: u32,
    reached: AtomicU32,
}

impl Handler for Echo {
    fn receive(
        &self,
        from: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String> {
        for frame in frames {
            let number = u32::from_le_bytes(frame.try_into().map_err(|_| "not 4 bytes")?);
            self.reached.store(number, Ordering::Relaxed);
            if number < self.limit {
                let links = self.links.get().ok_or("not started")?;
                let sent = links.send(from, &(number + 1).to_le_bytes());
                sent.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn link_changed(&self, _: &str, _: LinkChange) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handler_may_send() {
    const LIMIT: u32 = 20_000;
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let peers = roster(&[("a", &a), ("b", &b)]);
    let [a, b] = [("a", at_a), ("b", at_b)].map(|(me, listener)| {
        let echo = Arc::new(Echo {
            links: OnceLock::new(),
            limit: LIMIT,
            reached: AtomicU32::new(0),
        });
        let links = Links::start(settings(me), listener, echo.clone()).unwrap();
        links.set_peers(only(me), peers.clone()).unwrap();
        assert!(echo.links.set(links).is_ok());
        echo
    });
    a.links.get().unwrap().send(B, &1u32.to_le_bytes()).unwrap();
    until("they are through", || {
        a.reached
            .load(Ordering::Relaxed)
            .max(b.reached.load(Ordering::Relaxed))
            == LIMIT
    })
    .await;
}
