//! All files of a crate lie below its folder: a package that is published has nothing else.
//!
//! Tests are left out, which nobody builds from a package; so are pages whose examples are doc
//! tests. A file of the repository is linked into the crate's folder (`cargo package` follows).

use super::{File, Finding, Tree};

const INCLUDES: [&str; 2] = ["include_str!(\"", "include_bytes!(\""];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| is_packaged(&file.path)).flat_map(of_file).collect()
}

fn is_packaged(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs")
}

fn of_file(file: &File) -> Vec<Finding> {
    // Folders between the crate's own (`crates/machine`, `crates/execute/walks`) and the file.
    let inside = file.path.split("/src/").nth(1).map_or(0, |inside| inside.split('/').count());
    let mut before = "";
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let included = INCLUDES.iter().find_map(|start| line.split(start).nth(1));
        let ups = included.map_or(0, |path| path.matches("../").count());
        if ups > inside && before != "#[cfg(doctest)]" {
            let says =
                "a package has no file outside of its crate: link it into the crate's folder";
            findings.push(Finding::at(file, number, says));
        }
        before = line.trim();
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn files_outside_of_a_crate_are_found() {
        let line = "static A: &str = include_str!(\"../../../docs/a.toml\");";
        assert_eq!(found("crates/a/src/b.rs", line), 1);
        assert_eq!(found("crates/a/src/b/c.rs", line), 1);
        assert_eq!(found("crates/a/src/b/c/d.rs", line), 0, "it is crates/a/docs");
        assert_eq!(found("crates/a/src/b.rs", &line.replace("../../..", "..")), 0);
        assert_eq!(found("crates/a/src/b/tests.rs", line), 0);
        assert_eq!(found("crates/a/src/b.rs", &format!("#[cfg(doctest)]\n#[doc = {line}]")), 0);
        assert_eq!(found("xtask/src/b.rs", line), 0);
    }
}
