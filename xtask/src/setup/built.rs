//! mdBook, which makes the pages: built once, of the version that is written here.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cache;

const VERSION: &str = "0.5.4";

/// Where it is looked for.
pub(crate) fn program() -> Option<PathBuf> {
    Some(directory()?.join("bin/mdbook"))
}

fn directory() -> Option<PathBuf> {
    Some(cache()?.join("mdbook").join(VERSION))
}

/// Whether it has been built.
pub(super) fn is_there() -> bool {
    program().is_some_and(|program| program.is_file())
}

/// Builds it without its web server, which is half of it.
pub(super) fn fetch() -> Result<()> {
    let directory = directory().context("HOME names no directory")?;
    println!("  building mdBook {VERSION} (about three minutes of processor time)");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["install", "mdbook", "--locked", "--quiet", "--version", VERSION])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(&directory)
        // Its own: what is built here is of no use to the workspace.
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .status()
        .context("cargo does not start")?;
    let _ = std::fs::remove_dir_all(directory.join("target"));
    ensure!(status.success(), "cargo install mdbook ended with {status}");
    Ok(())
}
