//! `workahead capture`: what a live server and its machine do for some minutes, kept for
//! `workahead compare`.
//!
//! ```text
//! URL ─► its user's rights ─► settings, tables ─► windows, until --for or Ctrl-C ─► capture.json
//!                                                  └ sessions, counters, /proc
//! ```

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;
use workahead_engines::observer::capture::Recorder;
use workahead_machine::private_directory;
use workahead_study::capture::{Capture, WINDOWS_MIN};
use workahead_study::directory;
use workahead_study::error::StudyError;

use super::study::arguments::ObservedServerArguments;
use super::study::{duration, summary};
use crate::errors::WrongUse;
use crate::{interrupt, output};

/// Windows of a capture: enough for their spread, and long enough that counts that PostgreSQL's
/// sessions hand in once a second are nearly whole.
const WINDOWS: u32 = 12;

/// Others may not read it: it has settings, names of tables, and texts of statements.
const MODE: u32 = 0o700;
const OTHERS: u32 = 0o077;

const EXAMPLES: &str = "\
Examples:
  workahead capture --attach postgres:///shop --out monday
  workahead capture --attach postgres://me@/shop?host=/run/postgresql --for 10m --out after
  workahead compare monday after

The server is only read. Run it on the server's machine, through its socket, under its usual load;
Ctrl-C ends it early and keeps what was seen.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ObservedServerArguments,
    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "2m", value_parser = duration::parse)]
    time: Duration,
    /// Where the capture goes: a directory, which only you may enter
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Plan statements of this user too, which may run code of theirs with your rights
    ///
    /// In PostgreSQL those of the database's owner, of superusers and your own are planned anyway.
    /// While it plans, a server runs functions that a statement reaches.
    #[arg(long, value_name = "USER")]
    plans_of: Vec<String>,
    /// Replace an existing result, once there is a capture
    #[arg(long)]
    force: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The result, printed.
#[derive(Serialize)]
struct Facts<'a> {
    out: &'a PathBuf,
    software: &'a str,
    windows: usize,
    seconds: f64,
    counted: &'a str,
    ended: f64,
    statements: usize,
    plans: usize,
    tables: usize,
    indexes: usize,
    settings: usize,
    missing: &'a [String],
    lost: Option<&'a str>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.server.prints_role()? {
        return Ok(ExitCode::SUCCESS);
    }
    args.check()?;
    interrupt::listen()?;
    let target = args.server.examined()?;
    args.reserve()?;
    let recorder = Recorder::begin(&target, &args.plans_of)?;
    if !args.json {
        // Standard error may be closed; the capture matters more.
        let time = summary::duration(args.time.as_secs_f64());
        output::note(&format!("capturing for {time}; Ctrl-C keeps the capture until then"));
    }
    let capture = watch(recorder, args.time);
    if capture.windows.is_empty() {
        match &capture.lost {
            Some(lost) => bail!("nothing was captured: {lost}: run it again"),
            None => bail!("nothing was captured: it was interrupted before its first window ended"),
        }
    }
    args.keep(&capture)?;
    output::show(args.json, &args.facts(&capture), || text(&args, &capture))?;
    match &capture.lost {
        Some(lost) => bail!(
            "the capture ended after {}: {lost}; the part captured is in {}",
            summary::duration(capture.seconds()),
            args.out.display()
        ),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl Args {
    fn check(&self) -> anyhow::Result<()> {
        let window = self.time / WINDOWS;
        if window >= Duration::from_secs(1) {
            return Ok(());
        }
        Err(WrongUse::error(format!(
            "--for {:?} is too short for a comparison: watch for {WINDOWS} s at least, two minutes \
             are usual",
            self.time
        )))
    }

    /// Checks that the capture can be kept; an earlier one stays until there is one.
    fn reserve(&self) -> anyhow::Result<()> {
        let write = |source| StudyError::Write { path: self.out.clone(), source };
        private_directory::make(&self.out, MODE).map_err(write)?;
        let mode = fs::metadata(&self.out).map_err(write)?.permissions().mode();
        if mode & OTHERS != 0 {
            // One that was made for this just now, but not by us.
            if fs::read_dir(&self.out).map_err(write)?.next().is_some() {
                bail!(
                    "others may enter {}: `chmod go-rwx` it, or choose another directory with --out",
                    self.out.display()
                );
            }
            fs::set_permissions(&self.out, Permissions::from_mode(MODE)).map_err(write)?;
        }
        match self.force {
            true => directory::reserve_replacing(&self.out)?,
            false => directory::reserve(&self.out)?,
        }
        Ok(())
    }

    fn keep(&self, capture: &Capture) -> anyhow::Result<()> {
        self.reserve()?;
        capture.save(&self.out)?;
        Ok(directory::remove_others(&self.out, &[directory::CAPTURE_FILE])?)
    }

    fn facts<'a>(&'a self, capture: &'a Capture) -> Facts<'a> {
        Facts {
            out: &self.out,
            software: &capture.software,
            windows: capture.windows.len(),
            seconds: capture.seconds(),
            counted: &capture.counted,
            ended: capture.ended(),
            statements: capture.statements.len(),
            plans: capture.plans.len(),
            tables: capture.tables.len(),
            indexes: capture.indexes.len(),
            settings: capture.settings.len(),
            missing: &capture.missing,
            lost: capture.lost.as_deref(),
        }
    }
}

/// Watches until the time is over, an interruption comes, or the server goes away.
fn watch(mut recorder: Recorder, time: Duration) -> Capture {
    let (begun, length) = (Instant::now(), time / WINDOWS);
    let mut lost = None;
    while begun.elapsed() + length / 2 <= time {
        match recorder.window(length, &interrupt::is_requested) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) if interrupt::is_requested() => break,
            Err(error) => {
                lost = Some(error.to_string());
                break;
            }
        }
    }
    recorder.end(lost, &interrupt::is_requested)
}

fn text(args: &Args, capture: &Capture) -> String {
    let rate = summary::significant(capture.ended() / capture.seconds());
    let mut lines = vec![format!(
        "{} of {} in {}: {rate} {}/s; {}, {}, {}, {}.",
        summary::duration(capture.seconds()),
        output::short_line(capture.facts.get("server").unwrap_or(&capture.software)),
        args.out.display(),
        capture.counted,
        summary::count(capture.settings.len(), "setting"),
        summary::count(capture.tables.len(), "table"),
        summary::count(capture.statements.len(), "statement"),
        summary::count(capture.plans.len(), "plan"),
    )];
    let missing = capture.missing.iter().map(|missing| output::short_line(missing));
    lines.extend(missing.map(|missing| format!("Not seen: {missing}.")));
    if capture.windows.len() < WINDOWS_MIN {
        lines.push(format!(
            "It has {}, and {WINDOWS_MIN} are needed to compare it: capture for longer.",
            summary::count(capture.windows.len(), "window")
        ));
    }
    lines.join("\n")
}
