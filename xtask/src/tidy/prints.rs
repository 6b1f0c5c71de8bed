//! Only the command prints, exits, and reads its own command line.

use super::code::code_only;
use super::{Finding, Tree};

const ONLY_THE_COMMAND: [&str; 6] =
    ["println!", "eprintln!", "print!(", "process::exit", "env::args", "dbg!"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let library = file.path.starts_with("crates/")
            && !file.path.starts_with("crates/cli/")
            && !file.path.contains("/tests/")
            && !file.path.contains("/benches/")
            && !file.path.contains("/examples/")
            // A build script talks to Cargo by printing.
            && !["tests.rs", "build.rs"].contains(&file.name());
        if !library {
            continue;
        }
        let code = code_only(&file.text);
        // Code under `#[cfg(test)] mod tests` may print.
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            if let Some(word) = ONLY_THE_COMMAND.iter().find(|word| line.contains(**word)) {
                let says =
                    format!("`{word}` in a library: only `cli` prints, exits, has arguments");
                findings.push(Finding::at(file, index + 1, says));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_prints_is_found() {
        let bad = "//! x\nfn f() {\n    println!(\"hello\");\n}\n";
        let found = check(&Tree::of(&[("crates/measure/study/src/lib.rs", bad)]));
        assert_eq!((found.len(), found[0].line), (1, 3));
        for fine in
            ["crates/cli/src/main.rs", "crates/measure/study/tests/a.rs", "xtask/src/main.rs"]
        {
            assert!(check(&Tree::of(&[(fine, bad)])).is_empty());
        }
    }

    #[test]
    fn words_in_comments_and_tests_are_none() {
        let fine = "// println! is for cli\n#[cfg(test)]\nmod tests {\n println!(\"x\");\n}\n";
        assert!(check(&Tree::of(&[("crates/measure/study/src/lib.rs", fine)])).is_empty());
    }
}
