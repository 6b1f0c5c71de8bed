//! `workahead reproduce`: a paper's experiments, run here, each with its verdict.
//!
//! ```text
//! studies of the paper ──► complete: reused · begun: continued · else: run ──► rows, page
//!                     └──► needs counters or a model: not run, its rows say so
//! ```
//! A study that can't be run costs its own rows only. Everything lies below one directory, so that
//! the same command resumes after an interruption.

mod one;
mod render;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use workahead_counters::counter::ALL;
use workahead_machine::{Machine, links};
use workahead_reproduce::page::{Parts, Reproduction, State, Study};
use workahead_reproduce::paper::{PAPERS, Paper};
use workahead_reproduce::tables;
use workahead_reproduce::verdicts::{self, StudyRun};
use workahead_study::collection::CollectionOptions;
use workahead_study::engine::Stop;
use workahead_study::error::StudyError;
use workahead_study::record::Host;
use workahead_study::spec::Spec;
use workahead_study::{directory, file, host};

use super::study::arguments::DataArguments;
use super::study::limits::LimitsArguments;
use crate::errors::WrongUse;
use crate::{interrupt, output};

const EXAMPLES: &str = "\
Examples:
  workahead reproduce                        what there is to reproduce
  workahead reproduce hassanein --scale small
  workahead reproduce zhou --out results --json
  workahead reproduce keeton --tier E           on modelled machines alone, on any computer
  workahead reproduce zhou --tier E --change core.outstanding=8 --out eight-lines

Run the same command again to resume; finished results are reused.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Paper to reproduce: hassanein, chang, keeton, yamada or zhou; all are listed if omitted
    paper: Option<String>,
    /// Apply this scale to every study that has it, e.g. small
    #[arg(long, value_name = "NAME")]
    scale: Option<String>,
    /// Only modelled studies (E), or only measured ones; both if omitted
    #[arg(long, value_enum, ignore_case = true)]
    tier: Option<Tier>,
    /// Change a parameter of the modelled machines, by its path, to see which verdicts turn; may be
    /// given several times (`workahead simulate --machine NAME --describe` lists them)
    #[arg(long, value_name = "PATH=VALUE", requires_all = ["tier", "out"])]
    change: Vec<String>,
    /// Samples per cell, in place of the studies' own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: Option<u32>,
    /// Directory of the results, new or existing [default: workahead-results/reproduce-PAPER]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run existing results again
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    limits: LimitsArguments,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Studies by the origin of their figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tier {
    /// Of modelled machines.
    #[value(name = "E", alias = "modelled")]
    Modelled,
    /// Of this machine.
    Measured,
}

impl Tier {
    fn word(self) -> &'static str {
        match self {
            Tier::Modelled => "E",
            Tier::Measured => "measured",
        }
    }
}

impl Args {
    /// Whether a study is requested.
    fn wants(&self, spec: &Spec) -> bool {
        match self.tier {
            None => true,
            Some(Tier::Modelled) => spec.is_modelled(),
            Some(Tier::Measured) => !spec.is_modelled(),
        }
    }
}

/// The page, beside the results.
const PAGE: &str = "reproduce.html";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.paper else {
        output::show(args.json, &render::listed(), render::list)?;
        return Ok(ExitCode::SUCCESS);
    };
    let paper = Paper::find(name).map_err(|error| WrongUse::error(error.to_string()))?;
    if paper.studies().is_empty() {
        bail!(
            "no study of {} comes with this version: `workahead reproduce` lists those that do",
            paper.name
        );
    }
    check_scale(paper, args.scale.as_deref())?;
    if !args.change.is_empty() && args.tier != Some(Tier::Modelled) {
        return Err(WrongUse::error("only modelled machines can be changed: give --tier E"));
    }
    let out = args.out.clone().unwrap_or_else(|| directory_of(paper, &args));
    let machine = Machine::here();
    let everything =
        CollectionOptions { counters: vec![ALL.to_owned()], ..CollectionOptions::default() };
    let here = host::of(&machine, &everything, None);
    let mut ran: Vec<(StudyRun, State)> = Vec::new();
    let stop = Stop::from(interrupt::listen()?);
    for id in studies(paper, &args)? {
        ran.push(one::study(id, &args, &out, &here, &stop)?);
        if stop.is_requested() {
            let again = render::command(&args, &out);
            bail!("interrupted, everything measured is kept: `{again}` continues");
        }
    }
    finish(paper, &args, &out, here, ran)
}

