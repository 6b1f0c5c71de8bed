//! The scheduler by hand, and its test in a guest.
//!
//! ```text
//!   itas run [WORDS]                attach, show a line each second; leaves on a signal or `stop`
//!   itas set [WORDS]                change what runs
//!   itas stats | stop
//!   itas tune MILLISECONDS [WINDOW] find bonus and limit by which siblings follow each other most,
//!                                   while 99 % of wake-ups run within that time; each is tried
//!                                   for two windows of 400 ms, one of them to settle
//!   itas work THREADS MILLISECONDS [SPINS]
//!                                   threads of one process on each CPU, which yield after spins
//!   itas fork CHILDREN MILLISECONDS so many processes of one thread on each CPU, of one parent
//!   itas roam THREADS MILLISECONDS  threads that change their affinity all the time
//!   itas test [NAME | long]         everything, in a guest that nobody needs
//!
//!   WORDS: bonus=NS bonus-per-mille=N limit=N key=mm|cgroup|parent slice=NS patience=NS
//!          survey=0|1 roles=alone|machine|cache|core
//! ```

#![forbid(unsafe_code)]

mod faults;
mod guest;
mod load;
mod work;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use workahead_machine::Machine;
use workahead_policy::{Tunables, Tuner};
use workahead_scheduler::{Bonus, Key, Remote, Roles, Scheduler, Settings, Stats};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match obey(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(words: &[&str]) -> Result<()> {
    match words {
        ["run", words @ ..] => run(words),
        ["set", words @ ..] => set(words),
        ["stats"] => {
            println!("{}", line(&Remote::find()?.stats()?));
            Ok(())
        }
        ["tune", ms, rest @ ..] => {
            let window = rest.first().map_or(Ok(400), |word| word.parse())?;
            tune(Duration::from_millis(ms.parse()?), Duration::from_millis(window))
        }
        ["stop"] => Ok(Remote::find()?.ask_to_stop()?),
        ["work", threads, ms, rest @ ..] => {
            let spins_per_yield = rest.first().map_or(Ok(1), |word| word.parse())?;
            work::run(threads.parse()?, Duration::from_millis(ms.parse()?), spins_per_yield)
        }
        ["fork", children, ms] => work::fork(children.parse()?, ms),
        ["roam", threads, ms] => work::roam(threads.parse()?, Duration::from_millis(ms.parse()?)),
        ["test"] => guest::test(guest::Length::Short, ""),
        ["test", "long"] => guest::test(guest::Length::Long, ""),
        ["test", name] => guest::test(guest::Length::Short, name),
        _ => {
            bail!(
                "usage: itas run|set [NAME=VALUE]... | stats | tune MS | stop | work|fork|roam N MS | test"
            )
        }
    }
}

/// Settings and roles with some changed.
fn changed(mut settings: Settings, words: &[&str]) -> Result<(Settings, Option<Roles>)> {
    let mut roles = None;
    for word in words {
        let (name, value) = word.split_once('=').context("a setting is NAME=VALUE")?;
        match name {
            "bonus" => settings.bonus = Bonus::Ns(value.parse()?),
            "bonus-per-mille" => settings.bonus = Bonus::PerMilleOfSlice(value.parse()?),
            "limit" => settings.limit = value.parse()?,
            "slice" => settings.slice_ns = value.parse()?,
            "patience" => settings.patience_ns = value.parse()?,
            "survey" => settings.survey = value == "1",
            "key" => {
                settings.key = match value {
                    "mm" => Key::AddressSpace,
                    "cgroup" => Key::Cgroup,
                    "parent" => Key::Parent,
                    _ => bail!("key is mm, cgroup or parent"),
                };
            }
            "roles" => {
                let machine = Machine::here();
                roles = Some(match value {
                    "alone" => Roles::alone(),
                    "machine" => Roles::whole_machine(&machine)?,
                    "cache" => Roles::by_last_level_cache(&machine)?,
                    "core" => Roles::by_core(&machine)?,
                    _ => bail!("roles are alone, machine, cache or core"),
                });
            }
            _ => bail!("no setting {name}"),
        }
    }
    Ok((settings, roles))
}

static LEAVE: AtomicBool = AtomicBool::new(false);

fn run(words: &[&str]) -> Result<()> {
    let (settings, roles) = changed(Settings::default(), words)?;
    ctrlc::set_handler(|| LEAVE.store(true, Ordering::Relaxed))?;
    loop {
        let roles = roles.clone();
        let roles = roles.map_or_else(|| Roles::whole_machine(&Machine::here()), Ok)?;
        let scheduler = Scheduler::attach(&settings, &roles)?;
        println!("attached");
        watch(&scheduler)?;
        let ended = scheduler.stop()?.context("the kernel doesn't say how it ended")?;
        println!("detached: {} {}", ended.reason, ended.message);
        if !ended.again {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Shows what is counted, a line each second, until it ends or is to end.
fn watch(scheduler: &Scheduler) -> Result<()> {
    let mut before = Stats::default();
    let mut ticks = 0_u32;
    while !LEAVE.load(Ordering::Relaxed) && !scheduler.remote().is_asked_to_stop()? {
        match scheduler.remote().ended()? {
            Some(ended) if ended.again => return Ok(()),
            Some(ended) => bail!("the kernel took over: {} {}", ended.reason, ended.message),
            None => {}
        }
        std::thread::sleep(Duration::from_millis(100));
        ticks += 1;
        if ticks.is_multiple_of(10) {
            let now = scheduler.remote().stats()?;
            println!("{}", line(&now.since(&before)));
            before = now;
        }
    }
    Ok(())
}

fn set(words: &[&str]) -> Result<()> {
    let remote = Remote::find()?;
    let (settings, roles) = changed(remote.settings()?, words)?;
    remote.set(&settings)?;
    if let Some(roles) = roles {
        remote.set_roles(&roles)?;
    }
    Ok(())
}

fn tune(delay: Duration, window: Duration) -> Result<()> {
    let remote = Remote::find()?;
    let settings = remote.settings()?;
    let delay_max_ns = u64::try_from(delay.as_nanos())?;
    let mut tuner = Tuner::new(Tunables::default(), settings.slice_ns, delay_max_ns);
    let found = workahead_scheduler::tune(&remote, &mut tuner, window, |counted| {
        anyhow::Ok(counted.same_share().unwrap_or(0.0))
    })?;
    let (settings, outcome) = found.context("nothing was tried")?;
    println!(
        "bonus={} limit={}: same {:.3}, 99 % of wake-ups within {} us; {} settings tried",
        settings.bonus_ns(),
        settings.limit,
        outcome.objective,
        outcome.delay_ns / 1000,
        tuner.trials(),
    );
    Ok(())
}

/// What counts, on a line.
fn line(stats: &Stats) -> String {
    let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.3}"));
    let us = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{} us", ns / 1000));
    format!(
        "taken {} of {} chances, same {}, corun {}, {} switches, {} decisions; scanned mean {} \
         p99 {} max {}; wake-up to run p50 {} p99 {}; longest wait {}; kept {} at limit {} overdue \
         {} lost {} direct {} stolen {} balanced {} preempted {}",
        share(stats.taken_share()),
        stats.chances,
        share(stats.same_share()),
        share(stats.corun_share()),
        stats.switches,
        stats.decisions,
        share(stats.scanned_mean()),
        stats.scanned_at(0.99).unwrap_or(0),
        stats.scanned_max().unwrap_or(0),
        us(stats.latency_ns_at(0.5)),
        us(stats.latency_ns_at(0.99)),
        us(Some(stats.wait_max_ns)),
        stats.kept,
        stats.at_limit,
        stats.overdue,
        stats.lost,
        stats.direct,
        stats.stolen,
        stats.balanced,
        stats.preempted,
    )
}
