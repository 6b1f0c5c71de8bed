//! A build without the scheduler.

use workahead_study::engine::EngineError;

use super::Wish;

/// Nothing is attached, and nothing counted.
pub(super) struct Over;

/// Why nothing can be attached.
pub(super) fn lacks() -> Option<String> {
    let remedy = "this workahead was built without its scheduler: build one with it by cargo build \
                  --release --package workahead-cli --features scheduler";
    Some(remedy.to_owned())
}

pub(super) fn begin(wish: &Wish) -> Result<Over, EngineError> {
    match (wish.by_default, lacks()) {
        (false, Some(why)) => Err(EngineError::refused(why)),
        _ => Ok(Over),
    }
}

impl Over {
    pub(super) fn end(self) -> Result<Vec<(String, f64)>, EngineError> {
        Ok(Vec::new())
    }
}
