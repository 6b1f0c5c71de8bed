//! Processes that the tests start, and how long they look at them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use workahead_machine::pin;
use workahead_scheduler::{Scheduler, Settings, Stats};

/// Processes that are ended when they are no longer wanted.
pub(crate) struct Load {
    children: Vec<Child>,
}

impl Load {
    /// Starts this program a number of times, each with these words.
    pub(crate) fn start(processes: usize, words: &[&str]) -> Result<Self> {
        let me = std::env::current_exe()?;
        let me = me.to_str().context("a path in UTF-8")?;
        let words: Vec<&str> = std::iter::once(me).chain(words.iter().copied()).collect();
        Self::commands(processes, &words)
    }

    /// The same for any command.
    pub(crate) fn commands(times: usize, words: &[&str]) -> Result<Self> {
        let mut load = Self { children: Vec::new() };
        for _ in 0..times {
            let mut command = Command::new(words[0]);
            let child = command.args(&words[1..]).stdout(Stdio::piped()).spawn();
            load.children.push(child.with_context(|| format!("starting {}", words[0]))?);
        }
        Ok(load)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Waits until each process has its threads on every CPU.
    ///
    /// Those that are born while a scheduler is on its way out belong to the kernel's own class,
    /// which goes before ours: on 6.18 ones that never sleep can hold up a CPU's leaving, which
    /// waits for a thread of ours.
    pub(crate) fn wait_for_threads(&self, each_cpu: usize) -> Result<()> {
        let threads = 1 + each_cpu * pin::affinity()?.iter().count();
        let are_born = |pid: &u32| {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
            tasks.is_ok_and(|tasks| tasks.count() >= threads)
        };
        until("the load has its threads", 20, || Ok(self.pids().iter().all(are_born)))
    }

    /// Waits for all of them, and returns what they printed.
    pub(crate) fn finish(mut self) -> Result<Vec<String>> {
        let mut printed = Vec::new();
        for child in std::mem::take(&mut self.children) {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "a load ended with {}", output.status);
            printed.push(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Ok(printed)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sets, lets it settle, and returns what was counted then.
pub(crate) fn look(scheduler: &Scheduler, settings: &Settings, ms: u64) -> Result<Stats> {
    scheduler.remote().set(settings)?;
    std::thread::sleep(Duration::from_millis(300));
    let before = scheduler.remote().stats()?;
    std::thread::sleep(Duration::from_millis(ms));
    Ok(scheduler.remote().stats()?.since(&before))
}

/// Waits until something is so.
pub(crate) fn until(what: &str, seconds: u64, so: impl Fn() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !so()? {
        if start.elapsed() > Duration::from_secs(seconds) {
            bail!("after {seconds} s still not: {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The middle of an odd number of shares.
pub(crate) fn median(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    shares[shares.len() / 2]
}
