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

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    /// A header's room, and the payload that is being written.
    out: Vec<u8>,
    /// A payload that came in several packets.
    long: Vec<u8>,
    /// The next packet's number.
    number: u8,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Wire {
        Wire { stream, out: Vec::new(), long: Vec::new(), number: 0 }
    }

    /// Sets how long answers are waited for.
    pub(super) fn set_patience(&mut self, patience: Patience) {
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
