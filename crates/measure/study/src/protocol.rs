//! The protocol before each sample of a cell: warm or cold, restart, fresh data.
//!
//! *Warm* is the protocol of Hassanein et al. (2008, section 3): the query has run before it is
//! measured, so that caches and buffers hold its data. *Cold* is Chang's (2013): buffers and cached
//! plans are emptied before every sample. Each result names its protocol.

use serde::{Deserialize, Serialize};

/// The axis, or setting of a case, that overrides the method's protocol.
pub(crate) const PROTOCOL: &str = "protocol";

/// The steps before a sample, which an engine performs in `prepare`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Protocol {
    /// Contents of caches and buffers.
    pub start: Start,
    /// When a server is restarted.
    pub restart: Before,
    /// When data is restored to its state after loading.
    pub restore: Before,
}

impl Protocol {
    /// Whether it is the default.
    pub fn is_usual(&self) -> bool {
        *self == Protocol::default()
    }
}

/// Contents of caches and buffers when a sample starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The state after earlier runs; warm-up rounds come first.
    #[default]
    Warm,
    /// Nothing: buffers and cached plans are emptied before every sample. There are no warm-up
    /// rounds.
    Cold,
}

impl Start {
    /// Both.
    pub const ALL: [Start; 2] = [Start::Warm, Start::Cold];

    /// As studies spell it.
    pub fn name(self) -> &'static str {
        match self {
            Start::Warm => "warm",
            Start::Cold => "cold",
        }
    }
}

/// When something is done before a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Before {
    /// When necessary: a setting takes effect at a start only, or the data was changed.
    #[default]
    WhenNeeded,
    /// Before every sample.
    Always,
}
