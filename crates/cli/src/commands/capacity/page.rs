//! The answer as one page, in the style of the reports.

use std::path::Path;

use serde::Serialize;
use workahead_advise::capacity::{Capacity, Resource, ServerObservation};
use workahead_machine::Machine;
use workahead_report::document;
use workahead_study::collection::CollectionOptions;
use workahead_study::directory::REPORT_FILE;
use workahead_study::{file, host};

use super::{ceiling, in_use, name};
use crate::commands::study::summary::significant;

const TEMPLATE: &str = include_str!("../../../templates/capacity.html");

/// Rows of what was seen: means of as many windows as it takes.
const ROWS_MAX: usize = 60;

#[derive(Serialize)]
struct Page<'a> {
    sentence: &'a str,
    notes: &'a [String],
    counted: &'a str,
    machine: String,
    resources: Vec<[String; 3]>,
    seen: Vec<WindowRow>,
}

/// A stretch of time.
#[derive(Serialize)]
struct WindowRow {
    from_s: String,
    load: String,
    busy: String,
    waiting: Vec<String>,
}

/// Writes the page.
pub(super) fn write(
    dir: &Path,
    capacity: &Capacity,
    observed: &ServerObservation,
) -> anyhow::Result<()> {
    let row = |resource| [name(resource), in_use(resource), ceiling(resource)];
    let page = Page {
        sentence: &capacity.sentence,
        notes: &capacity.notes,
        counted: &capacity.counted,
        machine: host::of(&Machine::here(), &CollectionOptions::default(), None).name,
        resources: capacity.resources.iter().map(row).collect(),
        seen: seen(observed),
    };
    Ok(file::write_in(dir, REPORT_FILE, document(TEMPLATE, &page)?.as_bytes())?)
}

fn seen(observed: &ServerObservation) -> Vec<WindowRow> {
    const WAITS: [Resource; 4] =
        [Resource::Locks, Resource::Log, Resource::Latches, Resource::Disk];
    let size = observed.windows.len().div_ceil(ROWS_MAX).max(1);
    let mut from_s = 0.0;
    let stretches = observed.windows.chunks(size).map(|windows| {
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        let ended: f64 = windows.iter().map(|window| window.ended).sum();
        let cpu = windows.iter().filter_map(|window| window.cpu.map(|cpu| (window.seconds, cpu)));
        let (busy, cpus) = cpu.fold((0.0, 0.0), |(busy, cpus), (seconds, cpu)| {
            (busy + seconds * cpu.busy, cpus + seconds * cpu.cpus)
        });
        let waiting = |wait: Resource| {
            let each = windows.iter().map(|window| {
                let of = window.waiting.iter().filter(|one| one.resource == wait);
                window.seconds * of.map(|one| one.sessions).sum::<f64>()
            });
            significant(each.sum::<f64>() / seconds)
        };
        let stretch = WindowRow {
            from_s: format!("{from_s:.0}"),
            load: significant(ended / seconds),
            busy: if cpus > 0.0 { format!("{:.0} %", 100.0 * busy / cpus) } else { String::new() },
            waiting: WAITS.map(waiting).to_vec(),
        };
        from_s += seconds;
        stretch
    });
    stretches.collect()
}
