//! Permissions of the process of a run once its places are known: whatever a statement makes of
//! the database, it reads the system, writes where the run keeps its own, and reaches nobody else.
//!
//! ```text
//! Landlock       files of the system are read, those of the run written; no TCP, and no signals or
//!                abstract sockets to others (Linux 5.13; 6.7 and 6.12 for the last two)
//! seccomp        the calls of memory, files, threads and clocks only (`calls`): no sockets or
//!                shared memory, no permissions of files, no limits and priorities of others, no
//!                programs of its own, nothing by which root rules a machine or a program takes a
//!                terminal
//! capabilities   of root's none but those that measuring takes
//! ```
//!
//! They hold for all threads and programs that this process starts from then on, and nothing takes
//! them back.

mod calls;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The version of Landlock whose rights are known here; an older kernel takes those that it knows.
const LANDLOCK: ABI = ABI::V6;

/// Programs, libraries, what the kernel says of machine and processes, time zones.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/proc",
    "/sys",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/dev/cpu",
];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where a run reads and writes, beside the system.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Files that the study names.
    pub(crate) files: Vec<PathBuf>,
    /// Files and directories that are read.
    pub(crate) read: Vec<PathBuf>,
    /// Files and directories that are written to.
    pub(crate) written: Vec<PathBuf>,
    /// Counters are read, or functions profiled.
    pub(crate) counts: bool,
    /// Workers are started, under valgrind.
    pub(crate) starts_programs: bool,
    /// The run is about the scheduler, whose programs go to the kernel.
    pub(crate) loads_bpf: bool,
    /// Files that later commands believe.
    pub(crate) believed: Vec<PathBuf>,
}

/// Confines this process, which has no other threads yet. Standard error says what the kernel
/// can't do.
///
/// # Errors
/// When there are other threads, which would stay as they are, or a place can't be opened.
pub(crate) fn confine(places: &Places) -> anyhow::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").context("/proc is not there")?.count();
    ensure!(threads == 1, "the run has {threads} threads already and can't be confined");
    places.check()?;
    if rustix::process::geteuid().is_root() {
        // Root's places that everybody may write to are refused below.
        let before = rustix::process::umask(Mode::from_raw_mode(0o022));
        rustix::process::umask(before | Mode::from_raw_mode(0o022));
    }
    if places.loads_bpf {
        say(&anyhow::anyhow!("the study is about the scheduler, and loads programs as root"));
    }
    // The last step leaves none of the calls that the others take.
    for step in [keep_to, give_up_rights, disable] {
        if let Err(missing) = step(places) {
            say(&missing);
        }
    }
    Ok(())
}

impl Places {
    /// Refuses to have what is run or believed later, unconfined, among what is written, and files
    /// that the study reads; also where they aren't there yet.
    fn check(&self) -> anyhow::Result<()> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::parent).map(Path::to_owned);
        let later = workahead_engines::library_directories().into_iter().chain(program);
        let later = later.chain(self.believed.iter().cloned());
        let later: Vec<PathBuf> = later.map(|path| whole(&path)).collect();
        for written in &self.written {
            let place = whole(written);
            ensure!(
                !later.iter().any(|path| path.starts_with(&place)),
                "{} has programs or DuckDB's library in it, or studies that were begun, which a \
                 statement could replace: choose another directory",
                written.display()
            );
            // As it is written, too: its target can be changed there.
            let names = |path: &PathBuf| [std::path::absolute(path).ok(), Some(whole(path))];
            let is_in = |path: &&PathBuf| {
                names(path).into_iter().flatten().any(|path| path.starts_with(&place))
            };
            if let Some(read) = self.files.iter().find(is_in) {
                bail!(
                    "the study reads {}, which a statement could replace there: choose another \
                     place for it",
                    read.display()
                );
            }
        }
        Ok(())
    }
}

