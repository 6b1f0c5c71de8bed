//! A child process of `workahead cluster`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use workahead_cluster::Token;

use crate::interrupt::Interrupted;
use crate::output;

/// The most time to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The most time to remove its files and exit; then it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A child process, which exits when this is dropped.
pub(crate) struct ChildProcess {
    pub(crate) name: String,
    child: Child,
    /// The process exits when this is closed.
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    errors: Arc<ErrorOutput>,
}

/// The standard error of a process: kept until the process is ready, then passed on.
#[derive(Default)]
struct ErrorOutput {
    ready: AtomicBool,
    last: Mutex<String>,
}

impl ChildProcess {
    /// Starts `workahead cluster` with these arguments. The token isn't among them: everybody can
    /// read those.
    pub(crate) fn start(name: String, words: &[OsString], token: &Token) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("can't find workahead itself")?;
        let mut command = Command::new(program);
        command.arg("cluster").args(words).arg("--with-parent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C reaches only the parent, which stops its children in order.
        command.process_group(0);
        let mut child = command.spawn().with_context(|| format!("can't start the {name}"))?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // One that ended at once says why itself.
            let _ = writeln!(input, "{}", token.reveal());
        }
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let errors = Arc::new(ErrorOutput::default());
        let stderr = BufReader::new(child.stderr.take().context("no standard error")?);
        let (output, process) = (Arc::clone(&errors), name.clone());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| output.add(&process, line));
        });
        Ok(Self { name, child, input, lines, errors })
    }

    /// Waits until it is ready, and returns its first line.
    pub(crate) fn ready(&mut self, stop: &AtomicBool) -> anyhow::Result<String> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            match self.lines.recv_timeout(CHECK_INTERVAL) {
                Ok(line) => {
                    self.errors.ready.store(true, Ordering::Relaxed);
                    return Ok(line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().context("can't wait for a process")?;
                    let error = self.errors.last();
                    match error.strip_prefix("error: ").unwrap_or(&error) {
                        "" => bail!("the {} did not start: {status}", self.name),
                        error => bail!("the {} did not start: {error}", self.name),
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(Interrupted.into());
                }
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    bail!("the {} did not start within {START_TIMEOUT:?}", self.name)
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Its exit status, if it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Requests it to exit, without waiting.
    pub(crate) fn request_exit(&mut self) {
        self.input = None;
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.request_exit();
        let end = Instant::now() + EXIT_TIMEOUT;
        while self.exit_status().is_none() {
            if Instant::now() >= end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
}

impl ErrorOutput {
    fn add(&self, process: &str, line: String) {
        if self.ready.load(Ordering::Relaxed) {
            output::note(&format!("{process}: {line}"));
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// The last line of a process that has ended: waits a moment for it.
    fn last(&self) -> String {
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            let line = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !line.is_empty() || Instant::now() >= end {
                return line;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }
}
