//! Private servers as processes: started, stopped, killed, left behind, refused.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use workahead_engines::server::{Error, Options};
use workahead_engines::{mariadb, postgres};
use workahead_machine::CpuSet;
use workahead_study::engine::Stop;
use workahead_workloads::session::{Session, SessionError};

use crate::shared::{alive, directory, options, with_settings};

fn start(options: &Options) -> postgres::Server {
    postgres::Server::start(options, &Stop::new()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(options: &Options) -> String {
    match postgres::Server::start(options, &Stop::new()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it started"),
    }
}

#[test]
fn a_server_is_started_restarted_killed_and_gone_when_dropped() {
    let directory = directory();
    let mut server = start(&options(directory.path()));
    assert!(server.version().starts_with(|c: char| c.is_ascii_digit()), "{}", server.version());
    let show = |server: &postgres::Server, name: &str| {
        server.connect("postgres").unwrap().texts(&format!("SHOW {name}")).unwrap().concat()
    };
    assert_eq!(show(&server, "listen_addresses"), "");
    assert_eq!(show(&server, "fsync"), "on");
    server.connect("postgres").unwrap().run("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    // The process of a connection that was closed may end while we look.
    let pids = server.pids();
    assert!(pids.iter().filter(|pid| alive(**pid)).count() > 3, "{pids:?}");

    let last = workahead_machine::pin::affinity().unwrap().iter().last().unwrap();
    let mut other = with_settings(directory.path(), &[("work_mem", "12345kB")]);
    other.cpus = Some(CpuSet::from_iter([last]));
    server.restart(&other, &Stop::new()).unwrap();
    assert_eq!(show(&server, "work_mem"), "12345kB");
    let statuses: Vec<String> = (server.pids().iter())
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok())
        .collect();
    assert!(statuses.len() > 3, "{statuses:?}");
    for status in statuses {
        assert!(status.contains(&format!("Cpus_allowed_list:\t{last}\n")), "{status}");
    }

    // Acknowledged transactions survive a kill.
    let mut client = server.connect("postgres").unwrap();
    client.run("INSERT INTO t VALUES (2)").unwrap();
    let pids = server.pids();
    server.kill();
    assert!(!server.is_running() && !pids.iter().any(|pid| alive(*pid)));
    assert!(matches!(client.run("SELECT 1"), Err(SessionError::Gone(_))));
    assert!(matches!(server.connect("postgres").map(drop), Err(SessionError::Gone(_))));
    assert!(server.last_words().to_string().contains("signal: 9"), "{}", server.last_words());
    server.restart(&other, &Stop::new()).unwrap();
    let mut client = server.connect("postgres").unwrap();
    assert_eq!(client.texts("SELECT sum(a)::text FROM t"), Ok(vec!["3".to_owned()]));

    let pids = server.pids();
    drop(server);
    assert!(!pids.iter().any(|pid| alive(*pid)));
    assert!(!directory.path().join("server/run").exists());
}

#[test]
fn only_its_first_process_killed_the_rest_gives_way_to_the_next() {
    let directory = directory();
    let mut server = start(&options(directory.path()));
    let mut client = server.connect("postgres").unwrap();
    let first = server.pids()[0].to_string();
    assert!(Command::new("kill").args(["-9", &first]).status().unwrap().success());
    let gone = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        matches!(client.run("SELECT 1"), Err(SessionError::Gone(_)))
    });
    assert!(gone);
    server.restart(&options(directory.path()), &Stop::new()).unwrap();
    server.connect("postgres").unwrap();
}

#[test]
fn mariadb_is_started_kept_restored_killed_and_gone_when_dropped() {
    let directory = directory();
    let server_options = with_settings(directory.path(), &[("innodb-log-file-size", "16M")]);
    let stop = Stop::new();
    let mut server =
        mariadb::Server::start(&server_options, &stop).unwrap_or_else(|error| panic!("{error}"));
    server.create_database("d").unwrap();
    // In one that it shared with others, its start would delete their temporary tables.
    let temporary = server.connect("d").unwrap().texts("SELECT @@tmpdir").unwrap().concat();
    let own = std::fs::canonicalize(directory.path()).unwrap();
    assert!(Path::new(&temporary).starts_with(own), "{temporary}");
    let count = |server: &mariadb::Server| {
        server.connect("d").unwrap().texts("SELECT count(*) FROM t").unwrap().concat()
    };
    server.connect("d").unwrap().run("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    server.keep("one", &server_options, &stop).unwrap();
    server.connect("d").unwrap().run("INSERT INTO t VALUES (2), (3)").unwrap();
    let pids = server.pids();
    server.kill();
    assert!(!pids.iter().any(|pid| alive(*pid)));
    server.restart(&server_options, &stop).unwrap();
    assert_eq!(count(&server), "3");
    server.restore("one", &server_options, &stop).unwrap();
    assert_eq!(count(&server), "1");
    let says = server.restore("two", &server_options, &stop).unwrap_err().to_string();
    assert_eq!(says, "no data was kept as `two`");
    assert!(server.keep("../two", &server_options, &stop).is_err());
    let pids = server.pids();
    drop(server);
    assert!(!pids.iter().any(|pid| alive(*pid)));
}

#[test]
fn a_directory_is_used_by_one_server_at_a_time() {
    let directory = directory();
    let server = start(&options(directory.path()));
    assert!(refused(&options(directory.path())).contains("is in use by another run"));
    drop(server);
    let of_mariadb = mariadb::Server::start(&options(directory.path()), &Stop::new());
    let says = of_mariadb.unwrap_err().to_string();
    assert!(says.contains("not a directory of Workahead's MariaDB"), "{says}");

    let foreign = directory.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("mine"), "mine").unwrap();
    let says = refused(&Options { directory: foreign, ..Options::default() });
    assert!(says.contains("is not empty, and not a directory of Workahead's"), "{says}");

    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let says = refused(&Options { directory: file, ..Options::default() });
    assert!(says.starts_with("can't use"), "{says}");
}

