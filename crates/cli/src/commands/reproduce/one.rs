//! One study of a paper: reused if complete, continued if begun, run otherwise.

use std::path::Path;

use anyhow::{Context, anyhow};
use serde_json::Value;
use workahead_reproduce::page::State;
use workahead_reproduce::verdicts::StudyRun;
use workahead_study::engine::Stop;
use workahead_study::error::StudyError;
use workahead_study::record::{self, Host};
use workahead_study::results::Results;
use workahead_study::spec::Spec;
use workahead_study::{catalogue, directory, verdict};

use super::super::study::duration::DurationLimit;
use super::super::study::run_session::{RunSession, Session};
use super::super::study::{arguments, finish, progress};
use super::Args;
use crate::errors::WrongUse;

/// Before the path of a machine's parameter, in the settings of a study.
const MACHINE: &str = "model.";
/// Before the settings that `--change` put into a study's text.
const CHANGED: &str = "# By --change:\n";

/// The embedded study.
pub(super) fn spec(id: &str) -> anyhow::Result<Spec> {
    let (id, text) = catalogue::find(id.as_ref())?;
    Ok(Spec::parse(&id, &text)?)
}

/// The last part of an id: the directory of its result.
pub(super) fn folder(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// Its result, or why there is none. Only an interruption, a failed write or a wrong change of the
/// machine ends the whole command.
pub(super) fn study(
    id: &str,
    args: &Args,
    out: &Path,
    host: &Host,
    stop: &Stop,
) -> anyhow::Result<(StudyRun, State)> {
    let requested = requested(id, args)?;
    let ledger = requested.ledger.iter().chain(requested.claims.iter().map(|claim| &claim.row));
    let ledger: Vec<String> = ledger.cloned().collect();
    let (study, modelled) = (id.to_owned(), requested.is_modelled());
    let ended = |outcome, state| Ok((StudyRun { study, outcome, ledger, modelled }, state));
    if let Some(missing) = verdict::missing(&requested.needs, host) {
        return ended(Err(missing), State::Skipped);
    }
    let dir = out.join(folder(id));
    match at(&requested, args, &dir, stop) {
        Ok((results, state)) => ended(Ok(results), state),
        Err(error) if matches!(error.downcast_ref(), Some(StudyError::Write { .. })) => Err(error),
        // A machine that can't be changed so: no row would be of the machine that was requested.
        Err(error) if !args.change.is_empty() => Err(error),
        // Refused before the start: a missing engine, too little memory.
        Err(error) if !dir.join(record::FILE).exists() => {
            ended(Err(crate::errors::chain(&error)), State::Skipped)
        }
        Err(error) => ended(Err(crate::errors::chain(&error)), State::Failed),
    }
}

/// The study with the given scale and repetitions, on the machine as it was changed.
fn requested(id: &str, args: &Args) -> anyhow::Result<Spec> {
    let mut requested = spec(id)?;
    if !args.change.is_empty() {
        requested = Spec::parse(id, &changed(&requested.text, &args.change)?)?;
    }
    if let Some(scale) = args.scale.as_ref().filter(|scale| requested.scales.contains(scale)) {
        requested = Spec::parse_scaled(id, &requested.text, scale)?;
    }
    if let Some(repetitions) = args.repetitions {
        requested = requested.repeated(repetitions)?;
    }
    Ok(requested)
}

/// A study's text whose machine has other parameters: settings of its workload, in place of its own
/// of the same names. Texts of TOML are written as those of JSON are.
fn changed(text: &str, changes: &[String]) -> anyhow::Result<String> {
    let (mut settings, mut keys) = (format!("[workload]\n{CHANGED}"), Vec::new());
    for change in changes {
        let Some((path, value)) = change.split_once('=') else {
            return Err(WrongUse::error(format!(
                "--change {change}: write PATH=VALUE, e.g. core.outstanding=8"
            )));
        };
        let key = Value::from(format!("{MACHINE}{path}")).to_string();
        let plain = value.parse::<i64>().is_ok() || matches!(value, "true" | "false");
        let value = if plain { value.to_owned() } else { Value::from(value).to_string() };
        settings.push_str(&format!("{key} = {value}\n"));
        keys.push(key);
    }
    let Some((before, workload)) = text.split_once("[workload]\n") else {
        return Ok(text.to_owned());
    };
    let (own, after) = workload.split_at(workload.find("\n[").unwrap_or(workload.len()));
    let is_left = |line: &&str| !keys.iter().any(|key| line.starts_with(key.as_str()));
    let own: String = own.split_inclusive('\n').filter(is_left).collect();
    Ok([before, &settings, &own, after].concat())
}

fn at(requested: &Spec, args: &Args, dir: &Path, stop: &Stop) -> anyhow::Result<(Results, State)> {
    if dir.join(record::FILE).exists() && !args.force {
        let results = Results::load(dir)?;
        check_same(requested, &results, dir)?;
        if results.is_complete() {
            return Ok((results, State::Taken));
        }
        // The directory may be somebody else's, and the resumed study is the record's own.
        if results.spec.text != requested.text {
            let at = dir.display();
            return Err(anyhow!(
                "{at} was begun with another text of the study: choose another --out, or --force \
                 to run it again"
            ));
        }
        let session = Session::resume(dir, |spec| Ok(arguments::setup(spec, &args.data)))?;
        return finished(session, args, stop);
    }
    let claim = |_: &Spec| match args.force {
        true => directory::claim_replacing(dir),
        false => directory::claim(dir),
    };
    let setup = arguments::setup(requested, &args.data);
    let session = Session::begin(requested.clone(), args.repetitions, setup, claim)?;
    progress::opening(&session, args.json);
    finished(session, args, stop)
}

/// Runs the remaining samples of a session and writes its report.
fn finished(session: Session, args: &Args, stop: &Stop) -> anyhow::Result<(Results, State)> {
    let dir = session.dir.clone();
    let running = RunSession { session, stop: stop.clone(), duration: DurationLimit::ANY };
    running.samples(args.limits)?;
    let results = Results::load(&dir)?;
    finish::write(&dir, &results).context("can't write the report")?;
    Ok((results, State::Run))
}

/// Refuses a result of another study, scale or machine.
fn check_same(requested: &Spec, results: &Results, dir: &Path) -> anyhow::Result<()> {
    let found = &results.record;
    let own =
        |scale: &Option<String>| scale.clone().unwrap_or_else(|| "the study's own".to_owned());
    let remedy = "choose another --out, or --force to run it again";
    let at = dir.display();
    if found.study != requested.id {
        return Err(anyhow!("{at} holds a result of {}: {remedy}", found.study));
    }
    if found.scale != requested.scale {
        let (is, wanted) = (own(&found.scale), own(&requested.scale));
        return Err(anyhow!("{at} was run at scale {is}, not {wanted}: {remedy}"));
    }
    let changed = [requested, &results.spec].map(|spec| spec.text.contains(CHANGED));
    if changed != [false; 2] && requested.text != results.spec.text {
        return Err(anyhow!("{at} was run on a machine with other parameters: {remedy}"));
    }
    Ok(())
}
