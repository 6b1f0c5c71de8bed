//! The measures of a model in the papers' tables: misses, stalls, coherence, and others.
//!
//! ```text
//!   measures by name ─┬─► misses     level × accesses, misses, ratio, whose (Zhou 2005, fig. 7)
//!                     ├─► stalls     cause × measured, without overlap   (Keeton 1998, fig. 8)
//!                     ├─► coherence  access × M E S I, and the bus (Keeton 1998, tab. 6–9, 18)
//!                     └─► all others
//! ```
//!
//! The last table has all figures that no other table has, so that none is left out.

mod misses;
mod other;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use comfy_table::Table;

use super::super::study::summary;

/// The measures of a run, and those of them that a table has.
struct Measures<'m> {
    all: &'m BTreeMap<String, f64>,
    used: RefCell<BTreeSet<String>>,
}

impl Measures<'_> {
    fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// A figure for a table, which the last table then does not repeat.
    fn use_figure(&self, name: &str) -> Option<f64> {
        let value = self.all.get(name)?;
        self.used.borrow_mut().insert(name.to_owned());
        Some(*value)
    }

    /// Whether there are two logical CPUs with figures of their own.
    fn has_two_cpus(&self) -> bool {
        let has = |cpu: usize| self.has(&format!("l2_penalty_cpi_p{cpu}"));
        has(0) && has(1) && !self.has("instructions_share_p2")
    }
}

/// All tables, one below the other. A walk's figures are per `each`; `first` is a line of the last
/// table that is not a measure.
pub(super) fn all(measures: &BTreeMap<String, f64>, each: &str, first: (String, f64)) -> String {
    let measures = Measures { all: measures, used: RefCell::default() };
    let mut tables = vec![misses::table(&measures, each), stalls(&measures)];
    if measures.use_figure("modelled_cpus").is_some_and(|cpus| cpus > 1.0) {
        tables.extend([states(&measures), bus(&measures, each)]);
    }
    tables.extend(other::tables(&measures, first));
    let tables = tables.into_iter().flatten().filter(|table| !table.is_empty());
    tables.map(summary::lines).collect::<Vec<_>>().join("\n\n")
}

/// A table whose first column has words, and the others figures.
fn new(name: &str, columns: &[&str]) -> Table {
    let header: Vec<&str> = std::iter::once(name).chain(columns.iter().copied()).collect();
    let mut table = summary::table(&header);
    summary::right(&mut table, 1..header.len());
    table
}

/// A figure with three decimals, or none if it is large.
fn figure(value: f64) -> String {
    match value.abs() {
        // Not -0.000.
        small if small < 0.0005 => "0.000".to_owned(),
        usual if usual < 1000.0 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    }
}

fn figure_if(value: Option<f64>) -> String {
    value.map(figure).unwrap_or_default()
}

fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// Components of the stall cycles, with the prefix of their measures, and for components with one
/// cause the measure of their share of all cycles.
const PARTS: [(&str, &str, Option<&str>); 9] = [
    ("L1D misses", "l1d", Some("stalled_l2_share")),
    ("L2 misses", "l2", None),
    ("L1I misses", "l1i", Some("stalled_code_share")),
    ("ITLB misses", "itlb", Some("stalled_itlb_share")),
    ("DTLB misses", "dtlb", Some("stalled_dtlb_share")),
    ("mispredicted branches", "branch", Some("stalled_branch_share")),
    ("machine clears", "clears", Some("stalled_clears_share")),
    ("buffers full", "buffers", None),
    ("sibling's turn, spinning", "sibling", None),
];

/// Cycles per instruction: computation, and the stalls by cause.
fn stalls(measures: &Measures<'_>) -> Option<Table> {
    let all = measures.use_figure("cpi")?;
    let owners: &[&str] = if measures.has_two_cpus() { &["P0's own", "P1's own"] } else { &[] };
    let columns = [&["measured", "of all", "no overlap", "overlapped"], owners].concat();
    let mut table = new("cycles, each instruction", &columns);
    let mut row = |name: &str, waited: f64, apart: Option<f64>, of_each: Vec<String>| {
        let hidden = apart.map(|apart| apart - waited);
        let mut cells = vec![name.to_owned(), figure(waited), percent(waited / all)];
        cells.extend([figure_if(apart), figure_if(hidden)]);
        cells.extend(of_each);
        table.add_row(cells);
    };
    if let Some(computed) = measures.use_figure("computation_cpi") {
        measures.use_figure("computation_share");
        row("computation", computed, Some(computed), Vec::new());
    }
    for (name, part, share) in PARTS {
        let waited = measures.use_figure(&format!("{part}_stall_cpi"));
        let apart = measures.use_figure(&format!("{part}_penalty_cpi"));
        share.map(|share| measures.use_figure(share));
        // Per instruction of its own, without overlap (Hassanein et al. 2008, figure 7).
        let own =
            (0..owners.len()).map(|cpu| measures.use_figure(&format!("{part}_penalty_cpi_p{cpu}")));
        let own = own.map(figure_if).collect();
        if let Some(waited) = waited {
            row(name, waited, apart, own);
        }
    }
    row("all", all, measures.use_figure("non_overlapped_cpi"), Vec::new());
    for (name, part) in [
        ("  stalls for instructions", "instruction_stall_cpi"),
        ("  stalls for resources", "resource_stall_cpi"),
    ] {
        if let Some(waited) = measures.use_figure(part) {
            row(name, waited, None, Vec::new());
        }
    }
    Some(table)
}

/// The states of the last cache's lines before an access.
fn states(measures: &Measures<'_>) -> Option<Table> {
    let mut table = new("last cache, state before", &["M", "E", "S", "I"]);
    for (name, kind) in [("fetch", "fetch"), ("load", "load"), ("store", "store")] {
        let of = |state| measures.use_figure(&format!("state_{kind}_{state}")).map(percent);
        let cells = ["m", "e", "s", "i"].map(of);
        if cells.iter().any(Option::is_some) {
            table.add_row(
                std::iter::once(name.to_owned()).chain(cells.map(Option::unwrap_or_default)),
            );
        }
    }
    Some(table)
}

/// Bus transfers: in all, or for each of a walk's probes.
fn bus(measures: &Measures<'_>, each: &str) -> Option<Table> {
    let (name, end) = match measures.has("bus_reads") {
        true => ("bus, in all".to_owned(), ""),
        false => (format!("bus, each {each}"), "_per_tuple"),
    };
    let mut table = new(&name, &["transfers", "of the reads"]);
    let reads = measures.use_figure(&format!("bus_reads{end}"))?;
    table.add_row(["reads".to_owned(), figure(reads)]);
    for (name, measure) in [
        ("  of lines that another cache had changed", "dirty_reads"),
        ("requests for a line that is shared", "upgrades"),
        ("  that no other cache had", "upgrades_alone"),
        ("lines of others invalidated", "invalidations"),
        ("lines written back", "writebacks"),
    ] {
        if let Some(value) = measures.use_figure(&format!("{measure}{end}")) {
            let share = if reads > 0.0 { percent(value / reads) } else { String::new() };
            table.add_row([name.to_owned(), figure(value), share]);
        }
    }
    measures.use_figure("dirty_miss_share");
    Some(table)
}
