//! `workahead capture` and `workahead compare` as processes, on private servers under a load of our
//! own. Planted causes take many times as long; no test expects a machine on which nothing else
//! runs, and other programs may have a share too.

mod observed;
mod process;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use observed::{Load, options};
use process::{Place, interrupt, server_directory, text, url, wait_until};
use serde_json::Value;
use tempfile::TempDir;
use workahead_engines::attach::Target;
use workahead_engines::connector::Connector;
use workahead_engines::{mariadb, postgres};
use workahead_study::capture::{Capture, FORMAT, Figures, WINDOWS_MIN, WORKING, Window};
use workahead_study::engine::Stop;
use workahead_study::testing::{self, Mock};
use workahead_workloads::session::Session;

/// A server with a table of orders and an index, a role that sees what others do and one that does
/// not.
fn start_postgres() -> (postgres::Server, TempDir) {
    let (server, directory) = observed::start_postgres();
    let mut owner = server.connect("shop").unwrap();
    for text in [
        "CREATE TABLE orders AS SELECT i AS id, i % 500 AS customer, i AS total \
         FROM generate_series(1, 50000) AS i",
        "CREATE INDEX orders_by_customer ON orders (customer)",
        "GRANT SELECT ON orders TO ada",
        "CREATE TABLE counters AS SELECT i AS id, 0 AS value FROM generate_series(1, 4) AS i",
        "VACUUM ANALYZE",
    ] {
        owner.run(text).unwrap();
    }
    (server, directory)
}

fn start_mariadb() -> (mariadb::Server, TempDir) {
    let directory = server_directory();
    let server = mariadb::Server::start(&options(&directory), &Stop::new()).unwrap();
    server.create_database("shop").unwrap();
    let mut owner = server.connect("shop").unwrap();
    for text in [
        "CREATE USER ada",
        "GRANT SELECT ON shop.* TO ada",
        "GRANT PROCESS ON *.* TO ada",
        "CREATE USER bob",
        "GRANT SELECT ON shop.* TO bob",
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, total INT, \
         INDEX orders_by_customer (customer)) \
         AS SELECT seq AS id, seq % 500 AS customer, seq AS total FROM seq_1_to_50000",
    ] {
        owner.run(text).unwrap();
    }
    (server, directory)
}

/// Clients that send texts one after the other, and leave the processors to other tests between.
fn keep_busy(target: &Target, clients: usize, texts: &'static [&'static str]) -> Load {
    Load::begin(target, clients, texts, |_, _| Duration::from_millis(3))
}

const READS: &[&str] = &["SELECT sum(total) FROM orders WHERE customer = 17"];

/// A capture that can be compared: a machine that is busy with others is late for most windows, or
/// nothing ends in them.
fn comparable(place: &Place, url: &str, out: &str) -> Value {
    for _ in 0..5 {
        let answer = capture(place, url, out);
        let kept = Capture::load(&place.path(out)).expect("the capture");
        if kept.windows.iter().filter(|window| window.ended > 0.0).count() >= WINDOWS_MIN {
            return answer;
        }
        fs::remove_dir_all(place.path(out)).expect("the capture");
    }
    panic!("the machine was too busy, five times")
}

