//! Size of the records of a row store: the paper varied it and showed 64 bytes (Zhou et al., VLDB
//! 2005, §6.2 and appendix A.1).

use workahead_engines::configuration::CellConfiguration;
use workahead_study::engine::EngineError;

/// Supported sizes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordBytes {
    B32,
    B64,
    B128,
    B256,
}

const SIZES: [(&str, RecordBytes); 4] = [
    ("32", RecordBytes::B32),
    ("64", RecordBytes::B64),
    ("128", RecordBytes::B128),
    ("256", RecordBytes::B256),
];

impl RecordBytes {
    /// Reads `record_bytes`; default: the paper's 64.
    pub(crate) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        config.choice("record_bytes", RecordBytes::B64, &SIZES)
    }

    /// In bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            RecordBytes::B32 => 32,
            RecordBytes::B64 => 64,
            RecordBytes::B128 => 128,
            RecordBytes::B256 => 256,
        }
    }
}
