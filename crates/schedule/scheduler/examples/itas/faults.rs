//! Faults around a scheduler. After each: the machine goes on, and says what happened.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workahead_scheduler::{Bonus, Fault, Key, Remote, Scheduler, Settings, Stats};

use crate::guest::{Length, attach, attach_with, paper_settings};
use crate::load::{Load, look, until};
use crate::services::{Cgroup, ROOT};

/// Of the loaders that run beside: small, so that what the tests start isn't kept waiting.
const BONUS: &str = "bonus=5ms";

/// Settings for tests in which many processes come and go, for the same reason.
fn light() -> Settings {
    Settings { bonus: Bonus::Ns(5_000_000), ..paper_settings() }
}

/// An emulated CPU stands still while the host does other things, and the guest's clock goes on.
const HOST_MS: u64 = 700;

/// The bound of the crate's documentation.
pub(crate) fn nobody_waited_too_long(scheduler: &Scheduler, tasks_per_cpu: u64) -> Result<()> {
    let longest = scheduler.remote().stats()?.wait_max_ns;
    let settings = paper_settings();
    let quarters = if tasks_per_cpu > u64::from(settings.scan_max) { 5 } else { 4 };
    let bound = settings.patience_ns / 4 * quarters + (tasks_per_cpu + 1) * settings.slice_ns;
    println!("  longest wait {} ms, bound {} ms", longest / 1_000_000, bound / 1_000_000);
    ensure!(longest <= bound + HOST_MS * 1_000_000, "a task waited {longest} ns, bound {bound}");
    Ok(())
}

/// The kernel's log has no warning; it is read and emptied.
pub(crate) fn no_complaints() -> Result<()> {
    let printed = Load::commands(1, &["dmesg", "-c"])?.finish()?;
    const COMPLAINTS: [&str; 5] =
        ["WARNING:", "BUG:", "Oops", "rcu_sched self-detected", "blocked for"];
    let complaint =
        printed[0].lines().find(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint)));
    ensure!(complaint.is_none(), "the kernel complains: {}", complaint.unwrap_or_default());
    Ok(())
}

/// The machine does work: processes start, run and end.
fn machine_works() -> Result<()> {
    let spins = Load::start(2, &["work", "2", "1000"])?.finish()?;
    ensure!(spins.iter().all(|printed| !printed.starts_with("0 ")), "no work was done: {spins:?}");
    Ok(())
}

pub(crate) fn extremes(_: Length) -> Result<()> {
    let scheduler = attach()?;
    let _load = Load::start(2, &["work", "4", "60000"])?;
    for bonus in [0, u64::MAX] {
        for limit in [0, u32::MAX] {
            let stats = look(
                &scheduler,
                &Settings { bonus: Bonus::Ns(bonus), limit, ..paper_settings() },
                1500,
            )?;
            let none = bonus == 0 || limit == 0;
            ensure!(stats.decisions > 0 && (stats.taken == 0) == none, "{}", stats);
        }
    }
    // The last was without any brake but this one.
    ensure!(scheduler.remote().stats()?.overdue > 0, "nobody was overdue under an endless bonus");
    nobody_waited_too_long(&scheduler, 12)?;
    drop(scheduler);
    Ok(())
}

pub(crate) fn two_loaders(_: Length) -> Result<()> {
    let scheduler = attach()?;
    let second = attach().err().context("two schedulers at once")?.to_string();
    ensure!(second.contains("another sched_ext scheduler runs (workahead"), "{second}");
    let stats = look(&scheduler, &paper_settings(), 200)?;
    ensure!(stats.switches > 0 && Remote::is_running()?, "the first one was disturbed");
    drop(scheduler);
    Ok(())
}

pub(crate) fn loader_killed(_: Length) -> Result<()> {
    let _load = Load::start(1, &["work", "1", "8000"])?;
    // The load is dropped without a word: SIGKILL.
    let loader = Load::start(1, &["run", BONUS])?;
    until("the loader has attached", 20, || Ok(Remote::is_running()?))?;
    drop(loader);
    until("the kernel has the tasks again", 10, || Ok(Remote::is_vacant()?))?;
    // On a request to leave, it leaves by itself, and says so.
    let loader = Load::start(1, &["run", BONUS])?;
    until("the loader has attached again", 20, || Ok(Remote::is_running()?))?;
    Load::start(1, &["stats"])?.finish()?;
    Load::start(1, &["stop"])?.finish()?;
    let printed = loader.finish()?;
    ensure!(printed[0].contains("detached: unregistered from user space"), "{}", printed[0]);
    machine_works()
}

