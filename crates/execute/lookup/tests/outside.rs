//! The README's first lines, and the examples, as a program outside of the workspace has them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Most bytes that an empty program may gain by them: of a stripped executable.
const GAINED_BYTES_MOST: u64 = 60_000;

/// The directory of this package.
fn package() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

/// The first lines of Rust in the README.
fn first_lines() -> String {
    let readme = std::fs::read_to_string(package().join("README.md")).unwrap();
    readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

/// A program of these lines, a workspace of its own.
fn program(name: &str, dependencies: &str, lines: &str) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(program.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n\
         [profile.release]\nstrip = true\n[dependencies]\n{dependencies}"
    );
    std::fs::write(program.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(program.join("src/main.rs"), format!("fn main() {{\n{lines}}}\n")).unwrap();
    program
}

fn dependency() -> String {
    format!("workahead-lookup = {{ path = {:?} }}\n", package())
}

/// Runs cargo; what the program wrote.
fn cargo(program: &Path, words: &[&str]) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(words).args(["--quiet", "--offline"]).current_dir(program);
    cargo.env("CARGO_TARGET_DIR", program.join("target"));
    // A sanitizer's flags are not the program's.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_outside_of_the_workspace_follows_the_readme() {
    cargo(&program("follows-the-readme", &dependency(), &first_lines()), &["run"]);
}

/// Each checks its own answers, too.
#[test]
fn the_examples_say_what_they_came_to() {
    let program = program("has-the-examples", &dependency(), "");
    std::fs::create_dir_all(program.join("examples")).unwrap();
    for (name, expected) in [
        ("cache", "51200 requests answered, 9830 results made\n"),
        ("dictionary", "100000 rows, 5000 texts\n"),
        ("enrich", "cost of region 0: 1140.93, events of unknown devices: 11200\n"),
    ] {
        let file = format!("examples/{name}.rs");
        std::fs::copy(package().join(&file), program.join(&file)).unwrap();
        assert_eq!(cargo(&program, &["run", "--example", name]), expected);
    }
}

#[test]
fn an_empty_program_gains_little_code_by_it() {
    let bytes = |name: &str, dependencies: &str, lines: &str| {
        let program = program(name, dependencies, lines);
        cargo(&program, &["build", "--release"]);
        let executable = program.join("target/release").join(name);
        executable.with_extension(std::env::consts::EXE_EXTENSION).metadata().unwrap().len()
    };
    let empty = bytes("is-empty", "", "");
    let with_index = bytes("is-empty-but-for-an-index", &dependency(), &first_lines());
    let gained = with_index.saturating_sub(empty);
    println!("{gained} bytes more than the {empty} of an empty program");
    assert!(gained <= GAINED_BYTES_MOST, "{gained} bytes more than an empty program has");
}
