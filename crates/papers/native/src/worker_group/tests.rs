//! Threads of a pair are on one core where there is one: on a machine described in text, and with
//! two CPUs of this one that are said to share a core.

#[path = "../../../../machine/tests/fixture/mod.rs"]
mod fixture;

use fixture::Fixture;
use workahead_machine::Machine;
use workahead_study::catalogue;
use workahead_study::engine::Engine;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use super::*;
use crate::engine::{NAME, Native};

/// One package of two cores, each of two siblings that are not next to each other.
const TWO_CORES: &str = "\
sys/devices/system/cpu/present = 0-3
sys/devices/system/cpu/online = 0-3
sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id = 0
sys/devices/system/cpu/cpu{0,2}/topology/core_id = 0
sys/devices/system/cpu/cpu{1,3}/topology/core_id = 1
sys/devices/system/cpu/cpu{0,2}/topology/thread_siblings_list = 0,2
sys/devices/system/cpu/cpu{1,3}/topology/thread_siblings_list = 1,3
proc/self/status = Cpus_allowed_list:\\t0-3
";

fn two_cores() -> Machine {
    let mut machine = Machine::read(&Fixture::from_text(TWO_CORES).root());
    machine.cpus.allowed = machine.cpus.online.clone();
    assert_eq!(machine.cores.len(), 2, "{:?}", machine.cores);
    machine
}

fn seats(machine: &Machine, placement: Policy, technique: &str, threads: &str) -> [Vec<usize>; 2] {
    let execution = Execution {
        technique: technique.parse().unwrap(),
        threads: threads.parse().unwrap(),
        placement,
        ..Execution::default()
    };
    let seats = WorkerGroup::of(machine, placement).unwrap().seats(&execution);
    [seats.mains, seats.helpers]
}

#[test]
fn pairs_are_siblings_where_siblings_come_first() {
    let machine = two_cores();
    let first = |technique, threads| seats(&machine, Policy::SiblingsFirst, technique, threads);
    assert_eq!(first("sequential", "bi:2"), [vec![0, 2], vec![]]);
    assert_eq!(first("sequential", "independent:4"), [vec![0, 2, 1, 3], vec![]]);
    assert_eq!(first("work-ahead", "1"), [vec![0], vec![2]]);
    assert_eq!(first("work-ahead", "independent:2"), [vec![0, 1], vec![2, 3]]);
    let cores = |technique, threads| seats(&machine, Policy::CoresFirst, technique, threads);
    assert_eq!(cores("sequential", "bi:2"), [vec![0, 1], vec![]]);
    assert_eq!(cores("work-ahead", "1"), [vec![0], vec![1]]);
    assert_eq!(cores("work-ahead", "independent:2"), [vec![0, 1], vec![2, 3]]);
}

/// Without siblings the same study runs across cores and says so.
#[test]
fn without_siblings_it_is_said() {
    let mut machine = two_cores();
    machine.cpus.allowed = [0, 1].into_iter().collect();
    let pair = seats(&machine, Policy::SiblingsFirst, "work-ahead", "1");
    assert_eq!(pair, [vec![0], vec![1]]);
    let of = |technique: &str, placement| {
        let technique = technique.parse().unwrap();
        let execution = Execution { technique, placement, ..Execution::default() };
        WorkerGroup::limitation(&machine, &execution)
    };
    let said = of("work-ahead", Policy::SiblingsFirst).unwrap();
    assert!(said.contains("cores of their own") && said.contains("share a core"), "{said}");
    assert_eq!(of("work-ahead", Policy::CoresFirst), None);
    assert_eq!(of("sequential", Policy::SiblingsFirst), None, "one thread is not a pair");
    assert!(WorkerGroup::of(&machine, Policy::SpreadOverNodes).is_err());
}

/// The paper forces two threads onto two logical processors of one core; so do its studies.
#[test]
fn every_study_of_two_threads_places_them_on_one_core() {
    let machine = two_cores();
    let native = Native::default();
    let mut pairs = 0;
    for study in catalogue::all().iter().filter(|study| study.id.starts_with("zhou/")) {
        let spec = Spec::parse(study.id, study.text).unwrap();
        if spec.engine != NAME || spec.method.instrumented.is_some() {
            continue;
        }
        for cell in &RunPlan::new(&spec).cells {
            let (_, execution) = native.read(cell).unwrap();
            if execution.threads() != 2 {
                continue;
            }
            pairs += 1;
            let group = WorkerGroup::of(&machine, execution.placement).unwrap();
            let seats = group.seats(&execution);
            let cpus: Vec<usize> = seats.mains.into_iter().chain(seats.helpers).collect();
            assert_eq!(cpus, [0, 2], "{}: {}", study.id, cell.label(&["case".to_owned()]));
        }
    }
    assert!(pairs > 100, "{pairs}");
}

/// Two CPUs of this machine, said to be siblings: threads are pinned to them and answers are right.
#[test]
fn pinned_siblings_answer() {
    let mut machine = Machine::here();
    if machine.allowed_cpus().len() < 2 {
        return;
    }
    let two: Vec<usize> = machine.allowed_cpus().iter().take(2).collect();
    let mut core = machine.cores[0].clone();
    core.cpus = two.iter().copied().collect();
    machine.cpus.allowed = core.cpus.clone();
    machine.cores = vec![core];
    let text = "title = 't'\nquestion = 'q'\nengine = 'native'\n\
        workload = { operator = 'csb_tree', rows = 3000, probe_rows = 5000, \
        placement = 'siblings-first' }\n\
        [[cases]]\nname = 'set'\ntechnique = 'work-ahead'\n\
        [[cases]]\nname = 'both'\nthreads = 'bi:2'\n";
    let spec = Spec::parse("pinned", text).unwrap();
    let mut native = Native::default();
    native.machine = machine;
    let stop = workahead_study::engine::Stop::new();
    for cell in &RunPlan::new(&spec).cells {
        assert!(native.check(cell).unwrap().limitation.is_none());
        native.prepare(cell, &stop).unwrap();
        let sample = native.run(cell, &stop).unwrap();
        assert!(sample.answer.rows > 0, "{}", cell.label(&["case".to_owned()]));
    }
}
