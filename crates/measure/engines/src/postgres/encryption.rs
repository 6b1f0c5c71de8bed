//! The request for encryption, ahead of all else (manual, "SSL Session Encryption").

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use workahead_workloads::session::SessionError;

use super::wire::garbled;
use crate::address::Address;
use crate::stream::Stream;

/// Connects, encrypted if the address wants it and the server can.
pub(super) fn dial(address: &Address) -> Result<Stream, SessionError> {
    let mut stream = Stream::dial(&address.place)?;
    if !address.wants_tls() {
        return Ok(stream);
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.send(&request)?;
    match stream.take(1)?[0] {
        b'S' => stream.encrypt(address)?,
        b'N' => address.without_tls()?,
        // Its text is not shown: it could come from anybody on the way (CVE-2024-10977).
        b'E' => {
            let place = &address.place;
            return Err(SessionError::Failed(format!(
                "the server at {place} answers the request for TLS with an error: look into its \
                 log, or give sslmode=disable to connect in clear"
            )));
        }
        _ => return Err(garbled(&"its answer to the request for TLS")),
    }
    Ok(stream)
}
