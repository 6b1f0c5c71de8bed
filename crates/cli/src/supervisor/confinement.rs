//! What the process of a run may still do once its places are known: whatever a statement makes of
//! the database, it reads the system, writes where the run keeps its own, and reaches nobody else.
//!
//! ```text
//! Landlock       files of the system are read, those of the run written; no TCP, and no signals or
//!                abstract sockets to others (Linux 5.13; 6.7 and 6.12 for the last two)
//! seccomp        no sockets or shared memory, no permissions of files, no limits and priorities of
//!                others, no programs of its own, and none of the calls by which root rules a
//!                machine, or a program takes a terminal
//! capabilities   of root's none but those that measuring takes
//! ```
//!
//! They hold for all threads and programs that this process starts from then on, and nothing takes
//! them back.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
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
    /// Files and directories that are read.
    pub(crate) read: Vec<PathBuf>,
    /// Files and directories that are written to.
    pub(crate) written: Vec<PathBuf>,
    /// Counters are read, or functions profiled.
    pub(crate) counts: bool,
    /// Workers are started, below valgrind.
    pub(crate) starts_programs: bool,
    /// The run is about the scheduler, whose programs go to the kernel.
    pub(crate) loads_bpf: bool,
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
        // What root makes for everybody to write to is refused below.
        let before = rustix::process::umask(Mode::from_raw_mode(0o022));
        rustix::process::umask(before | Mode::from_raw_mode(0o022));
    }
    if places.loads_bpf {
        say(&anyhow::anyhow!("the study is about the scheduler, and loads programs as root"));
    }
    for step in [keep_to, disable, give_up_rights] {
        if let Err(missing) = step(places) {
            say(&missing);
        }
    }
    Ok(())
}

impl Places {
    /// Refuses to have what is run later, unconfined, among what is written.
    fn check(&self) -> anyhow::Result<()> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::parent).map(Path::to_owned);
        let whole = |path: &PathBuf| path.canonicalize().ok();
        let run_later = workahead_engines::library_directories().into_iter().chain(program);
        let run_later: Vec<PathBuf> = run_later.filter_map(|path| whole(&path)).collect();
        for written in &self.written {
            let Some(place) = whole(written) else { continue };
            ensure!(
                !run_later.iter().any(|path| path.starts_with(&place)),
                "{} has programs or DuckDB's library in it, which a statement could replace: \
                 choose another directory",
                written.display()
            );
        }
        Ok(())
    }
}

fn say(missing: &anyhow::Error) {
    // Standard error may be closed; the run matters more.
    let _ = writeln!(
        std::io::stderr(),
        "{missing:#}: what a statement makes of the database has more of your rights than it \
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

/// Calls that no run needs, and that Landlock lets through.
const DISABLED: &[libc::c_long] = &[
    // Others.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Who may use a file, and what it says of itself.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    libc::SYS_utimensat,
    libc::SYS_umask,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Calls that the kernel makes for this process, which a filter doesn't see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_chroot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
];

/// Calls that are for this process only, and which argument says so by a zero.
const OF_A_PROCESS: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// Flags of `clone` that make name spaces: of users, mounts, processes, networks, names, IPC,
/// control groups, time.
const NAME_SPACES: [u64; 8] = [
    0x1000_0000,
    0x0002_0000,
    0x2000_0000,
    0x4000_0000,
    0x0400_0000,
    0x0800_0000,
    0x0200_0000,
    0x80,
];

/// Requests that take or change a terminal, or a file's flags.
const TAKING: &[u64] = &[
    libc::TIOCSTI,
    libc::TIOCLINUX,
    libc::TIOCSPGRP,
    libc::TIOCSCTTY,
    libc::TIOCNOTTY,
    libc::TIOCSWINSZ,
    libc::TIOCEXCL,
    libc::TCSETS,
    libc::TCSETSW,
    libc::TCSETSF,
    libc::TCSETA,
    libc::TCSETAW,
    libc::TCSETAF,
    // The line discipline, and terminals of any speed.
    0x5423,
    0x402c_542b,
    0x402c_542c,
    0x402c_542d,
    // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY.
    0x4008_6602,
    0x401c_5820,
    0x4080_6685,
];

/// Newer than the `libc` crate; the same number on all machines.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;

/// What x86-64 has beside them, from before there were calls that take a directory.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_chmod,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    X32_KEXEC_LOAD,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

#[cfg(target_arch = "x86_64")]
const FORKS: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[libc::c_long] = &[];

/// Of the x32 ABI, whose calls have this bit, and some of them numbers of their own.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const X32_KEXEC_LOAD: libc::c_long = 528;
#[cfg(target_arch = "x86_64")]
const X32_IOCTL: libc::c_long = 514;

/// What else could be called: by seccomp.
fn disable(places: &Places) -> anyhow::Result<()> {
    let why = "this kernel has no filters of system calls";
    for filter in [filter(places)?, without_clone3()?] {
        let filter: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&filter).context(why)?;
    }
    Ok(())
}

/// What a thread or process is started with is behind a pointer there; the C library goes on with
/// `clone`, as where the kernel is too old for it.
fn without_clone3() -> Result<SeccompFilter, seccompiler::BackendError> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let (others, this) = (SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32));
    SeccompFilter::new(rules, others, this, std::env::consts::ARCH.try_into()?)
}

