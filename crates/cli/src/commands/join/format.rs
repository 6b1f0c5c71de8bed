//! What files are written in, by their names' endings or as asked.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Apache Parquet (.parquet, and whatever ends in no way listed here)
    Parquet,
    /// Comma-separated values with a line of names (.csv)
    Csv,
    /// The same with tabs (.tsv)
    Tsv,
    /// An Arrow IPC file, or Feather 2 (.arrow, .feather, .ipc)
    Arrow,
    /// An Arrow IPC stream (.arrows)
    ArrowStream,
}

/// The first bytes of an Arrow IPC file. A stream has none.
const ARROW_FILE: [u8; 6] = *b"ARROW1";

impl Format {
    /// Of a file to be written.
    pub(crate) fn of(path: &Path, asked: Option<Self>) -> Self {
        if let Some(asked) = asked {
            return asked;
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match &ending.to_ascii_lowercase()[..] {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "arrows" => Self::ArrowStream,
            _ => Self::Parquet,
        }
    }

    /// Of a file that is there: many streams are called `.arrow`.
    pub(crate) fn of_input(path: &Path, asked: Option<Self>) -> Self {
        let format = Self::of(path, asked);
        let mut begins = [0; ARROW_FILE.len()];
        let mut begun = || File::open(path).and_then(|mut file| file.read_exact(&mut begins));
        if format == Self::Arrow && asked.is_none() && begun().is_ok() && begins != ARROW_FILE {
            return Self::ArrowStream;
        }
        format
    }

    /// For people, with its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parquet => "a Parquet file",
            Self::Csv => "a CSV file",
            Self::Tsv => "a file of tab-separated values",
            Self::Arrow => "an Arrow file",
            Self::ArrowStream => "an Arrow stream",
        }
    }

    /// Between values.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Self::Tsv { b'\t' } else { b',' }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_unless_it_is_said() {
        for (name, format) in [
            ("a.parquet", Format::Parquet),
            ("a.CSV", Format::Csv),
            ("a.csv.tsv", Format::Tsv),
            ("a.feather", Format::Arrow),
            ("a.arrows", Format::ArrowStream),
            ("a", Format::Parquet),
            ("part-0001", Format::Parquet),
        ] {
            assert_eq!(Format::of(Path::new(name), None), format, "{name}");
            assert_eq!(Format::of(Path::new(name), Some(Format::Csv)), Format::Csv);
        }
    }
}
