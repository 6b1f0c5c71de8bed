//! Sharing of CPUs by a scheduler, and its measures.
//!
//! | key | values |
//! |---|---|
//! | `scheduler` | `cfs`, `eevdf`, `tas`, `itas`, `gang`, `working-set` |
//! | `bonus_ms`, `limit` | of TAS and ITAS (50, 100); the first is also the distance that `working-set` searches |
//! | `masters` | of ITAS: `one`, CPU 0; `each-cache`, the first CPU of each last cache for the others |
//! | `latency_ms` | of fair queueing: Linux 2.6.24's, 60 on four CPUs; least slice and wake-ups scale with it |
//! | `slot_ms` | gang time slot (default: the latency) |
//! | `delay_max_ms` | a thread that waits longer runs next; 0, the default, for no bound |
//! | `time_scale` | divides all these times (1), for shortened runs |
//! | `switch_cycles` | of a context switch (3,000), without its misses |
//! | `loops`, `loop_bytes` | background loops, round robin over the CPUs, and their memory (0, 1 MiB) |
//! | `guests` | of sysbench: number of groups of programs; 0, the default, for a group each |

use workahead_simulator::core::Processor;
use workahead_simulator::drivers::sysbench::{Lines, background};
use workahead_simulator::drivers::{ProgramResult, drive_by};
use workahead_simulator::op::Script;
use workahead_simulator::preset::Preset;
use workahead_simulator::run::Thread;
use workahead_simulator::scheduler::{
    Discipline, Fair, Figures, Group, Role, RoleAssignment, Scheduler, Task, Tunables, WEIGHT, Wait,
};
use workahead_simulator::ticks::cycles;
use workahead_simulator::walks::{CoRunners, WalksResult};
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::random::Random;

use crate::cycles_lost::depths;
use crate::machine::ModelledMachine;
use workahead_engines::configuration::CellConfiguration;

/// Most threads per program, and most programs.
pub(super) const THREADS_MAX: usize = 1_000;

/// Distance between the data of two programs.
pub(super) const APART: u64 = 1 << 40;

/// Purpose of the random numbers for the order of arrival.
const ARRIVALS: u32 = 2;

/// Lines of 64 bytes.
const LINE: u64 = 64;

/// Kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work that the run waits for.
    Work,
    /// A client of that work.
    Client,
    /// A background loop.
    Loop,
}

/// The tasks of a run, in the order of their arrival.
pub(super) struct TaskSet {
    members: Vec<(Kind, Task<'static>)>,
    lines: Vec<Lines>,
    loop_bytes: u64,
    /// Address spaces so far.
    spaces: u16,
    guests: u64,
}

/// Settings of the sharing of CPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sharing {
    scheduler: Scheduler,
    loops: usize,
    loop_bytes: u64,
    guests: u64,
}

/// The result of a run with its tasks' kinds.
pub(crate) struct SharedRun {
    pub(super) driven: ProgramResult,
    figures: Figures,
    kinds: Vec<Kind>,
    passes: f64,
}

impl Sharing {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Self, EngineError> {
        let loop_bytes = config.number("loop_bytes", 1 << 20, 64..=1 << 30)? as u64;
        Ok(Self {
            scheduler: scheduler(config, model.preset())?,
            loops: config.number("loops", 0, 0..=THREADS_MAX)?,
            loop_bytes,
            guests: 0,
        })
    }

    /// The settings of programs, which may run in guests.
    pub(super) fn read_of_programs(
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Self, EngineError> {
        let guests = config.number("guests", 0, 0..=THREADS_MAX)? as u64;
        Ok(Self { guests, ..Self::read(config, model)? })
    }

    /// Background loops for walks, and their handles.
    pub(crate) fn co_runners(
        &self,
        model: &ModelledMachine,
        working_set_bytes: u64,
    ) -> (CoRunners, Loops) {
        let TaskSet { members, lines, loop_bytes, .. } = self.tasks(model);
        let tasks = members.into_iter().map(|(_, task)| task).collect();
        let scheduler = self.scheduler.clone();
        (CoRunners::Tasks { tasks, scheduler, working_set_bytes }, Loops { lines, loop_bytes })
    }

    /// Runs tasks on a machine, which keeps its caches' contents.
    pub(super) fn run(
        &self,
        processor: &mut Processor,
        tasks: TaskSet,
        seed: u64,
        stop: &Stop,
    ) -> Result<SharedRun, EngineError> {
        let TaskSet { mut members, lines, loop_bytes, .. } = tasks;
        // Programs start together; the order in which their threads are queued is random.
        Random::new(seed, ARRIVALS, 0).shuffle(&mut members);
        let (kinds, tasks): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let (driven, figures) = drive_by(processor, tasks, &self.scheduler, stop.flag());
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let passes = Loops { lines, loop_bytes }.passes();
        Ok(SharedRun { driven, figures, kinds, passes })
    }

    /// The background loops alone.
    pub(super) fn tasks(&self, model: &ModelledMachine) -> TaskSet {
        let mut tasks = TaskSet {
            members: Vec::new(),
            lines: Vec::new(),
            loop_bytes: self.loop_bytes,
            spaces: 0,
            guests: 0,
        };
        for at in 0..self.loops {
            // After the data of all programs.
            let base = (1 + (THREADS_MAX + at) as u64) * APART;
            let (script, lines) = background(base, self.loop_bytes);
            tasks.lines.push(lines);
            tasks.add(Kind::Loop, [(model.cpu(at), script)], self.loop_bytes);
        }
        tasks.guests = self.guests;
        tasks
    }
}

/// Progress of background loops.
pub(crate) struct Loops {
    lines: Vec<Lines>,
    loop_bytes: u64,
}

impl Loops {
    fn passes(&self) -> f64 {
        let touched: u64 = self.lines.iter().map(|lines| lines.get()).sum();
        (touched * LINE) as f64 / self.loop_bytes as f64
    }

