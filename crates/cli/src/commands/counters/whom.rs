//! Whom a command counts: one that it starts, a process, a control group, all of the machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use workahead_counters::held::Held;

use crate::errors::WrongUse;

/// How often the end of a command and a request to stop are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
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

/// Who it is.
pub(crate) enum Subject {
    Command(Held),
    Process(u32),
    Group(PathBuf),
    Machine,
}

impl Asked {
    /// Who it is; a command is started and waits.
    pub(crate) fn subject(&self) -> anyhow::Result<Subject> {
        if self.seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(WrongUse::error("--seconds must be above 0"));
        }
        match (self.pid, &self.cgroup, self.all, self.command.is_empty()) {
            (Some(pid), ..) if !is_alive(pid) => bail!("there is no process {pid}"),
            (Some(pid), ..) => Ok(Subject::Process(pid)),
            (_, Some(group), ..) if !group.join("cgroup.procs").exists() => {
                bail!("{} is not a control group's directory", group.display())
            }
            (_, Some(group), ..) => Ok(Subject::Group(group.clone())),
            (_, _, true, _) => Ok(Subject::Machine),
            (_, _, _, false) => Ok(Subject::Command(Held::start(&self.command)?)),
            (_, _, false, true) => Err(WrongUse::error(
                "whom to count? give a command after `--`, or --pid, --cgroup or --all",
            )),
        }
    }

    /// How long it is to take, where that was said.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.seconds
    }
}

impl Subject {
    /// Lets it go on and waits for its end, the time that was given, or a request to stop. The
    /// status of a command that ended.
    pub(crate) fn attend(
        &mut self,
        seconds: Option<f64>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<ExitStatus>> {
        if let Subject::Command(held) = self {
            held.go()?;
        }
        let begun = Instant::now();
        loop {
            match self {
                Subject::Command(held) => {
                    if let Some(status) = held.ended()? {
                        return Ok(Some(status));
                    }
                }
                Subject::Process(pid) if !is_alive(*pid) => return Ok(None),
                Subject::Process(_) | Subject::Group(_) | Subject::Machine => {}
            }
            let is_over = seconds.is_some_and(|seconds| begun.elapsed().as_secs_f64() >= seconds);
            if is_over || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn is_alive(pid: u32) -> bool {
    std::path::Path::new("/proc").join(pid.to_string()).exists()
}
