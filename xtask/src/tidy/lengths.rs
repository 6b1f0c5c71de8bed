//! Files that are read in one go, lines that fit a page.

use super::{File, Finding, Tree};

/// Ask why here.
const LINES_ASK: usize = 500;
/// Stop here.
const LINES_MAX: usize = 600;
const COLUMNS_MAX: usize = 100;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(|file| lines(file).into_iter().chain(columns(file))).collect()
}

fn lines(file: &File) -> Option<Finding> {
    if !file.ends_with(".rs") {
        return None;
    }
    let count = file.text.lines().count();
    let says = format!("{count} lines: split it by its nouns (at most {LINES_MAX})");
    if count <= LINES_ASK {
        return None;
    }
    let finding = Finding::of_file(file, says);
    Some(if count <= LINES_MAX { finding.warning() } else { finding })
}

fn columns(file: &File) -> Vec<Finding> {
    let page = [".rs", ".md", ".toml", ".sh", ".yml"].iter().any(|end| file.ends_with(end));
    // Recorded outputs are as wide as what they record, templates as what they print.
    let wide = ["/fixtures/", "/templates/", "bench/record/"];
    if !page || wide.iter().any(|folder| file.path.contains(folder)) {
        return Vec::new();
    }
    file.lines()
        .filter(|(_, line)| line.chars().count() > COLUMNS_MAX && can_break(file, line))
        .map(|(number, line)| {
            let width = line.chars().count();
            Finding::at(file, number, format!("{width} columns (at most {COLUMNS_MAX})"))
        })
        .collect()
}

/// Tables, string literals and long words (addresses) have no place to break.
fn can_break(file: &File, line: &str) -> bool {
    let line = line.trim_start();
    if file.ends_with(".rs") && line.starts_with('"') {
        return false;
    }
    let prose = line.trim_start_matches(['/', '!', ' ']);
    let table = prose.starts_with('|');
    let value = file.ends_with(".toml") && !line.starts_with('#');
    let long_word = line.split_whitespace().any(|word| word.chars().count() > 60);
    !(table || value || long_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Weight;

    #[test]
    fn long_files_warn_and_then_fail() {
        let of = |count: usize| check(&Tree::of(&[("crates/x/src/a.rs", &"x\n".repeat(count))]));
        assert!(of(500).is_empty());
        assert_eq!(of(501)[0].weight, Weight::Warning);
        assert_eq!(of(601)[0].weight, Weight::Failure);
    }

    #[test]
    fn wide_lines_fail_where_they_could_break() {
        let wide = "word ".repeat(25);
        assert_eq!(check(&Tree::of(&[("a.rs", &wide)])).len(), 1);
        assert_eq!(check(&Tree::of(&[("docs/a.md", &wide)])).len(), 1);
        assert!(check(&Tree::of(&[("docs/a.md", &format!("| {wide} |"))])).is_empty());
        assert!(check(&Tree::of(&[("a.rs", &format!("/// | {wide} |"))])).is_empty());
        assert!(check(&Tree::of(&[("a.rs", &format!("    \"{wide}\","))])).is_empty());
        let address = format!("see https://example.org/{}", "a".repeat(90));
        assert!(check(&Tree::of(&[("docs/a.md", &address)])).is_empty());
        assert!(check(&Tree::of(&[("crates/x/tests/fixtures/cpuinfo.md", &wide)])).is_empty());
    }
}
