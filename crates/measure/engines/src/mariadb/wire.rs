//! Packets to and from a server (MariaDB manual, "Clients & Server Protocol").
//!
//! ```text
//! length, 3 bytes │ number in the exchange, 1 byte │ payload     longest: the next continues it
//! ```

use std::fmt::Display;

use workahead_workloads::session::SessionError;

use crate::address::Address;
use crate::stream::{Patience, Stream};

const HEADER_BYTES: usize = 4;
/// A payload of this length or longer goes in several packets, of which only the last is shorter.
pub(super) const PAYLOAD_BYTES_MAX: usize = 0xff_ffff;
/// The server's limit of a payload in however many packets (`max_allowed_packet`).
pub(super) const MESSAGE_BYTES_MAX: u32 = 1 << 30;
/// The limit before the run: versions, rights and settings are far shorter.
const EARLY_MESSAGE_BYTES_MAX: usize = 16 << 20;

// Only what comes in several packets can be too long.
const _: () = assert!(PAYLOAD_BYTES_MAX < EARLY_MESSAGE_BYTES_MAX);

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    /// A header's room, and the payload that is being written.
    out: Vec<u8>,
    /// A payload that came in several packets.
    long: Vec<u8>,
    /// The longest payload that is received.
    message_bytes_max: usize,
    /// The next packet's number.
    number: u8,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Wire {
        let message_bytes_max = EARLY_MESSAGE_BYTES_MAX;
        Wire { stream, out: Vec::new(), long: Vec::new(), message_bytes_max, number: 0 }
    }

    /// Sets how long answers are waited for, and by that how long their payloads may be.
    pub(super) fn set_patience(&mut self, patience: Patience) {
        self.message_bytes_max = match patience {
            Patience::Until(_) => EARLY_MESSAGE_BYTES_MAX,
            Patience::Endless => MESSAGE_BYTES_MAX as usize,
        };
        self.stream.set_patience(patience);
    }

    /// Whether nobody between here and the server can read what is sent.
    pub(super) fn is_confidential(&self) -> bool {
        self.stream.is_confidential()
    }

    /// Encrypts all that follows.
    pub(super) fn encrypt(&mut self, address: &Address) -> Result<(), SessionError> {
        self.stream.encrypt(address)
    }

    /// Whether the server takes a password as it is: over its socket, or encrypted.
    pub(super) fn is_secure(&self) -> bool {
        self.stream.is_local() || self.stream.is_encrypted()
    }

    /// Begins an exchange: append the command's arguments to the returned buffer.
    pub(super) fn command(&mut self, command: u8) -> &mut Vec<u8> {
        self.number = 0;
        let payload = self.reply();
        payload.push(command);
        payload
    }

    /// Continues an exchange: append the payload to the returned buffer.
    pub(super) fn reply(&mut self) -> &mut Vec<u8> {
        self.out.clear();
        self.out.extend([0; HEADER_BYTES]);
        &mut self.out
    }

    /// Sends the buffer.
    pub(super) fn send(&mut self) -> Result<(), SessionError> {
        let bytes = self.out.len() - HEADER_BYTES;
        if bytes < PAYLOAD_BYTES_MAX {
            let header = self.header(bytes);
            self.out[..HEADER_BYTES].copy_from_slice(&header);
            return self.stream.send(&self.out);
        }
        let mut sent = HEADER_BYTES;
        loop {
            let part = sent..self.out.len().min(sent + PAYLOAD_BYTES_MAX);
            sent = part.end;
            let header = self.header(part.len());
            self.stream.send(&header)?;
            self.stream.send(&self.out[part.clone()])?;
            if part.len() < PAYLOAD_BYTES_MAX {
                return Ok(());
            }
        }
    }

    fn header(&mut self, bytes: usize) -> [u8; HEADER_BYTES] {
        let [low, middle, high, _] = (bytes as u32).to_le_bytes();
        let header = [low, middle, high, self.number];
        self.number = self.number.wrapping_add(1);
        header
    }

    /// The payload of the next packet; it may be empty.
    pub(super) fn receive(&mut self) -> Result<&[u8], SessionError> {
        let bytes = self.announced()?;
        if bytes < PAYLOAD_BYTES_MAX {
            return self.stream.take(bytes);
        }
        self.long.clear();
        let mut part = bytes;
        loop {
            if self.long.len() + part > self.message_bytes_max {
                let mib = self.message_bytes_max >> 20;
                let says = format!("its answer has a message of more than {mib} MiB");
                return Err(SessionError::Gone(says));
            }
            self.long.extend_from_slice(self.stream.take(part)?);
            if part < PAYLOAD_BYTES_MAX {
                return Ok(&self.long);
            }
            part = self.announced()?;
        }
    }

    /// Reads a header. Returns the length of the payload.
    fn announced(&mut self) -> Result<usize, SessionError> {
        let header = self.stream.take(HEADER_BYTES)?;
        let bytes = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        self.number = header[3].wrapping_add(1);
        Ok(bytes)
    }
}

/// The error for a peer that does not speak the protocol.
pub(super) fn garbled(error: impl Display) -> SessionError {
    SessionError::Gone(format!("its answer is not MariaDB's protocol ({error})"))
}

/// The error for a packet that ends too early.
pub(super) fn short() -> SessionError {
    garbled("a packet ends too early")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;
    use crate::address::Place;
    use crate::tls::tests::serve;

    /// A connection to a server that does this with its client.
    fn to(does: impl FnOnce(TcpStream) + Send + 'static) -> Wire {
        let (port, _) = serve(does);
        Wire::new(Stream::dial(&Place::Host("127.0.0.1".to_owned(), port)).unwrap())
    }

    fn packet(payload: &[u8]) -> Vec<u8> {
        let [low, middle, high, _] = (payload.len() as u32).to_le_bytes();
        [&[low, middle, high, 0], payload].concat()
    }

    /// Sends packets, each continued by the next, until the client leaves.
    fn flood(mut client: TcpStream) {
        let full = packet(&vec![b'x'; PAYLOAD_BYTES_MAX]);
        while client.write_all(&full).is_ok() {}
    }

    #[test]
    fn packets_without_end_are_refused() {
        let error = to(flood).receive().map(drop).unwrap_err().to_string();
        assert!(error.contains("a message of more than 16 MiB"), "{error}");
        let mut wire = to(flood);
        wire.set_patience(Patience::Endless);
        assert_eq!(wire.message_bytes_max, 1 << 30);
        // A GiB is much for a test.
        wire.message_bytes_max = 40 << 20;
        let error = wire.receive().map(drop).unwrap_err().to_string();
        assert!(error.contains("a message of more than 40 MiB"), "{error}");
        assert!(wire.long.len() <= 40 << 20);
    }

    #[test]
    fn a_payload_of_the_run_may_be_longer() {
        let mut wire = to(|mut client| {
            let full = packet(&vec![b'x'; PAYLOAD_BYTES_MAX]);
            let sent = [full.clone(), full, packet(b"yz"), packet(b"next")].concat();
            client.write_all(&sent).unwrap();
        });
        wire.set_patience(Patience::Endless);
        let long = wire.receive().unwrap();
        assert_eq!(long.len(), 2 * PAYLOAD_BYTES_MAX + 2);
        assert!(long.ends_with(b"xyz"));
        assert_eq!(wire.receive().unwrap(), b"next");
    }
}
