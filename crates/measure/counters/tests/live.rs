//! Counting on the machine that runs the tests: software events everywhere, and hardware events
//! where it has counters. A refusal must name its cause and ends the test.

use std::hint::black_box;
use std::time::{Duration, Instant};

use workahead_counters::event::{Code, Event, Place, Privilege, Software};
use workahead_counters::live::Live;
use workahead_counters::source::{CountError, Source, Target};
use workahead_counters::table::Table;

fn software(name: &str, software: Software) -> Event {
    Event { name: name.to_owned(), code: Code::Software(software), place: Place::None }
}

fn busy(milliseconds: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(milliseconds) {
        black_box((0..1000_u64).sum::<u64>());
    }
}

fn own_thread() -> u32 {
    let name = std::fs::read_link("/proc/thread-self").unwrap();
    name.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Whether counting is forbidden here, which the error must name.
fn forbidden(error: &CountError) -> bool {
    let is_forbidden = matches!(error, CountError::Forbidden { .. });
    if is_forbidden {
        eprintln!("not shown here: {error}");
    }
    is_forbidden
}

#[test]
fn software_events_count_this_process() {
    let group = [
        software("task-clock", Software::TaskClock),
        software("page-faults", Software::PageFaults),
        software("context-switches", Software::ContextSwitches),
    ];
    let target = Target::Process(std::process::id());
    let mut counting = match Live.open(&group, Privilege::Both, &target) {
        Ok(counting) => counting,
        Err(error) => return assert!(forbidden(&error), "{error}"),
    };
    // The thread that counts is the main one of the process; a thread made now is inherited.
    counting.begin().unwrap();
    std::thread::spawn(|| {
        busy(20);
        let page = vec![1_u8; 1 << 24];
        black_box(page.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>());
    })
    .join()
    .unwrap();
    let reading = counting.end().unwrap();
    assert_eq!(reading.values.len(), 3);
    assert!(reading.running_ns <= reading.enabled_ns);
    // Begun again, it counts from zero.
    counting.begin().unwrap();
    let again = counting.end().unwrap();
    assert!(again.values[0] <= reading.values[0].max(1_000_000), "{again:?} after {reading:?}");
}

#[test]
fn a_thread_is_counted_on_the_cpu_that_it_runs_on() {
    let group = [software("task-clock", Software::TaskClock)];
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let (sender, receiver) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        sender.send(own_thread()).unwrap();
        gone.recv().unwrap();
        busy(50);
    });
    let thread = receiver.recv().unwrap();
    let mut opened = Vec::new();
    for cpu in 0..cpus {
        let target = Target::ThreadOnCpu { thread, cpu };
        match Live.open(&group, Privilege::Both, &target) {
            Ok(counting) => opened.push(counting),
            Err(error) => {
                go.send(()).unwrap();
                worker.join().unwrap();
                return assert!(forbidden(&error), "{error}");
            }
        }
    }
    opened.iter_mut().for_each(|counting| counting.begin().unwrap());
    go.send(()).unwrap();
    worker.join().unwrap();
    let counted: u64 = opened.iter_mut().map(|one| one.end().unwrap().values[0]).sum();
    // It was busy for 50 ms, of which others may have had the CPU most.
    assert!(counted > 1_000_000, "{counted} ns");
}

#[test]
fn missing_targets_and_events_are_named() {
    let gone = Target::Process(u32::MAX >> 1);
    let group = [software("task-clock", Software::TaskClock)];
    match Live.open(&group, Privilege::Both, &gone) {
        Err(CountError::Gone(who)) => assert!(who.contains("process"), "{who}"),
        Err(error) => assert!(forbidden(&error), "{error}"),
        Ok(_) => panic!("counts a process that does not exist"),
    }
    let code = Code::Other { source: "no_such".to_owned(), config: 1, config1: 0 };
    let event = Event { name: "no_such.event".to_owned(), code, place: Place::None };
    let own = Target::Process(std::process::id());
    match Live.open(&[event], Privilege::Both, &own) {
        Err(CountError::NoSuchEvent { event, .. }) => assert_eq!(event, "no_such.event"),
        other => panic!("{:?}", other.err()),
    }
    let nowhere = Target::CpuOfGroup { cpu: 0, group: "/no/such/group".into() };
    assert!(matches!(Live.open(&group, Privilege::Both, &nowhere), Err(CountError::Gone(_))));
}

#[test]
fn a_hardware_event_counts_or_is_refused_by_name() {
    let Some(table) = Table::here() else { return eprintln!("not shown here: no table of events") };
    let group = [table.event(&table.work).expect("a table's own event").clone()];
    // The process's number is that of its main thread, which doesn't run tests.
    let target = Target::Process(own_thread());
    let mut counting = match Live.open(&group, Privilege::User, &target) {
        Ok(counting) => counting,
        Err(CountError::NoSuchEvent { event, .. }) => return assert_eq!(event, table.work),
        Err(error) => return assert!(forbidden(&error), "{error}"),
    };
    counting.begin().unwrap();
    std::thread::spawn(|| busy(20)).join().unwrap();
    let reading = counting.end().unwrap();
    assert!(reading.values[0] > 1_000_000, "{reading:?}");
}
