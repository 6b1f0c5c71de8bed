//! DuckDB's library, out of the package that its own Node bindings bring it in.
//!
//! ```text
//! npm pack, or curl ─► archive ─► sha512 as it was when it was tried ─► libduckdb.so in the cache
//! ```
//!
//! No distribution has the library, and building it takes half an hour. The version and its sums
//! are written here; `crates/measure/duckdb/src/place.rs` looks where this puts it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::cache;
use crate::workspace::answers;

/// Of the library.
pub(super) const VERSION: &str = "1.5.5";
/// Of the package.
const PACKAGE_VERSION: &str = "1.5.5-r.5";
const NAME: &str = "libduckdb.so";

/// The package of an architecture, and the sum of its archive (sha512sum's).
const PACKAGES: [(&str, &str, &str); 2] = [
    (
        "x86_64",
        "node-bindings-linux-x64",
        "902caae815e19fa4177f017cc957552ab8924873feadf556709e7a706f2a6739\
         4e669c72bd3e561a6ea332c871838762b4b94eb07b0837f0f8ed162b7235ee1d",
    ),
    (
        "aarch64",
        "node-bindings-linux-arm64",
        "09a7c7d8022f5eda700f29c6dca07fe2e10e1d11a516807b6ae091308c07dc12\
         8d2286ec00d5792d2a43277b5fc9108522c2ba7bc013d5eb1e5959eed83bf773",
    ),
];

/// Whether the library is where it will be looked for.
pub(super) fn is_there() -> bool {
    library().is_some_and(|path| path.is_file())
}

/// Where a file that belongs to the library is looked for.
pub(super) fn beside(name: &str) -> Option<PathBuf> {
    Some(library()?.with_file_name(name))
}

fn library() -> Option<PathBuf> {
    let named = std::env::var_os("WORKAHEAD_DUCKDB").map(PathBuf::from);
    named.or_else(|| Some(directory()?.join(NAME)))
}

fn directory() -> Option<PathBuf> {
    Some(cache()?.join("duckdb").join(VERSION))
}

/// Fetches it.
pub(super) fn fetch() -> Result<()> {
    let here = std::env::consts::ARCH;
    let package = PACKAGES.iter().find(|(architecture, ..)| *architecture == here);
    let Some((_, name, sum)) = package else {
        bail!("there is no package for {here}: build {NAME} and name it in WORKAHEAD_DUCKDB");
    };
    let directory = directory().context("HOME names no directory")?;
    let half = directory.with_extension("workahead-tmp");
    std::fs::create_dir_all(&half).with_context(|| half.display().to_string())?;
    let done =
        archive(name, &half).and_then(|archive| unpack(&archive, sum, &half)).and_then(|()| {
            // File by file: the rest of it belongs to the library too.
            std::fs::create_dir_all(&directory)?;
            ["LICENSE", NAME].iter().try_for_each(|name| {
                let fetched = half.join("package").join(name);
                std::fs::rename(fetched, directory.join(name)).context("move it into place")
            })
        });
    let _ = std::fs::remove_dir_all(&half);
    done
}

/// The package's archive, by whatever is there to fetch it.
fn archive(name: &str, into: &Path) -> Result<PathBuf> {
    println!("  fetching {NAME} {VERSION} (20 MB)");
    if answers(Command::new("npm").arg("--version")) {
        let package = format!("@duckdb/{name}@{PACKAGE_VERSION}");
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", &package]).current_dir(into);
        run(&mut npm)?;
    } else {
        let address =
            format!("https://registry.npmjs.org/@duckdb/{name}/-/{name}-{PACKAGE_VERSION}.tgz");
        run(Command::new("curl").args(["-fsSLO", &address]).current_dir(into))?;
    }
    let mut entries = std::fs::read_dir(into)?.flatten().map(|entry| entry.path());
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tgz");
    entries.find(is_archive).context("nothing was fetched")
}

/// Takes the library out of the archive, if it is the one that is known.
fn unpack(archive: &Path, sum: &str, into: &Path) -> Result<()> {
    check_sum(archive, sum)?;
    let library = format!("package/{NAME}");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(into).args([&library, "package/LICENSE"]);
    run(&mut tar)
}

/// Refuses an archive with another sum.
pub(super) fn check_sum(archive: &Path, sum: &str) -> Result<()> {
    let output = Command::new("sha512sum").arg(archive).output().context("sha512sum")?;
    let found = String::from_utf8_lossy(&output.stdout);
    if found.split_whitespace().next() != Some(sum) {
        bail!("the fetched archive is not the known one: its sha512 sum is {}", found.trim());
    }
    Ok(())
}

pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        let says = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}", says.lines().last().unwrap_or("no reason was given"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_that_loads_it_looks_for_the_same_version() {
        let root = Path::new("../crates/measure/duckdb/src/place.rs");
        let place = std::fs::read_to_string(root).unwrap();
        assert!(place.contains(&format!("VERSION: &str = \"{VERSION}\"")));
        assert!(PACKAGE_VERSION.starts_with(VERSION));
        assert!(PACKAGES.iter().all(|(.., sum)| sum.len() == 128));
    }

    #[test]
    fn another_archive_is_refused() {
        let any_file = Path::new("Cargo.toml");
        let error = unpack(any_file, PACKAGES[0].2, "nowhere".as_ref()).unwrap_err().to_string();
        assert!(error.contains("is not the known one"), "{error}");
    }
}
