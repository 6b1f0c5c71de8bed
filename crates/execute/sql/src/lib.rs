//! SQL over files, with Workahead's hash join: DataFusion sessions for programs that are not
//! asynchronous, and their output.
//!
//! The join itself is [`workahead_join`], as a node and rules of DataFusion's plans
//! [`workahead_datafusion`]; one call installs them in a session:
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//!
//! let builder = SessionStateBuilder::new().with_default_features();
//! let context = SessionContext::new_with_state(workahead_sql::install(builder).build());
//! # let _ = context;
//! ```

#![forbid(unsafe_code)]

mod install;
mod local_files;
mod locked_folder;
mod morsels;
pub mod output;
mod peak_pool;
mod reuse;
pub mod session;

/// The version of DataFusion.
pub use datafusion::DATAFUSION_VERSION;
pub use install::{install, install_files};
pub use locked_folder::LockedFolder;
pub use peak_pool::PeakPool;

/// The page's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/how-to/datafusion.md")]
struct Page;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/how-to/embed.md")]
struct EmbedPage;