    /// The result of walks with `walks` threads that shared the machine with these loops.
    pub(crate) fn shared(&self, walks: usize, walked: &WalksResult) -> Option<SharedRun> {
        let kind = |at| if at < walks { Kind::Work } else { Kind::Loop };
        Some(SharedRun {
            figures: walked.figures.clone()?,
            kinds: (0..walked.run.threads.len()).map(kind).collect(),
            passes: self.passes(),
            driven: ProgramResult {
                run: walked.run.clone(),
                found: walked.found.clone(),
                bus: walked.bus,
            },
        })
    }
}

impl TaskSet {
    /// Adds a program in an address space of its own: the CPU and script of each thread.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        scripts: impl IntoIterator<Item = (usize, Box<dyn Script>)>,
        working_set_bytes: u64,
    ) {
        self.spaces += 1;
        let space = self.spaces;
        // Loops are programs of their own, outside of guests.
        let group = match self.guests {
            0 => u64::from(space),
            guests => 1 + u64::from(space) % guests + u64::from(u16::MAX),
        };
        for (cpu, script) in scripts {
            let thread = Thread { script, space, attends: kind != Kind::Work };
            let group = Group::new(group);
            let task = Task { thread, cpu, weight: WEIGHT, group, working_set_bytes };
            self.members.push((kind, task));
        }
    }
}

/// A setting in milliseconds as nanoseconds of the scaled run.
fn nanoseconds(
    config: &CellConfiguration<'_>,
    key: &'static str,
    default: f64,
    scale: f64,
) -> Result<u64, EngineError> {
    Ok((config.real(key, default, 0.0..=1e6)? * 1e6 / scale).round() as u64)
}

fn scheduler(config: &CellConfiguration<'_>, preset: &Preset) -> Result<Scheduler, EngineError> {
    let usual = Fair::linux_2_6_24(preset.cpus());
    let scale = config.real("time_scale", 1.0, 1.0..=1e6)?;
    let usual_ms = usual.latency_ns as f64 / 1e6;
    let latency_ns = nanoseconds(config, "latency_ms", usual_ms, scale)?.max(1);
    let of = |part: u64| {
        let share = u128::from(latency_ns) * u128::from(part);
        share.div_ceil(u128::from(usual.latency_ns)) as u64
    };
    let fair = Fair {
        latency_ns,
        granularity_ns: of(usual.granularity_ns),
        wakeup_ns: of(usual.wakeup_ns),
    };
    let delay_max_ns = nanoseconds(config, "delay_max_ms", 0.0, scale)?;
    let discipline = discipline(config, preset, scale, latency_ns)?;
    let switch = config.number("switch_cycles", 3000, 0..=1_000_000)? as f64;
    let (key, slice_ns) = match &discipline {
        Discipline::Gang { slot_ns } => ("slot_ms", *slot_ns),
        _ => ("latency_ms", fair.granularity_ns),
    };
    let switch_ns = switch / preset.ghz;
    if slice_ns as f64 <= switch_ns {
        let reason = format!(
            "a turn of {slice_ns} ns is over before a switch is, {switch_ns:.0} ns: choose a \
             larger one, or a smaller `time_scale`"
        );
        return Err(EngineError::setting(key, reason));
    }
    Ok(Scheduler {
        fair,
        discipline,
        switch,
        delay_max_ns: (delay_max_ns > 0).then_some(delay_max_ns),
    })
}

#[derive(Clone, Copy)]
enum SchedulerName {
    Cfs,
    Eevdf,
    Tas,
    Itas,
    Gang,
    WorkingSet,
}

const SCHEDULERS: [(&str, SchedulerName); 6] = [
    ("cfs", SchedulerName::Cfs),
    ("eevdf", SchedulerName::Eevdf),
    ("tas", SchedulerName::Tas),
    ("itas", SchedulerName::Itas),
    ("gang", SchedulerName::Gang),
    ("working-set", SchedulerName::WorkingSet),
];

