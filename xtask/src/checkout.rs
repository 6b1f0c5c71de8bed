//! A target folder that several checkouts share, so that one never takes what another has built.
//!
//! Cargo names what it builds of a checkout by the path *within* the checkout, and believes the
//! times of files: a checkout whose sources are older than what another one has built last takes
//! that for its own. So the target folder says which checkout built there last; another one first
//! makes its sources newer than anything that is built, and no two of them build or test at once.
//!
//! ```text
//! target/checkout: shared lock while a checkout's tasks run, exclusive while it changes hands
//!   is it us? ── yes ──► go on
//!        └─ no: wait for those who hold it ──► touch all sources, write our name ──► start anew
//! ```
//!
//! A target folder inside of the checkout is nobody else's, and has no such file.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Below the target folder.
const STAMP: &str = "checkout";

/// Held while a checkout builds and tests in a target folder.
pub(crate) struct TargetLock {
    /// `None` where the folder is the checkout's own.
    _stamp: Option<File>,
    /// Sources were touched: what runs now may be another checkout's program.
    pub(crate) changed_hands: bool,
}

/// Makes the target folder ours; waits where another checkout's tasks run.
pub(crate) fn hold(workspace: &Workspace) -> Result<TargetLock> {
    hold_folder(workspace.root(), &workspace.target())
}

/// Builds these tasks from our own sources, and runs the same words with them.
pub(crate) fn start_anew(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    let mut again = workspace.cargo(&["run", "--quiet", "--package", "xtask", "--", "test"]);
    Ok(again.args(words).status().context("cargo does not start")?.success())
}

fn hold_folder(root: &Path, target: &Path) -> Result<TargetLock> {
    if target.starts_with(root) {
        return Ok(TargetLock { _stamp: None, changed_hands: false });
    }
    let name = name_of(root)?;
    std::fs::create_dir_all(target).with_context(|| target.display().to_string())?;
    let path = target.join(STAMP);
    let mut options = File::options();
    let mut stamp = options.read(true).write(true).create(true).truncate(false).open(&path)?;
    let mut changed_hands = false;
    loop {
        stamp.lock_shared()?;
        if read(&mut stamp)? == name {
            return Ok(TargetLock { _stamp: Some(stamp), changed_hands });
        }
        stamp.unlock()?;
        if stamp.try_lock().is_err() {
            println!("waiting for another checkout that builds in {}", target.display());
            stamp.lock()?;
        }
        touch_sources(root)?;
        stamp.set_len(0)?;
        stamp.rewind()?;
        stamp.write_all(name.as_bytes())?;
        stamp.unlock()?;
        changed_hands = true;
    }
}

fn read(stamp: &mut File) -> Result<String> {
    let mut text = String::new();
    stamp.rewind()?;
    stamp.read_to_string(&mut text)?;
    Ok(text)
}

/// A checkout's place, and what the file system calls it: another may have lain there before.
fn name_of(root: &Path) -> Result<String> {
    let root = root.canonicalize()?;
    let about = root.metadata()?;
    Ok(format!("{} {}:{}", root.display(), about.dev(), about.ino()))
}

/// Makes every source newer than what is built.
fn touch_sources(root: &Path) -> Result<()> {
    let mut list = Command::new("git");
    list.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = list.output().context("git does not start")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let now = SystemTime::now();
    for path in output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let path = root.join(String::from_utf8_lossy(path).as_ref());
        // Deleted but not yet committed; links lead to what is listed itself.
        if path.symlink_metadata().is_ok_and(|about| about.is_file()) {
            File::open(&path)
                .and_then(|file| file.set_modified(now))
                .with_context(|| format!("cannot touch {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
