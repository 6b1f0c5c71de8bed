//! Names of C++ and Rust as their source has them.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use cpp_demangle::DemangleOptions;
use workahead_machine::guarded::guarded;

use crate::text::beginning;

/// Some names of a hundred bytes take weeks to be read, each of whose parts can be read in two
/// ways. After one that takes longer than this, C++'s stay as they are in the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest name that is kept, in bytes: longer than any that somebody has written. A file may
/// have one of hundreds of megabytes, of which each address in its function gets a copy.
pub(super) const NAME_BYTES_MAX: usize = 64 << 10;

/// Reads names.
pub(super) struct Demangler {
    /// Another thread reads C++'s: it is left alone with a name that has no end.
    cpp: RefCell<Option<Reader>>,
}

struct Reader {
    names: Sender<String>,
    read: Receiver<Option<String>>,
}

impl Reader {
    fn start() -> Option<Self> {
        let (names, requests) = channel::<String>();
        let (answers, read) = channel();
        let work = move || {
            for name in requests {
                if answers.send(guarded(|| cpp(&name)).ok().flatten()).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("names".into()).spawn(work).ok()?;
        Some(Self { names, read })
    }
}

impl Demangler {
    pub(super) fn new() -> Self {
        Self { cpp: RefCell::new(Reader::start()) }
    }

    /// A name as its source has it, or else the beginning of what the file has.
    pub(super) fn shown(&self, name: &str) -> String {
        self.name(name).unwrap_or_else(|| beginning(name, NAME_BYTES_MAX).to_owned())
    }

    /// A name of Rust's or C++'s as their source has it.
    fn name(&self, name: &str) -> Option<String> {
        // Its parts would take many times its length while it is read.
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Ok(rust) = rustc_demangle::try_demangle(name) {
            let mut readable = Readable(String::new());
            return guarded(|| write!(readable, "{rust:#}")).ok()?.ok().map(|()| readable.0);
        }
        // Others are types to the reader: `f` would be `float`.
        if !["_Z", "__Z", "___Z"].iter().any(|start| name.starts_with(start)) {
            return None;
        }
        let mut cpp = self.cpp.borrow_mut();
        let reader = cpp.as_ref()?;
        reader.names.send(name.to_owned()).ok()?;
        match reader.read.recv_timeout(PATIENCE) {
            Ok(read) => read,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                *cpp = None;
                None
            }
        }
    }
}

fn cpp(name: &str) -> Option<String> {
    let mut readable = Readable(String::new());
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    symbol.structured_demangle(&mut readable, &DemangleOptions::default()).ok()?;
    Some(readable.0)
}

/// A name of a length that somebody may have written: some kilobytes can stand for one without end,
/// each of whose parts repeats what is before it.
struct Readable(String);

impl Write for Readable {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > NAME_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn names_are_readable_unless_they_have_no_end() {
        let demangler = Demangler::new();
        let of = |name: &str| demangler.name(name);
        assert_eq!(of("_ZN3foo3barEv").as_deref(), Some("foo::bar()"));
        assert_eq!(of("_ZN4core3ptr4read17h0123456789abcdefE").as_deref(), Some("core::ptr::read"));
        assert_eq!(of("main"), None);
        assert_eq!(of("f"), None, "a function of C's, not a type");
        // Each argument is 300 times the one before it.
        let mut name = "_Z1f1AIiE".to_owned();
        for (letter, before) in ["B", "C", "D", "E", "F"].iter().zip([0, 2, 4, 6, 8]) {
            name += &format!("1{letter}I{}E", format!("S{before}_").repeat(300));
        }
        assert_eq!(of(&name), None);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let demangler = Demangler::new();
        assert_eq!(demangler.shown("main"), "main");
        assert_eq!(demangler.shown("_ZN3foo3barEv"), "foo::bar()");
        let whole = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(demangler.shown(&whole), whole);
        // Of two bytes each, the first at an odd place.
        let shown = demangler.shown(&format!("x{}", "é".repeat(NAME_BYTES_MAX)));
        assert_eq!(shown.len(), NAME_BYTES_MAX - 1);
        assert!(shown.ends_with('é'));
    }

    #[test]
    fn a_name_that_is_not_read_in_time_ends_the_reading_of_cpp() {
        let demangler = Demangler::new();
        let start = Instant::now();
        assert_eq!(demangler.name(&format!("_Z1fIX{}EEvv", "dl".repeat(45))), None);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert_eq!(demangler.name("_ZN3foo3barEv"), None);
        assert!(demangler.name("_ZN4core3ptr4read17h0123456789abcdefE").is_some(), "Rust's are");
    }
}
