//! Failures of the command: one line on standard error, and an exit status.
//!
//! 0 done, 1 failed (a file, the memory), 2 wrong use (the command line). The causes of an error
//! are joined by `: ` so that a line can be searched for in a log; no backtrace.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::output;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

/// Wrong use of the command line: an unknown name, two options that exclude each other. Ends with
/// status 2 and names the remedy.
#[derive(Debug)]
pub(crate) struct WrongUse(pub(crate) String);

impl WrongUse {
    /// An error to return from a command.
    pub(crate) fn error(message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(message.into()))
    }
}

impl Display for WrongUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

/// The reader of our output went away (`| head`): not a failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderGone;

impl Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reader of the output went away")
    }
}

impl std::error::Error for ReaderGone {}

/// Prints an error as one line and chooses the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<ReaderGone>().is_some() {
        return ExitCode::SUCCESS;
    }
    print_line(&chain(error));
    let wrong_use = error.chain().any(|cause| cause.downcast_ref::<WrongUse>().is_some());
    ExitCode::from(if wrong_use { WRONG_USE } else { FAILED })
}

/// The causes joined by `: `, leaving out a cause whose text the one before already ends with
/// (libraries differ on whether a message includes its source).
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = one_line(&cause.to_string());
        if line.ends_with(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

/// An error quotes what it is about; of a very long text, its beginning and its end.
fn one_line(text: &str) -> String {
    const LENGTH_MAX: usize = 2_000;
    let line = output::one_line(text);
    let length = line.chars().count();
    let line = match length.checked_sub(LENGTH_MAX) {
        None | Some(0) => line,
        Some(more) => {
            let beginning: String = line.chars().take(LENGTH_MAX / 2).collect();
            let end: String = line.chars().skip(LENGTH_MAX / 2 + more).collect();
            format!("{beginning} … ({more} more) … {end}")
        }
    };
    output::escaped(&line).into_owned()
}

/// Prints help and version as they are, and clap's errors as one line with status 2.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Fails only when standard output is closed.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(WRONG_USE)
        }
        ErrorKind::InvalidUtf8 => {
            let mut arguments = std::env::args_os();
            let wrong = arguments.find(|argument| argument.to_str().is_none()).unwrap_or_default();
            let wrong = wrong.to_string_lossy();
            print_line(&format!("{} is not UTF-8: give another name", output::escaped(&wrong)));
            ExitCode::from(WRONG_USE)
        }
        _ => {
            print_line(&usage_line(&error.render().to_string()));
            ExitCode::from(WRONG_USE)
        }
    }
}

/// Clap's message up to its usage block, on one line: the error, then its tips.
fn usage_line(rendered: &str) -> String {
    let lines = rendered.lines().take_while(|line| {
        !line.starts_with("Usage:") && !line.starts_with("For more information")
    });
    let mut line = String::new();
    for part in lines.map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with("tip:") {
            line.push_str("; ");
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    line.push_str("; try --help");
    line.strip_prefix("error: ").map(str::to_owned).unwrap_or(line)
}

fn print_line(line: &str) {
    // Standard error may be closed too.
    let _ = writeln!(io::stderr(), "error: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_joined_without_repetition() {
        let error =
            Err::<(), _>(anyhow::anyhow!("no such\n  file")).context("can't read a.parquet");
        assert_eq!(chain(&error.unwrap_err()), "can't read a.parquet: no such file");
        let error = Err::<(), _>(anyhow::anyhow!("gone")).context("can't read: gone").unwrap_err();
        assert_eq!(chain(&error), "can't read: gone");
    }

    #[test]
    fn usage_is_one_line_with_its_tip() {
        let rendered = "error: unexpected argument '--jsn' found\n\n  \
                        tip: a similar argument exists: '--json'\n\nUsage: x\n\n\
                        For more information, try '--help'.\n";
        assert_eq!(
            usage_line(rendered),
            "unexpected argument '--jsn' found; tip: a similar argument exists: '--json'; \
             try --help"
        );
    }
}
