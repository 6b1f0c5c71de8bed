//! Traces of a few accesses, and of a walk in two places of memory.

use workahead_machine::pages::Pages;

use super::*;
use crate::bucket::{Every, Load, Probe, Table};
use crate::isa::Portable;
use crate::schedule::{Lanes, Pause, Schedule};
use crate::walk::{Row, Rows};

fn lines(trace: &Trace, regions: &Regions) -> Vec<String> {
    trace.relative_to(regions).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn every_kind_is_recorded_with_its_bytes_and_its_place() {
    let (cells, mut heads) = ([1_u64, 2, 3], [0_u32; 4]);
    let regions = Regions::none().with("cells", &cells).unwrap().with("heads", &heads).unwrap();
    let mut memory = Traced::thread(0);
    memory.fetch(Place::of(&cells[1]), Intent::Read);
    memory.fetch(Place::of(&heads[3]), Intent::Write);
    assert_eq!(*memory.read(&cells[1]), 2);
    assert_eq!(*memory.read_hot(&cells), [1, 2, 3]);
    memory.write(&mut heads[3], 9);
    assert_eq!(heads[3], 9);
    let expected =
        ["fetch cells+8 8", "fetch-to-write heads+12 4", "read cells+8 8", "hot cells+0 24"];
    let trace = memory.finish();
    assert_eq!(lines(&trace, &regions)[..4], expected);
    assert_eq!(lines(&trace, &regions)[4], "write heads+12 4");
    assert!(trace.accesses().iter().map(|access| access.sequence).eq(0..5));
}

#[test]
fn merging_takes_an_access_of_each_thread_in_turn() {
    let values = [0_u8; 16];
    let thread = |thread: u16, reads: usize| {
        let mut memory = Traced::thread(thread);
        for value in &values[..reads] {
            memory.read(value);
        }
        memory.finish()
    };
    let trace = Trace::merged([thread(1, 3), thread(0, 2)]);
    let order: Vec<_> =
        trace.accesses().iter().map(|access| (access.thread, access.sequence)).collect();
    assert_eq!(order, [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2)]);
}

#[test]
fn memory_without_a_name_and_memory_with_two_are_refused() {
    let values = [0_u32; 8];
    let regions = Regions::none().with("front", &values[..4]).unwrap();
    let mut memory = Traced::thread(3);
    memory.read(&values[3]);
    memory.read(&values[4]);
    let error = memory.finish().relative_to(&regions).unwrap_err();
    assert_eq!((error.thread, error.sequence, error.bytes), (3, 1, 4));
    let overlap = regions.with("all", &values).unwrap_err();
    assert!(overlap.to_string().contains("overlap"), "{overlap}");
}

#[test]
fn a_value_across_two_regions_is_in_neither() {
    let values = [0_u64; 4];
    let (front, back) = values.split_at(2);
    let regions = Regions::none().with("front", front).unwrap().with("back", back).unwrap();
    let mut memory = Traced::thread(0);
    memory.read(&values);
    assert!(memory.finish().relative_to(&regions).is_err());
}

#[test]
fn the_same_walk_elsewhere_in_memory_leaves_the_same_relative_trace() {
    let keys: Vec<u64> = (0..40).map(|key| key % 25).collect();
    let table = || Table::of(&keys, &keys, Load::percent(80).unwrap(), Pages::Small).unwrap();
    let (here, there) = (table(), table());
    let elsewhere = keys.clone();
    let traced = |table: &Table, keys: &[u64]| {
        let mut memory = Traced::thread(0);
        let mut walk = Probe::<_, Every>::new(table, Portable, keys);
        let mut rows = Rows::range(0..keys.len() as Row);
        let pause = Lanes::new(7).drive(&mut walk, &mut rows, &mut memory, &mut Vec::new());
        assert_eq!(pause, Pause::Drained);
        memory.finish()
    };
    let regions = |table: &Table, keys: &[u64]| {
        Regions::none().with("buckets", table.buckets()).unwrap().with("keys", keys).unwrap()
    };
    let (first, second) = (traced(&here, &keys), traced(&there, &elsewhere));
    assert_ne!(first, second, "the addresses differ");
    let first = first.relative_to(&regions(&here, &keys)).unwrap();
    assert_eq!(first, second.relative_to(&regions(&there, &elsewhere)).unwrap());
    let announced = first.iter().filter(|spot| spot.kind == Kind::Fetch(Intent::Read));
    assert!(announced.clone().count() >= keys.len(), "a bucket for every key");
    assert!(announced.clone().all(|spot| (spot.region, spot.bytes) == ("buckets", 64)));
}
