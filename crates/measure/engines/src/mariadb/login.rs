//! The beginning of a connection: the server's greeting, then user and password.

mod public_key;

use std::collections::HashMap;

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize;
use workahead_workloads::session::SessionError;

use super::answer::StatementEnd;
use super::refusal;
use super::wire::{MESSAGE_BYTES_MAX, Wire, garbled};
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
    /// Whether the server is MySQL, or a proxy that says so.
    pub(super) is_mysql: bool,
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
    let mut capabilities = offered & able;
    if address.read_only {
        // The server refuses a text of two then, as it does in a prepared statement.
        capabilities.remove(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
    }
    if address.wants_tls() {
        match offered.contains(CapabilityFlags::CLIENT_SSL) {
            true => capabilities.insert(CapabilityFlags::CLIENT_SSL),
            false => address.without_tls()?,
        }
    }
    // MariaDB does not set the MySQL bit; only then the further bits are its own.
    let is_mysql = offered.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
    let extended = match is_mysql {
        true => MariadbCapabilities::empty(),
        false => {
            greeting.mariadb_ext_capabilities() & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA
        }
    };
    let mut terms = Terms {
        connection: greeting.connection_id(),
        without_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        cached_columns: !extended.is_empty(),
        is_mysql,
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
        // Decides the collation only. What reads the server's text panics on digits that are not
        // ASCII.
        (5, 5, 3),
        Some(address.user.as_bytes()),
        Some(address.database.as_bytes()).filter(|name| !name.is_empty()),
        Some(plugin.clone()),
        capabilities,
        Some(attributes).filter(|_| capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS)),
        MESSAGE_BYTES_MAX,
    )
    .with_mariadb_ext_capabilities(extended);
    if capabilities.contains(CapabilityFlags::CLIENT_SSL) {
        let (flags, collation) = (response.capabilities(), response.collation());
        let request = SslRequest::new(flags, MESSAGE_BYTES_MAX, collation);
        request.with_mariadb_capabilities(extended).serialize(wire.reply());
        wire.send()?;
        wire.encrypt(address)?;
    }
    let mut payload = Vec::new();
    response.serialize(&mut payload);
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
            [0x00, ..] => return Ok(StatementEnd::read(packet)?.status),
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
                if !(wire.is_confidential() || address.cleartext) {
                    return Err(in_clear(address));
                }
                tell(wire, password.unwrap_or_default(), &nonce)?;
            }
            _ => return Err(garbled("a packet out of turn")),
        }
    }
}

/// Sends the password itself: over a local socket or TLS as it is, otherwise by the server's key.
fn tell(wire: &mut Wire, password: &str, nonce: &[u8]) -> Result<(), SessionError> {
    let mut clear = [password.as_bytes(), &[0]].concat();
    if !wire.is_secure() {
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
        clear = public_key::encrypt(&clear, key)?;
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
pub(super) mod tests;
