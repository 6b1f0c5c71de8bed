//! How long threads wait under the kernel's scheduler, ours with its bound, and the paper's pure
//! bonus: two programs whose threads spin and yield beside one that answers requests.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use workahead_scheduler::{Key, Observer, Roles, Settings, Stats};

use crate::guest::{Length, attach_with, paper_settings, plain};
use crate::load::{Load, median};

/// Life of the loads, of which the middle is counted.
const LOAD_MS: &str = "3500";
const SETTLE: Duration = Duration::from_millis(700);
const WINDOW: Duration = Duration::from_millis(2000);
/// Wake-up p99 over that of the kernel's scheduler, at most.
const P99_MOST: f64 = 1.5;
/// Spins and answers, which take one, over those without a bonus, at least.
const WORK_LEAST: f64 = 0.95;
/// `CONFIG_HZ=250`.
const TICK_NS: u64 = 4_000_000;

/// The result of a run: counts, spins and answers.
struct Run {
    stats: Stats,
    spins: f64,
    answers: f64,
}

/// Counts a window in the life of the loads.
fn run(read: &dyn Fn() -> Result<Stats>) -> Result<Run> {
    let spinning = Load::start(2, &["work", "4", LOAD_MS])?;
    let answering = Load::start(1, &["serve", "1", LOAD_MS])?;
    std::thread::sleep(SETTLE);
    let before = read()?;
    std::thread::sleep(WINDOW);
    let stats = read()?.since(&before);
    let number = |printed: &String| -> Result<f64> {
        Ok(printed.split(' ').next().context("a number")?.parse()?)
    };
    let sum = |load: Load| load.finish()?.iter().map(number).sum::<Result<f64>>();
    Ok(Run { stats, spins: sum(spinning)?, answers: sum(answering)? })
}

fn ours(settings: &Settings) -> Result<Run> {
    let scheduler = attach_with(settings)?;
    let run = run(&|| Ok(scheduler.remote().stats()?))?;
    drop(scheduler);
    Ok(run)
}

fn default() -> Result<Run> {
    let observer = Observer::attach(Key::AddressSpace, &Roles::alone())?;
    run(&|| Ok(observer.stats()?))
}

fn p99(run: &Run) -> Result<f64> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    run.stats.latency_ns_at(0.99).map(|ns| ns as f64 / 1e6).context("nobody woke up")
}

/// Compares them, in the middle of a number of rounds.
pub(crate) fn bounded(length: Length) -> Result<()> {
    let rounds = if length == Length::Long { 5 } else { 1 };
    // As operators run it: a survey looks at all of a queue.
    let survey = false;
    let bounded = Settings { survey, ..Settings::default() };
    let pure = Settings { survey, ..paper_settings() };
    let names = ["the kernel's", "no bonus", "max-delay", "pure bonus"];
    let mut runs: [Vec<Run>; 4] = Default::default();
    for round in 0..rounds {
        let these = [default()?, ours(&plain(pure))?, ours(&bounded)?, ours(&pure)?];
        for ((name, run), kept) in names.iter().zip(these).zip(&mut runs) {
            println!(
                "  {round} {name}: {} spins, {} answers, {}",
                run.spins, run.answers, run.stats
            );
            kept.push(run);
        }
    }
    let middle = |runs: &[Run], of: &dyn Fn(&Run) -> Result<f64>| -> Result<f64> {
        Ok(median(runs.iter().map(of).collect::<Result<_>>()?))
    };
    for (name, runs) in names.iter().zip(&runs) {
        println!(
            "  {name}: wake-up p99 {:.2} ms, {} spins, {} answers, same {:.3}",
            middle(runs, &p99)?,
            middle(runs, &|run| Ok(run.spins))?,
            middle(runs, &|run| Ok(run.answers))?,
            middle(runs, &|run| run.stats.same_share().context("no switches"))?,
        );
    }
    let [default, fair, bounded, _] = &runs;
    let over = |usual: &[Run], of: &dyn Fn(&Run) -> Result<f64>| -> Result<f64> {
        Ok(middle(bounded, of)? / middle(usual, of)?)
    };
    let done = |run: &Run| Ok(run.spins + run.answers);
    let same = |run: &Run| run.stats.same_share().context("no switches");
    let (waits, kernel, work) = (over(default, &p99)?, over(default, &done)?, over(fair, &done)?);
    let together = over(fair, &same)?;
    let longest = bounded.iter().filter_map(|run| run.stats.latency_ns_at(1.0)).max();
    let longest = longest.context("nobody woke up")?;
    let most = Settings::default().max_delay_ns.context("a bound")? + TICK_NS;
    println!(
        "  wake-up p99 {waits:.2} and work {kernel:.3} of the kernel's, work {work:.3} and switches \
         within a group {together:.2} of those without a bonus; longest wake-up {} us of {} us",
        longest / 1000,
        most / 1000
    );
    ensure!(waits <= P99_MOST, "wake-up p99 is {waits:.2} of the kernel's, at most {P99_MOST}");
    ensure!(work >= WORK_LEAST, "the work is {work:.3} of that without a bonus");
    ensure!(together > 1.5, "switches within a group {together:.2} of those without a bonus");
    ensure!(longest <= most, "a thread that woke up waited {longest} ns of {most}");
    Ok(())
}
