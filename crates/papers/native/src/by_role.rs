//! Counts of main threads and helpers: each is pinned to CPUs of its own, so the counts of those
//! CPUs are theirs (Zhou et al. 2005, figures 4, 7, 11, 14, 15; S4.28).

use std::collections::BTreeSet;

use workahead_counters::event::Privilege;
use workahead_counters::metric::Unit;
use workahead_counters::metrics::Metrics;
use workahead_counters::rates::Rates;
use workahead_counters::stream::Stream;
use workahead_counters::table::Table;
use workahead_study::engine::Sample;

/// The CPUs of main threads and of helpers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    pub(crate) main: BTreeSet<u32>,
    pub(crate) helper: BTreeSet<u32>,
}

/// Events per tuple of the sample, in total and by role: `l2_load_misses_per_tuple`,
/// `l2_load_misses_per_tuple_main`, `l2_load_misses_per_tuple_helper`.
pub(crate) fn measures(counts: &Stream, sample: &Sample, roles: &Roles) -> Vec<(String, f64)> {
    let Some(table) = counts.header.table.as_deref().and_then(|name| Table::named(name).ok())
    else {
        return Vec::new();
    };
    let rates = Rates::of(counts, &table.work);
    let metrics = Metrics::of(counts);
    let mut measures = Vec::new();
    let all: BTreeSet<u32> = rates.cpus().into_iter().collect();
    let groups = [("", &all), ("_main", &roles.main), ("_helper", &roles.helper)];
    let names: BTreeSet<&str> = metrics
        .values()
        .iter()
        .filter(|valued| valued.metric.unit == Unit::PerThousandInstructions)
        .map(|valued| valued.metric.name.as_str())
        .collect();
    for name in names {
        let called = per_tuple(name);
        for (suffix, cpus) in groups {
            let of_cpu = |cpu: &u32| {
                let value = metrics.get(name, Privilege::User, Some(*cpu))?.value?;
                let work = rates.rate(&table.work, Privilege::User, Some(*cpu))?.per_s.mean;
                Some(value / 1000.0 * work * sample.wall_s / sample.tuples as f64)
            };
            let counted: Vec<f64> = cpus.iter().filter_map(of_cpu).collect();
            if !counted.is_empty() {
                measures.push((format!("{called}{suffix}"), counted.iter().sum()));
            }
        }
    }
    measures
}

/// `l2_load_mpki` → `l2_load_misses_per_tuple`, `machine_clears_pki` → `machine_clears_per_tuple`.
fn per_tuple(metric: &str) -> String {
    match (metric.strip_suffix("_mpki"), metric.strip_suffix("_pki")) {
        (Some(what), _) => format!("{what}_misses_per_tuple"),
        (None, Some(what)) => format!("{what}_per_tuple"),
        (None, None) => format!("{metric}_per_tuple"),
    }
}

#[cfg(test)]
mod tests {
    use workahead_counters::source::Reading;
    use workahead_counters::stream::{Group, Header, OnCpu, Slot};

    use super::*;

    /// A second of two CPUs: the first retires 2000 M instructions with 1 M misses, the second 1000
    /// M with 9 M.
    fn counts() -> Stream {
        let table = Table::named("intel/sapphire-rapids").unwrap();
        let names = ["INST_RETIRED.ANY", "MEM_LOAD_RETIRED.L2_MISS"];
        let events = names.map(|name| table.event(name).unwrap().clone()).to_vec();
        let on = |cpu, instructions, misses| OnCpu {
            cpu: Some(cpu),
            reading: Reading {
                enabled_ns: 1_000_000_000,
                running_ns: 1_000_000_000,
                values: vec![instructions, misses],
            },
        };
        Stream {
            header: Header {
                table: Some(table.name.clone()),
                metrics: vec!["l2".to_owned()],
                groups: vec![Group { events, privilege: Privilege::User }],
                ..Header::default()
            },
            slots: vec![Slot {
                group: 0,
                begun_s: 0.0,
                wall_s: 1.0,
                cpus: vec![on(0, 2_000_000_000, 1_000_000), on(1, 1_000_000_000, 9_000_000)],
                spoilt: None,
            }],
        }
    }

    #[test]
    fn misses_are_told_per_tuple_and_role() {
        let sample = Sample { wall_s: 1.0, tuples: 10_000_000, ..Sample::default() };
        let roles = Roles { main: [0].into(), helper: [1].into() };
        let measures: std::collections::BTreeMap<String, f64> =
            super::measures(&counts(), &sample, &roles).into_iter().collect();
        let close = |name: &str, expected: f64| {
            assert!((measures[name] - expected).abs() < 1e-9, "{name}: {}", measures[name]);
        };
        close("l2_load_misses_per_tuple", 1.0);
        close("l2_load_misses_per_tuple_main", 0.1);
        close("l2_load_misses_per_tuple_helper", 0.9);
        // Events that were not counted have no value.
        assert!(!measures.contains_key("l2_misses_per_tuple"), "{measures:?}");
    }

    #[test]
    fn names_end_in_what_they_are_per() {
        assert_eq!(per_tuple("l2_load_mpki"), "l2_load_misses_per_tuple");
        assert_eq!(per_tuple("memory_order_clears_pki"), "memory_order_clears_per_tuple");
    }
}
