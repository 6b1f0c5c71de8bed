//! Processes that burn, wait and die, real ones and described ones.

mod fixture;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fixture::Fixture;
use workahead_machine::Sysroot;
use workahead_machine::process::group::{Group, Own};
use workahead_machine::process::machine_wide::Whole;
use workahead_machine::process::{CpuClock, ResourceUse, Tree, running_below};

/// A shell that runs commands and answers each with a line.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

const BURN: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

impl Shell {
    fn new() -> Shell {
        let mut command = Command::new("sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Shell { child, input, output }
    }

    /// Runs a command; the last line that it or we print.
    fn run(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}\necho done").unwrap();
        let mut last = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the shell ended early");
            if line.trim() == "done" {
                return last;
            }
            last = line.trim().to_owned();
        }
    }

    /// CPU seconds of the shell's own account, of itself and of the children it waited for.
    fn times_s(&mut self) -> (f64, f64) {
        writeln!(self.input, "times\necho done").unwrap();
        let mut lines = Vec::new();
        while lines.last().map(String::as_str) != Some("done") {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the shell ended early");
            lines.push(line.trim().to_owned());
        }
        // `0m0.120000s 0m0.010000s`, user and system.
        let part = |text: &str| {
            let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        };
        let line = |line: &String| line.split(' ').map(part).sum::<f64>();
        (line(&lines[0]), line(&lines[1]))
    }

    fn tree(&self) -> Tree {
        Tree::of(self.child.id())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shells print hundredths; the kernel cuts each of user and system to ticks.
const ROUNDING_S: f64 = 0.05;

#[test]
fn a_process_that_burns_is_charged_what_it_says_itself() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    let before = tree.look(&Sysroot::live());
    shell.run(BURN);
    let (said_s, _) = shell.times_s();
    let used = tree.look(&Sysroot::live()).since(&before);
    assert!(said_s > ROUNDING_S, "the loop is too short to see: {said_s} s");
    assert!((used.cpu_s - said_s).abs() <= ROUNDING_S, "{used:?} but {said_s} s");
    assert!((used.user_s + used.system_s - said_s).abs() <= ROUNDING_S, "{used:?}");
    assert_eq!((used.processes, used.threads, used.processes_ended), (1, 1, 0));
    assert!(!used.cpu_is_at_least && !used.threads_are_at_least);
    if used.run_delay_s.is_some() {
        assert_eq!(used.cpu_clock, CpuClock::Scheduler, "nothing ended: {used:?}");
    }
}

#[test]
fn children_that_burn_and_die_are_charged_to_who_waited() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    shell.run("true");
    let before = tree.look(&Sysroot::live());
    shell.run(&format!("({BURN}); ({BURN}; sh -c '{BURN}'; true); true"));
    let (own_s, children_s) = shell.times_s();
    let used = tree.look(&Sysroot::live()).since(&before);
    assert!(children_s > 2.0 * own_s, "the work was in children: {own_s} {children_s}");
    assert!((used.cpu_s - own_s - children_s).abs() <= 2.0 * ROUNDING_S, "{used:?} {children_s}");
    assert_eq!((used.cpu_clock, used.cpu_is_at_least), (CpuClock::Ticks, false));
    assert!(used.threads_are_at_least, "waits of children are not known: {used:?}");
    assert!(used.faults_minor > 100, "new processes fault their pages in: {used:?}");
}

#[test]
fn a_child_seen_half_way_is_not_charged_twice() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    let child = shell.run(&format!("sh -c '{BURN}; kill -STOP $$; {BURN}' & echo $!"));
    let is_half_way = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
        stat.contains(") T ")
    };
    while !is_half_way() {
        std::thread::yield_now();
    }
    let before = tree.look(&Sysroot::live());
    assert_eq!(before.pids().len(), 2);
    shell.run(&format!("kill -CONT {child}"));
    let (own_s, _) = shell.times_s();
    shell.run("wait");
    let (_, children_s) = shell.times_s();
    let used = tree.look(&Sysroot::live()).since(&before);
    assert_eq!((used.processes_ended, used.cpu_is_at_least), (1, false), "{used:?}");
    assert!(used.cpu_s < children_s * 0.8 + own_s, "only the second half: {used:?} {children_s}");
    assert!(used.cpu_s > children_s * 0.2, "{used:?} of {children_s} s");
}

