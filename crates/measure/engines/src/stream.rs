//! The bytes of a connection to a server, over a socket of the file system or of a host, blocking.
//!
//! One write per request, and one read per piece of the answer: the client's own cost must stay out
//! of measurements. Encryption costs what it costs, and only the connections that use it.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
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
/// How long a statement goes on after an interruption, which has it cancelled, and how long its
/// cancellation takes at most: with the fifth of a second until that begins, less than a second.
const LEAVE_LIMIT: Duration = Duration::from_millis(700);
/// Whether the user interrupted.
static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();
/// Room for the answers of short statements; longer pieces make it grow.
const ROOM_BYTES: usize = 32 << 10;
/// Bytes of a write: a socket of the file system waits anew for each of its buffers, which a
/// message of a gigabyte fills thousands of times.
const PIECE_BYTES: usize = 256 << 10;

/// Has servers be waited for only until this says that the user interrupted; statements, which are
/// then cancelled, most of a second longer.
pub fn wait_until(is_interrupted: fn() -> bool) {
    // The first one stays: there is one command.
    let _ = INTERRUPTED.set(is_interrupted);
}

thread_local! {
    /// Since when this thread cancels a statement.
    static CANCELS_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs what cancels a statement: the interruption that asks for that does not end it as well, or
/// not at once.
pub(crate) fn despite_interruption(cancel: impl FnOnce()) {
    CANCELS_SINCE.set(Some(Instant::now()));
    cancel();
    CANCELS_SINCE.set(None);
}

fn is_interrupted() -> bool {
    let cancels = CANCELS_SINCE.get().is_some_and(|since| since.elapsed() < LEAVE_LIMIT);
    !cancels && INTERRUPTED.get().is_some_and(|is_interrupted| is_interrupted())
}

/// How long the other side is waited for, to answer or to take what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until a time limit, for all of it together: one that keeps talking is as slow. An
    /// interruption ends it at once.
    Until(Instant),
    /// For statements, without a limit. An interruption has them cancelled; what goes on all the
    /// same is left.
    Endless,
}

impl Patience {
    /// That of a login, from now on.
    pub(crate) fn of_login() -> Patience {
        Patience::Until(Instant::now() + ANSWER_LIMIT)
    }

    /// None: what can be done without waiting is done.
    pub(crate) fn exhausted() -> Patience {
        Patience::Until(Instant::now())
    }
}

/// The wait for the other side, as far as it has come.
#[derive(Debug)]
struct Wait {
    patience: Patience,
    /// Since when the user wants it to end.
    interrupted: Option<Instant>,
}

impl Wait {
    /// How long to wait until the next look; an error when the wait is over.
    fn next_look(&mut self) -> Result<Duration, SessionError> {
        let is_over = is_interrupted()
            && match self.patience {
                Patience::Until(_) => true,
                // Counted for the connection: one that keeps talking is left as well.
                Patience::Endless => {
                    self.interrupted.get_or_insert_with(Instant::now).elapsed() >= LEAVE_LIMIT
                }
            };
        if is_over {
            return Err(SessionError::Gone("interrupted".to_owned()));
        }
        let Patience::Until(end) = self.patience else { return Ok(LOOK_EVERY) };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let says = format!("no answer for {} s", ANSWER_LIMIT.as_secs());
            return Err(SessionError::Gone(says));
        }
        Ok(left.min(LOOK_EVERY))
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

    /// Has every read and write give up after a while, to be tried again.
    fn give_up_after(&self, time: Duration) -> io::Result<()> {
        let time = Some(time);
        match self {
            Socket::Unix(stream) => {
                stream.set_read_timeout(time).and_then(|()| stream.set_write_timeout(time))
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(time).and_then(|()| stream.set_write_timeout(time))
            }
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
    wait: Wait,
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
        socket.give_up_after(LOOK_EVERY).map_err(|error| gone(&error))?;
        Ok(Stream {
            socket,
            tls: None,
            wait: Wait { patience: Patience::Until(end), interrupted: None },
            incoming: vec![0; ROOM_BYTES],
            unread: 0..0,
        })
    }

    /// Sets how long the other side is waited for.
    pub(crate) fn set_patience(&mut self, patience: Patience) {
        self.wait.patience = patience;
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
            flush(&mut tls, &mut self.socket, &mut self.wait)?;
            if tls.wants_read() && self.wait_to_read()? {
                receive(&mut tls, &mut self.socket).map_err(|error| gone(&error))?;
                refused = tls.process_new_packets().err();
            }
        }
        // The last message of the handshake, or the alert that says why there is none.
        let sent = flush(&mut tls, &mut self.socket, &mut self.wait);
        if let Some(error) = refused {
            return Err(tls::refusal(&error, address));
        }
        self.tls = Some(tls);
        sent
    }

