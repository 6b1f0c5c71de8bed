//! Encrypted connections to real servers, with certificates made on the spot.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use workahead_engines::attach::{Access, Target};
use workahead_engines::{mariadb, postgres};
use workahead_study::engine::Stop;
use workahead_workloads::session::{Row, Session, SessionError};

use crate::shared::{directory, free_port, with_settings};

/// Writes an authority's certificate, and key and certificate of a server `localhost`.
fn certify(directory: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text).unwrap();
    write("ca.pem", params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    write("server.pem", params.signed_by(&key, &issuer).unwrap().pem());
    write("server.key", key.serialize_pem());
}

fn connect(url: &str) -> Result<Box<dyn Session>, String> {
    let target = Target::parse(url, Access::Write).unwrap_or_else(|error| panic!("{error}"));
    let opened = target.connect().map(|connection| connection as Box<dyn Session>);
    opened.map_err(|error| match error {
        SessionError::Gone(says) | SessionError::Failed(says) => {
            assert!(!says.contains('\n') && !says.contains("secret"), "{says}");
            says
        }
        other => panic!("{other}"),
    })
}

/// The value of a column of the only row.
fn value(session: &mut dyn Session, text: &str, column: usize) -> String {
    let statement = session.prepare(text).unwrap();
    let mut found = String::new();
    // The second answer of a prepared statement may come without its columns.
    for _ in 0..2 {
        let row: &mut dyn FnMut(Row<'_>) -> _ = &mut |row| {
            row.text(column)?.clone_into(&mut found);
            Ok(())
        };
        session.query(statement, &[], row).unwrap();
    }
    found
}

/// The modes at a server with TLS; `encrypted` queries the session.
fn verifies(
    url: &dyn Fn(&str, &str) -> String,
    trusted: &Path,
    encrypted: &dyn Fn(&mut dyn Session) -> bool,
) {
    let other = directory();
    certify(other.path());
    let roots = |mode: &str, directory: &Path| {
        format!("sslmode={mode}&sslrootcert={}/ca.pem", directory.display())
    };
    for (host, query) in [
        ("127.0.0.1", String::new()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", roots("verify-ca", trusted)),
        ("localhost", roots("verify-full", trusted)),
    ] {
        let mut session = connect(&url(host, &query)).unwrap_or_else(|e| panic!("{query}: {e}"));
        assert!(encrypted(session.as_mut()), "{query}");
        // An answer of many records.
        let text = "SELECT repeat('0123456789', 100000)";
        assert_eq!(value(session.as_mut(), text, 0).len(), 1_000_000);
    }
    let mut session = connect(&url("127.0.0.1", "sslmode=disable")).unwrap();
    assert!(!encrypted(session.as_mut()));
    let says = connect(&url("localhost", &roots("verify-full", other.path()))).map(drop);
    assert!(says.unwrap_err().ends_with("name the file of the right one, sslrootcert=FILE"));
    let says = connect(&url("127.0.0.1", &roots("verify-full", trusted))).map(drop).unwrap_err();
    assert!(says.contains("is not for `127.0.0.1` but for localhost"), "{says}");
    let says = connect(&url("localhost", "sslmode=verify-full")).map(drop).unwrap_err();
    assert!(says.contains("root certificates"), "{says}");
}

/// The modes at a server without TLS.
fn goes_without(url: &dyn Fn(&str, &str) -> String) {
    for query in ["", "sslmode=disable", "sslmode=prefer"] {
        connect(&url("127.0.0.1", query)).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
    for query in ["sslmode=require", "ssl-mode=REQUIRED"] {
        let says = connect(&url("127.0.0.1", query)).map(drop).unwrap_err();
        assert!(says.contains("has no TLS: enable it there, or give sslmode=prefer"), "{says}");
    }
}

/// Gives the server its key: no other user may read that, and both files must be at hand.
fn hand_over(directory: &Path, data: &Path) {
    let key = directory.join("server.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let owner = std::fs::metadata(data).unwrap();
    chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[test]
fn postgres_is_connected_to_over_tls() {
    let directory = directory();
    certify(directory.path());
    let file = |name: &str| -> PathBuf { directory.path().join(name) };
    let hba = file("hba");
    std::fs::write(&hba, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    let port = free_port();
    let settings = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port.to_string()),
        ("hba_file", hba.to_str().unwrap()),
    ];
    let server_options = with_settings(directory.path(), &settings);
    let server =
        postgres::Server::start(&server_options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    let mut owner = server.connect("postgres").unwrap();
    owner.run("CREATE ROLE ada LOGIN PASSWORD 'secret'").unwrap();
    let url =
        |host: &str, query: &str| format!("postgres://ada:secret@{host}:{port}/postgres?{query}");
    goes_without(&url);

    hand_over(directory.path(), &server.directory().join("data"));
    for (name, value) in [("ssl_cert_file", "server.pem"), ("ssl_key_file", "server.key")] {
        let value = postgres::literal(file(value).to_str().unwrap());
        owner.run(&format!("ALTER SYSTEM SET {name} = {value}")).unwrap();
    }
    owner.run("ALTER SYSTEM SET ssl = on").unwrap();
    owner.run("SELECT pg_reload_conf()").unwrap();
    let begun = Instant::now();
    while connect(&url("127.0.0.1", "sslmode=require")).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server does not offer TLS");
        std::thread::sleep(Duration::from_millis(20));
    }
    verifies(&url, directory.path(), &|session| {
        value(session, "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()", 0)
            == "true"
    });
    // A statement is cancelled over a connection that is encrypted too.
    let target = Target::parse(&url("localhost", "sslmode=require"), Access::Write).unwrap();
    let mut session = postgres::Connection::open(&target.address).unwrap();
    let canceller = session.canceller();
    let cancelled = std::thread::spawn(move || session.run("SELECT pg_sleep(60)"));
    while !cancelled.is_finished() {
        canceller.cancel();
        std::thread::sleep(Duration::from_millis(20));
    }
    let says = cancelled.join().unwrap().unwrap_err().to_string();
    assert!(says.contains("canceling statement due to user request"), "{says}");
}

#[test]
fn mariadb_is_connected_to_over_tls() {
    let directory = directory();
    let port = free_port();
    let port_text = port.to_string();
    let network =
        [("skip_networking", "0"), ("bind_address", "127.0.0.1"), ("port", port_text.as_str())];
    let start = |settings: &[(&str, &str)]| {
        let server_options = with_settings(directory.path(), settings);
        mariadb::Server::start(&server_options, &Stop::new())
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let url = |host: &str, query: &str| {
        format!("mysql://ada:secret@{host}:{port}/information_schema?{query}")
    };
    let server = start(&network);
    let mut owner = server.connect("").unwrap();
    owner.run("CREATE USER ada@'127.0.0.1' IDENTIFIED BY 'secret'").unwrap();
    goes_without(&url);
    drop(owner);
    server.stop();

    certify(directory.path());
    hand_over(directory.path(), &directory.path().join("server/data"));
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let tls = [("ssl_cert", certificate.as_str()), ("ssl_key", key.as_str())];
    let server = start(&[&network[..], &tls].concat());
    let cipher = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
    verifies(&url, directory.path(), &|session| !value(session, cipher, 1).is_empty());
    let mut owner = server.connect("").unwrap();
    owner.run("CREATE USER bea@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL").unwrap();
    let bea = |query: &str| connect(&url("127.0.0.1", query).replace("ada", "bea"));
    bea("ssl-mode=REQUIRED").unwrap();
    assert!(bea("ssl-mode=DISABLED").is_err());
}
