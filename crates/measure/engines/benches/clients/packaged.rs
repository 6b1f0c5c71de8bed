//! The clients that come with the servers, run as programs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The result of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunResult {
    /// Transactions a second.
    pub(crate) per_s: f64,
    /// CPU seconds of the client for a transaction.
    pub(crate) cpu_s: f64,
}

/// A packaged client and its arguments.
pub(crate) struct PackagedClient<'a> {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    /// Its arguments, for clients and seconds.
    pub(crate) arguments: Box<dyn Fn(u32, u64) -> Vec<String> + 'a>,
    /// Reads the count of transactions and their rate from its output.
    pub(crate) read: fn(&str) -> Option<(f64, f64)>,
}

impl PackagedClient<'_> {
    pub(crate) fn run(&self, clients: u32, seconds: u64) -> RunResult {
        let before = children_cpu_s();
        let output = output_of(&self.program, &(self.arguments)(clients, seconds));
        let cpu_s = children_cpu_s() - before;
        let (count, per_s) =
            (self.read)(&output).unwrap_or_else(|| panic!("{} output:\n{output}", self.name));
        RunResult { per_s, cpu_s: cpu_s / count }
    }
}

/// The output of a program.
pub(crate) fn output_of(program: &PathBuf, arguments: &[String]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first number after `label`.
pub(crate) fn number_after(output: &str, arguments: &str) -> Option<f64> {
    let rest = output[output.find(arguments)? + arguments.len()..].trim_start();
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
