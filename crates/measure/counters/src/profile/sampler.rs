//! Samples in a thread of its own until it is stopped.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::members::Members;
use super::modules::Modules;
use super::names::Namer;
use super::open::{IN_TURN, Rings, Scope};
use super::record::{Record, Sample, TimedRecord};
use super::space::{Mapping, Space};
use super::stacks::{Address, Stacks};
use super::table::{Profile, Stack};
use super::unwind::{self, Calls};
use super::{Clock, Options, Target};
use crate::source::CountError;

/// Between two readings of the rings, which hold more than twice that.
const PASS: Duration = Duration::from_millis(30);

/// Samples processes.
#[derive(Debug, Clone, Copy)]
pub struct Sampler;

/// A sampler at work. Dropping it stops it too, and its samples are lost.
#[derive(Debug)]
pub struct Running {
    clock: Clock,
    stop: Sender<()>,
    thread: JoinHandle<Profile>,
}

impl Sampler {
    /// Begins to sample; returns when samples are taken.
    ///
    /// # Errors
    /// If the machine has no such event, the system forbids it (see [`CountError::Forbidden`]), or
    /// the processes are gone.
    pub fn begin(target: &Target, options: &Options) -> Result<Running, CountError> {
        Self::begin_in(target, options, &IN_TURN)
    }

    /// As [`Sampler::begin`], with the rings to try.
    pub(super) fn begin_in(
        target: &Target,
        options: &Options,
        scopes: &[(Scope, bool)],
    ) -> Result<Running, CountError> {
        let (stop, stopped) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let (target, options) = (target.clone(), options.clone());
        let mut rings = Rings::open(&options, scopes)?;
        rings.begin()?;
        let clock = rings.clock.clone();
        let work = move || {
            let mut session = Session::new(&target, options, rings);
            // It fails only if the caller has panicked.
            let _ = ready.send(session.first());
            while stopped.recv_timeout(PASS) == Err(RecvTimeoutError::Timeout) {
                session.pass();
            }
            session.end()
        };
        let thread = std::thread::Builder::new().name("profile".into()).spawn(work);
        let thread = thread.map_err(|error| CountError::Failed(format!("no thread: {error}")))?;
        begun.recv().unwrap_or_else(|_| Err(CountError::Failed("the sampler ended".into())))?;
        Ok(Running { clock, stop, thread })
    }
}

impl Running {
    /// The event it samples by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Stops sampling and resolves the names of functions.
    ///
    /// # Panics
    /// If the sampler's thread did.
    #[must_use]
    pub fn end(self) -> Profile {
        // It fails only if the thread has panicked, which joining reports.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Session {
    options: Options,
    rings: Rings,
    members: Members,
    spaces: HashMap<u32, Space>,
    modules: Modules,
    cache: unwind::Cache,
    stacks: Stacks,
    /// Records that a record of another ring may still precede, by their time.
    waiting: BTreeMap<(u64, u64), Record>,
    /// The latest record of the pass before: all older ones have been read.
    horizon_ns: u64,
    records: u64,
    begun: Instant,
    /// This thread, which must not sample itself.
    own: u32,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    kernel: u64,
    lost: u64,
    truncated: u64,
}

impl Session {
    fn new(target: &Target, options: Options, rings: Rings) -> Self {
        let members = Members::now(target);
        let mut modules = Modules::default();
        let space = |pid| (pid, Space::of_process(pid, &mut modules));
        let spaces = members.iter().map(space).collect();
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        Self {
            options,
            rings,
            members,
            spaces,
            modules,
            cache: unwind::Cache::new(),
            stacks: Stacks::default(),
            waiting: BTreeMap::new(),
            horizon_ns: 0,
            records: 0,
            begun: Instant::now(),
            own,
            counts: Counts::default(),
        }
    }

    fn first(&mut self) -> Result<(), CountError> {
        if self.members.all_gone() {
            return Err(CountError::Gone("the process to sample".into()));
        }
        self.follow()
    }

    fn follow(&mut self) -> Result<(), CountError> {
        for pid in self.rings.follow(&self.members, self.own)? {
            // No record has the mappings made before it had a ring.
            self.spaces.insert(pid, Space::of_process(pid, &mut self.modules));
        }
        Ok(())
    }

    fn pass(&mut self) {
        let latest = self.read();
        let ready = std::mem::replace(&mut self.horizon_ns, latest);
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > ready {
                break;
            }
            let record = first.remove();
            self.apply(record);
        }
        // All threads may have ended, and that is not an error any more.
        let _ = self.follow();
    }