    /// Sends all of it. The other side is waited for where it does not read.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let Self { socket, tls, wait, .. } = self;
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match tls {
                None => written(socket.write(&rest[..rest.len().min(PIECE_BYTES)]))?,
                Some(tls) => {
                    // No more than its buffer holds at once.
                    let taken = tls.writer().write(rest).map_err(|error| gone(&error))?;
                    flush(tls, socket, wait)?;
                    taken
                }
            };
            rest = &rest[taken..];
            if !rest.is_empty() {
                wait.next_look()?;
            }
        }
        Ok(())
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
                if !self.wait_to_read()? {
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
            Err(error) if is_to_be_tried_again(&error) => Ok(()),
            // Encrypted, without the message that ends it: servers differ in sending one.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(closed()),
            Err(error) => Err(gone(&error)),
        }
    }

    /// Receives once and decrypts it; there may be nothing to read afterwards.
    fn decrypt(&mut self) -> Result<(), SessionError> {
        if !self.wait_to_read()? {
            return Ok(());
        }
        let Some(tls) = &mut self.tls else { return Ok(()) };
        receive(tls, &mut self.socket).map_err(|error| gone(&error))?;
        tls.process_new_packets().map_err(|error| SessionError::Gone(error.to_string()))?;
        // A change of keys is answered.
        flush(tls, &mut self.socket, &mut self.wait)
    }

    /// Waits until there is something to read; false when something else came first.
    ///
    /// A blocking read of a Unix socket also wakes when the other side reads what was sent, as
    /// there is room to write again (Linux, `unix_write_space`), and sleeps again: two switches of
    /// threads for every statement, before the server has begun with it. `poll` sleeps through
    /// them.
    fn wait_to_read(&mut self) -> Result<bool, SessionError> {
        let limit = self.wait.next_look()?;
        if matches!((self.wait.patience, &self.socket), (Patience::Endless, Socket::Tcp(_))) {
            // The read waits as long, and is a call less for each answer.
            return Ok(true);
        }
        let limit =
            Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        let socket = self.socket.as_fd();
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&limit)) {
            // The limit is looked at by the next call.
            Ok(0) | Err(Errno::INTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(gone(&error.into())),
        }
    }
}

/// Sends all that is encrypted.
fn flush(
    tls: &mut ClientConnection,
    socket: &mut Socket,
    wait: &mut Wait,
) -> Result<(), SessionError> {
    while tls.wants_write() {
        written(tls.write_tls(socket))?;
        if tls.wants_write() {
            wait.next_look()?;
        }
    }
    Ok(())
}

/// The bytes of a write: none of one that is to be tried again.
fn written(write: io::Result<usize>) -> Result<usize, SessionError> {
    match write {
        Ok(0) => Err(closed()),
        Err(error) if is_to_be_tried_again(&error) => Ok(0),
        write => write.map_err(|error| gone(&error)),
    }
}

/// A signal came, or nothing for a while.
fn is_to_be_tried_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

fn receive(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    match tls.read_tls(socket) {
        Err(error) if is_to_be_tried_again(&error) => Ok(()),
        Ok(0) if tls.is_handshaking() => Err(io::ErrorKind::UnexpectedEof.into()),
        received => received.map(drop),
    }
}

/// Dials in a thread that may be left: a name's addresses and a host's answer can't be waited for
/// in pieces.
fn dial_host(host: &str, port: u16, end: Instant) -> io::Result<TcpStream> {
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

#[cfg(test)]
mod tests;
