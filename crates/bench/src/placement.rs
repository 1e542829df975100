//! Which cores clients and servers run on. The scheduler's own choice changes times by a factor of
//! 3 to 5, so a run without pinning says little.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where clients and servers run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Clients and servers share one core.
    OneCore,
    /// Clients have one core, servers another.
    TwoCores,
    /// The scheduler decides.
    Free,
}

impl Placement {
    /// All placements.
    pub const ALL: [Placement; 3] = [Placement::OneCore, Placement::TwoCores, Placement::Free];

    /// Shown in the table.
    pub fn name(self) -> &'static str {
        match self {
            Placement::OneCore => "one core",
            Placement::TwoCores => "two cores",
            Placement::Free => "free",
        }
    }
}

/// The cores that this process may use.
#[derive(Debug)]
pub struct Cores {
    all: CpuSet,
    usable: Vec<usize>,
}

impl Cores {
    /// Finds them.
    pub fn find() -> io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let usable = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core));
        let usable = usable.collect();
        Ok(Cores { all, usable })
    }

    /// Returns whether there are enough cores for a placement.
    pub fn allow(&self, placement: Placement) -> bool {
        placement != Placement::TwoCores || self.usable.len() >= 2
    }

    /// Pins the calling thread, and what it starts, to the core of the clients.
    pub fn pin_as_client(&self, placement: Placement) -> io::Result<()> {
        self.pin(placement, 0)
    }

    /// Pins the calling thread, and what it starts, to the core of the servers.
    pub fn pin_as_server(&self, placement: Placement) -> io::Result<()> {
        self.pin(placement, 1)
    }

    fn pin(&self, placement: Placement, side: usize) -> io::Result<()> {
        let mut set = CpuSet::new();
        match placement {
            Placement::OneCore => set.set(self.usable[0]),
            Placement::TwoCores => set.set(self.usable[side]),
            Placement::Free => set = self.all,
        }
        Ok(sched_setaffinity(None, &set)?)
    }
}
