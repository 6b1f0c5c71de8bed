//! The loads of a comparison: programs beside each other, and what is read from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use workahead_scheduler::Window;

use crate::commands::scheduler::load::{Kind, LoadCounts, Program, Running};

/// Programs that run at the same time.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    programs: &'static [Member],
}

/// A program of a load.
#[derive(Debug)]
struct Member {
    program: Program,
    /// Its figures are summed under this name with `_per_s`, with those of others of the name.
    counts: &'static str,
    share: Share,
}

/// Its due share of the CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Share {
    Any,
    /// By the weight of a control group of its own.
    Weight(u32),
    /// By its niceness: the kernel's weight of that (`sched_prio_to_weight`).
    Nice(u32),
}

const fn member(kind: Kind, threads: usize, counts: &'static str) -> Member {
    let program = Program { kind, threads, is_pinned: false, nice: 0 };
    Member { program, counts, share: Share::Any }
}

const fn weighing(weight: u32) -> Member {
    Member { share: Share::Weight(weight), ..member(Kind::Spin, 1, "spins") }
}

const fn nice(nice: u8, weight: u32) -> Member {
    let program = Program { kind: Kind::Spin, threads: 1, is_pinned: false, nice };
    Member { program, counts: "spins", share: Share::Nice(weight) }
}

pub(super) const LOADS: [Load; 7] = [
    Load {
        name: "memory",
        says: "two programs whose threads walk a MiB that they share, and yield after each pass",
        programs: &[member(Kind::Memory, 3, "passes"), member(Kind::Memory, 3, "passes")],
    },
    Load {
        name: "service",
        says: "two programs that spin and yield beside one that sleeps 3 ms and answers",
        programs: &[
            member(Kind::Yield, 2, "spins"),
            member(Kind::Yield, 2, "spins"),
            member(Kind::Answer, 1, "answers"),
        ],
    },
    Load {
        name: "wakeups",
        says: "as schbench: two messengers wake workers, two on each CPU, that spin",
        programs: &[member(Kind::Wakeups, 2, "wakeups")],
    },
    Load {
        name: "messages",
        says: "as hackbench: four groups of four senders and four receivers, over pipes",
        programs: &[
            member(Kind::Messages, 4, "messages"),
            member(Kind::Messages, 4, "messages"),
            member(Kind::Messages, 4, "messages"),
            member(Kind::Messages, 4, "messages"),
        ],
    },
    Load {
        name: "weights",
        says: "three control groups of weights 100, 200 and 800, with a thread on each CPU",
        programs: &[weighing(100), weighing(200), weighing(800)],
    },
    Load {
        name: "nice",
        says: "three programs with a thread on each CPU and a niceness of 0, 5 and 10",
        programs: &[nice(0, 1024), nice(5, 335), nice(10, 110)],
    },
    Load {
        name: "overload",
        says: "eight threads on each CPU that never sleep beside one that sleeps 3 ms and answers",
        programs: &[member(Kind::Spin, 8, "spins"), member(Kind::Answer, 1, "answers")],
    },
];

impl Load {
    /// Starts the programs.
    ///
    /// # Errors
    /// If one can't be started, or there are no control groups for it.
    pub(super) fn start(&'static self, window: Window) -> anyhow::Result<RunningLoad> {
        let mut started = RunningLoad {
            load: self,
            running: Running::default(),
            _groups: Vec::new(),
            _controller: None,
        };
        if self.programs.iter().any(|member| matches!(member.share, Share::Weight(_))) {
            started._controller = Some(Controller::enable(Path::new(ROOT))?);
        }
        for member in self.programs {
            let group = match member.share {
                Share::Weight(weight) => Some(Group::make(Path::new(ROOT), weight)?),
                Share::Any | Share::Nice(_) => None,
            };
            let pid = started.running.start(member.program, window)?;
            if let Some(group) = group {
                group.take(pid)?;
                started._groups.push(group);
            }
        }
        Ok(started)
    }

    /// Figures of what its programs counted in a time.
    fn figures(&self, counted: &[LoadCounts], seconds: f64) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        let mut rate = |name: String, count: f64| *figures.entry(name).or_insert(0.0) += count;
        for (member, counted) in self.programs.iter().zip(counted) {
            rate(format!("{}_per_s", member.counts), counted.work as f64 / seconds);
        }
        // Only one program of a load measures delays.
        for counted in counted {
            for (name, delay) in [
                ("delay_ns_p50", counted.delay_ns_p50),
                ("delay_ns_p99", counted.delay_ns_p99),
                ("delay_ns_p999", counted.delay_ns_p999),
            ] {
                figures.extend(delay.map(|delay| (name.to_owned(), delay as f64)));
            }
        }
        figures.extend(
            self.unfairness(counted).map(|points| ("unfairness_points".to_owned(), points)),
        );
        figures
    }

    /// Percentage points by which a program's share of the CPU time lies beside what it is due, at
    /// most.
    fn unfairness(&self, counted: &[LoadCounts]) -> Option<f64> {
        let due = |member: &Member| match member.share {
            Share::Any => None,
            Share::Weight(weight) | Share::Nice(weight) => Some(f64::from(weight)),
        };
        let due: Vec<f64> = self.programs.iter().map(due).collect::<Option<_>>()?;
        let (all_due, all): (f64, f64) =
            (due.iter().sum(), counted.iter().map(|counted| counted.cpu_s).sum());
        let beside = due.iter().zip(counted);
        let beside = beside.map(|(due, got)| 100.0 * (got.cpu_s / all - due / all_due).abs());
        (all > 0.0).then(|| beside.fold(0.0, f64::max))
    }
}