/// A path without links, as far as it is there.
fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for there in path.ancestors() {
        if let Ok(whole) = there.canonicalize() {
            let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { whole } else { whole.join(rest) };
        }
    }
    path
}

fn say(missing: &anyhow::Error) {
    // Standard error may be closed; the run matters more.
    let _ = writeln!(
        std::io::stderr(),
        "{missing:#}: a database driven by a statement has more of your rights than it \
         should, so run no study of a stranger here"
    );
}

/// Files, TCP, signals: by Landlock.
fn keep_to(places: &Places) -> anyhow::Result<()> {
    let read = AccessFs::from_read(LANDLOCK);
    let all = AccessFs::from_all(LANDLOCK);
    let files = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut readable: Vec<&Path> = SYSTEM.iter().map(Path::new).collect();
    readable.extend(places.read.iter().map(PathBuf::as_path));
    let ruleset = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(&places.written, files))?
        .add_rules(path_beneath_rules(DEVICES, devices))?;
    let status = ruleset.restrict_self()?.ruleset;
    ensure!(status != RulesetStatus::NotEnforced, "this kernel has no Landlock (Linux 5.13)");
    ensure!(
        status == RulesetStatus::FullyEnforced,
        "this kernel's Landlock is older than Linux 6.12's, which keeps signals and more"
    );
    Ok(())
}

/// Root's rights, as to read the environment of processes: by capabilities.
fn give_up_rights(places: &Places) -> anyhow::Result<()> {
    if places.loads_bpf {
        return Ok(());
    }
    let mut kept = CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK;
    kept.set(CapabilitySet::PERFMON, places.counts);
    let now = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).context("capabilities can't be given up")
}

/// Flags of `clone` that make name spaces: of users, mounts, processes, networks, names, IPC and
/// control groups. With one comes root's power over what is in it.
const NAME_SPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWCGROUP;

/// Of `ioprio_set`, which the `libc` crate hasn't.
const IOPRIO_WHO_PROCESS: u64 = 1;
/// The kind of the requests of counters, `_IO('$', …)`.
const PERF_REQUESTS: u64 = 0x2400;

/// Modes by which a file that root makes or reads would be somebody's tool.
const TOOLS: libc::mode_t = libc::S_ISUID | libc::S_ISGID;

/// System calls beside them: by seccomp.
fn disable(places: &Places) -> anyhow::Result<()> {
    let filter: BpfProgram = filter(places)?.try_into()?;
    seccompiler::apply_filter_all_threads(&filter)
        .context("this kernel has no filters of system calls")
}

type Rule = Result<SeccompRule, seccompiler::BackendError>;
type Condition = Result<SeccompCondition, seccompiler::BackendError>;

/// About one argument, of which a call reads the lower half.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn equal(argument: u8, value: u64) -> Condition {
    when(argument, SeccompCmpOp::Eq, value)
}

/// None of the bits is set.
fn without(argument: u8, bits: u32) -> Condition {
    when(argument, SeccompCmpOp::MaskedEq(bits.into()), 0)
}

