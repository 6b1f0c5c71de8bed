//! Every package takes its version, edition, licence and lints from the workspace, and has a
//! description for its readers.

use super::{Finding, Tree};

const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];
/// Packages that need a newer compiler than the others, because their dependencies do.
const OWN_RUST_VERSION: [&str; 4] = [
    "crates/execute/cluster/Cargo.toml",
    "crates/execute/datafusion/Cargo.toml",
    "crates/execute/python-sql/Cargo.toml",
    "crates/execute/sql/Cargo.toml",
];
const LICENCE: &str = "Apache-2.0";
/// Whose licence is another: the BPF object is under the GPL.
const OWN_LICENCE: [&str; 1] = ["crates/schedule/scheduler/Cargo.toml"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let licence = format!("license = \"{LICENCE}\"");
    if let Some(root) = tree.file("Cargo.toml").filter(|root| !root.text.contains(&licence)) {
        findings.push(Finding::of_file(root, format!("the project's licence is {LICENCE}")));
    }
    for manifest in tree.manifests() {
        let table = match manifest.text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                findings.push(Finding::of_file(manifest, format!("not TOML: {error}")));
                continue;
            }
        };
        let inherits = |table: Option<&toml::Value>| {
            table.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool)
                == Some(true)
        };
        let package = table.get("package");
        for key in INHERITED {
            let own: &[&str] = match key {
                "rust-version" => &OWN_RUST_VERSION,
                "license" => &OWN_LICENCE,
                _ => &[],
            };
            if own.contains(&manifest.path.as_str()) {
                continue;
            }
            if !inherits(package.and_then(|package| package.get(key))) {
                findings.push(Finding::of_file(manifest, format!("no `{key}.workspace = true`")));
            }
        }
        let says = |key| package.and_then(|package| package.get(key));
        if says("publish").is_none() && says("description").is_none() {
            let words = "no `description` for those who find it, and no `publish = false`";
            findings.push(Finding::of_file(manifest, words));
        }
        if !inherits(table.get("lints")) {
            findings.push(Finding::of_file(manifest, "no `[lints] workspace = true`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_inherits_nothing_is_found() {
        let good = "[package]\nname = \"x\"\nversion.workspace = true\nedition.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    description = \"d\"\n[lints]\nworkspace = true\n";
        assert!(check(&Tree::of(&[("crates/x/Cargo.toml", good)])).is_empty());
        let bad = good.replace("license.workspace = true", "license = \"MIT\"");
        assert_eq!(check(&Tree::of(&[("crates/x/Cargo.toml", &bad)])).len(), 1);
        let bad = good.replace("description = \"d\"\n", "");
        assert_eq!(check(&Tree::of(&[("crates/x/Cargo.toml", &bad)])).len(), 1);
        let bad = good.replace("[lints]\nworkspace = true\n", "");
        assert_eq!(check(&Tree::of(&[("crates/x/Cargo.toml", &bad)])).len(), 1);
        assert_eq!(check(&Tree::of(&[("crates/x/Cargo.toml", "= no toml")])).len(), 1);
    }

    #[test]
    fn another_licence_is_found() {
        assert_eq!(check(&Tree::of(&[("Cargo.toml", "license = \"MIT\"")])).len(), 1);
    }
}
