//! Clients that acquire and release locks for a fixed time. Each has a thread and a connection of
//! its own, like a program of its own.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::course::Course;
use crate::workloads::Workload;
use crate::{Error, Samples, Usage};

const NO_USAGE: &str = "cannot read the CPU time of clients and servers";

/// Why a client failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Servers on this machine that give locks to clients.
pub trait System: Sync {
    /// A client of a server.
    type Client: Client;

    /// Number of servers that clients can be connected to.
    fn servers(&self) -> usize;

    /// Connects a client to a server, by its number from 0.
    fn connect(&self, server: usize) -> impl Future<Output = Result<Self::Client, Failure>>;

    /// CPU time and context switches of all servers.
    fn usage(&self) -> io::Result<Usage>;

    /// The share of hand-overs among the entries of a contended run, if it is so small that some
    /// servers hardly took part.
    fn starved(&self, entries: usize, hand_overs: usize) -> Option<f64> {
        let _ = (entries, hand_overs);
        None
    }
}

/// A client, which holds at most one lock.
pub trait Client {
    /// Acquires a lock.
    fn acquire(&mut self, lock: &str) -> impl Future<Output = Result<(), Failure>>;

    /// Releases the lock, and waits for the server's answer if `is_awaited` is set.
    fn release(&mut self, is_awaited: bool) -> impl Future<Output = Result<(), Failure>>;

    /// Waits until all releases were answered.
    fn settle(&mut self) -> impl Future<Output = Result<(), Failure>>;
}

/// What all clients of a run did.
#[derive(Default)]
pub(crate) struct Run {
    pub seconds: f64,
    pub cycles: Samples,
    pub clients: Usage,
    pub nodes: Usage,
}

/// One client of a run.
struct Member<'a, S> {
    number: usize,
    workload: Workload,
    system: &'a S,
    course: &'a Course,
    /// Before the first cycle and after the last one.
    gates: &'a [Barrier; 2],
    stop: &'a AtomicBool,
}

/// Runs a workload once. The calling thread must be pinned like a client.
pub(crate) fn run<S: System>(
    system: &S,
    workload: Workload,
    time: Duration,
    course: &Course,
) -> Result<Run, Error> {
    let gates = [(); 2].map(|()| Barrier::new(workload.clients + 1));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads = (0..workload.clients).map(|number| {
            let member = Member {
                number,
                workload,
                system,
                course,
                gates: &gates,
                stop: &stop,
            };
            scope.spawn(move || member.run())
        });
        let threads: Vec<_> = threads.collect();
        gates[0].wait();
        let before = system.usage();
        let begin = Instant::now();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let seconds = begin.elapsed().as_secs_f64();
        let after = system.usage();
        // Not before: a server may count no usage of a client that has left.
        gates[1].wait();
        let mut run = Run {
            seconds,
            nodes: after
                .and_then(|after| Ok(after - before?))
                .map_err(Error::io(NO_USAGE))?,
            ..Run::default()
        };
        for thread in threads {
            let (cycles, usage) = thread.join().expect("a client does not panic")?;
            run.cycles.extend(cycles);
            run.clients += usage;
        }
        Ok(run)
    })
}

impl<S: System> Member<'_, S> {
    fn run(self) -> Result<(Samples, Usage), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io("cannot start a client"));
        let [start, end] = self.gates;
        let ready = runtime.and_then(|runtime| {
            let client = runtime.block_on(self.connect()).map_err(Error::Client)?;
            Ok((runtime, client))
        });
        // Also after an error: the others wait here.
        start.wait();
        let done = ready.and_then(|(runtime, (mut client, mut names))| {
            let done = runtime.block_on(self.work(&mut client, &mut names))?;
            Ok((runtime, client, done))
        });
        end.wait();
        let (runtime, mut client, done) = done?;
        let settled = runtime.block_on(client.settle());
        settled.map_err(Error::Client)?;
        Ok(done)
    }

    /// Connects, and uses a lock once.
    async fn connect(&self) -> Result<(S::Client, Names), Failure> {
        let mut client = self.system.connect(self.server()).await?;
        let mut names = Names::new(self.number, &self.workload);
        client.acquire(&names.next()).await?;
        client.release(true).await?;
        Ok((client, names))
    }

    fn server(&self) -> usize {
        self.number % self.system.servers()
    }

    /// A lock is handed over if it goes from one place to another.
    fn place(&self) -> usize {
        match self.system.servers() {
            1 => self.number,
            _ => self.server(),
        }
    }

    async fn work(
        &self,
        client: &mut S::Client,
        names: &mut Names,
    ) -> Result<(Samples, Usage), Error> {
        let usage = || Usage::of_this_thread().map_err(Error::io(NO_USAGE));
        let before = usage()?;
        let mut cycles = Samples::default();
        while !self.stop.load(Ordering::Relaxed) {
            let lock = names.next();
            let begin = Instant::now();
            let asked = self.course.ask();
            client.acquire(&lock).await.map_err(Error::Client)?;
            self.course.enter(self.place(), &asked);
            self.course.leave(self.place());
            let released = client.release(self.workload.awaits_release).await;
            released.map_err(Error::Client)?;
            cycles.add(begin.elapsed());
        }
        Ok((cycles, usage()? - before))
    }
}

/// The names of the locks that a client takes.
struct Names {
    workload: Workload,
    number: usize,
    random: u64,
}

impl Names {
    fn new(number: usize, workload: &Workload) -> Self {
        Names {
            workload: *workload,
            number,
            random: number as u64 + 1,
        }
    }

    fn next(&mut self) -> String {
        let locks = self.workload.locks;
        let number = match locks > self.workload.clients {
            false => self.number % locks,
            true => {
                // Xorshift: the same sequence in every run, and another one for each client.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                (self.random % locks as u64) as usize
            }
        };
        format!("bench/{locks}/{number}")
    }
}
