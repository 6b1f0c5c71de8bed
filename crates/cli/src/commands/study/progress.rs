//! Progress of a run: a bar on a terminal, one opening line anywhere else.

use std::io::Write;

use indicatif::ProgressBar;
use workahead_study::error::StudyError;
use workahead_study::record::Host;
use workahead_study::run_plan::RunPlan;
use workahead_study::runner::{End, Event};
use workahead_study::spec::Spec;
use workahead_study::verdict;

use super::run_session::Session;
use super::summary;
use crate::output::escaped;

/// Prints the run on standard error, so that a log is not silent for minutes.
pub(crate) fn opening(session: &Session, json: bool) {
    if json {
        return;
    }
    let Session { spec, run_plan, dir, .. } = session;
    let scale = spec.scale.as_ref().map(|s| format!(" at scale {s}")).unwrap_or_default();
    let time = spec.time_s.map(|s| format!(", about {}", summary::duration(s))).unwrap_or_default();
    let (cells, samples) = (run_plan.cells.len(), run_plan.samples());
    // Standard error may be closed; the run matters more.
    let _ = writeln!(
        std::io::stderr(),
        "{}",
        safe(&format!(
            "study {}{scale}: {cells} cells, {samples} samples{time}; result in {}",
            spec.id,
            dir.display()
        ))
    );
}

/// Prints on standard error the requirements that this run does not meet.
pub(crate) fn remark_missing(spec: &Spec, host: &Host) {
    if let Some(missing) = verdict::missing(&spec.needs, host) {
        let _ = writeln!(std::io::stderr(), "claims beyond timing can't be judged: {missing}");
    }
}

/// Runs with a bar on a terminal.
pub(crate) fn shown(
    run_plan: &RunPlan,
    run: impl FnOnce(&mut dyn FnMut(Event<'_>)) -> Result<End, StudyError>,
) -> Result<End, StudyError> {
    let bar = crate::progress::samples(run_plan.samples() as u64);
    let result = run(&mut |event| show(&bar, run_plan, &event));
    bar.finish_and_clear();
    result
}

fn show(bar: &ProgressBar, run_plan: &RunPlan, event: &Event<'_>) {
    match event {
        Event::Start { kept, .. } => {
            bar.set_position(*kept as u64);
            bar.reset_eta();
        }
        Event::WarmUp(cell) => {
            bar.set_message(safe(&format!("warming up {}", cell.label(&run_plan.axes))))
        }
        Event::Next { leave_out, .. } => bar.inc(u64::from(**leave_out)),
        Event::Sample(cell) => bar.set_message(safe(&cell.label(&run_plan.axes))),
        Event::Kept(observation) => {
            bar.inc(1);
            if observation.sample().is_none() {
                let label = run_plan.cells[observation.cell].label(&run_plan.axes);
                bar.println(safe(&format!("failed: {label}")));
            }
        }
    }
}

/// Names of a study's author, for the terminal.
fn safe(text: &str) -> String {
    escaped(text).into_owned()
}