/// While its programs are loaded, while it attaches, and when it runs.
pub(crate) fn killed_at_any_moment(length: Length) -> Result<()> {
    let kills = if length == Length::Long { 200 } else { 20 };
    let vacant = || until("the kernel has the tasks again", 10, || Ok(Remote::is_vacant()?));
    let start = Instant::now();
    let loader = Load::start(1, &["run", BONUS])?;
    until("the loader has attached", 20, || Ok(Remote::is_running()?))?;
    let usual = start.elapsed();
    drop(loader);
    vacant()?;
    let mut attached = 0;
    for kill in 0..kills {
        let loader = Load::start(1, &["run", BONUS])?;
        // Every moment once, none in order: 7 and the number of kills have no common divisor.
        std::thread::sleep(usual * 3 / 2 * (kill * 7 % kills) / kills);
        attached += u32::from(Remote::is_running()?);
        drop(loader);
        vacant()?;
    }
    println!("  {attached} of {kills} were killed when attached");
    ensure!(0 < attached && attached < kills, "not killed at any moment");
    drop(attach()?);
    machine_works()
}

pub(crate) fn affinity(_: Length) -> Result<()> {
    let scheduler = attach_with(&light())?;
    let before = scheduler.remote().stats()?;
    let load = Load::start(2, &["roam", "6", "2500"])?;
    for turn in 0..40_u32 {
        for pid in load.pids() {
            // It may just have ended.
            let mask = format!("{:x}", 1 + turn % 15);
            let _ = Load::commands(1, &["taskset", "-p", &mask, &pid.to_string()])?.finish();
        }
    }
    load.finish()?;
    runs_on(&scheduler, &before)?;
    drop(scheduler);
    Ok(())
}

/// The scheduler still runs, has counted, and nobody is lost.
fn runs_on(scheduler: &Scheduler, before: &Stats) -> Result<()> {
    let ended = scheduler.remote().ended()?;
    ensure!(ended.is_none(), "it ended: {ended:?}");
    let stats = scheduler.remote().stats()?.since(before);
    println!("  {}", stats);
    ensure!(stats.switches > 0, "nothing was counted");
    machine_works()
}

pub(crate) fn real_time(_: Length) -> Result<()> {
    let scheduler = attach_with(&light())?;
    let before = scheduler.remote().stats()?;
    let load = Load::start(1, &["roam", "6", "3000"])?;
    let me = std::env::current_exe()?;
    let me = me.to_str().context("a path in UTF-8")?;
    let words = ["taskset", "2", "chrt", "-f", "50", me, "work", "1", "1000"];
    Load::commands(1, &words)?.finish()?;
    load.finish()?;
    runs_on(&scheduler, &before)?;
    drop(scheduler);
    Ok(())
}

pub(crate) fn hotplug(_: Length) -> Result<()> {
    let loader = Load::start(1, &["run", BONUS])?;
    until("the loader has attached", 20, || Ok(Remote::is_running()?))?;
    let load = Load::start(2, &["work", "2", "6000"])?;
    load.wait_for_threads(2)?;
    // CPU 0, the master, can't go; its sibling can.
    let file = "/sys/devices/system/cpu/cpu1/online";
    for state in ["0", "1"] {
        std::fs::write(file, state).context("taking a CPU away, and back")?;
        // The kernel takes over at once; the loader attaches again.
        std::thread::sleep(Duration::from_millis(500));
        until("it is attached again", 10, || Ok(Remote::is_running()?))?;
    }
    load.finish()?;
    Load::start(1, &["stop"])?.finish()?;
    let printed = loader.finish()?;
    let times = printed[0].matches("attached\n").count();
    ensure!(times >= 2, "not attached again: {}", printed[0]);
    machine_works()
}

