//! `cargo xtask features`: every build has the packages below DataFusion with the same features.
//!
//! Cargo builds a package anew, and all that depend on it, when its features change. A feature of
//! the command that changes them would build DataFusion again, most of an hour on two CPUs.
//!
//! ```text
//! sql ⊂ sql, cluster ⊂ sql, cluster, scheduler ⊂ the whole workspace ⊃ the wheel for SQL
//! ```
//!
//! And the join for engines brings only what plans are made of.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::workspace::Workspace;

/// A build, and the arguments of Cargo that select it.
struct Selection {
    name: &'static str,
    arguments: &'static [&'static str],
}

const WHEEL: Selection =
    Selection { name: "the wheel", arguments: &["-p", "workahead-python-sql"] };
const SQL: Selection =
    Selection { name: "sql", arguments: &["-p", "workahead-cli", "--features", "sql"] };
const CLUSTER: Selection =
    Selection { name: "cluster", arguments: &["-p", "workahead-cli", "--features", "cluster"] };
const FULL: Selection = Selection {
    name: "cluster, scheduler",
    arguments: &["-p", "workahead-cli", "--features", "cluster,scheduler"],
};
const WORKSPACE: Selection = Selection {
    name: "the workspace",
    arguments: &["--workspace", "--features", "workahead-cli/cluster,workahead-cli/scheduler"],
};

/// A build, and one that follows it with more features.
const STEPS: [(&Selection, &Selection); 4] =
    [(&SQL, &CLUSTER), (&CLUSTER, &FULL), (&FULL, &WORKSPACE), (&WHEEL, &WORKSPACE)];

/// Where the union of the features is named.
const MANIFEST: &str = "crates/execute/sql/Cargo.toml";

/// The join for engines on DataFusion, as they would add it.
const JOIN: Selection = Selection { name: "the join", arguments: &["-p", "workahead-datafusion"] };
/// Crates that it must not bring: each would add minutes to an engine's build.
const NOT_IN_JOIN: [&str; 4] = ["datafusion", "datafusion-sql", "sqlparser", "parquet"];

/// Versions of packages, each with the sets of features that it is built with.
type Packages = BTreeMap<String, BTreeSet<String>>;

/// Compares all builds; true when each step builds no package again.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let below = below_datafusion(workspace)?;
    let mut is_same = true;
    for (first, second) in STEPS {
        let (mut less, more) = (read(workspace, first)?, read(workspace, second)?);
        less.retain(|package, _| below.contains_key(package));
        for line in changed(&less, &more) {
            println!("{} → {}: {line}", first.name, second.name);
            is_same = false;
        }
        println!("{} → {}: {} packages compared", first.name, second.name, less.len());
    }
    let brought = named(&read(workspace, &JOIN)?, &NOT_IN_JOIN);
    ensure!(brought.is_empty(), "workahead-datafusion brings {}", brought.join(", "));
    if !is_same {
        println!("DataFusion would be built again: name the missing features in {MANIFEST}");
    }
    Ok(is_same)
}

/// Those of `names` that are among the packages.
fn named(packages: &Packages, names: &[&str]) -> Vec<String> {
    let is_named =
        |package: &&String| package.split_once(' ').is_some_and(|(name, _)| names.contains(&name));
    packages.keys().filter(is_named).cloned().collect()
}

/// DataFusion and its dependencies.
fn below_datafusion(workspace: &Workspace) -> Result<Packages> {
    let arguments = &["-p", "datafusion", "-p", "datafusion-proto"];
    read(workspace, &Selection { name: "DataFusion", arguments })
}

fn read(workspace: &Workspace, selection: &Selection) -> Result<Packages> {
    let mut tree = workspace.cargo(&["tree", "--locked", "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--format", "{p}|{f}"]);
    let output = tree.args(selection.arguments).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo tree: {}", errors.trim());
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines of `name version|features`, with ` (*)` where a package was listed before; our own
/// packages may have other features.
fn parse(tree: &str) -> Packages {
    let mut packages = Packages::new();
    for line in tree.lines().filter(|line| !line.starts_with("workahead-")) {
        if let Some((package, features)) = line.split_once('|') {
            let package = package.trim_end_matches(" (proc-macro)");
            let features = features.trim_end_matches(" (*)");
            packages.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    packages
}

/// Packages that a build has with features that the larger one does not have them with.
fn changed(less: &Packages, more: &Packages) -> Vec<String> {
    let mut lines = Vec::new();
    for (package, features) in less {
        let Some(others) = more.get(package) else { continue };
        for features in features.difference(others) {
            let others = others.iter().map(|features| format!("[{features}]"));
            let others = others.collect::<Vec<_>>().join(" and ");
            lines.push(format!("{package} has features [{features}], then {others}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_feature_is_found() {
        let less = parse("workahead-cli v0.1.0|sql\ntokio v1.0.0|fs,net\nsyn v2.0.0 (proc-macro)|");
        let more = parse(
            "workahead-cli v0.1.0|cluster,sql\ntokio v1.0.0|fs,full,net (*)\nsyn v2.0.0| (*)",
        );
        assert_eq!(
            changed(&less, &more),
            ["tokio v1.0.0 has features [fs,net], then [fs,full,net]"]
        );
    }

    #[test]
    fn a_package_is_found_by_its_whole_name() {
        let packages = parse("datafusion-common v55.2.0|\nparquet v59.0.0|arrow (*)");
        assert_eq!(named(&packages, &NOT_IN_JOIN), ["parquet v59.0.0"]);
    }

    #[test]
    fn build_scripts_may_have_another_set() {
        let less = parse("libc v0.2.0|std\nsyn v2.0.0|");
        let more = parse("libc v0.2.0|std\nlibc v0.2.0|\nnix v0.1.0|");
        assert!(changed(&less, &more).is_empty());
    }
}
