//! Changes that may be a cause: settings, versions, indexes, tables, plans, programs beside
//! the server, holders of locks.
//!
//! A candidate is *shown* for a part when its own figure moved as it should (sequential scans of
//! the table whose index is gone), or when nothing else acts on that part as directly (`fsync` on
//! the log). It is *documented* for the other parts that it acts on. One whose figure was captured
//! and stayed where it was is none.

use std::collections::BTreeMap;

use workahead_study::capture::{Capture, Index};

use super::differences::{Pair, per_transaction, short};
use super::documented::{self, Effect, Sign};
use super::parts::Part;
use crate::words::significant;

/// A possible cause.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// In words.
    pub(super) says: String,
    /// Parts on which it is shown to act.
    pub(super) shown: Vec<Part>,
    /// Parts on which it is documented to act.
    pub(super) documented: Vec<Part>,
    /// The evidence.
    pub(super) evidence: Vec<String>,
    /// The more specific first.
    pub(super) order: u8,
}

/// A name with its value on each side.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedValue {
    /// The name.
    pub name: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

const INDEX: u8 = 0;
const HOLDER: u8 = 0;
const MACHINE: u8 = 1;
const SETTING: u8 = 2;
const TABLE: u8 = 3;
const PLAN: u8 = 4;
const TUNING: u8 = 5;
const VERSION: u8 = 6;

/// Plans that are said beside the first.
const PLANS_MAX: usize = 20;

/// CPUs that other programs must have more of to be named.
const CPUS_MIN: f64 = 0.1;

/// Everything that may be one.
pub(super) fn of(pair: Pair<'_>) -> Vec<Candidate> {
    let mut all = indexes(pair);
    all.extend(holders(pair));
    all.extend(machine(pair));
    for changed in settings(pair) {
        all.extend(
            documented::setting(&changed.name)
                .and_then(|effect| named(pair, &changed, effect, SETTING)),
        );
    }
    all.extend(tables(pair));
    all.extend(plans(pair));
    for changed in facts(pair) {
        let order = if changed.name == "server" { VERSION } else { TUNING };
        all.extend(
            documented::fact(&changed.name).and_then(|effect| named(pair, &changed, effect, order)),
        );
    }
    all
}

/// Settings that differ.
pub(super) fn settings(pair: Pair<'_>) -> Vec<ChangedValue> {
    differences(&pair.before.settings, &pair.after.settings)
}

/// Facts that differ.
pub(super) fn facts(pair: Pair<'_>) -> Vec<ChangedValue> {
    differences(&pair.before.facts, &pair.after.facts)
}

fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<ChangedValue> {
    const ABSENT: &str = "not there";
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |side: &BTreeMap<String, String>, name: &String| {
        side.get(name).map_or_else(|| ABSENT.to_owned(), |value| short(value))
    };
    let changed = |name: &String| ChangedValue {
        name: short(name),
        before: value(before, name),
        after: value(after, name),
    };
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    names.into_iter().filter(differs).map(changed).collect()
}

fn named(pair: Pair<'_>, changed: &ChangedValue, effect: Effect, order: u8) -> Option<Candidate> {
    let sign = pair.sign(effect.sign).ok()?;
    let (first, rest) = effect.parts.split_first()?;
    let (shown, documented) = match (&sign, effect.sign) {
        (Some(_), _) => (effect.parts.to_vec(), Vec::new()),
        (None, Sign::Itself) => (vec![*first], rest.to_vec()),
        (None, _) => (Vec::new(), effect.parts.to_vec()),
    };
    Some(Candidate {
        says: format!("{}: {}, then {}", changed.name, changed.before, changed.after),
        shown,
        documented,
        evidence: sign.into_iter().collect(),
        order,
    })
}

