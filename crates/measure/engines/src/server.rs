//! Private servers: a process of our own that serves one directory, and nothing of the user's.
//!
//! ```text
//! DIRECTORY/lock        held while a run uses it; names the product DIRECTORY/settings    the
//! server's only settings file, written anew at every start DIRECTORY/log         everything it
//! ever printed; the last lines are in our errors DIRECTORY/pid         the process, so that the
//! next run can stop the server of a killed run DIRECTORY/data        the server's own, mode 700,
//! as is DIRECTORY/run with its socket
//! ```
//!
//! No port is opened: the socket lies in a directory that nobody else may enter. Its path has to
//! fit 107 bytes (`sun_path`, unix(7)); under a deep directory it lies in a short one beside.
//!
//! A server refuses to run as root, so it then runs as its packaged user or as `nobody`. It is in a
//! process group of its own: Ctrl-C reaches us alone, and we stop it.

mod error;
mod explain;
mod files;
mod home;
mod log;
mod options;
mod process;
mod program;
mod socket;
mod user;

pub use error::Error;
pub use explain::Explain;
pub(crate) use files::remove;
pub(crate) use home::Home;
pub(crate) use options::check;
pub use options::{Options, Settings};
pub(crate) use process::{Launch, Probe, Process, run_to_end};
pub(crate) use program::{Product, Program};
pub(crate) use user::own_name;
