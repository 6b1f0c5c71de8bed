//! Servers that already run, by their URLs: login, refusals, permissions.

use workahead_engines::attach::{Access, Target};
use workahead_engines::postgres;
use workahead_study::engine::Stop;
use workahead_workloads::session::{Session, SessionError};

use crate::shared::{self, directory, free_port, with_settings};

fn target(url: &str, access: Access) -> Target {
    Target::parse(url, access).unwrap_or_else(|error| panic!("{error}"))
}

fn connect(url: &str, access: Access) -> Result<Box<dyn Session>, SessionError> {
    target(url, access).connect().map(|connection| connection as Box<dyn Session>)
}

fn refused(url: &str) -> String {
    match connect(url, Access::Write) {
        Err(SessionError::Gone(says) | SessionError::Failed(says)) => {
            assert!(!says.contains('\n') && !says.contains("secret"), "{says}");
            says
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the login succeeded"),
    }
}

#[test]
fn postgres_by_its_socket_is_read_only_by_default() {
    let server = shared::postgres();
    server.create_database("attached").unwrap();
    let run = server.directory().join("run");
    let url = format!("postgres://workahead@/attached?host={}", run.display());
    let mut session = connect(&url, Access::Write).unwrap();
    session.run("CREATE TABLE t (a int)").unwrap();
    let mut session = connect(&url, Access::ReadOnly).unwrap();
    session.run("SELECT * FROM t").unwrap();
    let says = session.run("INSERT INTO t VALUES (1)").unwrap_err().to_string();
    assert!(says.contains("`INSERT` is not a query"), "{says}");
    let mut connection = target(&url, Access::ReadOnly).connect().unwrap();
    assert!(connection.version().unwrap().starts_with(server.version()));
}

#[test]
fn postgres_by_its_port_requests_passwords() {
    let directory = directory();
    let port = free_port();
    let hba = directory.path().join("hba");
    std::fs::write(
        &hba,
        "local all all trust\nhost all scram 127.0.0.1/32 scram-sha-256\n\
         host all old 127.0.0.1/32 md5\nhost all plain 127.0.0.1/32 password\n\
         hostssl all tls 127.0.0.1/32 trust\n",
    )
    .unwrap();
    let settings = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port.to_string()),
        ("hba_file", hba.to_str().unwrap()),
        // Waits for a client that waits for it.
        ("authentication_timeout", "1s"),
    ];
    // Its socket keeps the usual name: the port above is of the network only.
    let server_options = with_settings(directory.path(), &settings);
    let server =
        postgres::Server::start(&server_options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    let mut session = server.connect("postgres").unwrap();
    session
        .run(
            "CREATE ROLE scram LOGIN PASSWORD 'secret: p@ss'; CREATE ROLE plain LOGIN PASSWORD 's'; \
             CREATE ROLE tls LOGIN; SET password_encryption = 'md5'; \
             CREATE ROLE old LOGIN PASSWORD 'o'",
        )
        .unwrap();
    let at = |who: &str, database: &str| format!("postgres://{who}@127.0.0.1:{port}/{database}");
    for who in ["scram:secret%3A%20p%40ss", "old:o", "plain:s"] {
        let mut session = connect(&at(who, "postgres"), Access::ReadOnly).unwrap();
        session.run("SELECT 1").unwrap();
    }
    let says = refused(&at("scram:secret", "postgres"));
    assert!(says.contains("password authentication failed for user \"scram\""), "{says}");
    let says = refused(&at("scram", "postgres"));
    assert!(says.contains("requests a password of `scram`: give it"), "{says}");
    let says = refused(&at("old:o", "nowhere"));
    assert!(says.contains("database \"nowhere\" does not exist"), "{says}");
    let says = refused(&at("tls:secret", "postgres"));
    assert!(says.contains("lets `tls` in with TLS only"), "{says}");
    let says = refused(&format!("mysql://old:o@127.0.0.1:{port}/postgres"));
    assert!(says.contains("is it running"), "{says}");
}

#[test]
fn mariadb_is_read_only_by_default() {
    let server = shared::mariadb();
    server.create_database("mattached").unwrap();
    let socket = server.directory().join("run/mariadb.sock");
    let url = format!("mysql://root@/mattached?socket={}", socket.display());
    let mut session = connect(&url, Access::Write).unwrap();
    session.run("CREATE TABLE t (a int)").unwrap();
    session.run("CREATE OR REPLACE USER ada@localhost IDENTIFIED BY 'pass'").unwrap();
    session.run("CREATE OR REPLACE USER bea@localhost IDENTIFIED BY 'pass' REQUIRE SSL").unwrap();
    let mut session = connect(&url, Access::ReadOnly).unwrap();
    session.run("SELECT * FROM t").unwrap();
    let says = session.run("INSERT INTO t VALUES (1)").unwrap_err().to_string();
    assert!(says.contains("`INSERT` is not a query"), "{says}");
    let mut connection = target(&url, Access::ReadOnly).connect().unwrap();
    assert!(connection.version().unwrap().starts_with(server.version()));
    let as_who = |who: &str, database: &str| {
        format!("mysql://{who}@/{database}?socket={}", socket.display())
    };
    connect(&as_who("ada:pass", "information_schema"), Access::ReadOnly).unwrap();
    let says = refused(&as_who("ada:secret", "information_schema"));
    assert!(says.contains("Access denied for user 'ada'@'localhost'"), "{says}");
    let says = refused(&as_who("root", "nowhere"));
    assert!(says.contains("Unknown database 'nowhere'"), "{says}");
    let says = refused(&as_who("bea:pass", "information_schema"));
    assert!(says.contains("Access denied for user 'bea'@'localhost'"), "{says}");
}

#[test]
fn a_port_without_a_server_is_one_line() {
    let port = free_port();
    for url in [
        format!("postgres://ada:secret@127.0.0.1:{port}/shop"),
        format!("mysql://ada:secret@127.0.0.1:{port}/shop"),
        "postgres://ada:secret@/shop?host=/nowhere".to_owned(),
        "mysql://ada:secret@/shop?socket=/nowhere/s".to_owned(),
        "postgres://ada:secret@no-such-host.invalid/shop".to_owned(),
    ] {
        let says = refused(&url);
        assert!(says.contains("is it running, and are host and port right?"), "{says}");
    }
}

#[test]
fn another_protocol_is_not_taken_for_one_of_ours() {
    let server = shared::mariadb();
    let socket = server.directory().join("run/mariadb.sock");
    let address = workahead_engines::address::Address {
        place: workahead_engines::address::Place::Socket(socket),
        user: "root".to_owned(),
        password: None,
        database: "d".to_owned(),
        settings: Vec::new(),
        read_only: false,
        own_names: false,
        cleartext: false,
        tls: workahead_engines::tls::Tls::default(),
    };
    let opened = postgres::Connection::open(&address).map(drop);
    assert!(matches!(opened, Err(SessionError::Gone(_))), "{opened:?}");
}
