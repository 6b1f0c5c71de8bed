//! A join ends within a second of Ctrl-C, also inside of loops that put nothing out.

mod process;

use std::fs::File;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use process::{Place, interrupt, names, text, write};

/// Begun, but far from done.
const RUNNING: Duration = Duration::from_millis(500);
/// A second is promised; the machines that test are loaded.
const STOP_MAX: Duration = Duration::from_secs(2);
/// 3.6 thousand million candidates, of which none is a match.
const NEVER: &str = "left.number + right.number < 0 AND left.wide = right.wide";

/// All keys are equal.
fn skewed() -> Place {
    let place = Place::new();
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 60_000]));
    let wide = (0..60_000).map(|row| Some(format!("{row:0200}"))).collect::<StringArray>();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..60_000));
    let columns = [("id", same), ("wide", Arc::new(wide) as ArrayRef), ("number", numbers)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&place.path("left.parquet"), &batch, 30_000);
    write(&place.path("right.parquet"), &batch, 30_000);
    std::fs::create_dir(place.path("spill")).unwrap();
    place
}

fn join<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let files = ["join", "--left", "left.parquet", "--right", "right.parquet", "--on", "id"];
    [&files[..], &["--filter", NEVER], more].concat()
}

/// Whether a process has a file in the spill directory open.
fn spills(child: &Child) -> bool {
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let open = open.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    open.into_iter().any(|path| path.to_string_lossy().contains("/spill/"))
}

fn stops(place: &Place, mut child: Child, spilled: bool) {
    std::thread::sleep(RUNNING);
    assert_eq!(spills(&child), spilled);
    assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
    let start = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let time = start.elapsed();
    assert!(time < STOP_MAX, "it went on for {time:?}");
    assert_eq!(text(&output.stderr), "error: interrupted\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(place.names(), ["left.parquet", "right.parquet", "spill"]);
    assert!(names(&place.path("spill")).is_empty());
}

#[test]
fn a_filter_that_passes_nothing_is_stopped() {
    let place = skewed();
    for more in [&[][..], &["--out", "out.parquet"], &["--type", "left-anti"]] {
        stops(&place, place.start(&join(more)), false);
    }
}

/// The partition of the only key is joined by block nested loops.
#[test]
fn so_is_one_that_spills() {
    let place = skewed();
    let limit = ["--memory-limit", "8MB", "--spill-dir", "spill", "--threads", "1"];
    for more in [&[][..], &["--out", "out.csv"]] {
        stops(&place, place.start(&join(&[&limit[..], more].concat())), true);
    }
}

/// From a pipe into which nothing is written.
#[test]
fn so_is_one_that_waits_for_its_input() {
    let place = skewed();
    let fifo = place.path("fifo.csv");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Open for both, so that neither side waits for the other to open it.
    let _writer = File::options().read(true).write(true).open(&fifo).unwrap();
    let words = ["join", "--left", "fifo.csv", "--right", "right.parquet", "--on", "id"];
    let child = place.start(&words);
    std::thread::sleep(RUNNING);
    let start = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < STOP_MAX, "it went on for {:?}", start.elapsed());
    assert_eq!(text(&output.stderr), "error: interrupted\n");
    assert_eq!(output.status.code(), Some(1));
}
