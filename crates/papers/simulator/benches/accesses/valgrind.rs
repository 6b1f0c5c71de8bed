//! Time of cachegrind's cache simulation for this program.

use std::process::{Command, Stdio};

/// Seconds of CPU time of the children of this process that have ended, in hundredths.
fn children_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold anything: state is the third field, cutime and cstime are the
    // 16th and 17th (proc(5)).
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / 100.0)
}

/// Seconds of cachegrind for `probes` probes of a stream, named by its option.
fn cachegrind_s(stream: &str, probes: u64, simulation: &str) -> Option<f64> {
    let before = children_s()?;
    let status = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cachegrind-out-file=/dev/null", "--vgdb=no", "-q"])
        .args(["--I1=16384,8,64", "--D1=8192,4,64", "--LL=524288,8,128"])
        .arg(format!("--cache-sim={simulation}"))
        .arg(std::env::current_exe().ok()?)
        .args([stream, &probes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.ok().filter(|status| status.success())?;
    Some(children_s()? - before)
}

/// Seconds of cachegrind's cache simulation alone, without the start; `None` without valgrind.
pub(crate) fn simulation_s(stream: &str, probes: u64) -> Option<f64> {
    let of = |simulation| {
        let whole = cachegrind_s(stream, probes, simulation)?;
        Some(whole - cachegrind_s(stream, 0, simulation)?)
    };
    Some(of("yes")? - of("no")?)
}