fn capture(place: &Place, url: &str, out: &str) -> Value {
    let arguments = ["capture", "--attach", url, "--for", "12s", "--out", out, "--json"];
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The first cause of two captures.
fn first(answer: &Value) -> &Value {
    assert_eq!(answer["is_shown"], true, "{answer:#}");
    &answer["causes"][0]
}

/// The first that is not of other programs, such as tests that run beside this one.
fn first_of_server(answer: &Value) -> &Value {
    first(answer);
    let causes = answer["causes"].as_array().expect("causes");
    let is_others = |cause: &&Value| {
        says(cause).contains("other programs") || says(cause).starts_with("the host of")
    };
    causes.iter().find(|cause| !is_others(cause)).expect("one that is left over")
}

fn says(cause: &Value) -> &str {
    cause["says"].as_str().expect("a text")
}

/// A capture of a server that never was.
fn made(software: &str, wait_ms: f64) -> Capture {
    let window = |number: u32| {
        let ended = 1000.0 + f64::from(number % 3);
        let sessions = [(WORKING, 0.1), ("log", wait_ms * ended / 1e4)];
        let sessions = sessions.map(|(name, value)| (name.to_owned(), value));
        Window { seconds: 10.0, ended, sessions: sessions.into(), counts: Figures::new() }
    };
    Capture {
        format: FORMAT,
        software: software.to_owned(),
        counted: "transactions".to_owned(),
        windows: (0..12).map(window).collect(),
        ..Capture::default()
    }
}

#[test]
fn a_dropped_index_of_postgres_is_the_first_cause() {
    let (server, _directory) = start_postgres();
    let load = keep_busy(&server.target("shop"), 3, READS);
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let answer = comparable(&place, &url, "before");
    // A busy machine is late for some.
    assert!(answer["ended"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["windows"].as_u64().unwrap() <= 12, "{answer}");
    assert!(answer["settings"].as_u64().unwrap() > 200, "{answer}");
    let mode = fs::metadata(place.path("before")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others may not enter it");
    let mut owner = server.connect("shop").unwrap();
    owner.run("DROP INDEX orders_by_customer").unwrap();
    comparable(&place, &url, "after");
    let answer = place.json(&["compare", "before", "after"]);
    let cause = first_of_server(&answer);
    let gone = "the index public.orders_by_customer of public.orders is gone";
    assert_eq!(says(cause), gone, "{answer:#}");
    assert_eq!(cause["basis"], "shown");
    let evidence = cause["evidence"][0].as_str().unwrap();
    assert!(evidence.starts_with("sequential scans of public.orders"), "{evidence}");
    let page = fs::read_to_string(place.path("after/compare.html")).unwrap();
    assert!(page.contains("is gone") && !page.contains("<script"), "{page}");
    // The same in words, on a page elsewhere; and the way back is a gain.
    let output = place.run(&["compare", "after", "before", "--html", "back.html"]);
    let said = text(&output.stdout);
    assert!(said.contains("the index public.orders_by_customer of public.orders is new"), "{said}");
    assert!(said.contains("unexplained") && place.path("back.html").exists(), "{said}");
    drop(load);
    // Nothing is left of it.
    let of_ada = "SELECT count(*)::text FROM pg_stat_activity WHERE usename = 'ada'";
    wait_until("the end of its sessions", || owner.texts(of_ada).unwrap() == ["0"]);
}

#[test]
fn a_loop_that_holds_a_lock_is_the_first_cause() {
    const UPDATES: &[&str] = &["UPDATE counters SET value = value + 1 WHERE id = 1"];
    const HOLDS: &[&str] = &[
        "SET application_name TO 'nightly'",
        "BEGIN",
        "LOCK TABLE counters IN SHARE ROW EXCLUSIVE MODE",
        "SELECT pg_sleep(0.15)",
        "COMMIT",
    ];
    let (server, _directory) = start_postgres();
    let _load = keep_busy(&server.target("shop"), 2, UPDATES);
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    comparable(&place, &url, "before");
    let _background = keep_busy(&server.target("shop"), 1, HOLDS);
    comparable(&place, &url, "after");
    let answer = place.json(&["compare", "before", "after"]);
    let cause = first_of_server(&answer);
    assert!(says(cause).starts_with("locks held by nightly of workahead"), "{answer:#}");
    assert!(says(cause).contains("pg_sleep(?)"), "values are not kept: {answer:#}");
    assert!(cause["share"].as_f64().unwrap() > 0.3, "{answer:#}");
}

/// A function that a statement of somebody else's reaches is run by a server that plans it.
#[test]
fn statements_of_strangers_are_not_planned() {
    let (server, directory) = start_postgres();
    let mut owner = server.connect("shop").unwrap();
    for text in [
        "CREATE ROLE eve LOGIN",
        "CREATE SCHEMA evil AUTHORIZATION eve",
        "GRANT CREATE ON SCHEMA public TO eve",
        "CREATE SCHEMA app",
        "CREATE TABLE app.prices (x int)",
        "SET search_path TO app",
    ] {
        owner.run(text).unwrap();
    }
    let mut address = server.address("shop").clone();
    address.user = "eve".to_owned();
    let mut eve = server.target("shop");
    eve.address = address;
    let mut eve = eve.open().unwrap();
    for text in [
        "CREATE FUNCTION evil.f() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
           IF current_user <> 'eve' THEN RAISE LOG 'stolen by %', current_user; END IF; \
           RETURN 1; END $$",
        "CREATE VIEW evil.v AS SELECT evil.f() AS x",
        "GRANT USAGE ON SCHEMA evil TO PUBLIC",
        "GRANT SELECT ON evil.v TO PUBLIC",
        // In the way of a trusted user's name.
        "CREATE VIEW public.prices AS SELECT evil.f() AS x",
        "GRANT SELECT ON public.prices TO PUBLIC",
        // The last one is shown as long as she is there.
        "SELECT x FROM evil.v",
    ] {
        eve.run(text).unwrap();
    }
    owner.run("SELECT x FROM prices").unwrap();
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let is_stolen = || {
        let log = fs::read(directory.path().join("server/log")).unwrap();
        String::from_utf8_lossy(&log).contains("stolen by ada")
    };
    let answer = capture(&place, &url, "out");
    assert!(answer["missing"].to_string().contains("plans of statements of eve"), "{answer}");
    assert!(!is_stolen());
    // Who trusts her has the plan, and what comes with it.
    let output = place.run(&[
        "capture",
        "--attach",
        &url,
        "--for",
        "12s",
        "--out",
        "with",
        "--plans-of",
        "eve",
    ]);
    assert!(output.status.success() && is_stolen(), "{}", text(&output.stderr));
}

#[test]
fn a_dropped_index_of_mariadb_is_the_first_cause() {
    let (server, _directory) = start_mariadb();
    let _load = keep_busy(&server.target("shop"), 3, READS);
    let place = Place::new();
    let url = url("mysql", "ada", &server.address("shop"));
    let answer = comparable(&place, &url, "before");
    assert!(answer["indexes"].as_u64().unwrap() >= 2, "{answer}");
    server.connect("shop").unwrap().run("DROP INDEX orders_by_customer ON orders").unwrap();
    comparable(&place, &url, "after");
    let answer = place.json(&["compare", "before", "after"]);
    let gone = "the index shop.orders.orders_by_customer of shop.orders is gone";
    assert_eq!(says(first_of_server(&answer)), gone, "{answer:#}");
}

/// Whatever else ran on the machine meanwhile, nothing of the server is blamed for it.
#[test]
fn the_same_server_twice_names_nothing_of_the_server() {
    let (server, _directory) = start_postgres();
    let _load = keep_busy(&server.target("shop"), 1, READS);
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    comparable(&place, &url, "before");
    comparable(&place, &url, "after");
    let answer = place.json(&["compare", "before", "after"]);
    if answer["is_shown"] == false {
        assert_eq!(answer["causes"], Value::Array(Vec::new()), "{answer:#}");
        assert!(answer["sentence"].as_str().unwrap().starts_with("No difference is shown"));
    }
    for cause in answer["causes"].as_array().unwrap() {
        for wrong in ["index", "setting", "table", "plan", "held by", "work_mem"] {
            assert!(!says(cause).contains(wrong), "{answer:#}");
        }
    }
    assert_eq!(answer["changed"], Value::Array(Vec::new()), "{answer:#}");
}

#[test]
fn a_restart_keeps_what_was_seen_and_says_so() {
    let (mut server, directory) = start_postgres();
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    let arguments = ["capture", "--attach", &url, "--for", "12m", "--out", "out"];
    let child = place.start(&arguments);
    let mut owner = server.connect("shop").unwrap();
    let at_work = "SELECT 1::text FROM pg_stat_activity WHERE usename = 'ada' \
                   AND state = 'idle in transaction'";
    wait_until("its looks", || !owner.texts(at_work).unwrap().is_empty());
    drop(owner);
    server.restart(&options(&directory), &Stop::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // It may still be reading the settings.
    let lost = ["nothing was captured: the connection was lost", "the server is gone"];
    assert!(lost.iter().any(|words| said.contains(words)), "{said}");
    assert!(!place.path("out/capture.json").exists());
}

#[test]
fn an_interruption_keeps_what_was_seen() {
    let (server, _directory) = start_postgres();
    let load = keep_busy(&server.target("shop"), 1, READS);
    let place = Place::new();
    let url = url("postgres", "ada", &server.address("shop"));
    // Windows of a second, of which some end.
    let child = place.start(&["capture", "--attach", &url, "--for", "12s", "--out", "out"]);
    let before = load.sent();
    let mut owner = server.connect("shop").unwrap();
    let transactions = "SELECT (count(*) FILTER (WHERE xact_rollback >= 4) > 0)::text \
                        FROM pg_stat_database WHERE datname = 'shop'";
    wait_until("windows", || owner.texts(transactions).unwrap() == ["true"]);
    assert!(load.sent() > before);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = Capture::load(&place.path("out")).unwrap();
    assert!((1..12).contains(&kept.windows.len()), "{}", kept.windows.len());
    assert_eq!(kept.lost, None);
}

#[test]
fn a_role_without_rights_is_named_with_the_remedy() {
    let (server, _directory) = start_postgres();
    let _load = keep_busy(&server.target("shop"), 2, READS);
    let (mariadb, _mariadb_directory) = start_mariadb();
    let _other = keep_busy(&mariadb.target("shop"), 2, READS);
    let place = Place::new();
    let bob = url("postgres", "bob", &server.address("shop"));
    let answer = capture(&place, &bob, "bob");
    let missing = answer["missing"].to_string();
    assert!(missing.contains("GRANT pg_read_all_stats TO \\\"bob\\\""), "{missing}");
    assert!(missing.contains("CREATE EXTENSION pg_stat_statements"), "{missing}");
    let bob = url("mysql", "bob", &mariadb.address("shop"));
    let answer = capture(&place, &bob, "bob-2");
    let missing = answer["missing"].to_string();
    assert!(missing.contains("GRANT PROCESS ON *.* TO `bob`"), "{missing}");
    assert!(missing.contains("performance_schema"), "{missing}");
    // Another product is another server.
    let said = place.fails(&["compare", "bob", "bob-2"], 1);
    assert!(said.contains("one is of postgres and the other of mariadb"), "{said}");
}

#[test]
fn wrong_input_is_one_line() {
    let place = Place::new();
    for (name, software, wait_ms) in
        [("one", "postgres", 1.0), ("other", "postgres", 9.0), ("mariadb", "mariadb", 1.0)]
    {
        fs::create_dir(place.path(name)).unwrap();
        made(software, wait_ms).save(&place.path(name)).unwrap();
    }
    let answer = place.json(&["compare", "one", "other"]);
    assert_eq!(says(first(&answer)), "waiting for the log", "{answer:#}");
    fs::create_dir(place.path("result")).unwrap();
    let study = "title = \"T\"\nquestion = \"?\"\nengine = \"mock\"\nworkload = { rows = 10 }\n\
                 [axes]\nsize = [\"q1\"]\n[method]\nrepetitions = 3\n";
    testing::results(&place.path("result"), study, &mut Mock::new());
    for (arguments, remedy) in [
        (["compare", "one", "result"], "compare two captures or two results"),
        (["compare", "one", "nowhere"], "nowhere holds neither a capture nor a result"),
        (["compare", "one", "mariadb"], "capture the same server twice"),
    ] {
        let said = place.fails(&arguments, 1);
        assert!(said.contains(remedy), "{said}");
    }
    damage(&place, &place.path("other/capture.json"));
    place.fails(&["compare", "one"], 2);
    for (words, status, remedy) in [
        (&["--attach", "postgres://a@b/c"][..], 2, "--out"),
        (&["--attach", "oracle://a@b/c", "--out", "x"], 2, "postgres://"),
        (&["--attach", "postgres://a@b/c", "--out", "x", "--for", "3s"], 2, "too short"),
        (&["--attach", "postgres://a@127.0.0.1:1/c", "--out", "x"], 1, "is it running"),
    ] {
        let said = place.fails(&[&["capture"], words].concat(), status);
        assert!(said.contains(remedy), "{said}");
    }
    assert!(!place.path("x").exists(), "nothing is made for a server that is not there");
}

/// Files of somebody else: cut off, too large, figures that nothing counts, a pipe, a link.
fn damage(place: &Place, file: &Path) {
    let whole = fs::read_to_string(file).unwrap();
    for (damaged, says) in [
        (whole[..whole.len() / 3].to_owned(), "it is damaged, capture it anew"),
        (whole.replacen("\"seconds\": 10.0", "\"seconds\": -1", 1), "which nothing counts"),
        (whole.replacen("\"ended\": 1000.0", "\"ended\": 1e999", 1), "capture it anew"),
        (whole.replacen("\"format\": 1", "\"format\": 2", 1), "format 2"),
        ("[".repeat(1 << 20), "capture it anew"),
    ] {
        fs::write(file, damaged).unwrap();
        let said = place.fails(&["compare", "one", "other"], 1);
        assert!(said.contains(says), "{said}");
    }
    // A title that steers a terminal, and one that is a page.
    let mut hostile = made("postgres", 9.0);
    let text = "a\u{1b}]0;b\u{7}<script>alert(1)</script>";
    hostile.facts.insert(text.to_owned(), text.to_owned());
    hostile.missing.push(text.to_owned());
    hostile.save(&place.path("other")).unwrap();
    let output = place.run(&["compare", "one", "other"]);
    let said = process::text(&output.stdout);
    assert!(output.status.success() && !said.contains('\u{1b}'), "{said}");
    let page = fs::read_to_string(place.path("other/compare.html")).unwrap();
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    fs::remove_file(file).unwrap();
    let status = std::process::Command::new("mkfifo").arg(file).status().unwrap();
    assert!(status.success());
    let said = place.fails(&["compare", "one", "other"], 1);
    assert!(said.contains("not a regular file"), "{said}");
}

#[test]
fn results_have_causes_as_captures_do() {
    let study = "title = \"T\"\nquestion = \"?\"\nengine = \"mock\"\n\
                 workload = { rows = 1000, speed = 1.0 }\n[axes]\nsize = [\"q1\"]\n\
                 [method]\nrepetitions = 5\n";
    let place = Place::new();
    for (name, study) in
        [("before", study.to_owned()), ("after", study.replace("speed = 1.0", "speed = 0.25"))]
    {
        fs::create_dir(place.path(name)).unwrap();
        testing::results(&place.path(name), &study, &mut Mock::new());
    }
    let answer = place.json(&["compare", "before", "after"]);
    assert_eq!(answer["paired"], false);
    let causes = &answer["causes"];
    assert_eq!(causes["is_shown"], true, "{answer:#}");
    let ratio = causes["ratio"].as_f64().unwrap();
    assert!((ratio / 4.0 - 1.0).abs() < 0.1, "{causes:#}");
    let last = causes["causes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["basis"], "unexplained");
    let page = fs::read_to_string(place.path("after/compare.html")).unwrap();
    assert!(page.contains("Causes, by their share of the difference"), "{page}");
}
