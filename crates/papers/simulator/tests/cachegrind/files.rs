//! Trace files by hand, round trips of any records, and damaged files.

use proptest::prelude::*;
use workahead_walks::traced::Traced;
use workahead_walks::{Intent, Memory, Place};

use crate::trace::*;
use workahead_simulator::geometry::{Geometry, Sizes};
use workahead_simulator::op::{Dependence, Op};

fn written(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Header, Vec<Record>), TraceError> {
    let reader = Reader::new(bytes)?;
    let header = *reader.header();
    Ok((header, reader.collect::<Result<_, _>>()?))
}

fn load(thread: u16, address: u64) -> Record {
    Record { thread, kind: Kind::Load, address, bytes: 8, instructions: 0 }
}

fn two_threads() -> (Header, Vec<Record>) {
    let header = Header { threads: 2, after: Dependence::Load, line: Some(64), page: Some(4096) };
    let compute =
        Record { thread: 0, kind: Kind::Compute, address: 0, bytes: 0, instructions: 300 };
    (header, vec![load(0, 64), load(0, 128), load(1, 64), compute, load(0, 120)])
}

#[test]
fn a_file_has_the_documented_bytes() {
    let (header, records) = two_threads();
    let bytes = written(&header, &records);
    let expected: &[u8] = &[
        0x89, b'W', b'A', b'T', 13, 10, 26, 10, 1, 0, 2, 0, 1, 6, 12, 0, // header
        0x10, 0x80, 1, 8, // load, +64, 8 bytes
        0x00, 0x80, 1, // load, +64 again
        0x18, 1, 0x80, 1, 8, // of thread 1
        0x2c, 0, 0xac, 2, // 300 instructions of thread 0
        0x00, 15, // load, -8
        7, 5, // the end, of five records
    ];
    assert_eq!(bytes[..expected.len()], *expected);
    assert_eq!(bytes.len(), expected.len() + 4);
    assert_eq!(read(&bytes).unwrap(), (header, records));
    let summary = check(&bytes[..]).unwrap();
    assert_eq!((summary.header, summary.records), (header, vec![4, 1]));
}

