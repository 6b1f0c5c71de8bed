//! Which threads wait for a CPU beside which: `/proc`, sampled.
//!
//! ```text
//!   each second    all threads: group, CPU time, turns     /proc/PID/task/TID/{stat,schedstat}
//!   each sample    those that ran lately: ready? where?    …/stat: state R, its CPU
//!   at the end     pages that a group used in a window     /proc/PID/{clear_refs,smaps}
//! ```
//!
//! It needs no privilege but for the pages of others' processes, and no sched_ext: the question
//! comes before the scheduler. A thread that lives for less than a second may be missed. Pages are
//! counted whole, so that a working set is an upper bound.

mod tasks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::advice::{GroupLoad, GroupedLoad};
use crate::settings::Key;
use tasks::{Task, Times};

/// Observes the threads of a machine.
#[derive(Debug)]
pub struct RunQueues {
    /// That of `/proc`.
    root: PathBuf,
    cpus: usize,
    /// Threads by number, those that have ended too.
    tasks: BTreeMap<u32, Observed>,
    samples: u64,
    waiting: u64,
    /// By key, then group.
    counts: [BTreeMap<String, Count>; KEYS.len()],
}

/// The keys that are evaluated; tags are set by an operator.
pub const KEYS: [Key; 3] = [Key::AddressSpace, Key::Parent, Key::Cgroup];

#[derive(Debug)]
struct Observed {
    task: Task,
    first: Times,
    last: Times,
    /// It ran or waited since the threads were read before.
    is_active: bool,
}

/// A group in the samples.
#[derive(Debug, Default)]
struct Count {
    /// On a CPU.
    running: f64,
    /// Another group's thread would be next, and one of its own waits.
    chances: f64,
}

/// A group of threads, and what was seen of it.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupUse {
    /// Its program or directory.
    pub name: String,
    /// Its processes that ran.
    pub processes: Vec<u32>,
    /// Its threads that ran.
    pub threads: usize,
    /// What [`GroupedLoad::advice`] goes by.
    pub load: GroupLoad,
}

/// Bytes of the pages that processes used; `None` where they could not be read.
#[derive(Debug, Clone)]
pub struct UsedPages(BTreeMap<u32, Option<u64>>);

/// Processes above this are not sampled: that would hold up their page faults for too long.
const RESIDENT_MAX_KB: u64 = 4 << 20;
/// Most processes whose pages are read: each has a thousandth of the CPU time.
const PROCESSES_MAX: u64 = 1000;

impl RunQueues {
    /// Reads the threads that there are below a root, on this number of CPUs.
    #[must_use]
    pub fn begin(root: &Path, cpus: usize) -> Self {
        let mut queues = Self {
            root: root.join("proc"),
            cpus,
            tasks: BTreeMap::new(),
            samples: 0,
            waiting: 0,
            counts: Default::default(),
        };
        queues.refresh();
        // What runs can't be known yet.
        queues.tasks.values_mut().for_each(|observed| observed.is_active = true);
        queues
    }

    /// Reads all threads: who came, and who ran since.
    pub fn refresh(&mut self) {
        for (task, times) in tasks::all(&self.root) {
            match self.tasks.get_mut(&task.tid) {
                Some(known) if known.task.started_ticks == task.started_ticks => {
                    known.is_active = times != known.last;
                    known.last = times;
                    known.task = task;
                }
                _ => {
                    let observed = Observed { task, first: times, last: times, is_active: true };
                    self.tasks.insert(observed.task.tid, observed);
                }
            }
        }
    }

    /// Whether the kernel counts turns.
    #[must_use]
    pub fn counts_turns(&self) -> bool {
        self.tasks.values().any(|observed| observed.last.turns > 0)
    }

    /// Looks which threads are ready, and where.
    pub fn sample(&mut self) {
        let mut queues: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (&tid, observed) in self.tasks.iter().filter(|(_, observed)| observed.is_active) {
            if let Some(cpu) = tasks::ready_on(&self.root, &observed.task) {
                queues.entry(cpu).or_default().push(tid);
            }
        }
        self.samples += 1;
        for queue in queues.values() {
            self.waiting += queue.len() as u64 - 1;
            for (counts, key) in self.counts.iter_mut().zip(KEYS) {
                let group = |tid| self.tasks[tid].task.group(key);
                count(counts, queue.iter().filter_map(group), queue.len());
            }
        }
    }

