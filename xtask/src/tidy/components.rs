//! Modules that use each other in a circle are one thing in several files: eight at most, which is
//! what a reader can hold in mind at once.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Crate, roots};
use super::{Finding, Tree};

/// Files of the largest circle.
const FILES_MOST: usize = 8;

/// Crates that have larger ones for now: how many files, and why.
const LARGER: &[(&str, usize, &str)] = &[];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    over(tree, LARGER)
}

fn over(tree: &Tree, larger: &[(&str, usize, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in tree.manifests() {
        let package = manifest.path.trim_end_matches("/Cargo.toml");
        let allowed = larger.iter().find(|(of, ..)| *of == package);
        let most = allowed.map_or(FILES_MOST, |(_, most, _)| *most);
        let mut largest = 0;
        let is_source = |path: &str| path.starts_with(&format!("{package}/src/"));
        for root in roots(tree, package).into_iter().filter(|root| is_source(&root.path)) {
            let found = Crate::from(tree, root);
            for component in components(&found.edges()) {
                largest = largest.max(component.len());
                if component.len() > most {
                    let short = |path: &&str| {
                        path.trim_start_matches(package).trim_start_matches("/src/").to_owned()
                    };
                    let names: Vec<String> = component.iter().map(short).collect();
                    let says = format!(
                        "{} files use each other in a circle (at most {most}): {}",
                        names.len(),
                        names.join(", ")
                    );
                    findings.push(Finding::of_file(manifest, says));
                }
            }
        }
        if let Some((_, most, _)) = allowed.filter(|(_, most, _)| largest < *most) {
            let says = format!(
                "its largest circle has {largest} files, and {most} are allowed in \
                 tidy/components.rs: lower that, or take it out"
            );
            findings.push(Finding::of_file(manifest, says).warning());
        }
    }
    findings
}

/// Strongly connected components of more than one file (Tarjan 1972).
fn components<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut search = Search { edges, index: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for file in edges.keys() {
        if !search.index.contains_key(file) {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'a, 'e> {
    edges: &'e BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// When each was first seen, and the earliest that it reaches; done ones reach nothing.
    index: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a, '_> {
    /// Returns the earliest file on the stack that this one reaches.
    fn visit(&mut self, file: &'a str) -> usize {
        let first = self.index.len();
        self.index.insert(file, first);
        self.stack.push(file);
        let mut earliest = first;
        for used in self.edges.get(file).into_iter().flatten().copied() {
            match self.index.get(used) {
                None => earliest = earliest.min(self.visit(used)),
                Some(seen) if self.stack.contains(&used) => earliest = earliest.min(*seen),
                Some(_) => {}
            }
        }
        if earliest == first {
            let at = self.stack.iter().rposition(|other| *other == file).unwrap_or(0);
            let mut component = self.stack.split_off(at);
            component.sort_unstable();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(count: usize) -> Vec<(String, String)> {
        let declared: String = (0..count).map(|at| format!("mod m{at};\n")).collect();
        let mut files = vec![("c/Cargo.toml".to_owned(), String::new())];
        files.push(("c/src/lib.rs".to_owned(), declared));
        for at in 0..count {
            let next = (at + 1) % count;
            let text = format!("use crate::m{next}::X{next};\npub struct X{at};\n");
            files.push((format!("c/src/m{at}.rs"), text));
        }
        files
    }

    fn found(count: usize, larger: &[(&str, usize, &str)]) -> Vec<String> {
        let files = circle(count);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        over(&Tree::of(&files), larger).into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn a_large_circle_is_found() {
        assert!(found(FILES_MOST, &[]).is_empty());
        let large = found(FILES_MOST + 1, &[]);
        assert!(large[0].starts_with("9 files") && large[0].contains("m3.rs"), "{large:?}");
    }

    #[test]
    fn an_allowance_is_no_larger_than_it_must_be() {
        assert!(found(9, &[("c", 9, "for now")]).is_empty());
        assert!(found(9, &[("c", 10, "for now")])[0].contains("lower that"));
        assert_eq!(found(10, &[("c", 9, "for now")]).len(), 1);
    }

    #[test]
    fn a_line_is_no_circle() {
        let edges = BTreeMap::from([
            ("a", BTreeSet::from(["b", "c"])),
            ("b", BTreeSet::from(["c"])),
            ("c", BTreeSet::from(["d"])),
            ("d", BTreeSet::from(["c"])),
        ]);
        assert_eq!(components(&edges), [vec!["c", "d"]]);
    }
}
