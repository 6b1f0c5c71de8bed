//! Restores settings of the machine that a killed run left changed: the next command does it.

use workahead_machine::Sysroot;
use workahead_machine::control::{self, RestoredSetting};

use crate::output;

/// Restores them, and reports on standard error; usually there are none.
pub(crate) fn recover() {
    report(&control::recover(&Sysroot::live()));
}

/// Restores the settings that this process changed, before it exits without dropping anything.
pub(crate) fn restore_before_exit() {
    report(&control::restore_all());
}

fn report(restored: &[RestoredSetting]) {
    for RestoredSetting { path, value, trouble } in restored {
        // Standard error may be closed; the settings matter more.
        let line = match trouble {
            None => format!("restored {path} to {value}"),
            Some(trouble) => format!("{path} is {value}: {trouble}"),
        };
        output::note(&line);
    }
}