fn is_child(pid: u32, parent: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.split_whitespace().eq(["PPid:", &parent.to_string()]))
}

#[test]
fn an_orphan_stays_in_the_tree_and_its_end_is_said() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    shell.run("sh -c 'sleep 1000 & wait' > /dev/null & true");
    let first = loop {
        let look = tree.look(&Sysroot::live());
        if look.pids().len() == 3 {
            break look;
        }
        std::thread::yield_now();
    };
    let shell_pid = shell.child.id();
    let middle =
        first.pids().into_iter().find(|pid| *pid != shell_pid && is_child(*pid, shell_pid));
    let middle = middle.unwrap();
    let youngest = first.pids().into_iter().find(|pid| ![shell_pid, middle].contains(pid)).unwrap();
    shell.run(&format!("kill -9 {middle}; wait {middle} 2> /dev/null; true"));
    let third = tree.look(&Sysroot::live());
    assert!(third.pids().contains(&youngest), "remembered: {:?}", third.pids());
    shell.run(&format!("kill -9 {youngest}; while kill -0 {youngest} 2> /dev/null; do :; done"));
    let fourth = tree.look(&Sysroot::live());
    let used = fourth.since(&third);
    assert_eq!((used.processes_ended, used.cpu_is_at_least), (1, true), "{used:?}");
}

#[test]
fn waiting_is_counted_as_switches() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    let before = tree.look(&Sysroot::live());
    for _ in 0..20 {
        shell.run("true");
        // Time to find that there is nothing more to read: a shell that is interrupted while it
        // answers has the next line before it looks.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let used = tree.look(&Sysroot::live()).since(&before);
    assert!(used.switches_voluntary >= 1, "{used:?}");
}

#[test]
fn a_thread_that_ended_is_said() {
    let mut tree = Tree::of(std::process::id());
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || ended.recv());
    let before = tree.look(&Sysroot::live());
    drop(end);
    assert!(thread.join().unwrap().is_err());
    let used = tree.look(&Sysroot::live()).since(&before);
    assert!(used.threads_ended >= 1 && used.threads_are_at_least, "{used:?}");
    assert!(!used.cpu_is_at_least, "a process keeps the times of its threads");
}

#[test]
fn a_tree_that_has_ended_is_empty() {
    let mut shell = Shell::new();
    let mut tree = shell.tree();
    let before = tree.look(&Sysroot::live());
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    let after = tree.look(&Sysroot::live());
    let used = after.since(&before);
    assert_eq!((after.running(), used.processes, used.processes_ended), (0, 0, 1));
    assert!(used.cpu_is_at_least && used.cpu_s == 0.0);
}

fn stat(pid: usize, name: &str, parent: usize, figures: &str, started: u64) -> String {
    // minflt cminflt majflt cmajflt utime stime cutime cstime
    format!(
        "proc/{pid}/stat = {pid} ({name}) S {parent} {pid} {pid} 0 -1 4194560 {figures} 20 0 2 0 \
         {started} 1000 10\n"
    )
}

fn task(pid: usize, tid: usize, on_cpu_ns: u64, delay_ns: u64, switches: (u64, u64)) -> String {
    let (voluntary, involuntary) = switches;
    format!(
        "proc/{pid}/task/{tid}/schedstat = {on_cpu_ns} {delay_ns} 7\n\
         proc/{pid}/task/{tid}/status = Name: x\\nvoluntary_ctxt_switches: {voluntary}\\n\
         nonvoluntary_ctxt_switches: {involuntary}\n"
    )
}

fn between(before: &str, after: &str) -> ResourceUse {
    let (before, after) = (Fixture::from_text(before), Fixture::from_text(after));
    let mut tree = Tree::of(10);
    let first = tree.look(&before.root());
    tree.look(&after.root()).since(&first)
}

