//! Python environments with pinned packages, in the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, succeed};

/// Where the scripts and the pinned versions are.
pub(crate) const SCRIPTS: &str = "bench/peers";

/// An environment that is complete.
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// That of the peers' wheels.
    pub(crate) fn prepare(workspace: &Workspace) -> Result<Self> {
        let pinned = workspace.root().join(SCRIPTS).join("requirements.txt");
        Self::of(workspace.target().join("peers/venv"), &pinned)
    }

    /// Makes it, unless it is there with these very versions.
    pub(crate) fn of(folder: PathBuf, pinned: &Path) -> Result<Self> {
        let wanted = std::fs::read_to_string(pinned)
            .with_context(|| format!("cannot read {}", pinned.display()))?;
        // Written last: an installation that was broken off is done again.
        let stamp = folder.join("installed.txt");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(Self { folder });
        }
        println!("== installing Python packages into {}", folder.display());
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(&folder);
        succeed(&mut create)
            .context("python3 with its venv module is needed: install python3-venv")?;
        let venv = Self { folder };
        let mut install = Command::new(venv.python());
        install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(pinned);
        succeed(&mut install).context("the Python packages can't be installed")?;
        std::fs::write(&stamp, wanted)?;
        Ok(venv)
    }

    /// The interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// A call of one of our scripts.
    pub(crate) fn script(&self, workspace: &Workspace, name: &str) -> Command {
        let mut command = Command::new(self.python());
        // The scripts' folder is part of the tree: no compiled files in it.
        command.arg("-B").arg(workspace.root().join(SCRIPTS).join(name));
        command
    }
}
