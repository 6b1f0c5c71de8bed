//! The clients that come with the servers, run as programs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run came to.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    /// Transactions a second.
    pub(crate) per_s: f64,
    /// CPU seconds of the client for a transaction.
    pub(crate) cpu_s: f64,
}

/// A program and what it is to do.
pub(crate) struct Packaged<'a> {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    /// Its words, given clients and seconds.
    pub(crate) words: Box<dyn Fn(u32, u64) -> Vec<String> + 'a>,
    /// The count of transactions and their rate in what it prints.
    pub(crate) read: fn(&str) -> Option<(f64, f64)>,
}

impl Packaged<'_> {
    pub(crate) fn run(&self, clients: u32, seconds: u64) -> Ran {
        let before = children_cpu_s();
        let said = said_by(&self.program, &(self.words)(clients, seconds));
        let cpu_s = children_cpu_s() - before;
        let (count, per_s) =
            (self.read)(&said).unwrap_or_else(|| panic!("{} said:\n{said}", self.name));
        Ran { per_s, cpu_s: cpu_s / count }
    }
}

/// Runs a program to its end; what it printed.
pub(crate) fn said_by(program: &PathBuf, words: &[String]) -> String {
    let mut command = Command::new(program);
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first number behind these words.
pub(crate) fn number_after(said: &str, words: &str) -> Option<f64> {
    let rest = said[said.find(words)? + words.len()..].trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// CPU time of the children that have been waited for, in ticks of a hundredth of a second (fields
/// 16 and 17, proc_pid_stat(5)); a server that still runs is not among them.
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc is mounted");
    let behind_name = stat.rsplit_once(") ").expect("a name in parentheses").1;
    let fields = behind_name.split_whitespace().skip(13).take(2);
    fields.map(|ticks| ticks.parse::<f64>().expect("a number of ticks")).sum::<f64>() / 100.0
}
