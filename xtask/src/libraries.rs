//! Promises of the crates for programs without an engine: walks and lookup build without `std`, on
//! the oldest Rust that the manifest names, and as the packages that would be uploaded.

use anyhow::{Context, Result};

use crate::setup::{NO_STD_TARGET, has_target};
use crate::stage::Stage;
use crate::workspace::{Workspace, answers};

/// Builds of the libraries. Each is selected alone: what is built beside it would add features.
const BUILDS: [&[&str]; 6] = [
    &["check", "-p", "workahead-walks", NO_DEFAULT],
    &["check", "-p", "workahead-lookup", NO_DEFAULT],
    &["check", "-p", "workahead-lookup", NO_DEFAULT, "--features", "hashbrown"],
    &["check", "-p", "workahead-lookup"],
    &["check", "-p", "workahead-walks"],
    &["check", "-p", "workahead-lookup", "--all-features"],
];

/// Without `std`.
const NO_DEFAULT: &str = "--no-default-features";

/// With what they stand on, since none of them is in the registry yet.
const PACKAGE: [&str; 10] = [
    "package",
    "--offline",
    "--allow-dirty",
    "--no-verify",
    "-p",
    "workahead-machine",
    "-p",
    "workahead-walks",
    "-p",
    "workahead-lookup",
];

/// The three stages; the oldest Rust is left out, by name, where it is not installed.
pub(crate) fn stages(workspace: &Workspace) -> Result<Vec<Stage>> {
    // For a target that has no `std`, where it is installed: a host would lend its own.
    let has_no_std = has_target(NO_STD_TARGET);
    let of = |words: &&[&str]| {
        let mut command = workspace.cargo(words);
        if has_no_std && words.contains(&NO_DEFAULT) {
            command.args(["--target", NO_STD_TARGET]);
        }
        command
    };
    let here = BUILDS.iter().map(of).collect();
    let packages = vec![workspace.cargo(&PACKAGE)];
    Ok(vec![
        Stage::commands("without std", here),
        oldest(workspace)?,
        Stage::commands("packages", packages),
    ])
}

fn oldest(workspace: &Workspace) -> Result<Stage> {
    let manifest = std::fs::read_to_string(workspace.root().join("Cargo.toml"))?;
    let version = rust_version(&manifest).context("the manifest names no rust-version")?;
    let mut probe = workspace.cargo_of(&version, &["--version"]);
    if !answers(probe.env("RUSTUP_AUTO_INSTALL", "0")) {
        let why = format!("not installed: rustup toolchain install {version} --profile minimal");
        return Ok(Stage::skipped("oldest Rust", why));
    }
    let target = workspace.target().join("oldest");
    let of = |words: &&[&str]| {
        let mut command = workspace.cargo_of(&version, words);
        command.env("CARGO_TARGET_DIR", &target);
        command
    };
    Ok(Stage::commands("oldest Rust", BUILDS.iter().map(of).collect()))
}

/// `rust-version` of the workspace.
fn rust_version(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let version = manifest.get("workspace")?.get("package")?.get("rust-version")?;
    version.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_workspaces() {
        let manifest = "[workspace.package]\nrust-version = \"1.89\"\n";
        assert_eq!(rust_version(manifest).as_deref(), Some("1.89"));
        assert_eq!(rust_version("[package]\nrust-version = \"1.60\"\n"), None);
        assert_eq!(rust_version("no manifest"), None);
    }
}
