//! A caller's request to stop, looked for between pieces of work.

use std::sync::Arc;

use crate::JoinError;

/// Rows of a loop between two looks: less than 100 ms even if each row is a cache miss.
pub(crate) const ROWS_BETWEEN: usize = 1 << 20;

/// Whether the caller wants the join to stop. Asked from any thread, at least every few
/// milliseconds of most phases, so it must be cheap: one atomic load.
#[derive(Clone, Default)]
pub struct StopCheck(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl StopCheck {
    /// Stops once `stops` returns true.
    #[must_use]
    pub fn new(stops: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(stops)))
    }

    /// Fails with [`JoinError::Stopped`] if the caller wants to stop.
    pub(crate) fn check(&self) -> Result<(), JoinError> {
        match &self.0 {
            Some(stops) if stops() => Err(JoinError::Stopped),
            _ => Ok(()),
        }
    }

    /// Cuts a range of rows into parts, and looks before each of them.
    pub(crate) fn parts(
        &self,
        rows: std::ops::Range<usize>,
        mut with: impl FnMut(std::ops::Range<usize>) -> Result<(), JoinError>,
    ) -> Result<(), JoinError> {
        rows.clone().step_by(ROWS_BETWEEN).try_for_each(|start| {
            self.check()?;
            with(start..rows.end.min(start + ROWS_BETWEEN))
        })
    }
}

impl std::fmt::Debug for StopCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StopCheck").field(&self.0.is_some()).finish()
    }
}
