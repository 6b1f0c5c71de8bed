//! Names of settings, measures and tiers on the page.

use std::collections::HashMap;

use workahead_study::setting::Setting;

use crate::number;

pub(crate) use workahead_study::label::{CHARS_MAX, cut, value};

/// Names that are omitted before their values: `hash join`, not `operator hash join`.
const SILENT: [&str; 7] = ["case", "operator", "technique", "walk", "size", "variant", "scenario"];
/// Spellings of names and values.
const PROPER: [(&str, &str); 6] = [
    ("csb_tree", "CSB+-tree"),
    ("csb", "CSB+-tree"),
    ("amac", "AMAC"),
    ("in-cache", "in cache"),
    ("knee", "around the knee"),
    ("out-of-cache", "out of cache"),
];
/// Endings that are units, and how they are written.
const UNITS: [(&str, &str); 13] = [
    ("_mtuples_per_s", "Mtuples/s"),
    ("_per_cpu_s", "per CPU second"),
    ("_per_s", "per second"),
    ("_bytes", "bytes"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
    ("_ns", "ns"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_fraction", "fraction"),
    ("_cycles", "cycles"),
];

/// A name with spaces, its unit apart: `table_bytes` is `("table", Some("bytes"))`.
fn parts(name: &str) -> (String, Option<&'static str>) {
    let split = UNITS.iter().find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, *unit)));
    match split {
        Some((stem, unit)) if !stem.is_empty() => (spaced(stem), Some(unit)),
        _ => (spaced(name), None),
    }
}

fn spaced(name: &str) -> String {
    cut(name, CHARS_MAX).replace('_', " ")
}

/// A text as it can be repeated over the page. Several texts may have one label.
pub(crate) fn label(text: &str) -> String {
    cut(text, CHARS_MAX).into_owned()
}

/// The name of an axis: `work-ahead set, entries`, `table, MiB`, `technique`.
pub(crate) fn axis(name: &str) -> String {
    match (name, parts(name)) {
        ("case", _) => "case".to_owned(),
        (_, (stem, Some(unit))) => format!("{stem}, {unit}"),
        (_, (stem, None)) => stem,
    }
}

/// A setting, with its name if needed: `hash join`, `pages huge`, `table 64 MiB`.
pub(crate) fn setting(name: &str, value: &Setting) -> String {
    let written = bare(value);
    match parts(name) {
        _ if SILENT.contains(&name) && value.as_text().is_some() => written,
        (stem, Some("bytes")) => match value.as_integer().and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => format!("{stem} {}", number::bytes(bytes)),
            None => format!("{stem} {written} bytes"),
        },
        (stem, Some(unit)) => format!("{stem} {written} {unit}"),
        (stem, None) => match value {
            Setting::Switch(true) => stem,
            Setting::Switch(false) => format!("no {stem}"),
            _ => format!("{stem} {written}"),
        },
    }
}

/// Counts written before their noun: `10 clients`.
const COUNTED: [(&str, &str); 4] =
    [("clients", "client"), ("cpus", "CPU"), ("threads", "thread"), ("warehouses", "warehouse")];

/// A setting as a phrase: `for unj`, `at 10 clients`, `with pages huge`.
pub(crate) fn spoken(name: &str, value: &Setting) -> String {
    let noun = COUNTED.iter().find(|(counted, _)| *counted == name);
    match (noun, value.as_integer().and_then(|count| usize::try_from(count).ok()), value) {
        (Some((_, noun)), Some(count), _) => format!("at {}", counted(count, noun)),
        _ if matches!(name, "query" | "statement" | "workload") => format!("for {}", bare(value)),
        _ if name == "parallel" => format!("at parallelism {}", bare(value)),
        _ => format!("with {}", setting(name, value)),
    }
}

/// An axis as the subject of a sentence: `the number of clients`, `the query`.
pub(crate) fn subject(name: &str) -> String {
    let noun = COUNTED.iter().find(|(counted, _)| *counted == name);
    match (noun, name) {
        (Some((_, noun)), _) => format!("the number of {noun}s"),
        (None, "parallel") => "the degree of parallelism".to_owned(),
        (None, name) => format!("the {}", axis(name)),
    }
}

/// A value alone. Words that are made of one name, such as `hash_join`, get their spaces; anything
/// with punctuation, such as `amac:width=32`, stays as a user would type it.
pub(crate) fn bare(value: &Setting) -> String {
    if let Setting::Text(text) = value
        && let Some((_, proper)) = PROPER.iter().find(|(name, _)| name == text)
    {
        return (*proper).to_owned();
    }
    match value {
        Setting::Text(text) => {
            let text = label(text);
            match text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') {
                true => spaced(&text),
                false => text,
            }
        }
        Setting::Integer(whole) if whole.unsigned_abs() >= 10_000 => {
            let sign = if *whole < 0 { "−" } else { "" };
            format!("{sign}{}", number::count(whole.unsigned_abs()))
        }
        other => other.to_string(),
    }
}

