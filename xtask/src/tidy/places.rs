//! Nothing tracked may name the computer it was written on.

use super::{Finding, Tree};

/// Folders that exist on somebody's machine only. Written in halves, or this file would be its
/// own finding.
const PRIVATE: [&str; 5] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("/tmp/", "bash"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() != "Cargo.lock") {
        for (number, line) in file.lines() {
            if let Some(private) = PRIVATE.iter().find(|private| names(line, private)) {
                let says = format!("names a place of one machine, {private}");
                findings.push(Finding::at(file, number, says));
            }
            if tree.host.as_ref().is_some_and(|host| line.contains(host)) {
                findings.push(Finding::at(file, number, "names this computer"));
            }
        }
    }
    findings
}

/// Whether the line has the folder as the start of a path, not as the middle of one
/// (`docs/…`, `$HOME/…` are fine).
fn names(line: &str, private: &str) -> bool {
    line.match_indices(private).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || "._-$})".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        let bad = concat!("see `/ro", "ot/notes` for more");
        assert_eq!(check(&Tree::of(&[("README.md", bad)])).len(), 1);
        let fine = concat!("sys/devices/ro", "ot/x and target/wo", "rk/y");
        assert!(check(&Tree::of(&[("README.md", fine)])).is_empty());
    }

    #[test]
    fn the_name_of_the_computer_is_found() {
        let mut tree = Tree::of(&[("README.md", "measured on bigbox-17")]);
        assert!(check(&tree).is_empty());
        tree.host = Some("bigbox-17".into());
        assert_eq!(check(&tree).len(), 1);
    }
}
