//! Progress, on standard error and only on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use workahead_machine::limits::Progress;

/// A bar over `total` pieces of work of a kind ("rows").
pub(crate) fn bar(total: u64, unit: &str) -> ProgressBar {
    let template = format!(
        "{{msg:12}} {{bar:30}} {{percent:>3}}% {{human_pos}}/{{human_len}} {unit}, \
         {{eta}} to go"
    );
    let style = ProgressStyle::with_template(&template).expect("the template above is valid");
    ProgressBar::new(total).with_style(style)
}

/// Steps of the bar of a measurement.
const MEASURING_STEPS: f64 = 1000.0;

/// A bar for the measurement of the machine's limits; hidden where nobody looks.
pub(crate) fn measuring(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = format!("{{bar:30}} {what}: {{msg}}");
    let style = ProgressStyle::with_template(&template).expect("the template above is valid");
    ProgressBar::new(MEASURING_STEPS as u64).with_style(style.progress_chars("=> "))
}

/// Shows on a bar how far the measurement is.
pub(crate) fn on(bar: &ProgressBar) -> impl FnMut(Progress<'_>) {
    |at| {
        bar.set_position((at.done * MEASURING_STEPS) as u64);
        bar.set_message(at.step.to_owned());
    }
}
