//! Stages that wait for a guest, which computes on one CPU: run as a process of their own beside
//! the others, and shown when they are over, so that no output is mixed.

use std::process::{Command, Stdio};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::jobs::{Context, STAGES, StageEntry};
use super::options::Options;
use crate::counts::Counts;
use crate::packages::Packages;
use crate::stage::{LIMIT, Outcome, Stage, limited};
use crate::workspace::Workspace;

/// Names the one stage that a process is for.
const STAGE: &str = "WORKAHEAD_STAGE";
/// The file that it writes what came of it to.
const RESULT: &str = "WORKAHEAD_STAGE_RESULT";

pub(super) fn requested() -> Option<String> {
    std::env::var(STAGE).ok()
}

/// Runs the one stage in this process.
pub(super) fn run(workspace: &Workspace, word: &str, words: &[&str]) -> Result<bool> {
    let packages = Packages::read(workspace)?;
    let options = Options::read(words, &packages)?;
    let context = Context { workspace, packages: &packages, options: &options };
    let listed = STAGES.iter().find(|stage| stage.word == word && stage.beside);
    let stages = listed.with_context(|| format!("{STAGE} names no stage: {word}"))?.run(&context);
    let said: Vec<StageReport> = stages.iter().map(StageReport::of).collect();
    let path = std::env::var_os(RESULT).with_context(|| format!("{RESULT} is not set"))?;
    std::fs::write(path, serde_json::to_vec(&said)?)?;
    Ok(!stages.iter().any(Stage::failed))
}

/// Starts one; its result is there when the thread ends.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    context: &Context,
    stage: &'static StageEntry,
    words: &[&str],
) -> ScopedJoinHandle<'scope, Vec<Stage>> {
    let result = context.workspace.target().join(format!("stage-{}.json", stage.word));
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.current_dir(context.workspace.root()).arg("test").args(words);
    command.env(STAGE, stage.word).env(RESULT, &result);
    println!("\n== {}: started beside what follows", stage.word);
    scope.spawn(move || {
        let _ = std::fs::remove_file(&result);
        let ended = output_of(command);
        let (output, why) = match ended {
            Ok(output) => (output, String::from("it ended early")),
            Err(error) => (Vec::new(), format!("{error:#}")),
        };
        show(&output);
        let text = std::fs::read(&result).unwrap_or_default();
        match serde_json::from_slice::<Vec<StageReport>>(&text) {
            Ok(said) => said.into_iter().map(|said| said.stage(stage.word)).collect(),
            Err(_) => vec![Stage::failed_early(stage.word, why)],
        }
    })
}

fn output_of(command: Command) -> Result<Vec<u8>> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = limited(command, LIMIT);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("the stage does not start")?;
    drop(command);
    let mut output = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut output)?;
    child.wait()?;
    Ok(output)
}

fn show(output: &[u8]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(output);
    let _ = out.flush();
}

/// A stage on its way from one process to the other.
#[derive(Serialize, Deserialize)]
struct StageReport {
    name: String,
    failed: Option<String>,
    skipped: Option<String>,
    counts: [u64; 3],
    took_s: f64,
}

impl StageReport {
    fn of(stage: &Stage) -> Self {
        let (failed, skipped) = match &stage.outcome {
            Outcome::Passed => (None, None),
            Outcome::Failed(why) => (Some(why.clone()), None),
            Outcome::Skipped(why) => (None, Some(why.clone())),
        };
        let Counts { passed, failed: fell, skipped: left_out } = stage.counts;
        let (name, took_s) = (stage.name.to_owned(), stage.took.as_secs_f64());
        Self { name, failed, skipped, counts: [passed, fell, left_out], took_s }
    }

    fn stage(self, word: &'static str) -> Stage {
        let outcome = match (self.failed, self.skipped) {
            (Some(why), _) => Outcome::Failed(why),
            (None, Some(why)) => Outcome::Skipped(why),
            (None, None) => Outcome::Passed,
        };
        let [passed, failed, skipped] = self.counts;
        let counts = Counts { passed, failed, skipped };
        let took = Duration::from_secs_f64(self.took_s);
        // Names are constants of the program, in either process.
        let name = if self.name.is_empty() { word } else { Box::leak(self.name.into_boxed_str()) };
        Stage { outcome, counts, took, ..Stage::skipped(name, "") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_survives_the_way() {
        for outcome in
            [Outcome::Passed, Outcome::Failed("why".into()), Outcome::Skipped("not here".into())]
        {
            let counts = Counts { passed: 3, failed: 1, skipped: 2 };
            let took = Duration::from_millis(1500);
            let stage = Stage { outcome, counts, took, ..Stage::skipped("guest", "") };
            let text = serde_json::to_vec(&[StageReport::of(&stage)]).unwrap();
            let said: Vec<StageReport> = serde_json::from_slice(&text).unwrap();
            let back = said.into_iter().next().unwrap().stage("guest");
            assert_eq!(back.line(), stage.line());
            assert_eq!((back.counts, back.took), (stage.counts, stage.took));
        }
    }

    #[test]
    fn a_process_is_heard_to_its_end() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one; echo two >&2"]);
        assert_eq!(output_of(shell).unwrap(), b"one\ntwo\n");
    }
}
