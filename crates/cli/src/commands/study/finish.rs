//! After the last sample: Parquet, report, summary, exit status.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use workahead_reproduce::functions;
use workahead_study::results::{Finding, Results};
use workahead_study::runner::End;
use workahead_study::verdict::Verdict;
use workahead_study::{findings, table};

use super::summary;
use crate::output;

/// The files made from the observations.
#[derive(Debug, Serialize)]
pub(crate) struct StudyFiles {
    dir: PathBuf,
    parquet: PathBuf,
    report: PathBuf,
}

#[derive(Serialize)]
struct Facts<'a> {
    study: &'a str,
    title: &'a str,
    scale: &'a Option<String>,
    run_plan_fingerprint: &'a str,
    machine: &'a str,
    tier: &'a str,
    complete: bool,
    /// Processor time over that requested by the threads; below 0.8 the run was disturbed.
    cpu_share: Option<f64>,
    samples: usize,
    #[serde(flatten)]
    written: &'a StudyFiles,
    findings: Vec<Finding>,
    verdicts: Vec<Verdict>,
}

/// Ends a run that would exceed its time limit.
pub(crate) fn cut_short(dir: &Path, exceeded: &str) -> anyhow::Result<ExitCode> {
    let results = Results::load(dir)?;
    write_data(dir, &results)?;
    let (kept, all) = (results.observations.len(), results.run_plan.samples());
    bail!(
        "{exceeded}: {kept} of {all} samples kept, `workahead study resume {}` continues",
        dir.display()
    )
}

/// Ends `run` and `resume`.
pub(crate) fn ended(dir: &Path, end: End, json: bool) -> anyhow::Result<ExitCode> {
    let results = Results::load(dir)?;
    if end == End::Stopped {
        write_data(dir, &results)?;
        let kept = results.observations.len();
        bail!(
            "interrupted, {kept} of {} samples kept: `workahead study resume {}` continues",
            results.run_plan.samples(),
            dir.display()
        );
    }
    let written = write(dir, &results)?;
    print(&results, &written, json)?;
    if let End::Failures(failures) = end {
        let first = results.findings().into_iter().find_map(|f| Some((f.label, f.failure?)));
        let (label, failure) = first.unwrap_or_default();
        bail!(
            "{failures} of {} cells failed, e.g. {label}: {failure}",
            results.run_plan.cells.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files made from the observations.
pub(crate) fn write(dir: &Path, results: &Results) -> anyhow::Result<StudyFiles> {
    let parquet = write_data(dir, results)?;
    let report = workahead_report::write(dir, results, &functions::sections(results))?;
    Ok(StudyFiles { dir: dir.to_owned(), parquet, report })
}

/// Writes the files for other programs, also of an incomplete run. Returns the observations' path.
fn write_data(dir: &Path, results: &Results) -> anyhow::Result<PathBuf> {
    findings::write(dir, results)?;
    Ok(table::write(dir, results)?)
}

/// Prints the summary.
pub(crate) fn print(results: &Results, written: &StudyFiles, json: bool) -> anyhow::Result<()> {
    if !json {
        return output::text(&summary::text(results, &written.report));
    }
    output::json(&Facts {
        study: &results.spec.id,
        title: &results.spec.title,
        scale: &results.spec.scale,
        run_plan_fingerprint: &results.record.run_plan_fingerprint,
        machine: &results.record.host.name,
        tier: &results.record.host.tier,
        complete: results.is_complete(),
        cpu_share: results.cpu_share(),
        samples: results.observations.len(),
        written,
        findings: results.findings(),
        verdicts: results.verdicts(),
    })
}
