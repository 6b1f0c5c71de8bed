//! The output of the `counters` commands.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;

use workahead_counters::event::Privilege;
use workahead_counters::metrics::{MetricValue, Metrics};
use workahead_counters::profile::{Clock, Kind, Profile};
use workahead_counters::stream::Stream;

use super::super::study::summary;
use super::target::{self, End};

/// A shell reports the end by a signal as this plus the signal's number.
const BY_SIGNAL: i32 = 128;

/// SIGINT.
const INTERRUPT: i32 = 2;

/// The status of the counted command, as `time` passes it on; one that we had to stop was
/// interrupted. Without a command it is success.
pub(crate) fn status(end: End, target: &target::TargetArguments) -> ExitCode {
    let code = match end {
        End::Exited(status) => {
            status.code().or(status.signal().map(|signal| BY_SIGNAL + signal)).unwrap_or(1)
        }
        End::Interrupted if target.is_command() => BY_SIGNAL + INTERRUPT,
        End::Interrupted | End::Over => 0,
    };
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// All metrics, a row each, and the missing ones with their reason.
pub(crate) fn stat(stream: &Stream, metrics: &Metrics, per_cpu: bool) -> String {
    let mut parts = vec![head(stream)];
    let places = places(metrics, per_cpu);
    let mut header = vec!["metric".to_owned()];
    header.extend(places.iter().map(|place| name(*place)));
    header.extend(["unit", "slots", "note"].map(str::to_owned));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = summary::table(&header);
    let mut empty: Vec<(&str, &str)> = Vec::new();
    for of_metric in metrics.values().chunk_by(|one, other| one.metric.name == other.metric.name) {
        let first = &of_metric[0];
        if let (true, Some(why)) = (of_metric.iter().all(|one| one.value.is_none()), &first.why) {
            empty.push((&first.metric.name, why));
            continue;
        }
        table.add_row(row(metrics, of_metric, &places));
    }
    summary::right(&mut table, 1..=places.len());
    if table.row_iter().next().is_some() {
        parts.push(summary::lines(table));
    }
    parts.extend(scattered(stream, metrics, per_cpu));
    parts.extend(nothing(&empty));
    parts.join("\n\n")
}

/// The fewest observations of an event in Keeton et al. (1998, §2.5): 30 in the mean, and two that
/// are left out of it.
const SLOTS_MIN: usize = 32;

/// The legend of the mark for figures that scatter, and how long to count for steadier ones.
fn scattered(stream: &Stream, metrics: &Metrics, per_cpu: bool) -> Option<String> {
    let shown = metrics.values().iter().filter(|one| per_cpu || one.cpu.is_none());
    let noisy = shown.filter(|one| one.value.is_some() && one.noisy);
    let least = noisy.map(|one| one.slots).min()?.max(1);
    let mut says = "~ scatters by more than a tenth of its mean".to_owned();
    if least < SLOTS_MIN {
        let seconds: f64 = stream.slots.iter().map(|slot| slot.wall_s).sum();
        let enough = seconds * SLOTS_MIN as f64 / least as f64;
        says += &format!(": it is of {least} slots, and {SLOTS_MIN} take {enough:.0} s");
    }
    Some(says)
}

/// Privilege and CPU.
type Place = (Privilege, Option<u32>);

/// Those with a value, in the order of display.
fn places(metrics: &Metrics, per_cpu: bool) -> Vec<Place> {
    let shown = metrics.values().iter().filter(|one| per_cpu || one.cpu.is_none());
    let valued = shown.filter(|one| one.value.is_some());
    let places: BTreeSet<Place> = valued.map(|one| (one.privilege, one.cpu)).collect();
    places.into_iter().collect()
}

fn name((privilege, cpu): Place) -> String {
    let side = match privilege {
        Privilege::User => "user",
        Privilege::Kernel => "kernel",
        Privilege::Both => "all",
    };
    match cpu {
        None => side.to_owned(),
        Some(cpu) => format!("{side}, CPU {cpu}"),
    }
}

fn row(metrics: &Metrics, of_metric: &[MetricValue], places: &[Place]) -> Vec<String> {
    let first = &of_metric[0];
    let mut row = vec![first.metric.words.clone()];
    for (privilege, cpu) in places {
        let at = metrics.get(&first.metric.name, *privilege, *cpu);
        let value = at.and_then(|one| Some((one.value?, one.noisy)));
        row.push(match value {
            Some((value, noisy)) => format!("{}{}", figure(value), if noisy { " ~" } else { "" }),
            None => "–".to_owned(),
        });
    }
    let slots = of_metric.iter().filter(|one| one.value.is_some()).map(|one| one.slots).min();
    row.push(first.metric.unit.to_string());
    row.push(slots.map(|slots| slots.to_string()).unwrap_or_default());
    row.push(of_metric.iter().find_map(|one| one.instead.clone()).unwrap_or_default());
    row
}

/// Four digits.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    // Zero after rounding has no sign.
    match text.strip_prefix('-').filter(|digits| digits.bytes().all(|b| b == b'0' || b == b'.')) {
        Some(zero) => zero.to_owned(),
        None => text,
    }
}

