//! Runs of databases that work in the process which calls them have one of their own, so that a
//! statement that ends it (a stack that overflows, memory that the kernel takes back) leaves a
//! command that says so, with the machine's settings restored.
//!
//! ```text
//! workahead study run ── the same command, WORKAHEAD_SUPERVISOR=pid ──► the run
//!     │  signals ─────────────────────────────────────────────────────────►│
//!     └─◄── its status, or the signal that ended it ───────────────────────┘
//! ```
//!
//! The run is not in the terminal's foreground, so that each interruption reaches it once, from
//! here. It ends with this process, whatever ends this one.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};

use crate::settings;

/// The supervisor's process number, in the environment of the run.
const VARIABLE: &str = "WORKAHEAD_SUPERVISOR";

/// The process of the run, 0 without one.
static RUN: AtomicI32 = AtomicI32::new(0);

/// Runs this command once more, in a process of its own, and returns its status; `None` in that
/// process, and for engines that have processes of their own.
///
/// # Errors
/// When a signal ended the run.
pub(crate) fn supervised(engine: &str) -> anyhow::Result<Option<ExitCode>> {
    if !workahead_engines::works_in_this_process(engine) || is_supervised()? {
        return Ok(None);
    }
    ctrlc::set_handler(interrupt).context("can't listen for Ctrl-C")?;
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut run = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, std::process::id().to_string())
        .process_group(0)
        .spawn()
        .context("can't start a process for the run")?;
    RUN.store(run.id().cast_signed(), Ordering::SeqCst);
    let status = run.wait();
    RUN.store(0, Ordering::SeqCst);
    status_of(status.context("can't wait for the run")?).map(Some)
}

/// Whether this is the process of a run. It ends with its supervisor from here on.
fn is_supervised() -> anyhow::Result<bool> {
    let Some(supervisor) = std::env::var_os(VARIABLE) else { return Ok(false) };
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    if supervisor.to_str() != Some(&parent.to_string()) {
        bail!("{VARIABLE} names no process that this one was started by: unset it");
    }
    Ok(true)
}

fn interrupt() {
    match Pid::from_raw(RUN.load(Ordering::SeqCst)) {
        // It may have ended meanwhile.
        Some(run) => drop(rustix::process::kill_process(run, Signal::INT)),
        None => std::process::exit(1),
    }
}

fn status_of(status: ExitStatus) -> anyhow::Result<ExitCode> {
    if let Some(code) = status.code() {
        return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
    }
    settings::recover();
    let signal = status.signal().unwrap_or_default();
    // Of a statement the usual reason is that it nests too deeply; somebody else's may mean harm.
    let how = match Signal::from_named_raw(signal) {
        Some(Signal::SEGV) => "SIGSEGV: one of its statements is more than it can bear",
        Some(Signal::ABORT) => "SIGABRT: one of its statements is more than it can bear",
        Some(Signal::KILL) => "SIGKILL: memory may have run out",
        _ => &format!("signal {signal}"),
    };
    bail!(
        "the process that the database works in was ended by {how}; samples taken until then are \
         kept, and `workahead study resume` continues"
    )
}
