//! The scheduler by hand, and its test in a guest.
//!
//! ```text
//!   itas run [WORDS]                attach, show a line each second; leaves on a signal or `stop`
//!   itas set [WORDS]                change what runs
//!   itas stats | stop
//!   itas tune MILLISECONDS [WINDOW] find bonus and limit by which members follow each other most,
//!                                   while 99 % of wake-ups run within that time; each is tried
//!                                   for two windows of 400 ms, one of them to settle
//!   itas work THREADS MILLISECONDS [SPINS]
//!                                   threads of one process on each CPU, which yield after spins
//!   itas spin THREADS MILLISECONDS  threads for each CPU, which go where they like; their CPU time
//!   itas serve THREADS MILLISECONDS threads on each CPU that sleep and answer
//!   itas start PROGRAM [WORDS]      start a scheduler's program and stay, for a minute
//!   itas fork CHILDREN MILLISECONDS processes of one thread on each CPU, of one parent
//!   itas roam THREADS MILLISECONDS  threads that change their affinity all the time
//!   itas test [NAME | long]         everything, in a guest that nobody needs
//!   itas timed [NAME | long]        shares and waits, in one whose clock counts instructions
//!                                   (boot.sh -i)
//!
//!   WORDS: bonus=50ms limit=100 key=mm roles=machine …, as `itas` alone lists them
//! ```

#![forbid(unsafe_code)]

mod external;
mod faults;
mod guest;
mod load;
mod services;
mod waits;
mod work;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use workahead_policy::{Tunables, Tuner};
use workahead_scheduler::{Event, Objective, Remote, Settings, WORDS, changed};

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
            println!("{}", Remote::find()?.stats()?);
            Ok(())
        }
        ["tune", ms, rest @ ..] => {
            let window = rest.first().map_or(Ok(400), |word| word.parse())?;
            tune(Duration::from_millis(ms.parse()?), Duration::from_millis(window))
        }
        ["start", program, words @ ..] => external::start(program, words),
        ["stop"] => Ok(Remote::find()?.ask_to_stop()?),
        ["work", threads, ms, rest @ ..] => {
            let spins_per_yield = rest.first().map_or(Ok(1), |word| word.parse())?;
            work::run(threads.parse()?, Duration::from_millis(ms.parse()?), spins_per_yield)
        }
        ["spin", count, ms] => work::spin(count.parse()?, Duration::from_millis(ms.parse()?)),
        ["serve", threads, ms] => work::serve(threads.parse()?, Duration::from_millis(ms.parse()?)),
        ["fork", children, ms] => work::fork(children.parse()?, ms),
        ["roam", threads, ms] => work::roam(threads.parse()?, Duration::from_millis(ms.parse()?)),
        ["test", rest @ ..] => test(guest::test, rest),
        ["timed", rest @ ..] => test(guest::timed, rest),
        _ => {
            let usage = "itas run|set WORDS | stats | tune MS | stop | test | timed \
                         | work|spin|serve|fork|roam N MS";
            bail!("usage: {usage}\n{WORDS}")
        }
    }
}

fn test(run: fn(guest::Length, &str) -> Result<()>, words: &[&str]) -> Result<()> {
    match words {
        ["long", rest @ ..] => run(guest::Length::Long, rest.first().unwrap_or(&"")),
        _ => run(guest::Length::Short, words.first().unwrap_or(&"")),
    }
}

static LEAVE: AtomicBool = AtomicBool::new(false);

fn run(words: &[&str]) -> Result<()> {
    let (settings, roles) = changed(Settings::default(), words.iter().copied())?;
    ctrlc::set_handler(|| LEAVE.store(true, Ordering::Relaxed))?;
    workahead_scheduler::run(&settings, roles.as_ref(), &LEAVE, |event| {
        match event {
            Event::Attached(_) => println!("attached"),
            Event::Counted(stats, _) => println!("{stats}"),
            Event::Detached(ended) => println!("detached: {}", ended.reason),
        }
        anyhow::Ok(())
    })
}

fn set(words: &[&str]) -> Result<()> {
    let remote = Remote::find()?;
    let (settings, roles) = changed(remote.settings()?, words.iter().copied())?;
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
    let found = workahead_scheduler::tune::<anyhow::Error>(
        &remote,
        &mut tuner,
        window,
        Objective::GroupSwitches,
        &AtomicBool::new(false),
    )?;
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
