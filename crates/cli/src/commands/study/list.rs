//! `workahead study list`.

use std::process::ExitCode;

use serde::Serialize;
use workahead_study::catalogue;
use workahead_study::claim::Requirement;
use workahead_study::spec::Spec;

use super::summary;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study list")]
pub(crate) struct Args {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    id: String,
    title: String,
    question: String,
    engine: String,
    needs: Vec<Requirement>,
    time_s: Option<f64>,
    memory_mib: Option<u64>,
    scales: Vec<String>,
    ledger: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let rows = catalogue::all()
        .iter()
        .map(|study| Spec::parse(study.id, study.text).map(row))
        .collect::<Result<Vec<_>, _>>()?;
    output::show(args.json, &rows, || table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

fn row(spec: Spec) -> Row {
    Row {
        id: spec.id,
        title: spec.title,
        question: spec.question,
        engine: spec.engine,
        needs: spec.needs,
        time_s: spec.time_s,
        memory_mib: spec.memory_mib,
        scales: spec.scales,
        ledger: spec.ledger,
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = summary::table(&["study", "title", "needs", "time", "memory"]);
    for row in rows {
        let needs: Vec<&str> = row.needs.iter().map(|need| need.name()).collect();
        table.add_row([
            row.id.clone(),
            row.title.clone(),
            needs.join(", "),
            row.time_s.map(summary::duration).unwrap_or_default(),
            row.memory_mib.map(|mib| format!("{mib} MiB")).unwrap_or_default(),
        ]);
    }
    format!(
        "{}\n\n`workahead study show STUDY` prints one to copy and edit.",
        summary::lines(table)
    )
}
