//! A login by SCRAM-SHA-256 (RFC 5802 and 7677), in which both sides prove that they know the
//! password.
//!
//! ```text
//! mechanisms ─► first message ─► challenge ─► proof ─► the server's signature ─► accepted
//! ```
//!
//! With TLS the proof holds for the server's certificate only (`SCRAM-SHA-256-PLUS`): it is of no
//! use to somebody between, who has another one, at a server that requires TLS.

use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::AuthenticationSaslBody;
use postgres_protocol::message::frontend;
use workahead_workloads::session::SessionError;

use super::login::{unknown, wrong};
use super::wire::Wire;
use crate::tls;

/// The client's side.
pub(super) struct Scram {
    exchange: ScramSha256,
    /// Whether the server has proved that it knows the password.
    proved: bool,
}

impl Scram {
    /// Sends the first message.
    pub(super) fn begin(
        wire: &mut Wire,
        offered: &AuthenticationSaslBody,
        password: &str,
    ) -> Result<Scram, SessionError> {
        let offers = |wanted| offered.mechanisms().any(|name| Ok(name == wanted)).map_err(wrong);
        let (mechanism, binding) = match wire.certificate().and_then(tls::end_point) {
            Some(hash) if offers(SCRAM_SHA_256_PLUS)? => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash))
            }
            // A server that did offer it then knows that somebody in between took it away.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !offers(mechanism)? {
            return Err(unknown());
        }
        let exchange = ScramSha256::new(password.as_bytes(), binding);
        frontend::sasl_initial_response(mechanism, exchange.message(), &mut wire.out)
            .map_err(wrong)?;
        wire.send()?;
        Ok(Scram { exchange, proved: false })
    }

    /// Answers the challenge.
    pub(super) fn prove(&mut self, wire: &mut Wire, challenge: &[u8]) -> Result<(), SessionError> {
        self.exchange.update(challenge).map_err(wrong)?;
        frontend::sasl_response(self.exchange.message(), &mut wire.out).map_err(wrong)?;
        wire.send()
    }

    /// Verifies the server's signature.
    pub(super) fn verify(&mut self, signature: &[u8]) -> Result<(), SessionError> {
        self.exchange.finish(signature).map_err(|error| {
            SessionError::Failed(format!(
                "the server does not prove that it knows the password ({error}): is it the right \
                 server?"
            ))
        })?;
        self.proved = true;
        Ok(())
    }

    /// Refuses a server that accepts the login without a signature.
    pub(super) fn accepted(&self) -> Result<(), SessionError> {
        if self.proved {
            return Ok(());
        }
        let says = "the server accepts the login without a proof that it knows the password: is \
                    it the right server?";
        Err(SessionError::Failed(says.to_owned()))
    }
}
