//! The target of `counters stat` and `counters profile`: a command, a process, a control group, the
//! machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use workahead_counters::source::CountError;
use workahead_counters::stopped_child::StoppedChild;
use workahead_machine::process::stat_fields;

use crate::errors::WrongUse;

/// How often the end of a command and an interruption are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ctrl-C in a terminal reaches the command too: the time it has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct TargetArguments {
    /// A process that already runs, with all that it starts
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// A control group's directory (version 2)
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// Everything on this machine
    #[arg(long, conflicts_with_all = ["pid", "cgroup"])]
    all: bool,
    /// How long [default: until the command or process ends, or Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// A command to run, after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "cgroup", "all"])]
    command: Vec<OsString>,
}

/// How counting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The command exited.
    Exited(ExitStatus),
    /// The time limit passed, or the process ended.
    Over,
    /// The user interrupted.
    Interrupted,
}

/// The target.
pub(crate) enum Subject {
    Command(StoppedChild),
    Process(u32),
    Group(PathBuf),
    Machine,
}

impl TargetArguments {
    /// The target; a command is started and stopped before its first instruction.
    pub(crate) fn subject(&self) -> anyhow::Result<Subject> {
        if self.seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(WrongUse::error("--seconds must be above 0"));
        }
        match (self.pid, &self.cgroup, self.all, self.command.is_empty()) {
            (Some(pid), ..) if !is_alive(pid) => {
                bail!("there is no process {pid}: `ps -e` lists those that are there")
            }
            (Some(pid), ..) => Ok(Subject::Process(pid)),
            (_, Some(group), ..) if !group.join("cgroup.procs").exists() => {
                bail!(
                    "{} is not a control group's directory: those of version 2 are below \
                     /sys/fs/cgroup",
                    group.display()
                )
            }
            (_, Some(group), ..) => Ok(Subject::Group(group.clone())),
            (_, _, true, _) => Ok(Subject::Machine),
            (_, _, _, false) => match StoppedChild::start(&self.command) {
                Err(CountError::NoProgram(says)) => Err(WrongUse::error(says)),
                started => Ok(Subject::Command(started?)),
            },
            (_, _, false, true) => Err(WrongUse::error(
                "nothing to count: give a command after `--`, or --pid, --cgroup or --all",
            )),
        }
    }

    /// Whether it is a command, which keeps standard output for itself.
    pub(crate) fn is_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// The time limit, if any.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.seconds
    }
}

impl Subject {
    /// Resumes it and waits for its end, the time limit, or an interruption. A command that still
    /// runs is ended when this is dropped.
    pub(crate) fn attend(
        &mut self,
        seconds: Option<f64>,
        stop: &AtomicBool,
    ) -> anyhow::Result<End> {
        if let Subject::Command(child) = self {
            child.resume()?;
        }
        let begun = Instant::now();
        let mut requested: Option<Instant> = None;
        loop {
            let given = match self {
                Subject::Command(child) => {
                    if let Some(status) = child.ended()? {
                        return Ok(End::Exited(status));
                    }
                    GRACE
                }
                Subject::Process(pid) if !is_alive(*pid) => return Ok(End::Over),
                Subject::Process(_) | Subject::Group(_) | Subject::Machine => Duration::ZERO,
            };
            if stop.load(Ordering::Relaxed)
                && requested.get_or_insert_with(Instant::now).elapsed() >= given
            {
                return Ok(End::Interrupted);
            }
            if seconds.is_some_and(|seconds| begun.elapsed().as_secs_f64() >= seconds) {
                return Ok(End::Over);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whether a process still runs: a zombie keeps its number, but no thread other than the first.
fn is_alive(pid: u32) -> bool {
    let process = std::path::Path::new("/proc").join(pid.to_string());
    let Ok(stat) = std::fs::read(process.join("stat")) else { return false };
    // The name before the state may be no text (proc(5)).
    let stat = String::from_utf8_lossy(&stat);
    let state = stat_fields(&stat).and_then(|fields| fields.first().copied());
    let threads = || std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    match state {
        Some("Z") => threads() > 1,
        Some("X") | None => false,
        Some(_) => true,
    }
}
