//! `workahead advise` as a process: studies, answers on real servers, wrong use, interruptions.

mod process;

use std::fs;

use process::{Place, interrupt, server_directory, text, wait_until};

const QUESTIONS: [&str; 4] = ["smt", "cores", "parallelism", "clients"];
/// Some milliseconds of work for a CPU.
const SQL: &str = "select count(*) from generate_series(1, 20000)";

#[test]
fn every_question_is_a_study_to_save_and_edit() {
    let place = Place::new();
    for question in QUESTIONS {
        let levels: &[&str] = if question == "smt" { &[] } else { &["--levels", "1,2"] };
        let arguments = [&["advise", question, "--sql", SQL, "--study"], levels].concat();
        let output = place.run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::write(place.path("question.toml"), &output.stdout).unwrap();
        let run_plan = place.json(&["study", "plan", "question.toml"]);
        assert_eq!(run_plan["cells"].as_array().unwrap().len(), 2, "{question}");
    }
    assert_eq!(place.names(), ["question.toml"], "nothing was run");
}

#[test]
fn an_answer_is_a_sentence_a_page_and_json() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let arguments = ["advise", "clients", "--sql", SQL, "--levels", "1,2,4", "--sample", "0.1s"];
    let arguments =
        [&arguments[..], &["--time", "20s", "--out", "out", "--data-dir", home]].concat();
    let answer = place.json(&arguments);
    let sentence = answer["sentence"].as_str().unwrap();
    assert_eq!(answer["question"], "clients");
    assert_eq!(answer["levels"].as_array().unwrap().len(), 3);
    assert_eq!(answer["unit"], "queries/s");
    for level in answer["levels"].as_array().unwrap() {
        assert!(level["throughput"].as_f64().unwrap() > 1.0, "{level}");
        assert!(level["p99_ms"].as_f64().unwrap() > 0.01, "{level}");
    }
    match answer["choice"].as_str() {
        Some(choice) => assert!(["1", "2", "4"].contains(&choice), "{answer}"),
        None => assert!(sentence.starts_with("Not decided"), "{sentence}"),
    }
    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(page.contains(&format!("<p class=\"answer\">{sentence}</p>")), "{sentence}");
    let again = place.json(&["advise", "show", "out"]);
    assert_eq!(again["sentence"], answer["sentence"]);
    let shown = place.run(&["advise", "show", "out", "--within", "20%"]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("of the best (interval)") && shown.contains("4 clients"), "{shown}");
}

#[test]
fn cores_have_a_price() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let prices = "currency = 'EUR'\nmachine_per_hour = 0.1\ncore_per_hour = 0.05\n";
    fs::write(place.path("prices.toml"), prices).unwrap();
    let arguments = ["advise", "cores", "--sql", SQL, "--levels", "1,2", "--sample", "0.1s"];
    let priced = ["--time", "20s", "--prices", "prices.toml", "--out", "out", "--data-dir", home];
    if std::thread::available_parallelism().unwrap().get() < 2 {
        let said = place.fails(&[&arguments[..], &priced].concat(), 1);
        assert!(said.contains("there is nothing to compare here"), "{said}");
        return;
    }
    let answer = place.json(&[&arguments[..], &priced].concat());
    for level in answer["levels"].as_array().unwrap() {
        let cores: f64 = level["value"].as_str().unwrap().parse().unwrap();
        let per_hour = level["throughput"].as_f64().unwrap() * 3600.0;
        let expected = (0.1 + 0.05 * cores) / per_hour * 1e6;
        let cost = level["cost_of_million"].as_f64().unwrap();
        assert!((cost / expected - 1.0).abs() < 1e-9, "{level}");
    }
    let notes = answer["notes"].to_string();
    assert!(notes.contains("A million queries cost least with"), "{notes}");
}

#[test]
fn an_interrupted_question_says_how_to_go_on() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let arguments = ["advise", "clients", "--sql", SQL, "--levels", "1,2", "--sample", "1s"];
    let child = place.start(&[&arguments[..], &["--out", "out", "--data-dir", home]].concat());
    let kept = || fs::read_to_string(place.path("out/observations.jsonl")).unwrap_or_default();
    wait_until("a sample", || kept().lines().count() > 0);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("`workahead study resume out` continues"), "{said}");
    assert!(last.contains("`workahead advise show out`"), "{said}");
    let shown = place.json(&["advise", "show", "out"]);
    assert_eq!(shown["decided"], false);
}

#[test]
fn statements_that_fail_are_an_error_in_a_line() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let arguments = ["advise", "clients", "--sql", "selec 1", "--levels", "1,2", "--json"];
    let said = place.fails(&[&arguments[..], &["--out", "out", "--data-dir", home]].concat(), 1);
    assert!(said.contains("nothing can be compared: 1 client: failed"), "{said}");
    assert!(said.contains("syntax error"), "{said}");
}