/// Indexes that are gone, or new. One that has another name only is the same.
fn indexes(pair: Pair<'_>) -> Vec<Candidate> {
    let shape = |index: &Index| {
        let is_unique = index.definition.contains("UNIQUE");
        let what = index.definition.split_once(" ON ").map_or("", |(_, what)| what);
        (index.table.clone(), is_unique, what.to_owned())
    };
    let shapes = |capture: &Capture| -> std::collections::BTreeSet<_> {
        capture.indexes.values().map(shape).collect()
    };
    let (before, after) = (shapes(pair.before), shapes(pair.after));
    // Objects that the other side could not read are not gone.
    let is_unread = |capture: &Capture| {
        capture.indexes.is_empty() && capture.missing.iter().any(|says| says.starts_with("indexes"))
    };
    // A capture that ended early has no list of what there was at its end.
    let is_cut = |capture: &Capture| capture.lost.is_some();
    if [pair.before, pair.after].into_iter().any(|one| is_unread(one) || is_cut(one)) {
        return Vec::new();
    }
    let ways: BTreeMap<String, String> = pair.ways().iter().cloned().collect();
    let has_ways = pair.after.tables.values().any(|table| table.contains_key("seq_scans"));
    let work = pair.work();
    let one = |(name, index): (&String, &Index), is_gone: bool| {
        let way = ways.get(&index.table).cloned();
        let sign = way.or_else(|| if has_ways { None } else { work.clone() });
        const READ: [Part; 9] = [
            Part::Cpu,
            Part::Working,
            Part::Rest,
            Part::Disk,
            Part::Latches,
            Part::Locks,
            Part::Processes,
            Part::Client,
            Part::Log,
        ];
        let reads = is_gone == pair.is_slower;
        let (shown, documented) = match (reads, sign.is_some()) {
            (true, true) => (READ[..5].to_vec(), READ[5..].to_vec()),
            // Nothing reads in another way: no cause.
            (true, false) => (Vec::new(), Vec::new()),
            // To be kept up by changes of rows.
            (false, _) => (Vec::new(), vec![Part::Cpu, Part::Log, Part::Latches, Part::Disk]),
        };
        Candidate {
            says: format!(
                "the index {} of {} {}",
                short(name),
                short(&index.table),
                if is_gone { "is gone" } else { "is new" }
            ),
            shown,
            documented,
            evidence: sign.into_iter().collect(),
            order: INDEX,
        }
    };
    let gone = pair.before.indexes.iter().filter(|(_, index)| !after.contains(&shape(index)));
    let new = pair.after.indexes.iter().filter(|(_, index)| !before.contains(&shape(index)));
    gone.map(|index| one(index, true)).chain(new.map(|index| one(index, false))).collect()
}

/// Who holds locks afterwards, and did not before.
fn holders(pair: Pair<'_>) -> Option<Candidate> {
    let (fewer, more) = pair.faster_first(pair.before, pair.after);
    let per = |capture: &Capture, name: &str| {
        capture.holders.get(name).copied().unwrap_or(0.0) / capture.seconds()
    };
    let growth = |name: &String| per(more, name) - per(fewer, name);
    let most = more.holders.keys().max_by(|one, other| growth(one).total_cmp(&growth(other)))?;
    (growth(most) > 0.0).then(|| Candidate {
        says: format!("locks held by {}", short(most)),
        shown: vec![Part::Locks],
        documented: Vec::new(),
        evidence: vec![format!(
            "others waited for it in {:.0} looks before, {:.0} after",
            pair.before.holders.get(most).unwrap_or(&0.0),
            pair.after.holders.get(most).unwrap_or(&0.0)
        )],
        order: HOLDER,
    })
}

