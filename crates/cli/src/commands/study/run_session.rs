//! A session as the command runs it: limits are measured with a bar, time is watched, the report
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

/// A session, and what may end it early.
pub(crate) struct RunSession {
    pub(crate) session: Session,
    pub(crate) stop: Stop,
    pub(crate) duration: duration::Allowed,
}

/// How the samples of a session ended.
pub(crate) struct Outcome {
    pub(crate) end: End,
    /// Which limit of time ended it.
    pub(crate) exceeded: Option<String>,
}

impl RunSession {
    /// Runs what is left, and writes the report.
    pub(crate) fn finish(self, limits: LimitsArguments, json: bool) -> anyhow::Result<ExitCode> {
        let dir = self.session.dir.clone();
        match self.samples(limits)? {
            Outcome { end: End::Stopped, exceeded: Some(exceeded) } => {
                finish::cut_short(&dir, &exceeded)
            }
            Outcome { end, .. } => finish::ended(&dir, end, json),
        }
    }

    /// Runs what is left.
    pub(crate) fn samples(self, limits: LimitsArguments) -> anyhow::Result<Outcome> {
        let Self { mut session, stop, duration } = self;
        match session.learn_limits(|machine| Ok(limits.known(machine, &stop)?)) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
                return Ok(Outcome { end: End::Stopped, exceeded: None });
            }
            learnt => learnt?,
        }
        progress::remark_missing(&session.spec, &session.record.host);
        let plan = session.plan.clone();
        let mut watch = duration.watch(&plan, &session.kept()?);
        let end = progress::shown(&plan, |observe| {
            let mut watched = |event: Event<'_>| {
                if let Event::Kept(observation) = &event {
                    watch.saw(observation, &stop);
                }
                observe(event);
            };
            session.run(&stop, &mut watched)
        })?;
        Ok(Outcome { end, exceeded: watch.exceeded })
    }
}