/// The requested studies.
fn studies(paper: Paper, args: &Args) -> anyhow::Result<Vec<&'static str>> {
    let mut requested = Vec::new();
    for id in paper.studies() {
        if args.wants(&one::spec(id)?) {
            requested.push(id);
        }
    }
    if requested.is_empty() {
        let tier = args.tier.map_or("", Tier::word);
        bail!("no study of {} is of tier {tier}: leave --tier out", paper.name);
    }
    Ok(requested)
}

/// Every study has its own scales; a name that none of them has is a misspelling.
fn check_scale(paper: Paper, scale: Option<&str>) -> anyhow::Result<()> {
    let Some(scale) = scale else { return Ok(()) };
    let specs = paper.studies().into_iter().map(one::spec).collect::<anyhow::Result<Vec<_>>>()?;
    let known: Vec<&str> = specs.iter().flat_map(|spec| &spec.scales).map(String::as_str).collect();
    if known.contains(&scale) {
        return Ok(());
    }
    let known: std::collections::BTreeSet<&str> = known.into_iter().collect();
    let remedy = match known.is_empty() {
        true => "its studies have none, leave --scale out".to_owned(),
        false => format!("choose {}", known.into_iter().collect::<Vec<_>>().join(" or ")),
    };
    let name = paper.name;
    Err(WrongUse::error(format!("no study of {name} has a scale `{scale}`: {remedy}")))
}

fn directory_of(paper: Paper, args: &Args) -> PathBuf {
    let scale = args.scale.as_ref().map(|scale| format!("-{scale}")).unwrap_or_default();
    Path::new(directory::DEFAULT).join(format!("reproduce-{}{scale}", paper.name))
}

fn finish(
    paper: Paper,
    args: &Args,
    out: &Path,
    here: Host,
    ran: Vec<(StudyRun, State)>,
) -> anyhow::Result<ExitCode> {
    let studies: Vec<Study> = ran.iter().map(|(ran, state)| study(ran, *state)).collect();
    let ran: Vec<StudyRun> = ran.into_iter().map(|(ran, _)| ran).collect();
    let tables = paper.published().map(|published| tables::of_paper(published, &ran));
    let (machine, tier) = match args.tier {
        Some(Tier::Modelled) => (modelled_machines(&args.change), None),
        _ => (here.name, Some(here.tier)),
    };
    let reproduction = Reproduction::new(Parts {
        paper,
        machine,
        tier,
        scale: args.scale.clone(),
        rows: verdicts::rows(paper, &ran),
        tables: tables.unwrap_or_default(),
        studies,
    });
    let page = out.join(PAGE);
    let source = |path: &Path| {
        let path = path.to_owned();
        move |source| StudyError::Write { path, source }
    };
    links::make_directory(out).map_err(source(out))?;
    file::write_in(out, PAGE, reproduction.html()?.as_bytes())?;
    output::show(args.json, &reproduction, || render::text(&reproduction, &page))?;
    let failed: Vec<&Study> =
        reproduction.studies.iter().filter(|study| study.state == State::Failed).collect();
    if let Some(first) = failed.first() {
        let (failed, all) = (failed.len(), reproduction.studies.len());
        bail!("{failed} of {all} studies could not be run, e.g. {}: {}", first.id, first.why);
    }
    Ok(ExitCode::SUCCESS)
}

fn modelled_machines(changes: &[String]) -> String {
    match changes {
        [] => "Modelled machines".to_owned(),
        some => format!("Modelled machines, changed: {}", some.join(", ")),
    }
}

fn study(ran: &StudyRun, state: State) -> Study {
    Study {
        id: ran.study.clone(),
        dir: ran.outcome.is_ok().then(|| one::folder(&ran.study).to_owned()),
        state,
        why: ran.outcome.as_ref().err().cloned().unwrap_or_default(),
    }
}

/// The papers with their studies.
fn papers() -> impl Iterator<Item = (Paper, Vec<&'static str>)> {
    PAPERS.into_iter().map(|paper| (paper, paper.studies()))
}
