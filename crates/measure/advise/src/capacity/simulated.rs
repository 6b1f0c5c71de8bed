//! Servers whose ceiling is known, observed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{CpuWindow, Resource, ServerObservation, Waiting, Window};

/// A server: what runs out, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Server {
    pub(super) cpus: f64,
    /// Busy CPUs without load.
    pub(super) idle: f64,
    /// CPU seconds of a transaction that runs alone.
    pub(super) cost_s: f64,
    /// Of the universal scalability law: serial part, and what it takes to agree.
    pub(super) contention: f64,
    pub(super) coherence: f64,
    /// The resource that one at a time may hold.
    pub(super) serial: Option<Serial>,
}

/// A lock, or a log that takes one write at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serial {
    pub(super) resource: Resource,
    /// Mean time that a transaction holds it.
    pub(super) hold_s: f64,
    /// Whether that time is always the same; else it is exponential.
    pub(super) is_constant: bool,
}

pub(super) const SERVER: Server =
    Server { cpus: 8.0, idle: 0.2, cost_s: 0.004, contention: 0.0, coherence: 0.0, serial: None };

/// How it is observed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservationConditions {
    /// Loads over the ceiling.
    pub(super) loads: (f64, f64),
    pub(super) windows: usize,
    /// Deviation of what a transaction takes, from window to window.
    pub(super) noise: f64,
}

pub(super) const SEEN: ObservationConditions =
    ObservationConditions { loads: (0.2, 0.6), windows: 300, noise: 0.04 };

/// Looks at sessions in a window.
const LOOKS: usize = 4;

impl Server {
    /// The load at which `busy` CPUs are busy.
    fn load_at(&self, busy: f64) -> f64 {
        let more = busy - 1.0;
        let cost = self.cost_s * (1.0 + self.contention * more + self.coherence * busy * more);
        (busy - self.idle) / cost
    }

    pub(super) fn ceiling(&self) -> f64 {
        let serial = self.serial.map_or(f64::INFINITY, |serial| 1.0 / serial.hold_s);
        self.load_at(self.cpus).min(serial)
    }

    /// The CPUs that are busy at a load, by bisection.
    fn busy_at(&self, load: f64) -> f64 {
        let (mut low, mut high) = (self.idle, self.cpus);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            match self.load_at(middle) < load {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    pub(super) fn observed(&self, seen: ObservationConditions, seed: u64) -> ServerObservation {
        let mut random = Random(ChaCha8Rng::seed_from_u64(seed));
        let mut queue = Queue::default();
        let ceiling = self.ceiling();
        // Load wanders, as that of a morning does, and has its own noise from second to second.
        let phase = random.share();
        let windows = (0..seen.windows).map(|at| {
            let turn = at as f64 / seen.windows as f64 * 2.0 + phase;
            let share = 0.5 + 0.5 * (turn * std::f64::consts::TAU).sin();
            let mean = seen.loads.0 + (seen.loads.1 - seen.loads.0) * share;
            let load = (ceiling * mean * (1.0 + 0.03 * random.normal())).max(1.0);
            let waits = self.serial.map(|serial| queue.second(load, serial, &mut random));
            let ended = (load + load.sqrt() * random.normal()).round().max(0.0);
            let busy = self.busy_at(ended) * (1.0 + seen.noise * random.normal());
            let busy = busy.clamp(0.0, self.cpus);
            let server = Some((busy - self.idle).max(0.0));
            let kinds = Resource::WAITS.iter().map(|resource| {
                let of = self.serial.filter(|serial| serial.resource == *resource);
                let sessions = of.and(waits).unwrap_or(0.0);
                Waiting { resource: *resource, sessions }
            });
            let cpu = Some(CpuWindow {
                cpus: self.cpus,
                busy,
                server,
                quota: None,
                delayed: None,
                io_pressure: None,
            });
            Window { seconds: 1.0, ended, cpu, waiting: kinds.collect() }
        });
        let windows = windows.collect();
        let counted = "transactions".to_owned();
        ServerObservation { counted, windows, missing: Vec::new(), lost: None }
    }
}

struct Random(ChaCha8Rng);

impl Random {
    fn share(&mut self) -> f64 {
        self.0.random_range(0.0..1.0)
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}

/// Transactions that arrive at random before one server, event by event.
#[derive(Default)]
struct Queue {
    now_s: f64,
    /// When those that are there end, the first first.
    ends_s: std::collections::VecDeque<f64>,
}

impl Queue {
    /// Sessions that wait, in the mean of the looks of a second.
    fn second(&mut self, load: f64, serial: Serial, random: &mut Random) -> f64 {
        let begun = self.now_s.floor();
        let mut looks = (1..=LOOKS).map(|look| begun + look as f64 / LOOKS as f64).peekable();
        let mut waiting = 0;
        while self.now_s < begun + 1.0 {
            self.now_s += random.exponential(1.0 / load);
            while let Some(look) = looks.next_if(|look| *look <= self.now_s) {
                self.leave(look);
                let is_served = usize::from(serial.resource == Resource::Locks);
                waiting += self.ends_s.len().saturating_sub(is_served);
            }
            self.leave(self.now_s);
            let hold_s = match serial.is_constant {
                true => serial.hold_s,
                false => random.exponential(serial.hold_s),
            };
            let begins = self.ends_s.back().copied().unwrap_or(self.now_s);
            self.ends_s.push_back(begins + hold_s);
        }
        waiting as f64 / LOOKS as f64
    }

    fn leave(&mut self, now_s: f64) {
        while self.ends_s.front().is_some_and(|end| *end <= now_s) {
            self.ends_s.pop_front();
        }
    }
}
