//! No program has the path of a checkout compiled in: checkouts may share a target folder, and what
//! one has built is run in another.

use super::{File, Finding, Tree};

/// In halves, or this file would be its own finding.
const MANIFEST_DIR: &str = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
const INCLUDES: [&str; 2] = [concat!("include_", "str!"), concat!("include_", "bytes!")];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        if line.replace("option_env!", "env!").contains(MANIFEST_DIR) {
            let says = "compiles in where this checkout lies: read CARGO_MANIFEST_DIR at run time \
                        (`std::env::var_os`)";
            findings.push(Finding::at(file, number, says));
        }
        // A build script writes paths of its own checkout into source files.
        if is_build_script(&file.path) && INCLUDES.iter().any(|include| line.contains(include)) {
            let says = "writes a path of this checkout into a source file: write the text itself";
            findings.push(Finding::at(file, number, says));
        }
    }
    findings
}

/// `crates/x/build.rs` and the modules in `crates/x/build/`.
fn is_build_script(path: &str) -> bool {
    !path.contains("/src/") && (path.ends_with("/build.rs") || path.contains("/build/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn a_path_that_is_compiled_in_is_found() {
        let bad = format!("let root = Path::new({MANIFEST_DIR});");
        assert_eq!(found("crates/a/tests/b.rs", &bad), 1);
        assert_eq!(found("xtask/src/b.rs", &bad), 1);
        assert_eq!(found("crates/a/src/b.rs", &format!("option_{MANIFEST_DIR}")), 1);
        assert_eq!(found("crates/a/src/b.rs", &format!("// not {MANIFEST_DIR}")), 0);
        let good = "std::env::var_os(\"CARGO_MANIFEST_DIR\")";
        assert_eq!(found("crates/a/tests/b.rs", good), 0);
    }

    #[test]
    fn a_build_script_that_writes_an_include_is_found() {
        let bad = format!("writeln!(out, \"{}({{path:?}})\")", INCLUDES[0]);
        assert_eq!(found("crates/a/build.rs", &bad), 1);
        assert_eq!(found("crates/a/build/embed.rs", &bad), 1);
        assert_eq!(found("crates/a/src/build.rs", &bad), 0, "it is a module");
    }
}
