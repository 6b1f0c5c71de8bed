//! A file with one of everything, the same file spoilt in one place, and lines at random.

use proptest::prelude::*;

use super::*;

const FILE: &str = "\
desc: I1 cache:         32768 B, 64 B, 8-way associative
desc: D1 cache:         32768 B, 64 B, direct-mapped
desc: LL cache:         1048576 B, 64 B, 16-way associative
cmd: ./program -n 3
events: Ir I1mr Dr
fl=main.c
fn=main
10 5 1 2
11 7
fl=inlined.h
fn=main
3 20 . 4
fn=leaf
4 1 1 1
fl=???
fn=???
0 90 2 3
fl=memmove.S
fn=???
7 10

summary: 133 4 10
";

#[test]
fn a_file_is_read_whole() {
    let counted = parse(FILE).unwrap();
    assert_eq!(counted.command, "./program -n 3");
    assert_eq!(counted.events, ["Ir", "I1mr", "Dr"]);
    assert_eq!(counted.totals, [133, 4, 10]);
    let geometry = counted.geometry.unwrap().to_string();
    assert_eq!(geometry, "L1I 32KiB,8,64; L1D 32KiB,1,64; last level 1MiB,16,64");
    let functions: Vec<_> = counted
        .functions
        .iter()
        .map(|one| (one.name.as_str(), one.file.as_deref(), one.counts.as_slice()))
        .collect();
    let expected: [(&str, Option<&str>, &[i64]); 3] = [
        ("???", None, &[100, 2, 3]),
        // In two files, one of them inlined: the one with more instructions.
        ("main", Some("inlined.h"), &[32, 1, 6]),
        ("leaf", Some("inlined.h"), &[1, 1, 1]),
    ];
    assert_eq!(functions, expected);
    assert!(counted.functions.iter().all(|one| one.inclusive.is_none()));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (from, to, line, why) in [
        ("10 5 1 2", "10 5 1 2 9", 8, "more than 3 counts"),
        ("10 5 1 2", "10 5 -1 2", 8, "`-1` is not a count"),
        ("10 5 1 2", "x 5 1 2", 8, "neither counts"),
        ("10 5 1 2", "10 99999999999999999999", 8, "is not a count"),
        ("10 5 1 2", "10 9223372036854775807\n10 1", 9, "63 bits"),
        ("fn=main\n10", "10", 7, "counts of no function"),
        ("events: Ir I1mr Dr\n", "", 7, "before the line of events"),
        ("events: Ir I1mr Dr", "events: Ir Ir", 5, "event Ir twice"),
        ("events: Ir I1mr Dr", "events:", 5, "0 events"),
        ("summary: 133 4 10\n", "", 21, "cut short"),
        ("summary: 133", "summary: 134", 22, "functions have 133 Ir, its sums say 134"),
    ] {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        let error = parse(&text).unwrap_err();
        let message = error.to_string();
        let Error::Format { line: found, .. } = error else { panic!("{message}") };
        assert_eq!(found, line, "{message}");
        assert!(message.contains(why) && !message.contains('\n'), "{why}: {message}");
    }
}

/// One line of a file, right or wrong.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("events: Ir I1mr Dr".to_owned()),
        "(fl|fn|desc|cmd|summary|events)[=:] ?[a-zA-Z0-9(), ]{0,12}",
        "[-+*.0-9a-fx ]{0,24}",
        "\\PC{0,12}",
    ]
}

proptest! {
    #[test]
    fn garbage_is_an_error_and_never_a_panic(lines in prop::collection::vec(line(), 0..24)) {
        let _ = parse(&lines.join("\n"));
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error(at in 0..FILE.len() - 4) {
        prop_assert!(parse(&FILE[..at]).is_err());
    }
}