fn all<const N: usize>(conditions: [Condition; N]) -> Rule {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Of a file that the run opened, named by this argument. Standard output may be somebody's log, or
/// the shell's terminal: it is written to at its end, and neither cut nor set.
fn own_file(argument: u8) -> Condition {
    when(argument, SeccompCmpOp::Ge, 3)
}

/// The ways to open a file, given where the call has its flags, before its mode: no tool of its
/// owner's, and none is emptied that isn't opened to be written to, which older Landlocks let pass.
fn opens(flags: u8) -> Vec<Rule> {
    let tool = || without(flags + 1, TOOLS);
    let access = |access: libc::c_int| {
        when(flags, SeccompCmpOp::MaskedEq(libc::O_ACCMODE as u64), access as u64)
    };
    vec![
        all([tool(), without(flags, libc::O_TRUNC as u32)]),
        all([tool(), access(libc::O_WRONLY)]),
        all([tool(), access(libc::O_RDWR)]),
    ]
}

fn filter(places: &Places) -> Result<SeccompFilter, seccompiler::BackendError> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    let mut conditional = |call: libc::c_long, ways: Vec<Rule>| {
        let ways: Result<Vec<SeccompRule>, _> = ways.into_iter().collect();
        ways.map(|ways| rules.insert(call, ways))
    };
    for (call, argument) in calls::OF_A_PROCESS {
        conditional(*call, vec![all([equal(*argument, 0)])])?;
    }
    let this = std::process::id().into();
    conditional(libc::SYS_kill, vec![all([equal(0, this)])])?;
    conditional(libc::SYS_tgkill, vec![all([equal(0, this)])])?;
    // Of a process, not of a group or user.
    let own = |kind| vec![all([equal(0, kind), equal(1, 0)])];
    conditional(libc::SYS_setpriority, own(libc::PRIO_PROCESS as u64))?;
    conditional(libc::SYS_ioprio_set, own(IOPRIO_WHO_PROCESS))?;
    // A thread; a process of its own would outlive the run.
    let thread = libc::CLONE_THREAD as u64;
    let threads = SeccompCmpOp::MaskedEq(thread | NAME_SPACES as u64);
    conditional(libc::SYS_clone, vec![all([when(0, threads, thread)])])?;
    // A pair of datagram sockets could send to others.
    let stream = when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_STREAM as u64);
    let pair = all([equal(0, libc::AF_UNIX as u64), stream]);
    conditional(libc::SYS_socketpair, vec![pair])?;
    conditional(libc::SYS_openat, opens(2))?;
    #[cfg(target_arch = "x86_64")]
    conditional(libc::SYS_open, opens(1))?;
    let anonymous = libc::MAP_ANONYMOUS as u64;
    let without_file = when(3, SeccompCmpOp::MaskedEq(anonymous), anonymous);
    conditional(libc::SYS_mmap, vec![all([own_file(4)]), all([without_file])])?;
    for (call, argument) in calls::OF_OWN_FILES {
        conditional(*call, vec![all([own_file(*argument)])])?;
    }
    let commands = calls::FCNTL.iter().map(|one| all([equal(1, *one as u64)]));
    let of_own_files = calls::FCNTL_OF_OWN_FILES.iter();
    let of_own_files = of_own_files.map(|one| all([own_file(0), equal(1, *one as u64)]));
    conditional(libc::SYS_fcntl, commands.chain(of_own_files).collect())?;
    let options = calls::PRCTL.iter().map(|one| all([equal(0, *one as u64)]));
    conditional(libc::SYS_prctl, options.collect())?;
    let mut requests: Vec<Rule> = calls::IOCTL.iter().map(|one| all([equal(1, *one)])).collect();
    let of_own_files = calls::IOCTL_OF_OWN_FILES.iter();
    requests.extend(of_own_files.map(|one| all([own_file(0), equal(1, *one)])));
    if places.counts {
        requests.push(all([when(1, SeccompCmpOp::MaskedEq(0xff00), PERF_REQUESTS)]));
    }
    conditional(libc::SYS_ioctl, requests)?;
    if places.starts_programs {
        conditional(libc::SYS_clone, vec![all([without(0, NAME_SPACES as u32)])])?;
        let programs = calls::PROGRAMS.iter().chain(calls::OLDER_PROGRAMS);
        programs.for_each(|call| drop(rules.insert(*call, Vec::new())));
    }
    rules.extend(calls::ALLOWED.iter().chain(calls::OLDER).map(|call| (*call, Vec::new())));
    if places.counts || places.loads_bpf {
        rules.insert(libc::SYS_perf_event_open, Vec::new());
    }
    if places.loads_bpf {
        rules.insert(libc::SYS_bpf, Vec::new());
    }
    // Libraries do without what a kernel doesn't know, as `clone3`, whose flags no filter sees.
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, unknown, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)
}
