//! The Python wheel: built by the workspace's own profile, installed into an environment of its
//! own, weighed, and tested there; and beside it the second wheel's module, as the workspace builds
//! it: as a package of its own it would build DataFusion once more.
//!
//! ```text
//! requirements-test.txt ─► target/python/venv ─► maturin ─► wheel ─► pip ─┬─► pytest
//! the workspace's libraries ─► target/python/packages/workahead_sql ──────┘
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::peers::venv::Venv;
use crate::stage::Stage;
use crate::test::Build;
use crate::workspace::{Workspace, succeed};

/// Below the root.
const PACKAGE: &str = "crates/execute/python";
const SQL_PACKAGE: &str = "crates/execute/python-sql";
/// Of the wheel: it is downloaded more often than it is built.
const WHEEL_BYTES_MAX: u64 = 8_000_000;
/// In the profile and with the features of all other tests: what they built isn't built again.
const TESTED: [&str; 4] = ["--profile", "dev", "--features", "workspace"];
/// Imports, of which the median is said.
const IMPORTS: usize = 9;

/// All stages; each only if the one before did.
pub(crate) fn stages(workspace: &Workspace) -> Vec<Stage> {
    let mut installed = None;
    let wheel = Stage::check("python wheel", || {
        installed = Some(install(workspace)?);
        Ok(true)
    });
    let Some(venv) = installed else { return vec![wheel] };
    let mut packages = None;
    let module = Stage::check("python sql module", || {
        packages = Some(sql_package(workspace)?);
        Ok(true)
    });
    let tests = packages
        .map(|packages| Stage::tests("python tests", vec![pytest(workspace, &venv, &packages)]));
    [wheel, module].into_iter().chain(tests).collect()
}

/// The same on their own; true when all pass.
pub(crate) fn run(workspace: &Workspace) -> bool {
    let stages = stages(workspace);
    stages.iter().for_each(|stage| println!("{}", stage.line()));
    !stages.iter().any(Stage::failed)
}

fn install(workspace: &Workspace) -> Result<Venv> {
    let folder = workspace.target().join("python");
    let (venv, wheel) = build_wheel(workspace, &folder, &TESTED)?;
    let bytes = std::fs::metadata(&wheel)?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    ensure!(
        bytes <= WHEEL_BYTES_MAX,
        "the wheel has {bytes} bytes, more than {WHEEL_BYTES_MAX}: what came in with its last \
         dependency?"
    );
    install_wheel(&venv, &wheel)?;
    let [bare, whole] = ["pass", "import workahead"].map(|script| median(&venv, script));
    println!("import workahead: {:.0} ms", (whole? - bare?) * 1e3);
    Ok(venv)
}

/// The second wheel's package, put together in a folder for packages.
fn sql_package(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = workspace.cargo(&["build"]);
    // Examples want what tests want: libraries alone would be built with fewer features, anew.
    build.args(Build::whole(workspace)?).args(["--lib", "--examples"]);
    succeed(&mut build).context("the module can't be built")?;
    let packages = workspace.target().join("python/packages");
    let _ = std::fs::remove_dir_all(&packages);
    let package = packages.join("workahead_sql");
    std::fs::create_dir_all(&package)?;
    let sources = workspace.root().join(SQL_PACKAGE).join("python/workahead_sql");
    for file in std::fs::read_dir(sources)? {
        let file = file?;
        // Python keeps a folder of compiled modules beside them.
        if file.file_type()?.is_file() {
            std::fs::copy(file.path(), package.join(file.file_name()))?;
        }
    }
    let module = workspace.target().join("debug/lib_workahead_sql.so");
    std::os::unix::fs::symlink(module, package.join("_workahead_sql.abi3.so"))?;
    Ok(packages)
}

/// Builds the first wheel for this machine, below a folder, beside an environment with what tests
/// and benches need.
pub(crate) fn build_wheel(
    workspace: &Workspace,
    folder: &Path,
    arguments: &[&str],
) -> Result<(Venv, PathBuf)> {
    let pinned = workspace.root().join(PACKAGE).join("requirements-test.txt");
    let venv = Venv::of(folder.join("venv"), &pinned)?;
    let wheels = folder.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(venv.python());
    maturin.current_dir(workspace.root());
    maturin.args(["-m", "maturin", "build"]).args(arguments).arg("--interpreter");
    maturin.arg(venv.python()).arg("--out").arg(&wheels);
    succeed(&mut maturin).context("the wheel can't be built")?;
    let wheel = only_file(&wheels)?;
    Ok((venv, wheel))
}

pub(crate) fn install_wheel(venv: &Venv, wheel: &Path) -> Result<()> {
    let mut pip = Command::new(venv.python());
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]).arg(wheel);
    succeed(&mut pip).context("the wheel can't be installed")
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

fn pytest(workspace: &Workspace, venv: &Venv, packages: &Path) -> Command {
    let mut pytest = Command::new(venv.python());
    // The tests' folder is part of the tree: nothing of theirs is kept in it.
    pytest.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.current_dir(workspace.root()).env("PYTHONPATH", packages);
    pytest.args([PACKAGE, SQL_PACKAGE].map(|package| workspace.root().join(package).join("tests")));
    let command = workspace.target().join("debug/workahead");
    if command.is_file() {
        pytest.env("WORKAHEAD_COMMAND", command);
    }
    pytest
}
