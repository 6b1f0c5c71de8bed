//! Limitations of the machine and of the run, in words, so that missing figures are not taken for
//! results.

use std::collections::{BTreeMap, BTreeSet};

use workahead_study::claim::Requirement;
use workahead_study::verdict::{self, Verdict, Word};

use crate::facts::machine_of;
use crate::view::View;
use crate::words;
use workahead_machine::memory::Transparent;
use workahead_machine::virtualisation::VirtualKind;

/// More places than this are counted, not named.
const NAMED_MAX: usize = 3;

pub(crate) fn limitations(view: &View<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    if view.is_modelled() {
        sentences.push(
            "Every figure here is modelled: it is of a described machine, not of this one."
                .to_owned(),
        );
    } else if !view.results.is_timed() {
        sentences.push(format!(
            "Time, cycles, and the work of this machine’s own caches: everything was {}. {}.",
            workahead_counters::instrumented::LABEL,
            words::capital(&view.tier())
        ));
    } else {
        sentences.extend(of_host(view));
        sentences.extend(of_memory(view));
    }
    sentences.extend(of_collection(view));
    sentences.extend(of_study(view));
    sentences.extend(of_cells(view));
    sentences.extend(of_run(view));
    sentences
}

fn of_host(view: &View<'_>) -> Vec<String> {
    let host = &view.results.record.host;
    let mut sentences = Vec::new();
    if !host.siblings {
        sentences.push(
            "No two logical CPUs of this machine are seen to share a core. Two threads here are two cores, and \
             nothing on this page is called SMT; the gain of two siblings of one core is not shown."
                .to_owned(),
        );
    }
    if !host.counters {
        let why = match host.tier_reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        let shown = match is_counted(view) {
            true => "time and the kernel's counts are shown",
            false => "time is shown",
        };
        sentences.push(format!(
            "No hardware counters{why}: {shown}, cache misses and cycles per instruction are not. {}.",
            words::capital(&view.tier())
        ));
    }
    sentences
}

/// Whether the study has counters, and any cell has some counts.
fn is_counted(view: &View<'_>) -> bool {
    let asks = !view.results.spec.method.counters.is_empty();
    asks && view.cells().iter().any(|cell| view.results.counts(cell.index).is_some())
}

/// Missing counts and profiles of the study, each reason once.
fn of_collection(view: &View<'_>) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut constructed: BTreeSet<String> = BTreeSet::new();
    for cell in view.cells() {
        for reason in view.results.uncollected(cell.index) {
            reasons.entry(reason).or_default().push(cell.index);
        }
        let counts = view.results.counts(cell.index);
        constructed.extend(counts.and_then(|counts| counts.header.constructed));
    }
    // The machine's own reason stands above.
    reasons.remove(&view.results.record.host.tier_reason);
    let everywhere = view.cells().len() - view.results.run_plan.skipped.len();
    let sentence = |(reason, cells): (String, Vec<usize>)| {
        let reason = reason.trim_end_matches('.');
        let tier = words::capital(&view.tier());
        match cells.len() {
            all if all >= everywhere => {
                format!("Not everything the study asks for was collected, {reason}. {tier}.")
            }
            few if few <= NAMED_MAX => {
                let place = |cell: &usize| view.place(&view.cells()[*cell], &[]);
                let places: Vec<String> = cells.iter().map(place).collect();
                format!("Not everything was collected of {}, {reason}. {tier}.", places.join("; "))
            }
            many => {
                let cells = words::counted(many, "cell");
                format!("Not everything was collected of {cells}, {reason}. {tier}.")
            }
        }
    };
    let constructed = constructed
        .into_iter()
        .map(|how| format!("Counts on this page are constructed, no machine was counted: {how}."));
    constructed.chain(reasons.into_iter().map(sentence)).collect()
}

fn of_memory(view: &View<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let limits = view.cells().iter().any(|cell| view.limit_fraction(cell).is_some());
    if !limits && view.compares_techniques() {
        sentences.push(
            "The machine's limit is not known for these cells, so no bar is measured against it."
                .to_owned(),
        );
    }
    let Some(machine) = machine_of(view) else { return sentences };
    if matches!(machine.huge_pages.transparent, Transparent::Never) {
        sentences.push(
            "The system gives no huge pages (transparent huge pages are switched off): cells that ask for them \
             ran on small ones."
                .to_owned(),
        );
    }
    if machine.virtualisation.kind == VirtualKind::Virtual {
        sentences.push(
            "This is a virtual machine: its neighbours may be in the timings, and its topology and caches are \
             what the host chose to show."
                .to_owned(),
        );
    }
    sentences
}

/// Requirements of the whole study that are not met.
fn of_study(view: &View<'_>) -> Option<String> {
    let results = view.results;
    let missing = verdict::missing(&results.spec.needs, &results.record.host)?;
    let needs: Vec<&str> =
        results.spec.needs.iter().map(|need: &Requirement| need.name()).collect();
    Some(format!("The study needs {}: {missing}.", needs.join(", ")))
}

/// Limitations reported by the engine, each reason once.
fn of_cells(view: &View<'_>) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in &view.findings {
        let impossible = finding.impossible.as_ref().map(|why| format!("not run here, {why}"));
        if let Some(reason) = impossible.or_else(|| finding.limitation.clone()) {
            reasons.entry(reason).or_default().push(&finding.label);
        }
    }
    let sentence = |(limitation, labels): (String, Vec<&str>)| {
        let limitation = words::capital(limitation.trim_end_matches('.'));
        match labels.len() {
            few if few <= NAMED_MAX => format!("{limitation}: {}.", labels.join("; ")),
            many => format!("{limitation}: {}.", words::counted(many, "cell")),
        }
    };
    reasons.into_iter().map(sentence).collect()
}

/// Limitations of this run.
fn of_run(view: &View<'_>) -> Vec<String> {
    let results = view.results;
    let mut sentences = Vec::new();
    if let Some(scale) = &results.spec.scale {
        sentences.push(format!(
            "Run at scale “{scale}”: sizes and repetitions differ from the study's own, and so may the answer."
        ));
    }
    if results.run_plan.repetitions == 1 {
        sentences
            .push("One sample per cell: no interval, so no difference can be shown.".to_owned());
    }
    let is_unsaid = |one: &&Verdict| one.judgement.direction == Word::CannotBeSaidHere;
    let unsaid = results.verdicts().iter().filter(is_unsaid).count();
    if unsaid > 0 {
        let claims = words::counted(unsaid, "claim");
        sentences.push(format!(
            "{claims} of the paper cannot be judged here; the table of claims has the reasons."
        ));
    }
    sentences
}
