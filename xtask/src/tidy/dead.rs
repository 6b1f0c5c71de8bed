//! No Rust file that nothing compiles: each is reached from a target of its package.

use std::collections::BTreeSet;

use super::modules::{Crate, roots};
use super::{Finding, Tree};

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in tree.manifests() {
        let package = manifest.path.trim_end_matches("/Cargo.toml");
        let mut reached = BTreeSet::new();
        let mut starts = roots(tree, package);
        starts.extend(named(manifest, package).iter().filter_map(|path| tree.file(path)));
        for root in starts {
            reached.append(&mut Crate::from(tree, root).files);
        }
        let folder = format!("{package}/");
        let ours = tree.rust().filter(|file| file.path.starts_with(&folder));
        // A package in another one's folder is looked at on its own.
        let inner = |path: &str| {
            tree.manifests().any(|other| {
                let below = other.path.trim_end_matches("Cargo.toml");
                below.len() > folder.len() && below.starts_with(&folder) && path.starts_with(below)
            })
        };
        for file in ours.filter(|file| !reached.contains(&file.path) && !inner(&file.path)) {
            findings.push(Finding::of_file(file, "no target and no `mod` reaches this file"));
        }
    }
    findings
}

/// Targets whose file the manifest names (`path = "…"`), and the build script.
fn named(manifest: &super::File, package: &str) -> Vec<String> {
    let Ok(table) = manifest.text.parse::<toml::Table>() else { return Vec::new() };
    let mut paths = Vec::new();
    for key in ["lib", "bin", "test", "bench", "example"] {
        let targets = match table.get(key) {
            Some(toml::Value::Array(targets)) => targets.clone(),
            Some(target) => vec![target.clone()],
            None => Vec::new(),
        };
        paths.extend(
            targets
                .iter()
                .filter_map(|target| Some(format!("{package}/{}", target.get("path")?.as_str()?))),
        );
    }
    let build = table.get("package").and_then(|package| package.get("build"));
    paths.extend(build.and_then(toml::Value::as_str).map(|path| format!("{package}/{path}")));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nothing_reaches_is_found() {
        let files = [
            ("c/Cargo.toml", "[[bin]]\nname = \"x\"\npath = \"odd/x.rs\"\n"),
            ("c/src/lib.rs", "mod a; #[cfg(test)] mod tests;"),
            ("c/src/a.rs", "include!(\"b.rs\");"),
            ("c/src/b.rs", ""),
            ("c/src/tests.rs", ""),
            ("c/odd/x.rs", ""),
            ("c/tests/t.rs", "mod process;"),
            ("c/tests/process/mod.rs", ""),
        ];
        assert!(check(&Tree::of(&files)).is_empty(), "{:?}", check(&Tree::of(&files)));
        let more = [("c/src/old.rs", "fn f() {}"), ("c/tests/process/old.rs", "")];
        let all: Vec<(&str, &str)> = files.into_iter().chain(more).collect();
        let found: Vec<String> =
            check(&Tree::of(&all)).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["c/src/old.rs", "c/tests/process/old.rs"]);
    }
}
