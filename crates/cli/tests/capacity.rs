//! `workahead capacity` as a process, on private servers under a load of our own: answers and
//! refusals. Other programs may keep the machine busy, so no test expects an answer where the
//! refusal of a disturbed observation is as right.

mod observed;
mod process;

use std::fs;
use std::time::{Duration, Instant};

use observed::{Load, options, start_postgres};
use process::{Place, interrupt, server_directory, text, url, wait_until};
use serde_json::Value;
use workahead_engines::attach::Target;
use workahead_engines::mariadb;
use workahead_study::engine::Stop;
use workahead_workloads::session::Session;

/// A millisecond or two of work for a CPU. PostgreSQL from 15 on counts a transaction that reads no
/// table only with a later one that does.
const POSTGRES_QUERIES: &[&str] = &["SELECT count(*) FROM pg_class, generate_series(1, 12)"];
const MARIADB_QUERIES: &[&str] = &["SELECT COUNT(*) FROM seq_1_to_8000 WHERE seq % 7 = 3"];

/// Two clients that query and pause, more and less in turn.
fn keep_busy(target: &Target, queries: &'static [&'static str]) -> Load {
    Load::begin(target, 2, queries, |begun, took| {
        let turn = begun.as_secs_f64() * std::f64::consts::TAU / 4.0;
        took.mul_f64(2.5 + 1.5 * turn.sin())
    })
}

/// The JSON that a command printed, and its line on standard error if it failed.
fn facts(place: &Place, arguments: &[&str]) -> (Value, String) {
    let output = place.run(&[&["capacity", "--json"], arguments].concat());
    let facts = serde_json::from_slice(&output.stdout);
    let said = text(&output.stderr);
    let facts: Value = facts.unwrap_or_else(|_| panic!("no JSON: {said}"));
    assert!(output.status.success(), "{said}");
    assert_eq!(facts["refusal"].is_null(), !facts["answer"].is_null(), "{said}");
    (facts, said)
}

/// Windows count what the clients did, and an answer agrees with itself; a disturbed observation
/// has none, and says why.
fn check(facts: &Value, counted: &str, queries_per_s: f64) {
    let windows = facts["observed"]["windows"].as_array().unwrap();
    assert_eq!(facts["observed"]["counted"], counted);
    let sum = |of: &dyn Fn(&Value) -> Option<f64>| -> f64 {
        windows.iter().map(|window| of(window).unwrap_or_else(|| panic!("{window}"))).sum()
    };
    let seconds = sum(&|window| window["seconds"].as_f64());
    let rate = sum(&|window| window["ended"].as_f64()) / seconds;
    // The clients' own count includes the command's start.
    assert!(rate > 0.4 * queries_per_s && rate < 2.5 * queries_per_s, "{rate}, {queries_per_s}");
    let busy = sum(&|window| window["cpu"]["busy"].as_f64());
    let cpus = sum(&|window| window["cpu"]["cpus"].as_f64());
    let server = sum(&|window| window["cpu"]["server"].as_f64());
    assert!(server > 0.0 && busy <= 1.05 * cpus, "{server} of {busy} of {cpus}");
    let answer = &facts["answer"];
    if answer.is_null() {
        let reason = facts["refusal"]["reason"].as_str().unwrap();
        assert!(["unclear", "saturated", "steady"].contains(&reason), "{}", facts["refusal"]);
        return;
    }
    let figure = |name: &str| answer[name].as_f64().unwrap_or_else(|| panic!("{name}: {answer}"));
    let (used, ceiling) = (figure("used"), figure("ceiling_per_s"));
    assert!(used > 0.0 && used <= 1.0, "{answer}");
    assert!((figure("load_per_s") / ceiling / used - 1.0).abs() < 1e-9, "{answer}");
    let interval = &answer["ceiling_interval"];
    assert!(interval["low"].as_f64().unwrap() <= ceiling, "{answer}");
    assert!(interval["high"].as_f64().unwrap() >= ceiling, "{answer}");
    assert!(answer["loads_per_s"]["high"].as_f64().unwrap() <= ceiling, "{answer}");
    assert!(answer["sentence"].as_str().unwrap().contains("of what this server can do"));
}

