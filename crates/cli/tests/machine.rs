//! `workahead machine` as a process, on described machines: JSON and text for known machines, one
//! line for a missing root. `WORKAHEAD_BLESS=1 cargo test` rewrites the expected files.

#[path = "../../machine/tests/fixture/mod.rs"]
mod fixture;

use std::process::{Command, Output};

use fixture::Fixture;

fn workahead(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_workahead")).args(arguments).output().expect("the command")
}

fn described(name: &str, more: &[&str]) -> String {
    let fixture = Fixture::named(name);
    let directory = fixture.directory.path().to_str().expect("a printable name");
    let output = workahead(&[&["machine", "--root", directory], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).expect("text")
}

fn assert_golden(file: &str, text: &str) {
    let path = manifest_folder().join("tests/golden").join(file);
    if std::env::var_os("WORKAHEAD_BLESS").is_some() {
        std::fs::write(&path, text).expect("the expected file");
    }
    let expected = std::fs::read_to_string(&path).expect("the expected file");
    assert_eq!(text, expected, "{file} differs");
}

#[test]
fn json_of_a_hybrid_laptop() {
    assert_golden("machine-hybrid-laptop.json", &described("hybrid-laptop", &["--json"]));
}

#[test]
fn json_of_a_virtual_machine_that_hides_everything() {
    let text = described("vm-that-hides-everything", &["--json"]);
    assert_golden("machine-vm-that-hides-everything.json", &text);
}

#[test]
fn text_of_machines() {
    for name in [
        "two-socket-smt-server",
        "hybrid-laptop",
        "arm-server",
        "smt-switched-off",
        "vm-that-hides-everything",
    ] {
        assert_golden(&format!("machine-{name}.txt"), &described(name, &[]));
    }
}

#[test]
fn this_machine_describes_itself() {
    let output = workahead(&["machine", "--json"]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(!json["cpus"]["allowed"].as_array().expect("a list").is_empty());
    assert!(["A", "B", "C"].contains(&json["counters"]["tier"].as_str().expect("a tier")));
}

#[test]
fn a_missing_root_is_one_line_and_status_1() {
    let output = workahead(&["machine", "--root", "/no/such/machine"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(
        message,
        "error: no directory /no/such/machine: give one that holds proc/ and sys/\n"
    );
    assert!(output.stdout.is_empty());
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
