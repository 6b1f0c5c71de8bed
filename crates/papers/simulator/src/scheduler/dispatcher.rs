//! The dispatcher: tasks wake, run and stop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use workahead_policy::Group;

use super::choice::{Chooser, QueueView};
use super::fair::{Slices, from_ns, virtual_ticks};
use super::figures::{Dispatch, Figures, Running, Wait};
use super::queue::{Key, Queue};
use super::{Scheduler, Task};
use crate::core::Processor;
use crate::counts::Counts;
use crate::op::{Call, Op};
use crate::run::{RunResult, Thread, ThreadResult};
use crate::ticks::{Ticks, ticks};

/// Switches that are kept before they are summed.
const DISPATCHES: usize = 1 << 20;

/// A task in a run queue.
pub(super) struct Entity<'s> {
    thread: Thread<'s>,
    cpu: usize,
    pub(super) weight: u32,
    pub(super) group: Option<Group>,
    pub(super) working_set_bytes: u64,
    pub(super) vruntime: Ticks,
    /// Its key in the queue.
    key: Key,
    /// When it was queued.
    ready: Ticks,
    did: Counts,
    ended: Ticks,
    wait: Wait,
}

/// A CPU's run queue and current thread.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) queue: Queue,
    pub(super) current: Option<usize>,
    /// Group of the thread that ran last; `None` after the CPU was idle.
    pub(super) own: Option<Group>,
    /// When its thread was dispatched; up to when its vruntime is charged; when its slice ends.
    chosen: Ticks,
    charged: Ticks,
    slice_ends: Ticks,
    /// Sleeping threads by wake-up time.
    asleep: BTreeSet<(Ticks, usize)>,
    /// Counts of the CPU when its thread was dispatched.
    before: Counts,
    /// A thread with less vruntime woke.
    preempted: bool,
    /// The gang slot of the last decision.
    slot: u64,
}

/// Items and waiting threads of a channel.
#[derive(Debug, Default)]
struct Channel {
    posts: u64,
    waiting: VecDeque<usize>,
}

/// Why a thread stopped executing.
enum StopReason {
    SliceEnd,
    SystemCall(Call),
    ScriptEnd,
}

/// A machine with its run queues.
pub(super) struct Dispatcher<'p, 's> {
    processor: &'p mut Processor,
    /// Whether the run is to end before its tasks have.
    stop_flag: &'p AtomicBool,
    entities: Vec<Entity<'s>>,
    cpus: Vec<Cpu>,
    chooser: Chooser,
    slices: Slices,
    switch: Ticks,
    delay_max: Option<Ticks>,
    channels: BTreeMap<u32, Channel>,
    left: usize,
    figures: Figures,
    /// What the switches say that are summed, and how many may be kept.
    summed: Running,
    kept_max: usize,
}

impl<'p, 's> Dispatcher<'p, 's> {
    pub(super) fn new(
        processor: &'p mut Processor,
        tasks: Vec<Task<'s>>,
        by: &Scheduler,
        stop_flag: &'p AtomicBool,
    ) -> Self {
        let preset = processor.preset();
        let (ghz, cpus) = (preset.ghz, preset.cpus() as usize);
        let slices = Slices::of(&by.fair, ghz);
        let mut running = Self {
            chooser: Chooser::new(by, preset, |ns| from_ns(ns, ghz)),
            entities: Vec::with_capacity(tasks.len()),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            slices,
            switch: ticks(by.switch),
            delay_max: by.delay_max_ns.map(|ns| from_ns(ns, ghz)),
            channels: BTreeMap::new(),
            left: tasks.iter().filter(|task| !task.thread.attends).count(),
            figures: Figures::default(),
            summed: Running::new(cpus),
            kept_max: DISPATCHES,
            processor,
            stop_flag,
        };
        tasks.into_iter().for_each(|task| running.begin(task));
        running
    }

    /// All threads start together, with equal vruntime.
    fn begin(&mut self, task: Task<'s>) {
        let Task { thread, cpu, weight, group, working_set_bytes } = task;
        let at = self.entities.len();
        assert!(weight > 0, "task {at} has no weight");
        let key = self.cpus[cpu].queue.insert(at, 0, weight);
        self.entities.push(Entity {
            thread,
            cpu,
            weight,
            group,
            working_set_bytes,
            vruntime: 0,
            key,
            ready: self.processor.now(cpu),
            did: Counts::default(),
            ended: 0,
            wait: Wait::default(),
        });
    }