/// The master of others goes, and comes again.
pub(crate) fn master_goes(_: Length) -> Result<()> {
    let loader = Load::start(1, &["run", BONUS, "roles=1,0,2,3"])?;
    until("the loader has attached", 20, || Ok(Remote::is_running()?))?;
    let load = Load::start(2, &["work", "2", "6000"])?;
    load.wait_for_threads(2)?;
    for state in ["0", "1"] {
        std::fs::write("/sys/devices/system/cpu/cpu1/online", state)?;
        std::thread::sleep(Duration::from_millis(500));
        until("it is attached again", 10, || Ok(Remote::is_running()?))?;
        let before = Remote::find()?.stats()?;
        machine_works()?;
        let stats = Remote::find()?.stats()?.since(&before);
        ensure!(stats.decisions > 0, "nobody decides: {stats}");
    }
    load.finish()?;
    Load::start(1, &["stop"])?.finish()?;
    loader.finish()?;
    Ok(())
}

/// Control groups are killed and removed while their threads run, wait and are parked.
pub(crate) fn cgroups_go(_: Length) -> Result<()> {
    let settings = Settings { key: Key::Cgroup, ..light() };
    let scheduler = attach_with(&settings)?;
    let before = scheduler.remote().stats()?;
    for turn in 0..12 {
        let group = Cgroup::new(Path::new(ROOT), &format!("gone{turn}"))?;
        let inner = Cgroup::new(group.path(), "inner")?;
        if turn % 2 == 0 {
            group.set("cpu.max", "5000 100000")?;
        }
        let load = inner.start(&["work", "3", "60000"])?;
        std::thread::sleep(Duration::from_millis(250));
        group.set("cgroup.kill", "1")?;
        drop(load);
        drop(inner);
        let path = group.path().to_owned();
        drop(group);
        ensure!(!path.exists(), "{} is still there", path.display());
    }
    runs_on(&scheduler, &before)?;
    drop(scheduler);
    Ok(())
}

pub(crate) fn short_lives(_: Length) -> Result<()> {
    let scheduler = attach_with(&light())?;
    let before = scheduler.remote().stats()?;
    let _steady = Load::start(1, &["work", "2", "60000"])?;
    let me = std::env::current_exe()?;
    let me = me.to_str().context("a path in UTF-8")?;
    for _ in 0..4 {
        // Address spaces that are published while their threads exit, and while they become others.
        let short = format!("{me} work 2 60 & {me} work 3 90 & exec {me} work 2 40");
        Load::commands(2, &["sh", "-c", &short])?.finish()?;
    }
    runs_on(&scheduler, &before)?;
    drop(scheduler);
    Ok(())
}

pub(crate) fn many_tasks(_: Length) -> Result<()> {
    let scheduler = attach()?;
    let before = scheduler.remote().stats()?;
    std::thread::scope(|scope| {
        for _ in 0..2000 {
            let born = std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, || {
                for _ in 0..5 {
                    for spin in 0..20_000 {
                        std::hint::black_box(spin);
                    }
                    std::thread::yield_now();
                }
            });
            if born.is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    // And as processes, which come and go.
    Load::commands(1, &["sh", "-c", "for i in $(seq 300); do true & (:) & done; wait"])?
        .finish()?;
    nobody_waited_too_long(&scheduler, 2000)?;
    runs_on(&scheduler, &before)?;
    drop(scheduler);
    Ok(())
}

pub(crate) fn error(_: Length) -> Result<()> {
    let scheduler = attach_with(&light())?;
    scheduler.remote().break_it(Fault::Error)?;
    until("the kernel has the tasks again", 10, || Ok(Remote::is_vacant()?))?;
    let ended = scheduler.remote().ended()?.context("it didn't say how it ended")?;
    ensure!(ended.message.contains("an error was requested"), "{ended:?}");
    drop(scheduler);
    let _ = Load::commands(1, &["dmesg", "-c"])?.finish()?;
    machine_works()
}

pub(crate) fn stall(_: Length) -> Result<()> {
    let scheduler = attach_with(&light())?;
    let _load = Load::start(1, &["work", "2", "60000"])?;
    std::thread::sleep(Duration::from_millis(300));
    scheduler.remote().break_it(Fault::Stall)?;
    until("the watchdog has stepped in", 40, || Ok(Remote::is_vacant()?))?;
    let ended = scheduler.remote().ended()?.context("it didn't say how it ended")?;
    println!("  {ended:?}");
    ensure!(ended.reason.contains("stall"), "{ended:?}");
    drop(scheduler);
    let _ = Load::commands(1, &["dmesg", "-c"])?.finish()?;
    machine_works()
}
