//! Studies on servers that already run, as processes: where their passwords come from, and who can
//! see them.

mod process;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use process::{Place, interrupt, server_directory, text, tiny_study, wait_until};
use tempfile::TempDir;
use workahead_engines::postgres;
use workahead_engines::server::Options;
use workahead_study::engine::Stop;
use workahead_workloads::session::Session;

/// A server that requests the password `secret` of `ada`, and its port.
fn server() -> (postgres::Server, TempDir, u16) {
    let directory = server_directory();
    let hba = directory.path().join("hba");
    fs::write(&hba, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port.to_string()),
        ("hba_file", hba.to_str().unwrap()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options =
        Options { directory: directory.path().join("server"), settings, ..Options::default() };
    let server = postgres::Server::start(&options, &Stop::new()).unwrap();
    let mut owner = server.connect("postgres").unwrap();
    owner.run("CREATE ROLE ada LOGIN PASSWORD 'secret'").unwrap();
    owner.run("CREATE DATABASE shop OWNER ada").unwrap();
    (server, directory, port)
}

fn tiny() -> Place {
    let place = Place::new();
    let study = tiny_study("postgres", "clients = [1, 2]", 1);
    fs::write(place.path("tiny.toml"), study).unwrap();
    place
}

const RUN: [&str; 6] = ["study", "run", "tiny.toml", "--no-limits", "--allow-writes", "--out"];

#[test]
fn a_password_in_the_url_is_not_in_the_list_of_processes() {
    let (server, _directory, port) = server();
    let place = tiny();
    let url = format!("postgres://ada:secret@127.0.0.1:{port}/shop");
    let arguments = [&RUN[..], &["out", "--scale", "long", "--attach", &url]].concat();
    let child = place.start(&arguments);
    let mut owner = server.connect("postgres").unwrap();
    // Not before: of an interrupted load there are tables left.
    let at_work = "SELECT 1::text FROM pg_stat_activity \
                   WHERE usename = 'ada' AND query LIKE 'insert into result%'";
    wait_until("a client at work", || !owner.texts(at_work).unwrap().is_empty());
    let listed = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    let listed = text(&listed).replace('\0', " ");
    assert!(listed.contains(&format!("--attach postgres://ada@127.0.0.1:{port}/shop")), "{listed}");
    assert!(!listed.contains("secret"), "{listed}");
    let name = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    assert_eq!(name, "workahead\n");
    interrupt(&child);
    let said = text(&child.wait_with_output().unwrap().stderr);
    assert!(said.contains("error: interrupted, 0 of 2 samples kept"), "{said}");

    // The same of a run that is resumed.
    let resumed = place.start(&["study", "resume", "out", "--allow-writes", "--attach", &url]);
    wait_until("a client at work", || !owner.texts(at_work).unwrap().is_empty());
    let listed = fs::read(format!("/proc/{}/cmdline", resumed.id())).unwrap();
    assert!(!text(&listed).contains("secret"));
    interrupt(&resumed);
    resumed.wait_with_output().unwrap();
    for name in ["out/run.json", "out/observations.jsonl"] {
        let kept = fs::read_to_string(place.path(name)).unwrap_or_default();
        assert!(!kept.contains("secret"), "{name}");
    }
}

#[test]
fn a_password_comes_from_the_url_a_variable_or_a_file() {
    let (_server, _directory, port) = server();
    let place = tiny();
    let pass = place.path("pass");
    fs::write(&pass, format!("127.0.0.1:{port}:shop:ada:secret\n")).unwrap();
    fs::set_permissions(&pass, fs::Permissions::from_mode(0o600)).unwrap();
    let run = |out: &str, user: &str, variables: &[(&str, &str)]| {
        let url = format!("postgres://{user}@127.0.0.1:{port}/shop?sslmode=prefer");
        let mut command = place.command(&[&RUN[..], &[out, "--attach", &url]].concat());
        command.env_remove("WORKAHEAD_PASSWORD").env_remove("PGPASSWORD");
        command.env("PGPASSFILE", "/nowhere").envs(variables.iter().copied());
        command.output().unwrap()
    };
    let pass = pass.to_str().unwrap();
    for (out, user, variables) in [
        ("a", "ada:secret", &[("WORKAHEAD_PASSWORD", "wrong")][..]),
        ("b", "ada", &[("WORKAHEAD_PASSWORD", "secret"), ("PGPASSWORD", "wrong")]),
        ("c", "ada", &[("PGPASSWORD", "secret")]),
        ("d", "ada", &[("PGPASSFILE", pass)]),
    ] {
        let output = run(out, user, variables);
        assert!(output.status.success(), "{out}: {}", text(&output.stderr));
    }
    fs::set_permissions(pass, fs::Permissions::from_mode(0o644)).unwrap();
    let said = text(&run("e", "ada", &[("PGPASSFILE", pass)]).stderr);
    let [ignored, refused] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(ignored.ends_with(&format!("is ignored, others may read it: chmod 600 {pass}")));
    assert!(refused.contains("requests a password of `ada`: give it in"), "{said}");
    let said = text(&run("f", "ada:wrong", &[]).stderr);
    assert!(said.contains("password authentication failed for user \"ada\""), "{said}");
}
