//! Counting prepared and begun against a mock that has all, some or none of the events.

use workahead_machine::Machine;

use super::*;
use crate::event::Place;
use crate::mock::{Fault, Mock, Virtual};
use crate::source::{CountError, Counting, Target};
use crate::target;

const TABLE: &str = "intel/sapphire-rapids";

fn table(name: &str) -> &'static Table {
    Table::named(name).unwrap()
}

/// A mock that counts every event of a table but these.
fn all_but(table: &Table, lacks: &[&str]) -> Mock {
    let has = |event: &&Event| !lacks.contains(&event.name.as_str());
    let per_s: Vec<(&str, f64)> =
        table.events().filter(has).map(|event| (event.name.as_str(), 1e6)).collect();
    Mock::new(&per_s, &Virtual::until(1.0))
}

fn choice(metrics: &[&str]) -> Choice {
    Choice {
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        privileges: vec![Privilege::User, Privilege::Kernel],
        slot_s: 0.5,
        seed: 11,
        spare: 0,
    }
}

fn header_of(metrics: &[&str], table: &Table, source: &mut dyn Source) -> Header {
    Counter::prepare(&choice(metrics), Some(table), source, &Machine::here()).header
}

fn is_software(group: &Group) -> bool {
    group.events.iter().all(|event| event.place == Place::None)
}

/// Refuses groups with more events in general counters than it has.
struct Few {
    mock: Mock,
    general: usize,
}

impl Source for Few {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let general = group.iter().filter(|event| !matches!(event.place, Place::Fixed(_)));
        if general.count() > self.general {
            return Err(CountError::DoesNotFit { events: group.len() });
        }
        self.mock.open(group, privilege, target)
    }
}

#[test]
fn everything_is_counted_for_user_and_kernel_in_groups_that_fit() {
    for name in [TABLE, "intel/skylake-sp", "amd/zen4"] {
        let table = table(name);
        let header = header_of(&["all"], table, &mut all_but(table, &[]));
        assert_eq!(header.lacks, None);
        let (software, hardware): (Vec<&Group>, Vec<&Group>) =
            header.groups.iter().partition(|group| is_software(group));
        assert_eq!(software.len(), 1);
        assert_eq!(software[0].privilege, Privilege::Both);
        let of = |privilege| hardware.iter().filter(move |group| group.privilege == privilege);
        assert!(
            of(Privilege::User)
                .map(|group| &group.events)
                .eq(of(Privilege::Kernel).map(|group| &group.events))
        );
        let always = table.always();
        for group in &hardware {
            assert!(crate::group::fits(&group.events, table.counters()));
            assert!(always.iter().all(|event| group.events.contains(event)));
        }
        // Every event that the metrics need is in a group, or left out with its reason.
        for event in table.needed(&chosen(&["all".to_owned()])) {
            let counted = header.groups.iter().any(|group| group.events.contains(event));
            let left = header.left_out.iter().any(|left| left.event == event.name);
            assert!(counted != left, "{}", event.name);
        }
        assert_eq!(header.left_out.is_empty(), name != "amd/zen4");
    }
}

#[test]
fn a_leader_leads_its_group() {
    let table = table(TABLE);
    let header = header_of(&["topdown"], table, &mut all_but(table, &[]));
    let led: Vec<&Group> = header
        .groups
        .iter()
        .filter(|group| group.events.iter().any(|event| table.leader(&event.name).is_some()))
        .collect();
    assert_eq!(led.len(), 2, "one for user, one for kernel");
    assert!(led.iter().all(|group| group.events[0].name == "TOPDOWN.SLOTS"));
    // Without it there is nothing to lead.
    let header = header_of(&["topdown"], table, &mut all_but(table, &["TOPDOWN.SLOTS"]));
    let left: Vec<&str> = header.left_out.iter().map(|left| left.event.as_str()).collect();
    assert_eq!(left.len(), 9, "{left:?}");
    assert!(left.contains(&"TOPDOWN.SLOTS") && left.contains(&"PERF_METRICS.RETIRING"));
}

#[test]
fn a_machine_without_events_counts_software_and_says_why() {
    let table = table(TABLE);
    let header = header_of(&["cpi", "l2"], table, &mut Mock::new(&[], &Virtual::until(1.0)));
    assert_eq!(header.groups.len(), 1);
    assert!(is_software(&header.groups[0]));
    let lacks = header.lacks.unwrap();
    assert!(lacks.contains("does not count INST_RETIRED.ANY"), "{lacks}");
    let choice = choice(&["cpi"]);
    let without = Counter::prepare(&choice, None, &mut all_but(table, &[]), &Machine::here());
    assert!(is_software(&without.header().groups[0]));
    assert!(without.header().lacks.as_ref().unwrap().contains("no table"));
    assert_eq!(without.header().table, None);
}

#[test]
fn an_event_that_is_missing_is_named() {
    let table = table(TABLE);
    let header =
        header_of(&["l2", "branch"], table, &mut all_but(table, &["MEM_LOAD_RETIRED.L2_HIT"]));
    assert_eq!(header.lacks, None);
    let left: Vec<&str> = header.left_out.iter().map(|left| left.event.as_str()).collect();
    assert_eq!(left, ["MEM_LOAD_RETIRED.L2_HIT"]);
    assert_eq!(header.left_out[0].why, "the mock has no such event");
    let names = |group: &Group| -> Vec<String> {
        group.events.iter().map(|event| event.name.clone()).collect()
    };
    let counted: Vec<String> = header.groups.iter().flat_map(names).collect();
    assert!(!counted.contains(&"MEM_LOAD_RETIRED.L2_HIT".to_owned()));
    assert!(counted.contains(&"MEM_LOAD_RETIRED.L2_MISS".to_owned()));
}