/// A load that runs.
pub(super) struct RunningLoad {
    load: &'static Load,
    // Dropped in this order: a group goes when it is empty, the controller after its groups.
    running: Running,
    _groups: Vec<Group>,
    _controller: Option<Controller>,
}

impl RunningLoad {
    /// Waits for its programs.
    ///
    /// # Errors
    /// If one failed.
    pub(super) fn finish(self, window: Window) -> anyhow::Result<BTreeMap<String, f64>> {
        let counted = self.running.finish()?;
        Ok(self.load.figures(&counted, window.time.as_secs_f64()))
    }
}

const ROOT: &str = "/sys/fs/cgroup";

/// The controller of weights, for the groups below one. Where it was not enabled before, it is
/// disabled again when dropped.
#[derive(Debug)]
struct Controller(Option<PathBuf>);

impl Controller {
    fn enable(group: &Path) -> anyhow::Result<Self> {
        let control = group.join("cgroup.subtree_control");
        let no = || format!("can't enable weights by {}", control.display());
        let before = std::fs::read_to_string(&control).with_context(no)?;
        if before.split_whitespace().any(|name| name == "cpu") {
            return Ok(Self(None));
        }
        std::fs::write(&control, "+cpu").with_context(no)?;
        Ok(Self(Some(control)))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            // Refused where another group has enabled it below itself meanwhile.
            let _ = std::fs::write(control, "-cpu");
        }
    }
}

/// A control group of a weight; removed when dropped.
#[derive(Debug)]
struct Group(PathBuf);

impl Group {
    /// In the root, whose processes don't stand in the way of a controller.
    fn make(root: &Path, weight: u32) -> anyhow::Result<Self> {
        let group = root.join(format!("workahead-weight-{weight}"));
        let no = || format!("can't make the control group {}", group.display());
        // Left by a killed run; refused unless it is empty.
        let _ = std::fs::remove_dir(&group);
        std::fs::create_dir(&group).with_context(no)?;
        let group = Self(group);
        std::fs::write(group.0.join("cpu.weight"), weight.to_string())
            .with_context(|| format!("can't set {}/cpu.weight", group.0.display()))?;
        Ok(group)
    }

    fn take(&self, pid: u32) -> anyhow::Result<()> {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string())
            .with_context(|| format!("can't move a process into {}", self.0.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were just killed may still leave it.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str) -> &'static Load {
        LOADS.iter().find(|load| load.name == name).unwrap()
    }

    fn counted(work: u64, cpu_s: f64) -> LoadCounts {
        LoadCounts { work, cpu_s, ..LoadCounts::default() }
    }

    #[test]
    fn the_controller_is_left_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let control = root.path().join("cgroup.subtree_control");
        let read = || std::fs::read_to_string(&control).unwrap();
        for before in ["cpuset memory pids\n", ""] {
            std::fs::write(&control, before).unwrap();
            let controller = Controller::enable(root.path()).unwrap();
            assert_eq!(read(), "+cpu");
            drop(controller);
            assert_eq!(read(), "-cpu");
        }
        std::fs::write(&control, "cpu memory\n").unwrap();
        drop(Controller::enable(root.path()).unwrap());
        assert_eq!(read(), "cpu memory\n");
    }

    #[test]
    fn work_is_summed_by_its_name() {
        let late = LoadCounts { delay_ns_p99: Some(7), ..counted(30, 0.0) };
        let figures = load("service").figures(&[counted(10, 1.0), counted(20, 1.0), late], 2.0);
        assert_eq!(
            (figures["spins_per_s"], figures["answers_per_s"], figures["delay_ns_p99"]),
            (15.0, 15.0, 7.0)
        );
        assert!(!figures.contains_key("unfairness_points"));
    }

    #[test]
    fn unfairness_is_the_largest_distance_from_what_is_due() {
        let fair =
            load("weights").figures(&[counted(0, 1.0), counted(0, 2.0), counted(0, 8.0)], 1.0);
        assert!(fair["unfairness_points"] < 1e-9);
        let equal =
            load("weights").figures(&[counted(0, 1.0), counted(0, 1.0), counted(0, 1.0)], 1.0);
        assert!((equal["unfairness_points"] - 100.0 * (8.0 / 11.0 - 1.0 / 3.0)).abs() < 1e-9);
        assert!(
            !load("nice").figures(&[counted(0, 0.0); 3], 1.0).contains_key("unfairness_points")
        );
    }
}
