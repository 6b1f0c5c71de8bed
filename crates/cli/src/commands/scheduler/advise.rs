//! `workahead scheduler advise`: whether the scheduler can help the load of this machine.
//!
//! ```text
//!   /proc, sampled ─► groups by each key ─► the key with most to win ─► a sentence, a table
//!   caches, limits ─┘                                                  └ why not, or what to run
//! ```

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use workahead_machine::Machine;
use workahead_machine::limits::Store;
use workahead_scheduler::{Advice, CacheLevel, GroupUse, KEYS, Obstacle, RunQueues, attachable};

use crate::commands::study::summary;
use crate::errors::WrongUse;
use crate::{interrupt, output};

const EXAMPLES: &str = "Examples:\n  workahead scheduler advise\n  \
    sudo workahead scheduler advise --for 5m --json\n\n\
    Run it while the load is there, as root for the working sets of other users' processes. It \
    reads\n/proc; nothing is scheduled otherwise, and the kernel need not have sched_ext.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How long to observe; Ctrl-C answers from what was seen by then
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = super::time)]
    time: Duration,
    /// The bound on waiting that it would run with
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = super::time)]
    max_delay: Duration,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Between two looks at the threads that run.
const SAMPLE_TIME: Duration = Duration::from_millis(10);
/// Between two looks at all threads.
const REFRESH_TIME: Duration = Duration::from_secs(1);
/// In which used pages count as a working set.
const PAGES_TIME: Duration = Duration::from_millis(100);
/// Groups with less of the CPU time are not shown.
const SHOWN: f64 = 0.01;
/// Shorter turns are of threads that answer, and that a wait of the bound delays by much.
const SHORT_TURN: f64 = 0.1;

/// The result.
#[derive(Serialize)]
struct Facts {
    observed_s: f64,
    waiting_per_cpu: f64,
    key: &'static str,
    advice: Advice,
    /// What to run, if it is worth a try.
    command: Option<String>,
    /// Groups whose threads run briefly: they would wait longer.
    delayed: Vec<String>,
    caches: Vec<CacheLevel>,
    /// Whether the caches' figures are measured ones.
    measured: bool,
    /// Why it can't be tried on this kernel.
    kernel: Option<String>,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    name: String,
    processes: usize,
    threads: usize,
    cpu_share: f64,
    turn_ms: f64,
    chance: f64,
    working_set_bytes: Option<u64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.time < REFRESH_TIME {
        return Err(WrongUse::error("--for is less than a second: too short to see who runs"));
    }
    let machine = Machine::here();
    interrupt::listen()?;
    if !args.json {
        let time = summary::duration(args.time.as_secs_f64());
        output::note(&format!("observing for {time}; Ctrl-C answers from what was seen by then"));
    }
    let (queues, observed_s) = observe(machine.cpus.online.len(), args.time);
    ensure!(
        queues.counts_turns(),
        "this kernel doesn't count the turns of threads (/proc/PID/schedstat): it needs \
         CONFIG_SCHED_INFO, as the kernels of distributions have it"
    );
    let facts = Facts::of(&queues, &machine, args.max_delay, observed_s);
    output::show(args.json, &facts, || facts.text(args.max_delay))
}

/// Looks at the threads for a time, or until Ctrl-C; in all, how long.
fn observe(cpus: usize, time: Duration) -> (RunQueues, f64) {
    let started = Instant::now();
    let mut queues = RunQueues::begin(Path::new("/"), cpus);
    let mut refreshed = started;
    while started.elapsed() < time && !interrupt::is_requested() {
        let looked = Instant::now();
        queues.sample();
        if refreshed.elapsed() >= REFRESH_TIME {
            queues.refresh();
            refreshed = Instant::now();
        }
        // A machine of many threads is looked at less often: at most a tenth of a CPU.
        std::thread::sleep(SAMPLE_TIME.max(10 * looked.elapsed()));
    }
    queues.refresh();
    (queues, started.elapsed().as_secs_f64())
}

impl Facts {
    fn of(queues: &RunQueues, machine: &Machine, max_delay: Duration, observed_s: f64) -> Self {
        let limits = Store::of_user().load(machine);
        let caches = CacheLevel::of(machine, limits.as_ref());
        let used = queues.used_pages(PAGES_TIME);
        let judged = KEYS.map(|key| {
            let mut groups = queues.groups(key);
            used.set(&mut groups);
            let cpu_s: f64 = groups.iter().map(|group| group.load.cpu_s).sum();
            let active = groups.partition_point(|group| group.load.cpu_s >= SHOWN * cpu_s);
            let advice = queues.load(&groups).advice(&caches, max_delay.as_secs_f64());
            groups.truncate(active);
            (key, groups, advice, cpu_s)
        });
        let worth = |advice: &Advice| (advice.obstacle.is_none(), advice.gain);
        // Of equals the first: the paper's groups.
        let best = judged
            .into_iter()
            .reduce(|best, other| if worth(&other.2) > worth(&best.2) { other } else { best });
        let (key, groups, advice, cpu_s) = best.expect("there are keys");
        let command = advice.cache.filter(|_| advice.obstacle.is_none()).map(|cache| {
            let roles = roles(machine, cache);
            let delay_ms = max_delay.as_secs_f64() * 1e3;
            format!(
                "workahead scheduler run key={} roles={roles} max-delay={delay_ms}ms",
                key.word()
            )
        });
        let turn_s = |group: &GroupUse| group.load.cpu_s / group.load.turns;
        let is_delayed = |group: &&GroupUse| {
            group.load.chance == 0.0 && turn_s(group) < SHORT_TURN * max_delay.as_secs_f64()
        };
        let delayed = groups.iter().filter(is_delayed).map(|group| group.name.clone()).collect();
        let shown = |group: GroupUse| Group {
            turn_ms: 1e3 * turn_s(&group),
            name: group.name,
            processes: group.processes.len(),
            threads: group.threads,
            cpu_share: group.load.cpu_s / cpu_s,
            chance: group.load.chance,
            working_set_bytes: group.load.working_set_bytes,
        };
        Self {
            observed_s,
            waiting_per_cpu: queues.waiting(),
            key: key.word(),
            command,
            delayed,
            caches,
            measured: limits.is_some(),
            kernel: attachable().err().map(|error| error.to_string()),
            groups: groups.into_iter().map(shown).collect(),
            advice,
        }
    }