#[test]
fn a_postgres_at_work_has_head_room() {
    let (server, _directory) = start_postgres();
    let load = keep_busy(&server.target("shop"), POSTGRES_QUERIES);
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let (begun, before) = (Instant::now(), load.sent());
    let arguments = ["--attach", &url, "--for", "9s", "--every", "0.5s", "--out", "out"];
    let (facts, said) = facts(&place, &arguments);
    let queries = (load.sent() - before) as f64;
    check(&facts, "transactions", queries / begun.elapsed().as_secs_f64());
    assert_eq!(facts["observed"]["missing"], Value::Array(Vec::new()), "{said}");
    let kept = fs::read_to_string(place.path("out/capacity.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), facts);
    if let Some(sentence) = facts["answer"]["sentence"].as_str() {
        let page = fs::read_to_string(place.path("out/report.html")).unwrap();
        let page = page.replace("&#x2f;", "/");
        assert!(page.contains(&format!("<p class=\"answer\">{sentence}</p>")), "{sentence}");
        assert!(!page.contains("<script"), "{sentence}");
    }
    // Nothing is left of it, and nothing was written.
    let mut owner = server.connect("shop").unwrap();
    let of_ada = "SELECT count(*)::text FROM pg_stat_activity WHERE usename = 'ada'";
    wait_until("the end of its session", || owner.texts(of_ada).unwrap() == ["0"]);
}

#[test]
fn a_mariadb_at_work_has_head_room() {
    let directory = server_directory();
    let server = mariadb::Server::start(&options(&directory), &Stop::new()).unwrap();
    server.create_database("shop").unwrap();
    let mut owner = server.connect("shop").unwrap();
    owner.run("CREATE USER ada").unwrap();
    owner.run("GRANT SELECT ON shop.* TO ada").unwrap();
    let load = keep_busy(&server.target("shop"), MARIADB_QUERIES);
    let place = Place::new();
    let url = url("mysql", "ada", &server.address("shop"));
    let (begun, before) = (Instant::now(), load.sent());
    let (facts, _) = facts(&place, &["--attach", &url, "--for", "6s", "--every", "0.25s"]);
    let queries = (load.sent() - before) as f64;
    check(&facts, "statements", queries / begun.elapsed().as_secs_f64());
    let missing = facts["observed"]["missing"].to_string();
    assert!(missing.contains("GRANT PROCESS ON *.* TO `ada`"), "{missing}");
}

#[test]
fn an_idle_server_has_no_answer() {
    let (server, _directory) = start_postgres();
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let arguments = ["capacity", "--attach", &url, "--for", "9s", "--every", "0.2s"];
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.starts_with("No answer: the server is idle"), "{said}");
    assert!(said.contains("observe it while it uses more than 3 %"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_restart_in_the_middle_has_no_answer() {
    let (mut server, directory) = start_postgres();
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let arguments = ["capacity", "--attach", &url, "--for", "60s", "--every", "0.2s", "--json"];
    let child = place.start(&arguments);
    let mut owner = server.connect("shop").unwrap();
    let looks = "SELECT (sum(xact_rollback) > 5)::text FROM pg_stat_database";
    wait_until("looks", || owner.texts(looks).unwrap() == ["true"]);
    drop(owner);
    server.restart(&options(&directory), &Stop::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the connection was lost") && said.contains("run it again"), "{said}");
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["refusal"]["reason"], "restarted");
    assert!(facts["answer"].is_null());
}

#[test]
fn a_role_without_rights_is_named_with_the_remedy() {
    let (server, _directory) = start_postgres();
    let _load = keep_busy(&server.target("shop"), POSTGRES_QUERIES);
    let place = Place::new();
    let url = url("postgres", "bob", &server.address("shop"));
    let (facts, _) = facts(&place, &["--attach", &url, "--for", "4s", "--every", "0.25s"]);
    let missing = &facts["observed"]["missing"][0];
    assert_eq!(missing["hides_a_limit"], true, "{facts}");
    assert!(missing["says"].as_str().unwrap().contains("GRANT pg_read_all_stats TO \"bob\""));
    if let Some(notes) = facts["answer"]["notes"].as_array() {
        let notes = Value::from(notes.clone()).to_string();
        assert!(notes.contains("Not seen: the waits of 2 sessions of other users"), "{notes}");
        let answer = &facts["answer"];
        let low = answer["ceiling_interval"]["low"].as_f64().unwrap();
        let served = answer["loads_per_s"]["high"].as_f64().unwrap();
        assert!(low <= served, "the hidden part may end right above the served one: {answer}");
    }
}

#[test]
fn an_interruption_answers_from_what_was_seen() {
    let (server, _directory) = start_postgres();
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let child = place.start(&["capacity", "--attach", &url, "--for", "1h", "--every", "0.1s"]);
    let mut owner = server.connect("shop").unwrap();
    let looks = "SELECT (sum(xact_rollback) > 25)::text FROM pg_stat_database";
    wait_until("looks", || owner.texts(looks).unwrap() == ["true"]);
    let begun = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "it does not wait for the hour");
    let said = text(&output.stderr);
    assert!(said.starts_with("observing for 60 min; Ctrl-C answers"), "{said}");
    assert!(output.status.success(), "{said}");
    assert!(text(&output.stdout).contains("the server is idle"), "{}", text(&output.stdout));
}

#[test]
fn an_earlier_answer_stays_until_another_is_wanted_and_there() {
    let (server, _directory) = start_postgres();
    let place = Place::new();
    let earlier = ["capacity.json", "report.html"].map(|name| place.path("out").join(name));
    fs::create_dir(place.path("out")).unwrap();
    earlier.iter().for_each(|path| fs::write(path, "precious").unwrap());
    let is_there = || earlier.iter().all(|path| fs::read_to_string(path).unwrap() == "precious");
    let url = url("postgres", "ada", &server.address("shop"));
    let observe = ["capacity", "--attach", &url, "--for", "1h", "--every", "0.1s", "--out", "out"];
    let said = place.fails(&observe, 1);
    assert!(said.contains("already holds a result") && said.contains("--force"), "{said}");
    let said = place.fails(&["study", "run", "quick", "--no-limits", "--out", "out"], 1);
    assert!(said.contains("already holds a result") && said.contains("--force"), "{said}");
    assert!(is_there());
    let child = place.start(&[&observe[..], &["--force"]].concat());
    let mut owner = server.connect("shop").unwrap();
    let looks = "SELECT (sum(xact_rollback) > 25)::text FROM pg_stat_database";
    wait_until("looks", || owner.texts(looks).unwrap() == ["true"]);
    assert!(is_there());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept: Value = serde_json::from_str(&fs::read_to_string(&earlier[0]).unwrap()).unwrap();
    assert_eq!(kept["refusal"]["reason"], "idle");
    assert!(!earlier[1].exists(), "a page of another answer");
}

#[test]
fn wrong_use_names_its_remedy() {
    let place = Place::new();
    for (words, status, remedy) in [
        (&[][..], 2, "--attach"),
        (&["--attach", "oracle://a@b/c"], 2, "postgres://"),
        (&["--attach", "postgres://a@127.0.0.1:1/c"], 1, "is it running"),
        (&["--attach", "postgres://a@b/c", "--for", "soon"], 2, "10m"),
        (&["--attach", "postgres://a@b/c", "--for", "1s", "--every", "5s"], 2, "--every"),
        (&["--attach", "postgres://a@b/c", "--for", "24h", "--every", "1ms"], 2, "--every"),
    ] {
        let said = place.fails(&[&["capacity"], words].concat(), status);
        assert!(said.contains(remedy), "{said}");
    }
    assert!(place.names().is_empty());
    let printed = place.run(&["capacity", "--attach", "mysql://a@b/shop", "--read-only-role"]);
    assert!(text(&printed.stdout).contains("GRANT SELECT, SHOW VIEW ON `shop`"));
}

#[test]
fn superusers_are_refused() {
    let (server, _directory) = start_postgres();
    let place = Place::new();
    let address = server.address("shop");
    let url = url("postgres", &address.user, &address);
    let arguments = ["capacity", "--attach", &url, "--for", "2s", "--every", "0.1s"];
    let said = place.fails(&arguments, 1);
    assert!(said.contains("is a superuser"), "{said}");
    let allowed = place.run(&[&arguments[..], &["--allow-superuser"]].concat());
    // Whether the server was idle is a matter of what else runs.
    assert!(text(&allowed.stderr).contains("observing for 2 s"), "{}", text(&allowed.stderr));
}
