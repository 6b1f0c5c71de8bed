//! Release wheels: both packages, for x86-64 and aarch64.
//!
//! ```text
//! requirements-wheels.txt ─► target/wheels/venv ─► maturin, zig ─► target/wheels/*.whl
//! ```
//!
//! If a toolchain is unavailable, the reason is printed and the rest is built.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::peers::venv::Venv;
use crate::workspace::{Workspace, answers, succeed};

/// Packages by name, with the folders of their manifests.
const PACKAGES: [(&str, &str); 2] = [("core", "."), ("sql", "crates/execute/python-sql")];
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
/// The C library that a wheel promises to be content with: Debian 11's is newer.
const LIBC: &str = "manylinux_2_28";

/// Builds the packages that are named, or all; true when none was left out.
pub(crate) fn run(workspace: &Workspace, names: &[&str]) -> Result<bool> {
    for name in names {
        if !PACKAGES.iter().any(|(known, _)| known == name) {
            bail!("there is no wheel {name:?}: choose from core, sql");
        }
    }
    let folder = workspace.target().join("wheels");
    let pinned = workspace.root().join("crates/execute/python/requirements-wheels.txt");
    let venv = Venv::of(folder.join("venv"), &pinned)?;
    let mut all = true;
    for (name, package) in PACKAGES {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        for target in TARGETS {
            println!("== {name} for {target}");
            let done = toolchain(target)
                .and_then(|()| succeed(&mut maturin(workspace, &venv, package, target)));
            if let Err(why) = done {
                println!("{name} for {target} is not built: {why:#}");
                all = false;
            }
        }
    }
    list(&folder)?;
    Ok(all)
}

/// Rust's own libraries for a target.
fn toolchain(target: &str) -> Result<()> {
    let mut sysroot = Command::new("rustc");
    sysroot.args(["--target", target, "--print", "target-libdir"]);
    let output = sysroot.output().context("rustc does not start")?;
    let libraries = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && Path::new(&libraries).is_dir() {
        return Ok(());
    }
    if !answers(Command::new("rustup").arg("--version")) {
        bail!("Rust's libraries for it are not installed, and there is no rustup to ask");
    }
    succeed(Command::new("rustup").args(["target", "add", target]))
        .context("rustup can't add the target")
}

fn maturin(workspace: &Workspace, venv: &Venv, package: &str, target: &str) -> Command {
    let python = venv.python();
    let programs = python.parent().map(Path::to_owned).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs).chain(std::env::split_paths(&path));
    let mut maturin = Command::new(&python);
    maturin.current_dir(workspace.root().join(package));
    maturin.args(["-m", "maturin", "build", "--release", "--zig", "--compatibility", LIBC]);
    maturin.args(["--target", target, "--out"]).arg(workspace.target().join("wheels"));
    // Where zig is looked for.
    if let Ok(path) = std::env::join_paths(all) {
        maturin.env("PATH", path);
    }
    maturin
}

fn list(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") {
            println!("{:6.1} MB  {name}", entry.metadata()?.len() as f64 / 1e6);
        }
    }
    Ok(())
}
