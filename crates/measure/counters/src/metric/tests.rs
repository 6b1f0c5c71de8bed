//! The catalogue is whole, and says what it should.

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_metric_can_be_found_by_its_name_and_by_its_groups() {
    let mut names = BTreeSet::new();
    for metric in catalogue() {
        assert!(names.insert(&metric.name), "{} stands twice", metric.name);
        assert!(!metric.words.is_empty() && !metric.groups.is_empty(), "{}", metric.name);
        assert_eq!(named(&metric.name), Ok(metric));
        for group in &metric.groups {
            assert!(of_group(group).unwrap().contains(&metric), "{} in {group}", metric.name);
        }
    }
}

#[test]
fn the_groups_are_those_that_studies_name() {
    let known: BTreeSet<&str> = groups().into_iter().collect();
    let groups_of_studies = [
        "cpi", "mix", "l1", "l2", "l3", "tlb", "branch", "clears", "sharing", "memory", "stalls",
        "topdown", "retire", "smt", "frontend", "system",
    ];
    assert_eq!(known, groups_of_studies.into_iter().collect());
}

#[test]
fn a_rate_per_access_stands_beside_one_per_instruction() {
    for metric in catalogue().iter().filter(|metric| metric.per == Per::Access) {
        let twin = metric.name.replace("_miss_ratio", "_mpki");
        let twin = named(&twin).unwrap_or_else(|error| panic!("{}: {error}", metric.name));
        assert_eq!(twin.per, Per::Instruction);
        assert_eq!(twin.unit, Unit::PerThousandInstructions);
        assert_eq!(twin.groups, metric.groups);
    }
}

#[test]
fn units_say_what_they_are_per() {
    for metric in catalogue() {
        let expected: &[Unit] = match metric.per {
            Per::Instruction => &[
                Unit::CyclesPerInstruction,
                Unit::UopsPerInstruction,
                Unit::PerThousandInstructions,
                Unit::Share,
            ],
            Per::Uop => &[Unit::CyclesPerUop, Unit::Ratio],
            Per::Cycle => &[Unit::UopsPerCycle, Unit::Share, Unit::Ratio, Unit::Requests],
            Per::Access | Per::Branch | Per::Miss | Per::Slot => &[Unit::Share],
            Per::Request => &[Unit::Cycles, Unit::Nanoseconds],
            Per::Second => &[Unit::PerSecond],
        };
        assert!(expected.contains(&metric.unit), "{}: {}", metric.name, metric.unit);
        let json = serde_json::to_string(&metric.unit).unwrap();
        assert_eq!(json, format!("\"{}\"", metric.unit.words()));
    }
}

#[test]
fn a_misspelt_name_is_answered_by_the_nearest() {
    let error = named("l2_mkpi").unwrap_err().to_string();
    assert_eq!(error, "no metric is called `l2_mkpi`: did you mean `l2_mpki`?");
    let error = of_group("topdwn").unwrap_err().to_string();
    assert_eq!(error, "no group of metrics is called `topdwn`: did you mean `topdown`?");
    let error = of_group("zzz").unwrap_err().to_string();
    assert!(error.contains("choose one of `cpi`, `retire`"), "{error}");
}