/// The error of each kind of damage.
#[test]
fn damage_is_named_in_one_line() {
    let (header, records) = two_threads();
    let whole = written(&header, &records);
    let refused = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        edit(&mut bytes);
        read(&bytes).unwrap_err().to_string()
    };
    let cases = [
        (refused(&|bytes| bytes[1] = b'X'), "byte 0: this is not a trace of addresses: make one"),
        (refused(&|bytes| bytes[8] = 9), "byte 8: the trace has version 9, known is 1"),
        (refused(&|bytes| bytes[10] = 0), "byte 12: the number of threads is 0: it takes 1 to"),
        (refused(&|bytes| bytes[11] = 255), "byte 12: the number of threads is 65282: it"),
        (refused(&|bytes| bytes[12] = 3), "byte 13: the dependency of loads is 3: it takes 0 to 2"),
        (refused(&|bytes| bytes[13] = 40), "byte 14: the line's shift is 40: it takes 0 to 31"),
        (refused(&|bytes| bytes[16] = 0xc0), "byte 17: a record's tag is 192: it takes kinds 0"),
        (refused(&|bytes| bytes[24] = 2), "byte 25: the thread is 2: it takes 0 to 1"),
        (refused(&|bytes| bytes[17] = 1), "byte 18: an address is 18446744073709551615: it"),
        (refused(&|bytes| bytes.truncate(21)), "byte 21: the trace ends where an address should"),
        (refused(&|bytes| bytes.truncate(20)), "byte 20: the trace ends where a record or the"),
        (refused(&|bytes| bytes[35] = 6), "byte 36: the trace has 5 records and says 6: record"),
        (refused(&|bytes| bytes[19] = 4), "byte 36: the checksum is 0x"),
        (refused(&|bytes| bytes.push(0)), "byte 40: the trace goes on after its end: cut it"),
        (refused(&|bytes| bytes.clear()), "byte 0: the trace ends where the header should be"),
    ];
    for (at, (said, expected)) in cases.iter().enumerate() {
        assert!(said.starts_with(expected), "{at}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

/// An endless number, and one of more than 64 bits.
#[test]
fn endless_numbers_are_refused() {
    for last in [0x80, 0x02] {
        let mut bytes = written(&Header::one_thread(), &[])[..16].to_vec();
        bytes.push(0);
        bytes.extend([0xff; 9]);
        bytes.push(last);
        let said = read(&bytes).unwrap_err().to_string();
        assert!(said.starts_with("byte 27: an address is"), "{said}");
    }
}

#[test]
fn values_out_of_range_are_not_written() {
    let mut writer = Writer::new(Vec::new(), &Header::one_thread()).unwrap();
    writer.write(&load(0, 0)).unwrap();
    let said = |record: Record, writer: &mut Writer<Vec<u8>>| {
        writer.write(&record).unwrap_err().to_string()
    };
    assert_eq!(said(load(1, 0), &mut writer), "record 1: the thread is 1: a trace takes at most 0");
    assert!(said(load(0, 1 << 56), &mut writer).starts_with("record 1: the address is"));
    let compute = Record { kind: Kind::Compute, ..load(0, 5) };
    assert!(said(compute, &mut writer).starts_with("record 1: the address is 5"));
    // A refused record leaves the file unchanged.
    writer.write(&load(0, 64)).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).unwrap().1, [load(0, 0), load(0, 64)]);
    for threads in [0, THREADS_MAX + 1] {
        let header = Header { threads, ..Header::one_thread() };
        assert!(Writer::new(Vec::new(), &header).is_err());
    }
}

/// A stream read in small pieces gives the same records.
#[test]
fn pieces_make_no_difference() {
    struct Piece<'a>(&'a [u8]);
    impl std::io::Read for Piece<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let (piece, rest) = self.0.split_at(self.0.len().min(3));
            self.0 = rest;
            to[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }
    let records: Vec<Record> = (0..50_000).map(|at| load(0, at * at % 100_003)).collect();
    let bytes = written(&Header::one_thread(), &records);
    // More than one buffer.
    assert!(bytes.len() > 1 << 17);
    assert_eq!(read(&bytes).unwrap().1, records);
    let pieces: Result<Vec<Record>, _> = Reader::new(Piece(&bytes)).unwrap().collect();
    assert_eq!(pieces.unwrap(), records);
}

#[test]
fn each_thread_replays_its_own() {
    let (header, mut records) = two_threads();
    records.push(Record { kind: Kind::Modify, instructions: 2, ..load(1, 256) });
    let bytes = written(&header, &records);
    let mut replay = Replay::new(&bytes[..], 1).unwrap();
    let ops: Vec<Op> = replay.by_ref().collect();
    let load = |address| Op::Load { address, bytes: 8, after: Dependence::Load };
    let store = Op::Store { address: 256, bytes: 8 };
    assert_eq!(ops, [load(64), Op::Compute { uops: 2 }, load(256), store]);
    replay.finish().unwrap();
    // A truncated trace is reported at the end.
    let mut replay = Replay::new(&bytes[..bytes.len() - 1], 1).unwrap();
    assert_eq!(replay.by_ref().count(), 4);
    assert!(matches!(replay.finish(), Err(TraceError::Truncated { .. })));
}

const LACKEY: &str = "==12== Lackey, an example Valgrind tool\n==12== \nI  04000840,3\n\
                      I  04000843,5\n S 1ffefff5a8,8\nI  04000848,4\n L 04222cac,4\n M 0421f7d0,2\n\
                      I  0400084c,2\n==12== Counted\n";

