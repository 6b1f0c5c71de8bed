//! Settings of the machine that a killed run left changed are put back by whatever is run next.

use std::io::Write;

use workahead_machine::Sysroot;
use workahead_machine::control::{self, Restored};

/// Puts them back and says so on standard error; usually there are none.
pub(crate) fn recover() {
    say(&control::recover(&Sysroot::live()));
}

/// Puts back what this process changed, before it exits without dropping anything.
pub(crate) fn restore_before_exit() {
    say(&control::restore_all());
}

fn say(restored: &[Restored]) {
    for Restored { path, value, trouble } in restored {
        // Standard error may be closed; the settings matter more.
        let _ = match trouble {
            None => writeln!(std::io::stderr(), "put {path} back to {value}"),
            Some(trouble) => writeln!(std::io::stderr(), "{path} is {value}: {trouble}"),
        };
    }
}
