//! Where figures go. A command that is counted has standard output for itself, so that it can be
//! piped as ever; the figures then go to standard error, as those of `time` and `perf stat` do.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;
use workahead_machine::atomic_file::AtomicFile;
use workahead_study::file;

use super::target;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Out {
    /// Write the figures there; `-` is standard output [default: standard error beside a command,
    /// else standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Out {
    /// Before anything is counted: whether they can be written there at all.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.file().map_or(Ok(()), writable)
    }

    fn file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Text for people, ending with one newline.
    pub(crate) fn text(&self, text: &str, target: &target::TargetArguments) -> anyhow::Result<()> {
        let text = format!("{}\n", output::escaped(text.trim_end_matches('\n')));
        match self.file() {
            Some(path) => Ok(file::write_whole(path, text.as_bytes())?),
            None if self.out.is_none() && target.is_command() => {
                // If standard error is closed nobody wants them.
                let _ = io::stderr().lock().write_all(text.as_bytes());
                Ok(())
            }
            None => output::text(&text),
        }
    }

    /// One value as indented JSON, for programs.
    pub(crate) fn json(
        &self,
        value: &impl Serialize,
        target: &target::TargetArguments,
    ) -> anyhow::Result<()> {
        self.text(&output::json_text(value)?, target)
    }
}

/// Whether a file can be written at its end: counts can't be taken again.
pub(crate) fn writable(path: &Path) -> anyhow::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        bail!("can't write {}: there is no directory {}", path.display(), directory.display());
    }
    match path.metadata() {
        Ok(about) if about.is_dir() => {
            bail!("can't write {}: it is a directory", path.display())
        }
        // Special files are written into, others are replaced.
        Ok(about) if !about.is_file() => Ok(()),
        _ => {
            let trial = AtomicFile::create(path);
            trial.map(drop).with_context(|| format!("can't write {}", path.display()))
        }
    }
}