fn filter(places: &Places) -> Result<SeccompFilter, seccompiler::BackendError> {
    type Rule = Result<SeccompRule, seccompiler::BackendError>;
    let one = |argument, operator, value| -> Rule {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![condition])
    };
    let has = |argument, bit: u64| one(argument, SeccompCmpOp::MaskedEq(bit), bit);
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    rules.extend(DISABLED.iter().chain(OLDER).map(|call| (*call, Vec::new())));
    if !places.loads_bpf {
        rules.insert(libc::SYS_bpf, Vec::new());
    }
    // A limit of another's CPU time is as good as a signal.
    for (call, argument) in OF_A_PROCESS {
        rules.insert(*call, vec![one(*argument, SeccompCmpOp::Ne, 0)?]);
    }
    // Theirs and of all processes of a group or user.
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let others = [one(0, SeccompCmpOp::Ne, process)?, one(1, SeccompCmpOp::Ne, 0)?];
        rules.insert(call, others.to_vec());
    }
    // It ends with the command.
    let death = one(0, SeccompCmpOp::Eq, libc::PR_SET_PDEATHSIG as u64)?;
    rules.insert(libc::SYS_prctl, vec![death]);
    // With a name space comes root's power over what is in it.
    let mut clones: Vec<Rule> = NAME_SPACES.iter().map(|flag| has(0, *flag)).collect();
    if !places.starts_programs {
        // A process of its own would outlive the run.
        clones.push(one(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0));
        rules.extend(FORKS.iter().map(|call| (*call, Vec::new())));
        // In the command's group it has the terminal.
        rules.extend([libc::SYS_setpgid, libc::SYS_setsid].map(|call| (call, Vec::new())));
    }
    rules.insert(libc::SYS_clone, clones.into_iter().collect::<Result<_, _>>()?);
    // A pair of datagram sockets can still send to others.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_SEQPACKET, libc::SOCK_RAW];
    let datagrams = datagrams.map(|kind| one(1, SeccompCmpOp::MaskedEq(0xf), kind as u64));
    rules.insert(libc::SYS_socketpair, datagrams.into_iter().collect::<Result<_, _>>()?);
    // A file that root reads is made nobody's tool.
    let modes = [libc::S_ISUID, libc::S_ISGID, libc::S_IWOTH].map(|bit| has(1, bit.into()));
    rules.insert(libc::SYS_fchmod, modes.into_iter().collect::<Result<_, _>>()?);
    // What is typed into the terminal is run by the shell afterwards; who has it in the foreground
    // reads what its user types.
    let taking = TAKING.iter().map(|request| one(1, SeccompCmpOp::Eq, *request));
    let taking: Vec<SeccompRule> = taking.collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, taking.clone());
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(X32_IOCTL, taking);
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(x32);
    }
    let (others, these) = (SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32));
    SeccompFilter::new(rules, others, these, std::env::consts::ARCH.try_into()?)
}
