//! Guarantees of the scheduler, tried where a broken kernel costs nothing. Prints what a test
//! harness prints, so that it is counted with the others.
//!
//! The guest has no caches: what is tested is who runs when. Threads are pinned where a share is
//! compared, since where they land by chance decides it (one thread of a group per CPU can't be
//! aggregated).

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workahead_machine::Machine;
use workahead_scheduler::{
    Bonus, Key, Observer, Remote, Roles, Scheduler, Service, Settings, Stats,
};

use crate::load::{Load, look, median};
use crate::{external, faults, services, waits};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Long,
}

type Test = (&'static str, fn(Length) -> Result<()>);

const TESTS: [Test; 22] = [
    ("attaches_and_leaves", attaches_and_leaves),
    ("aggregates_in_time_and_across_cores", aggregates),
    ("the_kernels_own_is_counted", observed),
    ("settings_change_at_run_time", settings_change),
    ("the_tuner_finds_what_hands_do", tuner),
    ("processes_of_one_parent_are_a_group", processes_aggregate),
    ("a_cgroup_has_its_own_bonus", cgroups),
    ("a_tag_makes_processes_a_group", services::tags),
    ("extremes_of_bonus_and_limit", faults::extremes),
    ("two_loaders", faults::two_loaders),
    ("loader_killed", faults::loader_killed),
    ("another_program_schedules", external::another_program),
    ("killed_at_any_moment", faults::killed_at_any_moment),
    ("affinity_changes_in_flight", faults::affinity),
    ("a_higher_class_takes_a_cpu", faults::real_time),
    ("a_cpu_goes_and_comes", faults::hotplug),
    ("a_master_goes_and_comes", faults::master_goes),
    ("control_groups_go", faults::cgroups_go),
    ("short_lives_while_published", faults::short_lives),
    ("two_thousand_tasks", faults::many_tasks),
    ("an_error_gives_the_tasks_back", faults::error),
    ("the_watchdog_gives_the_tasks_back", faults::stall),
];

/// Those of a guest whose clock counts instructions: shares and waits are its own then, and not
/// those of its host.
const TIMED: [Test; 4] = [
    ("weights_are_honoured", weights),
    ("waits_are_bounded", waits::bounded),
    ("control_groups_have_their_weights", services::cgroup_weights),
    ("control_groups_keep_their_quota", services::quotas),
];

/// Runs the tests whose names have `only` in them.
pub(crate) fn test(length: Length, only: &str) -> Result<()> {
    run(&TESTS, length, only)
}

/// The same for those that need the guest's own clock.
pub(crate) fn timed(length: Length, only: &str) -> Result<()> {
    run(&TIMED, length, only)
}

fn run(tests: &[Test], length: Length, only: &str) -> Result<()> {
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| name.contains(only)).collect();
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in chosen {
        let start = Instant::now();
        let outcome = watched(name, || test(length)).and_then(|()| {
            ensure!(Remote::is_vacant()?, "it still runs after the test");
            faults::no_complaints()
        });
        let took = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => passed += 1,
            Err(_) => failed += 1,
        }
        let word = outcome.map_or_else(|error| format!("FAILED: {error:#}"), |()| "ok".into());
        println!("test {name} ... {word} ({took:.1} s)");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured");
    ensure!(failed == 0 && passed > 0, "{failed} failed");
    Ok(())
}

/// Says each minute that it still runs, so that one which hangs is known by its name.
fn watched<T>(name: &str, test: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for minutes in 1.. {
                match is_done.recv_timeout(Duration::from_secs(60)) {
                    Err(RecvTimeoutError::Timeout) => println!("  {name}: {minutes} min"),
                    _ => break,
                }
            }
        });
        let outcome = test();
        drop(done);
        outcome
    })
}

/// The paper's setting, with everything counted.
pub(crate) fn paper_settings() -> Settings {
    Settings { survey: true, max_delay_ns: None, ..Settings::default() }
}

pub(crate) fn attach() -> Result<Scheduler> {
    attach_with(&paper_settings())
}

pub(crate) fn attach_with(settings: &Settings) -> Result<Scheduler> {
    Ok(Scheduler::attach(settings, &Roles::whole_machine(&Machine::here())?)?)
}

pub(crate) fn plain(settings: Settings) -> Settings {
    Settings { bonus: Bonus::Ns(0), ..settings }
}

/// The kernel's verifier walks through no more than this of any program.
const INSTRUCTIONS_MAX: u32 = 20_000;

fn attaches_and_leaves(length: Length) -> Result<()> {
    let cycles = if length == Length::Long { 100 } else { 5 };
    let mut seconds = Vec::new();
    for _ in 0..cycles {
        let start = Instant::now();
        let scheduler = attach()?;
        seconds.push(start.elapsed().as_secs_f64());
        ensure!(Remote::is_running()?, "attached and not running");
        let ended = scheduler.stop()?.context("it didn't say how it ended")?;
        ensure!(ended.reason == "unregistered from user space", "{ended:?}");
        ensure!(Remote::is_vacant()?, "stopped and still running");
    }
    let typical = median(seconds);
    let scheduler = attach()?;
    let programs = Remote::verified();
    ensure!(!programs.is_empty(), "no program is loaded");
    let most = programs.iter().max_by_key(|program| program.instructions).context("programs")?;
    println!("  attached in {typical:.2} s (median of {cycles}); most verified: {most:?}");
    ensure!(most.instructions <= INSTRUCTIONS_MAX, "{most:?} is above {INSTRUCTIONS_MAX}");
    // A second is requested, and it is less on a host that has nothing else to do.
    ensure!(typical <= 5.0, "attaching took {typical:.2} s");
    drop(scheduler);
    Ok(())
}

