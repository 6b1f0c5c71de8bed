//! A build without the scheduler.

use workahead_study::engine::EngineError;

use super::SchedulerChoice;

/// Nothing is attached, and nothing counted.
pub(super) struct Attachment;

/// Why nothing can be attached.
pub(super) fn lacks() -> Option<String> {
    let remedy = "this workahead was built without its scheduler: build one with it by cargo build \
                  --release --package workahead-cli --features scheduler";
    Some(remedy.to_owned())
}

pub(super) fn begin(choice: &SchedulerChoice) -> Result<Attachment, EngineError> {
    match (choice.by_default, lacks()) {
        (false, Some(why)) => Err(EngineError::refused(why)),
        _ => Ok(Attachment),
    }
}

impl Attachment {
    pub(super) fn end(self) -> Result<Vec<(String, f64)>, EngineError> {
        Ok(Vec::new())
    }
}
