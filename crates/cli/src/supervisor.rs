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
//! here. It ends with this process, whatever ends this one. Before its database is opened it is
//! confined to its places, as [`confinement`] has it.

mod confinement;
mod study_starts;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use workahead_engines::attach::password::VARIABLE as PASSWORD;
use workahead_machine::control::smt::SmtAxis;
use workahead_machine::limits::Store;
use workahead_machine::links;
use workahead_machine::process::{Guard, inheritance};
use workahead_study::cell::Cell;
use workahead_study::engine::Stop;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;

use crate::commands::study::arguments::DataArguments;
use crate::commands::study::run_session::Session;
use crate::interrupt::Interrupted;
use crate::password::CLUSTER;
use crate::{interrupt, settings};
use confinement::Places;

/// The supervisor's process number, in the environment of the run.
const VARIABLE: &str = "WORKAHEAD_SUPERVISOR";

/// The process of the run, 0 without one.
static RUN: AtomicI32 = AtomicI32::new(0);
/// How often it was interrupted.
static INTERRUPTIONS: AtomicU32 = AtomicU32::new(0);
/// The last one is not up to it.
const KILLED_AT: u32 = 3;

/// Runs this command once more, in a process of its own, and returns its status; `None` in that
/// process, and for engines that have processes of their own.
///
/// # Errors
/// When a signal ended the run.
pub(crate) fn supervised(spec: &Spec, data: &DataArguments) -> anyhow::Result<Option<ExitCode>> {
    let engine = &spec.engine;
    if !workahead_engines::works_in_this_process(engine) || is_supervised()? {
        return Ok(None);
    }
    study_starts::keep(spec, data)?;
    inheritance::keep_files();
    // It is not in the foreground.
    inheritance::write_in_background();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ctrlc::set_handler(interrupt).context("can't listen for Ctrl-C")?;
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut run = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_for_a_run(name)))
        .env(VARIABLE, std::process::id().to_string())
        .env("TMPDIR", std::path::absolute(temporary(&data.directory().join(engine)))?)
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
        .context("can't start a process for the run")?;
    RUN.store(run.id().cast_signed(), Ordering::SeqCst);
    let group = Pid::from_child(&run);
    // Processes started by the run don't end with this one as the run itself does.
    let guard = Guard::over_group(&mut run, Signal::KILL);
    let mut guard = guard.context("can't start a process that watches the run")?;
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(rustix::process::waitid(WaitId::Pid(group), ended), Err(Errno::INTR)) {}
    // At once, as none of them may leave the group: those that fork can't be caught one by one.
    // Until it is waited for, the group's number is nobody else's.
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let status = run.wait();
    guard.dismiss();
    RUN.store(0, Ordering::SeqCst);
    end_what_is_left();
    status_of(status.context("can't wait for the run")?).map(Some)
}

/// The same, to continue a run: of the study that was begun here. What is written in the result may
/// be the work of the run.
///
/// # Errors
/// As [`supervised`]; and when it is another study.
pub(crate) fn resumed(spec: &Spec, data: &DataArguments) -> anyhow::Result<Option<ExitCode>> {
    if workahead_engines::works_in_this_process(&spec.engine) {
        known(spec, data)?;
    }
    supervised(spec, data)
}

fn known(spec: &Spec, data: &DataArguments) -> anyhow::Result<()> {
    if study_starts::is_known(spec, data) {
        return Ok(());
    }
    bail!(
        "the study of this result is not one that was begun here with {}: run it anew, or give the \
         --data-dir that it was run with",
        data.directory().display()
    )
}

