//! Samples of this very program, run again as a child that does nothing but call and calculate.
//!
//! They need a kernel that allows samples of one's own processes; where it does not, they say so
//! and end.

use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::open::{IN_TURN, Scope};
use super::*;
use crate::source::CountError;

const BURN: &str = "WORKAHEAD_TEST_BURN";

#[inline(never)]
fn innermost(start: f64) -> f64 {
    (0..20_000).fold(black_box(start), |sum, step| (sum * 1.000_1 + f64::from(step)).sqrt())
}

#[inline(never)]
fn in_library(start: f64) -> f64 {
    // The C library goes through the whole environment, which is large here.
    (0..20).fold(start, |sum, _| sum + f64::from(std::env::var_os("NOT_SET").is_none()))
}

#[inline(never)]
fn middle(start: f64) -> f64 {
    black_box(innermost(start)) + black_box(in_library(start))
}

#[inline(never)]
fn outermost(start: f64) -> f64 {
    black_box(middle(start)) + 1.0
}

/// The child's program: it works until its input ends, so that it does not outlive the test.
#[test]
fn burn() {
    let Ok(how) = std::env::var(BURN) else { return };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    if how == "child" {
        std::thread::sleep(Duration::from_millis(300));
        let own = std::env::current_exe().expect("its own path");
        let burning = Burning::with_input(&own, "itself", Stdio::inherit());
        std::mem::forget(burning);
        std::thread::park();
    }
    loop {
        black_box(outermost(black_box(2.0)));
    }
}

/// A child at work; killed when dropped.
struct Burning(Child);

impl Burning {
    fn start(program: &Path, how: &str) -> Self {
        Self::with_input(program, how, Stdio::piped())
    }

