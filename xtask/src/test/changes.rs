//! `cargo xtask test --changed`: what differs from `origin/main`, and what depends on it.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::packages::Packages;
use crate::workspace::Workspace;

/// The base of a comparison: the first of these that there is.
const BASES: [&str; 2] = ["origin/main", "main"];

/// Files that every package is built with.
const OF_ALL: [&str; 4] = ["Cargo.toml", "Cargo.lock", "clippy.toml", ".cargo/config.toml"];

/// The packages that changed, and those to be tested for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeSet {
    /// The commit that was compared with, and its name.
    pub(crate) base: String,
    pub(crate) files: usize,
    /// Packages that changed.
    pub(crate) packages: BTreeSet<String>,
    /// These, and what depends on them.
    pub(crate) reached: BTreeSet<String>,
    /// Stages that no package stands for.
    pub(crate) stages: BTreeSet<&'static str>,
}

/// Compares the working tree, with what is not committed yet.
pub(crate) fn read(workspace: &Workspace, packages: &Packages) -> Result<ChangeSet> {
    let git = |words: &[&str]| -> Result<String> {
        let mut git = Command::new("git");
        let output = git.current_dir(workspace.root()).args(words).output();
        let output = output.context("git does not start")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let there = |name: &&&str| git(&["rev-parse", "--verify", "--quiet", name]).is_ok();
    let Some(name) = BASES.iter().find(there) else {
        bail!("--changed compares with {}, and there is neither", BASES.join(" or "));
    };
    let base = git(&["merge-base", "HEAD", name])?.trim().to_owned();
    let differ = git(&["diff", "--name-only", "--no-renames", &base])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<&str> = differ.lines().chain(new.lines()).collect();
    let links = links(workspace, packages);
    let short = base.get(..12).unwrap_or(&base);
    Ok(ChangeSet { base: format!("{name} ({short})"), ..of(&files, packages, &links) })
}

/// Folders of the repository that are linked into a package's: the package embeds them.
fn links(workspace: &Workspace, packages: &Packages) -> Vec<(String, String)> {
    let mut links = Vec::new();
    for package in packages.crates() {
        let folder = workspace.root().join(&package.path);
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let Ok(path) = entry.path().canonicalize() else { continue };
            if let Some(path) = path.strip_prefix(workspace.root()).ok().filter(|_| is_link) {
                links.push((path.to_string_lossy().into_owned(), package.name.clone()));
            }
        }
    }
    links
}

fn of(files: &[&str], packages: &Packages, links: &[(String, String)]) -> ChangeSet {
    let mut changed = ChangeSet { files: files.len(), ..ChangeSet::default() };
    let below = |file: &str, path: &str| {
        file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for file in files {
        if OF_ALL.contains(file) {
            changed.packages.extend(packages.all.iter().map(|package| package.name.clone()));
            changed.stages.insert("licences");
        }
        let owners = packages.all.iter().filter(|package| below(file, &package.path));
        changed.packages.extend(owners.map(|package| package.name.clone()));
        let linked = links.iter().filter(|(path, _)| below(file, path));
        changed.packages.extend(linked.map(|(_, name)| name.clone()));
        if file.starts_with("docs/") || file.ends_with(".md") {
            changed.stages.insert("docs");
        }
        if *file == "deny.toml" {
            changed.stages.insert("licences");
        }
        if file.starts_with("vm/") {
            changed.stages.insert("guest");
        }
        if file.starts_with("crates/execute/python") {
            changed.stages.insert("python");
        }
    }
    if changed.packages.contains("xtask") {
        changed.stages.insert("xtask");
    }
    changed.reached = packages.with_dependents(&changed.packages);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::tests::ours;

    #[test]
    fn files_lead_to_packages_and_stages() {
        let (workspace, packages) = ours();
        let links = links(&workspace, &packages);
        let of = |files: &[&str]| of(files, &packages, &links);
        let join = of(&["crates/execute/join/src/lib.rs"]);
        assert_eq!(join.packages, BTreeSet::from(["workahead-join".to_owned()]));
        assert!(join.reached.contains("workahead-cli") && join.reached.contains("workahead-sql"));
        assert!(!join.reached.contains("workahead-walks") && join.stages.is_empty());
        let page = of(&["docs/walks.md"]);
        assert!(page.reached.is_empty() && page.stages.contains("docs"));
        let embedded = of(&["studies/hassanein/speedup.toml"]);
        assert!(embedded.packages.contains("workahead-study"), "{embedded:?}");
        assert!(of(&["Cargo.lock"]).reached.contains("workahead-machine"));
        assert!(of(&["xtask/src/main.rs"]).stages.contains("xtask"));
        assert!(of(&["bench/README"]).reached.is_empty());
    }
}
