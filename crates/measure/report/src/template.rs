//! Fills the templates: one HTML file with style and drawings inside, or Markdown for issues and
//! pull requests.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};

use crate::compare;
use crate::error::ReportError;
use crate::page::Page;
use crate::profiled;

const HTML: &str = include_str!("../templates/report.html");
const MARKDOWN: &str = include_str!("../templates/report.md");
const COMPARISON: &str = include_str!("../templates/comparison.html");
const PROFILE: &str = include_str!("../templates/profile.html");
/// The section of counters.
const COUNTED: &str = include_str!("../templates/counted.html");
/// The section of function profiles.
const FUNCTIONS: &str = include_str!("../templates/functions.html");
/// The section of instructions by function.
const INSTRUMENTED: &str = include_str!("../templates/instrumented.html");
/// One table of functions with its flame graph, a part of pages.
const FUNCTIONS_OF: &str = include_str!("../templates/functions_of.html");
/// Causes of a difference, a part of pages.
const CAUSES: &str = include_str!("../templates/causes.html");
/// Pairs of plans, a part of pages.
const PLANS: &str = include_str!("../templates/plans.html");
const STYLE: &str = include_str!("../templates/style.css");

/// The page as HTML.
pub(crate) fn html(page: &Page) -> Result<String, ReportError> {
    sheet(HTML, Value::from(Serde(page)))
}

/// Two results as HTML.
pub(crate) fn comparison(
    page: &compare::Page,
    causes: Option<Value>,
) -> Result<String, ReportError> {
    let page = Value::from(Serde(page));
    sheet(COMPARISON, context! { causes, ..page })
}

/// One profile as HTML.
pub(crate) fn profile(page: &profiled::Page) -> Result<String, ReportError> {
    sheet(PROFILE, Value::from(Serde(page)))
}

/// Everything is escaped except values marked safe here: the style sheet, which is ours, and the
/// drawings, which escape for themselves.
pub(crate) fn sheet(template: &'static str, page: Value) -> Result<String, ReportError> {
    let mut environment = environment(AutoEscape::Html)?;
    environment.add_filter("drawing", |svg: String| Value::from_safe_string(svg));
    environment.add_filter("figure", crate::number::plain);
    environment.add_template("plans.html", PLANS)?;
    environment.add_template("causes.html", CAUSES)?;
    environment.add_template("counted.html", COUNTED)?;
    environment.add_template("functions.html", FUNCTIONS)?;
    environment.add_template("instrumented.html", INSTRUMENTED)?;
    environment.add_template("functions_of.html", FUNCTIONS_OF)?;
    environment.add_template("page.html", template)?;
    let style = Value::from_safe_string(STYLE.to_owned());
    Ok(straight(environment.get_template("page.html")?.render(context! { page, style })?))
}

/// The page as Markdown: everything but the drawings.
pub(crate) fn markdown(page: &Page) -> Result<String, ReportError> {
    let mut environment = environment(AutoEscape::None)?;
    environment.add_filter("text", |text: String| escaped(&text));
    environment.add_filter("fence", |text: String| fence(&straight(text)));
    environment.add_template("report.md", MARKDOWN)?;
    let page = Value::from(Serde(page));
    Ok(straight(environment.get_template("report.md")?.render(context! { page })?))
}

/// Without what turns the direction of the text that follows, which then reads as something else,
/// and what controls a terminal that shows the page.
fn straight(mut page: String) -> String {
    page.retain(|c| {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        !turns && (!c.is_control() || matches!(c, '\n' | '\t'))
    });
    page
}

fn environment(escape: AutoEscape) -> Result<Environment<'static>, minijinja::Error> {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    let mut environment = Environment::new();
    environment.set_syntax(syntax.build()?);
    environment.set_auto_escape_callback(move |_| escape.clone());
    Ok(environment)
}

/// Text that stays text: no tables, no emphasis, no HTML, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A fence that is longer than any run of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_turned_around() {
        assert_eq!(straight("a\u{202e}b\u{2066}c\u{5d0}".to_owned()), "abc\u{5d0}");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("a|b_c\n<d>"), "a\\|b\\_c \\<d\\>");
        assert_eq!(fence("a ``` b"), "````");
        assert_eq!(fence("plain"), "```");
        assert_eq!(fence(&straight("``\u{202e}``".to_owned())), "`````", "as it is on the page");
    }
}
