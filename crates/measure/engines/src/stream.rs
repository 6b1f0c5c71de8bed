//! The bytes of a connection to a server, over a socket of the file system or of a host, blocking.
//!
//! One write per request, and one read per piece of the answer: the client's own cost must stay out
//! of measurements.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use workahead_workloads::session::SessionError;

use crate::address::Place;

/// How long a server may take to answer during login.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Room for the answers of short statements; longer pieces make it grow.
const ROOM_BYTES: usize = 32 << 10;

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// During login, with a time limit.
    Short,
    /// For statements, without a limit.
    Endless,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// Both directions of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    patience: Patience,
    incoming: Vec<u8>,
    /// Received bytes that were not taken.
    unread: Range<usize>,
}

impl Stream {
    /// Connects, with short patience for the login.
    ///
    /// # Errors
    /// [`SessionError::Gone`] when nothing answers.
    pub(crate) fn dial(place: &Place) -> Result<Stream, SessionError> {
        let dialled = match place {
            Place::Socket(path) => UnixStream::connect(path).map(Socket::Unix),
            Place::Host(host, port) => dial_host(host, *port).map(Socket::Tcp),
        };
        let socket = dialled
            .map_err(|error| SessionError::Gone(format!("nothing answers at {place} ({error})")))?;
        Ok(Stream {
            socket,
            patience: Patience::Short,
            incoming: vec![0; ROOM_BYTES],
            unread: 0..0,
        })
    }

    /// Sets how long answers are waited for.
    pub(crate) fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Whether the other side is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    /// Whether nobody between here and the other side can listen.
    pub(crate) fn stays_here(&self) -> bool {
        match &self.socket {
            Socket::Unix(_) => true,
            Socket::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
        }
    }

    /// Sends all of it.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let sent = match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(bytes),
            Socket::Tcp(stream) => stream.write_all(bytes),
        };
        sent.map_err(|error| gone(&error))
    }

    /// At least `bytes` of received bytes, without taking them.
    pub(crate) fn peek(&mut self, bytes: usize) -> Result<&[u8], SessionError> {
        while self.unread.len() < bytes {
            self.read(bytes)?;
        }
        Ok(&self.incoming[self.unread.clone()])
    }

    /// Takes the next `bytes`.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<&[u8], SessionError> {
        self.peek(bytes)?;
        let taken = self.unread.start..self.unread.start + bytes;
        self.unread.start = taken.end;
        Ok(&self.incoming[taken])
    }

    /// Reads once, with room for `needed` unread bytes.
    fn read(&mut self, needed: usize) -> Result<(), SessionError> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.start + needed > self.incoming.len() {
            self.incoming.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if needed > self.incoming.len() {
            self.incoming.resize(needed, 0);
        }
        if !self.wait()? {
            return Ok(());
        }
        let room = &mut self.incoming[self.unread.end..];
        let read = match &mut self.socket {
            Socket::Unix(stream) => stream.read(room),
            Socket::Tcp(stream) => stream.read(room),
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

    /// Waits until there is something to read; false when a signal came first.
    ///
    /// A blocking read of a Unix socket also wakes when the other side reads what was sent, as
    /// there is room to write again (Linux, `unix_write_space`), and sleeps again: two switches of
    /// threads for every statement, before the server has begun with it. `poll` sleeps through
    /// them.
    fn wait(&self) -> Result<bool, SessionError> {
        let limit = match (self.patience, &self.socket) {
            (Patience::Short, _) => Some(ANSWER_LIMIT),
            (Patience::Endless, Socket::Unix(_)) => None,
            (Patience::Endless, Socket::Tcp(_)) => return Ok(true),
        };
        let limit = limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: 0 });
        let socket = self.socket.as_fd();
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], limit.as_ref()) {
            Ok(0) => {
                let limit_s = ANSWER_LIMIT.as_secs();
                Err(SessionError::Gone(format!("no answer for {limit_s} s")))
            }
            Ok(_) => Ok(true),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(gone(&error.into())),
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

fn gone(error: &io::Error) -> SessionError {
    SessionError::Gone(error.to_string())
}
