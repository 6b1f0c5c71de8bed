//! The messages of Arrow files and streams, looked through before a decoder believes them.
//!
//! ```text
//! file    footer ─► blocks, each within the file ─┐
//! stream  one behind the other ───────────────────┴─► messages ─► what each takes, decoded
//! ```
//!
//! A decoder allocates what a message says of its length and of its contents before compression.
//! Here a message is as long as the file has it, and its buffers lie in it; together with what is
//! made of it and all dictionaries it fits the memory that may be used. An item of a list counts
//! also where its type has no bytes.
//!
//! Nothing here decodes: who has a decoder reads by [`Messages`] what it is given, and who has a
//! reader of whole files calls [`check_file`] before.

#![forbid(unsafe_code)]

mod arrow_input;
mod at;
mod dictionaries;
mod file;
mod items;
mod lz4;
mod messages;
mod schema;

use std::io::{self, ErrorKind};

pub use arrow_input::ArrowInput;
pub use at::At;
pub use dictionaries::Dictionaries;
pub use file::check_file;
pub use items::values_of;
use messages::fits;
pub use messages::{EncapsulatedMessage, Messages, Size, Source, message_of};
pub use schema::{
    ITEM_BYTES, check as check_schema, check_encoded_schema, check_row, row_bytes, shown,
};

/// Before a message, since 2019.
pub const MARKER: [u8; 4] = [0xff; 4];
/// Metadata that are always read: a limit is exceeded by as much.
pub const BYTES_MIN: usize = 16 << 20;
/// Each byte of a file seldom decompresses to more than this many: where it does, what it stands
/// for is looked at.
pub const RATIO_USUAL: usize = 16;

/// Why a decoder should not be given a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is not as it should be.
    #[error("{0}")]
    Wrong(String),
    /// It takes more memory than it may.
    #[error(
        "{what} takes {} MiB, more than the {} MiB that may be used for it: raise the memory \
         limit{or}",
        bytes.div_ceil(1 << 20),
        bytes_max >> 20
    )]
    TooMuch {
        /// The part of the file.
        what: String,
        /// What it takes.
        bytes: usize,
        /// What it may.
        bytes_max: usize,
        /// Another remedy, or nothing.
        or: &'static str,
    },
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// A file that is not as it should be.
fn wrong(says: impl Into<String>) -> MessageError {
    MessageError::Wrong(says.into())
}

/// A part that takes more than it may, with another remedy than more memory.
fn too_much(
    what: impl Into<String>,
    bytes: usize,
    bytes_max: usize,
    or: &'static str,
) -> MessageError {
    MessageError::TooMuch { what: what.into(), bytes, bytes_max, or }
}

/// The end of a file or a stream where there should be more.
fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "it ends within a message")
}
