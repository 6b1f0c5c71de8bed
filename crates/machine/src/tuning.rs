//! How the machine is set, in words: what an upgrade or a change of configuration may have turned,
//! and no figure shows.
//!
//! Every fact is a file of `/proc` or `/sys` (proc(5), sysfs in the kernel's documentation); one
//! that can't be read has none.

use std::collections::BTreeMap;

use crate::machine::Machine;
use crate::process::{Allowance, stat_fields};
use crate::sysroot::{Sysroot, field};

/// Files that hold one fact each, as they are.
const FILES: [(&str, &str); 17] = [
    ("kernel", "proc/sys/kernel/osrelease"),
    ("kernel build", "proc/sys/kernel/version"),
    ("isolated CPUs", "sys/devices/system/cpu/isolated"),
    ("transparent huge pages", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("transparent huge pages, defragmentation", "sys/kernel/mm/transparent_hugepage/defrag"),
    ("reserved huge pages", "proc/sys/vm/nr_hugepages"),
    ("swappiness", "proc/sys/vm/swappiness"),
    ("zone reclaim", "proc/sys/vm/zone_reclaim_mode"),
    ("dirty ratio", "proc/sys/vm/dirty_ratio"),
    ("dirty background ratio", "proc/sys/vm/dirty_background_ratio"),
    ("NUMA balancing", "proc/sys/kernel/numa_balancing"),
    ("automatic groups of the scheduler", "proc/sys/kernel/sched_autogroup_enabled"),
    ("SMT", "sys/devices/system/cpu/smt/control"),
    ("frequency driver", "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("frequency governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("maximum frequency, kHz", "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"),
    ("clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
];

/// By name, of the machine and, where it is given, of a server's process there.
#[must_use]
pub fn of(root: &Sysroot, pid: Option<u32>) -> BTreeMap<String, String> {
    let file = |(name, path): &(&str, &str)| Some(((*name).to_owned(), root.text(path)?));
    let mut facts: BTreeMap<String, String> = FILES.iter().filter_map(file).collect();
    let mut say = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    say("kernel's preemption", preemption(root));
    let machine = Machine::read(root);
    say("processor", machine.processor);
    say("CPUs online", Some(machine.cpus.online.len().to_string()));
    say("memory, GiB", machine.memory.total_bytes.map(|bytes| bytes.div_ceil(1 << 30).to_string()));
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    say("microcode", field(&cpuinfo, "microcode").map(str::to_owned));
    let weakness = |name: String| {
        let state = root.text(&format!("sys/devices/system/cpu/vulnerabilities/{name}"))?;
        Some((format!("mitigation of {name}"), state))
    };
    facts.extend(
        root.names("sys/devices/system/cpu/vulnerabilities").into_iter().filter_map(weakness),
    );
    let scheduler = |name: String| {
        let text = root.text(&format!("sys/block/{name}/queue/scheduler"))?;
        Some((format!("I/O scheduler of {name}"), chosen(&text).unwrap_or(text)))
    };
    let is_disk = |name: &String| !["loop", "ram"].iter().any(|kind| name.starts_with(kind));
    let disks = root.names("sys/block").into_iter().filter(is_disk);
    facts.extend(disks.filter_map(scheduler));
    facts.extend(pid.map(|pid| of_process(root, pid)).into_iter().flatten());
    facts
}

/// The settings of a server's process.
fn of_process(root: &Sysroot, pid: u32) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(allowance) = Allowance::of(root, pid) {
        facts.push(("server's CPUs".to_owned(), allowance.cpus.to_string()));
        let quota = allowance.quota.map_or("none".to_owned(), |quota| format!("{quota:.2} CPUs"));
        facts.push(("server's CPU quota".to_owned(), quota));
    }
    let status = root.text(&format!("proc/{pid}/status")).unwrap_or_default();
    if let Some(huge) = field(&status, "HugetlbPages") {
        facts.push(("server's reserved huge pages".to_owned(), huge.to_owned()));
    }
    if let Some(thp) = field(&status, "THP_enabled") {
        facts.push(("server may have transparent huge pages".to_owned(), thp.to_owned()));
    }
    // nice(2) is the 19th field, counted from 1.
    let stat = root.text(&format!("proc/{pid}/stat")).unwrap_or_default();
    let nice = stat_fields(&stat).and_then(|fields| Some((*fields.get(16)?).to_owned()));
    facts.extend(nice.map(|nice| ("server's nice value".to_owned(), nice)));
    facts
}

/// `none`, `voluntary`, `full` or `lazy`: what a kernel chose that can choose as it runs, else what
/// it was built with (kernel/sched/debug.c; Documentation/admin-guide, `preempt=`).
fn preemption(root: &Sysroot) -> Option<String> {
    if let Some(choice) = root.text("sys/kernel/debug/sched/preempt") {
        return choice.split_once('(')?.1.split_once(')').map(|(one, _)| one.to_owned());
    }
    let command_line = root.text("proc/cmdline").unwrap_or_default();
    let given =
        command_line.split_ascii_whitespace().find_map(|word| word.strip_prefix("preempt="));
    let build = root.text("proc/sys/kernel/version")?;
    let of_build = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"]
        .into_iter()
        .find(|kind| build.split_ascii_whitespace().any(|word| word == *kind));
    Some(match (given, of_build) {
        (Some(given), _) => given.to_owned(),
        (None, Some(kind)) => format!("{kind} of the build"),
        (None, None) => "none or voluntary, of the build".to_owned(),
    })
}

/// `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_described_machine() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Tue\n");
        write("proc/sys/vm/nr_hugepages", "512\n");
        write("sys/block/vda/queue/scheduler", "[none] mq-deadline\n");
        write("sys/block/loop0/queue/scheduler", "[none]\n");
        write("sys/devices/system/cpu/vulnerabilities/retbleed", "Vulnerable\n");
        write("proc/7/status", "Cpus_allowed_list:\t0\nHugetlbPages:\t  2048 kB\n");
        write("proc/7/stat", "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 -5 1 0 7 0 0\n");
        let root = Sysroot::at(directory.path()).unwrap();
        let facts = of(&root, Some(7));
        for (name, value) in [
            ("kernel's preemption", "PREEMPT_DYNAMIC of the build"),
            ("reserved huge pages", "512"),
            ("I/O scheduler of vda", "none"),
            ("mitigation of retbleed", "Vulnerable"),
            ("server's reserved huge pages", "2048 kB"),
            ("server's CPU quota", "none"),
            ("server's nice value", "-5"),
        ] {
            assert_eq!(facts.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!facts.keys().any(|name| name.contains("loop0")));
        write("sys/kernel/debug/sched/preempt", "none voluntary (lazy) full\n");
        assert_eq!(preemption(&root).as_deref(), Some("lazy"));
    }
}
