//! Logins at servers that say what they should not, and over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use mysql_common::constants::StatusFlags;

use super::*;
use crate::address::Place;
use crate::stream::Stream;
use crate::tls::tests::{Authority, address, serve};
use crate::tls::{Tls, TlsMode};

/// A server that sends what a test gives it.
pub(in crate::mariadb) struct Fake {
    pub(in crate::mariadb) address: Address,
    heard: JoinHandle<Vec<(u8, Vec<u8>)>>,
    _directory: tempfile::TempDir,
}

impl Fake {
    /// Sends these packets with their numbers, each after it received one.
    pub(in crate::mariadb) fn saying(says: Vec<(u8, Vec<u8>)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let heard = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            for (number, payload) in says {
                let header = [payload.len() as u8, 0, 0, number];
                client.write_all(&[&header, payload.as_slice()].concat()).unwrap();
                let mut header = [0; 4];
                if client.read_exact(&mut header).is_err() {
                    break;
                }
                let mut payload = vec![0; usize::from(header[0])];
                client.read_exact(&mut payload).unwrap();
                heard.push((header[3], payload));
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
            own_names: false,
            cleartext: false,
            tls: Tls::default(),
        };
        Self { address, heard, _directory: directory }
    }

    /// The packets that it received, with their numbers.
    pub(in crate::mariadb) fn heard(self) -> Vec<(u8, Vec<u8>)> {
        self.heard.join().unwrap()
    }
}

/// Logs in to a server that sends these packets. Returns the packets it received.
fn at(says: Vec<Vec<u8>>) -> (Result<Terms, SessionError>, Vec<Vec<u8>>) {
    let says = says.into_iter().zip((0..).step_by(2)).map(|(payload, number)| (number, payload));
    let fake = Fake::saying(says.collect());
    let mut wire = Wire::new(Stream::dial(&fake.address.place).unwrap());
    let terms = login(&mut wire, &fake.address, all());
    drop(wire);
    let numbered = |(at, (number, payload)): (usize, (u8, Vec<u8>))| {
        assert_eq!(usize::from(number), 2 * at + 1, "packets are numbered");
        payload
    };
    (terms, fake.heard().into_iter().enumerate().map(numbered).collect())
}

pub(in crate::mariadb) fn greeting(plugin: &str, mut capabilities: CapabilityFlags) -> Vec<u8> {
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
    let says = vec![greeting("caching_sha2_password", all()), vec![1, 4], DONE.to_vec()];
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
    let says = vec![greeting("caching_sha2_password", all()), switch(native), DONE.to_vec()];
    let (terms, heard) = at(says);
    terms.unwrap();
    let proof = AuthPlugin::MysqlNativePassword.gen_data(Some("pass"), b"abcdefghijklmnopqrst");
    assert_eq!(heard[1], proof.unwrap().to_vec());
    for (plugin, named) in [("client_ed25519", "client_ed25519"), ("dialog", "dialog")] {
        let (terms, _) = at(vec![greeting(native, all()), switch(plugin)]);
        let says = terms.unwrap_err().to_string();
        assert!(says.contains(&format!("not supported ({named})")), "{says}");
    }
    let (terms, _) = at(vec![greeting(native, all()), vec![0xfe]]);
    assert!(terms.unwrap_err().to_string().contains("not supported (mysql_old_password)"));
}

#[test]
fn a_wrong_greeting_is_one_clear_error() {
    for packet in [b"".as_slice(), b"220 mail.example ESMTP\r\n", b"\x0a5.5", &DONE] {
        let (terms, _) = at(vec![packet.to_vec()]);
        assert!(matches!(terms, Err(SessionError::Gone(_))), "{packet:?}");
    }
    let (terms, _) = at(vec![greeting("caching_sha2_password", all()), vec![1, 9]]);
    assert!(terms.unwrap_err().to_string().contains("a packet out of turn"));
    let (terms, _) = at(vec![b"\xff\x10\x04Too many connections".to_vec()]);
    assert_eq!(
        terms.unwrap_err(),
        SessionError::Failed("Too many connections (error 1040)".to_owned())
    );
}

