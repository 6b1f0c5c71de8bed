//! Metrics of streams made by hand: a value, or the reason why there is none.

use super::*;
use crate::event::Event;
use crate::source::Reading;
use crate::stream::{OnCpu, Slot, Spoilt, UncountedEvent};

const TABLE: &str = "intel/sapphire-rapids";
const WORK: &str = "INST_RETIRED.ANY";
const CYCLES: &str = "CPU_CLK_UNHALTED.THREAD";
const BRANCHES: &str = "BR_INST_RETIRED.ALL_BRANCHES";
const WRONG: &str = "BR_MISP_RETIRED.ALL_BRANCHES";

fn group(events: &[&str], privilege: Privilege) -> Group {
    let table = Table::named(TABLE).unwrap();
    let event = |name: &&str| -> Event { table.event(name).unwrap().clone() };
    Group { events: events.iter().map(event).collect(), privilege }
}

fn slot(group: usize, values: &[u64]) -> Slot {
    let reading = Reading { enabled_ns: 9, running_ns: 9, values: values.to_vec() };
    let cpus = vec![OnCpu { cpu: Some(0), reading }];
    Slot { group, begun_s: 0.0, wall_s: 1.0, cpus, spoilt: None }
}

fn stream(metrics: &[&str], groups: Vec<Group>, slots: Vec<Slot>) -> Stream {
    let metrics = metrics.iter().map(|name| (*name).to_owned()).collect();
    let table = Some(TABLE.to_owned());
    Stream { header: Header { table, metrics, groups, ..Header::default() }, slots }
}

fn branches(slots: Vec<Slot>) -> Stream {
    let events = [WORK, CYCLES, BRANCHES, WRONG];
    stream(&["branch"], vec![group(&events, Privilege::User)], slots)
}

/// Why a metric has no value anywhere.
fn why(stream: &Stream, metric: &str) -> String {
    let metrics = Metrics::of(stream);
    let of: Vec<&MetricValue> =
        metrics.values.iter().filter(|valued| valued.metric.name == metric).collect();
    assert!(!of.is_empty(), "{metric} has neither a value nor a reason");
    for valued in &of {
        assert_eq!(valued.value, None, "{metric}");
        assert_eq!(valued.slots, 0);
    }
    of[0].why.clone().expect("a reason")
}

#[test]
fn values_are_those_of_the_formulas() {
    let metrics = Metrics::of(&branches(vec![slot(0, &[1000, 2500, 200, 30]); 3]));
    for (name, expected) in
        [("branch_share", 0.2), ("branch_miss_ratio", 0.15), ("branch_mpki", 30.0)]
    {
        for cpu in [None, Some(0)] {
            let valued = metrics.get(name, Privilege::User, cpu).unwrap();
            assert!((valued.value.unwrap() - expected).abs() < 1e-9, "{name}");
            assert_eq!((valued.slots, valued.noisy, &valued.why), (3, false, &None));
        }
        // The kernel was not counted: there is no sum of both.
        let both = metrics.get(name, Privilege::Both, None).unwrap();
        assert!(both.value.is_none() && both.why.is_some(), "{both:?}");
    }
    let measures = metrics.measures();
    assert!(measures.iter().any(|(name, _)| name == "branch_miss_ratio_user"));
    assert!(measures.iter().all(|(name, _)| name.ends_with("_user")), "{measures:?}");
}

#[test]
fn counted_and_never_happened_is_zero() {
    let metrics = Metrics::of(&branches(vec![slot(0, &[1000, 2500, 200, 0])]));
    let ratio = metrics.get("branch_miss_ratio", Privilege::User, None).unwrap();
    assert_eq!((ratio.value, &ratio.why), (Some(0.0), &None));
}

#[test]
fn noise_of_one_event_is_noise_of_its_metric() {
    let slots = (0..6).map(|number| slot(0, &[1000, 2500, 200, 20 + 10 * number])).collect();
    let metrics = Metrics::of(&branches(slots));
    let noisy = |name| metrics.get(name, Privilege::User, None).unwrap().noisy;
    assert!(noisy("branch_miss_ratio") && !noisy("branch_share"));
}

#[test]
fn without_a_table_there_is_a_reason() {
    let mut without = branches(vec![slot(0, &[1000, 2500, 200, 30])]);
    without.header.table = None;
    assert_eq!(why(&without, "branch_share"), "no table of events knows this processor");
    without.header.table = Some("pdp/11".to_owned());
    assert!(why(&without, "branch_share").contains("no table of events called `pdp/11`"));
    // The recorded reason goes first.
    without.header.lacks = Some("the virtual machine has no counters".to_owned());
    assert_eq!(why(&without, "branch_share"), "the virtual machine has no counters");
}

#[test]
fn omitted_metrics_give_the_reason() {
    let mut left = stream(&["all"], vec![group(&[WORK, CYCLES], Privilege::User)], Vec::new());
    left.slots.push(slot(0, &[10, 20]));
    left.header.left_out.push(UncountedEvent {
        event: BRANCHES.to_owned(),
        why: "the hypervisor hides it".to_owned(),
    });
    assert_eq!(why(&left, "branch_share"), format!("{BRANCHES}: the hypervisor hides it"));
    assert_eq!(why(&left, "branch_mpki"), format!("{WRONG} was not counted"));
    left.header.lacks = Some("no counters".to_owned());
    assert_eq!(why(&left, "branch_mpki"), "no counters");
    // The table's own reason goes before all others.
    let unavailable = why(&left, "itlb_miss_ratio");
    assert_eq!(unavailable, "lookups of the ITLB are not counted");
    let metrics = Metrics::of(&left);
    let itlb = metrics.get("itlb_miss_ratio", Privilege::Both, None).unwrap();
    assert_eq!(itlb.instead.as_deref(), Some("itlb_mpki"));
}

