//! Runs of the command on files that lie, and what such a run may not do.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

use crate::process::{Place, cpu_ticks, keyed, text, write};

const MEMORY: [&str; 2] = ["--memory-limit", "200MB"];
/// The limit, a tenth of it, and the program with its threads.
const RESIDENT_KB_MAX: u64 = (220 + 32) * 1024;

pub(crate) fn table(rows: i64) -> RecordBatch {
    keyed("id", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row * 7 % 1_000))))
}

pub(crate) fn place() -> Place {
    let place = Place::new();
    write(&place.path("right.parquet"), &table(500), 100);
    place
}

pub(crate) fn arrow_file(path: &Path, batch: &RecordBatch, codec: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

pub(crate) fn arrow_stream(path: &Path, batch: &RecordBatch, codec: Option<CompressionType>) {
    arrow_batches(path, [batch.clone()].into_iter(), codec);
}

/// A stream of several batches.
pub(crate) fn arrow_batches(
    path: &Path,
    batches: impl Iterator<Item = RecordBatch>,
    codec: Option<CompressionType>,
) {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut batches = batches.peekable();
    let schema = batches.peek().unwrap().schema();
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
    batches.for_each(|batch| writer.write(&batch).unwrap());
    writer.finish().unwrap();
}

pub(crate) fn csv(path: &Path, rows: i64) {
    let lines = (0..rows).map(|row| format!("{},{row},\"row \"\"{row}\"\"\"\n", row * 7 % 1_000));
    fs::write(path, format!("id,number,text\n{}", lines.collect::<String>())).unwrap();
}

pub(crate) fn join<'a>(left: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let usual = ["join", "--left", left, "--right", "right.parquet", "--on", "id"];
    [&usual[..], &MEMORY, more].concat()
}

/// How a run ended.
pub(crate) struct RunEnd {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
    /// The most memory that it was seen to hold.
    pub(crate) resident_kb: u64,
    /// Its time, or its processor time where others had the processors.
    pub(crate) took: Duration,
}

/// Runs the command, at most a minute.
pub(crate) fn run(place: &Place, arguments: &[&str]) -> RunEnd {
    let start = Instant::now();
    let mut child =
        place.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).unwrap();
        text(&said)
    });
    let about = format!("/proc/{}/status", child.id());
    let (mut resident_kb, mut ticks) = (0, 0);
    let status = loop {
        let said = fs::read_to_string(&about).unwrap_or_default();
        let now = said.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = now.and_then(|text| text.split_whitespace().next()?.parse().ok());
        resident_kb = now.unwrap_or(0).max(resident_kb);
        ticks = cpu_ticks(child.id()).max(ticks);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_micros(500));
    };
    let took = start.elapsed().min(Duration::from_millis(10 * ticks));
    RunEnd { status, said: said.join().unwrap(), resident_kb, took }
}

/// Runs the command on what may be damaged: it succeeds, or says why not in one line, within the
/// memory limit and ten seconds.
pub(crate) fn ends_well(place: &Place, arguments: &[&str], what: &str) -> Option<i32> {
    let RunEnd { status, said, resident_kb, took } = run(place, arguments);
    assert_eq!(status.signal(), None, "{what}: {said}");
    let code = status.code();
    assert!(matches!(code, Some(0..=2)), "{what}: {code:?} {said}");
    assert!(resident_kb < RESIDENT_KB_MAX, "{what}: {resident_kb} KiB resident");
    assert!(took < Duration::from_secs(10), "{what}: {took:?}");
    let lines = said.lines().count();
    assert_eq!(lines, usize::from(code != Some(0)), "{what}: {said}");
    assert!(said.len() < 10_000, "{what}: {} bytes of an error", said.len());
    code
}
