//! Numbers of rows, warehouses and the like, as the workloads take them.

use workahead_study::engine::EngineError;

use crate::configuration::CellConfiguration;

/// Most rows of a table: numbers of 32 bits.
const ROWS_MAX: usize = u32::MAX as usize;

/// A number as the workloads take it.
pub(super) fn number(
    config: &CellConfiguration<'_>,
    key: &'static str,
    usual: u32,
) -> Result<u32, EngineError> {
    Ok(config.number(key, usual as usize, 1..=ROWS_MAX)? as u32)
}
