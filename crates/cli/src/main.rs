//! The command `workahead`: reads the command line, prints, exits. No other crate does any of it.
//!
//! ```text
//! main ── parse ──► commands::Command::run ──► Ok(status)
//!           │                  └─────────────► Err ──► errors::report: one line, status 1 or 2
//!           └── wrong use: one line, status 2
//! ```
//!
//! Ahead of it all, a password among the arguments is taken out of the list of processes.

#![forbid(unsafe_code)]

mod commands;
mod engines;
mod errors;
mod interrupt;
mod memory;
mod output;
mod password;
mod progress;
mod settings;
mod supervisor;
mod threads;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;

/// Finds the cycles a database loses waiting for memory, and gives them back.
#[derive(Debug, Parser)]
#[command(name = "workahead", version, max_term_width = 100, after_help = EXAMPLES)]
struct Workahead {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  workahead machine                         what this computer is
  workahead limits                          what its memory can do, measured
  workahead study run quick                 what each technique is worth here
  workahead data tpch --scale 1 --out tpch  data to join
  workahead join --left tpch/orders.parquet --right tpch/lineitem.parquet \\
      --on o_orderkey=l_orderkey            join it

Exit status: 0 done, 1 failed, 2 wrong use.";

/// Commands whose JSON names no file.
const NAMELESS: [&str; 4] = ["counters", "limits", "machine", "scheduler"];
/// Commands whose `--out` is a directory of results, which are JSON.
const KEEPING: [&str; 5] = ["advise", "capacity", "capture", "reproduce", "study"];

/// JSON has no form for a path that is not UTF-8: it is refused before anything is written to it.
/// So is the directory of a server, whose settings are text.
fn check_paths() -> anyhow::Result<()> {
    let arguments = std::env::args_os().take_while(|argument| argument != "--");
    let arguments: Vec<_> = arguments.collect();
    let command = arguments.get(1).and_then(|command| command.to_str()).unwrap_or_default();
    let of_json = arguments.iter().any(|argument| argument == "--json");
    let of_json = of_json && !NAMELESS.contains(&command);
    let out = KEEPING.contains(&command).then_some("--out");
    let is_kept = |at: usize| {
        let text = arguments[at].to_string_lossy();
        out.into_iter().chain(["--data-dir"]).any(|option| {
            let joined = text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
            joined || at > 0 && arguments[at - 1] == option
        })
    };
    let wrong = (0..arguments.len()).filter(|&at| arguments[at].to_str().is_none());
    let (kept, others): (Vec<usize>, Vec<usize>) = wrong.partition(|&at| is_kept(at));
    let (at, remedy) = match (kept.first(), others.first()) {
        (Some(&at), _) => (at, "give another path"),
        (None, Some(&at)) if of_json => (at, "give another path, or leave --json out"),
        _ => return Ok(()),
    };
    let path = arguments[at].display();
    Err(errors::WrongUse::error(format!("{path} is not UTF-8, as all of JSON is: {remedy}")))
}

fn main() -> ExitCode {
    if let Err(error) = password::leave_process_list().and_then(|()| check_paths()) {
        return errors::report(&error);
    }
    let result = match Workahead::try_parse() {
        Ok(workahead) => {
            settings::recover();
            workahead.command.run()
        }
        Err(error) => return errors::report_usage(&error),
    };
    result.unwrap_or_else(|error| errors::report(&error))
}
