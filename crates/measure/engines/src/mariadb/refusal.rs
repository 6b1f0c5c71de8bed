//! Errors of the server, and what a client can do after each.

use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::ErrPacket;
use workahead_workloads::session::SessionError;

use super::wire::garbled;

/// The most of a packet that is kept: one may have a GiB, and each client has its own.
const PACKET_BYTES_MAX: usize = 16 << 10;

/// A packet that begins with 0xff as a session's error.
pub(super) fn read(packet: &[u8]) -> SessionError {
    let packet = packet.get(..PACKET_BYTES_MAX).unwrap_or(packet);
    // An error before the greeting has no SQLSTATE.
    let capabilities = match packet.get(3) {
        Some(b'#') => CapabilityFlags::CLIENT_PROTOCOL_41,
        _ => CapabilityFlags::empty(),
    };
    match ParseBuf(packet).parse(capabilities) {
        Ok(ErrPacket::Error(refusal)) => {
            let code = refusal.error_code();
            let says = refusal.message_str();
            let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
            way(code)(format!("{says} (error {code})"))
        }
        Ok(ErrPacket::Progress(_)) => garbled("unrequested progress"),
        Err(error) => garbled(error),
    }
}

/// By number (MariaDB manual, "MariaDB Error Code Reference").
fn way(code: u16) -> fn(String) -> SessionError {
    match code {
        // Lock wait timeout, deadlock; record has changed since last read.
        1205 | 1213 | 1020 => SessionError::Retry,
        // Duplicate entry.
        1062 => SessionError::Duplicate,
        // Shutdown in progress, connection killed.
        1053 | 1079 | 1927 => SessionError::Gone,
        _ => SessionError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_what_a_client_does() {
        let of = |code: u16| {
            read(&[&[0xff], code.to_le_bytes().as_slice(), b"#HY000why\n  not"].concat())
        };
        for code in [1205, 1213] {
            assert_eq!(of(code), SessionError::Retry(format!("why not (error {code})")));
        }
        assert_eq!(of(1053), SessionError::Gone("why not (error 1053)".to_owned()));
        assert_eq!(of(1146), SessionError::Failed("why not (error 1146)".to_owned()));
        assert_eq!(of(1062), SessionError::Duplicate("why not (error 1062)".to_owned()));
    }

    #[test]
    fn an_error_before_the_greeting_is_read() {
        let says = read(b"\xff\x10\x04Too many connections");
        assert_eq!(says, SessionError::Failed("Too many connections (error 1040)".to_owned()));
        assert!(matches!(read(b"\xff\x10"), SessionError::Gone(_)));
    }

    #[test]
    fn a_long_refusal_is_cut_and_keeps_its_number() {
        let long = [b"\xff\x26\x04#23000".to_vec(), b"x".repeat(1 << 20)].concat();
        let SessionError::Duplicate(says) = read(&long) else { panic!("it is a duplicate") };
        assert!(says.len() < 2 * PACKET_BYTES_MAX, "{}", says.len());
        assert!(says.starts_with("xxx") && says.ends_with("x (error 1062)"));
    }
}
