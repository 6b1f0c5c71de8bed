//! Rings of samples: one per CPU where the system allows it, else one per thread.
//!
//! A ring per CPU sees every process from its first instruction; those of other processes are left
//! out afterwards. That needs `perf_event_paranoid` at 0 or CAP_PERFMON. A ring per thread is
//! allowed for one's own processes; the kernel maps no ring for an event that children inherit on
//! any CPU, so threads made later are looked for, and their first tenth of a second may be missed.

use std::collections::{HashMap, HashSet};

use perf_event::{Builder, SampleSkid, Sampler};
use rustix::io::Errno;
use workahead_machine::CpuSet;

use super::members::Members;
use super::record::{self, TimedRecord};
use super::{Clock, Options};
use crate::source::CountError;
use request::{Request, refusal};

mod request;

/// The open rings.
pub(super) struct Rings {
    builder: Builder<'static>,
    pub(super) clock: Clock,
    /// Whether the kernel's part is sampled too.
    pub(super) sees_kernel: bool,
    ring_bytes: usize,
    open: OpenSamplers,
}

enum OpenSamplers {
    /// One per CPU.
    Cpus(Vec<Sampler>),
    /// One per thread.
    Threads {
        rings: HashMap<u32, Sampler>,
        /// Their processes.
        pids: HashSet<u32>,
        /// Threads for which there was no ring.
        refused: HashSet<u32>,
        /// Threads that have ended and whose rings were read for the last time.
        ended: Vec<u32>,
    },
}

/// Scope of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Cpus,
    Threads,
}

/// Scopes, and whether the kernel is sampled too: the most informative first.
pub(super) const IN_TURN: [(Scope, bool); 3] =
    [(Scope::Cpus, true), (Scope::Threads, true), (Scope::Threads, false)];

impl Rings {
    /// Opens rings that do not fill yet: of all CPUs, or of no thread so far.
    pub(super) fn open(options: &Options, scopes: &[(Scope, bool)]) -> Result<Self, CountError> {
        request::check(options)?;
        let cpus = online()?;
        let mut why = CountError::Failed("nothing was tried".into());
        for request in request::in_turn(&options.by) {
            for (scope, sees_kernel) in scopes {
                match Self::attempt(&request, options, *scope, *sees_kernel, &cpus) {
                    Ok(rings) => return Ok(rings),
                    Err(error) => why = error,
                }
            }
        }
        // The last attempt requested the least.
        Err(why)
    }

    fn attempt(
        request: &Request,
        options: &Options,
        scope: Scope,
        sees_kernel: bool,
        cpus: &CpuSet,
    ) -> Result<Self, CountError> {
        let clock = &request.clock;
        let mut builder = request.builder(options, sees_kernel)?;
        let first = cpus.first().unwrap_or_default();
        // Precise samples name the instruction that missed, not one behind it; not all machines
        // and events have them.
        let precise = probe(builder.precise_ip(SampleSkid::RequestZero), scope, first);
        if precise.is_err() {
            probe(builder.precise_ip(SampleSkid::Arbitrary), scope, first)
                .map_err(|error| refusal(&error, clock))?;
        }
        let ring_bytes = match scope {
            Scope::Cpus => request::ring_bytes(options, 0.5),
            // A user may lock little memory, and a thread runs on one CPU at a time.
            Scope::Threads => request::ring_bytes(options, 0.08),
        };
        let open = match scope {
            Scope::Cpus => {
                let ring = |cpu| {
                    let counter = builder.clone().any_pid().one_cpu(cpu).build()?;
                    counter.sampled(ring_bytes)
                };
                let rings: std::io::Result<Vec<Sampler>> = cpus.iter().map(ring).collect();
                OpenSamplers::Cpus(rings.map_err(|error| refusal(&error, clock))?)
            }
            Scope::Threads => OpenSamplers::Threads {
                rings: HashMap::new(),
                pids: HashSet::new(),
                refused: HashSet::new(),
                ended: Vec::new(),
            },
        };
        Ok(Self { builder, clock: clock.clone(), sees_kernel, ring_bytes, open })
    }

