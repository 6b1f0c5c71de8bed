//! Programs that crates.io has as sources: built once, of the versions that are written here.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cache;

/// A program and how it is built.
pub(crate) struct SourceProgram {
    crate_name: &'static str,
    version: &'static str,
    /// Of its features, those that are wanted.
    features: &'static str,
    /// Processor time of the build, to announce the wait.
    minutes: &'static str,
}

/// Makes the pages. Without its web server, which is half of it.
pub(crate) const MDBOOK: SourceProgram = SourceProgram {
    crate_name: "mdbook",
    version: "0.5.4",
    features: "search",
    minutes: "one minute",
};

/// Looks at licences and sources. Without what fetches advisories.
pub(crate) const CARGO_DENY: SourceProgram = SourceProgram {
    crate_name: "cargo-deny",
    version: "0.20.2",
    features: "",
    minutes: "two minutes",
};

impl SourceProgram {
    /// Where it is looked for.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        Some(self.directory()?.join("bin").join(self.crate_name))
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(cache()?.join(self.crate_name).join(self.version))
    }

    /// Whether it has been built.
    pub(super) fn is_there(&self) -> bool {
        self.program().is_some_and(|program| program.is_file())
    }

    /// Builds it.
    pub(super) fn fetch(&self) -> Result<()> {
        let Self { crate_name, version, features, minutes } = self;
        let directory = self.directory().context("HOME names no directory")?;
        println!("  building {crate_name} {version} (about {minutes} of processor time)");
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["install", crate_name, "--locked", "--quiet", "--version", version])
            .args(["--no-default-features", "--features", features, "--root"])
            .arg(&directory)
            // They run for seconds, and are built for minutes if they are to be fast.
            .arg("--debug")
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            // Its own: the workspace has no use for these builds.
            .env("CARGO_TARGET_DIR", directory.join("target"))
            .status()
            .context("cargo does not start")?;
        let _ = std::fs::remove_dir_all(directory.join("target"));
        ensure!(status.success(), "cargo install {crate_name} ended with {status}");
        Ok(())
    }
}
