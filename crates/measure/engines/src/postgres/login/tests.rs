//! Logins at servers that are not what they should be, and by SCRAM over TLS.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::thread::JoinHandle;

use ring::{hmac, pbkdf2};

use super::*;
use crate::postgres::Connection;
use crate::tls::tests::{Authority, ServerIdentity, address, serve, serve_at};
use crate::tls::{Tls, TlsMode, end_point};

/// The behaviour of a server after the client's proof.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Server {
    Honest,
    /// Its signature is one of another password.
    Deceived,
    /// It has no signature.
    Silent,
}

/// The client's message: the mechanism, and the channel that the proof is bound to, in base64.
type ClientProof = (String, String);

/// The length of a message, and the message: without its kind in the first one.
fn receive(client: &mut impl Read) -> Vec<u8> {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut message).unwrap();
    message
}

fn receive_password(client: &mut impl Read) -> Vec<u8> {
    let mut kind = [0];
    client.read_exact(&mut kind).unwrap();
    assert_eq!(kind, *b"p");
    receive(client)
}

/// Sends an authentication message.
fn request(client: &mut impl Write, code: u32, body: &[u8]) {
    let length = (body.len() as u32 + 8).to_be_bytes();
    client.write_all(&[b"R", &length[..], &code.to_be_bytes(), body].concat()).unwrap();
}

/// Logs a client in by SCRAM with these mechanisms.
fn log_in(client: &mut (impl Read + Write), offered: &[u8], server: Server) -> ClientProof {
    receive(client);
    request(client, 10, offered);
    let first = receive_password(client);
    let end = first.iter().position(|byte| *byte == 0).unwrap();
    let mechanism = String::from_utf8(first[..end].to_vec()).unwrap();
    let first = String::from_utf8(first[end + 5..].to_vec()).unwrap();
    let bare = &first[first.find("n=").unwrap()..];
    let nonce = bare.split_once("r=").unwrap().1;
    let challenge = format!("r={nonce}more,s={},i=4096", base64(b"salt"));
    request(client, 11, challenge.as_bytes());
    let last = String::from_utf8(receive_password(client)).unwrap();
    let (unproved, _proof) = last.split_once(",p=").unwrap();
    if server != Server::Silent {
        let password = if server == Server::Honest { "secret" } else { "other" };
        let signature = signature(password, &format!("{bare},{challenge},{unproved}"));
        request(client, 12, format!("v={}", base64(&signature)).as_bytes());
    }
    // In one write: a client that isn't satisfied by the signature may have left already.
    let end = [&b"R\0\0\0\x08\0\0\0\0"[..], b"Z\0\0\0\x05I"].concat();
    let sent = client.write_all(&end);
    assert!(sent.is_ok() || server == Server::Deceived, "{sent:?}");
    let bound = unproved.split(',').next().unwrap();
    (mechanism, bound.strip_prefix("c=").unwrap().to_owned())
}

