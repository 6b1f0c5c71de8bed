//! `workahead scheduler load`: one program of a load, as `test` and `compare` start it.

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Signal, setpriority_process};
use serde::{Deserialize, Serialize};
use workahead_machine::process::Guard;
use workahead_scheduler::{Load, LoadResult, Window, Work};

use crate::output;

/// Most time that it may take after its window: starved threads end late.
const LATE_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The work of its threads
    #[arg(value_enum)]
    kind: Kind,
    /// Threads on each CPU
    threads: usize,
    /// Time before anything is counted
    #[arg(value_parser = super::time)]
    settle: Duration,
    /// Time in which it is
    #[arg(value_parser = super::time)]
    time: Duration,
    /// Threads stay on their CPU
    #[arg(long)]
    pinned: bool,
    /// How much they give way: 0 to 19
    #[arg(long, default_value_t = 0)]
    nice: u8,
}

/// The work of threads, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    Spin,
    Yield,
    Memory,
    Answer,
    Wakeups,
    Messages,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Spin => "spin",
            Kind::Yield => "yield",
            Kind::Memory => "memory",
            Kind::Answer => "answer",
            Kind::Wakeups => "wakeups",
            Kind::Messages => "messages",
        }
    }

    fn work(self) -> Work {
        match self {
            Kind::Spin => Work::Spinning,
            Kind::Yield => Work::Yielding { spins: 1 },
            Kind::Memory => Work::Memory,
            Kind::Answer => Work::Answering,
            Kind::Wakeups => Work::Wakeups,
            Kind::Messages => Work::Messages,
        }
    }
}

/// Counts of a program over its window.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct LoadCounts {
    pub(super) work: u64,
    pub(super) cpu_s: f64,
    pub(super) delay_ns_p50: Option<u64>,
    pub(super) delay_ns_p99: Option<u64>,
    pub(super) delay_ns_p999: Option<u64>,
}

impl From<LoadResult> for LoadCounts {
    fn from(done: LoadResult) -> Self {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| done.delay_ns_at(quantile));
        let (work, cpu_s) = (done.work, done.cpu_s);
        Self { work, cpu_s, delay_ns_p50: p50, delay_ns_p99: p99, delay_ns_p999: p999 }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.nice > 0 {
        // Of this thread, and of those that it starts.
        setpriority_process(None, args.nice.into()).context("can't give way")?;
    }
    let load = Load { work: args.kind.work(), threads: args.threads, is_pinned: args.pinned };
    let done = load.run(Window { settle: args.settle, time: args.time })?;
    output::json(&LoadCounts::from(done))
}

/// A program to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) kind: Kind,
    /// On each CPU.
    pub(super) threads: usize,
    pub(super) is_pinned: bool,
    pub(super) nice: u8,
}

/// Programs that run; killed when dropped, and with this process.
#[derive(Default)]
pub(super) struct Running(Vec<(Child, Guard)>);

impl Running {
    /// Starts this program as one of a load; returns the number of its process.
    pub(super) fn start(&mut self, program: Program, window: Window) -> anyhow::Result<u32> {
        let me = std::env::current_exe().context("can't find this program's own file")?;
        let ms = |time: Duration| format!("{}ms", time.as_millis());
        let mut command = Guard::waiting(me);
        command.args(["scheduler", "load", program.kind.word(), &program.threads.to_string()]);
        command.args([ms(window.settle), ms(window.time)]);
        command.args(program.is_pinned.then_some("--pinned"));
        command.args(["--nice", &program.nice.to_string()]);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("can't start a program to schedule")?;
        let guard = Guard::over(&mut child, Signal::KILL);
        let mut guard = guard.context("can't start a process that watches a program")?;
        guard.begin(b"");
        let pid = child.id();
        self.0.push((child, guard));
        Ok(pid)
    }

    /// Waits for all, and returns what they counted.
    pub(super) fn finish(mut self) -> anyhow::Result<Vec<LoadCounts>> {
        let start = Instant::now();
        let mut counted = Vec::new();
        for (child, guard) in &mut self.0 {
            let status = loop {
                match child.try_wait()? {
                    Some(status) => break status,
                    None if start.elapsed() > LATE_MAX => bail!("a program of the load hangs"),
                    None => std::thread::sleep(Duration::from_millis(20)),
                }
            };
            guard.dismiss();
            ensure!(status.success(), "a program of the load ended with {status}");
            // A line: a pipe holds it.
            let mut printed = String::new();
            let mut stdout = child.stdout.take().context("the output of a program of the load")?;
            stdout.read_to_string(&mut printed)?;
            counted.push(
                serde_json::from_str(&printed).context("the output of a program of the load")?,
            );
        }
        Ok(counted)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (child, guard) in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            guard.dismiss();
        }
    }
}
