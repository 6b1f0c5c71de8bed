//! The system calls that a run makes: of memory, files in its places, threads and clocks. All
//! others are as if the kernel didn't know them.

use libc::*;

/// With any arguments. Files are Landlock's, which sees what a path leads to.
#[rustfmt::skip]
pub(super) const ALLOWED: &[c_long] = &[
    // Memory, and where it lies.
    SYS_brk, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_mincore, SYS_msync,
    SYS_mlock, SYS_mlock2, SYS_munlock, SYS_membarrier, SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_mbind, MSEAL, MAP_SHADOW_STACK,
    // Files and directories.
    SYS_close, SYS_close_range, SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_fstat,
    SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_faccessat2,
    SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_renameat,
    SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_unlinkat, SYS_mkdirat,
    SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs,
    SYS_fadvise64, SYS_readahead, SYS_sendfile, SYS_pipe2,
    // Waiting, and what wakes; the sockets are those that a run was given, and pairs of its own.
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
    SYS_epoll_pwait2, SYS_eventfd2, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_timerfd_gettime, SYS_signalfd4, SYS_sendto, SYS_recvfrom,
    SYS_getsockopt, SYS_getsockname, SYS_getpeername,
    // Threads.
    SYS_futex, SYS_futex_waitv, FUTEX_WAKE, FUTEX_WAIT, FUTEX_REQUEUE, SYS_set_robust_list,
    SYS_get_robust_list, SYS_rseq, SYS_set_tid_address, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_getattr,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_getcpu, SYS_gettid, SYS_exit,
    SYS_exit_group, SYS_restart_syscall,
    // Signals to itself.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_sigaltstack,
    // Clocks, and what the system says of itself and this process.
    SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
    SYS_times, SYS_getrusage, SYS_getitimer, SYS_setitimer, SYS_getpid, SYS_getppid, SYS_getuid,
    SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups,
    SYS_getpgid, SYS_getsid, SYS_getpriority, SYS_ioprio_get, SYS_capget, SYS_uname,
    SYS_sysinfo, SYS_getrandom,
];

/// Calls that x86-64 has beside them, from before there were calls that take a directory.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(super) const OLDER: &[c_long] = &[
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_rename, SYS_link,
    SYS_symlink, SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_pipe, SYS_poll, SYS_select,
    SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_time, SYS_alarm, SYS_pause, SYS_getpgrp,
    SYS_getrlimit, SYS_setrlimit, SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
#[rustfmt::skip]
pub(super) const OLDER: &[c_long] = &[];

/// To start programs and wait for them, as valgrind does too for what is below it.
#[rustfmt::skip]
pub(super) const PROGRAMS: &[c_long] = &[
    SYS_execve, SYS_wait4, SYS_waitid, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_kill,
    SYS_tkill, SYS_tgkill, SYS_mknodat,
];
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(super) const OLDER_PROGRAMS: &[c_long] = &[SYS_fork, SYS_vfork, SYS_mknod];
#[cfg(not(target_arch = "x86_64"))]
#[rustfmt::skip]
pub(super) const OLDER_PROGRAMS: &[c_long] = &[];

/// For this process or thread only: which argument says so by a zero.
#[rustfmt::skip]
pub(super) const OF_A_PROCESS: &[(c_long, u8)] = &[
    (SYS_prlimit64, 0), (SYS_sched_setaffinity, 0), (SYS_sched_setscheduler, 0),
    (SYS_sched_setparam, 0), (SYS_sched_setattr, 0),
];

/// Of files and sockets that the run opened: what was written to standard output before is neither
/// read nor changed. By the argument that names it.
#[rustfmt::skip]
pub(super) const OF_OWN_FILES: &[(c_long, u8)] = &[
    (SYS_lseek, 0), (SYS_pread64, 0), (SYS_preadv, 0), (SYS_flock, 0), (SYS_pwrite64, 0),
    (SYS_pwritev, 0), (SYS_ftruncate, 0), (SYS_fallocate, 0),
    (SYS_copy_file_range, 2), (SYS_splice, 2), (SYS_shutdown, 0), (SYS_setsockopt, 0),
    (SYS_dup, 0), (SYS_dup3, 0),
    #[cfg(target_arch = "x86_64")]
    (SYS_dup2, 0),
];

/// Names of threads and memory, and how exactly a thread is woken.
#[rustfmt::skip]
pub(super) const PRCTL: &[c_int] = &[
    PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK,
    PR_GET_PDEATHSIG, PR_CAPBSET_READ, PR_SET_THP_DISABLE, PR_GET_THP_DISABLE,
    PR_GET_NO_NEW_PRIVS, PR_TASK_PERF_EVENTS_ENABLE, PR_TASK_PERF_EVENTS_DISABLE,
];

#[rustfmt::skip]
pub(super) const FCNTL: &[c_int] = &[
    F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_OFD_GETLK, F_GETPIPE_SZ,
];

#[rustfmt::skip]
pub(super) const FCNTL_OF_OWN_FILES: &[c_int] = &[
    F_DUPFD, F_DUPFD_CLOEXEC, F_SETFL, F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ,
];

/// Questions to a terminal, a pipe and a socket.
#[rustfmt::skip]
pub(super) const IOCTL: &[u64] = &[
    TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIOCLEX, FIONCLEX,
];

/// FICLONE, by which files are copied.
pub(super) const IOCTL_OF_OWN_FILES: &[u64] = &[FIONBIO, 0x4004_9409];

/// Newer than the `libc` crate; the same number on all machines.
const MAP_SHADOW_STACK: c_long = 453;
const FUTEX_WAKE: c_long = 454;
const FUTEX_WAIT: c_long = 455;
const FUTEX_REQUEUE: c_long = 456;
const MSEAL: c_long = 462;
