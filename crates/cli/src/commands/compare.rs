//! `workahead compare`: two captures, or two results: the differences and their causes.

mod causes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use workahead_advise::causes::Causes;
use workahead_study::capture::Capture;
use workahead_study::directory::COMPARISON_FILE;
use workahead_study::error::StudyError;
use workahead_study::{file, record};

use super::study;
use crate::output;
pub(crate) use causes::{View, text};

const TEMPLATE: &str = include_str!("../../templates/compare.html");

const EXAMPLES: &str = "\
Examples:
  workahead capture --attach postgres:///shop --out monday     (and after the upgrade --out tuesday)
  workahead compare monday tuesday
  workahead compare workahead-results/quick workahead-results/quick-2 --html change.html

Neither is paired: whatever else differs between the times of both is in the difference too.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the first capture, or of the first result
    before: PathBuf,
    /// Directory of the second: of the same server, or of the same study
    after: PathBuf,
    /// Where the page goes [default: compare.html in the second directory]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts<'a> {
    before: &'a Path,
    after: &'a Path,
    html: &'a Path,
    paired: bool,
    #[serde(flatten)]
    causes: &'a Causes,
}

#[derive(Serialize)]
struct Page<'a> {
    kicker: String,
    sentence: &'a str,
    causes: View,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let kinds = [&args.before, &args.after].map(|dir| Kind::of(dir));
    match kinds {
        [Some(Kind::Capture), Some(Kind::Capture)] => captures(&args),
        [Some(Kind::Result), Some(Kind::Result)] => {
            let Args { before, after, html, json } = args;
            study::compare::run(study::compare::Args { before, after, html, json })
        }
        [Some(before), Some(after)] => bail!(
            "{} holds {} and {} {}: compare two captures or two results",
            args.before.display(),
            before.name(),
            args.after.display(),
            after.name()
        ),
        [before, _] => bail!(
            "{} holds neither a capture nor a result (no capture.json, no run.json): name a \
             directory that `capture` or `study run` wrote",
            if before.is_none() { &args.before } else { &args.after }.display()
        ),
    }
}

/// The contents of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Capture,
    Result,
}

impl Kind {
    fn of(dir: &Path) -> Option<Kind> {
        match (Capture::is_in(dir), dir.join(record::FILE).exists()) {
            (true, _) => Some(Kind::Capture),
            (false, true) => Some(Kind::Result),
            (false, false) => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Capture => "a capture",
            Kind::Result => "a result",
        }
    }
}

/// Keeps a comparison's page where it was to go, else beside what came after; returns where.
pub(crate) fn keep_page(
    html: Option<&Path>,
    after: &Path,
    page: &str,
) -> Result<PathBuf, StudyError> {
    match html {
        Some(path) => {
            file::write_whole(path, page.as_bytes())?;
            Ok(path.to_owned())
        }
        None => {
            file::write_in(after, COMPARISON_FILE, page.as_bytes())?;
            Ok(after.join(COMPARISON_FILE))
        }
    }
}

fn captures(args: &Args) -> anyhow::Result<ExitCode> {
    let (before, after) = (Capture::load(&args.before)?, Capture::load(&args.after)?);
    let named = || format!("{} and {}", args.before.display(), args.after.display());
    let causes = Causes::of(&before, &after).with_context(named)?;
    let page = Page {
        kicker: format!(
            "{} against {}, {}",
            args.before.display(),
            args.after.display(),
            after.facts.get("server").unwrap_or(&after.software)
        ),
        sentence: &causes.sentence,
        causes: View::of(&causes),
    };
    let page = workahead_report::document(TEMPLATE, &page)?;
    let html = keep_page(args.html.as_deref(), &args.after, &page)?;
    let facts = Facts {
        before: &args.before,
        after: &args.after,
        html: &html,
        paired: false,
        causes: &causes,
    };
    output::show(args.json, &facts, || format!("{}\n\nreport: {}", text(&causes), html.display()))?;
    Ok(ExitCode::SUCCESS)
}
