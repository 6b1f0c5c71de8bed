//! A process that holds one engine and its copy of the data, and answers requests.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::OURS;
use super::data::Data;
use super::venv::Venv;
use crate::workspace::Workspace;

/// Time limit for an engine to end: it frees a few gigabytes.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine that is running.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    version: String,
    process: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

/// One reply to a request to join.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// The whole of it.
    pub(crate) value: Value,
}

/// Builds our worker; where it is.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let words = ["bench", "--no-run", "--package", "workahead-join", "--bench", "peers"];
    let mut cargo = workspace.cargo(&words);
    let output = cargo.arg("--message-format=json").stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("our worker can't be built");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let built = messages.filter(|message| message["target"]["name"] == "peers");
    let path =
        built.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    path.context("Cargo names no program for the bench `peers`")
}

impl Engine {
    /// Starts an engine on a number of CPUs.
    pub(crate) fn start(
        workspace: &Workspace,
        venv: &Venv,
        ours: &Path,
        name: &'static str,
        threads: usize,
    ) -> Result<Self> {
        let threads = threads.to_string();
        let mut command = venv.script(workspace, "pinned.py");
        command.arg(&threads);
        if name == OURS {
            command.arg(ours).args(["--worker", &threads]);
        } else {
            let worker: Command = venv.script(workspace, "worker.py");
            command.arg(worker.get_program()).args(worker.get_args());
            command.args([name, "--threads", &threads]);
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name} does not start"))?;
        let requests = process.stdin.take();
        let replies = BufReader::new(process.stdout.take().context("a pipe")?);
        Ok(Self { name, version: String::new(), process, requests, replies })
    }

    /// Gives it the data; `own` to be read into its memory, as ours does, and not to be mapped:
    /// the small pages of files cost our join 4 %.
    pub(crate) fn load(&mut self, data: &Data, own: bool) -> Result<()> {
        let reply = self.ask(&json!({ "do": "load", "data": data.folder, "own": own }))?;
        reply["version"].as_str().unwrap_or("?").clone_into(&mut self.version);
        Ok(())
    }

    /// Its name and version.
    pub(crate) fn named(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Has it join once.
    pub(crate) fn join(&mut self, form: &str, check: bool) -> Result<Reply> {
        let value = self.ask(&json!({ "do": "run", "form": form, "check": check }))?;
        let seconds =
            |key: &str| value[key].as_f64().with_context(|| format!("{} says no {key}", self.name));
        Ok(Reply { wall_s: seconds("wall_s")?, cpu_s: seconds("cpu_s")?, value })
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        let requests = self.requests.as_mut().context("a pipe")?;
        // A broken pipe says less than the missing reply.
        let _ = writeln!(requests, "{request}").and_then(|()| requests.flush());
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{} ended: {}", self.name, self.process.wait()?);
        }
        serde_json::from_str(&line).with_context(|| format!("{} replied {line:?}", self.name))
    }
}

impl Drop for Engine {
    /// Its memory must be free before the next one's is taken, and its temporary files gone: so it
    /// may end by itself, but not for ever.
    fn drop(&mut self) {
        drop(self.requests.take());
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.process.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // Only refused when it has ended meanwhile.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