#[test]
fn described_processes_by_hand() {
    let before = [
        stat(10, "post) master (x", 1, "100 50 2 1 30 10 200 100", 5),
        task(10, 10, 400_000_000, 1_000_000, (5, 1)),
        stat(11, "backend", 10, "10 0 0 0 50 20 0 0", 6),
        task(11, 11, 700_000_000, 2_000_000, (8, 2)),
        stat(99, "stranger", 1, "0 0 0 0 9999 0 0 0", 7),
    ]
    .concat();
    // The backend ended with 80 + 30 ticks and was waited for; another one is new.
    let after = [
        stat(10, "post) master (x", 1, "110 90 2 4 33 12 280 130", 5),
        task(10, 10, 450_000_000, 1_500_000, (9, 1)),
        stat(12, "backend", 10, "7 0 1 0 4 1 0 0", 8),
        task(12, 12, 55_000_000, 250_000, (3, 3)),
        stat(99, "stranger", 1, "0 0 0 0 99999 0 0 0", 7),
    ]
    .concat();
    let used = between(&before, &after);
    let ticks = |s: f64| (s * 100.0).round() as u64;
    // Master 3 + 2, new backend 4 + 1, the old one's last 30 + 10.
    assert_eq!((ticks(used.user_s), ticks(used.system_s)), (3 + 4 + 30, 2 + 1 + 10));
    assert_eq!((ticks(used.cpu_s), used.cpu_clock), (50, CpuClock::Ticks));
    assert_eq!((used.faults_minor, used.faults_major), (10 + 7 + 30, 1 + 3));
    assert_eq!((used.switches_voluntary, used.switches_involuntary), (4 + 3, 3));
    assert_eq!(used.run_delay_s, Some(0.000_75));
    assert_eq!((used.processes, used.threads), (2, 2));
    assert_eq!((used.processes_ended, used.threads_ended), (1, 1));
    assert_eq!((used.cpu_is_at_least, used.threads_are_at_least), (false, true));
}

#[test]
fn processes_below_another_are_listed_from_it_downwards() {
    let of = |pid: usize, parent: usize| stat(pid, "a) S 1 (b", parent, "0 0 0 0 0 0 0 0", 5);
    // A zombie has ended.
    let ended = of(13, 10).replace(") S", ") Z");
    let described = [of(9, 11), of(10, 1), of(11, 10), of(12, 10), ended, of(14, 12), of(15, 1)];
    let described = Fixture::from_text(&described.concat());
    assert_eq!(running_below(&described.root(), 10), [10, 11, 12, 9, 14]);
    assert!(running_below(&described.root(), 13).is_empty());
}

#[test]
fn this_process_is_above_its_children() {
    let root = Sysroot::live();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let tree = running_below(&root, std::process::id());
    assert_eq!(tree.first(), Some(&std::process::id()));
    assert!(tree.contains(&child.id()), "{tree:?} without {}", child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(running_below(&root, child.id()).is_empty());
}

#[test]
fn a_number_used_again_is_another_process() {
    let before = stat(10, "a", 1, "0 0 0 0 500 0 0 0", 5);
    let after = stat(10, "b", 1, "0 0 0 0 700 0 0 0", 6);
    let used = between(&before, &after);
    assert_eq!((used.cpu_s, used.processes, used.processes_ended), (0.0, 0, 1));
}

#[test]
fn a_kernel_without_accounts_of_delay_says_nothing_of_it() {
    let process = stat(10, "a", 1, "0 0 0 0 5 0 0 0", 5);
    let used = between(&process, &[process.clone(), task(10, 10, 0, 0, (1, 1))].concat());
    assert_eq!((used.run_delay_s, used.cpu_clock), (None, CpuClock::Ticks));
    assert!(used.measures().iter().all(|(name, _)| *name != "run_delay_s"));
}

#[test]
fn time_of_the_machine_and_pressure() {
    let at = |steal: u64, waited_us: u64, khz: u64| {
        Fixture::from_text(&format!(
            "proc/stat = cpu  100 0 50 800 20 0 5 {steal} 0 0\\ncpu0 1 2 3\n\
             proc/pressure/cpu = some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n\
             sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq = {khz}\n\
             sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq = 3000000\n\
             sys/devices/system/cpu/cpufreq/boost = 1\n"
        ))
    };
    let (before, after) = (at(25, 1_000_000, 2_000_000), at(125, 3_500_000, 2_800_000));
    let passed = Whole::look(&after.root()).since(&Whole::look(&before.root()));
    assert_eq!(passed.steal_s, Some(1.0));
    assert_eq!((passed.total_s, passed.idle_s), (Some(1.0), Some(0.0)));
    assert_eq!((passed.cpu_some_s, passed.io_some_s), (Some(2.5), None), "no file, no figure");
    let names: Vec<&str> = passed.measures().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["machine_cpu_s", "machine_idle_s", "steal_s", "psi_cpu_some_s", "cpu_ghz"]);
    assert_eq!(passed.ghz, Some(2.7), "the mean of 2.5 and 2.9");
}

