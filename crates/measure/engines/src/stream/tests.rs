//! Servers that neither answer nor read, left in time.

use std::os::unix::net::UnixListener;

use super::*;
use crate::tls::tests::{Authority, address, serve};
use crate::tls::{Tls, TlsMode};

thread_local! {
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// As after Ctrl-C.
fn interrupted<T>(wait: impl FnOnce() -> T) -> T {
    wait_until(|| IS_INTERRUPTED.get());
    IS_INTERRUPTED.set(true);
    let waited = wait();
    IS_INTERRUPTED.set(false);
    waited
}

/// More than the buffers on the way.
const MUCH: usize = 64 << 20;

/// A connection to a server that neither answers nor reads, until the other is dropped.
fn silent() -> (Stream, mpsc::Sender<()>) {
    let (leave, left) = mpsc::channel();
    let (port, _) = serve(move |client| {
        let _ = left.recv();
        drop(client);
    });
    (Stream::dial(&Place::Host("127.0.0.1".to_owned(), port)).unwrap(), leave)
}

/// The same over a socket of the file system.
fn silent_socket() -> (Stream, mpsc::Sender<()>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let (leave, left) = mpsc::channel();
    std::thread::spawn(move || {
        let _client = listener.accept();
        let _ = left.recv();
    });
    (Stream::dial(&Place::Socket(path)).unwrap(), leave)
}

/// The same over TLS, once the handshake is over.
fn silent_tls() -> (Stream, mpsc::Sender<()>) {
    let certified = Authority::new().server("localhost");
    let (leave, left) = mpsc::channel();
    let (port, _) = serve(move |mut socket| {
        let mut tls = certified.accept();
        let _ = rustls::Stream::new(&mut tls, &mut socket).read_exact(&mut [0]);
        let _ = left.recv();
    });
    let address = address("localhost", port, Tls { mode: TlsMode::Require, roots: None });
    let mut stream = Stream::dial(&address.place).unwrap();
    stream.encrypt(&address).unwrap();
    stream.send(b"x").unwrap();
    (stream, leave)
}

fn gone(says: &str) -> Result<(), SessionError> {
    Err(SessionError::Gone(says.to_owned()))
}

#[test]
fn a_server_that_does_not_read_is_left_when_the_time_is_over() {
    for (mut stream, _server) in [silent(), silent_socket(), silent_tls()] {
        stream.set_patience(Patience::Until(Instant::now() + 2 * LOOK_EVERY));
        assert_eq!(stream.send(&vec![b'x'; MUCH]), gone("no answer for 20 s"));
    }
}

#[test]
fn an_interruption_leaves_a_server_that_does_not_read_or_answer() {
    for patience in [Patience::of_login(), Patience::Endless] {
        for (mut stream, _server) in [silent(), silent_socket(), silent_tls()] {
            stream.set_patience(patience);
            let answer = interrupted(|| stream.peek(1).map(drop));
            assert_eq!(answer, gone("interrupted"));
        }
        for (mut stream, _server) in [silent(), silent_socket(), silent_tls()] {
            stream.set_patience(patience);
            let sent = interrupted(|| stream.send(&vec![b'x'; MUCH]));
            assert_eq!(sent, gone("interrupted"));
        }
    }
}

/// Whatever it says meanwhile.
#[test]
fn an_interruption_leaves_a_server_that_keeps_talking() {
    let (port, _) = serve(|mut client| while client.write_all(&[b'x'; 1000]).is_ok() {});
    let mut stream = Stream::dial(&Place::Host("127.0.0.1".to_owned(), port)).unwrap();
    stream.set_patience(Patience::Endless);
    let talk = interrupted(|| {
        loop {
            if let Err(error) = stream.take(1) {
                return error;
            }
        }
    });
    assert_eq!(talk, SessionError::Gone("interrupted".to_owned()));
}

#[test]
fn what_cancels_a_statement_has_some_time_and_no_more() {
    let (port, _) = serve(|mut client| client.write_all(b"x"));
    let place = Place::Host("127.0.0.1".to_owned(), port);
    let mut dialled = None;
    interrupted(|| despite_interruption(|| dialled = Some(Stream::dial(&place))));
    assert_eq!(dialled.unwrap().unwrap().take(1), Ok(&b"x"[..]));

    let (mut stream, _server) = silent();
    let mut answer = Ok(());
    interrupted(|| despite_interruption(|| answer = stream.peek(1).map(drop)));
    assert_eq!(answer, gone("interrupted"));
}

/// What can be said without waiting is said: a connection that is left says so.
#[test]
fn a_server_that_reads_hears_the_end() {
    let (port, served) = serve(|mut client| {
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).map(|_| heard)
    });
    let mut stream = Stream::dial(&Place::Host("127.0.0.1".to_owned(), port)).unwrap();
    stream.set_patience(Patience::exhausted());
    interrupted(|| stream.send(b"the end")).unwrap();
    drop(stream);
    assert_eq!(served.join().unwrap().unwrap(), b"the end");
}
