//! Restores settings of the machine that a killed run left changed: the next command does it.

use std::io::Write;

use workahead_machine::Sysroot;
use workahead_machine::control::{self, Restored};

/// Restores them, and reports on standard error; usually there are none.
pub(crate) fn recover() {
    report(&control::recover(&Sysroot::live()));
}

/// Restores the settings that this process changed, before it exits without dropping anything.
pub(crate) fn restore_before_exit() {
    report(&control::restore_all());
}

fn report(restored: &[Restored]) {
    for Restored { path, value, trouble } in restored {
        // Standard error may be closed; the settings matter more.
        let _ = match trouble {
            None => writeln!(std::io::stderr(), "restored {path} to {value}"),
            Some(trouble) => writeln!(std::io::stderr(), "{path} is {value}: {trouble}"),
        };
    }
}