    fn text(&self, max_delay: Duration) -> String {
        let mut text = self.sentence();
        if let Some(command) = &self.command {
            let before = match &self.kernel {
                None => "Try it beside the kernel's own, with a number of yours:\n".to_owned(),
                Some(kernel) => format!("Not on this machine as it is: {kernel}.\nThen:\n"),
            };
            let _ = write!(text, "\n{before}\n  sudo {command}\n");
            if !self.delayed.is_empty() {
                let _ = write!(
                    text,
                    "\nThese run briefly and would wait up to {} ms longer when they wake up: \
                     {}.\n",
                    max_delay.as_secs_f64() * 1e3,
                    self.delayed.join(", ")
                );
            }
        }
        if !self.groups.is_empty() {
            let _ = write!(text, "\n{}", self.table());
        }
        if !self.measured {
            text.push_str(
                "\n\nWhat a line of a cache takes is assumed: `workahead limits` measures it.",
            );
        }
        text
    }

    fn sentence(&self) -> String {
        let size = |cache: CacheLevel| {
            format!("the L{} of {}", cache.level, summary::mebibytes(cache.bytes))
        };
        let Some(obstacle) = self.advice.obstacle else {
            let cache = self.advice.cache.map_or(String::new(), size);
            return format!(
                "Worth a try: {:.0} % of the CPU time may go into lines that other groups \
                 displaced from {cache}.\n",
                100.0 * self.advice.gain
            );
        };
        let why = match obstacle {
            Obstacle::ShortQueues => format!(
                "on average {:.2} threads wait for each CPU, and where none waits there is no \
                 choice",
                self.waiting_per_cpu
            ),
            Obstacle::OneGroup => {
                let name = self.groups.first().map_or("one group", |group| &group.name);
                format!(
                    "{name} has nearly all of the CPU time: its threads follow each other already"
                )
            }
            Obstacle::FewChances => {
                "seldom does a thread wait for a CPU beside one of its own group".to_owned()
            }
            Obstacle::Unknown => {
                return "No answer: no working set could be read; run it as root, or as the user of \
                        the processes.\n"
                    .to_owned();
            }
            Obstacle::AllFit(cache) => format!("all working sets fit {} together", size(cache)),
            Obstacle::NoneFits(cache) => {
                format!("no group that could be kept together fits {}", size(cache))
            }
            Obstacle::LittleToWin => format!(
                "{:.1} % of the CPU time may go into lines that other groups displaced, which a \
                 scheduler in BPF may cost",
                100.0 * self.advice.gain
            ),
        };
        format!("It would not help: {why}.\n")
    }

    fn table(&self) -> String {
        let mut table = summary::table(&[
            "group",
            "processes",
            "threads",
            "CPU",
            "turn",
            "its own waits",
            "uses",
        ]);
        for group in &self.groups {
            table.add_row([
                output::one_line(&group.name),
                group.processes.to_string(),
                group.threads.to_string(),
                format!("{:.0} %", 100.0 * group.cpu_share),
                format!("{} ms", summary::significant(group.turn_ms)),
                format!("{:.0} %", 100.0 * group.chance),
                group.working_set_bytes.map_or("unknown".to_owned(), summary::mebibytes),
            ]);
        }
        summary::right(&mut table, 1..7);
        summary::lines(table)
    }
}

/// Which CPUs should run one group at a time: those that share the cache.
fn roles(machine: &Machine, cache: CacheLevel) -> &'static str {
    let of_a_core = machine.cores.first().map_or(1, |core| core.cpus.len());
    match cache.cpus {
        1 => "alone",
        cpus if cpus <= of_a_core => "core",
        _ => "cache",
    }
}

#[cfg(test)]
mod tests {
    use workahead_scheduler::Settings;

    use super::*;

    #[test]
    fn the_bound_is_the_usual_one() {
        let usual = Settings::default().max_delay_ns.map(Duration::from_nanos);
        let said = <Args as clap::Args>::augment_args(clap::Command::new("advise"));
        let bound = said.get_arguments().find(|argument| argument.get_id() == "max_delay").unwrap();
        let words = bound.get_default_values()[0].to_str().unwrap();
        assert_eq!(super::super::time(words).ok(), usual);
    }
}
