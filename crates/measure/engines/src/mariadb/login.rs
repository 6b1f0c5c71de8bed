//! The beginning of a connection: the server's greeting, then user and password.

use std::collections::HashMap;

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::crypto;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize;
use workahead_workloads::session::SessionError;

use super::answer::Done;
use super::refusal;
use super::wire::{Wire, garbled};
use crate::address::{Address, in_clear};

/// The negotiated protocol, and the server's state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The connection's number, by which another one ends its statements.
    pub(super) connection: u32,
    /// Whether rows are not followed by a packet of the old form.
    pub(super) without_eof: bool,
    /// Whether the columns of a prepared statement's answer come only when they have changed.
    pub(super) cached_columns: bool,
    /// The server's state after the last text, `StatusFlags`.
    pub(super) status: u16,
}

/// This client's capabilities. It reads no local files for the server.
pub(super) fn all() -> CapabilityFlags {
    CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_MULTI_STATEMENTS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_ATTRS
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
        // Rows that an update found and left as they were count.
        | CapabilityFlags::CLIENT_FOUND_ROWS
}

/// Logs in the client of `address` with these capabilities.
pub(super) fn login(
    wire: &mut Wire,
    address: &Address,
    able: CapabilityFlags,
) -> Result<Terms, SessionError> {
    let packet = wire.receive()?;
    if packet.first() == Some(&0xff) {
        return Err(refusal::read(packet));
    }
    let greeting: HandshakePacket<'_> = ParseBuf(packet).parse(()).map_err(garbled)?;
    let offered = greeting.capabilities();
    if greeting.protocol_version() != 10 || !offered.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(garbled("a version of before 2004"));
    }
    let capabilities = offered & able;
    // MariaDB does not set the MySQL bit; only then the further bits are its own.
    let extended = match offered.contains(CapabilityFlags::CLIENT_LONG_PASSWORD) {
        true => MariadbCapabilities::empty(),
        false => {
            greeting.mariadb_ext_capabilities() & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA
        }
    };
    let mut terms = Terms {
        connection: greeting.connection_id(),
        without_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        cached_columns: !extended.is_empty(),
        status: greeting.status_flags().bits(),
    };
    let plugin = match greeting.auth_plugin() {
        Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
        // Any other server names its plugin in the next packet.
        _ => AuthPlugin::MysqlNativePassword,
    };
    let nonce = greeting.nonce();
    let password = address.password.as_deref();
    let proof = plugin.gen_data(password, &nonce).map(|proof| proof.to_vec());
    let attributes = HashMap::from([("program_name".to_owned(), "workahead".to_owned())]);
    let response = HandshakeResponse::new(
        proof,
        greeting.server_version_parsed().unwrap_or_default(),
        Some(address.user.as_bytes()),
        Some(address.database.as_bytes()).filter(|name| !name.is_empty()),
        Some(plugin.clone()),
        capabilities,
        Some(attributes).filter(|_| capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS)),
        1 << 30,
    );
    let mut payload = Vec::new();
    response.with_mariadb_ext_capabilities(extended).serialize(&mut payload);
    wire.reply().extend(payload);
    wire.send()?;
    terms.status = prove(wire, address, plugin, nonce)?;
    Ok(terms)
}

/// Answers the server's challenges until the login succeeds. Returns the server's state.
fn prove(
    wire: &mut Wire,
    address: &Address,
    mut plugin: AuthPlugin<'static>,
    mut nonce: Vec<u8>,
) -> Result<u16, SessionError> {
    let password = address.password.as_deref();
    loop {
        let packet = wire.receive()?;
        match packet {
            [0x00, ..] => return Ok(Done::read(packet)?.status),
            [0xff, ..] => return Err(refusal::read(packet)),
            [0xfe, ..] => {
                let switch: AuthSwitchRequest<'_> =
                    ParseBuf(packet).parse(()).map_err(|_| unknown("mysql_old_password"))?;
                plugin = switch.auth_plugin().into_owned();
                nonce = switch.plugin_data().to_vec();
                let proof = match plugin {
                    AuthPlugin::CachingSha2Password | AuthPlugin::MysqlNativePassword => {
                        plugin.gen_data(password, &nonce).map(|proof| proof.to_vec())
                    }
                    ref other => return Err(unknown(&String::from_utf8_lossy(other.as_bytes()))),
                };
                wire.reply().extend(proof.unwrap_or_default());
                wire.send()?;
            }
            // The server remembers the password, and accepts the client with the next packet.
            [0x01, 0x03] if plugin == AuthPlugin::CachingSha2Password => {}
            [0x01, 0x04] if plugin == AuthPlugin::CachingSha2Password => {
                // By a key that anybody could have sent: it is as good as in clear.
                if !(wire.stays_here() || address.cleartext) {
                    return Err(in_clear(address));
                }
                tell(wire, password.unwrap_or_default(), &nonce)?;
            }
            _ => return Err(garbled("a packet out of turn")),
        }
    }
}

