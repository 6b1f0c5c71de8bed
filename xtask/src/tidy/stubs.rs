//! No unfinished work in the tree: no stubs, no tests switched off, no notes to oneself.

use super::code::code_only;
use super::{Finding, Tree};

/// In code. In halves where this file would find itself.
const IN_CODE: [&str; 3] = ["todo!", "unimplemented!", "#[ignore"];
/// Anywhere, comments too.
const ANYWHERE: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            if let Some(word) = IN_CODE.iter().find(|word| line.contains(**word)) {
                findings.push(Finding::at(file, index + 1, format!("`{word}`: finish it")));
            }
        }
        for (number, line) in file.lines() {
            if let Some(word) = ANYWHERE.iter().find(|word| line.contains(**word)) {
                let says = format!("`{word}`: do it now, or open an issue");
                findings.push(Finding::at(file, number, says));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_found() {
        for bad in ["fn f() { todo!() }", "#[ignore]\nfn f() {}", concat!("// FIX", "ME later")] {
            assert_eq!(check(&Tree::of(&[("a.rs", bad)])).len(), 1, "{bad}");
        }
        assert!(check(&Tree::of(&[("a.rs", "// no todo! here\nfn f() {}")])).is_empty());
    }
}