fn send(client: &mut impl Write, number: u8, payload: &[u8]) {
    let [low, middle, high, _] = (payload.len() as u32).to_le_bytes();
    client.write_all(&[&[low, middle, high, number], payload].concat()).unwrap();
}

fn receive(client: &mut impl Read, number: u8) -> Vec<u8> {
    let mut header = [0; 4];
    client.read_exact(&mut header).unwrap();
    assert_eq!(header[3], number, "packets are numbered");
    let [low, middle, high, _] = header;
    let mut payload = vec![0; u32::from_le_bytes([low, middle, high, 0]) as usize];
    client.read_exact(&mut payload).unwrap();
    payload
}

#[test]
fn a_mysql_without_a_cached_password_receives_it_over_tls() {
    let certified = Authority::new().server("localhost");
    let (port, served) = serve(move |mut socket| {
        let able = all() | CapabilityFlags::CLIENT_SSL;
        send(&mut socket, 0, &greeting("caching_sha2_password", able));
        let request = receive(&mut socket, 1);
        let mut tls = certified.accept();
        let mut client = rustls::Stream::new(&mut tls, &mut socket);
        let response = receive(&mut client, 2);
        send(&mut client, 3, &[1, 4]);
        let password = receive(&mut client, 4);
        send(&mut client, 5, &DONE);
        (request, response, password)
    });
    let address = address("localhost", port, Tls { mode: TlsMode::Require, roots: None });
    let mut wire = Wire::new(Stream::dial(&address.place).unwrap());
    login(&mut wire, &address, all()).unwrap();
    let (request, response, password) = served.join().unwrap();
    assert_eq!(request, response[..32], "the request is the beginning of the response");
    assert_eq!(request.len(), 32);
    assert_eq!(password, b"secret\0");
}

#[test]
fn bytes_between_greeting_and_handshake_are_refused() {
    let (port, served) = serve(move |mut socket| {
        let able = all() | CapabilityFlags::CLIENT_SSL;
        let mut packets = Vec::new();
        send(&mut packets, 0, &greeting("mysql_native_password", able));
        send(&mut packets, 2, &DONE);
        // In one write, so that they arrive together.
        socket.write_all(&packets).unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        rest
    });
    let address = address("localhost", port, Tls::default());
    let mut wire = Wire::new(Stream::dial(&address.place).unwrap());
    let refused = login(&mut wire, &address, all()).unwrap_err().to_string();
    drop(wire);
    assert!(refused.contains("bytes ahead of the TLS handshake"), "{refused}");
    assert_eq!(served.join().unwrap().len(), 36, "nothing but the request for TLS");
}

/// Logs in, without TLS, to a server that shows this key and goes on so.
fn shown<T: Send + 'static>(
    key: &[u8],
    go_on: impl FnOnce(&mut TcpStream) -> T + Send + 'static,
) -> (Result<Terms, SessionError>, T) {
    let key = [&[1_u8][..], key].concat();
    let (port, served) = serve(move |mut socket| {
        send(&mut socket, 0, &greeting("caching_sha2_password", all()));
        receive(&mut socket, 1);
        send(&mut socket, 2, &[1, 4]);
        assert_eq!(receive(&mut socket, 3), [2_u8], "a request for the key");
        send(&mut socket, 4, &key);
        go_on(&mut socket)
    });
    let address = address("127.0.0.1", port, Tls { mode: TlsMode::Disable, roots: None });
    let mut wire = Wire::new(Stream::dial(&address.place).unwrap());
    let terms = login(&mut wire, &address, all());
    drop(wire);
    (terms, served.join().unwrap())
}

#[test]
fn a_mysql_without_tls_receives_the_password_by_its_key() {
    let (terms, said) = shown(public_key::tests::PEM, |socket| {
        let said = receive(socket, 5);
        send(socket, 6, &DONE);
        said
    });
    terms.unwrap();
    assert_eq!(said.len(), 256);
    for (key, says) in [
        (b"hello".to_vec(), "is not one of RSA in PEM"),
        (vec![b'A'; 200_000], "has more than 4 KiB"),
    ] {
        let (terms, said) = shown(&key, |socket| {
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            said
        });
        let error = terms.unwrap_err().to_string();
        assert!(error.contains(says) && said.is_empty(), "{error}");
    }
}
