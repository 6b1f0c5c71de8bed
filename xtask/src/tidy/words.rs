//! Names and sentences are those of the field.
//!
//! Two tables. [`phrases`] has turns of phrase that a reader must take apart before they mean
//! something, each with what to write instead; they are refused in pages, help texts, errors and
//! comments. [`names`] has names that need a dictionary, each refused as the name of a file, a
//! module or a type in the folder where the field has another word for the thing.

mod names;
mod phrases;

use super::{File, Finding, Tree};

/// Folders and files that still have refused phrases or names. The aim is an empty list: entries
/// are only ever removed, and one with nothing left to refuse is reported.
const NOT_YET: &[&str] = &[];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    with_allowance(tree, NOT_YET)
}

fn with_allowance(tree: &Tree, not_yet: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; not_yet.len()];
    for file in &tree.files {
        let found = refused(file);
        match not_yet.iter().position(|start| file.path.starts_with(start)) {
            Some(entry) => used[entry] |= !found.is_empty(),
            None => findings.extend(found),
        }
    }
    for (entry, _) in not_yet.iter().zip(used).filter(|(_, used)| !used) {
        let says = format!("`{entry}` has no refused word any more: remove it from NOT_YET");
        findings.push(Finding::of_path("xtask/src/tidy/words.rs", says).warning());
    }
    findings
}

fn refused(file: &File) -> Vec<Finding> {
    let mut findings = names::refused(file);
    findings.extend(phrases::refused(file));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_folder_is_passed_over_until_it_is_clean() {
        let bad = ("crates/a/src/lib.rs", "// whoever runs it");
        assert_eq!(with_allowance(&Tree::of(&[bad]), &[]).len(), 1);
        assert!(with_allowance(&Tree::of(&[bad]), &["crates/a/"]).is_empty());
        let good = ("crates/a/src/lib.rs", "// the user");
        let stale = with_allowance(&Tree::of(&[good]), &["crates/a/"]);
        assert_eq!(stale.len(), 1);
        assert!(stale[0].says.contains("remove it"), "{}", stale[0]);
    }
}
