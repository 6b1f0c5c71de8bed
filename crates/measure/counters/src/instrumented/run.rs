//! Runs a program under valgrind to its end, and reads what was counted.
//!
//! Everything goes through files in a folder of its own that is gone afterwards: no pipe can fill
//! up, and the program may write as much as it likes.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tempfile::TempDir;
use workahead_machine::process::Guard;
use workahead_machine::regular_file;

use super::valgrind::{COUNTS, REMARKS};
use super::{Error, InstrumentedRun, Processes, Program, ProgramCounts, Span, Tool, Valgrind};

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The counts.
    pub counted: ProgramCounts,
    /// The program's standard output: its first [`OUTPUT_BYTES_MAX`], enough to check an answer.
    pub output: Vec<u8>,
    /// The last lines that it wrote to its error output; empty when it wrote none.
    pub errors: String,
}

/// How often a running program is looked at: little beside a second of start-up.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A program may finish its files after SIGTERM; under valgrind that takes longer.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Bytes kept of an output.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Files of large servers have a few MiB.
const COUNTS_BYTES_MAX: u64 = 256 << 20;
/// Lines of an error output that errors show.
const TAIL_LINES: usize = 8;
const TAIL_BYTES: u64 = 8 << 10;

impl InstrumentedRun {
    /// Runs a program to its end and counts it. `stop` ends it early: it and all of its own process
    /// group get SIGTERM, and are killed when they don't.
    ///
    /// # Errors
    /// If there is no valgrind, the program does not start or does not end well, counts can't be
    /// read, or `stop` was set.
    pub fn run(&self, program: &Program, stop: &AtomicBool) -> Result<Outcome, Error> {
        self.run_with(&Valgrind::find()?, program, stop)
    }

    /// As [`run`](Self::run), with this valgrind.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        valgrind: &Valgrind,
        program: &Program,
        stop: &AtomicBool,
    ) -> Result<Outcome, Error> {
        if let (Tool::Cachegrind, Span::Inside(functions)) = (self.tool, &self.span) {
            let why = "only callgrind can do that";
            return Err(Error::Inside { functions: functions.join(", "), why });
        }
        let mut files = Files::make(program)?;
        let mut command = self.command(valgrind, program, files.path());
        if program.own_group {
            command.process_group(0);
        }
        files.connect(&mut command)?;
        let child = command.spawn();
        let mut child = child.map_err(|source| Error::system("start", &valgrind.path, source))?;
        let guard = program.own_group.then(|| Guard::over_group(&mut child, Signal::KILL));
        let guard = guard.transpose();
        let guard = guard.map_err(|source| Error::system("start", Path::new("/bin/sh"), source))?;
        let pid = child.id();
        let status = wait(child, program.own_group, stop, &valgrind.path);
        // The group's number may be another's from now on.
        drop(guard);
        let status = status?;
        if !status.success() {
            return Err(Error::Ended {
                program: program.program.clone(),
                tool: self.tool,
                how: how(status),
                said: files.last_words(pid),
            });
        }
        let counted = self.read(&files, pid)?;
        let output = files.output()?;
        Ok(Outcome { counted, output, errors: last_lines(tail(&mut files.errors)) })
    }

    fn read(&self, files: &Files, pid: u32) -> Result<ProgramCounts, Error> {
        let mut counted = self.checked(files.counts(&files.of_process(COUNTS, pid), self.tool)?)?;
        if self.processes == Processes::All {
            for path in files.of_others(pid)? {
                let other = self.checked(files.counts(&path, self.tool)?)?;
                counted = counted.plus(&other)?;
            }
        }
        match &self.span {
            Span::Inside(functions) if counted.totals.iter().all(|&total| total == 0) => {
                let why = "the program never came there; are these names in its table of symbols?";
                Err(Error::Inside { functions: functions.join(", "), why })
            }
            _ => Ok(counted),
        }
    }

    fn checked(&self, counted: ProgramCounts) -> Result<ProgramCounts, Error> {
        if counted.geometry == Some(self.geometry) {
            return Ok(counted);
        }
        let caches = counted.geometry.map_or("none".to_owned(), |geometry| geometry.to_string());
        Err(Error::OtherCaches { tool: self.tool, caches })
    }
}