#[test]
fn the_reason_of_a_failed_start_is_shown() {
    let directory = directory();
    let says = refused(&with_settings(directory.path(), &[("shared_bufers", "1GB")]));
    assert!(says.starts_with("PostgreSQL did not start (exit status: 1); the end of"), "{says}");
    assert!(says.contains("unrecognized configuration parameter \"shared_bufers\""), "{says}");
    let says = refused(&with_settings(directory.path(), &[("a b", "1")]));
    assert_eq!(says, "`a b` can't be a setting of PostgreSQL");
    // And the directory stays usable.
    start(&options(directory.path())).stop();
    let programs = Options { programs: Some("/nowhere".into()), ..options(directory.path()) };
    let says = refused(&programs);
    assert!(says.starts_with("PostgreSQL is not installed") && says.contains("apt-get"), "{says}");
}

#[test]
fn a_request_to_stop_is_heard_while_it_starts() {
    let directory = directory();
    let stop = Stop::new();
    stop.request();
    let stopped = postgres::Server::start(&options(directory.path()), &stop);
    assert!(matches!(stopped, Err(Error::Stopped)));
    let stopped = mariadb::Server::start(
        &Options { directory: directory.path().join("m"), ..Options::default() },
        &stop,
    );
    assert!(matches!(stopped, Err(Error::Stopped)));
    // A half-made directory is made again.
    start(&options(directory.path())).stop();
}

#[test]
fn a_deep_directory_has_its_socket_elsewhere() {
    let directory = directory();
    let deep = directory.path().join("d".repeat(100));
    let server = start(&options(&deep));
    server.connect("postgres").unwrap();
    let socket = format!("{:?}", server.address("postgres").place);
    assert!(!socket.contains(&"d".repeat(20)), "{socket}");
    let workahead_engines::address::Place::Socket(socket) = server.address("postgres").place else {
        panic!("no socket")
    };
    let run = socket.parent().unwrap();
    assert!(run.exists());
    drop(server);
    assert!(!run.exists());
}

/// Set for the child of the next test, which is this program: where it starts a server.
const LEAVE_IN: &str = "WORKAHEAD_TEST_LEAVES_A_SERVER_IN";

#[test]
fn the_server_of_a_killed_run_is_stopped() {
    if let Some(directory) = std::env::var_os(LEAVE_IN) {
        let _server = start(&options(Path::new(&directory)));
        println!("started");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let directory = directory();
    // By the shell that waits for the run's end.
    let left = left_by_a_killed_run(directory.path(), false);
    let begun = Instant::now();
    while alive(left) {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server outlives its run");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Where that was killed too, by the next run.
    let left = left_by_a_killed_run(directory.path(), true);
    assert!(alive(left));
    let server = start(&options(directory.path()));
    assert!(!alive(left));
    server.connect("postgres").unwrap();
    server.stop();
    // A number that another process has by now is not the server.
    let pid_file = directory.path().join("server/pid");
    std::fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
    start(&options(directory.path())).stop();
}

/// Starts a server in another process and kills that, after its shells if wished. Returns the
/// server's process.
fn left_by_a_killed_run(directory: &Path, shells_first: bool) -> u32 {
    let test = "private::the_server_of_a_killed_run_is_stopped";
    let mut killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(LEAVE_IN, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(killed.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("started") {
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut line).unwrap(), 0, "{line}");
    }
    if shells_first {
        let pid = killed.id().to_string();
        let shells = Command::new("pkill").args(["-KILL", "-P", &pid, "-x", "sh"]).status();
        assert!(shells.unwrap().success());
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = std::fs::read_to_string(directory.join("server/pid")).unwrap();
    left.trim().parse().unwrap()
}

#[test]
fn a_full_disk_is_said_in_one_line() {
    let directory = directory();
    let small = directory.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=20m,mode=755", "tmpfs"]).arg(&small);
    if !mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        // Only root can mount small disks; the line itself is tested without one.
        println!("no small disk could be mounted: not tried");
        return;
    }
    let begun = Instant::now();
    let says = refused(&options(&small));
    let unmounted = Command::new("umount").arg(&small).status().unwrap();
    assert!(unmounted.success());
    assert!(says.starts_with("the disk is full where") && !says.contains('\n'), "{says}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_directory_that_its_user_can_not_reach_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let closed = directory.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let started = postgres::Server::start(&options(&closed), &Stop::new());
    if rustix::process::geteuid().is_root() {
        let says = started.unwrap_err().to_string();
        assert!(says.contains("may not enter") && says.contains("/closed: give"), "{says}");
    } else {
        // The server is run by the owner of the directory.
        started.unwrap().stop();
    }
}

#[test]
fn both_say_what_is_installed() {
    for version in [postgres::Server::installed_version(), mariadb::Server::installed_version()] {
        let version = version.unwrap();
        assert!(version.chars().all(|c| c.is_ascii_digit() || c == '.'), "{version}");
    }
}