    pub(super) fn finish(mut self) -> (RunResult, Figures) {
        let cpus = self.cpus.len();
        let begun: Vec<Counts> = (0..cpus).map(|cpu| self.processor.counts(cpu)).collect();
        for (cpu, one) in self.cpus.iter().enumerate() {
            self.processor.set_busy(cpu, !one.queue.is_empty());
        }
        while self.left > 0 && !self.stop_flag.load(Ordering::Relaxed) {
            let Some((cpu, until)) = self.turn() else { break };
            if self.figures.dispatches.len() >= self.kept_max {
                self.fold(cpu);
            }
            self.step(cpu, until);
        }
        let counted = self.entities.iter().filter(|entity| !entity.thread.attends);
        let end = counted.map(|entity| entity.ended).max().unwrap_or_default();
        self.close(end);
        let counts = (0..cpus).map(|cpu| self.processor.counts(cpu) - begun[cpu]).collect();
        let threads = self.entities.iter().map(Entity::result).collect();
        (RunResult { cpus: counts, threads, ticks: end }, self.figures)
    }

    /// Accounts the running and waiting time of threads that have not ended.
    fn close(&mut self, end: Ticks) {
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.cpus[cpu].current {
                self.charge(cpu);
                self.stop(cpu, task);
            }
            let queued: Vec<usize> = self.cpus[cpu].queue.tasks().collect();
            queued.into_iter().for_each(|task| self.entities[task].waits_until(end));
        }
        let groups = self.groups();
        self.figures.of_dispatches(&mut self.summed, end, &groups);
        self.figures.tasks = self.entities.iter().map(|entity| entity.wait).collect();
    }

    /// Sums the switches before the first event, which is that of a CPU.
    #[cold]
    fn fold(&mut self, cpu: usize) {
        let one = &self.cpus[cpu];
        let mut next = self.processor.now(cpu);
        if one.current.is_none() && one.queue.is_empty() {
            next = next.max(one.asleep.first().map_or(0, |sleeper| sleeper.0));
        }
        let groups = self.groups();
        self.figures.fold(&mut self.summed, next, &groups);
        // Where time stands still, all are kept.
        self.kept_max = DISPATCHES.max(2 * self.figures.dispatches.len());
    }

    /// Groups of tasks with others in their group.
    fn groups(&self) -> Vec<Option<Group>> {
        let mut sizes: BTreeMap<Group, usize> = BTreeMap::new();
        let groups = self.entities.iter().filter_map(|entity| entity.group);
        groups.for_each(|group| *sizes.entry(group).or_default() += 1);
        let with_others = |entity: &Entity<'_>| {
            entity.group.filter(|group| sizes.get(group).is_some_and(|size| *size > 1))
        };
        self.entities.iter().map(with_others).collect()
    }

    /// The CPU whose next event is first, and until when no other CPU has one.
    #[inline(always)]
    fn turn(&self) -> Option<(usize, Ticks)> {
        let mut least: Option<(usize, Ticks)> = None;
        let mut until = Ticks::MAX;
        for (cpu, one) in self.cpus.iter().enumerate() {
            let mut now = self.processor.now(cpu);
            if one.current.is_none() && one.queue.is_empty() {
                let Some((wakes, _)) = one.asleep.first() else { continue };
                now = now.max(*wakes);
            }
            match least {
                Some((_, before)) if before <= now => until = until.min(now.saturating_add(1)),
                before => {
                    until = until.min(before.map_or(Ticks::MAX, |(_, now)| now));
                    least = Some((cpu, now));
                }
            }
        }
        least.map(|(cpu, _)| (cpu, until))
    }

    /// Advances one CPU until `until`.
    fn step(&mut self, cpu: usize, until: Ticks) {
        if self.cpus[cpu].current.is_none() && self.cpus[cpu].queue.is_empty() {
            let wakes = self.cpus[cpu].asleep.first().map_or(0, |sleeper| sleeper.0);
            self.processor.idle_until(cpu, wakes);
            self.processor.set_busy(cpu, true);
        }
        self.wake_up(cpu);
        let now = self.processor.now(cpu);
        let one = &self.cpus[cpu];
        let decides = one.preempted
            || one.slot != self.chooser.slot()
            || now >= self.chooser.slot_ends()
            || now >= one.slice_ends && !one.queue.is_empty();
        match one.current {
            None => self.dispatch(cpu, None),
            Some(task) if decides => {
                self.charge(cpu);
                self.dispatch(cpu, Some(task));
            }
            Some(_) => {}
        }
        let Some(task) = self.cpus[cpu].current else { return };
        let one = &self.cpus[cpu];
        let wakes = one.asleep.first().map_or(Ticks::MAX, |sleeper| sleeper.0);
        let slice = if one.queue.is_empty() { Ticks::MAX } else { one.slice_ends };
        let until = until.min(wakes).min(slice).min(self.chooser.slot_ends());
        match self.run(cpu, task, until) {
            StopReason::SliceEnd => {}
            StopReason::SystemCall(call) => self.called(cpu, task, call),
            StopReason::ScriptEnd => self.end(cpu, task),
        }
    }

    /// Runs a thread on its CPU until `until`, which never comes where it is the only one.
    #[inline(always)]
    fn run(&mut self, cpu: usize, task: usize, until: Ticks) -> StopReason {
        let stop = self.stop_flag;
        let script = &mut *self.entities[task].thread.script;
        loop {
            let now = self.processor.now(cpu);
            if now >= until || stop.load(Ordering::Relaxed) {
                return StopReason::SliceEnd;
            }
            match script.next(now) {
                None => return StopReason::ScriptEnd,
                Some(Op::System(call)) => return StopReason::SystemCall(call),
                Some(op) => self.processor.run(cpu, op),
            }
        }
    }

    fn called(&mut self, cpu: usize, task: usize, call: Call) {
        match call {
            Call::Yield => {
                self.charge(cpu);
                self.dispatch(cpu, Some(task));
            }
            Call::Sleep { cycles } => {
                let wakes = self.processor.now(cpu) + ticks(f64::from(cycles));
                self.cpus[cpu].asleep.insert((wakes, task));
                self.leave(cpu, task);
            }
            Call::Wait { channel } => {
                let on = self.channels.entry(channel).or_default();
                match on.posts.checked_sub(1) {
                    Some(posts) => on.posts = posts,
                    None => {
                        on.waiting.push_back(task);
                        self.leave(cpu, task);
                    }
                }
            }
            Call::Post { channel } => {
                let now = self.processor.now(cpu);
                let on = self.channels.entry(channel).or_default();
                match on.waiting.pop_front() {
                    Some(waits) => {
                        self.cpus[self.entities[waits].cpu].asleep.insert((now, waits));
                    }
                    None => on.posts += 1,
                }
            }
        }
    }

    fn end(&mut self, cpu: usize, task: usize) {
        self.processor.drain(cpu);
        self.entities[task].ended = self.processor.now(cpu);
        self.left -= usize::from(!self.entities[task].thread.attends);
        self.leave(cpu, task);
    }

    /// Takes a thread that can't continue off its CPU and dispatches another.
    fn leave(&mut self, cpu: usize, task: usize) {
        self.charge(cpu);
        self.stop(cpu, task);
        self.cpus[cpu].current = None;
        self.dispatch(cpu, None);
    }

    /// Charges the running time of a CPU's thread to its vruntime.
    fn charge(&mut self, cpu: usize) {
        let (now, one) = (self.processor.now(cpu), &mut self.cpus[cpu]);
        let ran = now - std::mem::replace(&mut one.charged, now);
        let current = one.current.map(|task| {
            let entity = &mut self.entities[task];
            entity.vruntime += virtual_ticks(ran, entity.weight);
            entity.wait.ran += ran;
            entity.vruntime
        });
        one.queue.advance(current);
    }

    /// Queues threads whose sleep is over, with a credit for the time they didn't use, up to a
    /// latency.
    fn wake_up(&mut self, cpu: usize) {
        let now = self.processor.now(cpu);
        while let Some((wakes, task)) = self.cpus[cpu].asleep.first().copied() {
            if wakes > now {
                break;
            }
            self.charge(cpu);
            let one = &mut self.cpus[cpu];
            one.asleep.pop_first();
            let entity = &mut self.entities[task];
            let credited = one.queue.least.saturating_sub(self.slices.latency);
            entity.vruntime = entity.vruntime.max(credited);
            let (woken, weight) = (entity.vruntime, entity.weight);
            self.enqueue(cpu, task, wakes);
            let granted = virtual_ticks(self.slices.wakeup, weight);
            if let Some(current) = self.cpus[cpu].current.map(|task| &self.entities[task]) {
                let is_due = woken.saturating_add(granted) < current.vruntime
                    || self.chooser.prefers(self.entities[task].group, current.group);
                self.cpus[cpu].preempted |= is_due;
            }
            self.set_slice(cpu);
        }
    }

    fn enqueue(&mut self, cpu: usize, task: usize, since: Ticks) {
        let entity = &mut self.entities[task];
        entity.ready = since;
        entity.key = self.cpus[cpu].queue.insert(task, entity.vruntime, entity.weight);
    }

    /// Sets the slice of the running thread from the length of the queue.
    fn set_slice(&mut self, cpu: usize) {
        let one = &mut self.cpus[cpu];
        let Some(task) = one.current else { return };
        let weight = self.entities[task].weight;
        let (load, runnable) = (one.queue.load + u64::from(weight), one.queue.len() + 1);
        let slice = self.slices.slice(weight, load, runnable);
        one.slice_ends = one.chosen + self.chooser.slice(slice, &self.slices);
    }

    /// Dispatches the next thread; `current` can continue.
    fn dispatch(&mut self, cpu: usize, current: Option<usize>) {
        let now = self.processor.now(cpu);
        let view = QueueView {
            at: cpu,
            now,
            current,
            cpus: &self.cpus,
            entities: &self.entities,
            slices: &self.slices,
            overdue: self.overdue(cpu, now),
        };
        let (own, shared) = (self.cpus[cpu].own, self.chooser.shared(cpu));
        let wanted = |task: usize| {
            let group = self.entities[task].group;
            group.is_some() && (group == own || group == shared)
        };
        let chance = self.cpus[cpu].queue.tasks().any(wanted);
        let next = self.chooser.next(view);
        self.figures.decisions += 1;
        self.figures.chances += u64::from(chance);
        let taken = chance && next != current && next.is_some_and(wanted);
        self.figures.taken += u64::from(taken);
        self.cpus[cpu].preempted = false;
        self.cpus[cpu].slot = self.chooser.slot();
        if next != current || next.is_none() {
            if let Some(task) = current {
                self.stop(cpu, task);
                self.enqueue(cpu, task, now);
            }
            self.start(cpu, next, now);
        }
        self.cpus[cpu].chosen = now;
        self.set_slice(cpu);
    }

    /// The thread that has waited longest, if for too long.
    fn overdue(&self, cpu: usize, now: Ticks) -> Option<usize> {
        let most = self.delay_max?;
        let queue = self.cpus[cpu].queue.tasks();
        let (since, task) = queue.map(|task| (self.entities[task].ready, task)).min()?;
        (now - since > most).then_some(task)
    }

    /// Starts a thread of the queue on a CPU, or leaves it idle.
    fn start(&mut self, cpu: usize, next: Option<usize>, now: Ticks) {
        self.figures.dispatches.push(Dispatch { at: now, cpu, task: next });
        let one = &mut self.cpus[cpu];
        one.current = next;
        one.own = next.and_then(|task| self.entities[task].group);
        one.charged = now;
        let Some(task) = next else {
            self.processor.set_busy(cpu, false);
            return;
        };
        let entity = &mut self.entities[task];
        one.queue.remove(&entity.key, entity.weight);
        entity.waits_until(now);
        entity.wait.dispatches += 1;
        self.processor.idle_until(cpu, now + self.switch);
        one.before = self.processor.counts(cpu);
        self.processor.switch_to(cpu, entity.thread.space);
    }

    /// Stops the thread of a CPU.
    fn stop(&mut self, cpu: usize, task: usize) {
        let did = self.processor.counts(cpu) - self.cpus[cpu].before;
        self.entities[task].did = self.entities[task].did + did;
    }
}

impl Entity<'_> {
    fn result(&self) -> ThreadResult {
        ThreadResult { counts: self.did, finished: self.ended }
    }

    fn waits_until(&mut self, now: Ticks) {
        let waited = now.saturating_sub(self.ready);
        self.wait.waited += waited;
        self.wait.waited_max = self.wait.waited_max.max(waited);
    }
}
