//! `workahead reproduce` as a process: what there is, what is taken, what an interruption keeps.

mod process;

use std::fs;
use std::path::Path;

use process::{Place, signal, text, wait_until};
use serde_json::Value;
use workahead_reproduce::paper::Paper;
use workahead_study::testing::{self, Mock};

/// As `hassanein/speedup` would leave it on a machine that shows siblings.
const SPEEDUP: &str = r#"title = "Demo"
question = "Which?"
engine = "mock"
ledger = ["E0.4", "E0.14"]
workload = { rows = 1000 }
[[cases]]
name = "off"
[[cases]]
name = "on"
speed = 1.2
[method]
repetitions = 4
baseline = { case = "off" }
[[paper]]
row = "E0.4"
figure = "Fig. 3a"
where = { case = "on" }
ratio = 1.16
says = "faster"
hypothesis = "shown where ours disagrees alone"
[[paper]]
row = "E0.14"
figure = "Fig. 8"
where = { case = "on" }
direction = "slower"
says = "slower"
hypothesis = "a larger cache"
"#;

/// A result for every study of the paper, so that none is run; the first has all claims.
fn taken(out: &Path) {
    let (quiet, _) = SPEEDUP.split_once("[[paper]]").unwrap();
    for study in Paper::find("hassanein").unwrap().studies() {
        let id = study.strip_prefix("hassanein/").unwrap();
        let text = if id == "speedup" { SPEEDUP } else { quiet };
        let dir = out.join(id);
        fs::create_dir_all(&dir).unwrap();
        testing::results(&dir, text, &mut Mock::new());
        let record = dir.join("run.json");
        let mut kept: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        kept["study"] = format!("hassanein/{id}").into();
        fs::write(record, kept.to_string()).unwrap();
    }
}

#[test]
fn without_a_paper_it_says_what_there_is() {
    let place = Place::new();
    let listed = place.json(&["reproduce"]);
    let papers: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["paper"].as_str().unwrap()).collect();
    assert_eq!(papers, ["hassanein", "chang", "keeton", "yamada", "zhou"]);
    let said = place.run(&["reproduce"]);
    assert!(text(&said.stdout).contains("Zhou, Cieslewicz, Ross"), "{}", text(&said.stdout));
}

#[test]
fn wrong_names_are_wrong_use() {
    let place = Place::new();
    assert!(place.fails(&["reproduce", "zuo"], 2).contains("zhou"));
    let scale = place.fails(&["reproduce", "zhou", "--scale", "smal"], 2);
    assert!(scale.contains("choose small"), "{scale}");
    place.fails(&["reproduce", "zhou", "--repetitions", "0"], 2);
}

#[test]
fn results_that_are_there_are_taken_and_every_row_has_two_words() {
    let place = Place::new();
    taken(&place.path("out"));
    let answer = place.json(&["reproduce", "hassanein", "--out", "out"]);
    let studies = answer["studies"].as_array().unwrap();
    assert!(studies.iter().all(|study| study["state"] == "taken"), "{studies:?}");
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 24);
    let said = |name: &str| rows.iter().find(|row| row["row"] == name).unwrap()["measured"].clone();
    assert_eq!(said("E0.4")["direction"], "agrees");
    assert_eq!(said("E0.4")["size"], "within 10 %");
    assert_eq!(said("E0.14")["direction"], "disagrees");
    let others = rows.iter().filter(|row| row["row"] != "E0.4" && row["row"] != "E0.14");
    assert!(others.into_iter().all(|row| row["measured"]["direction"] == "cannot_be_said_here"));
    let page = fs::read_to_string(place.path("out/reproduce.html")).unwrap();
    assert!(page.contains("speedup/report.html") && page.contains("nothing to judge it by"));
    assert!(page.contains("Why, perhaps: a larger cache") && !page.contains("disagrees alone"));
    let row = rows.iter().find(|row| row["row"] == "E0.14").unwrap();
    assert_eq!(row["claims"][0]["hypothesis"], "a larger cache");
    let said = place.run(&["reproduce", "hassanein", "--out", "out"]);
    let said = text(&said.stdout);
    assert!(said.contains("cannot be said here") && said.contains("reproduce.html"), "{said}");
    let (_, why) = said.split_once("why, perhaps").unwrap();
    assert!(why.contains("E0.14") && why.contains("a larger cache"), "{said}");
    assert!(!said.contains("disagrees alone"), "{said}");
}

/// A study that can't be used costs its own rows, and the command says so at the end.
#[test]
fn results_of_another_scale_are_not_mixed() {
    let place = Place::new();
    taken(&place.path("out"));
    let output = place.run(&["reproduce", "hassanein", "--scale", "small", "--out", "out"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("not small") && said.contains("--force"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(place.path("out/reproduce.html").exists());
}

fn samples(out: &Path) -> usize {
    let studies = fs::read_dir(out).into_iter().flatten().flatten();
    let logs = studies.map(|study| study.path().join("observations.jsonl"));
    logs.filter_map(|log| Some(fs::read_to_string(log).ok()?.matches('\n').count())).sum()
}

#[test]
fn an_interruption_keeps_everything_and_the_same_command_goes_on() {
    let place = Place::new();
    let command =
        ["reproduce", "zhou", "--scale", "small", "--no-limits", "--out", "out", "--json"];
    let mut before = 0;
    for _ in 0..2 {
        let mut child = place.start(&command);
        wait_until("more samples", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            samples(&place.path("out")) > before + 2
        });
        signal(&child, "INT");
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains("interrupted") && last.contains("--out out"), "{said}");
        let now = samples(&place.path("out"));
        assert!(now > before, "{now} samples after {before}");
        before = now;
    }
}

#[test]
fn a_changed_machine_is_never_taken_for_the_papers_own() {
    let place = Place::new();
    let change = ["--change", "cache.L2.bytes=4194304"];
    let wrong = [&["reproduce", "hassanein", "--tier", "measured", "--out", "x"], &change[..]];
    assert!(place.fails(&wrong.concat(), 2).contains("--tier E"));
    let out = place.path("results");
    taken(&out);
    let of = ["reproduce", "hassanein", "--tier", "E", "--out", out.to_str().unwrap()];
    let says = place.fails(&[&of, &change[..]].concat(), 1);
    assert!(says.contains("other parameters"), "{says}");
    let new = ["reproduce", "hassanein", "--tier", "E", "--out", "new"];
    let says = place.fails(&[&new[..], &["--change", "core.lanes=2"]].concat(), 1);
    assert!(says.contains("core.lanes"), "{says}");
    let says = place.fails(&[&of[..], &["--change", "cache.L2.bytes"]].concat(), 2);
    assert!(says.contains("PATH=VALUE"), "{says}");
}
