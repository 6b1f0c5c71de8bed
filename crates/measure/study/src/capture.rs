//! A server at work and its machine over some minutes, as a file: `capture.json`.
//!
//! ```text
//! windows     transactions that ended, sessions by what they did, counters: window by window
//! at the ends tables, indexes, statements, other programs: what grew between both
//! once        settings, versions, the machine's tuning, plans of statements that were seen
//! ```
//!
//! It may be somebody else's file: it is read within bounds, and figures in it must be counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use workahead_machine::regular_file;

use crate::error::StudyError;
use crate::plans::PlanText;
use crate::{directory, file};

/// The form of the file.
pub const FORMAT: u32 = 1;

/// Ten thousand settings, tables and statements are a twentieth of it, and it is read in seconds.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Entries of each list.
const ENTRIES_MAX: usize = 100_000;

/// A day in windows of ten seconds.
const WINDOWS_MAX: usize = 10_000;

/// `transactions`, `postgres`: sentences repeat them.
const NAME_BYTES_MAX: usize = 100;

/// Windows with which two captures can be compared: with fewer nothing is known of their spread.
pub const WINDOWS_MIN: usize = 6;

/// Figures by name; an absent one is unknown, not 0.
pub type Figures = BTreeMap<String, f64>;

/// A capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// The form of the file.
    pub format: u32,
    /// Version of the command.
    pub command_version: String,
    /// When it began, milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// `postgres` or `mariadb`.
    pub software: String,
    /// The counted unit: `transactions`, `statements`.
    pub counted: String,
    /// The server's version in its own words, the machine's tuning.
    pub facts: BTreeMap<String, String>,
    /// The server's settings.
    pub settings: BTreeMap<String, String>,
    /// In the order of time.
    pub windows: Vec<Window>,
    /// Sessions by the event that they waited for, in the mean of the capture.
    pub events: Figures,
    /// Who held locks that others waited for, in words, and how many looks saw it.
    pub holders: Figures,
    /// CPU seconds of other programs, by name.
    pub neighbours: Figures,
    /// The database's tables, by name: their growth during the capture, and their sizes.
    pub tables: BTreeMap<String, Figures>,
    /// The database's indexes, by name.
    pub indexes: BTreeMap<String, Index>,
    /// Statements as the server sums them up, by its number for them.
    pub statements: BTreeMap<String, Statement>,
    /// Plans of statements that sessions ran, by their text without values.
    pub plans: BTreeMap<String, PlanText>,
    /// Sources that could not be read, in words, with the remedy.
    pub missing: Vec<String>,
    /// Why it ended early.
    pub lost: Option<String>,
}

/// A stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Transactions, or statements, that ended in it, without ours.
    pub ended: f64,
    /// Sessions at work by what they did, in the mean: [`WORKING`] and waits.
    pub sessions: Figures,
    /// Counts meanwhile, by the server and by the kernel.
    pub counts: Figures,
}

/// Sessions that run a statement and wait for nothing that the server names.
pub const WORKING: &str = "working";

/// An index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Its table.
    pub table: String,
    /// Its definition, in the server's words.
    pub definition: String,
    /// How often it was searched meanwhile, where that is counted.
    pub scans: Option<f64>,
}

/// A statement, as the server sums it up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Its text without values, or its beginning.
    pub text: String,
    /// Its figures meanwhile: `calls`, `seconds`, and others that the server counts.
    pub figures: Figures,
}

