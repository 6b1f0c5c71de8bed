//! Whether every link of the built book leads to a file of it, and to a place in that file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::links::resolve;

/// The anchors of a page, and its links.
#[derive(Default)]
struct Page {
    ids: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// Every dead link below the folder, as `page: link`.
pub(super) fn dead_links(folder: &Path) -> Result<Vec<String>> {
    let (mut pages, mut files) = (BTreeMap::new(), BTreeSet::new());
    for path in below(folder)? {
        let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        // Served for addresses anywhere, so that its links start at a root.
        if name.ends_with(".html") && name != "404.html" {
            let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
            pages.insert(name.clone(), page(&text));
        }
        files.insert(name);
    }
    let mut dead = Vec::new();
    for (name, page) in &pages {
        for link in &page.links {
            if !leads(name, link, &pages, &files) {
                dead.push(format!("{name}: {link}"));
            }
        }
    }
    Ok(dead)
}

fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}

fn page(text: &str) -> Page {
    let mut page = Page::default();
    for tag in text.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or(rest)) {
        for (name, value) in attributes(tag) {
            match name {
                "id" | "name" => page.ids.insert(value),
                "href" | "src" => page.links.insert(value),
                _ => false,
            };
        }
    }
    page
}

/// `a="b"` of a tag. What stands in a script's text has no tag around it and is not read.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, String)> {
    let mut parts = tag.split('"');
    std::iter::from_fn(move || {
        let (name, value) = (parts.next()?, parts.next()?);
        let name = name.trim_end().strip_suffix('=')?.split_whitespace().next_back()?;
        Some((name, decoded(value)))
    })
}

/// Without what HTML and addresses escape.
fn decoded(value: &str) -> String {
    let value = value.replace("&amp;", "&").replace("&#x27;", "'").replace("&quot;", "\"");
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                &after[2..]
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn leads(from: &str, link: &str, pages: &BTreeMap<String, Page>, files: &BTreeSet<String>) -> bool {
    let elsewhere = ["data:", "mailto:", "javascript:"].iter().any(|word| link.starts_with(word));
    if elsewhere || link.contains("://") || link.is_empty() || link == "#" {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or(path);
    let target = if path.is_empty() { from.to_owned() } else { resolve(from, path) };
    let there = anchor.is_empty() || pages.get(&target).is_some_and(|p| p.ids.contains(anchor));
    files.contains(&target) && there
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(html: &str) -> Vec<String> {
        let pages: BTreeMap<String, Page> =
            [("a/b.html".to_owned(), page(html)), ("c.html".to_owned(), page("<h1 id=\"µ-x\">"))]
                .into();
        let files = ["a/b.html", "c.html", "a/d.svg"].map(str::to_owned).into();
        let links = pages["a/b.html"].links.iter();
        links.filter(|link| !leads("a/b.html", link, &pages, &files)).cloned().collect()
    }

    #[test]
    fn links_lead_to_files_and_places() {
        let good = "<a href=\"../c.html\"><img src=\"d.svg\" alt=\"x\"><a class=\"y\" \
                    href=\"../c.html#%C2%B5-x\"><p id=\"q\"><a href=\"#q\"><a \
                    href=\"https://x.org/\">";
        assert!(dead(good).is_empty());
        assert_eq!(dead("<a href=\"c.html\">"), ["c.html"]);
        assert_eq!(dead("<a href=\"../c.html#no\">"), ["../c.html#no"]);
        assert_eq!(dead("<img src=\"e.png\">"), ["e.png"]);
        assert_eq!(dead("<a href=\"#no\">"), ["#no"]);
    }
}
