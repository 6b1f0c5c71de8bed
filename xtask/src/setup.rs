//! `cargo xtask setup`: lists the requirements of the tests, and installs them where possible.
//!
//! Idempotent, and quick when nothing is missing. Debian packages are installed when root, with
//! every service held back; without root, the exact command is printed.

mod duckdb;
mod guest;
pub(crate) mod source_program;
mod tpcds;

pub(crate) use guest::{ARM, ARM_COMPILER, boots_arm};

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::test::Depth;
use crate::workspace::answers;

/// Something the tests call.
struct Need {
    name: &'static str,
    why: &'static str,
    present: fn() -> bool,
    remedy: Remedy,
    weight: Weight,
}

enum Remedy {
    /// Debian packages that bring it.
    Packages(&'static [&'static str]),
    /// A component of the toolchain in use.
    Component(&'static str),
    /// The standard libraries of another target, for the toolchain in use.
    Target(&'static str),
    /// A file that we fetch ourselves.
    Fetched(fn() -> Result<()>),
    /// Too large to install unasked.
    Words(&'static str),
}

#[derive(PartialEq, Eq)]
enum Weight {
    /// Without it the tests can't run.
    Required,
    /// Without it one stage is skipped, and says so.
    Useful,
}

fn needs(depth: Depth) -> Vec<Need> {
    let mut needs = of_default_build();
    needs.extend(of_studies());
    if depth >= Depth::All {
        needs.extend(of_sources());
        needs.extend(of_proofs());
        needs.extend(guest::needs());
    }
    if depth >= Depth::Full {
        needs.extend(guest::needs_of_arm());
    }
    needs
}

fn of_default_build() -> Vec<Need> {
    [
        Need {
            name: "C compiler",
            why: "links every program; builds zstd",
            present: || has_program("cc"),
            remedy: Remedy::Packages(&["build-essential"]),
            weight: Weight::Required,
        },
        Need {
            name: "git",
            why: "tidy reads the tracked files",
            present: || has_program("git"),
            remedy: Remedy::Packages(&["git"]),
            weight: Weight::Required,
        },
        Need {
            name: "rustfmt",
            why: "format check",
            present: || has_program("cargo-fmt") && has_program("rustfmt"),
            remedy: Remedy::Component("rustfmt"),
            weight: Weight::Required,
        },
        Need {
            name: "clippy",
            why: "lints",
            present: || has_program("cargo-clippy"),
            remedy: Remedy::Component("clippy"),
            weight: Weight::Required,
        },
        Need {
            name: "no-std target",
            why: "builds walks and lookup where there is no std that could slip in",
            present: || has_target(NO_STD_TARGET),
            remedy: Remedy::Target(NO_STD_TARGET),
            weight: Weight::Useful,
        },
        Need {
            name: "curl",
            why: "fetches DuckDB's library where npm doesn't",
            present: || has_program("curl"),
            remedy: Remedy::Packages(&["curl", "ca-certificates"]),
            weight: Weight::Required,
        },
        Need {
            name: "valgrind",
            why: "counts instructions and misses; checks memory where there is no nightly",
            present: || has_program("valgrind"),
            remedy: Remedy::Packages(&["valgrind"]),
            weight: Weight::Required,
        },
    ]
    .into()
}

/// Programs that only `cargo xtask test --all` calls.
fn of_proofs() -> [Need; 3] {
    [
        Need {
            name: "Python",
            why: "3.11 or newer with venv: the wheel is built, installed and tested",
            present: has_python,
            remedy: Remedy::Packages(&["python3", "python3-venv"]),
            weight: Weight::Required,
        },
        Need {
            name: "DuckDB tpcds",
            why: "its extension: makes TPC-DS's tables, has its queries, and DuckDB answers them",
            present: tpcds::is_there,
            remedy: Remedy::Fetched(tpcds::fetch),
            weight: Weight::Required,
        },
        Need {
            name: "nightly Rust",
            why: "AddressSanitizer (and Miri, with its component) for the unsafe leaves",
            present: has_nightly,
            remedy: Remedy::Words("rustup toolchain install nightly --component miri,rust-src"),
            weight: Weight::Useful,
        },
    ]
}

/// Programs that studies run on, are held against and are read with.
fn of_studies() -> [Need; 5] {
    [
        Need {
            name: "PostgreSQL",
            why: "15 or newer: the engine's tests run against a real server of their own",
            present: has_postgres,
            remedy: Remedy::Packages(&["postgresql"]),
            weight: Weight::Required,
        },
        Need {
            name: "MariaDB",
            why: "10.11 or newer, as above",
            present: || has_server("mariadbd") && has_program("mariadb"),
            remedy: Remedy::Packages(&["mariadb-server"]),
            weight: Weight::Required,
        },
        Need {
            name: "Chromium",
            why: "opens the report, as a reader does",
            present: || has_program("chromium") || has_program("chromium-browser"),
            remedy: Remedy::Packages(&["chromium"]),
            weight: Weight::Required,
        },
        Need {
            name: "sysbench",
            why: "its counters and its client beside ours",
            present: || has_program("sysbench"),
            remedy: Remedy::Packages(&["sysbench"]),
            weight: Weight::Required,
        },
        Need {
            name: "DuckDB",
            why: "its library, loaded when a study asks for it",
            present: duckdb::is_there,
            remedy: Remedy::Fetched(duckdb::fetch),
            weight: Weight::Required,
        },
    ]
}

/// Tools that make pages and check dependencies.
fn of_sources() -> [Need; 2] {
    [
        Need {
            name: "mdBook",
            why: "makes the pages of docs/",
            present: || source_program::MDBOOK.is_there(),
            remedy: Remedy::Fetched(|| source_program::MDBOOK.fetch()),
            weight: Weight::Required,
        },
        Need {
            name: "cargo-deny",
            why: "the licences and sources of what we build on",
            present: || source_program::CARGO_DENY.is_there(),
            remedy: Remedy::Fetched(|| source_program::CARGO_DENY.fetch()),
            weight: Weight::Required,
        },
    ]
}

/// Where fetched files go: below the user's cache directory.
pub(crate) fn cache() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(cache?.join("workahead"))
}

/// Debian keeps every version's programs in a folder of its own, outside of `PATH`.
fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let kept = versions.filter(|entry| entry.path().join("bin/initdb").exists());
    let newest = kept.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max();
    newest.is_some_and(|version| version >= POSTGRES_MIN) || has_program("initdb")
}

