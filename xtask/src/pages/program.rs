//! The command `workahead`, as the tests before have built it, or as named by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

/// Names another one: a build without features, a release.
const NAME: &str = "WORKAHEAD_PROGRAM";

/// A program called `workahead`.
pub(super) struct Program {
    path: PathBuf,
}

impl Program {
    /// The program that `WORKAHEAD_PROGRAM` names, or the target folder's.
    pub(super) fn find(workspace: &Workspace) -> Result<Self> {
        let built = workspace.target().join("debug/workahead");
        let path = std::env::var_os(NAME).map_or(built, PathBuf::from);
        let path = path.canonicalize().with_context(|| {
            format!("no {}: build it (`cargo build`), or name one in {NAME}", path.display())
        })?;
        ensure!(path.ends_with("workahead"), "{NAME}: pages call it `workahead`; so must its file");
        Ok(Self { path })
    }

    /// Where it lies: pages find it as readers do, on `PATH`.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Its output; a failure is an error in its own words.
    pub(super) fn prints(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.path).args(words).output().context("workahead")?;
        let says = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "workahead {}: {}", words.join(" "), says.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The line with which a subcommand says that it is not in this build; `None` where it is.
    pub(super) fn lacks(&self, subcommand: &str) -> Option<String> {
        // An option that there is not: some do their work without any, and stay.
        let words = [subcommand, "--is-it-there"];
        let output = Command::new(&self.path).args(words).output().ok()?;
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = says.lines().find(|line| line.contains("was built without"))?;
        Some(line.trim_start_matches("error: ").to_owned())
    }

    /// One that nobody calls.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self { path: "/nowhere/workahead".into() }
    }
}