const VERSION_TWO: &str = "\
proc/10/cgroup = 0::/db.service
proc/self/mountinfo = 29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw
sys/fs/cgroup/db.service/cpu.stat = usage_usec 2500000\\nuser_usec 2000000\\nsystem_usec 500000
sys/fs/cgroup/db.service/cgroup.procs = 10\\n11
";

const VERSION_ONE: &str = "\
proc/10/cgroup = 4:cpu,cpuacct:/db\\n3:memory:/elsewhere
proc/self/mountinfo = 33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
sys/fs/cgroup/cpu/db/cpuacct.usage = 1250000000
sys/fs/cgroup/cpu/db/cpuacct.stat = user 100\\nsystem 20
sys/fs/cgroup/cpu/db/cgroup.procs = 10
sys/fs/cgroup/cpu/db/below/cgroup.procs = 77
";

#[test]
fn both_versions_of_control_groups_are_read_and_named() {
    let two = Fixture::from_text(VERSION_TWO);
    let group = Group::of(&two.root(), &[10]).unwrap();
    assert_eq!(group.name(), "cgroup v2 /sys/fs/cgroup/db.service");
    assert_eq!(group.cpu(&two.root()).unwrap().cpu_s, 2.5);
    assert_eq!(group.strangers(&two.root(), &[10]), 1);
    let one = Fixture::from_text(VERSION_ONE);
    let group = Group::of(&one.root(), &[10]).unwrap();
    assert_eq!(group.name(), "cgroup v1 /sys/fs/cgroup/cpu/db");
    let cpu = group.cpu(&one.root()).unwrap();
    assert_eq!((cpu.cpu_s, cpu.user_s, cpu.system_s), (1.25, 1.0, 0.2));
    assert_eq!(group.strangers(&one.root(), &[10]), 1, "who is below is in it too");
}

#[test]
fn no_group_where_none_counts_cpu_time() {
    let bare = Fixture::from_text("proc/10/cgroup = 3:memory:/x\nproc/self/mountinfo = nothing\n");
    assert_eq!(Group::of(&bare.root(), &[10]), None);
    let refusal = Own::make(&bare.root(), "test").unwrap_err();
    assert!(refusal.contains("no control group"), "{refusal}");
}

#[test]
fn a_group_of_its_own_counts_a_server_to_its_end() {
    let root = Sysroot::live();
    let own = match Own::make(&root, "processes-test") {
        Ok(own) => own,
        // Not everyone may make groups; then the reason must be one.
        Err(reason) => return assert!(reason.contains('('), "{reason}"),
    };
    let mut shell = Shell::new();
    own.take(shell.child.id()).unwrap();
    let before = own.group().cpu(&root).unwrap();
    // Nobody waits for this one: only the group knows.
    let orphan = shell.run(&format!("(({BURN}; times | head -1) & wait); true"));
    assert!(!orphan.is_empty());
    let used = own.group().cpu(&root).unwrap().since(&before);
    assert!(used.cpu_s > ROUNDING_S, "{used:?}");
    assert_eq!(own.group().strangers(&root, &[shell.child.id()]), 0);
    drop(shell);
}