    /// Reads the rings; the time of the latest record so far.
    fn read(&mut self) -> u64 {
        let mut records = Vec::new();
        self.rings.read(&mut records);
        let mut latest = self.horizon_ns;
        for TimedRecord { time_ns, record } in records {
            latest = latest.max(time_ns);
            self.records += 1;
            self.waiting.insert((time_ns, self.records), record);
        }
        latest
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.sample(&sample),
            Record::Mapped { pid, start, bytes, offset, path, inode } => {
                // Of a process not looked at yet all is read at its first sample.
                let Some(space) = self.spaces.get_mut(&pid) else { return };
                let module = self.modules.of(&path, inode);
                let end = start.saturating_add(bytes);
                space.map(Mapping { start, end, offset, module }, &self.modules);
            }
            Record::Forked { pid, parent } => {
                self.members.forked(pid, parent);
                if pid != parent && self.members.contains(pid) {
                    let space = self.spaces.get(&parent).cloned().unwrap_or_default();
                    self.spaces.insert(pid, space);
                }
            }
            Record::Executed { pid } => {
                if let Some(space) = self.spaces.get_mut(&pid) {
                    *space = Space::default();
                }
            }
            Record::Exited { pid, tid } => {
                self.rings.exited(tid);
                // Of a process that goes on without its first thread it is read anew.
                if pid == tid {
                    self.spaces.remove(&pid);
                }
            }
            Record::Lost(lost) => self.counts.lost += lost,
        }
    }

    fn sample(&mut self, sample: &Sample) {
        if !self.members.contains(sample.pid) || sample.tid == self.own {
            return;
        }
        let space = self.spaces.entry(sample.pid);
        let space = space.or_insert_with(|| Space::of_process(sample.pid, &mut self.modules));
        let calls = user_calls(sample, space, &mut self.cache, &self.modules);
        let mut stack = Vec::with_capacity(calls.addresses.len() + sample.kernel.len() + 1);
        if calls.truncated {
            self.counts.truncated += 1;
            stack.push(self.stacks.number(Address::Cut));
        }
        for address in calls.addresses.iter().rev() {
            let found = space.find(*address, &self.modules);
            let code = found.map(|(module, address)| Address::Code { module, address });
            stack.push(self.stacks.number(code.unwrap_or(Address::Unmapped)));
        }
        for (depth, address) in sample.kernel.iter().enumerate().rev() {
            // Behind the innermost they are return addresses: the call lies before them.
            let inside = if depth == 0 { *address } else { address.saturating_sub(1) };
            stack.push(self.stacks.number(Address::Kernel(inside)));
        }
        if sample.in_kernel {
            self.counts.kernel += 1;
        }
        self.stacks.count(&stack, sample.events);
    }

    fn end(mut self) -> Profile {
        let unsampled_threads = self.rings.end();
        let duration_s = self.begun.elapsed().as_secs_f64();
        self.read();
        for (_, record) in std::mem::take(&mut self.waiting) {
            self.apply(record);
        }
        let namer = Namer::new(&self.modules);
        let frames = self.stacks.addresses.iter().map(|address| namer.frame(*address)).collect();
        let stacks = std::mem::take(&mut self.stacks.counted);
        let stacks = stacks.into_iter().map(|(frames, weight)| Stack {
            frames: frames.into_vec(),
            samples: weight.samples,
            events: weight.events,
        });
        let mut profile = Profile::of(self.rings.clock.clone(), frames, stacks.collect());
        profile.frequency_hz = self.options.frequency_hz;
        profile.duration_s = duration_s;
        profile.kernel_samples = self.rings.sees_kernel.then_some(self.counts.kernel);
        profile.lost = self.counts.lost;
        profile.truncated = self.counts.truncated;
        profile.unsampled_threads = unsampled_threads;
        profile
    }
}

/// The calls in the program itself, whether it was running or had called the kernel.
fn user_calls(
    sample: &Sample,
    space: &Space,
    cache: &mut unwind::Cache,
    modules: &Modules,
) -> Calls {
    let Some((registers, stack)) = &sample.user else {
        // A thread of the kernel has none; a program whose registers are unknown has at least the
        // place where it was.
        let addresses = if sample.in_kernel { Vec::new() } else { vec![sample.address] };
        return Calls { addresses, truncated: !sample.in_kernel };
    };
    let is_code = |address| space.find(address, modules).is_some();
    let mut calls = unwind::unwind(&space.unwinder, cache, registers, stack, is_code);
    if let (false, Some(innermost)) = (sample.in_kernel, calls.addresses.first_mut()) {
        // A precise sample names the instruction itself; its registers may be later ones.
        *innermost = sample.address;
    }
    calls
}
