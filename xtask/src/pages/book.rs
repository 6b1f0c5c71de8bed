//! The book: sources laid out in the target folder, built by mdBook, links checked.
//!
//! Pages keep the links that they have in the repository. In the book, a link to another page of it
//! leads there; one to any other file leads to a copy below `source/`, so that the book is whole
//! wherever it is read, without a server and without knowing an address of the repository.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::program::Program;
use super::{generated, html};
use crate::setup;
use crate::tidy::Tree;
use crate::tidy::links::resolve;
use crate::workspace::Workspace;

const SUMMARY: &str = "docs/SUMMARY.md";
/// A line of the summary that counts once its page exists.
const WHEN_THERE: &str = "<!-- when it is there: ";

/// Builds it; false when a link of it is dead.
pub(super) fn build(workspace: &Workspace, tree: &Tree, program: &Program) -> Result<bool> {
    let source = workspace.target().join("pages-source");
    let _ = std::fs::remove_dir_all(&source);
    lay_out(workspace, tree, generated::pages(tree, program)?, &source)?;
    let built = workspace.target().join("pages");
    let _ = std::fs::remove_dir_all(&built);
    let mdbook = setup::source_program::MDBOOK.program().context("no home for mdBook")?;
    let output = Command::new(&mdbook)
        .arg("build")
        .arg(&source)
        .arg("--dest-dir")
        .arg(&built)
        .output()
        .context("mdBook is missing: cargo xtask setup")?;
    let says = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "mdBook: {}", says.trim());
    if says.contains("WARN") || says.contains("ERROR") {
        println!("{says}");
        bail!("mdBook is not content with the pages");
    }
    let dead = html::dead_links(&built)?;
    for link in &dead {
        println!("  leads nowhere: {link}");
    }
    println!("  the pages are in {}", built.display());
    Ok(dead.is_empty())
}

/// Writes what mdBook reads.
fn lay_out(
    workspace: &Workspace,
    tree: &Tree,
    generated: Vec<(String, String)>,
    source: &Path,
) -> Result<()> {
    let summary = tree.file(SUMMARY).with_context(|| format!("{SUMMARY} is missing"))?;
    let summary = those_there(&summary.text, tree);
    let mut pages: BTreeMap<String, String> = generated.into_iter().collect();
    for path in targets(&summary).map(|target| resolve(SUMMARY, target)) {
        if let Entry::Vacant(place) = pages.entry(path) {
            let page = tree.file(place.key());
            let page = page.with_context(|| format!("{SUMMARY}: no {}", place.key()))?;
            place.insert(page.text.clone());
        }
    }
    let unlisted = tree.files.iter().map(|file| &file.path).find(|path| {
        path.starts_with("docs/")
            && path.ends_with(".md")
            && *path != SUMMARY
            && !pages.contains_key(*path)
    });
    if let Some(path) = unlisted {
        bail!("{path} is in no line of {SUMMARY}");
    }
    let book = Book { tree, pages: pages.keys().cloned().collect() };
    let mut copies = BTreeSet::new();
    write(source, "src/SUMMARY.md", book.linked(SUMMARY, &summary, &mut copies).as_bytes())?;
    for (path, text) in &pages {
        let text = book.linked(path, text, &mut copies);
        write(source, &format!("src/{}", book.place(path)), text.as_bytes())?;
    }
    for path in copies {
        let bytes = match std::fs::read(workspace.root().join(&path)) {
            Ok(bytes) => bytes,
            Err(_) => book.listing(&path).into_bytes(),
        };
        write(source, &format!("src/{}", book.place(&path)), &bytes)?;
    }
    for name in ["book.toml", "pages.css"] {
        let file = tree.file(&format!("docs/{name}")).context(name)?;
        write(source, name, file.text.as_bytes())?;
    }
    Ok(())
}

