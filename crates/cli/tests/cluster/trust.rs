//! Who may request something of a worker, and which files it reads.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::symlink;

use crate::process::{Place, text};
use crate::running::{Cluster, Worker, data, there, write_secret, write_token};

/// Replaces the URL's token by another one.
fn with_other_token(cluster: &Cluster) -> String {
    cluster.url.replace(cluster.token(), &"0".repeat(cluster.token().len()))
}

fn count_of(place: &Place) -> String {
    let words = there(&["select count(*) as n from nation", "--data", data(), "--format", "csv"]);
    let output = place.run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn another_token_gets_nothing() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    write_secret(&place.path("other"), &with_other_token(&cluster));
    let query = ["select 1", "--data", data()];
    let said = place.fails(&[&["sql", "--cluster", "other"][..], &query].concat(), 1);
    assert!(said.contains("have another token"), "{said}");
    let said = place.fails(&["cluster", "status", "other"], 1);
    assert!(said.contains("have another token"), "{said}");
    for url in ["workahead://127.0.0.1:1", "workahead://short@127.0.0.1:1", "http://127.0.0.1:1"] {
        let said = place.fails(&["cluster", "status", url], 2);
        assert!(said.contains("workahead cluster"), "{said}");
    }
}

#[test]
fn the_token_stays_out_of_arguments_reports_and_errors() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let processes = cluster.workers.iter().copied().chain([cluster.child.id()]);
    for id in processes {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap();
        assert!(!text(&words).contains(cluster.token()), "process {id}");
    }
    let query = there(&["select count(*) from nation", "--data", data()]);
    let report = place.json(&query).to_string();
    assert!(report.contains("workahead://127.0.0.1:"), "{report}");
    assert!(!report.contains(cluster.token()), "{report}");
    let said = place.fails(&there(&["select x from nation", "--data", data()]), 2);
    assert!(!said.contains(cluster.token()), "{said}");
}

#[test]
fn secrets_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    write_token(&place, "token");
    write_secret(&place.path("url"), "workahead://x@127.0.0.1:1");
    for name in ["token", "url"] {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o640)).unwrap();
    }
    let said = place.fails(&["cluster", "worker", "--token-file", "token", "--data", "."], 1);
    assert!(said.contains("chmod 600 token"), "{said}");
    let said = place.fails(&["cluster", "status", "url"], 1);
    assert!(said.contains("chmod 600 url"), "{said}");
}

#[test]
fn a_worker_survives_invalid_requests() {
    let place = Place::new();
    let token = write_token(&place, "token");
    let words = ["cluster", "worker", "--token-file", "token", "--threads", "1", "--data", data()];
    let worker = Worker::start(place.command(&words));
    worker.write_url(&place, &token);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let huge_frame = [preface, &[0xff; 9]].concat();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &preface[..7], &huge_frame, &[0; 1 << 16]] {
        let mut stream = TcpStream::connect(&worker.address).unwrap();
        // It may close the connection before all is sent.
        let _ = stream.write_all(bytes);
    }
    assert_eq!(count_of(&place), "n\n25\n");
}

#[test]
fn files_outside_of_the_data_directories_are_not_read() {
    let place = Place::new();
    let _cluster = Cluster::two(&place);
    let outside = Place::new();
    fs::write(outside.path("secret.csv"), "a\nhidden\nhidden\n").unwrap();
    let secret = outside.path("secret.csv").display().to_string();
    symlink(&secret, place.path("link.csv")).unwrap();
    let name = outside.directory.path().file_name().unwrap().to_str().unwrap().to_owned();
    let up = place.path(&format!("../{name}/secret.csv")).display().to_string();
    let link = place.path("link.csv").display().to_string();
    for path in ["/etc/passwd", &secret, &up, &link] {
        let query = format!(
            "create external table t (a varchar) stored as csv location '{path}' options (format.has_header \
             false); select count(a) from t"
        );
        let said = place.fails(&there(&[&query]), 2);
        assert!(said.contains("is not below a worker's --data directories"), "{path}: {said}");
        assert!(!said.contains("hidden"), "{said}");
    }
    // The cluster goes on, and reads what it may.
    assert_eq!(count_of(&place), "n\n25\n");
}