/// The machine's work for others, by its own account.
fn machine(pair: Pair<'_>) -> Vec<Candidate> {
    let mean = |capture: &Capture, name: &str| Some(capture.count(name)? / capture.seconds());
    let others = |capture: &Capture| {
        let busy = mean(capture, "machine_cpu_s")? - mean(capture, "machine_idle_s")?;
        let steal = mean(capture, "steal_s").unwrap_or(0.0);
        Some((busy - steal - mean(capture, "server_cpu_s")?).max(0.0))
    };
    let both = |of: &dyn Fn(&Capture) -> Option<f64>| Some((of(pair.before)?, of(pair.after)?));
    let is_same_work = pair.work().is_none();
    let slows = |part: Part| match is_same_work {
        true => (vec![part, Part::Cpu], vec![Part::Latches, Part::Rest, Part::Locks]),
        false => (vec![part], vec![Part::Latches, Part::Rest, Part::Locks]),
    };
    let grew = |(before, after): &(f64, f64)| {
        let (less, more) = pair.faster_first(before, after);
        more - less > CPUS_MIN
    };
    let mut all = Vec::new();
    if let Some((before, after)) = both(&others).filter(grew) {
        let (shown, documented) = slows(Part::Neighbours);
        let (_, busiest) = pair.faster_first(pair.before, pair.after);
        let most = busiest.neighbours.iter().max_by(|one, other| one.1.total_cmp(other.1));
        let name = most.map(|(name, cpu_s)| {
            format!(": {} {} of them", short(name), significant(cpu_s / busiest.seconds()))
        });
        let [before, after] = [before, after].map(significant);
        all.push(Candidate {
            says: format!(
                "other programs on the machine: {before} CPUs, then {after}{}",
                name.unwrap_or_default()
            ),
            shown,
            documented,
            evidence: Vec::new(),
            order: MACHINE,
        });
    }
    for (part, name, says) in [
        (Part::Quota, "throttled_s", "the CPU quota of the server's control group"),
        (Part::Host, "steal_s", "the host of the virtual machine, which took CPU time"),
    ] {
        let Some((before, after)) = both(&|capture| mean(capture, name)).filter(grew) else {
            continue;
        };
        let (shown, documented) = slows(part);
        let quota = |capture: &Capture| capture.facts.get("server's CPU quota").cloned();
        let says = match (part, quota(pair.before), quota(pair.after)) {
            (Part::Quota, Some(one), Some(other)) if one != other => {
                format!("{says}: {one}, then {other}")
            }
            _ => says.to_owned(),
        };
        let [before, after] = [before, after].map(significant);
        let evidence = vec![format!("{before} CPUs stood still for it, then {after}")];
        all.push(Candidate { says, shown, documented, evidence, order: MACHINE });
    }
    all
}

/// Tables that grew, and are read from beginning to end.
fn tables(pair: Pair<'_>) -> Vec<Candidate> {
    const GREW: f64 = 1.3;
    const ROWS_MIN: f64 = 1000.0;
    let work = pair.work();
    let mut all = Vec::new();
    for (table, figures) in &pair.after.tables {
        let Some(were) = pair.before.tables.get(table) else { continue };
        let both = |name: &str| Some((*were.get(name)?, *figures.get(name)?));
        let Some((before, after)) = both("rows") else { continue };
        let (less, more) = pair.faster_first(before, after);
        let seq = per_transaction(pair.before, were, "seq_rows")
            .zip(per_transaction(pair.after, figures, "seq_rows"));
        let reads = seq.is_none_or(|(before, after)| {
            let (less, more) = pair.faster_first(before, after);
            more > GREW.sqrt() * less
        });
        if more > GREW * less.max(ROWS_MIN / GREW) && reads && work.is_some() {
            let [before, after] = [before, after].map(significant);
            all.push(Candidate {
                says: format!("the table {} has {after} rows, it had {before}", short(table)),
                shown: vec![Part::Cpu, Part::Working, Part::Disk, Part::Rest],
                documented: vec![Part::Latches, Part::Processes],
                evidence: work.iter().cloned().collect(),
                order: TABLE,
            });
        }
    }
    all
}

fn plans(pair: Pair<'_>) -> Option<Candidate> {
    // The clearest come last.
    let (last, others) = pair.plans().split_last()?;
    let (cut, shown) = others.split_at(others.len().saturating_sub(PLANS_MAX));
    let mut found = shown.to_vec();
    if !cut.is_empty() {
        found.push(format!("{} more", cut.len()));
    }
    let parts =
        vec![Part::Cpu, Part::Working, Part::Rest, Part::Disk, Part::Processes, Part::Latches];
    Some(Candidate {
        says: last.clone(),
        shown: parts,
        documented: vec![Part::Locks, Part::Client],
        evidence: found,
        order: PLAN,
    })
}