fn discipline(
    config: &CellConfiguration<'_>,
    preset: &Preset,
    scale: f64,
    latency_ns: u64,
) -> Result<Discipline, EngineError> {
    let named = config.choice("scheduler", SchedulerName::Cfs, &SCHEDULERS)?;
    let bonus_ns = nanoseconds(config, "bonus_ms", 50.0, scale)?;
    let limit = config.number("limit", 100, 0..=u32::MAX as usize)? as u32;
    let slot_ns = nanoseconds(config, "slot_ms", latency_ns as f64 * scale / 1e6, scale)?;
    let each = config.choice("masters", false, &[("one", false), ("each-cache", true)])?;
    let tunables = Tunables { bonus_ns, limit, ..Tunables::default() };
    Ok(match named {
        SchedulerName::Cfs => Discipline::Fair,
        SchedulerName::Eevdf => Discipline::Deadline,
        SchedulerName::Tas => {
            let roles = vec![RoleAssignment::default(); preset.cpus() as usize];
            Discipline::Aggregating { tunables, roles }
        }
        SchedulerName::Itas => Discipline::Aggregating { tunables, roles: roles(preset, each) },
        SchedulerName::Gang => Discipline::Gang { slot_ns },
        SchedulerName::WorkingSet => Discipline::Fitting { reach_ns: bonus_ns },
    })
}

/// One master for all CPUs, or one per last-level cache.
fn roles(preset: &Preset, each_cache: bool) -> Vec<RoleAssignment> {
    let last = preset.cache.last().map_or(1, |cache| cache.cores * preset.threads).max(1);
    let of = if each_cache { last as usize } else { usize::MAX };
    let assignment = |cpu: usize| RoleAssignment {
        role: if cpu.is_multiple_of(of) { Role::Master } else { Role::Slave },
        channel: cpu / of,
    };
    (0..preset.cpus() as usize).map(assignment).collect()
}

impl SharedRun {
    fn of(&self, kind: Kind) -> impl Iterator<Item = &Wait> {
        let tasks = self.kinds.iter().zip(&self.figures.tasks);
        tasks.filter(move |(one, _)| **one == kind).map(|(_, task)| task)
    }

    /// Micro-operations of tasks other than the work.
    pub(super) fn other_uops(&self) -> u64 {
        let kinds = self.kinds.iter().zip(&self.driven.run.threads);
        kinds.filter(|(kind, _)| **kind != Kind::Work).map(|(_, thread)| thread.counts.uops).sum()
    }

    /// Measures of sharing, in addition to the machine's, for `tuples` tuples.
    pub(crate) fn measures(
        &self,
        preset: &Preset,
        tuples: u64,
    ) -> impl Iterator<Item = (&'static str, f64)> {
        let seconds = |ticks: u64| cycles(ticks) / (preset.ghz * 1e9);
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        let ran = |kind| seconds(self.of(kind).map(|task| task.ran).sum());
        let delay_ms = |kind| {
            let longest = self.of(kind).map(|task| task.waited_max).max();
            longest.map_or(f64::NAN, |longest| 1e3 * seconds(longest))
        };
        let Figures { switches, group_switches, taken, chances, co_run, grouped, .. } =
            self.figures;
        let threads = self.driven.run.threads.iter();
        let stalled = threads.flat_map(|thread| thread.counts.stalled).sum();
        [
            ("switches", switches as f64),
            ("group_switch_share", share(group_switches, switches)),
            ("aggregations", taken as f64),
            ("aggregation_chances", chances as f64),
            ("aggregation_share", share(taken, chances)),
            ("co_run_share", share(co_run, grouped)),
            ("run_delay_max_ms", delay_ms(Kind::Work)),
            ("loop_delay_max_ms", delay_ms(Kind::Loop)),
            ("work_cpu_s", ran(Kind::Work)),
            ("client_cpu_s", ran(Kind::Client)),
            ("loop_cpu_s", ran(Kind::Loop)),
            ("loop_passes_per_cpu_s", self.passes / ran(Kind::Loop)),
            ("loop_passes_per_s", self.passes / seconds(self.driven.run.ticks)),
            ("loop_turns", self.of(Kind::Loop).map(|task| task.dispatches).sum::<u64>() as f64),
            ("last_level_misses_per_tuple", share(self.missed(preset), tuples)),
            ("stall_cycles_per_tuple", cycles(stalled) / tuples as f64),
        ]
        .into_iter()
    }

    /// Accesses that missed every cache.
    fn missed(&self, preset: &Preset) -> u64 {
        let depths = depths(preset);
        let kinds = self.driven.found.iter().flat_map(|found| &found.at);
        kinds.flat_map(|at| &at[depths..]).sum()
    }
}
