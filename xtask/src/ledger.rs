//! `cargo xtask ledger`: the papers' rows and where each stands, for a reader (tidy checks it).

use anyhow::{Context, Result, anyhow};

use crate::tidy::Tree;
use crate::tidy::ledger::{Engines, Entry, PATH, direction, entries, marks, rows};
use crate::workspace::Workspace;

/// One line per kind of row: how many, how many carried, the directions of measured and of modelled
/// results.
pub(crate) fn summary(workspace: &Workspace) -> Result<bool> {
    let entries = read(workspace)?;
    println!("                               measured            modelled");
    println!("  rows       all  done  waiting  agrees  disagrees   agrees  disagrees");
    let mut kinds: Vec<String> = Vec::new();
    for row in rows() {
        if !kinds.iter().any(|known| known == kind(&row)) {
            kinds.push(kind(&row).to_owned());
        }
    }
    for kind in kinds {
        let of: Vec<&Entry> =
            entries.iter().filter(|entry| self::kind(&entry.row) == kind).collect();
        let measured = |word| of.iter().filter(|one| direction(&one.measured) == word).count();
        let modelled = |word| of.iter().filter(|one| direction(&one.modelled) == word).count();
        println!(
            "  {kind:<8} {:>5} {:>5} {:>8} {:>7} {:>10} {:>8} {:>10}",
            of.len(),
            of.iter().filter(|entry| entry.done()).count(),
            of.iter().filter(|entry| !entry.done()).count(),
            measured("agrees"),
            measured("disagrees"),
            modelled("agrees"),
            modelled("disagrees"),
        );
    }
    complete(&entries)
}

/// One line per row whose id starts with the prefix.
pub(crate) fn list(workspace: &Workspace, prefix: &str) -> Result<bool> {
    let entries = read(workspace)?;
    let engines = Engines::of(&Tree::tracked(workspace)?);
    for entry in entries.iter().filter(|entry| entry.row.starts_with(prefix)) {
        let (place, studies) = (entry.places.join(", "), entry.studies.join(", "));
        let marks = marks(entry, &engines).join(", ");
        println!("{:<6} {}", entry.row, entry.words);
        for (name, value) in [
            ("where", place.as_str()),
            ("test", &entry.test),
            ("study", &studies),
            ("mark", &marks),
            ("measured", &entry.measured),
            ("modelled", &entry.modelled),
            ("reason", &entry.reason),
        ] {
            if !value.is_empty() {
                println!("       {name:<8} {value}");
            }
        }
    }
    complete(&entries)
}

fn read(workspace: &Workspace) -> Result<Vec<Entry>> {
    let tree = Tree::tracked(workspace)?;
    let file = tree.file(PATH).with_context(|| format!("{PATH} is missing"))?;
    entries(file).map_err(|error| anyhow!("{PATH}: {error}"))
}

/// Says which rows have no entry at all; that is a failure.
fn complete(entries: &[Entry]) -> Result<bool> {
    let missing: Vec<String> =
        rows().into_iter().filter(|row| !entries.iter().any(|entry| entry.row == *row)).collect();
    if !missing.is_empty() {
        println!("no entry: {}", missing.join(", "));
    }
    Ok(missing.is_empty())
}

/// `S4.7` → `S4`, `HW-4T` → `HW`, `A30` → `A`.
fn kind(row: &str) -> &str {
    if row.starts_with("HW") {
        return "HW";
    }
    match row.split_once('.') {
        Some((kind, _)) => kind,
        None => row.trim_end_matches(|c: char| c.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn rows_have_kinds() {
        for (row, of) in
            [("S4.7", "S4"), ("LX.1", "LX"), ("A30", "A"), ("HW-4T", "HW"), ("HW0", "HW")]
        {
            assert_eq!(kind(row), of);
        }
    }
}