    /// Lets the rings of CPUs fill; those of threads fill from when they are opened.
    pub(super) fn begin(&mut self) -> Result<(), CountError> {
        let OpenSamplers::Cpus(rings) = &mut self.open else { return Ok(()) };
        let mut enable = rings.iter_mut().map(|ring| ring.enable());
        enable.try_for_each(|done| done.map_err(|error| refusal(&error, &self.clock)))
    }

    /// Opens a ring for every thread of the members that has none. Returns the processes that had
    /// none before.
    ///
    /// # Errors
    /// If there is still no ring at all.
    pub(super) fn follow(&mut self, members: &Members, own: u32) -> Result<Vec<u32>, CountError> {
        let OpenSamplers::Threads { rings, pids, refused, .. } = &mut self.open else {
            return Ok(Vec::new());
        };
        let mut why = CountError::Gone("the process to sample".into());
        let mut new = Vec::new();
        for pid in members.iter() {
            for tid in threads(pid) {
                if tid == own || rings.contains_key(&tid) || refused.contains(&tid) {
                    continue;
                }
                match of_thread(&self.builder, self.ring_bytes, tid) {
                    Ok(ring) => {
                        rings.insert(tid, ring);
                        new.extend(pids.insert(pid).then_some(pid));
                    }
                    Err(error) => {
                        why = refusal(&error, &self.clock);
                        // One that ended meanwhile was not refused.
                        if !matches!(why, CountError::Gone(_)) {
                            refused.insert(tid);
                        }
                    }
                }
            }
        }
        if rings.is_empty() { Err(why) } else { Ok(new) }
    }

    /// Reads all that is in the rings.
    pub(super) fn read(&mut self, into: &mut Vec<TimedRecord>) {
        match &mut self.open {
            OpenSamplers::Cpus(rings) => rings.iter_mut().for_each(|ring| drain(ring, into)),
            OpenSamplers::Threads { rings, ended, .. } => {
                rings.values_mut().for_each(|ring| drain(ring, into));
                for tid in ended.drain(..) {
                    rings.remove(&tid);
                }
            }
        }
    }

    /// A thread has ended: its ring is given back after it has been read once more.
    pub(super) fn exited(&mut self, tid: u32) {
        if let OpenSamplers::Threads { ended, refused, .. } = &mut self.open {
            ended.push(tid);
            refused.remove(&tid);
        }
    }

    /// Stops the rings and says how many threads had none.
    pub(super) fn end(&mut self) -> u64 {
        // A ring that can't be stopped is closed with the others right after.
        match &mut self.open {
            OpenSamplers::Cpus(rings) => {
                rings.iter_mut().for_each(|ring| drop(ring.disable()));
                0
            }
            OpenSamplers::Threads { rings, refused, .. } => {
                rings.values_mut().for_each(|ring| drop(ring.disable()));
                refused.len() as u64
            }
        }
    }
}

fn probe(builder: &mut Builder<'static>, scope: Scope, cpu: usize) -> std::io::Result<()> {
    let one = match scope {
        Scope::Cpus => builder.any_pid().one_cpu(cpu),
        Scope::Threads => builder.observe_self().any_cpu(),
    };
    one.build().map(drop)
}

fn of_thread(builder: &Builder<'static>, bytes: usize, tid: u32) -> std::io::Result<Sampler> {
    let tid = i32::try_from(tid).map_err(|_| std::io::Error::from(Errno::SRCH))?;
    let counter = builder.clone().observe_pid(tid).any_cpu().enabled(true).build()?;
    counter.sampled(bytes)
}

/// The logical CPUs that run something.
fn online() -> Result<CpuSet, CountError> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let text = text.map_err(|error| CountError::Failed(format!("no CPUs are listed: {error}")))?;
    text.trim().parse().map_err(|error| CountError::Failed(format!("{error}")))
}

fn threads(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names = tasks.into_iter().flatten().flatten().map(|task| task.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

fn drain(ring: &mut Sampler, into: &mut Vec<TimedRecord>) {
    let config = ring.config().clone();
    while let Some(record) = ring.next_record() {
        into.extend(record::read(&record, &config));
    }
}
