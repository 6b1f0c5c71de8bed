//! The command as a process, and the files it is given.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use workahead_engines::address::{Address, Place as At};

/// A directory to run in.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `workahead` here.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command starts")
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the command starts")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // Another build may be tested, as long as it takes.
        let other = std::env::var_os("WORKAHEAD_PROGRAM");
        let program = other.unwrap_or_else(|| env!("CARGO_BIN_EXE_workahead").into());
        let mut command = Command::new(program);
        // Some set it for good; what fails must still say it in one line.
        command.env("RUST_BACKTRACE", "1");
        command.args(arguments).current_dir(self.directory.path());
        command
    }

    /// Runs what must fail: the status, one line on standard error, nothing on standard output.
    pub(crate) fn fails(&self, arguments: &[&str], status: i32) -> String {
        let output = self.run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{arguments:?}: {said}");
        said
    }

    /// Runs what must succeed and print JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A study of cells of milliseconds on a private server, and of hours at the scale `long`.
pub(crate) fn tiny_study(engine: &str, axes: &str, repetitions: u32) -> String {
    format!(
        r#"title = "Tiny"
question = "Does it go on?"
engine = "{engine}"
seed = 7
[workload]
workload = "dbmbench"
query = "utpcc"
rows = 20000
inner_rows = 500
queries = 10
[axes]
{axes}
[method]
repetitions = {repetitions}
warmup = 0
baseline = {{ clients = 1 }}
[scale.long]
workload.queries = 100000000
"#
    )
}

/// A directory for servers, which may run as another user.
pub(crate) fn server_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode).expect("its own directory");
    directory
}

/// The URL of a user on a private server's socket.
pub(crate) fn url(scheme: &str, user: &str, address: &Address) -> String {
    let At::Socket(path) = &address.place else { panic!("private servers have a socket") };
    let parameter = if scheme == "postgres" { "host" } else { "socket" };
    format!("{scheme}://{user}@/{}?{parameter}={}", address.database, path.display())
}

/// Processes with a directory among their arguments, other than the command.
pub(crate) fn processes(of: &Path) -> Vec<u32> {
    let of = of.to_str().expect("a path in UTF-8");
    let numbers = std::fs::read_dir("/proc").expect("proc(5)").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = text(&words);
        words.contains(of) && !words.contains("--data-dir")
    };
    numbers.filter(has).collect()
}

/// Waits until `ready`, at most a minute.
pub(crate) fn wait_until(what: &str, ready: impl FnMut() -> bool) {
    // Servers that are looked at more often aren't idle.
    wait_closely(what, Duration::from_millis(50), ready);
}

/// The same for what does not last long.
pub(crate) fn wait_closely(what: &str, interval: Duration, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(interval);
    }
}

/// Sends the signal of Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    signal(child, "INT");
}

/// Sends a signal by its name without SIG.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.expect("kill").success());
}

/// A table of keys under a name, with the row's number and its text.
pub(crate) fn keyed(key: &str, keys: ArrayRef) -> RecordBatch {
    let rows = keys.len() as i64;
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let texts: StringArray = (0..rows).map(|row| Some(format!("row {row}"))).collect();
    let columns = [(key, keys, true), ("number", numbers, false), ("text", Arc::new(texts), true)];
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

pub(crate) fn write(path: &Path, batch: &RecordBatch, row_group_rows: usize) {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(row_group_rows)).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("Parquet");
    writer.write(batch).expect("Parquet");
    writer.close().expect("Parquet");
}

pub(crate) fn read(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).expect("the file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    reader.build().expect("Parquet").map(|batch| batch.expect("a batch")).collect()
}

/// A generator of 64 bits (xorshift), so that mutants are the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: &str) -> Self {
        let mix = |sum: u64, byte: u8| sum.rotate_left(7) ^ u64::from(byte);
        Self(seed.bytes().fold(0x9e37_79b9_7f4a_7c15, mix))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// CPU time of a process, in ticks of 10 ms.
pub(crate) fn cpu_ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // utime and stime, of which the name in parentheses and its number were cut off.
    let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}
