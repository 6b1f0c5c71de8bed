//! The limits of a recording.

use super::*;
use crate::event::Place;
use crate::table::Table;

fn event(name: &str) -> Event {
    let code = Code::Core { config: 0, config1: 0 };
    Event { name: name.to_owned(), code, place: Place::Any }
}

fn group(events: Vec<Event>) -> Group {
    Group { events, privilege: Privilege::User }
}

/// What a recording of it is refused for; nothing if it is read.
fn refused(stream: &Stream) -> String {
    let mut text = Vec::new();
    stream.write(&mut text).unwrap();
    let read = Stream::read(&mut text.as_slice()).err().map(|error| error.to_string());
    let checked = stream.check().err().unwrap_or_default();
    let read = read.unwrap_or_default();
    assert!(read.ends_with(&checked) && read.is_empty() == checked.is_empty(), "{read}");
    checked
}

#[test]
fn words_that_are_repeated_are_short() {
    let of = |header: Header| refused(&Stream { header, slots: Vec::new() });
    let groups = |groups| of(Header { groups, ..Header::default() });
    assert_eq!(groups(vec![group(vec![event(&"x".repeat(256))])]), "");
    let why = groups(vec![group(vec![event(&"x".repeat(257))])]);
    assert_eq!(why, "the name of an event has more than 256 bytes");
    assert_eq!(groups(vec![group(vec![event("x"); 257])]), "a group has more than 256 events");
    assert_eq!(groups(vec![group(Vec::new()); 4097]), "it has more than 4096 groups");

    let (fits, long) = ("x".repeat(4 << 10), "x".repeat((4 << 10) + 1));
    let texts: [&dyn Fn(String) -> Header; 8] = [
        &|machine| Header { machine, ..Header::default() },
        &|target| Header { target, ..Header::default() },
        &|table| Header { table: Some(table), ..Header::default() },
        &|lacks| Header { lacks: Some(lacks), ..Header::default() },
        &|constructed| Header { constructed: Some(constructed), ..Header::default() },
        &|metric| Header { metrics: vec![metric], ..Header::default() },
        &|why| {
            let left_out = vec![UncountedEvent { event: "x".to_owned(), why }];
            Header { left_out, ..Header::default() }
        },
        &|source| {
            let code = Code::Other { source, config: 0, config1: 0 };
            let groups = vec![group(vec![Event { code, ..event("x") }])];
            Header { groups, ..Header::default() }
        },
    ];
    for text in texts {
        assert_eq!(of(text(fits.clone())), "");
        assert_eq!(of(text(long.clone())), "a text in it has more than 4096 bytes");
    }
}

#[test]
fn the_reason_of_a_slot_is_short() {
    let header = Header { groups: vec![group(Vec::new())], ..Header::default() };
    let slot = |bytes: usize| {
        let spoilt = Some(Spoilt::Refused("x".repeat(bytes)));
        Slot { group: 0, begun_s: 0.0, wall_s: 1.0, cpus: Vec::new(), spoilt }
    };
    let of = |bytes| refused(&Stream { header: header.clone(), slots: vec![slot(bytes)] });
    assert_eq!(of(4 << 10), "");
    assert_eq!(of((4 << 10) + 1), "the reason of a slot has more than 4096 bytes");
}

#[test]
fn all_slots_have_the_cpus_of_one_machine() {
    let header = Header { groups: vec![group(Vec::new())], ..Header::default() };
    let slot = |cpus: std::ops::Range<u32>| {
        let on = |cpu| OnCpu { cpu: Some(cpu), reading: Reading::default() };
        Slot { group: 0, begun_s: 0.0, wall_s: 1.0, cpus: cpus.map(on).collect(), spoilt: None }
    };
    let of = |slots| refused(&Stream { header: header.clone(), slots });
    assert_eq!(of(vec![slot(0..8192), slot(0..8192)]), "");
    assert_eq!(of(vec![slot(0..4096), slot(4096..8193)]), "it has more than 8192 CPUs");
    assert_eq!(of(vec![slot(0..8193)]), "a slot has more than 8192 CPUs");
}

#[test]
fn our_own_words_fit() {
    for table in Table::all() {
        let groups = table.events().map(|event| group(vec![event.clone()])).collect();
        let header = Header { groups, ..Header::default() };
        assert_eq!(Stream { header, slots: Vec::new() }.check(), Ok(()), "{}", table.name);
    }
    assert_eq!(bounded("short".to_owned()), "short");
    assert_eq!(bounded("ä".repeat(3 << 10)), "ä".repeat(2 << 10));
    assert_eq!(bounded(format!("x{}", "ä".repeat(3 << 10))).len(), (4 << 10) - 1);
}
