//! Before and after, on an engine whose times are known.

use super::*;
use crate::statistics::Significance;
use crate::testing::{self, Mock, Trouble};

const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
    workload = { rows = 1000 }\n[axes]\nsize = ['q1', 'q2']\n\
    [[cases]]\nname = 'a'\n[[cases]]\nname = 'b'\nspeed = 2.0\n\
    [method]\nrepetitions = 4\nblocks = ['size']\n";

fn results(text: &str, trouble: Trouble) -> Results {
    let dir = tempfile::tempdir().unwrap();
    testing::results(dir.path(), text, &mut Mock::with(trouble))
}

#[test]
fn the_same_twice_differs_in_nothing() {
    let run = results(STUDY, Trouble::None);
    let compared = Comparison::of(&run, &run);
    assert_eq!(compared.lines.len(), 4);
    assert!(compared.differences.is_empty(), "{:?}", compared.differences);
    assert!(compared.only_before.is_empty() && compared.only_after.is_empty());
    for line in &compared.lines {
        assert_eq!(line.speedup.unwrap().shown(), Significance::NoDifference, "{line:?}");
        assert!(line.p_adjusted >= line.speedup.unwrap().p);
    }
}

/// A changed setting of all cells: they match by their coordinates, and it is named.
#[test]
fn cells_match_by_coordinates_when_a_setting_of_all_changed() {
    let before = results(STUDY, Trouble::None);
    let after = results(&STUDY.replace("rows = 1000", "rows = 500"), Trouble::None);
    let compared = Comparison::of(&before, &after);
    assert_eq!(compared.lines.len(), 4);
    let named: Vec<&str> = compared.differences.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(named, ["rows"]);
    assert_eq!(compared.differences[0].after, "500");
}

#[test]
fn cells_of_one_only_and_cells_without_samples_are_named() {
    let before = results(STUDY, Trouble::Fail(0));
    let after = results(&STUDY.replace("'q2'", "'q3'"), Trouble::None);
    let compared = Comparison::of(&before, &after);
    assert_eq!(compared.only_before, ["q2 / a", "q2 / b"]);
    assert_eq!(compared.only_after, ["q3 / a", "q3 / b"]);
    assert_eq!(compared.lines.len(), 2);
    let missing = compared.lines[0].missing.as_deref().unwrap();
    assert!(missing.starts_with("before: failed: requested failure"), "{missing}");
    let faster = results(&STUDY.replace("2.0", "3.0"), Trouble::None);
    let compared = Comparison::of(&after, &faster);
    assert_eq!(compared.lines.len(), 1, "case b has other settings in q1");
}
