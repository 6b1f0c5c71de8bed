//! A build without the scheduler.

use workahead_study::engine::{EngineError, Stop};

use super::{SchedulerChoice, Which};

/// Nothing is attached, and nothing counted.
pub(super) struct Attachment;

/// Why it can't be attached.
pub(super) fn lacks(which: &Which) -> Option<String> {
    let remedy = "this workahead was built without its scheduler: build one with it by cargo build \
                  --release --package workahead-cli --features scheduler";
    (*which != Which::Default).then(|| remedy.to_owned())
}

pub(super) fn begin(choice: &SchedulerChoice, _: &Stop) -> Result<Attachment, EngineError> {
    match lacks(&choice.which) {
        Some(why) => Err(EngineError::refused(why)),
        None => Ok(Attachment),
    }
}

impl Attachment {
    pub(super) fn end(self) -> Result<Vec<(String, f64)>, EngineError> {
        Ok(Vec::new())
    }
}
