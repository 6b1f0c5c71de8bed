//! The Python wheel: built by the workspace's own profile, installed into an environment of its
//! own, weighed, and tested there.
//!
//! ```text
//! requirements-test.txt ─► target/python/venv ─► maturin ─► wheel ─► pip ─► pytest
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::peers::venv::Venv;
use crate::stage::Stage;
use crate::workspace::{Workspace, succeed};

/// Below the root.
const PACKAGE: &str = "crates/python";
/// Of the wheel: it is downloaded more often than it is built.
const WHEEL_BYTES_MAX: u64 = 8_000_000;
/// Imports, of which the median is said.
const IMPORTS: usize = 9;

/// Both stages; the second only if there is a wheel to test.
pub(crate) fn stages(workspace: &Workspace) -> Vec<Stage> {
    let mut installed = None;
    let wheel = Stage::check("python wheel", || {
        installed = Some(install(workspace)?);
        Ok(true)
    });
    let tests = installed.map(|venv| Stage::tests("python tests", vec![pytest(workspace, &venv)]));
    std::iter::once(wheel).chain(tests).collect()
}

/// The same on its own; true when both pass.
pub(crate) fn run(workspace: &Workspace) -> bool {
    let stages = stages(workspace);
    stages.iter().for_each(|stage| println!("{}", stage.line()));
    !stages.iter().any(Stage::failed)
}

fn install(workspace: &Workspace) -> Result<Venv> {
    let folder = workspace.target().join("python");
    let pinned = workspace.root().join(PACKAGE).join("requirements-test.txt");
    let venv = Venv::of(folder.join("venv"), &pinned)?;
    let wheels = folder.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    succeed(&mut maturin(workspace, &venv, &wheels)).context("the wheel can't be built")?;
    let wheel = only_file(&wheels)?;
    let bytes = std::fs::metadata(&wheel)?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    ensure!(
        bytes <= WHEEL_BYTES_MAX,
        "the wheel has {bytes} bytes, more than {WHEEL_BYTES_MAX}: what came in with its last \
         dependency?"
    );
    let mut pip = Command::new(venv.python());
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]).arg(&wheel);
    succeed(&mut pip).context("the wheel can't be installed")?;
    let [bare, whole] = ["pass", "import workahead"].map(|script| median(&venv, script));
    println!("import workahead: {:.0} ms", (whole? - bare?) * 1e3);
    Ok(venv)
}

/// In the profile of all other tests, so that what they built is not built again.
fn maturin(workspace: &Workspace, venv: &Venv, wheels: &Path) -> Command {
    let mut maturin = Command::new(venv.python());
    maturin.current_dir(workspace.root());
    maturin.args(["-m", "maturin", "build", "--profile", "dev", "--interpreter"]);
    maturin.arg(venv.python()).arg("--out").arg(wheels);
    maturin
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut files = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    match (files.next(), files.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => bail!("{} holds not just one wheel", folder.display()),
    }
}

/// Seconds that the interpreter takes for a script.
fn median(venv: &Venv, script: &str) -> Result<f64> {
    let mut times = Vec::with_capacity(IMPORTS);
    for _ in 0..IMPORTS {
        let start = Instant::now();
        succeed(Command::new(venv.python()).args(["-c", script]))?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(IMPORTS / 2).map_or(0.0, Duration::as_secs_f64))
}

fn pytest(workspace: &Workspace, venv: &Venv) -> Command {
    let mut pytest = Command::new(venv.python());
    // The tests' folder is part of the tree: nothing of theirs is kept in it.
    pytest.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.current_dir(workspace.root()).arg(workspace.root().join(PACKAGE).join("tests"));
    let command = workspace.target().join("debug/workahead");
    if command.is_file() {
        pytest.env("WORKAHEAD_COMMAND", command);
    }
    pytest
}
