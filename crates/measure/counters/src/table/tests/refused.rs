//! Tables with one thing wrong, each refused with a line that names it.

use super::*;

/// A small machine: every metric that it does not mention is unavailable.
const SMALL: &str = r#"
name = "test/small"
title = "a test"
vendor = ""
family = 0
models = []
layout = "intel"
source = "nowhere"
work = "I"
licence = "none"
general_counters = { smt_on = 4, smt_off = 4 }
otherwise = "the small machine does not count it"
events = [
  { name = "I", event = 0xc0, fixed = 0, says = "instructions" },
  { name = "C", event = 0x3c, fixed = 1, says = "cycles" },
  { name = "L", event = 0xd1, umask = 0x10, counters = [1], says = "misses" },
  { name = "U", pmu = "uncore", event = 0x01, says = "something else" },
]
[metrics]
cpi = "C / I"
l2_load_mpki = { formula = "1000 * L / I", instead = "loads of the small machine" }
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    Table::parse(&SMALL.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn the_small_table_itself_is_fine() {
    let table = Table::parse(SMALL).unwrap();
    assert_eq!(table.event("L").unwrap().place, Place::Only(0b10));
    assert_eq!(table.says("L"), Some("misses"));
    assert_eq!(table.instead("l2_load_mpki"), Some("loads of the small machine"));
    assert!(matches!(table.metric("l3_mpki"), Some(Definition::Unavailable { .. })));
    assert_eq!(table.metric("no such metric"), None);
}

#[test]
fn formulas_must_be_ratios_of_known_events_of_one_source() {
    for (formula, says) in [
        ("C / X", "table `test/small`, metric `cpi`: the table has no event `X`"),
        (
            "C * I",
            "table `test/small`, metric `cpi`: it depends on how long its events were \
                   counted",
        ),
        ("C / U", "table `test/small`, metric `cpi`: its events are of different sources"),
        (
            "C / task_clock",
            "table `test/small`, metric `cpi`: its events are of different \
                            sources",
        ),
        (
            "C / ",
            "table `test/small`, metric `cpi`: at character 4 of the formula: expected a \
                  number, an event, `min(`, `max(` or `(`, found the end",
        ),
    ] {
        assert_eq!(refused("C / I", formula), says);
    }
}

#[test]
fn metrics_must_be_those_of_the_catalogue() {
    let error = refused("cpi = ", "cqi = ");
    let expected = "table `test/small`, metric `cqi`: no metric is called `cqi`: did you mean";
    assert!(error.starts_with(expected), "{error}");
    let error = refused("otherwise = \"the small machine does not count it\"", "");
    let expected = "table `test/small`, metric `uops_per_instruction`: the table gives neither \
                    formula nor reason";
    assert_eq!(error, expected);
    let error = refused("cpi = \"C / I\"", "cpi = { unavailable = \" \" }");
    assert_eq!(error, "table `test/small`, metric `cpi`: it is unavailable without a reason");
}

#[test]
fn events_must_fit_the_registers() {
    for (from, to, says) in [
        ("umask = 0x10", "umask = 0x110", "event `L`: `umask` is 0x110, and at most 0xff fits"),
        ("event = 0xd1", "event = 0x1d1", "event `L`: `event` is 0x1d1, and at most 0xff fits"),
        ("umask = 0x10", "bits = 0x1", "event `L`: `bits` 0x1 are those of other fields"),
        ("counters = [1]", "counters = [16]", "its counters are none, or beyond the 16th"),
        ("counters = [1]", "counters = [1], fixed = 2", "it has both `fixed` and `counters`"),
        ("\"uncore\"", "\"uncore\", fixed = 2", "it takes no counter of the core"),
        ("event = 0xd1", "software = \"cpu-clock\", event = 0xd1", "it has to be either"),
        ("name = \"C\"", "name = \"I\"", "event `I`: another event has the same name"),
        ("fixed = 1", "leader = \"U\"", "its leader is not an event with a fixed counter"),
        ("\"cycles\"", "\"\"", "event `C`: it has no description"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{error}");
    }
    let any = "umask = 0x10, any = true";
    let amd = SMALL.replace("\"intel\"", "\"amd\"").replace("umask = 0x10", any);
    let error = Table::parse(&amd).unwrap_err().to_string();
    assert!(error.contains("AMD counts for one sibling only"), "{error}");
    let arm = SMALL.replace("\"intel\"", "\"arm\"");
    let error = Table::parse(&arm).unwrap_err().to_string();
    assert!(error.contains("an event of Arm has a number only"), "{error}");
}

#[test]
fn other_forms_are_refused() {
    for (from, to) in [
        ("cpi = ", "cpi "),
        ("title", "tittle"),
        ("umask", "unmask"),
        ("\"intel\"", "\"ibm\""),
        ("{ formula =", "{ formular ="),
    ] {
        let error = refused(from, to);
        assert!(error.starts_with("the table is not of the form of a table"), "{error}");
    }
}
