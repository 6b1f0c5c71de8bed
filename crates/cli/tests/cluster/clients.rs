//! Clients that end, in any way, while their query runs.

use std::fs;
use std::time::{Duration, Instant};

use crate::process::{Place, cpu_ticks, names, text, wait_until};
use crate::running::{
    Cluster, ENDLESS, URL, alone, answer, data, finish, number, send, table, there, wait_for_work,
};

/// From a client's end to that of its work. More than a second, since the machine may be busy.
const MOST: Duration = Duration::from_secs(3);
/// A worker that has nothing to do takes less CPU time than this in the interval.
const IDLE_TICKS: u64 = 3;
const INTERVAL: Duration = Duration::from_millis(300);

/// Waits until no worker computes.
fn wait_for_rest(workers: &[u32]) {
    let start = Instant::now();
    let all = || workers.iter().map(|id| cpu_ticks(*id)).sum::<u64>();
    loop {
        let before = all();
        std::thread::sleep(INTERVAL);
        if all() - before < IDLE_TICKS {
            return;
        }
        assert!(start.elapsed() < MOST, "the workers compute for nobody");
    }
}

/// Queries that put nothing out for longer than a test takes, each another operator. DataFusion's
/// join without keys isn't among them: it looks up only between batches of its probe side.
fn endless() -> [(&'static str, String); 3] {
    [
        ("a join whose filter drops all", ENDLESS.to_owned()),
        (
            "a join that is aggregated",
            "select count(*) from l a join l b on a.l_tax = b.l_tax join l c on b.l_tax = c.l_tax"
                .to_owned(),
        ),
        (
            "a sort of a join",
            "select a.l_comment from l a join l b on a.l_tax = b.l_tax order by a.l_comment limit 1"
                .to_owned(),
        ),
    ]
}

#[test]
fn the_workers_rest_when_a_client_is_killed_and_answer_the_next() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    for (what, query) in endless() {
        let mut child = place.start(&there(&[&query, "--table", &lines]));
        wait_for_work(&cluster.workers, 40);
        assert!(child.try_wait().unwrap().is_none(), "{what} is over");
        assert!(send("KILL", child.id()));
        child.wait().unwrap();
        println!("{what}");
        wait_for_rest(&cluster.workers);
        let six = there(&["--tpch", "6", "--data", data(), "--out", "there.csv"]);
        assert_eq!(answer(&place, &six).0, alone(&place, 6).0, "after {what}");
    }
}

#[test]
fn a_client_that_is_interrupted_or_out_of_time_ends_its_work_and_says_so_in_one_line() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    for name in ["INT", "TERM"] {
        let words = there(&[ENDLESS, "--table", &lines, "--out", "there.csv"]);
        let child = place.start(&words);
        wait_for_work(&cluster.workers, 20);
        let start = Instant::now();
        assert!(send(name, child.id()));
        let output = finish(child);
        assert!(start.elapsed() < MOST, "{:?}", start.elapsed());
        assert_eq!(text(&output.stderr), "error: interrupted\n", "{name}");
        assert!(!place.path("there.csv").exists());
        wait_for_rest(&cluster.workers);
    }
    let words = ["sql", "--cluster", "url", "--set", "cluster.run=workers", "--timeout", "0.5"];
    let said = place.fails(&[&words[..], &[ENDLESS, "--table", &lines]].concat(), 1);
    assert!(said.contains("longer than 500ms: raise --timeout"), "{said}");
    wait_for_rest(&cluster.workers);
}

#[test]
fn a_client_that_fails_by_itself_says_so_in_one_line() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    // Lists are not written to CSV, which the first batch shows while others are on their way.
    for _ in 0..8 {
        let words = ["select [l_tax], l_comment from l", "--table", &lines, "--out", "there.csv"];
        let said = place.fails(&there(&words), 1);
        assert!(said.contains("not supported in CSV"), "{said}");
    }
    wait_for_rest(&cluster.workers);
}

#[test]
fn a_reader_that_leaves_ends_the_query() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let pairs = "select a.l_comment, b.l_comment as other from l a join l b on a.l_tax = b.l_tax";
    let mut child = place.start(&there(&[pairs, "--table", &lines, "--format", "csv"]));
    let mut output = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut output, &mut [0; 1000]).unwrap();
    drop(output);
    let said = text(&finish(child).stderr);
    assert!(said.lines().count() <= 1, "{said}");
    wait_for_rest(&cluster.workers);
}

#[test]
fn clients_that_are_killed_leave_no_spill_files_and_no_memory_reserved() {
    let place = Place::new();
    fs::create_dir(place.path("spill")).unwrap();
    let memory = ["--memory-limit", "128MB", "--spill-dir", "spill"];
    let words = [&["--workers", "2", "--threads", "1"], &memory[..]].concat();
    let cluster = Cluster::start(&place, &words);
    let lines = table("l", "lineitem");
    let sort = "select a.l_comment, b.l_comment as other from l a join l b on a.l_suppkey = \
                b.l_suppkey order by other, a.l_comment";
    // With one build side for all: else a partition's sort may leave no memory for another's.
    let threshold = "datafusion.optimizer.hash_join_single_partition_threshold";
    let thresholds = [format!("{threshold}=67108864"), format!("{threshold}_rows=67108864")];
    let to_all = ["--set", &thresholds[0], "--set", &thresholds[1]];
    let spilled = || {
        let folder = place.path("spill").join(&names(&place.path("spill"))[0]);
        let workers = names(&folder).into_iter().map(|name| folder.join(name));
        let inner = workers.filter(|folder| folder.is_dir()).flat_map(|folder| {
            let inner = names(&folder).into_iter().map(move |name| folder.join(name));
            inner.collect::<Vec<_>>()
        });
        inner.filter(|folder| folder.is_dir()).map(|folder| names(&folder).len()).sum::<usize>()
    };
    let states = |name: &str| {
        let shown = place.json(&["cluster", "status", URL]);
        let workers = shown["workers"].as_array().unwrap().clone();
        workers.iter().map(|worker| number(worker, name)).collect::<Vec<_>>()
    };
    assert_eq!(states("memory_limit_bytes"), [128_000_000; 2]);
    for _ in 0..3 {
        let words = [&[sort, "--table", &lines][..], &to_all].concat();
        let mut child = place.start(&there(&words));
        wait_until("files", || spilled() > 0);
        wait_until("bytes in them", || states("spilled_bytes").iter().any(|bytes| *bytes > 0));
        assert!(states("tasks").iter().all(|tasks| *tasks > 0));
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for_rest(&cluster.workers);
        wait_until("the files to go", || spilled() == 0);
        wait_until("the tasks to go", || states("tasks") == [0; 2]);
        assert_eq!([states("spilled_bytes"), states("memory_reserved_bytes")], [[0; 2]; 2]);
        assert!(states("memory_peak_bytes").iter().all(|peak| *peak > 0));
    }
    let nine = there(&["--tpch", "9", "--data", data(), "--out", "there.csv"]);
    assert_eq!(answer(&place, &nine).0, alone(&place, 9).0);
}
