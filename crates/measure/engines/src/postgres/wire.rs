//! Messages to and from a server (PostgreSQL manual, "Message Formats").

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::backend::Header;
use workahead_workloads::session::SessionError;

use crate::stream::{Patience, Stream};

/// The header of a message: its kind, and the length of all but the kind.
const HEADER_BYTES: usize = 5;
/// The server's limit of a message (`MaxAllocSize`).
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Both directions of a connection.
pub(super) struct Wire {
    stream: Stream,
    /// Bytes for the next [`send`](Wire::send).
    pub(super) out: BytesMut,
}

/// A message of the server's.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    /// Which one, a tag of `postgres_protocol::message::backend`.
    pub(super) tag: u8,
    /// All of it, kind and length too.
    pub(super) whole: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn body(&self) -> &'a [u8] {
        &self.whole[HEADER_BYTES..]
    }
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Wire {
        Wire { stream, out: BytesMut::new() }
    }

    /// Sets how long answers are waited for.
    pub(super) fn set_patience(&mut self, patience: Patience) {
        self.stream.set_patience(patience);
    }

    /// Whether nobody between here and the server can read what is sent.
    pub(super) fn is_confidential(&self) -> bool {
        self.stream.is_confidential()
    }

    /// The server's certificate, if the connection is encrypted.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        self.stream.certificate()
    }

    /// Appends the output of `say` to `out`; nothing when it fails, as for a text with a null byte.
    pub(super) fn say(
        &mut self,
        say: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> Result<(), SessionError> {
        let before = self.out.len();
        say(&mut self.out).map_err(|error| {
            self.out.truncate(before);
            SessionError::Failed(error.to_string())
        })
    }

    /// Sends `out`.
    pub(super) fn send(&mut self) -> Result<(), SessionError> {
        let sent = self.stream.send(&self.out);
        self.out.clear();
        sent
    }

    /// The next whole message.
    pub(super) fn receive(&mut self) -> Result<Message<'_>, SessionError> {
        let header = Header::parse(self.stream.peek(HEADER_BYTES)?);
        let header = header.map_err(|error| garbled(&error))?;
        let bytes = header.and_then(|header| usize::try_from(header.len()).ok());
        let bytes = bytes.filter(|bytes| *bytes <= MESSAGE_BYTES_MAX);
        let bytes = bytes.ok_or_else(|| garbled(&"a message of an impossible length"))?;
        let whole = self.stream.take(bytes + 1)?;
        Ok(Message { tag: whole[0], whole })
    }
}

/// The error for a peer that does not speak the protocol.
pub(super) fn garbled(error: &dyn std::fmt::Display) -> SessionError {
    SessionError::Gone(format!("its answer is not PostgreSQL's protocol ({error})"))
}
