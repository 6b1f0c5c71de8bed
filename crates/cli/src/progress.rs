//! Progress, on standard error and only on a terminal: one line, redrawn in place, for 60 columns.
//! Longer lines are cut at the terminal's edge.

use std::fmt::Write;
use std::io::IsTerminal;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use workahead_machine::limits::Progress;

/// The style of a bar and its text. `{to_go}` is the remaining time.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("our templates are valid");
    style.progress_chars("=> ").with_key("to_go", to_go)
}

/// The bar's own `{eta}` is "0s" before the start.
fn to_go(state: &ProgressState, out: &mut dyn Write) {
    // A bar that can't be drawn is not an error.
    let _ = match state.eta() {
        eta if eta.is_zero() && !state.is_finished() => write!(out, "time to go unknown"),
        eta => write!(out, "{:#} to go", HumanDuration(eta)),
    };
}

/// A bar over `total` pieces of work of a kind ("rows").
pub(crate) fn bar(total: u64, unit: &str) -> ProgressBar {
    let template =
        format!("[{{bar:12}}] {{percent:>3}}%, {{human_pos}} {unit}, {{to_go}}  {{wide_msg}}");
    ProgressBar::new(total).with_style(style(&template))
}

/// A count of pieces of work whose total is unknown.
pub(crate) fn count(unit: &str) -> ProgressBar {
    let template = format!("[{{elapsed}}] {{human_pos}} {unit}  {{wide_msg}}");
    ProgressBar::no_length().with_style(style(&template))
}

/// A bar over the samples of a study; hidden without a terminal.
pub(crate) fn samples(total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "[{bar:16}] {pos}/{len} samples, {to_go}  {wide_msg}";
    ProgressBar::new(total).with_style(style(template))
}

/// The time since a start, and a text; none without a terminal.
#[cfg(feature = "cluster")]
pub(crate) fn spinner() -> Option<ProgressBar> {
    const TICK: std::time::Duration = std::time::Duration::from_millis(100);
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::no_length().with_style(style("{spinner} [{elapsed}] {wide_msg}"));
    bar.enable_steady_tick(TICK);
    Some(bar)
}

/// Steps of the bar of a measurement.
const MEASURING_STEPS: f64 = 1000.0;

/// A bar for the measurement of the machine's limits; hidden without a terminal.
pub(crate) fn measuring(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(MEASURING_STEPS as u64).with_prefix(what);
    bar.with_style(style("[{bar:16}] {wide_msg}"))
}

/// Shows the progress of the measurement on a bar.
pub(crate) fn on(bar: &ProgressBar) -> impl FnMut(Progress<'_>) {
    |at| {
        bar.set_position((at.done * MEASURING_STEPS) as u64);
        bar.set_message(format!("{}: {}", bar.prefix(), at.step));
    }
}
