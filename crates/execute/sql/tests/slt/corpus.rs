//! DataFusion's test files, and a directory to run them in.
//!
//! The crate `datafusion-sqllogictest` ships the files. Depending on it would pull in Avro, Spark
//! functions and all of DataFusion's features; `cargo info` unpacks a crate's source into the
//! registry and nothing else, checked against the index like any other.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqllogictest::{DefaultColumnType, Record, parse_file};

/// The version whose files fit the DataFusion that is built here.
const PACKAGE: &str = concat!("datafusion-sqllogictest@", "55.2.0");

/// The files, and the directory that is the current one while they run.
pub(crate) struct Corpus {
    files: PathBuf,
    _home: tempfile::TempDir,
}

impl Corpus {
    /// Finds the files, and enters a new directory with the data they expect around them.
    pub(crate) fn find() -> Result<Self, String> {
        let files = match registry() {
            Some(files) => files,
            None => {
                fetch()?;
                registry().ok_or_else(|| {
                    format!("`cargo info {PACKAGE}` unpacked nothing into the registry")
                })?
            }
        };
        let home = tempfile::tempdir().map_err(|error| format!("no temporary place: {error}"))?;
        // As in DataFusion's tree: the tests run in one crate and reach into the one beside it.
        let (here, data) = (home.path().join("sqllogictest"), home.path().join("core/tests/data"));
        std::fs::create_dir_all(&here)
            .and_then(|()| std::fs::create_dir_all(&data))
            .and_then(|()| std::fs::write(data.join("window_2.csv"), window()))
            .and_then(|()| std::env::set_current_dir(&here))
            .map_err(|error| format!("{}: {error}", here.display()))?;
        Ok(Self { files, _home: home })
    }

    /// The records of a file and of those it includes.
    pub(crate) fn records(&self, file: &str) -> Vec<Record<DefaultColumnType>> {
        let path = self.files.join(file);
        parse_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Empties the directory that a file's statements may write to.
    pub(crate) fn scratch(&self, file: &str) {
        let stem = Path::new(file).file_stem().expect("a file has a name");
        let scratch = Path::new("test_files/scratch").join(stem);
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).expect("what was written can be removed");
        }
        std::fs::create_dir_all(&scratch).expect("a temporary directory takes another");
    }
}

/// The unpacked files, if they are there.
fn registry() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cargo"))
    })?;
    let sources = std::fs::read_dir(home.join("registry/src")).ok()?;
    let package = PACKAGE.replace('@', "-");
    let found = sources.flatten().map(|source| source.path().join(&package).join("test_files"));
    found.into_iter().find(|files| files.is_dir())
}

fn fetch() -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["info", "--quiet", "--registry", "crates-io", PACKAGE])
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("`cargo info {PACKAGE}` failed, the test files come with it: {}", stderr.trim()))
}

/// Replaces a file that the crate does not ship: like it, sorted by a, b and c, with a repeating d.
fn window() -> String {
    let row = |i: usize| format!("0,{},{},{i},{}\n", i / 50, i / 25, (i * i + i / 3) % 5);
    "a0,a,b,c,d\n".to_owned() + &(0..100).map(row).collect::<String>()
}
