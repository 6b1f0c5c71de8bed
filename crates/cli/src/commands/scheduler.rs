//! `workahead scheduler`: threads of an aggregation group scheduled together (sched_ext).

mod advise;
mod compare;
mod load;
mod test;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use workahead_policy::{Tunables, Tuner};
use workahead_scheduler::{
    Error, Event, Metrics, Objective, Remote, Service, Settings, WORDS, changed, notify,
};

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
    Run(RunArgs),
    /// Change settings of the running scheduler
    Set(SetArgs),
    /// Make processes, and those that they start from now on, one aggregation group for any key
    Tag(TagArgs),
    /// Show statistics since it was attached
    Stats {
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Detach the running scheduler
    Stop,
    /// Say whether it could help the load that runs now, from a minute of observation; changes
    /// nothing, and needs no sched_ext
    Advise(advise::Args),
    /// Find the bonus and limit that suit the current load, and keep them set
    Tune(TuneArgs),
    /// Try it on this machine for half a minute with its own load, compare switches with and
    /// without it, and detach
    Test(test::Args),
    /// Compare schedulers under loads: the kernel's own, this one, and others that are installed
    Compare(compare::Args),
    /// A program of the loads
    #[command(hide = true)]
    Load(load::Args),
}

/// Settings as words.
#[derive(Debug, clap::Args)]
struct Words {
    /// Settings to change
    #[arg(value_name = "NAME=VALUE", long_help = WORDS)]
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    words: Words,
    /// Offer the counts to Prometheus, at http://ADDRESS/metrics
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
    /// Don't print a line each second
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    #[command(flatten)]
    words: Words,
    /// Set the bonus of this cgroup only: its directory in cgroup2. Without a bonus, it has that of
    /// all again
    #[arg(long, value_name = "DIR", conflicts_with = "tag")]
    cgroup: Option<PathBuf>,
    /// Set the bonus of the processes with this tag only
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead scheduler tag database $(pidof -s mariadbd)")]
struct TagArgs {
    /// Name of the group
    #[arg(required_unless_present = "remove")]
    name: Option<String>,
    /// Processes
    #[arg(value_name = "PID", required_unless_present = "remove")]
    pids: Vec<u32>,
    /// Take the tags of these processes
    #[arg(long, value_name = "PID", num_args = 1.., conflicts_with_all = ["name", "pids"])]
    remove: Vec<u32>,
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
        Action::Run(args) => attach(&args),
        Action::Set(args) => set(&args),
        Action::Tag(args) => tag(&args),
        Action::Stats { json } => stats(json),
        Action::Stop => Ok(Remote::find()?.ask_to_stop()?),
        Action::Tune(args) => tune(&args),
        Action::Advise(args) => advise::run(&args),
        Action::Test(args) => test::run(&args),
        Action::Compare(args) => compare::run(&args),
        Action::Load(args) => load::run(&args),
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

fn attach(args: &RunArgs) -> anyhow::Result<()> {
    let (settings, roles) = changed(Settings::default(), args.words.each())?;
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    if let Some((_, address)) = &metrics {
        output::text(&format!("metrics at http://{address}/metrics"))?;
    }
    let metrics = metrics.map(|(metrics, _)| metrics);
    let leave = interrupt::listen()?;
    let is_attached = |attached| {
        if let Some(metrics) = &metrics {
            metrics.set_attached(attached);
        }
    };
    let over = workahead_scheduler::run(&settings, roles.as_ref(), leave, |event| match event {
        Event::Attached(losses) => {
            is_attached(true);
            notify("READY=1\nSTATUS=attached")?;
            losses.iter().try_for_each(|loss| output::text(&format!("without: {loss}")))?;
            output::text("attached")
        }
        Event::Counted(last, all) => {
            if let Some(metrics) = &metrics {
                metrics.set_stats(all);
            }
            notify("WATCHDOG=1")?;
            if args.quiet { Ok(()) } else { output::text(&last.to_string()) }
        }
        Event::Detached(ended) => {
            is_attached(false);
            notify(&format!("STATUS=detached: {}", ended.reason))?;
            output::text(&format!("detached: {}", ended.reason))
        }
    });
    is_attached(false);
    over
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let remote = Remote::find()?;
    let (settings, roles) = changed(remote.settings()?, args.words.each())?;
    let service = match &args.cgroup {
        Some(folder) => {
            let data = std::fs::metadata(folder)
                .with_context(|| format!("can't read the cgroup {}", folder.display()))?;
            Some(Service::Cgroup(data.ino()))
        }
        None => args.tag.as_deref().map(Service::Tag),
    };
    if let Some(service) = service {
        if args.words.words.iter().any(|word| !word.starts_with("bonus=")) {
            return Err(WrongUse::error("only `bonus` can be set for a service"));
        }
        let own = (!args.words.words.is_empty()).then(|| settings.bonus_ns());
        return Ok(remote.set_bonus_of(service, own)?);
    }
    remote.set(&settings)?;
    if let Some(roles) = roles {
        remote.set_roles(&roles)?;
    }
    Ok(())
}

fn tag(args: &TagArgs) -> anyhow::Result<()> {
    let remote = Remote::find()?;
    for pid in args.pids.iter().chain(&args.remove) {
        anyhow::ensure!(
            std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "there is no process {pid}"
        );
        remote.set_tag(*pid, args.name.as_deref())?;
    }
    Ok(())
}

fn stats(json: bool) -> anyhow::Result<()> {
    let stats = Remote::find()?.stats()?;
    output::show(json, &stats.figures(), || stats.to_string())
}

fn tune(args: &TuneArgs) -> anyhow::Result<()> {
    let remote = Remote::find()?;
    let stop = interrupt::listen()?;
    let delay_max_ns = u64::try_from(args.delay_max.as_nanos())?;
    let slice_ns = remote.settings()?.slice_ns;
    let mut tuner = Tuner::new(Tunables::default(), slice_ns, delay_max_ns);
    let mut count = || printed(args.objective.as_deref().unwrap_or_default());
    let objective = match args.objective {
        Some(_) => Objective::Growth(&mut count),
        None => Objective::GroupSwitches,
    };
    let found = workahead_scheduler::tune(&remote, &mut tuner, args.window, objective, stop)?;
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
