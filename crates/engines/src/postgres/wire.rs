//! Messages to and from a server over a blocking stream (PostgreSQL manual, "Message Formats").
//!
//! One write for all that is to be said, and as few reads as the answer has pieces: what a client
//! costs beside its system calls is what a measurement must not see.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::backend::Header;
use workahead_workloads::session::SessionError;

use crate::address::Place;

/// A connection's bytes.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Connects.
    pub(super) fn dial(place: &Place) -> Result<Stream, SessionError> {
        let dialled = match place {
            Place::Socket(path) => UnixStream::connect(path).map(Stream::Unix),
            Place::Host(host, port) => dial_host(host, *port).map(Stream::Tcp),
        };
        dialled.map_err(|error| SessionError::Gone(format!("nothing answers at {place} ({error})")))
    }

    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(limit),
            Stream::Tcp(stream) => stream.set_read_timeout(limit),
        }
    }

    /// Sends all of it.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

fn dial_host(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut refusal = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ANSWER_LIMIT) {
            Ok(stream) => {
                // Each message waits for its answer: holding small ones back only delays them.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

/// How long a server may take to answer a stranger.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// What a message begins with: its kind, and the length of all but the kind.
const HEADER_BYTES: usize = 5;
/// Room for the answers of short statements; longer ones make it grow.
const ROOM_BYTES: usize = 8 << 10;
/// How much more is read at once where a long answer follows.
const READ_BYTES: usize = 64 << 10;
/// The server builds no message beyond this (`MaxAllocSize`): a longer one is no message.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// How long an answer is waited for.
pub(super) enum Patience {
    Short,
    Endless,
}

/// Both directions of a connection.
pub(super) struct Wire {
    stream: Stream,
    /// What is to be said at the next [`send`](Wire::send).
    pub(super) out: BytesMut,
    incoming: Vec<u8>,
    unread: Range<usize>,
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
        let incoming = vec![0; ROOM_BYTES];
        Wire { stream, out: BytesMut::with_capacity(ROOM_BYTES), incoming, unread: 0..0 }
    }

    /// While a client logs in, silence is an answer; afterwards statements take their time.
    pub(super) fn patience(&mut self, patience: Patience) -> Result<(), SessionError> {
        let limit = match patience {
            Patience::Short => Some(ANSWER_LIMIT),
            Patience::Endless => None,
        };
        self.stream.set_read_timeout(limit).map_err(|error| gone(&error))
    }

    /// Puts into `out` what `say` writes; nothing when that fails, as a text with a null byte does.
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

    /// Sends all that was put into `out`.
    pub(super) fn send(&mut self) -> Result<(), SessionError> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(|error| gone(&error))
    }

    /// The next message, when all of it is here.
    pub(super) fn receive(&mut self) -> Result<Message<'_>, SessionError> {
        let bytes = loop {
            let here = &self.incoming[self.unread.clone()];
            let header = Header::parse(here).map_err(|error| garbled(&error))?;
            let needed = match header {
                None => HEADER_BYTES,
                Some(header) => {
                    let bytes = usize::try_from(header.len()).unwrap_or(usize::MAX);
                    if bytes > MESSAGE_BYTES_MAX {
                        return Err(garbled(&"a message of an impossible length"));
                    }
                    bytes + 1
                }
            };
            if header.is_some() && here.len() >= needed {
                break needed;
            }
            self.read(needed)?;
        };
        let whole = self.unread.start..self.unread.start + bytes;
        self.unread.start = whole.end;
        let whole = &self.incoming[whole];
        Ok(Message { tag: whole[0], whole })
    }

    /// Reads once, with room for a message of `needed` bytes.
    fn read(&mut self, needed: usize) -> Result<(), SessionError> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.start + needed > self.incoming.len() {
            self.incoming.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if needed > self.incoming.len() {
            self.incoming.resize(needed.max(READ_BYTES), 0);
        }
        let room = &mut self.incoming[self.unread.end..];
        let read = match &mut self.stream {
            Stream::Unix(stream) => stream.read(room),
            Stream::Tcp(stream) => stream.read(room),
        };
        match read {
            Ok(0) => Err(SessionError::Gone("it closed the connection".to_owned())),
            Ok(bytes) => {
                self.unread.end += bytes;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(gone(&error)),
        }
    }
}

pub(super) fn gone(error: &io::Error) -> SessionError {
    SessionError::Gone(error.to_string())
}

/// The other side does not speak the protocol: there is nothing to go on with.
pub(super) fn garbled(error: &dyn std::fmt::Display) -> SessionError {
    SessionError::Gone(format!("its answer is not PostgreSQL's protocol ({error})"))
}