#[test]
fn an_event_whose_turn_did_not_come_says_so() {
    let groups = vec![
        group(&[WORK, CYCLES, BRANCHES], Privilege::User),
        group(&[WORK, CYCLES, WRONG], Privilege::User),
    ];
    let mut short = stream(&["branch"], groups, vec![slot(0, &[1000, 2000, 200])]);
    assert!(why(&short, "branch_mpki").contains("did not come"), "{}", why(&short, "branch_mpki"));
    // A discarded slot of another group does not change that.
    let spoilt = Slot { spoilt: Some(Spoilt::Wrapped), ..slot(0, &[1, 1, 1]) };
    short.slots.push(spoilt);
    assert!(why(&short, "branch_mpki").contains("did not come"), "{}", why(&short, "branch_mpki"));
    short.slots.push(Slot { spoilt: Some(Spoilt::NeverRan), ..slot(1, &[0, 0, 0]) });
    let thrown = why(&short, "branch_mpki");
    assert_eq!(thrown, format!("every slot of {WRONG} was thrown away"));
}

#[test]
fn a_zero_denominator_gives_no_value() {
    let never = branches(vec![slot(0, &[1000, 2500, 0, 0])]);
    let metrics = Metrics::of(&never);
    let ratio = metrics.get("branch_miss_ratio", Privilege::User, None).unwrap();
    assert_eq!(ratio.value, None);
    assert!(ratio.why.as_ref().unwrap().contains(BRANCHES), "{ratio:?}");
    // Nothing ran at all.
    let idle = branches(vec![slot(0, &[0, 0, 0, 0])]);
    assert!(why(&idle, "branch_share").contains("not counted"), "{}", why(&idle, "branch_share"));
    assert!(Metrics::of(&idle).measures().is_empty());
}

#[test]
fn software_metrics_need_no_table() {
    let software = Table::software();
    let events: Vec<Event> = software.events().cloned().collect();
    let named = |name: &str| events.iter().position(|event| event.name == name).unwrap();
    let mut values = vec![0; events.len()];
    values[named("task_clock")] = 500_000_000;
    values[named("context_switches")] = 40;
    let groups = vec![Group { events, privilege: Privilege::Both }];
    for table in [None, Some(TABLE.to_owned())] {
        let mut stream = stream(&["system"], groups.clone(), vec![slot(0, &values)]);
        stream.header.table = table;
        let metrics = Metrics::of(&stream);
        let switches = metrics.get("context_switches_per_second", Privilege::Both, None).unwrap();
        assert_eq!(switches.value, Some(80.0), "40 in half a second on a CPU");
    }
}

#[test]
fn each_value_is_found() {
    let mut second = slot(0, &[1000, 2500, 200, 30]);
    second.cpus.push(OnCpu { cpu: Some(7), ..second.cpus[0].clone() });
    let metrics = Metrics::of(&branches(vec![second]));
    // In the catalogue's order, which is not that of the names.
    let names = metrics.values().iter().map(|valued| &valued.metric.name);
    assert!(!names.is_sorted());
    let is_found = |valued: &MetricValue| {
        let found = metrics.get(&valued.metric.name, valued.privilege, valued.cpu);
        std::ptr::eq(found.unwrap(), valued)
    };
    assert!(metrics.values().iter().all(is_found));
    assert!(metrics.values().iter().any(|valued| valued.cpu == Some(7)));
    assert!(metrics.get("branch_mpki", Privilege::User, Some(8)).is_none());
    assert!(metrics.get("branch", Privilege::User, None).is_none());
    let together = metrics.only(|valued| valued.cpu.is_none());
    assert!(together.get("branch_share", Privilege::User, None).is_some());
    assert!(together.get("branch_share", Privilege::User, Some(7)).is_none());
    assert!(together.values().iter().all(|valued| valued.cpu.is_none()));
}

#[test]
fn a_cpu_without_a_value_is_in_no_row() {
    let mut second = slot(0, &[1000, 2500, 200, 30]);
    let mut idle = OnCpu { cpu: Some(7), ..second.cpus[0].clone() };
    idle.reading.values = vec![1000, 2500, 0, 0];
    second.cpus.push(idle);
    let metrics = Metrics::of(&branches(vec![second]));
    let get = |name, privilege, cpu| metrics.get(name, privilege, cpu);
    assert!(get("branch_share", Privilege::User, Some(7)).is_some());
    assert!(get("branch_miss_ratio", Privilege::User, Some(0)).is_some());
    assert!(get("branch_miss_ratio", Privilege::User, Some(7)).is_none());
    // The reason stands once, over all CPUs.
    let both = metrics.values().iter().filter(|valued| valued.privilege == Privilege::Both);
    let both: Vec<&MetricValue> = both.collect();
    assert!(both.iter().any(|valued| valued.why.is_some()));
    assert!(both.iter().all(|valued| valued.cpu.is_none()));
}
