//! The bytes of a connection to a server, over a socket of the file system or of a host, blocking.
//!
//! One write per request, and one read per piece of the answer: the client's own cost must stay out
//! of measurements. Encryption costs what it costs, and only the connections that use it.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::ClientConnection;
use workahead_workloads::session::SessionError;

use crate::address::{Address, Place};
use crate::tls;

/// How long a server may take for a login, and the queries directly after it.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How often an interruption is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Whether the user interrupted.
static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();
/// Room for the answers of short statements; longer pieces make it grow.
const ROOM_BYTES: usize = 32 << 10;

/// Has answers with a time limit be waited for only until this says that the user interrupted.
pub fn wait_until(is_interrupted: fn() -> bool) {
    // The first one stays: there is one command.
    let _ = INTERRUPTED.set(is_interrupted);
}

thread_local! {
    static CANCELS: Cell<bool> = const { Cell::new(false) };
}

/// Runs what cancels a statement: the interruption that asks for that does not end it as well.
pub(crate) fn despite_interruption(cancel: impl FnOnce()) {
    CANCELS.set(true);
    cancel();
    CANCELS.set(false);
}

fn is_interrupted() -> bool {
    !CANCELS.get() && INTERRUPTED.get().is_some_and(|is_interrupted| is_interrupted())
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until a time limit, for all answers together: one that keeps talking is as slow.
    Until(Instant),
    /// For statements, without a limit.
    Endless,
}

impl Patience {
    /// That of a login, from now on.
    pub(crate) fn of_login() -> Patience {
        Patience::Until(Instant::now() + ANSWER_LIMIT)
    }
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

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.read(room),
            Socket::Tcp(stream) => stream.read(room),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Tcp(stream) => stream.write(bytes),
        }
    }

    /// All records of a message in one call.
    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write_vectored(pieces),
            Socket::Tcp(stream) => stream.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both directions of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    /// The encryption, once it has begun.
    tls: Option<Box<ClientConnection>>,
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
        let end = Instant::now() + ANSWER_LIMIT;
        let dialled = match place {
            Place::Socket(path) => dial_socket(path, end).map(Socket::Unix),
            Place::Host(host, port) => dial_host(host, *port, end).map(Socket::Tcp),
        };
        let socket = dialled
            .map_err(|error| SessionError::Gone(format!("nothing answers at {place} ({error})")))?;
        Ok(Stream {
            socket,
            tls: None,
            patience: Patience::Until(end),
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

    /// Whether what is sent never leaves this machine.
    fn stays_here(&self) -> bool {
        match &self.socket {
            Socket::Unix(_) => true,
            Socket::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
        }
    }

    /// Whether nobody between here and the other side can read what is sent.
    pub(crate) fn is_confidential(&self) -> bool {
        self.tls.is_some() || self.stays_here()
    }

    /// Whether it is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The other side's certificate, if it is encrypted.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        let chain = self.tls.as_ref()?.peer_certificates()?;
        chain.first().map(AsRef::as_ref)
    }

    /// Encrypts all that follows.
    ///
    /// # Errors
    /// When the other side sent more than its consent: a third party could have added it, to be
    /// taken for an encrypted answer (CVE-2021-23222). When the handshake or a certificate fails.
    pub(crate) fn encrypt(&mut self, address: &Address) -> Result<(), SessionError> {
        if !self.unread.is_empty() {
            let place = &address.place;
            return Err(SessionError::Failed(format!(
                "the server at {place} sent bytes ahead of the TLS handshake, which a third \
                 party may have added: connect over another network, or through a tunnel"
            )));
        }
        let mut tls = Box::new(tls::client(address)?);
        let mut refused = None;
        while refused.is_none() && tls.is_handshaking() {
            flush(&mut tls, &mut self.socket).map_err(|error| gone(&error))?;
            if tls.wants_read() && self.wait()? {
                receive(&mut tls, &mut self.socket).map_err(|error| gone(&error))?;
                refused = tls.process_new_packets().err();
            }
        }
        // The last message of the handshake, or the alert that says why there is none.
        let sent = flush(&mut tls, &mut self.socket);
        if let Some(error) = refused {
            return Err(tls::refusal(&error, address));
        }
        self.tls = Some(tls);
        sent.map_err(|error| gone(&error))
    }

    /// Sends all of it.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let sent = match &mut self.tls {
            None => self.socket.write_all(bytes),
            Some(tls) => send_encrypted(tls, &mut self.socket, bytes),
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
        let read = match &mut self.tls {
            None => {
                if !self.wait()? {
                    return Ok(());
                }
                self.socket.read(&mut self.incoming[self.unread.end..])
            }
            // Bytes that were decrypted already can't be waited for.
            Some(tls) => match tls.reader().read(&mut self.incoming[self.unread.end..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.decrypt(),
                read => read,
            },
        };
        match read {
            Ok(0) => Err(closed()),
            Ok(bytes) => {
                self.unread.end += bytes;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // Encrypted, without the message that ends it: servers differ in sending one.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(closed()),
            Err(error) => Err(gone(&error)),
        }
    }

    /// Receives once and decrypts it; there may be nothing to read afterwards.
    fn decrypt(&mut self) -> Result<(), SessionError> {
        if !self.wait()? {
            return Ok(());
        }
        let Some(tls) = &mut self.tls else { return Ok(()) };
        receive(tls, &mut self.socket).map_err(|error| gone(&error))?;
        tls.process_new_packets().map_err(|error| SessionError::Gone(error.to_string()))?;
        // A change of keys is answered.
        flush(tls, &mut self.socket).map_err(|error| gone(&error))
    }

    /// Waits until there is something to read; false when something else came first.
    ///
    /// A blocking read of a Unix socket also wakes when the other side reads what was sent, as
    /// there is room to write again (Linux, `unix_write_space`), and sleeps again: two switches of
    /// threads for every statement, before the server has begun with it. `poll` sleeps through
    /// them.
    fn wait(&self) -> Result<bool, SessionError> {
        let late = || SessionError::Gone(format!("no answer for {} s", ANSWER_LIMIT.as_secs()));
        let limit = match (self.patience, &self.socket) {
            (Patience::Until(end), _) => {
                if is_interrupted() {
                    return Err(SessionError::Gone("interrupted".to_owned()));
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(late());
                }
                Some(left.min(LOOK_EVERY))
            }
            (Patience::Endless, Socket::Unix(_)) => None,
            (Patience::Endless, Socket::Tcp(_)) => return Ok(true),
        };
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let socket = self.socket.as_fd();
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], limit.as_ref()) {
            // The limit is looked at by the next call.
            Ok(0) | Err(Errno::INTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(gone(&error.into())),
        }
    }
}