impl Capture {
    /// Whether a directory holds a capture.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(directory::CAPTURE_FILE).exists()
    }

    /// Reads the capture of a directory.
    ///
    /// # Errors
    /// When there is none, it is larger than any capture, or it is damaged.
    pub fn load(dir: &Path) -> Result<Capture, StudyError> {
        let path = dir.join(directory::CAPTURE_FILE);
        let text = match regular_file::read_text(&path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(source) => return Err(StudyError::Read { path, source }),
        };
        let damaged = |line: usize, message: String| StudyError::DamagedCapture {
            path: path.clone(),
            line,
            message,
        };
        let capture: Capture = serde_json::from_str(&text)
            .map_err(|error| damaged(error.line(), error.to_string()))?;
        capture.check().map_err(|message| damaged(1, message))?;
        Ok(capture)
    }

    /// Writes it into a directory, in place of another: whole, or not at all.
    ///
    /// # Errors
    /// When it would not be read again, or the directory can't be written to.
    pub fn save(&self, dir: &Path) -> Result<(), StudyError> {
        self.check().map_err(StudyError::UselessCapture)?;
        let text = serde_json::to_string_pretty(self).expect("a capture has only text keys");
        if text.len() as u64 > FILE_BYTES_MAX {
            let says = format!("it has {} bytes, and {FILE_BYTES_MAX} are the most", text.len());
            return Err(StudyError::UselessCapture(says));
        }
        file::write_in(dir, directory::CAPTURE_FILE, text.as_bytes())
    }

    /// Seconds of all windows.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.windows.iter().map(|window| window.seconds).sum()
    }

    /// The transactions or statements that ended in all windows.
    #[must_use]
    pub fn ended(&self) -> f64 {
        self.windows.iter().map(|window| window.ended).sum()
    }

    /// The sum of a count over all windows, where each has it.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<f64> {
        self.windows.iter().map(|window| window.counts.get(name).copied()).sum()
    }

    /// Figures that no server and no kernel counts are refused.
    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("it is of format {}, and this is {FORMAT}", self.format));
        }
        if [&self.counted, &self.software].into_iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!("`counted` or `software` has more than {NAME_BYTES_MAX} bytes"));
        }
        let lengths = [
            self.facts.len(),
            self.settings.len(),
            self.events.len(),
            self.holders.len(),
            self.neighbours.len(),
            self.tables.len(),
            self.indexes.len(),
            self.statements.len(),
            self.plans.len(),
            self.missing.len(),
        ];
        if self.windows.len() > WINDOWS_MAX || lengths.iter().any(|length| *length > ENTRIES_MAX) {
            return Err("it has more entries than any capture".to_owned());
        }
        let edges = self.windows.iter().flat_map(|window| [window.seconds, window.ended]);
        let of_windows = self.windows.iter().flat_map(|window| [&window.sessions, &window.counts]);
        let of_statements = self.statements.values().map(|statement| &statement.figures);
        let lists = of_windows
            .chain([&self.events, &self.holders, &self.neighbours])
            .chain(self.tables.values())
            .chain(of_statements);
        let scans = self.indexes.values().filter_map(|index| index.scans);
        let figures = edges.chain(lists.flat_map(|list| list.values().copied())).chain(scans);
        // Sums and products of them stay finite.
        if let Some(wrong) = figures.into_iter().find(|figure| !(0.0..=1e18).contains(figure)) {
            return Err(format!("it has a figure of {wrong:e}, which nothing counts"));
        }
        match self.windows.iter().any(|window| window.seconds <= 0.0) {
            true => Err("it has a window without length".to_owned()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        let window = Window { seconds: 2.0, ended: 10.0, ..Window::default() };
        let figures = |name: &str| Figures::from([(name.to_owned(), 0.5)]);
        Capture {
            format: FORMAT,
            software: "postgres".to_owned(),
            windows: vec![Window { counts: figures("cpu_s"), ..window }; 2],
            events: figures("Lock:relation"),
            ..Capture::default()
        }
    }

    #[test]
    fn a_saved_capture_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Capture::is_in(dir.path()));
        capture().save(dir.path()).unwrap();
        assert_eq!(Capture::load(dir.path()).unwrap(), capture());
        assert_eq!((capture().seconds(), capture().ended()), (4.0, 20.0));
        assert_eq!((capture().count("cpu_s"), capture().count("none")), (Some(1.0), None));
        let mut wrong = capture();
        wrong.windows[0].ended = 1e308;
        let says = wrong.save(dir.path()).unwrap_err().to_string();
        assert!(says.contains("a figure of 1e308"), "{says}");
    }

    #[test]
    fn damaged_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refusal = |text: &str| {
            std::fs::write(dir.path().join(directory::CAPTURE_FILE), text).unwrap();
            Capture::load(dir.path()).unwrap_err().to_string()
        };
        let whole = serde_json::to_string_pretty(&capture()).unwrap();
        for (text, says) in [
            (whole[..whole.len() / 2].to_owned(), "capture it anew"),
            (whole.replace("\"format\": 1", "\"format\": 7"), "format 7"),
            (whole.replacen("2.0", "-2.0", 1), "figure of -2e0"),
            (whole.replacen("2.0", "0.0", 1), "without length"),
            (whole.replacen("0.5", "1e300", 1), "which nothing counts"),
            (whole.replacen("0.5", "[0.5]", 1), "capture it anew"),
            ("[".repeat(100_000), "capture it anew"),
            (String::new(), "capture it anew"),
        ] {
            assert!(refusal(&text).contains(says), "{says}: {}", refusal(&text));
        }
    }
}
