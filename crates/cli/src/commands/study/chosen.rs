//! Which study, at which scale, how often: the arguments that `plan` and `run` share.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use workahead_engines::attach::{Access, Target};
use workahead_study::catalogue;
use workahead_study::engine::{Engine, EngineContext};
use workahead_study::plan::Plan;
use workahead_study::spec::Spec;

use super::inside;
use crate::engines;
use crate::errors::WrongUse;

#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Id of a study (`workahead study list`), or a file ending in .toml
    pub(crate) study: String,
    /// Apply one of the study's scales, e.g. small
    #[arg(long, value_name = "NAME")]
    pub(crate) scale: Option<String>,
    /// Samples per cell, in place of the study's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repetitions: Option<u32>,
}

impl Chosen {
    /// Reads the study and applies what was chosen.
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let (id, text) = catalogue::find(&self.study)?;
        let mut spec = Spec::parse(&id, &text)?;
        if let Some(scale) = &self.scale {
            spec = Spec::parse_scaled(&id, &text, scale)?;
        }
        if let Some(repetitions) = self.repetitions {
            let share = f64::from(repetitions) / f64::from(spec.method.repetitions);
            spec.time_s = spec.time_s.map(|time_s| time_s * share);
            spec.method.repetitions = repetitions;
        }
        Ok(spec)
    }
}

/// Where a study's server is, when it is not to be started.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Attached {
    /// Run on a server that already runs, only reading: postgres://USER@HOST/DATABASE or mysql://…,
    /// the password there or in WORKAHEAD_PASSWORD
    #[arg(long, value_name = "URL")]
    attach: Option<String>,
    /// Let the run write to that database: its tables are made there
    #[arg(long, requires = "attach")]
    allow_writes: bool,
}

impl Attached {
    /// What opens the engine that a study names, there or here.
    pub(crate) fn opener(&self, spec: &Spec) -> anyhow::Result<Opener> {
        let Some(url) = &self.attach else { return Ok(opener(spec)) };
        let access = if self.allow_writes { Access::Write } else { Access::ReadOnly };
        let target =
            Target::parse(url, access).map_err(|error| WrongUse::error(error.to_string()))?;
        let target = target.or_password(std::env::var("WORKAHEAD_PASSWORD").ok());
        let (engine, id) = (spec.engine.clone(), spec.id.clone());
        Ok(Box::new(move |context| {
            workahead_engines::attached(&engine, target.clone(), access, context)
                .with_context(|| format!("study `{id}`"))
        }))
    }
}

/// Opens the engine of one study: before anything is run, to check it, and again when the machine's
/// limits are known.
pub(crate) type Opener = Box<dyn Fn(&EngineContext) -> anyhow::Result<Box<dyn Engine>>>;

/// What opens the engine that a study names.
pub(crate) fn opener(spec: &Spec) -> Opener {
    let (engine, id) = (spec.engine.clone(), spec.id.clone());
    Box::new(move |context| {
        engines::registry().open(&engine, context).with_context(|| format!("study `{id}`"))
    })
}

/// What the engine of a run plan is opened with, its limits aside.
pub(crate) fn context(plan: &Plan, data_dir: &Path) -> EngineContext {
    let (data_dir, worker) = (data_dir.to_owned(), inside::command());
    EngineContext { data_dir, worker, ..EngineContext::of(plan) }
}

/// Where servers keep their data.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Kept {
    /// Where private servers keep their data between runs [default: /var/tmp/workahead-UID]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Kept {
    /// Not below the home directory: servers that root starts run as another user, who may not
    /// enter it. Not in memory either, as /tmp may be.
    pub(crate) fn directory(&self) -> PathBuf {
        let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
        let usual = || Path::new("/var/tmp").join(format!("workahead-{user}"));
        self.data_dir.clone().unwrap_or_else(usual)
    }
}