/// Sends the password itself: in clear text over a local socket, otherwise encrypted.
fn tell(wire: &mut Wire, password: &str, nonce: &[u8]) -> Result<(), SessionError> {
    let mut clear = [password.as_bytes(), &[0]].concat();
    if !wire.is_local() {
        wire.reply().push(0x02);
        wire.send()?;
        let key = match wire.receive()? {
            [0x01, key @ ..] => key,
            packet @ [0xff, ..] => return Err(refusal::read(packet)),
            _ => return Err(garbled("no key")),
        };
        for (byte, mask) in clear.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= mask;
        }
        clear = crypto::encrypt(&clear, key);
    }
    wire.reply().extend(clear);
    wire.send()
}

fn unknown(name: &str) -> SessionError {
    SessionError::Failed(format!(
        "the server requests a login method that is not supported ({name}): use a user with a \
         password (mysql_native_password)"
    ))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use mysql_common::constants::StatusFlags;

    use super::*;
    use crate::address::Place;
    use crate::stream::Stream;

    /// Logs in to a fake server that sends these packets, each after it received one. Returns the
    /// packets it received.
    fn at(says: Vec<Vec<u8>>) -> (Result<Terms, SessionError>, Vec<Vec<u8>>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            for (at, payload) in says.iter().enumerate() {
                let header = [payload.len() as u8, 0, 0, 2 * at as u8];
                client.write_all(&[header.as_slice(), payload].concat()).unwrap();
                let mut header = [0; 4];
                if client.read_exact(&mut header).is_err() {
                    break;
                }
                assert_eq!(usize::from(header[3]), 2 * at + 1, "packets are numbered");
                let mut payload = vec![0; usize::from(header[0])];
                client.read_exact(&mut payload).unwrap();
                heard.push(payload);
            }
            heard
        });
        let address = Address {
            place: Place::Socket(path),
            user: "ada".to_owned(),
            password: Some("pass".to_owned()),
            database: "shop".to_owned(),
            settings: Vec::new(),
            read_only: false,
            cleartext: false,
        };
        let mut wire = Wire::new(Stream::dial(&address.place).unwrap());
        let terms = login(&mut wire, &address, all());
        drop(wire);
        (terms, server.join().unwrap())
    }

    fn greeting(plugin: &str) -> Vec<u8> {
        let mut capabilities = all();
        capabilities.insert(CapabilityFlags::CLIENT_CONNECT_WITH_DB);
        let packet = HandshakePacket::new(
            10,
            b"8.4.0".as_slice(),
            7,
            *b"12345678",
            Some(b"901234567890\0".as_slice()),
            capabilities,
            45,
            StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            Some(plugin.as_bytes()),
        );
        let mut payload = Vec::new();
        packet.serialize(&mut payload);
        payload
    }

    const DONE: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

    #[test]
    fn a_mysql_without_a_cached_password_receives_it() {
        let says = vec![greeting("caching_sha2_password"), vec![1, 4], DONE.to_vec()];
        let (terms, heard) = at(says);
        let terms = terms.unwrap();
        assert_eq!((terms.connection, terms.status), (7, 2));
        assert!(terms.without_eof && !terms.cached_columns);
        assert_eq!(heard[1], b"pass\0");
        let who = String::from_utf8_lossy(&heard[0]);
        assert!(who.contains("ada\0") && who.contains("shop\0"), "{who}");
    }

    #[test]
    fn a_server_may_switch_the_login_method() {
        let switch = |plugin: &str| {
            [b"\xfe", plugin.as_bytes(), b"\0abcdefghijklmnopqrst\0".as_slice()].concat()
        };
        let native = "mysql_native_password";
        let says = vec![greeting("caching_sha2_password"), switch(native), DONE.to_vec()];
        let (terms, heard) = at(says);
        terms.unwrap();
        let proof = AuthPlugin::MysqlNativePassword.gen_data(Some("pass"), b"abcdefghijklmnopqrst");
        assert_eq!(heard[1], proof.unwrap().to_vec());
        for (plugin, named) in [("client_ed25519", "client_ed25519"), ("dialog", "dialog")] {
            let (terms, _) = at(vec![greeting(native), switch(plugin)]);
            let says = terms.unwrap_err().to_string();
            assert!(says.contains(&format!("not supported ({named})")), "{says}");
        }
        let (terms, _) = at(vec![greeting(native), vec![0xfe]]);
        assert!(terms.unwrap_err().to_string().contains("not supported (mysql_old_password)"));
    }

    #[test]
    fn a_wrong_greeting_is_one_clear_error() {
        for packet in [b"".as_slice(), b"220 mail.example ESMTP\r\n", b"\x0a5.5", &DONE] {
            let (terms, _) = at(vec![packet.to_vec()]);
            assert!(matches!(terms, Err(SessionError::Gone(_))), "{packet:?}");
        }
        let (terms, _) = at(vec![greeting("caching_sha2_password"), vec![1, 9]]);
        assert!(terms.unwrap_err().to_string().contains("a packet out of turn"));
        let (terms, _) = at(vec![b"\xff\x10\x04Too many connections".to_vec()]);
        assert_eq!(
            terms.unwrap_err(),
            SessionError::Failed("Too many connections (error 1040)".to_owned())
        );
    }
}
