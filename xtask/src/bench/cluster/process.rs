//! A cluster that stays up: its processes, their CPU time, their end.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::cpu_time;
use crate::workspace::answers;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Workers of one thread, each on a CPU of its own. They end when this is dropped.
pub(super) struct Cluster {
    child: Child,
    /// A file with its URL, which only its owner may read.
    pub(super) url: PathBuf,
    /// Its standard error.
    log: PathBuf,
    workers: Vec<u32>,
}

impl Cluster {
    /// A worker for each CPU.
    pub(super) fn start(
        program: &Path,
        data: &Path,
        folder: &Path,
        cpus: &[usize],
    ) -> Result<Self> {
        let count = cpus.len().to_string();
        let url = folder.join(format!("cluster-{count}.url"));
        let log = folder.join(format!("cluster-{count}.log"));
        let mut output = OpenOptions::new();
        let output = output.write(true).create(true).truncate(true).mode(0o600).open(&url)?;
        let mut command = ending_with_this_process(program);
        command.args(["cluster", "--threads", "1", "--workers", &count, "--data"]).arg(data);
        command.args(["--cpus", &list(cpus)]);
        command.stdin(Stdio::null()).stdout(output).stderr(File::create(&log)?);
        let child = command.spawn().context("workahead does not start")?;
        let mut cluster = Self { child, url, log, workers: Vec::new() };
        let end = Instant::now() + START_TIMEOUT;
        while cluster.workers.len() < cpus.len() || cluster.text(&cluster.url).is_empty() {
            if let Some(status) = cluster.child.try_wait()? {
                bail!("the cluster did not start ({status}): {}", cluster.last_line());
            }
            if Instant::now() >= end {
                bail!("the cluster did not start in {START_TIMEOUT:?}: {}", cluster.last_line());
            }
            std::thread::sleep(CHECK_INTERVAL);
            let log = cluster.text(&cluster.log);
            cluster.workers = log.lines().filter_map(process_id).collect();
        }
        Ok(cluster)
    }

    /// CPU seconds of its workers since they were started.
    pub(super) fn cpu_s(&self) -> Result<f64> {
        let all = self.workers.iter().map(|id| cpu_time::of_process(*id));
        all.sum::<Result<f64>>().with_context(|| format!("a worker ended: {}", self.last_line()))
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// The last line of its standard error.
    fn last_line(&self) -> String {
        let text = self.text(&self.log);
        let line = text.lines().rfind(|line| !line.trim().is_empty());
        line.unwrap_or("it gave no reason").to_owned()
    }

    fn text(&self, path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

impl Drop for Cluster {
    /// An interrupt, so that it removes its files.
    fn drop(&mut self) {
        if self.runs() {
            let id = self.child.id().to_string();
            let _ = Command::new("kill").args(["-s", "INT", &id]).status();
        }
        let end = Instant::now() + EXIT_TIMEOUT;
        while self.runs() {
            if Instant::now() >= end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        let _ = std::fs::remove_file(&self.url);
    }
}

/// A command that the kernel interrupts when this process ends, however it ends. Without `setpriv`
/// only a terminal's Ctrl-C does.
fn ending_with_this_process(program: &Path) -> Command {
    let words = ["--pdeathsig", "INT"];
    if !answers(Command::new("setpriv").args(words).arg("true")) {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(words).arg(program);
    command
}

/// Of a line `worker 1 is process 4711`.
fn process_id(line: &str) -> Option<u32> {
    line.strip_prefix("worker ")?.split_once(" is process ")?.1.parse().ok()
}

/// CPUs as `taskset` and `--cpus` take them.
pub(super) fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_in_the_log() {
        assert_eq!(process_id("worker 2 is process 4711"), Some(4711));
        assert_eq!(process_id("worker 2 ended: signal: 9 (SIGKILL)"), None);
        assert_eq!(list(&[0, 3]), "0,3");
    }

    #[test]
    fn a_cluster_that_does_not_start_says_why() {
        let folder = std::env::temp_dir().join(format!("workahead-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        let script = "#!/bin/sh\necho first >&2\necho no ports >&2\nexit 1\n";
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).mode(0o700).open(&program).unwrap();
        std::io::Write::write_all(&mut file, script.as_bytes()).unwrap();
        drop(file);
        let error = Cluster::start(&program, &folder, &folder, &[0]).err().unwrap().to_string();
        assert!(error.contains("no ports"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