/// Threads of each process on each CPU: the paper has 25.
const THREADS: &str = "8";

fn aggregates(_: Length) -> Result<()> {
    let scheduler = attach()?;
    let _load = Load::start(2, &["work", THREADS, "60000"])?;
    std::thread::sleep(Duration::from_secs(1));
    let (mut fair, mut aggregated) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        fair.push(look(&scheduler, &plain(paper_settings()), 1200)?);
        aggregated.push(look(&scheduler, &paper_settings(), 1200)?);
    }
    println!("  bonus 0:     {}", fair[2]);
    println!("  bonus 50 ms: {}", aggregated[2]);
    let of = |all: &[Stats], share: fn(&_) -> Option<f64>| {
        let shares: Option<Vec<f64>> = all.iter().map(share).collect();
        shares.map(median).context("nothing was counted")
    };
    let taken = of(&aggregated, Stats::taken_share)?;
    let same = of(&aggregated, Stats::same_share)?;
    let corun = (of(&fair, Stats::corun_share)?, of(&aggregated, Stats::corun_share)?);
    println!("  taken {taken:.4}, same {same:.3}, corun {:.3} to {:.3}", corun.0, corun.1);
    ensure!(of(&fair, Stats::taken_share)? < 0.01, "bonus 0 aggregates");
    ensure!(taken >= 0.99, "taken {taken:.4} of the chances (E3.8: above 0.99)");
    ensure!(same >= 0.95, "same {same:.3}");
    ensure!(corun.1 >= 1.4 * corun.0, "corun {:.3} to {:.3}", corun.0, corun.1);
    let last = &aggregated[2];
    let most = u64::from(paper_settings().scan_max);
    ensure!(last.scanned_max() <= Some(most), "a decision looked at more than {most}");
    faults::nobody_waited_too_long(&scheduler, 20)?;
    drop(scheduler);
    Ok(())
}

fn observed(_: Length) -> Result<()> {
    // Before the load: beside one, loading the programs takes longer than the load lasts.
    let observer = Observer::attach(Key::AddressSpace, &Roles::alone())?;
    let _load = Load::start(2, &["work", THREADS, "60000"])?;
    std::thread::sleep(Duration::from_secs(1));
    let before = observer.stats()?;
    std::thread::sleep(Duration::from_millis(1500));
    ensure!(Remote::is_vacant()?, "an observer schedules");
    let counted = observer.stats()?.since(&before);
    println!("  {counted}");
    let (same, corun) = (counted.same_share(), counted.corun_share());
    ensure!(same.is_some_and(|share| share < 0.9), "same {same:?}, of two programs by turns");
    ensure!(corun.is_some_and(|share| share < 0.9), "corun {corun:?}");
    ensure!(counted.decisions == 0, "who only counts decides");
    drop(observer);
    Ok(())
}

fn settings_change(_: Length) -> Result<()> {
    let scheduler = attach()?;
    let _load = Load::start(2, &["work", "3", "60000"])?;
    std::thread::sleep(Duration::from_millis(700));
    let with = look(&scheduler, &paper_settings(), 500)?;
    ensure!(with.picked_companion > 0 && with.picked_member > 0, "{}", with);
    // Two masters: each slave follows its own.
    scheduler.remote().set_roles(&Roles::by_core(&Machine::here())?)?;
    let cores = look(&scheduler, &paper_settings(), 500)?;
    ensure!(cores.picked_companion > 0, "by core: {}", cores);
    // Through another process, as an operator does.
    Load::start(1, &["set", "roles=alone", "limit=3"])?.finish()?;
    ensure!(scheduler.remote().settings()?.limit == 3, "the limit wasn't set");
    let alone = look(&scheduler, &Settings { limit: 3, ..paper_settings() }, 500)?;
    ensure!(alone.picked_companion == 0, "no slave, and yet companions were chosen");
    let most = 3 * (alone.picked_head + 4);
    ensure!(alone.picked_member <= most, "more than 3 in a row: {}", alone);
    ensure!(alone.at_limit > 0, "the limit was never reached");
    let none = look(&scheduler, &Settings { limit: 0, ..paper_settings() }, 500)?;
    ensure!(none.taken == 0, "aggregated beyond a limit of 0");
    drop(scheduler);
    Ok(())
}

