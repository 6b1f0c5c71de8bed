//! `workahead study compare` as a process: two results in, one page and a few lines out.

mod process;

use std::fs;
use std::os::unix::fs::symlink;

use process::{Place, text};
use workahead_study::testing::{self, Mock};

const STUDY: &str = r#"title = "Demo"
question = "Which?"
engine = "mock"
workload = { rows = 1000 }
[axes]
size = ["q1", "q2"]
[[cases]]
name = "off"
[[cases]]
name = "on"
speed = 2.0
[method]
repetitions = 4
blocks = ["size"]
tuples = "queries"
baseline = { case = "off" }
"#;

/// A place with the results `before`, of the study above, and `after`.
fn two(after: &str) -> Place {
    let place = Place::new();
    for (name, study) in [("before", STUDY), ("after", after)] {
        fs::create_dir(place.path(name)).unwrap();
        testing::results(&place.path(name), study, &mut Mock::new());
    }
    place
}

#[test]
fn before_and_after_cell_by_cell() {
    // All cells have half the rows in the same time: half as fast, whatever the case.
    let place =
        two(&STUDY.replace("rows = 1000", "rows = 500").replace("speed = 2.0", "speed = 1.0"));
    let answer = place.json(&["study", "compare", "before", "after"]);
    assert_eq!(answer["paired"], false);
    let lines = answer["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4);
    let ratio = lines[1]["speedup"]["ratio"].as_f64().unwrap();
    assert!((ratio / 0.5 - 1.0).abs() < 0.03, "{ratio}");
    assert!(lines[1]["p_adjusted"].as_f64().unwrap() < 0.05);
    let names: Vec<&str> = answer["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["rows", "speed"]);
    let page = fs::read_to_string(place.path("after/compare.html")).unwrap();
    for word in ["Before and after: Demo", "Other differences", "<svg", "compare.csv"] {
        assert!(page.contains(word), "{word} is not on the page");
    }
}

/// A result that was unpacked from somebody else's archive: its links lead to files of the user.
#[test]
fn pages_are_not_written_through_links_of_a_result() {
    let place = two(STUDY);
    fs::write(place.path("victim"), "precious").unwrap();
    let links = ["compare.html", "report.html", "findings.json", "observations.parquet"];
    for name in links {
        let link = place.path("after").join(name);
        let _ = fs::remove_file(&link);
        symlink("../victim", link).unwrap();
    }
    for command in [&["study", "compare", "before", "after"][..], &["study", "report", "after"]] {
        let output = place.run(command);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert_eq!(fs::read_to_string(place.path("victim")).unwrap(), "precious");
    for name in links {
        assert!(fs::symlink_metadata(place.path("after").join(name)).unwrap().is_file(), "{name}");
    }
}

#[test]
fn the_lines_for_people_and_a_page_elsewhere() {
    let place = two(&STUDY.replace("\"q2\"", "\"q3\""));
    let output = place.run(&["study", "compare", "before", "after", "--html", "change.html"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for word in
        ["q1 / on", "no difference", "Only before: q2 / off", "Only after: q3", "change.html"]
    {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    assert!(place.path("change.html").exists() && !place.path("after/compare.html").exists());
}

#[test]
fn wrong_input_is_one_line() {
    let place = two(&STUDY.replace("\"q1\", \"q2\"", "\"a\", \"b\""));
    let apart = place.fails(&["study", "compare", "before", "after"], 1);
    assert!(apart.contains("no cell in common"), "{apart}");
    let missing = place.fails(&["study", "compare", "before", "nowhere"], 1);
    assert!(missing.contains("nowhere does not hold a result"), "{missing}");
    place.fails(&["study", "compare", "before"], 2);
    let unwritable = ["study", "compare", "before", "before", "--html", "no/where.html"];
    assert!(place.fails(&unwritable, 1).contains("no/where.html"));
    assert!(!place.path("after/compare.html").exists(), "nothing is left behind");
}