    /// Groups by a key, those that used most CPU time first. Working sets are not known yet.
    #[must_use]
    pub fn groups(&self, key: Key) -> Vec<GroupUse> {
        let at = KEYS.iter().position(|&one| one == key);
        let counts = at.map(|at| &self.counts[at]);
        let mut groups: BTreeMap<String, GroupUse> = BTreeMap::new();
        for Observed { task, first, last, .. } in self.tasks.values() {
            let ran = last.since(*first);
            if ran.turns == 0 {
                continue;
            }
            // Those without a group are each for themselves.
            let id = task.group(key).unwrap_or_else(|| task.name_alone());
            let group = groups.entry(id).or_insert_with_key(|id| {
                let count = counts.and_then(|counts| counts.get(id));
                let chance = count.map_or(0.0, |count| count.chances / count.running);
                let load = GroupLoad { cpu_s: 0.0, turns: 0.0, chance, working_set_bytes: None };
                GroupUse { name: id.clone(), processes: Vec::new(), threads: 0, load }
            });
            group.threads += 1;
            group.load.cpu_s += ran.on_cpu_ns as f64 * 1e-9;
            group.load.turns += ran.turns as f64;
            if !group.processes.contains(&task.pid) {
                group.processes.push(task.pid);
            }
        }
        let mut groups: Vec<GroupUse> = groups.into_values().collect();
        groups.sort_by(|a, b| b.load.cpu_s.total_cmp(&a.load.cpu_s));
        groups
    }

    /// Mean number of threads that wait for each CPU.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.waiting as f64 / (self.samples.max(1) as f64 * self.cpus.max(1) as f64)
    }

    /// A load of these groups.
    #[must_use]
    pub fn load(&self, groups: &[GroupUse]) -> GroupedLoad {
        let groups = groups.iter().map(|group| group.load.clone()).collect();
        GroupedLoad { cpus: self.cpus, waiting: self.waiting(), groups }
    }

    /// Bytes of the pages that each process that ran uses within a window; unknown where it is
    /// another user's, or larger than may be looked through.
    #[must_use]
    pub fn used_pages(&self, window: Duration) -> UsedPages {
        let mut processes: BTreeMap<u32, u64> = BTreeMap::new();
        for Observed { task, first, last, .. } in self.tasks.values() {
            *processes.entry(task.pid).or_default() += last.since(*first).on_cpu_ns;
        }
        let all: u64 = processes.values().sum();
        processes.retain(|_, ns| *ns * PROCESSES_MAX >= all.max(1));
        let cleared = |pid: &u32| tasks::clear_references(&self.root, *pid, RESIDENT_MAX_KB);
        let ready: BTreeMap<u32, bool> = processes.keys().map(|pid| (*pid, cleared(pid))).collect();
        std::thread::sleep(window);
        let used = |(pid, is_ready): (u32, bool)| {
            (pid, is_ready.then(|| tasks::used_bytes(&self.root, pid)).flatten())
        };
        UsedPages(ready.into_iter().map(used).collect())
    }
}

impl UsedPages {
    /// Sets the working sets of groups, each that of its processes that ran for long enough.
    pub fn set(&self, groups: &mut [GroupUse]) {
        for group in groups {
            let of_group = group.processes.iter().filter_map(|pid| self.0.get(pid));
            let used: Option<Vec<u64>> = of_group.copied().collect();
            group.load.working_set_bytes =
                used.filter(|used| !used.is_empty()).map(|used| used.iter().sum());
        }
    }
}

