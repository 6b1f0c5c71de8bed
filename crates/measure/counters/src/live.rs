//! Counting on this machine: perf_event_open(2), through the crate `perf-event2`.
//!
//! Groups are not pinned: one that does not get its counters shows `running` below `enabled`, and
//! is thrown away by its readers.

use std::fs::File;
use std::io;

use perf_event::{Builder, Counter, ReadFormat};

use crate::encoding::builder_of;
use crate::event::{Code, Event, Privilege};
use crate::source::{CountError, Counting, Reading, Source, Target};

/// The pipeline slots of Intel's fixed counter 3.
const SLOTS: Code = Code::Core { config: 0x0400, config1: 0 };

/// This machine's counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Live;

impl Source for Live {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let of_group = match target {
            Target::Tree(_) => {
                return Err(CountError::Failed(format!("no counter follows {target}")));
            }
            Target::CpuOfGroup { group, .. } => Some(File::open(group).map_err(|error| {
                CountError::Gone(format!("the control group {}: {error}", group.display()))
            })?),
            _ => None,
        };
        let aim = Aim { privilege, target, of_group: of_group.as_ref() };
        let mut opened: Vec<Option<Counter>> = group.iter().map(|_| None).collect();
        let mut leader: Option<usize> = None;
        for index in order(group) {
            let event = &group[index];
            let mut builder = builder_of(&event.code, &event.name)?;
            builder.read_format(
                ReadFormat::GROUP
                    | ReadFormat::TOTAL_TIME_ENABLED
                    | ReadFormat::TOTAL_TIME_RUNNING
                    | ReadFormat::ID,
            );
            aim.at(&mut builder);
            let counter = match leader.and_then(|leader| opened[leader].as_mut()) {
                None => builder.build(),
                Some(leader) => builder.build_with_group(leader),
            };
            let counter = counter.map_err(|error| refused(&error, &event.name, group, target))?;
            opened[index] = Some(counter);
            leader.get_or_insert(index);
        }
        let leader = leader.ok_or_else(|| CountError::Failed("an empty group".to_owned()))?;
        Ok(Box::new(Group { leader, counters: opened.into_iter().flatten().collect() }))
    }
}

/// The order in which a group is opened: the first leads it. The kernel wants the event that counts
/// pipeline slots to lead those that divide them up (arch/x86/events/intel/core.c).
fn order(group: &[Event]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..group.len()).collect();
    order.sort_by_key(|index| group[*index].code != SLOTS);
    order
}

/// Target and privilege of a group, for its builders.
struct Aim<'a> {
    privilege: Privilege,
    target: &'a Target,
    of_group: Option<&'a File>,
}

impl<'a> Aim<'a> {
    fn at(&self, builder: &mut Builder<'a>) {
        builder.enabled(false);
        builder.exclude_kernel(self.privilege == Privilege::User);
        builder.exclude_user(self.privilege == Privilege::Kernel);
        // The hypervisor's work is not the database's.
        builder.exclude_hv(true);
        match *self.target {
            Target::Process(pid) | Target::Tree(pid) => {
                builder.observe_pid(pid.cast_signed()).any_cpu().inherit(true);
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
    leader: usize,
    counters: Vec<Counter>,
}

impl Counting for Group {
    fn begin(&mut self) -> Result<(), CountError> {
        let leader = &mut self.counters[self.leader];
        leader.reset_group().and_then(|()| leader.enable_group()).map_err(unreadable)
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        let leader = &mut self.counters[self.leader];
        let data = leader.disable_group().and_then(|()| leader.read_group()).map_err(unreadable)?;
        let value = |counter: &Counter| data.get(counter).map(|entry| entry.value());
        let values: Option<Vec<u64>> = self.counters.iter().map(value).collect();
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

/// The meaning of a kernel error for the event of a group.
fn refused(error: &io::Error, event: &str, group: &[Event], target: &Target) -> CountError {
    let event = event.to_owned();
    let why = || error.to_string();
    let Some(code) = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) else {
        return CountError::Failed(why());
    };
    use rustix::io::Errno;
    // The event was tried before. Below a root where no controller was ever enabled the kernel
    // makes no counters for groups (cgroup_propagate_control).
    if let (Errno::NOENT, Target::CpuOfGroup { group, .. }) = (code, target) {
        return CountError::Failed(format!(
            "the kernel has no counters for {}: enable a controller above it, as `echo +pids > \
             /sys/fs/cgroup/cgroup.subtree_control` does",
            group.display()
        ));
    }
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
