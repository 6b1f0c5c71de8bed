//! The beginning of a connection: the user, the password if requested, and then ready.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::message::backend::Message as Parsed;
use postgres_protocol::message::frontend;
use workahead_workloads::session::SessionError;

use super::refusal;
use super::scram::Scram;
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
    let mut scram: Option<Scram> = None;
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
            // Without the server's proof nothing else is tried.
            Parsed::AuthenticationCleartextPassword
            | Parsed::AuthenticationMd5Password(_)
            | Parsed::AuthenticationSasl(_)
                if scram.is_some() =>
            {
                return Err(garbled(&"another login method after SCRAM"));
            }
            Parsed::AuthenticationCleartextPassword => {
                if !(wire.is_confidential() || address.cleartext) {
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
                scram = Some(Scram::begin(wire, &body, password(address)?)?);
            }
            Parsed::AuthenticationSaslContinue(body) => {
                let scram =
                    scram.as_mut().ok_or_else(|| garbled(&"SCRAM continues before it began"))?;
                scram.prove(wire, body.data())?;
            }
            Parsed::AuthenticationSaslFinal(body) => {
                let scram = scram.as_mut().ok_or_else(|| garbled(&"SCRAM ends before it began"))?;
                scram.verify(body.data())?;
            }
            Parsed::AuthenticationOk => {
                scram.as_ref().map_or(Ok(()), Scram::accepted)?;
                accepted = true;
            }
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
    // The last of two values counts: no setting undoes it, nor the user's or the database's own.
    let read_only = address.read_only.then_some(("default_transaction_read_only", "on"));
    // A role that the database sets would hide that its user is a superuser.
    let quotes = [("standard_conforming_strings", "on"), ("role", "none")];
    // Temporary tables would be the first otherwise.
    let names = address.own_names.then_some(("search_path", "pg_catalog, pg_temp"));
    let parameters = own.into_iter().chain(settings).chain(quotes).chain(read_only).chain(names);
    frontend::startup_message(parameters, &mut wire.out).map_err(wrong)?;
    wire.send()
}

fn password(address: &Address) -> Result<&str, SessionError> {
    address.password.as_deref().ok_or_else(|| {
        let (user, place) = (&address.user, &address.place);
        let says = format!(
            "the server at {place} requests a password of `{user}`: give it in \
             WORKAHEAD_PASSWORD or ~/.pgpass"
        );
        SessionError::Failed(says)
    })
}

pub(super) fn unknown() -> SessionError {
    let says = "the server requests a login method that is not supported: use a user with a \
                password (scram-sha-256 or md5)";
    SessionError::Failed(says.to_owned())
}

pub(super) fn wrong(error: std::io::Error) -> SessionError {
    SessionError::Failed(error.to_string())
}

#[cfg(test)]
mod tests;
