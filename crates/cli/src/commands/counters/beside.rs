//! A paper's tables as `counters stat --tables` and `reproduce` print them: its figures and ours
//! side by side.

use comfy_table::CellAlignment;
use workahead_counters::published::Paper;
use workahead_counters::shaped::{Cell, Row, Shaped};
use workahead_counters::stream::Stream;

use super::super::study::summary;
use super::told;

/// All tables; of those that nothing here corresponds to, only why.
pub(crate) fn tables(stream: &Stream, paper: &Paper, tables: &[Shaped]) -> String {
    let legend = format!("{}, {}\neach column: as printed, then ours", paper.name(), paper.title());
    let mut parts = vec![told::head(stream), legend];
    parts.extend(tables.iter().map(|shaped| match shaped.has_ours() {
        true => table(shaped),
        false => format!("{}\n  nothing of ours{}", head(shaped), notes(shaped)),
    }));
    parts.join("\n\n")
}

/// A table whole, also where nothing of ours is in it.
pub(crate) fn whole(shaped: &Shaped) -> String {
    table(shaped)
}

fn head(shaped: &Shaped) -> String {
    format!("{}: {}", shaped.id, shaped.title)
}

fn table(shaped: &Shaped) -> String {
    let mut header = vec![""];
    header.extend(shaped.columns.iter().flat_map(|column| [column.as_str(), "ours"]));
    header.push("");
    let mut table = summary::table(&header);
    for row in shaped.rows.iter() {
        table.add_row(line(row));
    }
    for column in 1..header.len() - 1 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n{}{}", head(shaped), summary::lines(table), notes(shaped))
}

fn line(row: &Row) -> Vec<String> {
    let ours = |cell: &Cell| match (cell.ours, cell.noisy) {
        (Some(value), true) => format!("{} ~", told::figure(value)),
        (Some(value), false) => told::figure(value),
        (None, _) => "–".to_owned(),
    };
    let both = |cell: &Cell| [cell.paper.clone().unwrap_or_default(), ours(cell)];
    let mut line = vec![row.name.clone()];
    line.extend(row.cells.iter().flat_map(both));
    line.push(row.unit.clone());
    line
}

/// Below a table: why cells are empty, and what ours are where they are not quite the paper's.
fn notes(shaped: &Shaped) -> String {
    shaped.notes().iter().map(|note| format!("\n  {note}")).collect()
}