/// Whether a run has a variable of the environment. Passwords and keys of other programs would end
/// up in its results, if a statement got at them.
fn is_for_a_run(name: &OsStr) -> bool {
    const NAMES: [&str; 16] = [
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "LD_LIBRARY_PATH",
        "RUST_BACKTRACE",
        "VALGRIND_LIB",
    ];
    const BEGINNINGS: [&str; 3] = ["LC_", "XDG_", "WORKAHEAD_"];
    // A password elsewhere is a token there.
    let is_secret = |name: &&str| [PASSWORD, CLUSTER].contains(name);
    let Some(name) = name.to_str().filter(|name| !is_secret(name)) else { return false };
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Ends the programs that the run leaves: they are children of this process now.
fn end_what_is_left() {
    loop {
        let own = format!("/proc/self/task/{}/children", std::process::id());
        let left = fs::read_to_string(own).unwrap_or_default();
        let left = left.split_whitespace().filter_map(|one| one.parse().ok());
        let left: Vec<Pid> = left.filter_map(Pid::from_raw).collect();
        if left.is_empty() {
            return;
        }
        for one in left {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(one, Signal::KILL);
            let _ = rustix::process::waitpid(Some(one), WaitOptions::empty());
        }
    }
}

/// Begins a run, and the listening to signals; where its database works in this process, that is
/// confined from then on. Whatever begins it must have started no thread.
///
/// # Errors
/// Those of `begin`, and when the run's places can't be made.
pub(crate) fn begin(
    engine: &str,
    data: &DataArguments,
    read: &[PathBuf],
    begin: impl FnOnce() -> anyhow::Result<Session>,
) -> anyhow::Result<(Session, Stop)> {
    if !workahead_engines::works_in_this_process(engine) {
        let stop = Stop::from(interrupt::listen()?);
        return Ok((begin()?, stop));
    }
    // The run's files name it from here on: an interruption has to find who tells how it continues.
    let held = interrupt::hold()?;
    let session = begin()?;
    // A run that something is left of may have written another since it was looked at.
    known(&session.spec, data)?;
    let home = workahead_engines::private_directory(engine, &data.directory())?;
    let temporary = temporary(&home);
    // An earlier run may have left anything there.
    if !fs::symlink_metadata(&temporary).is_ok_and(|found| found.is_dir()) {
        let _ = fs::remove_file(&temporary);
        fs::create_dir(&temporary).context("no directory for temporary files")?;
    }
    let limits = Store::of_user().directory().map(Path::to_owned);
    // They are measured again by the next run if there is no such directory.
    let limits = limits.filter(|limits| links::make_directory(limits).is_ok());
    let written = [Some(home), Some(session.dir.clone()), limits];
    // A worker process is this program, and loads the library again.
    let worker = std::env::current_exe().into_iter().chain(workahead_engines::library_files());
    let mut places = Places {
        read: read.iter().cloned().chain(worker).collect(),
        written: written.into_iter().flatten().collect(),
        counts: !session.run_plan.collection.is_nothing(),
        starts_programs: session.run_plan.instrumented.is_some(),
        loads_bpf: false,
        files: Vec::new(),
        believed: vec![data.directory().join(study_starts::DIRECTORY)],
    };
    session.run_plan.cells.iter().for_each(|cell| places.add(cell));
    confinement::confine(&places)?;
    let stop = Stop::from(interrupt::listen()?);
    drop(held);
    Ok((session, stop))
}

/// Where a run has its temporary files: what spills doesn't go to memory, as `/tmp` may be.
fn temporary(home: &Path) -> PathBuf {
    home.join("temporary")
}

impl Places {
    /// Adds the places that a cell's settings require.
    fn add(&mut self, cell: &Cell) {
        let text = |key| cell.get(key).and_then(Setting::as_text);
        let files = ["file", "set_up"].into_iter().filter_map(text).map(PathBuf::from);
        let files: Vec<PathBuf> = files.collect();
        self.read.extend(files.iter().filter(|file| file.is_file()).cloned());
        self.files.extend(files);
        if text("smt") == Some(SmtAxis::OffHotplug.name()) {
            // The journal's own, which only root can make.
            let _ = fs::DirBuilder::new().mode(0o755).create("/run/workahead");
            self.written.extend(["/run/workahead", "/sys/devices/system/cpu"].map(PathBuf::from));
        }
        // Other words are policies of the system's, which need nothing.
        let is_ours = matches!(text("scheduler"), Some("default" | "itas"));
        self.loads_bpf |= cfg!(feature = "scheduler") && is_ours;
    }
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
        Some(run) => {
            let before = INTERRUPTIONS.fetch_add(1, Ordering::SeqCst);
            let signal = if before + 1 >= KILLED_AT { Signal::KILL } else { Signal::INT };
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(run, signal);
        }
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
        // It had not begun.
        Some(Signal::INT | Signal::TERM | Signal::HUP) => return Err(Interrupted.into()),
        Some(Signal::KILL) => "SIGKILL: memory may have run out",
        _ => &format!("signal {signal}"),
    };
    bail!(
        "the process that the database works in was ended by {how}; samples taken until then are \
         kept, and `workahead study resume` continues"
    )
}