#[test]
fn lackeys_text_is_read() {
    let records: Vec<Record> = Lackey::new(LACKEY.as_bytes()).collect::<Result<_, _>>().unwrap();
    let of = |kind, address, bytes, instructions| Record {
        thread: 0,
        kind,
        address,
        bytes,
        instructions,
    };
    let expected = [
        of(Kind::Fetch, 0x0400_0840, 3, 0),
        // The one before had no data.
        of(Kind::Fetch, 0x0400_0843, 5, 1),
        of(Kind::Store, 0x1f_feff_f5a8, 8, 0),
        of(Kind::Fetch, 0x0400_0848, 4, 0),
        of(Kind::Load, 0x0422_2cac, 4, 0),
        of(Kind::Modify, 0x0421_f7d0, 2, 0),
        of(Kind::Fetch, 0x0400_084c, 2, 0),
        of(Kind::Compute, 0, 0, 1),
    ];
    assert_eq!(records, expected);
}

#[test]
fn other_text_is_refused() {
    let cases = [
        ("I  zz,3\n", "line 1: `I  zz,3` is not an access: it takes `I`"),
        ("I  04,3\n L 04\n", "line 2: ` L 04` is not an access"),
        (" L +4,8\n", "line 1: ` L +4,8` is not an access"),
        (" L 4,0\n", "line 1: ` L 4,0` is not an access"),
        (" L 4,70000\n", "line 1: ` L 4,70000` is not an access"),
        (" L ffffffffff600000,8\n", "line 1: ` L ffffffffff600000,8` is not an access"),
        ("hello\u{1b}[2J\n", "line 1: `hello[2J` is not an access"),
        ("I  04,3\n L 04,1", "line 2: the text ends within it: record it again"),
    ];
    for (text, expected) in cases {
        let read: Result<Vec<Record>, _> = Lackey::new(text.as_bytes()).collect();
        let said = read.unwrap_err().to_string();
        assert!(said.starts_with(expected), "{said}");
        assert!(!said.contains('\n'));
    }
    let long = "x".repeat(100_000);
    let mut lackey = Lackey::new(long.as_bytes());
    assert!(matches!(lackey.next(), Some(Err(TraceError::Line { line: 1, .. }))));
    assert!(lackey.next().is_none());
}

/// Records of our tracer round-trip to the accesses of a walk.
#[test]
fn our_tracers_accesses_are_kept() {
    let cells = [1_u64, 2, 3];
    let mut memory = Traced::thread(1);
    memory.fetch(Place::of(&cells[2]), Intent::Read);
    memory.read(&cells[0]);
    memory.read_hot(&cells[2]);
    let mut cell = 5_u16;
    memory.write(&mut cell, 6);
    let trace = memory.finish();
    let kinds = |hints| {
        let records: Vec<Record> = records(&trace, hints).collect::<Result<_, _>>().unwrap();
        let bytes = written(&header_of(&trace), &records);
        let (header, read) = read(&bytes).unwrap();
        assert_eq!((header.threads, header.after), (2, Dependence::Announcement));
        assert_eq!(read, records);
        assert_eq!(read[1].address + 16, read[0].address);
        read.iter().map(|record| (record.kind, record.bytes)).collect::<Vec<_>>()
    };
    let rest = [(Kind::Load, 8), (Kind::Load, 8), (Kind::Store, 2)];
    assert_eq!(kinds(Hints::Followed), [&[(Kind::Hint, 8)], &rest[..]].concat());
    assert_eq!(kinds(Hints::Ignored), [&[(Kind::Announce, 8)], &rest[..]].concat());
}

