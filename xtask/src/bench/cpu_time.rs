//! CPU time of processes, as the kernel counts it: proc(5), in steps of 10 ms.
//!
//! Steps are cut off from a counter that is exact, so a sum of many differences is exact too.

use anyhow::{Context, Result};

/// `USER_HZ`, which Linux keeps at 100 for programs.
const TICKS_PER_S: f64 = 100.0;
/// The place of `utime` behind the program's name; `stime`, `cutime` and `cstime` follow.
const UTIME: usize = 11;

/// Seconds of all children of this process that were waited for, with theirs.
pub(super) fn of_children() -> Result<f64> {
    seconds("self", UTIME + 2)
}

/// Seconds of a process, with its threads that have ended.
pub(super) fn of_process(id: u32) -> Result<f64> {
    seconds(&id.to_string(), UTIME)
}

fn seconds(process: &str, field: usize) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    pair(&stat, field).with_context(|| format!("{path} is not as proc(5) has it"))
}

/// The sum of a field and the next one: time of the user's, and the system's.
fn pair(stat: &str, field: usize) -> Option<f64> {
    // The program's name may hold anything, a bracket too.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(field);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::succeed;
    use std::process::Command;

    #[test]
    fn both_pairs_are_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 150 50 20 0 1 0 5 0";
        assert_eq!((pair(stat, UTIME), pair(stat, UTIME + 2)), (Some(0.23), Some(2.0)));
        assert_eq!(pair("7", UTIME), None);
    }

    #[test]
    fn time_is_counted_for_children_and_for_running_processes() {
        let before = of_children().unwrap();
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        succeed(Command::new("sh").args(["-c", script])).unwrap();
        assert!(of_children().unwrap() > before);
        assert!(of_process(std::process::id()).is_ok());
        assert!(of_process(u32::MAX).is_err());
    }
}
