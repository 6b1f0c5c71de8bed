//! Links between the project's own pages lead somewhere.

use super::{Finding, Tree};
use crate::pages::is_generated;

/// The page whose code names source files by the ends of their paths.
const MAP: &str = "ARCHITECTURE.md";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.ends_with(".md")) {
        for (number, line) in file.lines() {
            for target in targets(line) {
                let path = resolve(&file.path, target);
                if !tree.has(&path) && !is_generated(&path) {
                    findings.push(Finding::at(file, number, format!("no such file: {target}")));
                }
            }
            let sources = (file.path == MAP).then(|| sources(line)).into_iter().flatten();
            for source in sources.filter(|source| !tree.has_end(source)) {
                findings.push(Finding::at(file, number, format!("no source file `{source}`")));
            }
        }
    }
    findings
}

/// The ends of paths of source files that a line names: `study/src/spec.rs`.
fn sources(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('`').skip(1).step_by(2);
    code.filter(|code| code.ends_with(".rs") || code.ends_with(".h"))
}

/// The targets of `](…)` on this line inside the project, without the `#section`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    // A comment links nothing.
    let line = if line.starts_with("<!--") { "" } else { line };
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?.split('#').next()?;
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        (!target.is_empty() && !elsewhere).then_some(target)
    })
}

/// The target as a path from the root.
pub(crate) fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nothing_is_found() {
        let page = "[a](../README.md#x) [b](walks.md) [c](https://example.org/) [d](#here)\n\
                    <!-- [e](none.md) -->";
        let tree = Tree::of(&[("docs/a.md", page), ("README.md", ""), ("docs/walks.md", "")]);
        assert!(check(&tree).is_empty());
        let tree = Tree::of(&[("docs/a.md", page), ("README.md", "")]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_source_that_was_renamed_is_found_in_the_map() {
        let page = "`x/src/a.rs` and `b.rs`, but not `c.toml`";
        let tree = |source| Tree::of(&[(MAP, page), ("crates/x/src/a.rs", ""), (source, "")]);
        assert!(check(&tree("crates/x/src/b.rs")).is_empty());
        assert_eq!(check(&tree("crates/x/src/sub.rs")).len(), 1);
    }

    #[test]
    fn folders_count() {
        let tree = Tree::of(&[("a.md", "[crates](crates/)"), ("crates/x/Cargo.toml", "")]);
        assert!(check(&tree).is_empty());
    }
}
