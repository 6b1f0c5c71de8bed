//! The duties of every source file: an opening that says the idea, and a name that is a
//! noun of the project.

use super::{File, Finding, Tree};

/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "manager", "misc"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|file| opening(file).into_iter().chain(name(file))).collect()
}

fn opening(file: &File) -> Option<Finding> {
    let first = file
        .text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("// SPDX"))
        .unwrap_or_default();
    let says = "opens without `//!`: say the idea and its source first";
    (!first.starts_with("//!")).then(|| Finding::of_file(file, says))
}

fn name(file: &File) -> Option<Finding> {
    let noun = file.name().trim_end_matches(".rs");
    let folder = file.path.rsplit('/').nth(1).unwrap_or_default();
    let empty = |name: &str| EMPTY_NAMES.contains(&name);
    let says = "named for nothing: one noun per file, and none of utils, common, helpers, manager";
    (empty(noun) || empty(folder)).then(|| Finding::of_file(file, says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_an_opening_is_found() {
        assert!(check(&Tree::of(&[("a.rs", "\n//! The idea.\n")])).is_empty());
        assert!(check(&Tree::of(&[("a.rs", "// SPDX-License-Identifier: X\n//! a\n")])).is_empty());
        assert_eq!(check(&Tree::of(&[("a.rs", "use std::fmt;\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[("a.rs", "")])).len(), 1);
    }

    #[test]
    fn an_empty_name_is_found() {
        assert_eq!(check(&Tree::of(&[("crates/x/src/utils.rs", "//! x")])).len(), 1);
        assert_eq!(check(&Tree::of(&[("crates/x/tests/common/mod.rs", "//! x")])).len(), 1);
    }
}
