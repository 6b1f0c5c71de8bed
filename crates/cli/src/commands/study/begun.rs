//! A run whose directory and record are in place: what `run` and `resume` have in common.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use workahead_machine::limits::Limits;
use workahead_machine::{Error, Machine};
use workahead_study::engine::{Engine, EngineContext, Stop};
use workahead_study::log;
use workahead_study::needs;
use workahead_study::plan::Plan;
use workahead_study::record::Record;
use workahead_study::runner::{self, End, Event, Job};
use workahead_study::spec::Spec;

use super::chosen::Opener;
use super::limits::Asked;
use super::{duration, finish, host, progress};

/// What runs begin on, whatever they run.
pub(crate) struct Ground {
    /// Where servers keep their data.
    pub(crate) home: PathBuf,
    pub(crate) stop: Stop,
    pub(crate) duration: duration::Allowed,
    /// Whether programs read what is printed.
    pub(crate) json: bool,
}

/// An engine, with what it was opened by.
pub(crate) struct Opened {
    pub(crate) open: Opener,
    pub(crate) context: EngineContext,
    pub(crate) engine: Box<dyn Engine>,
}

pub(crate) struct Begun {
    pub(crate) dir: PathBuf,
    pub(crate) record: Record,
    pub(crate) spec: Spec,
    pub(crate) plan: Plan,
    pub(crate) opened: Opened,
    pub(crate) machine: Machine,
    pub(crate) stop: Stop,
    pub(crate) duration: duration::Allowed,
}

impl Begun {
    /// Runs what is left, and writes the report.
    pub(crate) fn go_on(self, asked: Asked, json: bool) -> anyhow::Result<ExitCode> {
        let dir = self.dir.clone();
        match self.samples(asked)? {
            (End::Stopped, Some(exceeded)) => finish::cut_short(&dir, &exceeded),
            (end, _) => finish::ended(&dir, end, json),
        }
    }

    /// Runs what is left: how it ended, and which limit of time ended it.
    pub(crate) fn samples(mut self, asked: Asked) -> anyhow::Result<(End, Option<String>)> {
        match self.learn(asked) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
                return Ok((End::Stopped, None));
            }
            learnt => learnt?,
        }
        progress::remark_missing(&self.spec, &self.record.host);
        let Self { dir, record, plan, mut opened, stop, duration, .. } = self;
        let plan = plan.skipping(&record.needs);
        let job = Job { plan: &plan, fingerprint: &record.plan, dir: &dir };
        let mut watch = duration.watch(&plan, &log::read(&dir, &record.plan, &plan)?);
        let end = progress::shown(&plan, |observe| {
            let mut watched = |event: Event<'_>| {
                if let Event::Kept(observation) = &event {
                    watch.saw(observation, &stop);
                }
                observe(event);
            };
            runner::run(job, opened.engine.as_mut(), &stop, &mut watched)
        })?;
        Ok((end, watch.exceeded))
    }

    /// Gives the engine the machine's limits: those of the record, so that a run that is resumed
    /// goes on with the same sizes, or else this machine's.
    fn learn(&mut self, asked: Asked) -> anyhow::Result<()> {
        let limits = match &self.record.limits {
            Some(limits) => serde_json::from_value::<Limits>(limits.clone()).ok(),
            // Samples without limits are not joined by samples that know them.
            None if self.has_samples() => None,
            None => asked.known(&self.machine, &self.stop)?,
        };
        let Some(limits) = limits else { return Ok(()) };
        self.record.host.siblings = host::has_siblings(&self.machine, Some(&limits));
        let Opened { open, context, engine } = &mut self.opened;
        context.limits = Some(limits.clone());
        *engine = open(context)?;
        let needs = needs::of(&self.plan, engine.as_ref())?;
        needs::fit(&self.spec, &needs, host::available_bytes(&self.machine))?;
        self.record.needs = needs;
        if self.record.limits.is_none() {
            let limits = serde_json::to_value(&limits).context("can't keep the limits as JSON")?;
            self.record.limits = Some(limits);
        }
        Ok(self.record.save(&self.dir)?)
    }

    fn has_samples(&self) -> bool {
        std::fs::metadata(self.dir.join(log::FILE)).is_ok_and(|log| log.len() > 0)
    }
}