/// Counts the groups of the threads that are ready on a CPU, of which one runs.
fn count(counts: &mut BTreeMap<String, Count>, ready: impl Iterator<Item = String>, all: usize) {
    let mut members: BTreeMap<String, usize> = BTreeMap::new();
    ready.for_each(|group| *members.entry(group).or_default() += 1);
    for (group, members) in members {
        // Fair order knows no groups: each of the threads may run, and each other be next.
        let runs = members as f64 / all as f64;
        let count = counts.entry(group).or_default();
        count.running += runs;
        if members > 1 {
            count.chances += runs * (all - members) as f64 / (all - 1) as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A `/proc` of threads: number, process, state, CPU, nanoseconds, turns.
    struct Fixture(PathBuf);

    impl Fixture {
        fn new(name: &str) -> Self {
            let name = format!("workahead-run-queues-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn thread(&self, (tid, pid): (u32, u32), ready_on: Option<usize>, ms: u64, turns: u64) {
            let folder = self.0.join(format!("proc/{pid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            let state = if ready_on.is_some() { "R" } else { "S" };
            let cpu = ready_on.unwrap_or_default();
            // A name with a bracket and spaces; the parent is 70.
            let zeros = "0 ".repeat(17);
            let stat = format!("{pid} (a b) c) {state} 70 {zeros}5 {}{cpu} 0", "0 ".repeat(16));
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("schedstat"), format!("{} 0 {turns}\n", ms * 1_000_000)).unwrap();
            fs::write(self.0.join(format!("proc/{pid}/comm")), format!("program{pid}\n")).unwrap();
            fs::write(self.0.join(format!("proc/{pid}/cgroup")), "0::/batch\n").unwrap();
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// By hand: on CPU 0 two threads of 100 and one of 200, on CPU 1 one of 200.
    #[test]
    fn chances_are_those_of_fair_order() {
        let place = Fixture::new("chances");
        place.thread((100, 100), Some(0), 0, 1);
        place.thread((101, 100), Some(0), 0, 1);
        place.thread((200, 200), Some(0), 0, 1);
        place.thread((201, 200), Some(1), 0, 1);
        let mut queues = RunQueues::begin(&place.0, 2);
        queues.sample();
        place.thread((100, 100), Some(0), 8, 5);
        place.thread((201, 200), Some(1), 2, 2);
        queues.refresh();
        assert!((queues.waiting() - 1.0).abs() < 1e-9, "{}", queues.waiting());
        let groups = queues.groups(Key::AddressSpace);
        let found: Vec<(&str, usize, f64, f64)> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.threads, group.load.cpu_s, group.load.chance))
            .collect();
        // 100 runs on CPU 0 two thirds of the time, and 200 is next after half of that.
        assert_eq!(
            found,
            [("program100 (100)", 1, 0.008, 0.5), ("program200 (200)", 1, 0.002, 0.0)]
        );
        // All are of one parent, and of one control group.
        assert_eq!(queues.groups(Key::Parent).len(), 1);
        assert_eq!(queues.groups(Key::Cgroup)[0].name, "/batch");
        assert_eq!(queues.groups(Key::Cgroup)[0].load.chance, 0.0);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let place = Fixture::new("again");
        place.thread((100, 100), Some(0), 500, 900);
        let mut queues = RunQueues::begin(&place.0, 1);
        let stat = place.0.join("proc/100/task/100/stat");
        let text = fs::read_to_string(&stat).unwrap().replace(" 5 ", " 6 ");
        place.thread((100, 100), Some(0), 3, 4);
        fs::write(&stat, text).unwrap();
        queues.refresh();
        assert!(queues.groups(Key::AddressSpace).is_empty(), "nothing is counted backwards");
    }

    #[test]
    fn a_name_of_several_lines_is_one() {
        let place = Fixture::new("name");
        let thread = |ms| {
            place.thread((100, 100), Some(0), ms, ms);
            fs::write(place.0.join("proc/100/comm"), "a\nno answer\r\n\tb\n").unwrap();
        };
        thread(1);
        let mut queues = RunQueues::begin(&place.0, 1);
        thread(2);
        queues.refresh();
        assert_eq!(queues.groups(Key::AddressSpace)[0].name, "a no answer b (100)");
    }

    #[test]
    fn shared_pages_are_divided() {
        let place = Fixture::new("pages");
        place.thread((100, 100), Some(0), 0, 1);
        let file = |name: &str, text: &str| fs::write(place.0.join("proc/100").join(name), text);
        // Of 200 KiB half is used, which two processes share; of 64 KiB of its own, all.
        let mappings = "7f00-7f10 r--p 0 08:01 7 /lib/x y: z\nSize: 400 kB\nRss: 200 kB\n\
                        Pss: 100 kB\nPss_Dirty: 0 kB\nReferenced: 100 kB\n\
                        7f20-7f30 rw-p 0 00:00 0\nRss: 64 kB\nPss: 64 kB\nReferenced: 64 kB\n";
        file("smaps", mappings).unwrap();
        let used = |resident: &str| {
            file("clear_refs", "").unwrap();
            file("status", &format!("Name:\tx\nVmRSS:\t{resident} kB\n")).unwrap();
            place.thread((100, 100), Some(0), 1, 2);
            let mut queues = RunQueues::begin(&place.0, 1);
            place.thread((100, 100), Some(0), 2, 3);
            queues.refresh();
            let mut groups = queues.groups(Key::AddressSpace);
            queues.used_pages(Duration::ZERO).set(&mut groups);
            groups[0].load.working_set_bytes
        };
        assert_eq!(used("264"), Some(114 * 1024));
        // Too many to be looked through, and of another user.
        assert_eq!(used("5000000"), None);
        fs::remove_file(place.0.join("proc/100/smaps")).unwrap();
        assert_eq!(used("264"), None);
    }
}
