//! A process of the cluster, from the side of the one that started it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::interrupt::Interrupted;

/// A process that has not come up by then never will.
const START: Duration = Duration::from_secs(60);
/// One that was asked to leave removes its files; then it is ended.
const LEAVE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// A process, which leaves with this.
pub(crate) struct Server {
    pub(crate) name: String,
    child: Child,
    /// Closed, it tells the process to leave.
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    errors: Arc<Errors>,
}

/// What a process said on standard error: kept until it is up, passed on from then.
#[derive(Default)]
struct Errors {
    up: AtomicBool,
    last: Mutex<String>,
}

impl Server {
    /// Starts `workahead cluster` with these words.
    pub(crate) fn start(name: String, words: &[String]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("can't find workahead itself")?;
        let mut command = Command::new(program);
        command.arg("cluster").args(words).arg("--with-parent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the one that started them all, which lets them leave in order.
        command.process_group(0);
        let mut child = command.spawn().with_context(|| format!("can't start the {name}"))?;
        let input = child.stdin.take();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let errors = Arc::new(Errors::default());
        let said = BufReader::new(child.stderr.take().context("no standard error")?);
        let (keeper, whose) = (Arc::clone(&errors), name.clone());
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).for_each(|line| keeper.take(&whose, line));
        });
        Ok(Self { name, child, input, lines, errors })
    }

    /// Its first line, which it prints when it is up.
    pub(crate) fn up(&mut self, stop: &AtomicBool) -> anyhow::Result<String> {
        let end = Instant::now() + START;
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => {
                    self.errors.up.store(true, Ordering::Relaxed);
                    return Ok(line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().context("can't wait for a process")?;
                    let said = self.errors.last();
                    let said = said.strip_prefix("error: ").unwrap_or(&said);
                    match said {
                        "" => bail!("the {} did not come up: {status}", self.name),
                        said => bail!("the {} did not come up: {said}", self.name),
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(Interrupted.into());
                }
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    bail!("the {} did not come up within {START:?}", self.name)
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to leave, without waiting.
    pub(crate) fn dismiss(&mut self) {
        self.input = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.dismiss();
        let end = Instant::now() + LEAVE;
        while self.ended().is_none() {
            if Instant::now() >= end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Errors {
    fn take(&self, whose: &str, line: String) {
        if self.up.load(Ordering::Relaxed) {
            eprintln!("{whose}: {line}");
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// The last line, for which the process, which has ended, has had its time.
    fn last(&self) -> String {
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            let line = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !line.is_empty() || Instant::now() >= end {
                return line;
            }
            std::thread::sleep(LOOK);
        }
    }
}
