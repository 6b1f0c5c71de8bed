//! Progress, on standard error and only on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` pieces of work of a kind ("rows").
pub(crate) fn bar(total: u64, unit: &str) -> ProgressBar {
    let template = format!(
        "{{msg:12}} {{bar:30}} {{percent:>3}}% {{human_pos}}/{{human_len}} {unit}, \
         {{eta}} to go"
    );
    let style = ProgressStyle::with_template(&template).expect("the template above is valid");
    ProgressBar::new(total).with_style(style)
}
