//! Why a run under valgrind has no counts.

use std::io;
use std::path::{Path, PathBuf};

use super::Tool;

/// Why a run has no counts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Valgrind has no model of such a cache.
    #[error("a cache `{text}` can't be modelled: {why}")]
    Shape {
        /// The shape as it was written.
        text: String,
        /// The fault, and the accepted form.
        why: String,
    },
    /// No preset has this name.
    #[error("there are no caches named `{name}`: {hint}")]
    NoPreset {
        /// The name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The system says nothing about one of its caches.
    #[error(
        "the system does not describe its {0}: give caches as `bytes,ways,line bytes`, such as \
         `32KiB,8,64`"
    )]
    UnknownCache(&'static str),
    /// It is not installed.
    #[error("no valgrind on the PATH: install it with `apt-get install valgrind`")]
    NoValgrind,
    /// It is too old, or another program.
    #[error(
        "{} says `{says}` of its version: valgrind {min_major}.{min_minor} or newer is needed",
        path.display()
    )]
    Version {
        /// The program.
        path: PathBuf,
        /// Its output.
        says: String,
        /// The oldest that will do.
        min_major: u32,
        /// Its second number.
        min_minor: u32,
    },
    /// The system refused something.
    #[error("can't {what} {}: {source}", path.display())]
    System {
        /// A verb.
        what: &'static str,
        /// Of what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program failed.
    #[error("{} under {tool} {how}: {said}", program.display())]
    Ended {
        /// The program.
        program: PathBuf,
        /// The tool that counted.
        tool: Tool,
        /// How it ended, and the remedy where there is one.
        how: String,
        /// The last lines that it wrote to its error output.
        said: String,
    },
    /// The user interrupted.
    #[error("stopped before the program ended")]
    Stopped,
    /// Its output can't be read.
    #[error("{tool} wrote an unreadable line {line}: {why}")]
    Format {
        /// The tool that wrote it.
        tool: Tool,
        /// The line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// Other caches were modelled than those requested.
    #[error("{tool} modelled other caches than those requested: {caches}")]
    OtherCaches {
        /// The tool that counted.
        tool: Tool,
        /// Its report of its caches.
        caches: String,
    },
    /// Two counts that don't belong together.
    #[error("these counts can't be taken from those: {0}")]
    Unlike(String),
    /// None of the requested functions ran.
    #[error("nothing was counted inside of {functions}: {why}")]
    Inside {
        /// Their names.
        functions: String,
        /// The reason, or how to look for it.
        why: &'static str,
    },
    /// The run did not count this.
    #[error("{0} were not counted: let the run model caches and branches")]
    NotCounted(&'static str),
}

impl Error {
    pub(super) fn system(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System { what, path: path.to_owned(), source }
    }
}
