//! Limits the number of long-running requests, in total and per client, so that one client cannot
//! take all slots.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use super::error::Failure;
use soloist_core::locks::Client;

/// The slots for long-running requests.
pub(super) struct LongRequests {
    taken: Mutex<Taken>,
    all_max: usize,
    client_max: usize,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// Number of slots per client, for clients that have any.
    clients: HashMap<Client, usize>,
}

/// A slot, freed on drop.
pub(super) struct Place<'l> {
    requests: &'l LongRequests,
    client: Client,
}

impl LongRequests {
    /// Allows `all_max` requests at a time, two thirds of them from one client.
    pub(super) fn new(all_max: usize) -> Self {
        LongRequests {
            taken: Mutex::default(),
            all_max,
            client_max: (all_max / 3 * 2).max(1),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken
            .lock()
            .expect("no thread panics while it has the mutex")
    }

    /// Takes a slot for a client's request.
    pub(super) fn place(&self, client: &Client) -> Result<Place<'_>, Failure> {
        let mut taken = self.taken();
        let its = taken.clients.get(client).copied().unwrap_or_default();
        if its >= self.client_max {
            return Err(Failure::too_many(format!(
                "client {client} has {} requests waiting on this node's API, which is the limit: \
                 try again later",
                self.client_max
            )));
        }
        if taken.all >= self.all_max {
            return Err(Failure::too_many(format!(
                "this node's API has {} requests waiting, which is the limit: try again later",
                self.all_max
            )));
        }
        taken.all += 1;
        taken.clients.insert(client.clone(), its + 1);
        Ok(Place {
            requests: self,
            client: client.clone(),
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.requests.taken();
        taken.all -= 1;
        let its = taken.clients.get_mut(&self.client);
        let its = its.expect("the request was counted");
        *its -= 1;
        if *its == 0 {
            taken.clients.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_places_for_others() {
        let requests = LongRequests::new(6);
        let (one, other) = (Client::new("one"), Client::new("other"));
        let mut places: Vec<_> = (0..4).map(|_| requests.place(&one)).collect();
        assert!(requests.place(&one).is_err());
        places.extend((4..6).map(|_| requests.place(&other)));
        assert!(places.iter().all(Result::is_ok));
        assert!(requests.place(&other).is_err(), "all places are taken");
        places.truncate(5);
        drop(places.remove(0));
        assert!(requests.place(&one).is_ok());
        drop(places);
        let taken = requests.taken();
        assert_eq!((taken.all, taken.clients.len()), (0, 0));
    }
}