    fn with_input(program: &Path, how: &str, input: Stdio) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", "profile::tests::burn"]).env(BURN, how);
        command.envs((0..1000).map(|number| (format!("NOT_{number}"), "set")));
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("this program runs again"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Burning {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn own() -> PathBuf {
    std::env::current_exe().expect("its own path")
}

fn often() -> Options {
    Options { frequency_hz: 499, ..Options::default() }
}

/// Samples until enough of the processes' work was seen, or says why that is not allowed here.
fn sampled(target: &Target, scopes: &[(Scope, bool)]) -> Option<Running> {
    match Sampler::begin_in(target, &often(), scopes) {
        Ok(running) => Some(running),
        Err(error @ (CountError::Forbidden { .. } | CountError::NoSuchEvent { .. })) => {
            println!("not tested here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Waits until a process and its children have worked for a while.
fn let_work(pids: impl Fn() -> Vec<u32>) {
    let ticks = |pid: u32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
    };
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        if pids().into_iter().filter_map(ticks).sum::<u64>() >= 80 {
            return;
        }
    }
}

fn has_chain(profile: &Profile, chain: &[&str]) -> bool {
    profile.stacks.iter().any(|stack| {
        let names = stack.frames.iter().map(|frame| &profile.frames[*frame as usize].name);
        let mut wanted = chain.iter().peekable();
        for name in names {
            if wanted.peek().is_some_and(|wanted| name.ends_with(**wanted)) {
                wanted.next();
            }
        }
        wanted.peek().is_none()
    })
}

fn share(profile: &Profile, end: &str) -> f64 {
    let own = profile.functions.iter().filter(|function| function.frame.name.ends_with(end));
    own.map(|function| function.self_events).sum::<u64>() as f64 / profile.events as f64
}

fn shows_the_chain(scopes: &[(Scope, bool)]) {
    let child = Burning::start(&own(), "itself");
    let Some(running) = sampled(&Target::Process(child.pid()), scopes) else { return };
    let_work(|| vec![child.pid()]);
    let profile = running.end();
    drop(child);
    assert!(profile.samples > 20, "{profile:#?}");
    assert!(has_chain(&profile, &["::outermost", "::middle", "::innermost"]), "{profile:#?}");
    assert!(share(&profile, "::innermost") > 0.1, "{profile:#?}");
    // The library's function, called through ours.
    let library = |f: &&Function| f.frame.name == "getenv" && f.frame.module.starts_with("libc");
    let library = profile.functions.iter().find(library);
    assert!(library.is_some_and(|f| f.self_samples > 0), "{profile:#?}");
    assert!(has_chain(&profile, &["::middle", "::in_library", "getenv"]), "{profile:#?}");
    assert!(profile.truncated * 10 <= profile.samples, "{profile:#?}");
    assert_eq!(profile.unsampled_threads, 0);
    let middle = profile.functions.iter().find(|f| f.frame.name.ends_with("::middle"));
    assert!(middle.is_some_and(|f| f.total_samples > f.self_samples), "{profile:#?}");
}

#[test]
fn a_ring_per_cpu_shows_callers_and_callees() {
    shows_the_chain(&[(Scope::Cpus, true)]);
}

#[test]
fn a_ring_per_thread_shows_callers_and_callees() {
    shows_the_chain(&[(Scope::Threads, true), (Scope::Threads, false)]);
}

#[test]
fn a_child_made_later_belongs_to_the_tree_and_not_to_the_process() {
    for scopes in [&IN_TURN[..1], &IN_TURN[1..]] {
        let parent = Burning::start(&own(), "child");
        let pid = parent.pid();
        let Some(tree) = sampled(&Target::Trees(vec![pid]), scopes) else { return };
        let Some(alone) = sampled(&Target::Process(pid), scopes) else { return };
        let below = workahead_machine::process::Tree::of(pid);
        let_work(|| below.clone().look(&workahead_machine::Sysroot::live()).pids());
        let (tree, alone) = (tree.end(), alone.end());
        drop(parent);
        assert!(share(&tree, "::innermost") > 0.1, "{tree:#?}");
        assert!(has_chain(&tree, &["::outermost", "::middle", "::innermost"]), "{tree:#?}");
        assert!(!has_chain(&alone, &["::innermost"]), "{alone:#?}");
    }
}

/// A copy of this program whose table of symbols is empty.
fn stripped(folder: &Path) -> PathBuf {
    use object::{Object, ObjectSection};
    let mut bytes = std::fs::read(own()).expect("its own file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let number = elf.section_by_name(".symtab").expect("its symbols").index().0;
    let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("eight")) as usize;
    let size = headers + 64 * number + 32;
    bytes[size..size + 8].fill(0);
    bytes[size - 28..size - 24].fill(0);
    let copy = folder.join("stripped");
    std::fs::write(&copy, bytes).expect("written");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&copy, all).expect("may be run");
    copy
}

#[test]
fn functions_of_a_stripped_file_stay_apart_without_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = Burning::start(&stripped(folder.path()), "itself");
    let Some(running) = sampled(&Target::Process(child.pid()), &IN_TURN) else { return };
    let_work(|| vec![child.pid()]);
    let profile = running.end();
    drop(child);
    let unresolved = profile.unresolved().expect("samples");
    assert!(unresolved > 0.3, "{profile:#?}");
    assert!(!has_chain(&profile, &["::innermost"]), "{profile:#?}");
    // The largest of them by the address of its begin, not in pieces by where the samples fell.
    let ours = |f: &&Function| f.frame.name.starts_with("stripped+0x");
    let largest = profile.functions.iter().find(ours).expect("our own function");
    assert_eq!(largest.frame.kind, Kind::Unresolved);
    assert!(largest.self_events as f64 / profile.events as f64 > 0.1, "{profile:#?}");
    assert!(profile.truncated * 10 <= profile.samples, "{profile:#?}");
}

#[test]
fn a_file_deleted_meanwhile_gives_no_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("deleted");
    std::fs::copy(own(), &copy).expect("copied");
    let child = Burning::start(&copy, "itself");
    std::fs::remove_file(&copy).expect("removed");
    std::fs::copy(own(), &copy).expect("another file of the same name");
    let Some(running) = sampled(&Target::Process(child.pid()), &IN_TURN) else { return };
    let_work(|| vec![child.pid()]);
    let profile = running.end();
    drop(child);
    assert!(profile.unresolved().expect("samples") > 0.1, "{profile:#?}");
    assert!(!has_chain(&profile, &["::innermost"]), "{profile:#?}");
}

#[test]
fn who_is_gone_is_said() {
    let mut child = Command::new(own()).arg("--list").stdout(Stdio::null()).spawn().expect("runs");
    child.wait().expect("ended");
    let begun = Sampler::begin_in(&Target::Process(child.id()), &often(), &IN_TURN);
    match begun {
        Err(CountError::Gone(_)) => {}
        Err(CountError::Forbidden { .. } | CountError::NoSuchEvent { .. }) => {
            println!("not tested here: the kernel allows no samples");
        }
        other => panic!("{other:?}"),
    }
}
