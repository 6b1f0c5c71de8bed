//! The beginning of a connection: the user, the password if requested, and then ready.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message as Parsed;
use postgres_protocol::message::frontend;
use workahead_workloads::session::SessionError;

use super::refusal;
use super::wire::{Wire, garbled};
use crate::address::{Address, in_clear};

/// The key by which another connection cancels a statement of this one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Key {
    pub(super) process_id: i32,
    pub(super) secret: i32,
}

/// Logs in the client of `address`.
pub(super) fn login(wire: &mut Wire, address: &Address) -> Result<Key, SessionError> {
    introduce(wire, address)?;
    let mut scram: Option<ScramSha256> = None;
    let mut key = Key::default();
    let mut accepted = false;
    loop {
        let message = wire.receive()?;
        let parsed = match Parsed::parse(&mut BytesMut::from(message.whole)) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Err(garbled(&"half a message")),
            Err(error) => return Err(garbled(&error)),
        };
        match parsed {
            Parsed::ReadyForQuery(_) if accepted => return Ok(key),
            Parsed::ErrorResponse(_) => return Err(refusal::read(message)),
            Parsed::BackendKeyData(body) => {
                key = Key { process_id: body.process_id(), secret: body.secret_key() };
            }
            Parsed::AuthenticationCleartextPassword => {
                if !(wire.stays_here() || address.cleartext) {
                    return Err(in_clear(address));
                }
                let password = password(address)?;
                frontend::password_message(password.as_bytes(), &mut wire.out).map_err(wrong)?;
                wire.send()?;
            }
            Parsed::AuthenticationMd5Password(body) => {
                let password = password(address)?;
                let hash = md5_hash(address.user.as_bytes(), password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut wire.out).map_err(wrong)?;
                wire.send()?;
            }
            Parsed::AuthenticationSasl(body) => {
                if !body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256)).map_err(wrong)? {
                    return Err(unknown());
                }
                let password = password(address)?;
                let begun = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut wire.out)
                    .map_err(wrong)?;
                scram = Some(begun);
                wire.send()?;
            }
            Parsed::AuthenticationSaslContinue(body) => {
                let scram =
                    scram.as_mut().ok_or_else(|| garbled(&"SCRAM continues before it began"))?;
                scram.update(body.data()).map_err(wrong)?;
                frontend::sasl_response(scram.message(), &mut wire.out).map_err(wrong)?;
                wire.send()?;
            }
            Parsed::AuthenticationSaslFinal(body) => {
                let scram = scram.as_mut().ok_or_else(|| garbled(&"SCRAM ends before it began"))?;
                // The server proves that it knows the password too.
                scram.finish(body.data()).map_err(wrong)?;
            }
            Parsed::AuthenticationOk => accepted = true,
            Parsed::ParameterStatus(_)
            | Parsed::NoticeResponse(_)
            | Parsed::NotificationResponse(_) => {}
            Parsed::AuthenticationGss
            | Parsed::AuthenticationGssContinue(_)
            | Parsed::AuthenticationKerberosV5
            | Parsed::AuthenticationScmCredential
            | Parsed::AuthenticationSspi => return Err(unknown()),
            // Another protocol may well look like a message.
            _ => return Err(garbled(&"a message out of turn")),
        }
    }
}

/// The user, the database, and the settings of the session.
fn introduce(wire: &mut Wire, address: &Address) -> Result<(), SessionError> {
    let own = [
        ("user", address.user.as_str()),
        ("database", &address.database),
        ("client_encoding", "UTF8"),
        ("application_name", "workahead"),
    ];
    let settings = address.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // The last of two values counts: no setting undoes it.
    let read_only = address.read_only.then_some(("default_transaction_read_only", "on"));
    let parameters = own.into_iter().chain(settings).chain(read_only);
    frontend::startup_message(parameters, &mut wire.out).map_err(wrong)?;
    wire.send()
}

fn password(address: &Address) -> Result<&str, SessionError> {
    address.password.as_deref().ok_or_else(|| {
        let (user, place) = (&address.user, &address.place);
        let says = format!("the server at {place} requests a password of `{user}`: give it");
        SessionError::Failed(says)
    })
}

fn unknown() -> SessionError {
    let says = "the server requests a login method that is not supported: use a user with a \
                password (scram-sha-256 or md5)";
    SessionError::Failed(says.to_owned())
}

fn wrong(error: std::io::Error) -> SessionError {
    SessionError::Failed(error.to_string())
}
