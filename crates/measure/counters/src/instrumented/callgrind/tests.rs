//! A file with one of everything, the same file spoilt in one place, and lines at random.

use proptest::prelude::*;

use super::*;

const FILE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 77
cmd:  ./program
part: 1

desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: Trigger: Program termination

positions: line
events: Ir Dr
summary: 999 9

ob=(1) /bin/program
fl=(1) main.c
fn=(1) main
35 5 2
+1 3
cob=(2) /lib/libc.so
cfi=(2) leaf.c
cfn=(2) leaf
calls=3 +20
* 90 9
cfn=(3) (below main)
calls=1 0
-2 7 1
fi=(3) inlined.h
-15 1 1
fe=(1)

fn=(3)
0 7 1
cfn=(3)
calls=1 0
0 6 1
jump=3 5
2

ob=(2)
fl=(2)
fn=(2)
0x10 90 9

totals: 106 13
";

#[test]
fn own_counts_and_those_of_calls_are_distinguished() {
    let counted = parse(FILE).unwrap();
    assert_eq!(counted.command, "./program");
    assert_eq!(counted.totals, [106, 13]);
    let functions: Vec<_> = counted
        .functions
        .iter()
        .map(|one| {
            let module = one.module.as_deref().unwrap();
            let inclusive = one.inclusive.as_deref().unwrap();
            let pair = |counts: &[i64]| <[i64; 2]>::try_from(counts).unwrap();
            let file = one.file.as_deref().unwrap();
            (one.name.as_str(), module, file, pair(&one.counts), pair(inclusive))
        })
        .collect();
    let expected = [
        ("leaf", "/lib/libc.so", "leaf.c", [90, 9], [90, 9]),
        ("main", "/bin/program", "main.c", [9, 3], [106, 13]),
        // It calls itself: the cost of that is in its own counts already.
        ("(below main)", "/bin/program", "main.c", [7, 1], [7, 1]),
    ];
    assert_eq!(functions, expected);
    assert_eq!(counted.geometry, None, "two of the caches are not described");
}

#[test]
fn positions_may_have_two_columns() {
    let text = "positions: instr line\nevents: Ir\nfn=f\n0x10 3 4\n+3 * 5\ntotals: 9\n";
    let counted = parse(text).unwrap();
    assert_eq!((counted.totals[0], counted.functions[0].counts[0]), (9, 9));
    let error = parse(&text.replace("0x10 3 4", "0x10")).unwrap_err().to_string();
    assert!(error.contains("line 4: counts without their position"), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (from, to, line, why) in [
        ("35 5 2", "35 5 2 1", 18, "more than 2 counts"),
        ("35 5 2", "+x 5 2", 18, "without their position"),
        ("fn=(3)\n0 7 1", "fn=(9)\n0 7 1", 32, "(9) was never named"),
        ("cfn=(2) leaf\n", "", 23, "a call of no function"),
        ("fn=(1) main\n", "", 17, "counts of no function"),
        ("events: Ir Dr\n", "", 17, "before the line of events"),
        ("positions: line", "positions:", 11, "positions are"),
        ("part: 1", "parts: 1", 6, "unknown line `parts:`"),
        ("part: 1", "what is this", 6, "neither counts"),
        ("totals: 106 13\n", "", 44, "cut short"),
        ("totals: 106", "totals: 105", 45, "functions have 106 Ir, its sums say 105"),
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
        Just("events: Ir Dr".to_owned()),
        "(ob|fl|fi|fe|fn|cob|cfi|cfn|calls|jump|events|totals|positions)[=:]\
         (\\([0-9]{0,2}\\))? ?[a-z0-9 ]{0,8}",
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
