//! The papers' page: every row of the ledger, where it lives, what measured it, what came out.

use std::fmt::Write as _;

use super::generated::cell;
use crate::tidy::Tree;
use crate::tidy::ledger::{Engines, Entry, MARKS, marks};

/// A section: its rows by the start of their ids, and how it is headed.
struct Section {
    prefix: &'static str,
    title: &'static str,
}

/// Of a pillar: its papers' mechanisms, their experiments, what they left open.
const SECTIONS: [(&str, &[Section]); 4] = [
    (
        "Execute",
        &[
            section("S4.", "Zhou, Cieslewicz, Ross, Shah 2005: operators that work ahead"),
            section("E4.", "Its experiments"),
            section("L4.", "Open questions"),
        ],
    ),
    (
        "Schedule",
        &[
            section("S3.", "Yamada and Kusakabe 2010: a group one after the other, and beside"),
            section("E3.", "Its experiments"),
            section("L3.", "Open questions"),
        ],
    ),
    (
        "Measure",
        &[
            section("S0.", "Hassanein, Rashid, Hammad 2008: a database under Hyper-Threading"),
            section("E0.", "Its experiments"),
            section("L0.", "Open questions"),
            section("S1.", "Chang 2013: TPC-H by degrees of parallelism"),
            section("E1.", "Its experiments"),
            section("L1.", "Open questions"),
            section("S2.", "Keeton, Patterson, He, Raphael, Baker 1998: where OLTP's cycles go"),
            section("E2.", "Its experiments"),
            section("L2.", "Open questions"),
        ],
    ),
    (
        "All of them",
        &[
            section("HW", "The papers' hardware"),
            section("LX.", "Across the papers"),
            section("A", "Acceptance"),
            section("D", "Decisions"),
        ],
    ),
];

const fn section(prefix: &'static str, title: &'static str) -> Section {
    Section { prefix, title }
}

const OPENING: &str = "\
# The papers

Workahead starts from five papers. Each of their mechanisms, workloads, experiments and limits is a
row here, with the files that carry it, the test that holds it, the studies that measure it, and
what these say of the paper in two words, direction and size: *agrees, within 25 %*. Measured
and modelled results have words of their own. A row that is not carried, or that no kept
run answered, says why. This page is made from `docs/ledger.toml`; the build fails where a row has
neither code nor a reason.

An experiment is marked:

| mark | means |
|---|---|
| real | its study runs on this machine: threads, caches and servers that are there |
| modelled | its study runs on a model of the paper's machine (tier E) |
| arithmetic | its figures are computed from those that the paper prints |
| not done | there is no study of it, and the reason stands there |

A mark says how it is done, a verdict what came out of the runs that were kept.

";

/// The page.
pub(super) fn page(tree: &Tree, entries: &[Entry]) -> String {
    let engines = Engines::of(tree);
    let mut page = OPENING.to_owned();
    page.push_str(&totals(entries, &engines));
    for (pillar, sections) in SECTIONS {
        let _ = writeln!(page, "\n## {pillar}");
        for section in sections {
            let _ = writeln!(page, "\n### {}\n", section.title);
            page.push_str("| row | statement | place | status |\n|---|---|---|---|\n");
            for entry in entries.iter().filter(|entry| entry.row.starts_with(section.prefix)) {
                page.push_str(&line(entry, &engines));
            }
        }
    }
    page
}

/// Experiments by paper and mark. One that is both real and modelled counts in both.
fn totals(entries: &[Entry], engines: &Engines) -> String {
    let mut text = String::from("| experiments of | all |");
    for mark in MARKS {
        let _ = write!(text, " {mark} |");
    }
    text.push_str("\n|---|---:|---:|---:|---:|---:|\n");
    for (prefix, paper) in [
        ("E0.", "Hassanein"),
        ("E1.", "Chang"),
        ("E2.", "Keeton"),
        ("E3.", "Yamada"),
        ("E4.", "Zhou"),
    ] {
        let of: Vec<&Entry> = entries.iter().filter(|e| e.row.starts_with(prefix)).collect();
        let _ = write!(text, "| {paper} | {} |", of.len());
        for mark in MARKS {
            let count = of.iter().filter(|entry| marks(entry, engines).contains(&mark)).count();
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    text
}

fn line(entry: &Entry, engines: &Engines) -> String {
    let mut places: Vec<String> = entry.places.iter().map(|path| link(path)).collect();
    if !entry.test.is_empty() && !entry.places.contains(&entry.test) {
        places.push(format!("test: {}", link(&entry.test)));
    }
    let studies: Vec<String> =
        entry.studies.iter().map(|id| format!("[{id}](../studies/{id}.toml)")).collect();
    let mut stands = Vec::new();
    for (tier, verdict) in [("measured", &entry.measured), ("modelled", &entry.modelled)] {
        if !verdict.is_empty() {
            stands.push(format!("{tier}: **{verdict}**"));
        }
    }
    let marks = marks(entry, engines);
    if !marks.is_empty() {
        stands.push(marks.join(", "));
    }
    if !entry.reason.is_empty() {
        stands.push(cell(&entry.reason));
    }
    if !studies.is_empty() {
        stands.push(format!("by {}", studies.join(", ")));
    }
    let row = &entry.row;
    format!(
        "| <a id=\"{row}\"></a>{row} | {} | {} | {} |\n",
        cell(&entry.words),
        places.join("<br>"),
        stands.join("<br>")
    )
}

/// To a file of the project, as pages in `docs/` write it.
fn link(path: &str) -> String {
    let shown = path.strip_prefix("crates/").unwrap_or(path).replace('/', "/<wbr>");
    format!("[{shown}](../{path})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::ledger::rows;

    fn entry(text: &str) -> Entry {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_row_has_a_section_and_one_only() {
        for row in rows() {
            let sections = SECTIONS.iter().flat_map(|(_, sections)| *sections);
            let count = sections.filter(|section| row.starts_with(section.prefix)).count();
            assert_eq!(count, 1, "{row}");
        }
    }

    #[test]
    fn a_row_says_where_how_and_what() {
        let tree = Tree::of(&[("studies/zhou/a.toml", "engine = \"modelled\"")]);
        let text = "row = \"E4.6\"\nwords = \"a | b\"\nwhere = [\"crates/x/a.rs\"]\n\
            test = \"crates/x/b.rs\"\nstudy = [\"zhou/a\"]\nmodelled = \"agrees, beyond\"\n";
        let line = line(&entry(text), &Engines::of(&tree));
        assert_eq!(
            line,
            "| <a id=\"E4.6\"></a>E4.6 | a \\| b | [x/<wbr>a.rs](../crates/x/a.rs)<br>test: \
             [x/<wbr>b.rs](../crates/x/b.rs) | modelled: **agrees, beyond**<br>modelled<br>by \
             [zhou/a](../studies/zhou/a.toml) |\n"
        );
    }
}
