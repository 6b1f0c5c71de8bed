//! Where the workspace lies, and how Cargo is called in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the checkout this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
    commit: String,
}

impl Workspace {
    /// Cargo tells a program it runs where its manifest is; the workspace is one folder up.
    pub(crate) fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("run this as `cargo xtask …`, so that it knows where the workspace is")?;
        let root = Path::new(&manifest).parent().context("xtask lies in no folder")?;
        // At the start: what is kept after an hour's run is not of what was committed meanwhile.
        let described = Command::new("git")
            .current_dir(root)
            .args(["describe", "--always", "--dirty", "--abbrev=12"])
            .output();
        let commit = described.map_or_else(
            |_| "unknown".to_owned(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        );
        Ok(Self { root: root.to_path_buf(), commit })
    }

    /// A made-up one.
    #[cfg(test)]
    pub(crate) fn of_test(root: PathBuf) -> Self {
        Self { root, commit: "unknown".into() }
    }

    /// The commit checked out when this program started, and whether the tree differed from it.
    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    /// The folder of the root `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where builds go. The proofs have folders of their own in it: their flags would otherwise
    /// rebuild everything at every switch.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(target) => self.root.join(target),
            None => self.root.join("target"),
        }
    }

    /// A `cargo` call in the root, with the toolchain this program was started with.
    pub(crate) fn cargo(&self, words: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root).args(words);
        cargo
    }

    /// A `cargo` call in the root with another toolchain of rustup's.
    pub(crate) fn cargo_of(&self, toolchain: &str, words: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        // Set by the `cargo` that runs us; they would pin the inner call to our own toolchain.
        for inherited in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            cargo.env_remove(inherited);
        }
        cargo.current_dir(&self.root).arg(format!("+{toolchain}")).args(words);
        cargo
    }
}

/// Whether a command can be started and succeeds, silently: how tools are looked for.
pub(crate) fn answers(command: &mut Command) -> bool {
    use std::process::Stdio;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command to its end.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).display().to_string();
    let status = command.status().with_context(|| format!("{program} does not start"))?;
    if !status.success() {
        bail!("{program}: {status}");
    }
    Ok(())
}
