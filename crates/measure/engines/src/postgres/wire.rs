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
/// The limit before the run: versions, rights and settings are far shorter.
const EARLY_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The room of a message of which nothing has come yet.
const ROOM_BYTES: usize = 32 << 10;

/// Both directions of a connection.
pub(super) struct Wire {
    stream: Stream,
    /// The longest message that is received.
    message_bytes_max: usize,
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
        let message_bytes_max = EARLY_MESSAGE_BYTES_MAX;
        Wire { stream, message_bytes_max, out: BytesMut::new() }
    }

    /// Sets how long answers are waited for, and by that how long their messages may be.
    pub(super) fn set_patience(&mut self, patience: Patience) {
        self.message_bytes_max = match patience {
            Patience::Until(_) => EARLY_MESSAGE_BYTES_MAX,
            Patience::Endless => MESSAGE_BYTES_MAX,
        };
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
        if bytes > self.message_bytes_max {
            let mib = self.message_bytes_max >> 20;
            let says = format!("its answer has a message of more than {mib} MiB");
            return Err(SessionError::Gone(says));
        }
        let whole = self.take(bytes + 1)?;
        Ok(Message { tag: whole[0], whole })
    }

    /// Takes the next `bytes`, with room for at most twice as many as have come: a length is only
    /// a word of the server's.
    fn take(&mut self, bytes: usize) -> Result<&[u8], SessionError> {
        let mut room = ROOM_BYTES;
        while room < bytes {
            room = 2 * self.stream.peek(room)?.len();
        }
        self.stream.take(bytes)
    }
}

/// The error for a peer that does not speak the protocol.
pub(super) fn garbled(error: &dyn std::fmt::Display) -> SessionError {
    SessionError::Gone(format!("its answer is not PostgreSQL's protocol ({error})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::address::Place;
    use crate::tls::tests::serve;

    /// A connection to a server that sends this and leaves.
    fn to(sent: Vec<u8>) -> Wire {
        let (port, _) = serve(move |mut client| client.write_all(&sent));
        Wire::new(Stream::dial(&Place::Host("127.0.0.1".to_owned(), port)).unwrap())
    }

    /// A message's kind and length.
    fn header(length: u32) -> Vec<u8> {
        [&b"D"[..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn a_length_is_refused_before_anything_of_it_comes() {
        for (length, says) in [
            (3, "not PostgreSQL's protocol"),
            (16 << 20, "closed the connection"),
            ((16 << 20) + 1, "a message of more than 16 MiB"),
            (1 << 30, "a message of more than 16 MiB"),
            ((1 << 30) + 1, "a message of an impossible length"),
            (u32::MAX, "not PostgreSQL's protocol"),
        ] {
            let error = to(header(length)).receive().map(drop).unwrap_err().to_string();
            assert!(error.contains(says), "{length}: {error}");
        }
    }

    #[test]
    fn a_message_of_the_run_may_be_longer() {
        let body = b"0123456789".repeat(4_000_000);
        let sent = [header(body.len() as u32 + 4), body.clone(), header(4)];
        let mut wire = to(sent.concat());
        wire.set_patience(Patience::Endless);
        assert!(wire.receive().unwrap().body() == body);
        assert_eq!(wire.receive().unwrap().whole, header(4));
        let mut wire = to(header((1 << 30) + 1));
        wire.set_patience(Patience::Endless);
        let error = wire.receive().map(drop).unwrap_err().to_string();
        assert!(error.contains("a message of an impossible length"), "{error}");
    }
}