/// The server's signature (RFC 5802, 3).
fn signature(password: &str, exchange: &str) -> Vec<u8> {
    let mut salted = [0; 32];
    let rounds = 4096.try_into().unwrap();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, b"salt", password.as_bytes(), &mut salted);
    let keyed = |key: &[u8], text: &[u8]| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
    };
    keyed(&keyed(&salted, b"Server Key"), exchange.as_bytes())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quantum = |three: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(*three.get(at).unwrap_or(&0)));
        let digit = |at: usize| match at <= three.len() {
            true => char::from(DIGITS[bits >> (18 - 6 * at) & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(quantum).collect()
}

const BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const UNBOUND: &[u8] = b"SCRAM-SHA-256\0\0";

/// A server with TLS.
fn encrypted(certified: ServerIdentity, offered: &'static [u8]) -> (u16, JoinHandle<ClientProof>) {
    serve(move |mut socket| {
        assert_eq!(receive(&mut socket), 80_877_103u32.to_be_bytes());
        socket.write_all(b"S").unwrap();
        let mut tls = certified.accept();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        log_in(&mut stream, offered, Server::Honest)
    })
}

fn open(host: &str, port: u16, mode: TlsMode) -> Result<(), String> {
    let address = address(host, port, Tls { mode, roots: None });
    Connection::open(&address).map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_login_over_tls_is_bound_to_the_certificate() {
    let certified = Authority::new().server("localhost");
    let hash = end_point(&certified.certificate).unwrap();
    let (port, served) = encrypted(certified, BOTH);
    open("127.0.0.1", port, TlsMode::Prefer).unwrap();
    let (mechanism, bound) = served.join().unwrap();
    assert_eq!(mechanism, "SCRAM-SHA-256-PLUS");
    assert_eq!(bound, base64(&[b"p=tls-server-end-point,,", &hash[..]].concat()));
}

#[test]
fn a_server_that_does_not_offer_it_hears_that_it_could() {
    let (port, served) = encrypted(Authority::new().server("localhost"), UNBOUND);
    open("127.0.0.1", port, TlsMode::Require).unwrap();
    assert_eq!(served.join().unwrap(), ("SCRAM-SHA-256".to_owned(), base64(b"y,,")));
}

#[test]
fn a_server_proves_that_it_knows_the_password() {
    let logged_in = |server| {
        let (port, served) = serve(move |mut socket| log_in(&mut socket, BOTH, server));
        let opened = open("127.0.0.1", port, TlsMode::Disable);
        assert_eq!(served.join().unwrap(), ("SCRAM-SHA-256".to_owned(), base64(b"n,,")));
        opened
    };
    logged_in(Server::Honest).unwrap();
    let says = logged_in(Server::Deceived).unwrap_err();
    assert!(says.contains("does not prove that it knows the password"), "{says}");
    let says = logged_in(Server::Silent).unwrap_err();
    assert!(says.contains("accepts the login without a proof"), "{says}");
}

#[test]
fn no_other_method_follows_scram() {
    let (port, served) = serve(|mut socket| {
        receive(&mut socket);
        request(&mut socket, 10, UNBOUND);
        receive_password(&mut socket);
        request(&mut socket, 3, b"");
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    });
    let says = open("127.0.0.1", port, TlsMode::Disable).unwrap_err();
    assert!(says.contains("another login method after SCRAM"), "{says}");
    assert!(!served.join().unwrap().contains("secret"));
}

#[test]
fn the_answer_to_the_request_for_tls_decides() {
    let answered = |answer: &'static [u8], mode| {
        let (port, served) = serve(move |mut socket| {
            receive(&mut socket);
            socket.write_all(answer).unwrap();
            log_in(&mut socket, UNBOUND, Server::Honest);
        });
        let opened = open("127.0.0.1", port, mode);
        // It ends with a client that is gone.
        let _ = served.join();
        opened
    };
    answered(b"N", TlsMode::Prefer).unwrap();
    for mode in [TlsMode::Require, TlsMode::VerifyFull] {
        let says = answered(b"N", mode).unwrap_err();
        assert!(says.contains("has no TLS: enable it there, or give sslmode=prefer"), "{says}");
    }
    let says = answered(b"Emade up\n", TlsMode::Prefer).unwrap_err();
    assert!(says.contains("look into its log") && !says.contains("made up"), "{says}");
    let says = answered(b"SR\0\0\0\x08\0\0\0\0", TlsMode::Prefer).unwrap_err();
    assert!(says.contains("bytes ahead of the TLS handshake"), "{says}");
}

/// This machine's address on its network; `None` without one.
fn outside() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: it only finds the way (TEST-NET-1).
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then(|| own.to_string())
}

/// Requests the password in clear. Returns it, or nothing when the client leaves.
fn request_clear(client: &mut (impl Read + Write)) -> String {
    receive(client);
    request(client, 3, b"");
    let mut kind = [0];
    if client.read_exact(&mut kind).is_err() {
        return String::new();
    }
    let password = receive(client);
    request(client, 0, b"");
    client.write_all(b"Z\0\0\0\x05I").unwrap();
    String::from_utf8_lossy(&password).into_owned()
}

#[test]
fn a_password_is_not_sent_in_clear_over_a_network() {
    let Some(host) = outside() else { return };
    let logged_in = |cleartext| {
        let (port, served) = serve_at(&host, |mut socket| request_clear(&mut socket));
        let tls = Tls { mode: TlsMode::Disable, roots: None };
        let address = Address { cleartext, ..address(&host, port, tls) };
        (Connection::open(&address).map(drop), served.join().unwrap())
    };
    let (opened, received) = logged_in(false);
    let says = opened.unwrap_err().to_string();
    assert!(says.contains("in clear") && says.ends_with("--allow-cleartext"), "{says}");
    assert_eq!(received, "");
    let (opened, received) = logged_in(true);
    opened.unwrap();
    assert_eq!(received, "secret\0");

    let certified = Authority::new().server("localhost");
    let (port, served) = serve_at(&host, move |mut socket| {
        receive(&mut socket);
        socket.write_all(b"S").unwrap();
        let mut tls = certified.accept();
        request_clear(&mut rustls::Stream::new(&mut tls, &mut socket))
    });
    open(&host, port, TlsMode::Prefer).unwrap();
    assert_eq!(served.join().unwrap(), "secret\0");
}
