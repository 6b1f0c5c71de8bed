//! `workahead scheduler`: threads of an aggregation group scheduled together (sched_ext).

mod test;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use workahead_policy::{Tunables, Tuner};
use workahead_scheduler::{Error, Event, Objective, Remote, Settings, WORDS, changed};

use crate::errors::WrongUse;
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLE: &str = "Example:\n  workahead scheduler run bonus=0.5slice roles=cache";

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Attach the scheduler and print a line each second; Ctrl-C or `stop` detaches it
    #[command(after_help = EXAMPLE)]
    Run(Words),
    /// Change settings of the running scheduler
    Set(SetArgs),
    /// Show statistics since it was attached
    Stats {
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Detach the running scheduler
    Stop,
    /// Find the bonus and limit that suit the current load, and keep them set
    Tune(TuneArgs),
    /// Try it on this machine for half a minute with its own load, compare switches with and
    /// without it, and detach
    Test(test::Args),
    /// The load of `test`: threads on each CPU that spin and yield
    #[command(hide = true)]
    Load {
        /// Threads on each CPU
        threads: usize,
        /// Duration
        #[arg(value_parser = time)]
        time: Duration,
    },
}

/// Settings as words.
#[derive(Debug, clap::Args)]
struct Words {
    /// Settings to change
    #[arg(value_name = "NAME=VALUE", long_help = WORDS)]
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    #[command(flatten)]
    words: Words,
    /// Set the bonus of this cgroup only: its directory in cgroup2
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead scheduler tune --delay-max 20ms \\\n      \
    --objective \"psql -Atc 'select sum(xact_commit) from pg_stat_database'\"")]
struct TuneArgs {
    /// Upper bound for the 99th percentile of the delay from wake-up to run
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = time)]
    delay_max: Duration,
    /// How long each setting is measured, after the same time to settle
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    window: Duration,
    /// Shell command that prints a growing number whose rate is to be maximised [default: the share
    /// of switches within aggregation groups]
    #[arg(long, value_name = "COMMAND")]
    objective: Option<String>,
}

fn time(text: &str) -> Result<Duration, Error> {
    workahead_scheduler::nanoseconds(text).map(Duration::from_nanos)
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Run(words) => attach(&words),
        Action::Set(args) => set(&args),
        Action::Stats { json } => stats(json),
        Action::Stop => Ok(Remote::find()?.ask_to_stop()?),
        Action::Tune(args) => tune(&args),
        Action::Test(args) => test::run(&args),
        Action::Load { threads, time } => load(threads, time),
    }
    .map(|()| ExitCode::SUCCESS)
    .map_err(|error| match error.downcast_ref::<Error>() {
        Some(Error::Setting(says)) => WrongUse::error(says.clone()),
        _ => error,
    })
}

impl Words {
    fn each(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

fn attach(words: &Words) -> anyhow::Result<()> {
    let (settings, roles) = changed(Settings::default(), words.each())?;
    let leave = interrupt::listen()?;
    workahead_scheduler::run(&settings, roles.as_ref(), leave, |event| match event {
        Event::Attached => output::text("attached"),
        Event::Counted(stats) => output::text(&stats.to_string()),
        Event::Detached(ended) => output::text(&format!("detached: {}", ended.reason)),
    })
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let remote = Remote::find()?;
    let (settings, roles) = changed(remote.settings()?, args.words.each())?;
    if let Some(folder) = &args.cgroup {
        let cgroup = std::fs::metadata(folder)
            .with_context(|| format!("can't read the cgroup {}", folder.display()))?;
        if args.words.words.iter().any(|word| !word.starts_with("bonus=")) {
            return Err(WrongUse::error("only `bonus` can be set for a cgroup"));
        }
        let own = (!args.words.words.is_empty()).then(|| settings.bonus_ns());
        return Ok(remote.set_cgroup_bonus(cgroup.ino(), own)?);
    }
    remote.set(&settings)?;
    if let Some(roles) = roles {
        remote.set_roles(&roles)?;
    }
    Ok(())
}

fn stats(json: bool) -> anyhow::Result<()> {
    let stats = Remote::find()?.stats()?;
    if json { output::json(&stats.figures()) } else { output::text(&stats.to_string()) }
}

fn load(threads: usize, time: Duration) -> anyhow::Result<()> {
    workahead_scheduler::group_load(threads, time, 1)?;
    Ok(())
}

fn tune(args: &TuneArgs) -> anyhow::Result<()> {
    let remote = Remote::find()?;
    let delay_max_ns = u64::try_from(args.delay_max.as_nanos())?;
    let slice_ns = remote.settings()?.slice_ns;
    let mut tuner = Tuner::new(Tunables::default(), slice_ns, delay_max_ns);
    let mut count = || printed(args.objective.as_deref().unwrap_or_default());
    let objective = match args.objective {
        Some(_) => Objective::Growth(&mut count),
        None => Objective::GroupSwitches,
    };
    let found = workahead_scheduler::tune(&remote, &mut tuner, args.window, objective)?;
    let (settings, outcome) = found.context("no setting was tried")?;
    output::text(&format!(
        "bonus={}ns limit={}: {:.3}, 99 % of wake-ups within {} us; {} settings tried",
        settings.bonus_ns(),
        settings.limit,
        outcome.objective,
        outcome.delay_ns / 1000,
        tuner.trials(),
    ))
}

/// The number that a command prints.
fn printed(command: &str) -> anyhow::Result<f64> {
    let output = std::process::Command::new("sh").args(["-c", command]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .with_context(|| format!("`{command}` printed `{text}`, which is not a number"))
}
