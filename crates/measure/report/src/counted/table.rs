//! The table of metrics: a row each, by groups, in the catalogue's order.

use std::collections::HashSet;

use serde::Serialize;
use workahead_counters::counter::ALL;
use workahead_counters::event::Privilege;
use workahead_counters::metric::Metric;

use super::{CellCounts, is_over_all, name, side_word, slots};
use crate::view::View;
use crate::{number, words};

/// The cells of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    /// The words that its cells share; empty where there is one table.
    pub(crate) title: String,
    pub(crate) heads: Vec<Head>,
    /// How many columns of figures there are.
    pub(crate) columns: usize,
    pub(crate) groups: Vec<Group>,
    /// The slots it rests on.
    pub(crate) slots: String,
    /// The reasons for dashes.
    pub(crate) dashes: Vec<String>,
    /// Whether it is unfolded.
    pub(crate) open: bool,
}

/// A cell over its columns.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) cell: String,
    pub(crate) sides: Vec<&'static str>,
}

/// A group of metrics.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

/// One metric.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Its name in results and other tools.
    pub(crate) id: String,
    /// How it is computed here, if that differs from its name.
    pub(crate) instead: String,
    pub(crate) unit: &'static str,
    pub(crate) figures: Vec<Figure>,
    /// Slots that the least observed figure of the row rests on.
    pub(crate) slots: String,
}

/// One value, or a dash.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) words: String,
    pub(crate) is_noisy: bool,
    /// The tooltip: slots, or the reason of the dash.
    pub(crate) title: String,
}

impl Table {
    pub(super) fn is_noisy(&self) -> bool {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.flat_map(|row| &row.figures).any(|figure| figure.is_noisy)
    }
}

/// A table for every place with a value.
pub(super) fn tables(view: &View<'_>, groups: &[(String, Vec<&CellCounts<'_>>)]) -> Vec<Table> {
    let requested = &view.results.spec.method.counters;
    let with_values = groups.iter().filter_map(|(title, cells)| {
        let table = table(view, requested, title, cells);
        (!table.groups.is_empty()).then_some(table)
    });
    let mut tables: Vec<Table> = with_values.collect();
    tables.iter_mut().take(1).for_each(|first| first.open = true);
    tables
}

fn table(view: &View<'_>, requested: &[String], title: &str, cells: &[&CellCounts<'_>]) -> Table {
    let mut groups: Vec<Group> = Vec::new();
    let mut dashes: Vec<(String, String)> = Vec::new();
    let mut known = HashSet::new();
    for metric in metrics(cells) {
        let row = row(metric, cells);
        for figure in row.figures.iter().filter(|figure| figure.words == number::NONE) {
            let dash = (row.id.clone(), figure.title.clone());
            if known.insert(dash.clone()) {
                dashes.push(dash);
            }
        }
        let name = group_of(metric, requested);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: name.to_owned(), rows: vec![row] }),
        }
    }
    let head = |of: &&CellCounts<'_>| Head {
        cell: name(view, of.cell),
        sides: of.sides.iter().copied().map(side_word).collect(),
    };
    let dash = |(why, names): (String, Vec<String>)| format!("{}: {why}", names.join(", "));
    Table {
        title: title.to_owned(),
        heads: cells.iter().filter(|of| !of.sides.is_empty()).map(head).collect(),
        columns: cells.iter().map(|of| of.sides.len()).sum(),
        groups,
        slots: slots::sentence(cells),
        dashes: words::by_reason(dashes).into_iter().map(dash).collect(),
        open: false,
    }
}

/// Those with a value in any of these cells, in the catalogue's order.
fn metrics(cells: &[&CellCounts<'_>]) -> Vec<&'static Metric> {
    let mut metrics: Vec<&Metric> = Vec::new();
    let values = cells.iter().flat_map(|of| of.metrics.values());
    for metric in values.filter(|one| is_over_all(one)).map(|one| one.metric) {
        if !metrics.iter().any(|other| other.name == metric.name) {
            metrics.push(metric);
        }
    }
    let catalogue = workahead_counters::metric::catalogue();
    metrics.sort_by_key(|metric| catalogue.iter().position(|other| other.name == metric.name));
    metrics
}

/// The first requested group of a metric.
fn group_of<'a>(metric: &'a Metric, requested: &[String]) -> &'a str {
    let is_requested = |group: &&String| requested.iter().any(|name| name == *group || name == ALL);
    metric.groups.iter().find(is_requested).or(metric.groups.first()).map_or("", String::as_str)
}

fn row(metric: &'static Metric, cells: &[&CellCounts<'_>]) -> Row {
    let columns = cells.iter().flat_map(|of| of.sides.iter().map(move |side| (*of, *side)));
    let valued = columns.clone().filter_map(|(of, side)| of.metric_value(&metric.name, side));
    let valued = valued.filter(|one| is_over_all(one));
    let slots = valued.clone().map(|one| one.slots).min();
    Row {
        name: metric.words.clone(),
        id: metric.name.clone(),
        instead: valued.clone().find_map(|one| one.instead.clone()).unwrap_or_default(),
        unit: metric.unit.words(),
        figures: columns.map(|(of, side)| figure(metric, of, side)).collect(),
        slots: slots.map(|slots| number::count(slots as u64)).unwrap_or_default(),
    }
}

fn figure(metric: &Metric, of: &CellCounts<'_>, side: Privilege) -> Figure {
    let valued = of.metric_value(&metric.name, side);
    match valued.and_then(|one| Some((one.value?, one))) {
        Some((value, one)) if value.is_finite() => Figure {
            words: number::plain(value),
            is_noisy: one.noisy,
            title: words::counted(one.slots, "slot"),
        },
        _ => missing(of.why(&metric.name, side)),
    }
}

/// A figure that is missing. Its reason stands at each column.
fn missing(why: Option<&str>) -> Figure {
    let why = why.unwrap_or("it was not counted separately for this side");
    Figure { words: number::NONE.to_owned(), is_noisy: false, title: words::label(why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_dash_is_short() {
        assert_eq!(missing(Some("hidden")).title, "hidden");
        let long = missing(Some(&"x".repeat(4 << 10)));
        assert_eq!(long.title, format!("{}…", "x".repeat(words::CHARS_MAX)));
        assert_eq!(long.words, number::NONE);
    }
}