fn send_encrypted(tls: &mut ClientConnection, socket: &mut Socket, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // No more than its buffer holds at once.
        let taken = tls.writer().write(rest)?;
        rest = &rest[taken..];
        flush(tls, socket)?;
    }
    Ok(())
}

fn flush(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn receive(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    match tls.read_tls(socket) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Ok(0) if tls.is_handshaking() => Err(io::ErrorKind::UnexpectedEof.into()),
        received => received.map(drop),
    }
}

/// Dials in a thread that may be left: a name's addresses and a host's answer can't be waited for
/// in pieces.
fn dial_host(host: &str, port: u16, end: Instant) -> io::Result<TcpStream> {
    if host.parse().is_ok_and(|address: IpAddr| address.is_loopback()) {
        return dial_until(host, port, end);
    }
    let name = host.to_owned();
    beside(end, move || dial_until(&name, port, end))
}

/// Dials a socket, which has as long to take us as a host: it does not where too many wait already
/// (unix(7)).
pub(crate) fn dial_socket(path: &Path, end: Instant) -> io::Result<UnixStream> {
    let path = path.to_owned();
    beside(end, move || UnixStream::connect(path))
}

/// Dials in a thread that is left behind where it takes longer, or somebody interrupts.
fn beside<T: Send + 'static>(
    end: Instant,
    dial: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (dialled, answer) = mpsc::channel();
    std::thread::Builder::new().spawn(move || dialled.send(dial()))?;
    loop {
        match answer.recv_timeout(LOOK_EVERY) {
            Ok(dialled) => return dialled,
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(io::Error::other("interrupted"));
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Dials all addresses of a host in turn, each for its part of the time that is left.
fn dial_until(host: &str, port: u16, end: Instant) -> io::Result<TcpStream> {
    let mut refusal = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    for (at, address) in (0_u32..).zip(&addresses) {
        let left = end.saturating_duration_since(Instant::now()) / (addresses.len() as u32 - at);
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, left) {
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

fn closed() -> SessionError {
    SessionError::Gone("it closed the connection".to_owned())
}

fn gone(error: &io::Error) -> SessionError {
    SessionError::Gone(error.to_string())
}
