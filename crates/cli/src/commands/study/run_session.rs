//! A session as the command runs it: limits are measured with a bar, time is observe, the report
//! is written at the end.

use std::process::ExitCode;

use workahead_machine::Error;
use workahead_study::engine::Stop;
use workahead_study::runner::{End, Event};
use workahead_study::session;

use super::limits::LimitsArguments;
use super::{duration, finish, progress};

/// A session whose engine is opened by the command.
pub(crate) type Session = session::Session<anyhow::Error>;

/// A session with its stop request and time limit.
pub(crate) struct RunSession {
    pub(crate) session: Session,
    pub(crate) stop: Stop,
    pub(crate) duration: duration::DurationLimit,
}

/// How the samples of a session ended.
pub(crate) struct Outcome {
    pub(crate) end: End,
    /// The time limit that ended it.
    pub(crate) exceeded: Option<String>,
}

impl RunSession {
    /// Runs the remaining samples, and writes the report.
    pub(crate) fn finish(self, limits: LimitsArguments, json: bool) -> anyhow::Result<ExitCode> {
        let dir = self.session.dir.clone();
        match self.samples(limits)? {
            Outcome { end: End::Stopped, exceeded: Some(exceeded) } => {
                finish::cut_short(&dir, &exceeded)
            }
            Outcome { end, .. } => finish::ended(&dir, end, json),
        }
    }

    /// Runs the remaining samples.
    pub(crate) fn samples(self, limits: LimitsArguments) -> anyhow::Result<Outcome> {
        self.observed(limits, &mut |_| {})
    }

    /// The same; `watch` sees all that happens, may leave samples out and request the stop.
    pub(crate) fn observed(
        self,
        limits: LimitsArguments,
        watch: &mut dyn FnMut(&mut Event<'_>),
    ) -> anyhow::Result<Outcome> {
        let Self { mut session, stop, duration } = self;
        match session.learn_limits(|machine| Ok(limits.known(machine, &stop)?)) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
                return Ok(Outcome { end: End::Stopped, exceeded: None });
            }
            learnt => learnt?,
        }
        progress::remark_missing(&session.spec, &session.record.host);
        let run_plan = session.run_plan.clone();
        let mut monitor = duration.monitor(&run_plan, &session.kept()?);
        let end = progress::shown(&run_plan, |observe| {
            let mut observe = |mut event: Event<'_>| {
                if let Event::Kept(observation) = &event {
                    monitor.record(observation, &stop);
                }
                watch(&mut event);
                observe(event);
            };
            session.run(&stop, &mut observe)
        })?;
        Ok(Outcome { end, exceeded: monitor.exceeded })
    }
}