/// A measure with its unit, as an axis of a chart names it.
pub(crate) fn measure(name: &str) -> String {
    match name {
        "mtuples_per_s" => "Mtuples/s".to_owned(),
        "ns_per_tuple" => "ns per tuple".to_owned(),
        "wall_s" => "wall time, s".to_owned(),
        "cpu_s" => "CPU time, s".to_owned(),
        other => axis(other),
    }
}

/// The quantity of a measure, for titles.
pub(crate) fn quantity(name: &str) -> String {
    match name {
        "mtuples_per_s" => "Throughput".to_owned(),
        "ns_per_tuple" => "Time per tuple".to_owned(),
        "wall_s" => "Wall time".to_owned(),
        "cpu_s" => "CPU time".to_owned(),
        other => capital(&parts(other).0),
    }
}

/// With a capital first.
pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// An evidence tier with its meaning.
pub(crate) fn tier(letter: &str) -> String {
    let meaning = match letter {
        "A" => "all hardware counters",
        "B" => "some hardware counters",
        "C" => "time and software events, no hardware counters",
        "D" => "instruction-level tools",
        "E" => "modelled, not measured",
        _ => return "evidence tier unknown".to_owned(),
    };
    format!("evidence tier {letter}: {meaning}")
}

/// Words that stay on one line: a number goes with its unit.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// The singular of a study's tuples: `query` of `queries`, `probe` of `probes`.
pub(crate) fn singular(plural: &str) -> String {
    let plural = plural.trim_end_matches("/s").trim_end_matches("/min");
    match (plural.strip_suffix("ies"), plural.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => plural.to_owned(),
    }
}

/// `1 cell`, `3 cells`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number::count(count as u64))
}

/// Names by reason, in the order of their first mention.
pub(crate) fn by_reason(
    entries: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, Vec<String>)> {
    let (mut reasons, mut places) =
        (Vec::<(String, Vec<String>)>::new(), HashMap::<String, usize>::new());
    for (name, why) in entries {
        match places.get(&why) {
            Some(at) => reasons[*at].1.push(name),
            None => {
                places.insert(why.clone(), reasons.len());
                reasons.push((why, vec![name]));
            }
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_as_words() {
        let text = |text: &str| Setting::Text(text.to_owned());
        assert_eq!(setting("operator", &text("hash_join")), "hash join");
        assert_eq!(setting("pages", &text("huge")), "pages huge");
        assert_eq!(setting("technique", &text("amac:width=32")), "amac:width=32");
        assert_eq!(setting("table_bytes", &Setting::Integer(64 << 20)), "table 64 MiB");
        assert_eq!(setting("rows", &Setting::Integer(2_000_000)), "rows 2,000,000");
        assert_eq!(setting("set_size", &Setting::Integer(8192)), "set size 8192");
        assert_eq!(setting("operator", &text("csb_tree")), "CSB+-tree");
        assert_eq!(setting("size", &text("in cache")), "in cache");
        assert_eq!(setting("size", &Setting::Integer(64)), "size 64");
        assert_eq!(setting("merged", &Setting::Switch(false)), "no merged");
        assert_eq!(spoken("query", &text("unj")), "for unj");
        assert_eq!(spoken("clients", &Setting::Integer(1)), "at 1 client");
        assert_eq!(spoken("pages", &text("huge")), "with pages huge");
        let one = ["queries", "probes", "new orders/min", "work"].map(singular);
        assert_eq!(one, ["query", "probe", "new order", "work"]);
        assert_eq!(subject("clients"), "the number of clients");
    }

    #[test]
    fn names_and_values_of_any_length_are_short() {
        let long = "x_".repeat(500_000);
        let value = Setting::Text(long.clone());
        assert_eq!(bare(&value), format!("{}…", "x_".repeat(CHARS_MAX / 2)));
        assert_eq!(axis(&long), format!("{}…", "x ".repeat(CHARS_MAX / 2)));
        assert!(setting(&long, &value).chars().count() <= 2 * CHARS_MAX + 3);
        assert!(measure(&long).chars().count() <= CHARS_MAX + 1);
    }

    #[test]
    fn measures_have_units() {
        assert_eq!(measure("table_bytes"), "table, bytes");
        assert_eq!(measure("mtuples_per_s"), "Mtuples/s");
        assert_eq!(measure("loop_passes_per_cpu_s"), "loop passes, per CPU second");
        assert_eq!(quantity("helper_share_fraction"), "Helper share");
        assert_eq!(counted(1, "cell"), "1 cell");
        assert_eq!(counted(2, "cell"), "2 cells");
    }
}
