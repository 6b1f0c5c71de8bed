//! A paper's tables as `counters stat --tables` and `reproduce` print them: its figures and ours
//! side by side.

use workahead_counters::stream::Stream;
use workahead_reproduce::published::Paper;
use workahead_reproduce::tables::{Cell, PaperTable, Row};

use super::super::study::summary;
use super::render;

/// All tables; of those that nothing here corresponds to, only why.
pub(crate) fn tables(stream: &Stream, paper: &Paper, tables: &[PaperTable]) -> String {
    let legend = format!("{}, {}\neach column: as printed, then ours", paper.name(), paper.title());
    let mut parts = vec![render::head(stream), legend];
    parts.extend(tables.iter().map(|filled| match filled.has_ours() {
        true => table(filled),
        false => format!("{}\n  nothing of ours{}", head(filled), notes(filled)),
    }));
    parts.join("\n\n")
}

/// A table whole, also where nothing of ours is in it.
pub(crate) fn whole(filled: &PaperTable) -> String {
    table(filled)
}

fn head(filled: &PaperTable) -> String {
    format!("{}: {}", filled.id, filled.title)
}

fn table(filled: &PaperTable) -> String {
    let mut header = vec![""];
    header.extend(filled.columns.iter().flat_map(|column| [column.as_str(), "ours"]));
    header.push("");
    let mut table = summary::table(&header);
    for row in filled.rows.iter() {
        table.add_row(line(row));
    }
    summary::right(&mut table, 1..header.len() - 1);
    format!("{}\n{}{}", head(filled), summary::lines(table), notes(filled))
}

fn line(row: &Row) -> Vec<String> {
    let ours = |cell: &Cell| match (cell.ours, cell.noisy) {
        (Some(value), true) => format!("{} ~", render::figure(value)),
        (Some(value), false) => render::figure(value),
        (None, _) => "–".to_owned(),
    };
    let both = |cell: &Cell| [cell.paper.clone().unwrap_or_default(), ours(cell)];
    let mut line = vec![row.name.clone()];
    line.extend(row.cells.iter().flat_map(both));
    line.push(row.unit.clone());
    line
}

/// Below a table: why cells are empty, and what ours are where they are not quite the paper's.
fn notes(filled: &PaperTable) -> String {
    filled.notes().iter().map(|note| format!("\n  {note}")).collect()
}
