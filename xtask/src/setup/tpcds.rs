//! DuckDB's extension `tpcds`, out of the Python package that DuckDB publishes it in.
//!
//! ```text
//! pip download ─► wheel ─► sha512 as it was when it was tried ─► beside libduckdb.so
//! ```
//!
//! It makes TPC-DS's tables and has the texts of its queries. An extension fits one version of the
//! library only, so both have one number.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::duckdb::{VERSION, beside, check_sum, run};

const FILE: &str = "tpcds.duckdb_extension";

/// The platform of an architecture's wheel, and the sum of that (sha512sum's).
const WHEELS: [(&str, &str, &str); 2] = [
    (
        "x86_64",
        "manylinux2014_x86_64",
        "e9bacaafc3c8048b9eb59db594fcabb2c2260b3b3bdbca29ad61da9e29843cc7\
         67559fa33d6f12f90b24e676a8b96da859b599c20e18af26fd241234e3dd1d6e",
    ),
    (
        "aarch64",
        "manylinux2014_aarch64",
        "a4f092dc7aca82e434360efda767ac5dc2fb909e207cb4f8bd39b892574dd00d\
         ed71b23647351368d7f0e7a992d353a1c7eda573d9e3a34d9fbfa2a61c480e64",
    ),
];

/// Whether the extension is where it will be looked for.
pub(super) fn is_there() -> bool {
    beside(FILE).is_some_and(|path| path.is_file())
}

/// Fetches it.
pub(super) fn fetch() -> Result<()> {
    let here = std::env::consts::ARCH;
    let wheel = WHEELS.iter().find(|(architecture, ..)| *architecture == here);
    let Some((_, platform, sum)) = wheel else {
        bail!("there is no package for {here}: put {FILE} beside the library by hand");
    };
    let file = beside(FILE).context("HOME names no directory")?;
    let half = file.with_extension("workahead-tmp");
    std::fs::create_dir_all(&half).with_context(|| half.display().to_string())?;
    let done = wheel_file(platform, &half)
        .and_then(|wheel| unpack(&wheel, sum, &half))
        .and_then(|found| std::fs::rename(found, &file).context("move the extension into place"));
    let _ = std::fs::remove_dir_all(&half);
    done
}

/// The wheel, by a pip of its own: the system's may be missing, or not allowed to do anything.
fn wheel_file(platform: &str, into: &Path) -> Result<PathBuf> {
    println!("  fetching {FILE} {VERSION} (6 MB)");
    let venv = into.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]);
    pip.args(["--platform", platform, "--dest"]).arg(into);
    run(pip.arg(format!("duckdb-extension-tpcds=={VERSION}")))?;
    let mut entries = std::fs::read_dir(into)?.flatten().map(|entry| entry.path());
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
    entries.find(is_wheel).context("nothing was fetched")
}

/// Takes the extension out of the wheel, if it is the one that is known.
fn unpack(wheel: &Path, sum: &str, into: &Path) -> Result<PathBuf> {
    check_sum(wheel, sum)?;
    let mut unzip = Command::new("python3");
    run(unzip.args(["-m", "zipfile", "-e"]).arg(wheel).arg(into))?;
    Ok(into.join(format!("duckdb_extension_tpcds/extensions/v{VERSION}")).join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_whole_and_another_wheel_is_refused() {
        assert!(WHEELS.iter().all(|(.., sum)| sum.len() == 128));
        let any_file = Path::new("Cargo.toml");
        let error = unpack(any_file, WHEELS[0].2, "nowhere".as_ref()).unwrap_err().to_string();
        assert!(error.contains("is not the known one"), "{error}");
    }
}
