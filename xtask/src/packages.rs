//! The workspace's packages, their targets and dependencies, as `cargo metadata` reports them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The command's package: it depends on nearly everything, and unites its features.
pub(crate) const COMMAND: &str = "workahead-cli";

/// A package of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root: `crates/execute/join`.
    pub(crate) path: String,
    /// Part of the default build.
    pub(crate) is_default: bool,
    /// Differs when it is built with all features.
    pub(crate) has_features: bool,
    pub(crate) targets: Vec<Target>,
    /// Names of the workspace's packages that it depends on, for whatever purpose.
    pub(crate) uses: Vec<String>,
}

impl Package {
    /// `join` of `crates/execute/join`.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// `execute` of `crates/execute/join`.
    pub(crate) fn wing(&self) -> Option<&str> {
        let mut parts = self.path.strip_prefix("crates/")?.split('/');
        let wing = parts.next()?;
        parts.next().map(|_| wing)
    }

    pub(crate) fn has_library(&self) -> bool {
        self.targets.iter().any(|target| target.kind == "lib" && target.is_tested)
    }
}

/// Something that Cargo builds of a package.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `lib`, `bin`, `test`, `bench`, `example`; any other kind of library is a `lib` too.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Has unit tests that are run.
    pub(crate) is_tested: bool,
    /// Built only with features that the default build does not have.
    pub(crate) wants_features: bool,
    /// Only of a build without some feature (`#![cfg(not(feature = …))]`).
    pub(crate) is_of_absence: bool,
}

/// All packages, in the order of the manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packages {
    pub(crate) all: Vec<Package>,
}

impl Packages {
    /// Asks Cargo.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let mut command =
            workspace.cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]);
        let output =
            command.stderr(Stdio::inherit()).output().context("cargo metadata does not start")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", output.status);
        }
        let raw = serde_json::from_slice(&output.stdout).context("cargo metadata's JSON")?;
        Ok(Self::of(raw, workspace.root()))
    }

    fn of(raw: Metadata, root: &Path) -> Self {
        let names: BTreeSet<String> = raw.packages.iter().map(|one| one.name.clone()).collect();
        let defaults: BTreeSet<String> = raw.workspace_default_members.into_iter().collect();
        let package = |one: RawPackage| {
            let folder = one.manifest_path.trim_end_matches("/Cargo.toml");
            let path = Path::new(folder).strip_prefix(root).unwrap_or(Path::new(folder));
            let mut uses: Vec<String> =
                one.dependencies.into_iter().map(|other| other.name).collect();
            uses.retain(|other| names.contains(other));
            Package {
                path: path.to_string_lossy().into_owned(),
                is_default: defaults.contains(&one.id),
                has_features: one.features.keys().any(|feature| feature != "default"),
                targets: one.targets.into_iter().filter_map(RawTarget::target).collect(),
                name: one.name,
                uses,
            }
        };
        Self { all: raw.packages.into_iter().map(package).collect() }
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Package> {
        self.all.iter().find(|package| package.name == name)
    }

    /// Names of the wings, each once.
    pub(crate) fn wings(&self) -> BTreeSet<&str> {
        self.all.iter().filter_map(Package::wing).collect()
    }

    /// Crates of the house, without the tasks.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &Package> {
        self.all.iter().filter(|package| package.path.starts_with("crates/"))
    }

    /// These, and all that depend on them.
    pub(crate) fn with_dependents(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut reached = names.clone();
        loop {
            let more: Vec<String> = self
                .all
                .iter()
                .filter(|package| !reached.contains(&package.name))
                .filter(|package| package.uses.iter().any(|used| reached.contains(used)))
                .map(|package| package.name.clone())
                .collect();
            if more.is_empty() {
                return reached;
            }
            reached.extend(more);
        }
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct RawPackage {
    id: String,
    name: String,
    manifest_path: String,
    dependencies: Vec<RawDependency>,
    targets: Vec<RawTarget>,
    features: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
}

#[derive(Deserialize)]
struct RawTarget {
    kind: Vec<String>,
    name: String,
    src_path: String,
    test: bool,
    #[serde(rename = "required-features", default)]
    required_features: Vec<String>,
}

impl RawTarget {
    fn target(self) -> Option<Target> {
        let kind = match self.kind.first()?.as_str() {
            "custom-build" => return None,
            kind @ ("bin" | "test" | "bench" | "example") => kind,
            _ => "lib",
        };
        let text = match kind {
            "test" => std::fs::read_to_string(&self.src_path).unwrap_or_default(),
            _ => String::new(),
        };
        Some(Target {
            kind: kind.to_owned(),
            name: self.name,
            is_tested: self.test,
            wants_features: !self.required_features.is_empty(),
            is_of_absence: text.contains("#![cfg(not(feature"),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The workspace that these tests belong to.
    pub(crate) fn ours() -> (Workspace, Packages) {
        let workspace = Workspace::find().unwrap();
        let packages = Packages::read(&workspace).unwrap();
        (workspace, packages)
    }

    #[test]
    fn the_house_is_read() {
        let (_, packages) = ours();
        let join = packages.named("workahead-join").unwrap();
        assert_eq!((join.folder(), join.wing()), ("join", Some("execute")));
        assert!(join.is_default && join.has_library());
        let sql = packages.named("workahead-sql").unwrap();
        assert!(!sql.is_default);
        let command = packages.named(COMMAND).unwrap();
        assert!(command.has_features && !command.has_library());
        assert_eq!((command.folder(), command.wing()), ("cli", None));
        assert!(command.targets.iter().any(|target| target.is_of_absence));
        assert!(packages.wings().contains("measure"));
        assert!(packages.crates().all(|package| package.name != "xtask"));
    }

    #[test]
    fn dependents_are_followed_to_the_end() {
        let (_, packages) = ours();
        let all = packages.with_dependents(&BTreeSet::from(["workahead-walks".to_owned()]));
        for name in ["workahead-walks", "workahead-join", "workahead-sql", COMMAND] {
            assert!(all.contains(name), "{name}");
        }
        assert!(!all.contains("workahead-duckdb") && !all.contains("xtask"));
    }
}