#[test]
fn fewer_counters_make_smaller_groups() {
    let table = table("intel/skylake-sp");
    let most = |header: &Header| {
        let general = |group: &Group| {
            group.events.iter().filter(|event| !matches!(event.place, Place::Fixed(_))).count()
        };
        header.groups.iter().map(general).max().unwrap()
    };
    let roomy = header_of(&["l2", "tlb"], table, &mut all_but(table, &[]));
    // The NMI watchdog holds one of four.
    let mut few = Few { mock: all_but(table, &[]), general: 3 };
    let tight = header_of(&["l2", "tlb"], table, &mut few);
    assert_eq!((most(&roomy), most(&tight)), (4, 3));
    assert!(tight.groups.len() > roomy.groups.len());
    assert!(tight.lacks.is_none() && tight.left_out.is_empty());
    // Refused once, by the second group that is opened: three from then on as well.
    let mut once = all_but(table, &[]);
    once.faults.insert(1, Fault::Open(CountError::DoesNotFit { events: 7 }));
    assert_eq!(most(&header_of(&["l2", "tlb"], table, &mut once)), 3);
    // None at all: not even one event beside those with counters of their own.
    let none = header_of(&["l2"], table, &mut Few { mock: all_but(table, &[]), general: 0 });
    assert!(is_software(&none.groups[0]) && none.lacks.unwrap().contains("do not fit"));
}

#[test]
fn refusals_are_reported() {
    let table = table(TABLE);
    let forbidden = CountError::Forbidden { event: "INST_RETIRED.ANY".to_owned() };
    for error in [forbidden, CountError::Busy, CountError::TooManyFiles] {
        // At once, and after some groups were opened.
        for at in [0, 2] {
            let mut source = all_but(table, &[]);
            source.faults.insert(at, Fault::Open(error.clone()));
            let header = header_of(&["all"], table, &mut source);
            assert_eq!(header.lacks, Some(error.to_string()));
            assert!(header.groups.iter().all(is_software));
            assert_eq!(source.open_now(), 0);
        }
    }
}

#[test]
fn a_source_that_denies_an_unrequested_event_ends_it() {
    let table = table(TABLE);
    let mut source = all_but(table, &[]);
    let odd = CountError::NoSuchEvent { event: "a, b".to_owned(), why: "no".to_owned() };
    source.faults.insert(1, Fault::Open(odd));
    let header = header_of(&["l2"], table, &mut source);
    assert!(header.lacks.unwrap().contains("a, b"));
}

#[test]
fn windows_hold_whole_rounds() {
    let table = table(TABLE);
    let counter =
        Counter::prepare(&choice(&["l2"]), Some(table), &mut all_but(table, &[]), &Machine::here());
    let groups = counter.header().groups.len() as f64;
    assert!(groups > 1.0);
    let fitted = counter.clone().fitted(10.0 * groups * 0.5 + 0.3);
    let rounds = (10.0 * groups * 0.5 + 0.3) / (groups * fitted.header().slot_s);
    assert!((rounds - 10.0).abs() < 1e-9, "{rounds} rounds");
    // Too short for any: as it was.
    assert_eq!(counter.clone().fitted(0.1).header().slot_s, 0.5);
}

#[test]
fn counting_goes_on_beside_others_until_it_is_ended() {
    let table = table(TABLE);
    let mut source = all_but(table, &[]);
    let mut choice = choice(&["branch"]);
    choice.slot_s = 0.001;
    let counter = Counter::prepare(&choice, Some(table), &mut source, &Machine::here());
    let targets = Box::new(target::Machine { cpus: vec![0, 1] });
    let running = counter.begin(0, targets, Box::new(source.clone())).unwrap();
    running.begun();
    while source.requests().len() < 40 {
        std::thread::yield_now();
    }
    let stream = running.end();
    assert_eq!(source.open_now(), 0);
    assert!(stream.slots.len() >= 10, "{} slots", stream.slots.len());
    assert_eq!(stream.header.target, "everything on the CPUs");
    assert_eq!(stream.header.lacks, None);
    let begun: Vec<f64> = stream.slots.iter().map(|slot| slot.begun_s).collect();
    assert!(begun.is_sorted());
    assert!(stream.slots.iter().all(|slot| slot.cpus.len() == 2 && slot.wall_s > 0.0));
    // Ended early, it says why.
    let mut source = all_but(table, &[]);
    source.faults.insert(0, Fault::Begin(CountError::TooManyFiles));
    let targets = Box::new(target::Machine { cpus: vec![0, 1] });
    let running = counter.begin(0, targets, Box::new(source)).unwrap();
    running.begun();
    let stream = running.end();
    assert!(stream.slots.is_empty());
    assert!(stream.header.lacks.unwrap().contains("too many open files"));
}

#[test]
fn counters_that_a_profile_takes_are_left_free() {
    let table = Table::named("intel/skylake-sp").unwrap();
    let general = |spare| {
        let choice = Choice { spare, ..choice(&["all"]) };
        let mut source = all_but(table, &[]);
        let header = Counter::prepare(&choice, Some(table), &mut source, &Machine::here()).header;
        let takes = |group: &Group| {
            let in_general = |event: &&Event| matches!(event.place, Place::Any | Place::Only(_));
            group.events.iter().filter(in_general).count()
        };
        header.groups.iter().map(takes).max().unwrap()
    };
    assert_eq!(general(0), usize::from(table.counters()));
    assert_eq!(general(1), usize::from(table.counters()) - 1);
}