#[test]
fn wrong_use_names_its_remedy() {
    let place = Place::new();
    for (words, remedy) in [
        (&["cores"][..], "--sql"),
        (&["cores", "--sql", "x", "--tpch", "1"], "--tpch"),
        (&["clients", "--sql", "x", "--levels", "4,2"], "--levels 1,2,4"),
        (&["clients", "--sql", "x", "--levels", "1"], "--levels 1,2,4"),
        (&["clients", "--sql", "x", "--within", "0"], "e.g. 5"),
        (&["clients", "--sql", "x", "--within", "nan"], "e.g. 5"),
        (&["clients", "--sql", "x", "--sample", "soon"], "10m"),
        (&["show", "nowhere"], "nowhere"),
    ] {
        let status = if words[0] == "show" { 1 } else { 2 };
        let said = place.fails(&[&["advise"], words].concat(), status);
        assert!(said.contains(remedy), "{said}");
    }
    fs::write(place.path("prices.toml"), "currency = 'EUR'\ncores = 1\n").unwrap();
    let words = ["advise", "cores", "--sql", "x", "--prices", "prices.toml"];
    assert!(place.fails(&words, 2).contains("prices.toml"));
    let endless = ["advise", "cores", "--sql", "x", "--prices", "/dev/zero"];
    assert!(place.fails(&endless, 1).contains("it has more than 1 MiB"));
    let said = place.fails(&["advise", "cores", "--engine", "oracle", "--sql", "x"], 1);
    assert!(said.contains("oracle"), "{said}");
    assert_eq!(place.names(), ["prices.toml"]);
}

#[test]
fn a_result_of_another_study_has_no_answer() {
    let place = Place::new();
    let study = "title = 't'\nquestion = 'q'\nengine = 'native'\n[workload]\noperator = \
                 'hash_join'\nrows = 1000\n[method]\nrepetitions = 1\nwarmup = 0\n";
    fs::write(place.path("mine.toml"), study).unwrap();
    let run = place.run(&["study", "run", "mine.toml", "--no-limits", "--out", "out"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let said = place.fails(&["advise", "show", "out"], 2);
    assert!(said.contains("`workahead study report`"), "{said}");
}

#[test]
fn siblings_need_siblings() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let machine = place.json(&["machine"]);
    let arguments = ["advise", "smt", "--sql", SQL, "--sample", "0.1s", "--time", "5s"];
    let arguments = [&arguments[..], &["--out", "out", "--data-dir", home]].concat();
    let has_siblings = machine.to_string().contains("\"smt\":\"on\"");
    match has_siblings {
        true => assert!(place.json(&arguments)["sentence"].is_string()),
        false => {
            let said = place.fails(&arguments, 1);
            assert!(said.contains("there is nothing to compare here"), "{said}");
            assert!(place.names().is_empty(), "no result of nothing");
        }
    }
}

/// A million probes of a table of 200 MB, which takes two of three seconds.
const PLAN: &str = r#"[{"Plan": {"Node Type": "Hash Join", "Hash Cond": "(a.x = b.x)",
    "Actual Total Time": 3000.0, "Actual Rows": 9, "Actual Loops": 1, "Plans": [
    {"Node Type": "Seq Scan", "Relation Name": "a", "Actual Total Time": 500.0,
     "Actual Rows": 1000000, "Actual Loops": 1},
    {"Node Type": "Hash", "Peak Memory Usage": 200000, "Actual Total Time": 500.0,
     "Actual Rows": 1000000, "Actual Loops": 1, "Plans": []}]}}]"#;

#[test]
fn joins_of_a_plan_are_held_against_the_machine() {
    let place = Place::new();
    fs::write(place.path("plan.json"), PLAN).unwrap();
    let answer = place.run(&["advise", "joins", "--plan", "plan.json", "--json"]);
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    let join = &answer["joins"][0];
    assert_eq!((&join["statement"], &join["bytes"]), (&"plan.json".into(), &204_800_000.0.into()));
    // The amount depends on this machine's memory, and at most what the join takes.
    let saved = answer["saved_ms"].as_f64().unwrap();
    assert!(saved > 1.0 && saved <= 2_500.0, "{answer}");
    let shown = place.run(&["advise", "joins", "--plan", "plan.json", "plan.json"]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("205 MB") && shown.contains("Modelled, from the plans"), "{shown}");
    fs::write(place.path("none.json"), "no plan").unwrap();
    let said = place.fails(&["advise", "joins", "--plan", "none.json"], 1);
    assert!(said.contains("EXPLAIN (ANALYZE, FORMAT JSON)"), "{said}");
}

#[test]
fn joins_of_statements_are_run_once_more_for_their_plans() {
    let (place, data) = (Place::new(), server_directory());
    let home = data.path().to_str().unwrap();
    let join = "select count(*) from generate_series(1, 50000) a left join \
                generate_series(1, 50000) b on md5(a::text) = md5(b::text); \
                insert into t values (1)";
    let arguments = ["advise", "joins", "--sql", join, "--data-dir", home, "--out", "out"];
    let ran = place.run(&arguments);
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(said.contains("report: out/report.html"), "{said}");
    let again = place.json(&["advise", "show", "out"]);
    assert!(said.starts_with(again["sentence"].as_str().unwrap()), "{said}");
    assert_eq!(again["statements"], 1, "statements that write have no plan");
    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(page.contains("<p class=\"answer\">"), "the sentence comes first");
    let said = place.fails(&["advise", "joins", "--sql", "insert into t values (1)"], 2);
    assert!(said.contains("no statement in it that reads"), "{said}");
    let study = place.run(&["advise", "joins", "--sql", "select 1", "--study"]);
    fs::write(place.path("question.toml"), &study.stdout).unwrap();
    let run_plan = place.json(&["study", "plan", "question.toml"]);
    assert_eq!(run_plan["cells"].as_array().unwrap().len(), 1);
}
