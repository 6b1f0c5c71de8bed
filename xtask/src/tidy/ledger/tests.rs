//! The accounting is shown to fail on every way to cheat it.

use super::*;

/// A ledger in which every row waits for something.
fn waiting() -> String {
    rows().iter().map(|row| entry(row, "reason = \"not yet\"")).collect()
}

fn entry(row: &str, rest: &str) -> String {
    format!("[[entry]]\nrow = \"{row}\"\nwords = \"what it says\"\n{rest}\n")
}

fn found(ledger: &str, others: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![(PATH, ledger)];
    files.extend_from_slice(others);
    check(&Tree::of(&files)).into_iter().map(|finding| finding.says).collect()
}

/// The waiting ledger with one row's account replaced.
fn with(row: &str, rest: &str) -> String {
    waiting().replace(&entry(row, "reason = \"not yet\""), &entry(row, rest))
}

#[test]
fn there_are_as_many_rows_as_the_papers_have() {
    assert_eq!(rows().len(), 336);
    assert!(found(&waiting(), &[]).is_empty());
}

#[test]
fn a_missing_ledger_or_row_is_found() {
    assert_eq!(check(&Tree::default()).len(), 1);
    let without = waiting().replace(&entry("E2.16", "reason = \"not yet\""), "");
    assert_eq!(found(&without, &[]), ["row E2.16 has 0 entries"]);
}

#[test]
fn a_row_twice_or_unknown_is_found() {
    let twice = waiting() + &entry("S4.7", "reason = \"not yet\"");
    assert_eq!(found(&twice, &[]), ["row S4.7 has 2 entries"]);
    let unknown = waiting() + &entry("S4.99", "reason = \"not yet\"");
    assert_eq!(found(&unknown, &[]), ["row S4.99: the papers have no such row"]);
    assert_eq!(found("entry = 3", &[]).len(), 1);
}

#[test]
fn a_done_row_names_what_exists() {
    let ledger = with("S4.7", "where = [\"crates/execute/walks/src/work_ahead.rs\"]");
    assert_eq!(found(&ledger, &[]).len(), 1);
    assert!(found(&ledger, &[("crates/execute/walks/src/work_ahead.rs", "")]).is_empty());
    let nowhere = with("S4.7", "");
    assert_eq!(found(&nowhere, &[]).len(), 1);
}

#[test]
fn an_acceptance_row_names_its_test() {
    let path = ("crates/x/tests/a.rs", "");
    let without = with("A30", "where = [\"crates/x/tests/a.rs\"]");
    assert_eq!(found(&without, &[path]).len(), 1);
    let with_test =
        with("A30", "where = [\"crates/x/tests/a.rs\"]\ntest = \"crates/x/tests/a.rs\"");
    assert!(found(&with_test, &[path]).is_empty());
    assert_eq!(found(&with_test, &[]).len(), 2);
}

/// A kept run that said this of E4.6.
fn kept(words: &str) -> String {
    let (direction, size) = words.split_once(", ").unwrap();
    format!(
        r#"{{"rows": [{{"row": "E4.6",
            "measured": {{"direction": "{direction}", "size": "{size}"}},
            "modelled": {{"direction": "{direction}", "size": "{size}"}}}}]}}"#
    )
}

const MEASURED: &str = "bench/record/papers/zhou-measured.json";
const MODELLED: &str = "bench/record/papers/zhou-modelled.json";

#[test]
fn an_experiment_has_a_study_and_a_verdict() {
    let disagrees = kept("disagrees, within 2×");
    let run = (MEASURED, disagrees.as_str());
    let study = ("studies/zhou/hash_join.toml", "engine = \"native\"\nledger = [\"E4.6\"]");
    let good = "where = [\"studies/zhou/hash_join.toml\"]\nstudy = [\"zhou/hash_join\"]\n\
                measured = \"disagrees, within 2×\"";
    assert!(found(&with("E4.6", good), &[study, run]).is_empty());
    assert_eq!(found(&with("E4.6", good), &[study]).len(), 1, "no run was kept");
    let vague = good.replace("disagrees, within 2×", "roughly");
    assert_eq!(found(&with("E4.6", &vague), &[study]).len(), 3, "unknown, no answer, not kept");
    let silent = good.replace("disagrees, within 2×", "");
    assert_eq!(found(&with("E4.6", &silent), &[study]).len(), 1);
    let unsaid = good.replace("disagrees, within 2×", "cannot be said here, no figure");
    let nothing = kept("cannot be said here, no figure");
    let run = (MEASURED, nothing.as_str());
    assert_eq!(found(&with("E4.6", &unsaid), &[study, run]).len(), 1, "a study is not an answer");
    let with_reason = unsaid + "\nreason = \"no siblings\"";
    assert!(found(&with("E4.6", &with_reason), &[study, run]).is_empty());
    let unstudied = good.replace("[\"zhou/hash_join\"]", "[]");
    let unclaimed = ("studies/zhou/hash_join.toml", "");
    let run = (MEASURED, disagrees.as_str());
    assert_eq!(found(&with("E4.6", &unstudied), &[unclaimed, run]).len(), 1);
}

#[test]
fn an_experiment_that_is_done_has_a_mark() {
    let done = "where = [\"studies/zhou/a.toml\"]\nmodelled = \"agrees, beyond\"\n";
    let study = done.to_owned() + "study = [\"zhou/a\"]";
    let agrees = kept("agrees, beyond");
    let run = (MODELLED, agrees.as_str());
    let of = |text| found(&with("E4.6", &study), &[("studies/zhou/a.toml", text), run]);
    assert!(of("engine = \"modelled\"\nledger = [\"E4.6\"]").is_empty());
    let says = of("ledger = [\"E4.6\"]");
    assert_eq!(says, ["row E4.6: neither real nor modelled: its studies name no engine"]);
    let by_hand = done.to_owned() + "mark = \"arithmetic\"";
    let file = ("studies/zhou/a.toml", "");
    assert!(found(&with("E4.6", &by_hand), &[file, run]).is_empty());
    assert_eq!(found(&with("S4.6", &by_hand), &[file]).len(), 1);
    let other = done.to_owned() + "mark = \"guessed\"\nstudy = [\"zhou/a\"]";
    let study = ("studies/zhou/a.toml", "engine = \"native\"\nledger = [\"E4.6\"]");
    assert_eq!(found(&with("E4.6", &other), &[study, run]).len(), 1);
}
