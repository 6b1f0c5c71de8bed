//! The readiness of a scheduler, by HTTP, as load balancers check it.
//!
//! gRPC reports `transport error` for a closed port, a web server and an old scheduler alike; HTTP
//! tells them apart before a query is sent.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::{Address, ClusterError};

/// A running scheduler answers much faster.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A scheduler's answer is shorter.
const ANSWER_BYTES_MAX: u64 = 16 << 10;
/// With Ballista's major version: schedulers refuse clients of another.
const SERVER: &str = "server: ballista/55.";

/// The number of executors of the scheduler at an address.
pub(crate) fn executors(address: &Address) -> Result<usize, ClusterError> {
    let unreachable = |source| ClusterError::Unreachable { address: address.clone(), source };
    let mut stream = connect(address).map_err(unreachable)?;
    match request(&mut stream, address) {
        Ok(text) => {
            read(&text).ok_or_else(|| ClusterError::NotAScheduler { address: address.clone() })
        }
        // It accepted the connection and does not speak HTTP, or did not answer.
        Err(_) => Err(ClusterError::NotAScheduler { address: address.clone() }),
    }
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    let host = address.host().trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for found in (host, address.port()).to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn request(stream: &mut TcpStream, address: &Address) -> io::Result<String> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (host, port) = (address.host(), address.port());
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// `ready: 2 executors registered`, `not ready: 0/1 executors registered`.
fn read(answer: &str) -> Option<usize> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.lines().any(|line| line.to_ascii_lowercase().starts_with(SERVER)) {
        return None;
    }
    let (_, counted) = body.split_once("ready: ")?;
    let end = counted.find(|letter: char| !letter.is_ascii_digit())?;
    counted[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_schedulers_answer_is_accepted() {
        let answer = |server: &str, body: &str| {
            read(&format!("HTTP/1.1 200 OK\r\nserver: {server}\r\n\r\n{body}"))
        };
        assert_eq!(answer("ballista/55.0.0", "ready: 12 executors registered\n"), Some(12));
        assert_eq!(answer("ballista/55.1.0", "not ready: 0/1 executors registered\n"), Some(0));
        assert_eq!(answer("ballista/55.0.0", "no such page\n"), None);
        assert_eq!(answer("ballista/54.0.0", "ready: 12 executors registered\n"), None);
        assert_eq!(answer("nginx", "ready: 12 executors registered\n"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn no_answer_and_another_program_are_distinguished() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nserver: other\r\n\r\n").unwrap();
        });
        let error = executors(&address).unwrap_err();
        assert!(matches!(error, ClusterError::NotAScheduler { .. }), "{error}");
        other.join().unwrap();
        // The thread has closed the listener.
        let error = executors(&address).unwrap_err();
        assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");
    }
}