/// The same with a plus where it is above zero.
pub(super) fn signed(value: f64) -> String {
    let text = figure(value);
    match value > 0.0 && text != figure(0.0) {
        true => format!("+{text}"),
        false => text,
    }
}

/// The header: machine, table, target, slots.
pub(super) fn head(stream: &Stream) -> String {
    let header = &stream.header;
    let table = header.table.as_deref().unwrap_or("no table of its own");
    let mut lines = vec![format!("{} ({table}): {}", header.machine, header.target)];
    if let Some(constructed) = &header.constructed {
        lines.push(format!("constructed, not counted: {constructed}"));
    }
    if let Some(lacks) = &header.lacks {
        lines.push(format!("no hardware counters: {lacks}"));
    }
    let (slots, spoilt) = (stream.slots.len(), stream.spoilt());
    let plural = if slots == 1 { "" } else { "s" };
    let mut counted = format!("{slots} slot{plural} of {} groups", header.groups.len());
    if header.groups.len() == 1 {
        counted = "all events at once".to_owned();
    }
    if spoilt > 0 {
        let why = stream.slots.iter().find_map(|slot| slot.spoilt.as_ref());
        let why = why.map(|why| why.words()).unwrap_or_default();
        counted.push_str(&format!("; {spoilt} thrown away, e.g. {why}"));
    }
    lines.push(counted);
    lines.join("\n")
}

/// Metrics without a value, by reason.
fn nothing(empty: &[(&str, &str)]) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in empty {
        match by_reason.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((why, vec![name])),
        }
    }
    let line =
        |(why, names): (&str, Vec<&str>)| format!("not counted: {}\n  {why}", names.join(", "));
    by_reason.into_iter().map(line).collect()
}

/// The functions with the largest shares.
pub(crate) fn profile(profile: &Profile, top: usize) -> String {
    let mut table = summary::table(&["self", "with callees", "function", "in"]);
    let Some(top) = profile.top(top) else { return "no sample was taken".to_owned() };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for row in top.rows.iter().filter(|row| row.share > 0.0) {
        let mark = match row.frame.kind {
            Kind::Kernel => " [k]",
            _ => "",
        };
        table.add_row([
            percent(row.share),
            percent(row.total_share),
            format!("{}{mark}", row.frame.name),
            row.frame.module.clone(),
        ]);
    }
    table.add_row([percent(top.rest), String::new(), "other functions".to_owned(), String::new()]);
    table.add_row([
        percent(top.unresolved),
        String::new(),
        "without a name".to_owned(),
        String::new(),
    ]);
    summary::right(&mut table, 0..2);
    let by = match &profile.clock {
        Clock::Cycles => "by cycles".to_owned(),
        Clock::CpuClock => {
            "by the CPU's timer, as there are no cycles to count: kernel functions that hold \
             interrupts off are attributed to the function that re-enables them"
                .to_owned()
        }
        Clock::Event(name) => format!("by {name}"),
    };
    let Profile { samples, frequency_hz, lost, truncated, .. } = profile;
    let mut foot = format!("{samples} samples at {frequency_hz} Hz {by}");
    if *lost > 0 {
        foot.push_str(&format!("; {lost} lost"));
    }
    if *truncated > 0 {
        foot.push_str(&format!("; {truncated} stacks cut short"));
    }
    format!("{}\n\n{foot}", summary::lines(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_no_negative_zero() {
        assert_eq!(figure(0.12345), "0.123");
        assert_eq!(figure(12.345), "12.35");
        assert_eq!(figure(-1738.4), "-1738");
        assert_eq!(figure(-1e-17), "0.000");
        assert_eq!(signed(0.5), "+0.500");
        assert_eq!(signed(-0.5), "-0.500");
        assert_eq!(signed(1e-17), "0.000");
    }

    #[test]
    fn every_place_with_a_value_is_a_column() {
        let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
        let path = format!("{manifest}/../measure/counters/recordings/amd-zen4.jsonl");
        let recording = std::fs::read(path).unwrap();
        let stream = Stream::read(&mut recording.as_slice()).unwrap();
        let metrics = Metrics::of(&stream);
        let sides = [Privilege::User, Privilege::Kernel, Privilege::Both];
        assert_eq!(places(&metrics, false), sides.map(|side| (side, None)));
        let cpus = [None, Some(0), Some(1), Some(2), Some(3)];
        let all: Vec<Place> = sides.iter().flat_map(|side| cpus.map(|cpu| (*side, cpu))).collect();
        assert_eq!(places(&metrics, true), all);
        let of_cpi = metrics.values().iter().filter(|one| one.metric.name == "cpi");
        let of_cpi: Vec<MetricValue> = of_cpi.cloned().collect();
        let row = row(&metrics, &of_cpi, &all);
        let figures = row[1..=all.len()].iter();
        assert!(figures.zip(&of_cpi).all(|(figure, one)| {
            figure.trim_end_matches(" ~") == super::figure(one.value.unwrap())
        }));
    }
}