const POSTGRES_MIN: u32 = 15;

/// Servers are often outside of the `PATH` of anyone but root.
fn has_server(program: &str) -> bool {
    has_program(program) || has_program(&format!("/usr/sbin/{program}"))
}

/// Debian's python3 comes without what `venv` needs.
fn has_python() -> bool {
    let script = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    answers(Command::new("python3").args(["-c", script]))
}

fn has_program(program: &str) -> bool {
    answers(Command::new(program).arg("--version"))
}

/// A target without `std`.
pub(crate) const NO_STD_TARGET: &str = "x86_64-unknown-none";

/// Whether the toolchain in use has the libraries of a target.
pub(crate) fn has_target(target: &str) -> bool {
    let words = ["--print", "target-libdir", "--target", target];
    let output = Command::new("rustc").args(words).output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout);
        output.status.success() && std::path::Path::new(folder.trim_end()).exists()
    })
}

/// Whether rustup has a nightly toolchain.
pub(crate) fn has_nightly() -> bool {
    let mut cargo = Command::new("cargo");
    cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").args(["+nightly", "--version"]);
    answers(&mut cargo)
}

/// Lists the needs, installs what it can, and returns whether everything required is there.
pub(crate) fn run(depth: Depth) -> Result<bool> {
    let needs = needs(depth);
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.present)()).collect();
    for need in &needs {
        let there = !missing.iter().any(|other| other.name == need.name);
        println!("  {}  {:<13} {}", if there { "found  " } else { "missing" }, need.name, need.why);
    }
    if missing.is_empty() {
        return Ok(true);
    }
    install_packages(&missing)?;
    for need in &missing {
        match need.remedy {
            Remedy::Component(component) => add("component", component),
            Remedy::Target(target) => add("target", target),
            Remedy::Fetched(fetch) => {
                if let Err(error) = fetch() {
                    println!("  not fetched: {error:#}");
                }
            }
            Remedy::Words(words) => println!("  not installed unasked: {words}"),
            Remedy::Packages(_) => {}
        }
    }
    let lacking: Vec<&str> = missing
        .iter()
        .filter(|need| need.weight == Weight::Required && !(need.present)())
        .map(|need| need.name)
        .collect();
    if !lacking.is_empty() {
        bail!("still missing: {}; install it as said above, then try again", lacking.join(", "));
    }
    Ok(true)
}

/// Installs the Debian packages of the missing needs in one go, or says how.
fn install_packages(missing: &[&Need]) -> Result<()> {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|need| match need.remedy {
            Remedy::Packages(packages) => Some(packages),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !has_program("apt-get") || !is_root() {
        println!("  install it with: sudo apt-get install --no-install-recommends {list}");
        return Ok(());
    }
    println!("  installing {list}");
    let _held = HeldServices::hold()?;
    if !apt(&["install", "--no-install-recommends", "-y", "-q"], &packages)? {
        // A machine that never looked has no package list, or an old one.
        apt(&["update", "-q"], &[])?;
        if !apt(&["install", "--no-install-recommends", "-y", "-q"], &packages)? {
            println!("  apt-get could not install {list}");
        }
    }
    Ok(())
}

fn apt(words: &[&str], packages: &[&str]) -> Result<bool> {
    let status = Command::new("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(words)
        .args(packages)
        .stdin(std::process::Stdio::null())
        .status()
        .context("apt-get does not start")?;
    Ok(status.success())
}

/// Adds a component or a target to the toolchain in use.
fn add(kind: &str, name: &str) {
    let status = Command::new("rustup").args([kind, "add", name]).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("  add it with: rustup {kind} add {name}");
        println!("  (or install the {name} that belongs to the toolchain in use)");
    }
}

fn is_root() -> bool {
    let Ok(output) = Command::new("id").arg("-u").output() else { return false };
    output.stdout.trim_ascii() == b"0"
}

/// Debian's own way to say that no package may start a service while it is installed: a
/// `policy-rc.d` that answers 101. Put in place only where there is none, and taken away after.
struct HeldServices {
    ours: bool,
}

const POLICY: &str = "/usr/sbin/policy-rc.d";

impl HeldServices {
    fn hold() -> Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        if std::path::Path::new(POLICY).exists() {
            return Ok(Self { ours: false });
        }
        std::fs::write(POLICY, "#!/bin/sh\nexit 101\n").context(POLICY)?;
        std::fs::set_permissions(POLICY, std::fs::Permissions::from_mode(0o755)).context(POLICY)?;
        Ok(Self { ours: true })
    }
}

impl Drop for HeldServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_file(POLICY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_says_what_it_is_for() {
        for need in needs(Depth::Full) {
            assert!(!need.name.is_empty() && !need.why.is_empty());
            if let Remedy::Packages(packages) = need.remedy {
                assert!(!packages.is_empty(), "{} has no package", need.name);
            }
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        assert!(!has_program("no-such-program-here"));
        assert!(has_program("cargo"));
        assert!(!has_target("no-such-target-here"));
    }
}