/// Waits for the end of all of its group. The first process is left unreaped until the others are
/// gone: while it is, no stranger can get the group's number.
fn wait(
    mut child: Child,
    own_group: bool,
    stop: &AtomicBool,
    path: &Path,
) -> Result<ExitStatus, Error> {
    let pid = Pid::from_child(&child);
    let kill = if own_group { kill_process_group } else { kill_process };
    let mut requested: Option<Instant> = None;
    while !has_ended(pid) {
        match requested {
            None if stop.load(Ordering::Relaxed) => {
                // One that ended this moment needs no signal.
                let _ = kill(pid, Signal::TERM);
                requested = Some(Instant::now());
            }
            Some(since) if since.elapsed() > END_LIMIT => {
                let _ = kill(pid, Signal::KILL);
            }
            _ => {}
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // Its orphans have no other parent that ends them.
    let _ = kill(pid, Signal::KILL);
    let status = child.wait().map_err(|source| Error::system("wait for", path, source))?;
    // A terminal interrupts what is in this process's group too.
    let interrupted = !status.success() && stop.load(Ordering::Relaxed);
    if requested.is_some() || interrupted { Err(Error::Stopped) } else { Ok(status) }
}

fn has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    // An error means that there is nothing to wait for.
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

/// Describes an end, with the remedy where there is one.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        // Signal 4, SIGILL.
        (_, Some(4)) => "used an instruction that valgrind lacks (AVX-512?): compile it without \
                         `-C target-cpu=native`"
            .to_owned(),
        (Some(code), _) => format!("ended with {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The files of a run, gone when it is. The program's user may do what it likes in their folder:
/// ours are made before it is given away, and read by what was opened then.
struct Files {
    folder: TempDir,
    input: File,
    output: File,
    errors: File,
}

impl Files {
    /// In a folder that only the program's user enters: valgrind writes there as that user.
    fn make(program: &Program) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("workahead-counts-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let temporary = std::env::temp_dir();
        let folder = folder.map_err(|source| Error::system("write to", &temporary, source))?;
        let create = |name: &str| {
            let path = folder.path().join(name);
            let mut options = File::options();
            let made = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
            made.map_err(|source| Error::system("create", &path, source))
        };
        let [mut input, output, errors] = [create("input")?, create("output")?, create("errors")?];
        let written = input.write_all(&program.input).and_then(|()| input.rewind());
        written.map_err(|source| Error::system("write to", folder.path(), source))?;
        if let Some(user) = program.user {
            let given = std::os::unix::fs::chown(folder.path(), Some(user.uid), Some(user.gid));
            given.map_err(|source| Error::system("give away", folder.path(), source))?;
        }
        Ok(Self { folder, input, output, errors })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives them to a program as its input and outputs.
    fn connect(&self, command: &mut Command) -> Result<(), Error> {
        let again = |file: &File| {
            file.try_clone().map_err(|source| Error::system("open", self.path(), source))
        };
        command
            .stdin(again(&self.input)?)
            .stdout(again(&self.output)?)
            .stderr(again(&self.errors)?);
        Ok(())
    }

    fn of_process(&self, prefix: &str, pid: u32) -> PathBuf {
        self.path().join(format!("{prefix}{pid}"))
    }

    /// Files of other processes that counted; in the order of their numbers.
    fn of_others(&self, pid: u32) -> Result<Vec<PathBuf>, Error> {
        let entries = fs::read_dir(self.path());
        let entries = entries.map_err(|source| Error::system("read", self.path(), source))?;
        let number = |name: &str| name.strip_prefix(COUNTS)?.parse::<u32>().ok();
        let names = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
        let mut numbers: Vec<u32> = names.filter(|other| *other != pid).collect();
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|pid| self.of_process(COUNTS, pid)).collect())
    }

    fn counts(&self, path: &Path, tool: Tool) -> Result<ProgramCounts, Error> {
        let bytes = regular_file::open_unlinked(path)
            .and_then(|mut file| head(&mut file, COUNTS_BYTES_MAX));
        let bytes = bytes.map_err(|source| Error::system("read", path, source))?;
        // Names of functions and files are in any encoding.
        ProgramCounts::parse(tool, &String::from_utf8_lossy(&bytes))
    }

    fn output(&mut self) -> Result<Vec<u8>, Error> {
        let read = self.output.rewind().and_then(|()| head(&mut self.output, OUTPUT_BYTES_MAX));
        read.map_err(|source| Error::system("read", self.folder.path(), source))
    }

    /// The last lines of the program, or else of valgrind.
    fn last_words(&mut self, pid: u32) -> String {
        let said = last_lines(tail(&mut self.errors));
        let remarks = || {
            regular_file::open_unlinked(&self.of_process(REMARKS, pid))
                .and_then(|mut file| tail(&mut file))
        };
        let said = if said.is_empty() { last_lines(remarks()) } else { said };
        if said.is_empty() { "it printed nothing".to_owned() } else { said }
    }
}

fn head(file: &mut File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn tail(file: &mut File) -> io::Result<Vec<u8>> {
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES)))?;
    head(file, TAIL_BYTES)
}

fn last_lines(bytes: io::Result<Vec<u8>>) -> String {
    let bytes = bytes.unwrap_or_default();
    let said = String::from_utf8_lossy(&bytes);
    let lines = said.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let mut lines: Vec<&str> = lines.collect();
    lines.drain(..lines.len().saturating_sub(TAIL_LINES));
    lines.join("\n")
}
