//! The usual width of a row, by which the rows of a batch are chosen. What a row may take at most
//! bounds them besides.

use parquet::basic::Type;
use parquet::file::metadata::ColumnChunkMetaData;
use workahead_join::sliced_bytes;

use super::ParquetInput;
use crate::commands::join::units::Unit;

/// Rows that are read to know their width: few, as each may be wide.
const MEASURED_ROWS: usize = 16;

impl ParquetInput {
    /// Bytes of a row group's average row in memory.
    pub(super) fn usual_row_bytes(&self, row_group: usize) -> anyhow::Result<usize> {
        match self.described_row_bytes(row_group) {
            Some(bytes) => Ok(bytes),
            None => self.measured_row_bytes(),
        }
    }

    /// By the metadata. `None` if they do not say: a dictionary of few wide values is small
    /// whatever the number of rows.
    fn described_row_bytes(&self, row_group: usize) -> Option<usize> {
        let group = self.metadata.metadata().row_group(row_group);
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows > 0)?;
        let mut bytes = 0_usize;
        for (_, chunk) in group.columns().iter().enumerate().filter(|(leaf, _)| self.reads(*leaf)) {
            bytes = bytes.saturating_add(decoded_bytes(chunk)?);
        }
        Some(bytes.div_ceil(rows))
    }

    /// By the first rows.
    fn measured_row_bytes(&self) -> anyhow::Result<usize> {
        if let Some(bytes) = self.measured.get() {
            return Ok(*bytes);
        }
        let groups = self.row_groups();
        let first = groups.iter().position(|rows| *rows > 0).unwrap_or(0);
        let rows = 0..groups.get(first).map_or(0, |rows| MEASURED_ROWS.min(*rows));
        let (all, unit) = (rows.len(), Unit { row_group: first, rows });
        let batches = self.part(unit, MEASURED_ROWS)?.collect::<Result<Vec<_>, _>>()?;
        let bytes: usize = batches.iter().map(sliced_bytes).sum();
        Ok(*self.measured.get_or_init(|| bytes.div_ceil(all.max(1))))
    }
}

/// Bytes of a chunk in memory, if they are known.
fn decoded_bytes(chunk: &ColumnChunkMetaData) -> Option<usize> {
    let values = usize::try_from(chunk.num_values()).ok()?;
    let width = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => {
            usize::try_from(chunk.column_descr().type_length()).unwrap_or(0)
        }
        Type::BYTE_ARRAY => {
            let bytes = usize::try_from(chunk.unencoded_byte_array_data_bytes()?).ok()?;
            return Some(bytes.saturating_add(values.saturating_mul(size_of::<i32>())));
        }
    };
    Some(values.saturating_mul(width))
}
