//! The probe's logic on invented figures, and the probe itself on whatever this machine is.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;
use crate::topology::{Core, CoreKind};

fn work(per_s: f64, presence: f64) -> Work {
    Work { per_s, presence }
}

fn pair(reported: Option<bool>, throughput_ratio: Option<f64>) -> Pair {
    Pair { cpus: (0, 1), reported, throughput_ratio }
}

#[test]
fn two_cores_and_siblings_are_distinguished() {
    let alone = [work(100.0, 1.0), work(100.0, 1.0)];
    let cores = ratio_of(&alone, &[work(97.0, 1.0), work(96.0, 0.99)]);
    assert_eq!(pair(None, cores).behaviour(), Behaviour::TwoCores);
    let siblings = ratio_of(&alone, &[work(52.0, 1.0), work(51.0, 0.98)]);
    assert_eq!(pair(None, siblings).behaviour(), Behaviour::OneCore);
    // A strong and a small core side by side.
    let hybrid =
        ratio_of(&[work(100.0, 1.0), work(45.0, 1.0)], &[work(93.0, 1.0), work(44.0, 1.0)]);
    assert_eq!(pair(None, hybrid).behaviour(), Behaviour::TwoCores);
    for between in [0.7, 0.75, 0.79] {
        assert_eq!(pair(None, Some(between)).behaviour(), Behaviour::Unclear);
    }
    assert_eq!(pair(Some(true), None).behaviour(), Behaviour::Unclear);
}

#[test]
fn disturbed_repetitions_show_nothing() {
    let alone = [work(100.0, 1.0), work(100.0, 1.0)];
    // The second hardly ran: the first was alone, and its speed does not prove a second core.
    assert_eq!(ratio_of(&alone, &[work(100.0, 1.0), work(100.0, 0.4)]), None);
    assert_eq!(
        ratio_of(&[work(0.0, 1.0), work(0.0, 1.0)], &[work(1.0, 1.0), work(1.0, 1.0)]),
        None
    );
}

#[test]
fn contradictions_with_the_system_are_found() {
    let siblings = Siblings {
        pairs: vec![
            pair(Some(true), Some(0.5)),
            pair(Some(false), Some(0.99)),
            pair(Some(false), Some(0.51)),
            pair(Some(true), Some(0.98)),
            pair(None, Some(0.5)),
            pair(Some(true), Some(0.72)),
            pair(Some(false), None),
        ],
    };
    let found = siblings.pairs.iter().filter(|pair| pair.is_disagreement());
    let found: Vec<_> = found.map(|pair| pair.throughput_ratio).collect();
    assert_eq!(found, [Some(0.51), Some(0.98)]);
    assert_eq!(siblings.pair(), Some((0, 1)));
    assert_eq!(Siblings { pairs: vec![pair(Some(true), Some(0.9))] }.pair(), None);
}

/// Cores with two siblings each, numbered as Linux does: 0 and n, 1 and n + 1 …
fn smt_machine(cores: usize) -> Machine {
    let mut machine = Machine::here();
    machine.smt = Smt::On;
    machine.cpus.allowed = (0..2 * cores).collect();
    machine.cores = (0..cores)
        .map(|core| Core {
            cpus: [core, core + cores].into_iter().collect(),
            kind: CoreKind::Uniform,
            package: Some(0),
            node: None,
        })
        .collect();
    machine
}

#[test]
fn small_machines_are_probed_completely_and_large_ones_by_their_first_cpu() {
    let small = candidates(&smt_machine(4));
    assert_eq!(small.len(), 8 * 7 / 2);
    assert_eq!(small[0], (0, 4));
    let large = candidates(&smt_machine(48));
    assert_eq!(large.len(), PARTNERS + REPORTED_PAIRS - 1);
    assert!(large.contains(&(0, 1)) && large.contains(&(0, 48)) && large.contains(&(3, 51)));
    let mut distinct = large.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), large.len());
    let mut alone = smt_machine(1);
    alone.cpus.allowed = [1].into_iter().collect();
    assert!(candidates(&alone).is_empty());
}

#[test]
fn what_the_system_says_of_a_pair() {
    let mut machine = smt_machine(2);
    assert_eq!(reported(&machine, (0, 2)), Some(true));
    assert_eq!(reported(&machine, (0, 1)), Some(false));
    machine.smt = Smt::Unknown;
    assert_eq!(reported(&machine, (0, 2)), None);
}

#[test]
fn this_machine_is_probed_to_the_end() {
    let machine = Machine::here();
    let stop = AtomicBool::new(false);
    let deadline = Deadline { at: Instant::now() + Duration::from_secs(20), stop: &stop };
    let siblings = Siblings::probe(&machine, deadline).unwrap();
    assert_eq!(siblings.pairs.len(), candidates(&machine).len());
    for pair in siblings.pairs {
        assert!(pair.throughput_ratio.is_none_or(|ratio| ratio > 0.0));
    }
}

#[test]
fn what_cpus_do_counts_for_more_than_what_the_system_says() {
    let machine = |reported: bool| {
        let mut machine = Machine::here();
        machine.cpus.allowed = (0..2).collect();
        let cores: &[&[usize]] = if reported { &[&[0, 1]] } else { &[&[0], &[1]] };
        let core = |cpus: &&[usize]| Core {
            cpus: cpus.iter().copied().collect(),
            kind: CoreKind::Uniform,
            package: None,
            node: None,
        };
        machine.cores = cores.iter().map(core).collect();
        machine
    };
    let seen = |reported: bool, ratio: f64| {
        let probed = Siblings { pairs: vec![pair(Some(reported), Some(ratio))] };
        let SiblingPair { cpus, source } = SiblingPair::of(&machine(reported), Some(&probed));
        (cpus.is_some(), source)
    };
    let (one_core, unclear, two_cores) = (0.5, 0.75, 0.99);
    for reported in [true, false] {
        assert_eq!(seen(reported, one_core), (true, Source::Probe));
        assert_eq!(seen(reported, unclear), (reported, Source::System));
        assert_eq!(seen(reported, two_cores), (false, Source::Probe));
        for nothing in [None, Some(&Siblings::default())] {
            let by_system =
                SiblingPair { cpus: reported.then_some((0, 1)), source: Source::System };
            assert_eq!(SiblingPair::of(&machine(reported), nothing), by_system);
        }
    }
}
