//! Placements on described machines: four orders where the machine has four, reasons where not.

mod fixture;

use fixture::Fixture;
use workahead_machine::Machine;
use workahead_machine::control::placement::Placement;
use workahead_machine::control::smt;

fn machine(name: &str) -> Machine {
    Machine::read(&Fixture::named(name).root())
}

/// Two sockets, each of four cores of two siblings, all of it allowed.
fn whole_server() -> Machine {
    let mut machine = machine("two-socket-smt-server");
    machine.cpus.allowed = machine.cpus.online.clone();
    machine
}

#[test]
fn four_policies_give_four_orders() {
    let server = whole_server();
    let order = |placement: Placement| placement.order(&server).unwrap();
    let list = |order: Vec<usize>| order.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    let expected = [
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
        "0 8 1 9 2 10 3 11 4 12 5 13 6 14 7 15",
        "0 1 2 3 8 9 10 11 4 5 6 7 12 13 14 15",
        "0 4 1 5 2 6 3 7 8 12 9 13 10 14 11 15",
    ];
    for (placement, expected) in Placement::ALL.into_iter().zip(expected) {
        assert_eq!(list(order(placement)), expected, "{placement}");
        assert_eq!(placement.name().parse::<Placement>().unwrap(), placement);
    }
}

#[test]
fn one_thread_per_core_never_doubles_a_core() {
    let server = whole_server();
    for placement in [Placement::CoresFirst, Placement::SpreadOverNodes] {
        for threads in 1..=8 {
            let cpus = placement.cpus(&server, threads).unwrap();
            let most = server.cores.iter().map(|core| core.cpus.intersection(&cpus).len()).max();
            assert_eq!(most, Some(1), "{placement}, {threads} threads: {cpus}");
        }
    }
    let doubled = Placement::SiblingsFirst.cpus(&server, 4).unwrap();
    assert_eq!(doubled.to_string(), "0-1,8-9");
}

#[test]
fn only_allowed_cpus_are_given() {
    // Its control group leaves it one socket: one node, one last-level cache.
    let server = machine("two-socket-smt-server");
    assert_eq!(Placement::SiblingsFirst.order(&server).unwrap(), [0, 8, 1, 9, 2, 10, 3, 11]);
    let llc = Placement::OneLlcFirst.order(&server).unwrap_err();
    assert!(llc.0.contains("one last-level cache"), "{llc}");
    let nodes = Placement::SpreadOverNodes.order(&server).unwrap_err();
    assert!(nodes.0.contains("one node"), "{nodes}");
    let nine = Placement::CoresFirst.cpus(&server, 9).unwrap_err();
    assert!(nine.0.contains("only 8 allowed"), "{nine}");
    assert_eq!(smt::one_per_core(&server).unwrap().to_string(), "0-3");
}

#[test]
fn machines_without_siblings_say_so() {
    for name in ["arm-server", "smt-switched-off", "vm-that-hides-everything"] {
        let machine = machine(name);
        let refused = Placement::SiblingsFirst.order(&machine).unwrap_err();
        assert!(refused.0.contains("share a core"), "{name}: {refused}");
        assert!(smt::one_per_core(&machine).is_err(), "{name}");
        let order = Placement::CoresFirst.order(&machine).unwrap();
        assert_eq!(order.len(), machine.allowed_cpus().len(), "{name}");
    }
}

#[test]
fn strong_cores_come_before_small_ones() {
    let laptop = machine("hybrid-laptop");
    let order = Placement::CoresFirst.order(&laptop).unwrap();
    let expected = laptop.cpus_for(order.len()).unwrap();
    assert_eq!(order, expected, "as threads are given CPUs elsewhere");
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let refused = "compact".parse::<Placement>().unwrap_err();
    assert!(refused.0.contains("cores-first"), "{refused}");
}