/// Lines of 16 bytes: two sets of one line each for data, one set of two for instructions, and
/// two sets of two behind them.
#[test]
fn cachegrinds_rules_by_hand() {
    let of = |bytes, ways| Geometry::of(Sizes { bytes, ways, line: 16 }).unwrap();
    let mut caches = Cachegrind::new(of(32, 2), of(32, 1), of(64, 2));
    let mut touch = |kind, address, bytes| {
        caches.touch(&Record { thread: 0, kind, address, bytes, instructions: 0 });
        let References { instructions, reads, writes } = caches.counts;
        [instructions, reads, writes].map(|one| (one.references, one.first, one.last))
    };
    // One miss though two lines come: 0 and 1.
    assert_eq!(touch(Kind::Load, 12, 8), [(0, 0, 0), (1, 1, 1), (0, 0, 0)]);
    assert_eq!(touch(Kind::Store, 16, 4), [(0, 0, 0), (1, 1, 1), (1, 0, 0)]);
    // A change is a read. Line 2 takes line 0's place in D1, not in the last level.
    assert_eq!(touch(Kind::Modify, 32, 4), [(0, 0, 0), (2, 2, 2), (1, 0, 0)]);
    assert_eq!(touch(Kind::Store, 0, 4), [(0, 0, 0), (2, 2, 2), (2, 1, 0)]);
    // Instructions share only the last level, where line 4 drives out line 2.
    assert_eq!(touch(Kind::Fetch, 64, 4), [(1, 1, 1), (2, 2, 2), (2, 1, 0)]);
    assert_eq!(touch(Kind::Load, 32, 4), [(1, 1, 1), (3, 3, 3), (2, 1, 0)]);
    // Cut to 16 bytes, which are two lines and not five: 1 is there, 2 came just now.
    assert_eq!(touch(Kind::Load, 24, 64), [(1, 1, 1), (4, 3, 3), (2, 1, 0)]);
}

fn any_record(threads: u16) -> impl Strategy<Value = Record> {
    let address = prop_oneof![0_u64..5000, 0_u64..1 << ADDRESS_BITS];
    let instructions = prop_oneof![Just(0), 0_u32..=INSTRUCTIONS_MAX];
    (0..threads, 0..KINDS, address, any::<u16>(), instructions).prop_map(
        |(thread, kind, address, bytes, instructions)| match Kind::ALL[kind] {
            Kind::Compute => {
                Record { thread, kind: Kind::Compute, address: 0, bytes: 0, instructions }
            }
            kind => Record { thread, kind, address, bytes, instructions },
        },
    )
}

fn any_trace() -> impl Strategy<Value = (Header, Vec<Record>)> {
    let size = prop_oneof![Just(None), (1_u32..32).prop_map(|shift| Some(1 << shift))];
    (1_u16..5, 0_usize..3, size.clone(), size).prop_flat_map(|(threads, after, line, page)| {
        let header = Header { threads, after: AFTERS[after], line, page };
        (Just(header), proptest::collection::vec(any_record(threads), 0..60))
    })
}

proptest! {
    #[test]
    fn records_round_trip((header, records) in any_trace()) {
        let bytes = written(&header, &records);
        prop_assert_eq!(read(&bytes).unwrap(), (header, records));
    }

    /// Every part of a file is refused.
    #[test]
    fn parts_are_refused((header, records) in any_trace(), cut in any::<prop::sample::Index>()) {
        let bytes = written(&header, &records);
        let part = &bytes[..cut.index(bytes.len())];
        let error = read(part).unwrap_err();
        prop_assert!(matches!(error, TraceError::Truncated { .. }), "{}", error);
    }

    /// A change of any byte is detected; any change never panics.
    #[test]
    fn damage_is_noticed(
        (header, records) in any_trace(),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        more in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut bytes = written(&header, &records);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(read(&bytes).is_err(), "byte {at}");
        for (at, byte) in more {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }

    /// Any bytes after a valid header, and any text.
    #[test]
    fn rubbish_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut trace = written(&Header::one_thread(), &[])[..16].to_vec();
        trace.extend(&bytes);
        let _ = read(&trace);
        let _: Vec<_> = Lackey::new(&bytes[..]).collect();
    }
}
