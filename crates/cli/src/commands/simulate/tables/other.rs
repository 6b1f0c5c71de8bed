//! Figures of no other table: those of each logical CPU side by side, and single ones.

use std::collections::BTreeMap;

use comfy_table::Table;

use super::{Measures, figure, figure_if, new};

/// Logical CPUs that fit into 100 columns.
const CPUS_MAX: usize = 8;

/// Figures of logical CPUs; then `first`, and all others.
pub(super) fn tables(measures: &Measures<'_>, first: (String, f64)) -> [Option<Table>; 2] {
    let of_cpus = of_cpus(measures);
    let used = measures.used.borrow();
    let rest = measures.all.iter().filter(|(name, _)| !used.contains(*name));
    let rest = rest.map(|(name, value)| (name.replace('_', " "), *value));
    let mut table = new("modelled", &["figure"]);
    for (name, value) in std::iter::once(first).chain(rest) {
        table.add_row([name, figure(value)]);
    }
    [of_cpus, Some(table)]
}

fn of_cpus(measures: &Measures<'_>) -> Option<Table> {
    let used = measures.used.borrow().clone();
    let mut rows: BTreeMap<String, BTreeMap<usize, &str>> = BTreeMap::new();
    for name in measures.all.keys().filter(|name| !used.contains(*name)) {
        if let Some((row, cpu)) = cpu_of(name) {
            rows.entry(row).or_default().insert(cpu, name);
        }
    }
    let cpus = rows.values().filter_map(|row| row.keys().max()).max()? + 1;
    if cpus > CPUS_MAX {
        return None;
    }
    let header: Vec<String> = (0..cpus).map(|cpu| format!("P{cpu}")).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = new("each logical CPU", &header);
    for (row, names) in rows {
        let figures =
            (0..cpus).map(|cpu| figure_if(names.get(&cpu).and_then(|at| measures.use_figure(at))));
        table.add_row(std::iter::once(row).chain(figures));
    }
    Some(table)
}

/// `l2_penalty_cpi_p1_of_all` is `l2 penalty cpi of all` of CPU 1.
fn cpu_of(name: &str) -> Option<(String, usize)> {
    let (name, end) =
        name.strip_suffix("_of_all").map_or((name, ""), |name| (name, " of all instructions"));
    let (row, cpu) = name.rsplit_once("_p")?;
    Some((row.replace('_', " ") + end, cpu.parse().ok()?))
}
