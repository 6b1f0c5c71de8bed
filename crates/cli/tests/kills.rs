//! SIGKILL at moments drawn over the whole run: nothing is left running, no file has its final name
//! that isn't whole, and the next run works.
//!
//! `WORKAHEAD_KILLS` is how often each command is killed.

mod process;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use process::{
    Place, Random, keyed, names, processes, read, server_directory, text, tiny_study, wait_until,
    write,
};
use serde_json::Value;

const NUMBER: u32 = 6;

fn number() -> u32 {
    let wanted = std::env::var("WORKAHEAD_KILLS").ok();
    wanted.map_or(NUMBER, |text| text.parse().expect("WORKAHEAD_KILLS is a number"))
}

/// Starts the command again and again, and kills it at a moment of its usual time, until it was
/// killed often enough; `check` is called after each. The usual time is that of the second run: the
/// first may have more to do.
fn kill_often(place: &Place, arguments: impl Fn() -> Vec<String>, mut check: impl FnMut(&str)) {
    let mut random = Random::new("kills");
    let mut usual = Duration::ZERO;
    for when in ["the first run", "the second run"] {
        let start = Instant::now();
        let output = place.run(&borrowed(&arguments()));
        assert!(output.status.success(), "{}", text(&output.stderr));
        usual = start.elapsed();
        check(when);
    }
    let mut killed = 0;
    while killed < number() {
        let mut child = place.start(&borrowed(&arguments()));
        let moment = usual.mul_f64(random.below(1_000) as f64 / 1_000.0);
        std::thread::sleep(moment);
        child.kill().unwrap();
        // One that was faster than usual counts as well only if it was killed.
        let ended = child.wait().unwrap();
        killed += u32::from(ended.code().is_none());
        check(&format!("kill {killed}, after {moment:?}"));
    }
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn rows(path: &Path) -> usize {
    read(path).iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn a_join_that_spills() {
    let place = Place::new();
    let table = |rows: i64| keyed("id", Arc::new(Int64Array::from_iter_values(0..rows)));
    write(&place.path("left.parquet"), &table(400_000), 50_000);
    write(&place.path("right.parquet"), &table(600_000), 50_000);
    fs::create_dir(place.path("spill")).unwrap();
    let join = "join --left left.parquet --right right.parquet --on id --memory-limit 40MB \
                --spill-dir spill --out out.parquet";
    let join = || join.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut left_over = 0;
    kill_often(&place, join, |when| {
        let out = place.path("out.parquet");
        if out.exists() {
            assert_eq!(rows(&out), 400_000, "{when}");
            fs::remove_file(out).unwrap();
        }
        // Files that a killed run spilled to have no name.
        assert_eq!(names(&place.path("spill")), [""; 0], "{when}");
        let temporary = place.names().iter().filter(|name| name.contains("tmp")).count();
        assert!(temporary <= 1, "{when}: each run sweeps what the one before left");
        left_over += temporary;
    });
    let said = place.json(&borrowed(&join()));
    assert!(said["spilled_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{said}");
    assert_eq!(place.names(), ["left.parquet", "out.parquet", "right.parquet", "spill"]);
    println!("{left_over} of {} kills left a temporary file", number());
}

#[test]
fn a_study_on_a_private_server() {
    let place = Place::new();
    let study = tiny_study("postgres", "clients = [1, 2]", 2);
    fs::write(place.path("tiny.toml"), study).unwrap();
    let data = server_directory();
    let home = data.path().to_str().unwrap();
    let out = place.path("out");
    let arguments = || {
        // A run that was killed before it had a directory is begun again.
        let words = match out.join("run.json").exists() {
            true => "study resume out",
            false => "study run tiny.toml --out out --force",
        };
        let words = words.split(' ').chain(["--no-limits", "--data-dir", home]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    kill_often(&place, arguments, |when| {
        wait_until("the servers' end", || processes(data.path()).is_empty());
        if let Ok(run) = fs::read(out.join("run.json")) {
            serde_json::from_slice::<Value>(&run).unwrap_or_else(|e| panic!("{when}: {e}"));
        }
        let log = fs::read_to_string(out.join("observations.jsonl")).unwrap_or_default();
        let whole = &log[..log.rfind('\n').unwrap_or(0)];
        for line in whole.lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{when}: {e}"));
        }
        if let Ok(report) = fs::read_to_string(out.join("report.html")) {
            assert!(report.trim_end().ends_with("</html>"), "{when}");
            // Done: the next one begins anew.
            fs::remove_dir_all(&out).unwrap();
        }
    });
    let output = place.run(&borrowed(&arguments()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(out.join("report.html").exists());
    assert_eq!(processes(data.path()), [0; 0]);
}
