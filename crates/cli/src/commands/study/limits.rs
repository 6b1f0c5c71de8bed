//! The machine's limits, measured once, for the limit lines of the report.

use std::io::{IsTerminal, Write};

use indicatif::ProgressBar;
use workahead_machine::limits::{Limits, Store};
use workahead_machine::{Error, Machine};
use workahead_study::engine::Stop;

use crate::progress;

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LimitsArguments {
    /// Run without the machine's measured limits: the report's bars then have no limit line
    #[arg(long)]
    no_limits: bool,
}

impl LimitsArguments {
    /// Without limits: for runs whose result is not a share of one.
    pub(crate) const NONE: LimitsArguments = LimitsArguments { no_limits: true };

    /// With limits: for runs whose result is nothing without them.
    pub(crate) const MEASURED: LimitsArguments = LimitsArguments { no_limits: false };

    /// The limits saved for this machine; measured now, in about half a minute, if there are none.
    /// `None` if disabled or unavailable, which is reported and costs no sample.
    ///
    /// # Errors
    /// When the user interrupted.
    pub(crate) fn known(self, machine: &Machine, stop: &Stop) -> Result<Option<Limits>, Error> {
        if self.no_limits {
            return Ok(None);
        }
        let store = Store::of_user();
        if let Some(limits) = store.load(machine) {
            return Ok(Some(limits));
        }
        let bar = bar();
        let mut progress = progress::on(&bar);
        let found = Limits::load_or_measure(machine, &store, &mut progress, stop.flag());
        bar.finish_and_clear();
        match found {
            Ok(found) => Ok(Some(found.limits)),
            Err(Error::Stopped) => Err(Error::Stopped),
            Err(error) => {
                // Standard error may be closed; the run matters more.
                let _ = writeln!(std::io::stderr(), "no limits in the report: {error}");
                Ok(None)
            }
        }
    }
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        let said = "measuring the limits of this machine, once: about half a minute";
        let _ = writeln!(std::io::stderr(), "{said}");
    }
    progress::measuring("measuring the limits of this machine, once")
}
