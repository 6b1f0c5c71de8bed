//! A file that somebody may read as Arrow's, looked through from its beginning to its end.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_ipc::{MessageHeader, root_as_footer, root_as_message};

use crate::arrow_input::{footer, trailer};
use crate::at::At;
use crate::messages::METADATA_BYTES_MAX;
use crate::{ArrowInput, Dictionaries, MARKER, MessageError, message_of, wrong};

/// Before a message: its length, with the marker where it has one.
const LENGTH_BYTES: usize = 4;
/// How a file begins. To a stream of before 2019 it is a length of more than a GiB.
const FILE_BEGINS: [u8; 6] = *b"ARROW1";

/// Looks through a file as all readers of Arrow would that are given it: one goes by its end alone,
/// another by its beginning. What is neither a file nor a stream of Arrow is passed over, unless
/// its name says that it is one. `bytes_max` gives what a message may take. Returns whether it ends
/// as a file does.
///
/// # Errors
/// When a reader would make room for what is not there, or for more than may be used, or a stream
/// ends within a message.
pub fn check_file(
    file: &File,
    is_named: bool,
    bytes_max: impl Fn() -> usize,
) -> Result<bool, MessageError> {
    let file = &Arc::new(file.try_clone()?);
    let start = || At::new(Arc::clone(file), 0);
    let mut end = start();
    let length = end.seek(SeekFrom::End(0))?;
    let is_file = match trailer(&mut end, length) {
        // The end of a text.
        Ok(trailer) if !is_named && !trailer.is_within() => false,
        // A decoder has no bound for a footer.
        Ok(trailer) => root_as_footer(&footer(&mut end, trailer)?).is_ok(),
        Err(MessageError::Wrong(_)) => false,
        Err(other) => return Err(other),
    };
    if is_file {
        check(ArrowInput::file(start(), bytes_max())?, bytes_max())?;
    }
    // One that only ends so is opened as a file, and its rows are read from its first byte on.
    let is_whole = is_file && begins_as_file(file, length)?;
    if is_stream(file, length, is_named && !is_whole)? {
        let bytes_max = bytes_max();
        check(ArrowInput::stream(start(), bytes_max)?, bytes_max)?;
        return Ok(is_file);
    }
    if is_whole || !is_named || length == 0 {
        return Ok(is_file);
    }
    Err(wrong("it is neither a file nor a stream of Arrow, or it is cut short"))
}

/// Looks at what all messages take.
fn check(input: ArrowInput, bytes_max: usize) -> Result<(), MessageError> {
    let ArrowInput { mut messages, schema, .. } = input;
    let mut dictionaries = Dictionaries::new(&schema);
    while let Some((metadata, size)) = messages.next_checked()? {
        let message = message_of(&metadata)?;
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            dictionaries.check(&dictionary, size, bytes_max)?;
        }
        dictionaries.beside(&message, size, bytes_max)?;
    }
    Ok(())
}

fn begins_as_file(file: &File, length: u64) -> io::Result<bool> {
    let mut beginning = [0; FILE_BEGINS.len()];
    if length < beginning.len() as u64 {
        return Ok(false);
    }
    file.read_exact_at(&mut beginning, 0)?;
    Ok(beginning == FILE_BEGINS)
}

/// Whether a file begins as streams do: by a marker, or, before 2019, by the schema at once. One
/// whose name says so may begin with a longer one than is looked at.
fn is_stream(file: &File, length: u64, is_named: bool) -> io::Result<bool> {
    let mut word = [0; LENGTH_BYTES];
    if length < LENGTH_BYTES as u64 {
        return Ok(false);
    }
    file.read_exact_at(&mut word, 0)?;
    if word == MARKER {
        return Ok(true);
    }
    let there = length - LENGTH_BYTES as u64;
    let bytes = usize::try_from(i32::from_le_bytes(word)).unwrap_or(0);
    if bytes == 0 || bytes as u64 > there {
        return Ok(false);
    }
    if bytes > METADATA_BYTES_MAX {
        return Ok(is_named);
    }
    let mut metadata = vec![0; bytes];
    file.read_exact_at(&mut metadata, LENGTH_BYTES as u64)?;
    let first = root_as_message(&metadata);
    Ok(first.is_ok_and(|message| message.header_type() == MessageHeader::Schema))
}

#[cfg(test)]
mod tests;