fn tuner(_: Length) -> Result<()> {
    // The one who tunes is woken up beside the load, and isn't to wait for a second each time.
    let impatient = Settings { patience_ns: 60_000_000, ..paper_settings() };
    let scheduler = attach_with(&plain(impatient))?;
    let _load = Load::start(2, &["work", "4", "90000"])?;
    std::thread::sleep(Duration::from_millis(700));
    let printed = Load::start(1, &["tune", "5000", "200"])?.finish()?;
    println!("  {}", printed[0]);
    let tuned = scheduler.remote().settings()?;
    let found = look(&scheduler, &tuned, 1000)?.same_share().context("nothing was counted")?;
    let by_hand =
        look(&scheduler, &impatient, 1000)?.same_share().context("nothing was counted")?;
    ensure!(found >= 0.95 * by_hand, "same {found:.3}, by the paper's bonus {by_hand:.3}");
    drop(scheduler);
    Ok(())
}

fn processes_aggregate(_: Length) -> Result<()> {
    let by_parent = Settings { key: Key::Parent, ..paper_settings() };
    let scheduler = attach_with(&by_parent)?;
    let load = Load::start(2, &["fork", "3", "5000"])?;
    std::thread::sleep(Duration::from_millis(1500));
    let parents = look(&scheduler, &by_parent, 1000)?;
    let spaces = look(&scheduler, &paper_settings(), 500)?;
    println!("  by parent: {}", parents);
    println!("  by address space: {}", spaces);
    let (Some(same), Some(apart)) = (parents.same_share(), spaces.same_share()) else {
        anyhow::bail!("nothing was counted");
    };
    ensure!(same > 0.75, "same {same:.3} by parent");
    ensure!(apart < 0.1, "same {apart:.3} by address space, of processes of one thread");
    load.finish()?;
    drop(scheduler);
    Ok(())
}

fn cgroups(_: Length) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let folder = "/sys/fs/cgroup/itas-test";
    std::fs::create_dir_all(folder)?;
    let scheduler = attach_with(&Settings { key: Key::Cgroup, ..paper_settings() })?;
    let load = Load::start(2, &["work", "3", "6000"])?;
    let held = load.pids()[0].to_string();
    std::fs::write(format!("{folder}/cgroup.procs"), held)?;
    std::thread::sleep(Duration::from_millis(700));
    let settings = Settings { key: Key::Cgroup, limit: u32::MAX, ..paper_settings() };
    let both = look(&scheduler, &settings, 700)?;
    ensure!(both.taken_share() > Some(0.9), "by cgroup: {}", both);
    // Neither the folder's group nor the root's, in which all others are, by a bonus of its own.
    let of = |path: &str| std::fs::metadata(path).map(|data| data.ino());
    for group in [of(folder)?, of("/sys/fs/cgroup")?] {
        scheduler.remote().set_bonus_of(Service::Cgroup(group), Some(0))?;
    }
    let none = look(&scheduler, &settings, 700)?;
    ensure!(none.taken_share() < Some(0.05), "bonus 0 of both: {}", none);
    scheduler.remote().set_bonus_of(Service::Cgroup(of(folder)?), None)?;
    let one = look(&scheduler, &settings, 700)?;
    ensure!(one.taken > none.taken, "bonus back: {}", one);
    load.finish()?;
    drop(scheduler);
    std::fs::remove_dir(folder)?;
    Ok(())
}

fn weights(_: Length) -> Result<()> {
    let scheduler = attach_with(&plain(paper_settings()))?;
    let me = std::env::current_exe()?;
    let me = me.to_str().context("a path in UTF-8")?;
    let beside =
        |nice: &str, words: &[&str]| Load::commands(1, &[&["nice", "-n", nice], words].concat());
    let number = |load: Load| -> Result<f64> {
        let printed = load.finish()?;
        Ok(printed[0].split(' ').next().context("a number")?.parse()?)
    };
    // On one CPU, by long spins, as switches are charged too. The light one lives within the time
    // of the other.
    let pinned = |ms| ["taskset", "4", me, "work", "1", ms, "100"];
    let usual = beside("0", &pinned("5000"))?;
    std::thread::sleep(Duration::from_millis(500));
    let light = beside("10", &pinned("2500"))?;
    let (light, usual) = (number(light)?, number(usual)?);
    let share = (light / 2.5) / ((light + usual) / 5.0);
    println!("  nice 10 beside nice 0 gets {share:.3} (0.097 by their weights)");
    ensure!((share - 0.097).abs() <= 0.03, "nice 10 beside nice 0 gets {share:.3}, not 0.097");
    // On all of them, where threads go by themselves.
    let loads = ["0", "5", "10"].map(|nice| beside(nice, &[me, "spin", "1", "8000"]));
    let times: Vec<f64> = loads.into_iter().map(|load| number(load?)).collect::<Result<_>>()?;
    let all: f64 = times.iter().sum();
    let shares: Vec<f64> = times.iter().map(|time| time / all).collect();
    println!("  nice 0, 5 and 10 on four CPUs get {shares:.3?} (0.697, 0.228, 0.075)");
    for (share, due) in shares.iter().zip([0.697, 0.228, 0.075]) {
        ensure!((share - due).abs() <= 0.03, "a share of {share:.3}, due is {due:.3}");
    }
    drop(scheduler);
    Ok(())
}
