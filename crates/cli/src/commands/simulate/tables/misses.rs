//! Misses by level: accesses, misses, and their owners.
//!
//! Zhou et al. (2005, figures 4c, 7b, 15) split a walk's misses between main thread and helper;
//! Hassanein et al. (2008) count those of a workload by 1000 instructions, here by logical CPU.

use comfy_table::Table;

use super::{Measures, figure_if, new, percent};

/// The table of a walk or of a whole workload.
pub(super) fn table(measures: &Measures<'_>, each: &str) -> Option<Table> {
    match measures.has("loads_per_tuple") {
        true => Some(of_walk(measures, each)),
        false => measures.has("l1d_apki").then(|| of_workload(measures)),
    }
}

/// A walk's levels, and the loads that missed them. Misses of one level are accesses of the next.
const LEVELS: [(&str, &str); 3] = [
    ("L1D, loads", "l1d_load_misses_per_tuple"),
    ("L2, loads", "l2_load_misses_per_tuple"),
    ("L3, loads", "l3_load_misses_per_tuple"),
];

fn of_walk(measures: &Measures<'_>, each: &str) -> Table {
    let is_split = measures.has("loads_per_tuple_helper");
    let owners: &[&str] = if is_split { &["main", "helper", "helper's part"] } else { &[] };
    let columns = [&["accesses", "misses", "ratio"], owners].concat();
    let mut table = new(&format!("misses, each {each}"), &columns);
    let mut accesses = measures.use_figure("loads_per_tuple");
    for who in ["main", "helper"] {
        measures.use_figure(&format!("loads_per_tuple_{who}"));
    }
    for (level, name) in LEVELS {
        let Some(missed) = measures.use_figure(name) else { continue };
        let of = |who: &str| measures.use_figure(&format!("{name}_{who}"));
        let (main, helper) = (of("main"), of("helper"));
        let part = helper.map(|helper| ratio(Some(helper), Some(missed)));
        let mut cells = row(level, accesses, Some(missed));
        cells.extend([figure_if(main), figure_if(helper), part.unwrap_or_default()]);
        table.add_row(cells);
        accesses = Some(missed);
    }
    let translated = measures.use_figure("data_accesses_per_tuple");
    table.add_row(row("DTLB", translated, measures.use_figure("dtlb_misses_per_tuple")));
    table
}

/// A workload's levels, with the prefixes of their misses and of their accesses.
const LEVELS_OF_WORKLOAD: [(&str, &str, &str); 13] = [
    ("L1D", "l1d", "l1d"),
    ("  loads", "l1d_load", "l1d_load"),
    ("L1I, or trace cache", "l1i", "l1i"),
    ("L2", "l2", "l2"),
    ("  loads", "l2_load", "l2_load"),
    ("  data", "l2_data", "l2_data"),
    ("  instructions", "l2_code", "l2_code"),
    ("L3", "l3", "l3"),
    ("  loads", "l3_load", "l3_load"),
    ("  data", "l3_data", "l3_data"),
    ("  instructions", "l3_code", "l3_code"),
    // Every cache access needs a translation.
    ("DTLB", "dtlb", "l1d"),
    ("ITLB", "itlb", "l1i"),
];

fn of_workload(measures: &Measures<'_>) -> Table {
    let owners: &[&str] = if measures.has_two_cpus() { &["P0", "P1"] } else { &[] };
    let columns = [&["accesses", "misses", "ratio"], owners].concat();
    let mut table = new("misses, of 1000 instructions", &columns);
    for (level, missed, accesses) in LEVELS_OF_WORKLOAD {
        let Some(mpki) = measures.use_figure(&format!("{missed}_mpki")) else { continue };
        measures.use_figure(&format!("{missed}_miss_ratio"));
        let mut cells = row(level, measures.use_figure(&format!("{accesses}_apki")), Some(mpki));
        let own =
            (0..owners.len()).map(|cpu| measures.use_figure(&format!("{missed}_mpki_p{cpu}")));
        cells.extend(own.map(figure_if));
        table.add_row(cells);
    }
    branches(measures, &mut table);
    table
}

/// Predictions of branches and of their targets.
fn branches(measures: &Measures<'_>, table: &mut Table) {
    let Some(branches) = measures.all.get("branch_share").map(|share| 1e3 * share) else { return };
    for (name, measure) in
        [("branches, mispredicted", "branch_miss_ratio"), ("BTB", "btb_miss_ratio")]
    {
        let missed = measures.use_figure(measure).map(|ratio| ratio * branches);
        table.add_row(row(name, Some(branches), missed));
    }
}

fn row(name: &str, accesses: Option<f64>, missed: Option<f64>) -> Vec<String> {
    vec![name.to_owned(), figure_if(accesses), figure_if(missed), ratio(missed, accesses)]
}

fn ratio(part: Option<f64>, whole: Option<f64>) -> String {
    match (part, whole) {
        (Some(part), Some(whole)) if whole > 0.0 => percent(part / whole),
        _ => String::new(),
    }
}
