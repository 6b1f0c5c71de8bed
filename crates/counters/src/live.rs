//! Counting on this machine: perf_event_open(2), through the crate `perf-event2`.
//!
//! A group is opened under a leader that counts nothing, so that it can be read as a whole and its
//! members keep their order. Members are pinned to nothing: a group that does not get its counters
//! is not multiplexed by choice of ours but shows `running` below `enabled`, and is thrown away by
//! those who read it.

use std::fs::File;
use std::io;
use std::path::Path;

use perf_event::events::{Raw, Software as Kernel};
use perf_event::{Builder, Counter, Group as Opened, ReadFormat};

use crate::event::{Code, Event, Privilege, Software};
use crate::source::{CountError, Counting, Reading, Source, Target};

/// Where the kernel says which event sources there are.
const SOURCES: &str = "/sys/bus/event_source/devices";

/// Sources of cores by name, the usual one first: `cpu_core` is the large cores of a hybrid.
const CORES: [&str; 3] = ["cpu", "cpu_core", "armv8_pmuv3_0"];

/// This machine's counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Live {
    /// Groups of a new process count from its `exec` on.
    from_exec: bool,
}

impl Live {
    /// Counts from `begin` on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts from `begin` on or, whichever comes first, from the `exec` of whom it counts: for a
    /// command that is about to be started.
    #[must_use]
    pub fn from_exec() -> Self {
        Self { from_exec: true }
    }
}

impl Source for Live {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let of_group = match target {
            Target::CpuOfGroup { group, .. } => Some(File::open(group).map_err(|error| {
                CountError::Gone(format!("the control group {}: {error}", group.display()))
            })?),
            _ => None,
        };
        let aim = Aim { privilege, target, of_group: of_group.as_ref(), from_exec: self.from_exec };
        let mut leader = Builder::new(Kernel::DUMMY);
        leader.read_format(
            ReadFormat::GROUP
                | ReadFormat::TOTAL_TIME_ENABLED
                | ReadFormat::TOTAL_TIME_RUNNING
                | ReadFormat::ID,
        );
        aim.at(&mut leader);
        let opened = leader.build_group();
        let mut opened = opened.map_err(|error| refused(&error, "nothing", group, target))?;
        let mut members = Vec::with_capacity(group.len());
        for event in group {
            let mut builder = encoded(event)?;
            aim.at(&mut builder);
            let member = opened.add(&builder);
            members.push(member.map_err(|error| refused(&error, &event.name, group, target))?);
        }
        Ok(Box::new(Group { opened, members }))
    }
}

/// Whom a group counts, as builders want it.
struct Aim<'a> {
    privilege: Privilege,
    target: &'a Target,
    of_group: Option<&'a File>,
    from_exec: bool,
}

impl<'a> Aim<'a> {
    fn at(&self, builder: &mut Builder<'a>) {
        builder.enabled(false);
        builder.exclude_kernel(self.privilege == Privilege::User);
        builder.exclude_user(self.privilege == Privilege::Kernel);
        // What a hypervisor does is not the database's.
        builder.exclude_hv(true);
        match *self.target {
            Target::Process(pid) => {
                builder.observe_pid(pid.cast_signed()).any_cpu().inherit(true);
                builder.enable_on_exec(self.from_exec);
            }
            Target::ThreadOnCpu { thread, cpu } => {
                builder.observe_pid(thread.cast_signed()).one_cpu(cpu as usize).inherit(true);
            }
            Target::Cpu(cpu) => {
                builder.any_pid().one_cpu(cpu as usize);
            }
            Target::CpuOfGroup { cpu, .. } => {
                let file = self.of_group.expect("opened for this kind of target");
                builder.observe_cgroup(file).one_cpu(cpu as usize);
            }
        }
    }
}

struct Group {
    opened: Opened,
    members: Vec<Counter>,
}

impl Counting for Group {
    fn begin(&mut self) -> Result<(), CountError> {
        self.opened.reset().and_then(|()| self.opened.enable()).map_err(unreadable)
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        self.opened.disable().map_err(unreadable)?;
        let data = self.opened.read().map_err(unreadable)?;
        let values = self.members.iter().map(|member| data.get(member).map(|entry| entry.value()));
        let values: Option<Vec<u64>> = values.collect();
        let nanoseconds = |time: Option<std::time::Duration>| {
            time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        };
        Ok(Reading {
            enabled_ns: nanoseconds(data.time_enabled()),
            running_ns: nanoseconds(data.time_running()),
            values: values.ok_or_else(|| CountError::Failed("a counter is missing".to_owned()))?,
        })
    }
}

fn unreadable(error: io::Error) -> CountError {
    CountError::Failed(format!("the counters can't be read: {error}"))
}

/// What the kernel means by an error, for a group's member of that name.
fn refused(error: &io::Error, event: &str, group: &[Event], target: &Target) -> CountError {
    let event = event.to_owned();
    let why = || error.to_string();
    let Some(code) = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) else {
        return CountError::Failed(why());
    };
    use rustix::io::Errno;
    match code {
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NXIO | Errno::NODEV => {
            CountError::NoSuchEvent { event, why: why() }
        }
        Errno::ACCESS | Errno::PERM => CountError::Forbidden { event },
        // The kernel tries out every group that grows, and refuses one that can't ever be counted.
        Errno::INVAL | Errno::NOSPC if group.len() > 1 => {
            CountError::DoesNotFit { events: group.len() }
        }
        Errno::MFILE | Errno::NFILE => CountError::TooManyFiles,
        Errno::BUSY => CountError::Busy,
        Errno::SRCH => CountError::Gone(target.to_string()),
        _ => CountError::Failed(format!("counting {event} of {target}: {}", why())),
    }
}

/// A builder of one event.
fn encoded<'a>(event: &Event) -> Result<Builder<'a>, CountError> {
    let raw = |config, config1, source: Option<u32>| {
        let mut builder = Builder::new(Raw::new(config).config1(config1));
        if let Some(source) = source {
            builder.attrs_mut().type_ = source;
        }
        builder
    };
    Ok(match &event.code {
        Code::Software(software) => Builder::new(kernels(*software)),
        Code::Core { config, config1 } => {
            raw(*config, *config1, CORES.iter().find_map(|name| type_of(name)))
        }
        Code::Other { source, config, config1 } => {
            let found = type_of(source).ok_or_else(|| CountError::NoSuchEvent {
                event: event.name.clone(),
                why: format!("there is no event source {source}"),
            });
            raw(*config, *config1, Some(found?))
        }
    })
}

/// The number that the kernel gave to an event source.
fn type_of(source: &str) -> Option<u32> {
    let text = std::fs::read_to_string(Path::new(SOURCES).join(source).join("type")).ok()?;
    text.trim().parse().ok()
}

fn kernels(software: Software) -> Kernel {
    match software {
        Software::TaskClock => Kernel::TASK_CLOCK,
        Software::CpuClock => Kernel::CPU_CLOCK,
        Software::PageFaults => Kernel::PAGE_FAULTS,
        Software::MinorFaults => Kernel::PAGE_FAULTS_MIN,
        Software::MajorFaults => Kernel::PAGE_FAULTS_MAJ,
        Software::ContextSwitches => Kernel::CONTEXT_SWITCHES,
        Software::CpuMigrations => Kernel::CPU_MIGRATIONS,
    }
}
