//! What a cell asks for before each of its samples: warm or cold, a new start, fresh data.
//!
//! *Warm* is the protocol of Hassanein et al. (2008, section 3): the query has run before it is
//! measured, so that caches and buffers hold what it touches. *Cold* is Chang's (2013): buffers and
//! cached plans are emptied before every sample. Each result says which one it was.

use serde::{Deserialize, Serialize};

/// The axis, or setting of a case, that overrides the method's protocol.
pub(crate) const PROTOCOL: &str = "protocol";

/// What is done before a sample. An engine finds it in the cell and does it in `prepare`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Protocol {
    /// What caches and buffers hold.
    pub start: Start,
    /// When a server is started anew.
    pub restart: Before,
    /// When data is brought back to what it was after loading.
    pub restore: Before,
}

impl Protocol {
    /// Whether it is the default.
    pub fn is_usual(&self) -> bool {
        *self == Protocol::default()
    }
}

/// What caches and buffers hold when a sample starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// What the runs before left there; warm-up rounds come first.
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
    /// When the engine must: a setting takes effect at a start only, or the data was changed.
    #[default]
    WhenNeeded,
    /// Before every sample.
    Always,
}