fn write(source: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = source.join(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::write(&path, bytes).with_context(|| path.display().to_string())
}

/// The summary, with the lines of pages that are there by now.
fn those_there(summary: &str, tree: &Tree) -> String {
    let lines = summary.lines().filter_map(|line| {
        let Some(rest) = line.trim_start().strip_prefix(WHEN_THERE) else { return Some(line) };
        let rest = rest.trim_end().strip_suffix("-->")?.trim_end();
        targets(rest).all(|target| tree.has(&resolve(SUMMARY, target))).then_some(rest)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of links, without their anchors.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next())
}

/// The pages of the book, and where everything lies in it.
struct Book<'a> {
    tree: &'a Tree,
    pages: BTreeSet<String>,
}

impl Book<'_> {
    /// Where a file of the repository lies in the book.
    fn place(&self, path: &str) -> String {
        let inside = path.strip_prefix("docs/").map(str::to_owned);
        let place = inside.unwrap_or_else(|| format!("source/{path}"));
        let shown = [".svg", ".png", ".html"].iter().any(|end| path.ends_with(end));
        if self.pages.contains(path) || shown {
            return place;
        }
        // As text, which a browser shows and does not offer to save. mdBook takes every `.md` in a
        // link for a page.
        format!("{}.txt", place.strip_suffix(".md").unwrap_or(&place))
    }

    /// The text with links as they are in the book; adds the files that it needs copies of.
    fn linked(&self, path: &str, text: &str, copies: &mut BTreeSet<String>) -> String {
        let from = if path == SUMMARY { "SUMMARY.md".to_owned() } else { self.place(path) };
        let up = "../".repeat(from.matches('/').count());
        let mut parts = text.split("](");
        let mut linked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            linked.push_str("](");
            let target = part.split([')', '#']).next().unwrap_or_default();
            let file = resolve(path, target);
            let known = self.pages.contains(&file) || self.tree.has(&file);
            if target.is_empty() || target.contains("://") || !known {
                linked.push_str(part);
                continue;
            }
            if !self.pages.contains(&file) {
                copies.insert(file.clone());
            }
            linked.push_str(&up);
            linked.push_str(&self.place(&file));
            linked.push_str(&part[target.len()..]);
        }
        linked
    }

    /// The contents of a folder, for a reader who followed a link to it.
    fn listing(&self, folder: &str) -> String {
        let inside = format!("{folder}/");
        let paths = self.tree.paths.iter().filter(|path| path.starts_with(&inside));
        paths.fold(String::new(), |text, path| text + path + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_book_or_to_copies() {
        let tree = Tree::of(&[
            ("docs/a.md", ""),
            ("docs/x/b.md", ""),
            ("docs/c.svg", ""),
            ("crates/k/README.md", ""),
            ("bench/record/z.json", ""),
        ]);
        let pages = ["docs/a.md", "docs/x/b.md", "crates/k/README.md"].map(str::to_owned).into();
        let book = Book { tree: &tree, pages };
        let mut copies = BTreeSet::new();
        let text = "[a](../a.md#s) ![c](../c.svg) [k](../../crates/k/README.md) \
                    [z](../../bench/record) [w](https://x.org/a.md) [n](none.md) [h](#s)";
        let linked = book.linked("docs/x/b.md", text, &mut copies);
        assert_eq!(
            linked,
            "[a](../a.md#s) ![c](../c.svg) [k](../source/crates/k/README.md) \
             [z](../source/bench/record.txt) [w](https://x.org/a.md) [n](none.md) [h](#s)"
        );
        assert_eq!(copies, ["bench/record", "docs/c.svg"].map(str::to_owned).into());
        assert_eq!(book.listing("bench/record"), "bench/record/z.json\n");
        let back = book.linked("crates/k/README.md", "[a](../../docs/a.md)", &mut copies);
        assert_eq!(back, "[a](../../../a.md)");
    }

    #[test]
    fn pages_to_come_count_once_they_are_there() {
        let summary = "- [A](a.md)\n<!-- when it is there: - [P](python.md) -->\n<!-- other -->";
        let without = those_there(summary, &Tree::default());
        assert_eq!(without, "- [A](a.md)\n<!-- other -->");
        let with = those_there(summary, &Tree::of(&[("docs/python.md", "")]));
        assert!(with.contains("\n- [P](python.md)\n"), "{with}");
    }
}
