//! CPU time and context switches of threads and processes, from `/proc`.

use std::fs;
use std::io;
use std::ops::{AddAssign, Sub};
use std::path::Path;
use std::time::Duration;

/// CPU time and context switches.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Time on a CPU.
    pub cpu: Duration,
    /// Voluntary and involuntary ones.
    pub switches: u64,
}

impl Usage {
    /// Of the calling thread, since it started.
    pub fn of_this_thread() -> io::Result<Self> {
        Self::read(Path::new("/proc/thread-self"))
    }

    /// Of all current threads of a process.
    pub fn of_process(process: u32) -> io::Result<Self> {
        let mut sum = Usage::default();
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            // A thread may have ended since.
            if let Ok(usage) = Self::read(&thread?.path()) {
                sum += usage;
            }
        }
        Ok(sum)
    }

    fn read(thread: &Path) -> io::Result<Self> {
        let read = |file| fs::read_to_string(thread.join(file));
        let usage = Self::parse(&read("schedstat")?, &read("status")?);
        usage.ok_or_else(|| {
            let text = format!("{} has an unknown format", thread.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn parse(schedstat: &str, status: &str) -> Option<Self> {
        let nanoseconds = schedstat.split_whitespace().next()?.parse().ok()?;
        let switches = |kind: &str| -> Option<u64> {
            let key = format!("{kind}_ctxt_switches:");
            let mut lines = status.lines();
            let value = lines.find_map(|line| line.strip_prefix(key.as_str()))?;
            value.trim().parse().ok()
        };
        Some(Usage {
            cpu: Duration::from_nanos(nanoseconds),
            switches: switches("voluntary")? + switches("nonvoluntary")?,
        })
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.switches += other.switches;
    }
}

/// The usage between two readings. It is zero rather than negative if a thread ended in between.
impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Self) -> Usage {
        Usage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_the_files_of_a_thread() {
        let status = "Threads:\t2\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        let usage = Usage::parse("1500 20 3\n", status).unwrap();
        assert_eq!((usage.cpu.as_nanos(), usage.switches), (1500, 42));
    }

    #[test]
    fn a_thread_that_computes_uses_cpu_time() {
        let before = Usage::of_this_thread().unwrap();
        let process = Usage::of_process(std::process::id()).unwrap();
        let mut number = 1u64;
        while (Usage::of_this_thread().unwrap() - before).cpu < Duration::from_millis(5) {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        let process = Usage::of_process(std::process::id()).unwrap() - process;
        assert!(process.cpu >= Duration::from_millis(5));
    }
}
