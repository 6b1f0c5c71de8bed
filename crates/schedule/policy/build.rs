//! Compiles the header as C17 for Rust, and passes its place to the scheduler's build script.
//!
//! With the feature `bpf` it first checks the scheduler's system requirements. libbpf's own build
//! script would find headers missing too, but only after most of the program is compiled, and with
//! an error of `make`. This crate is built long before.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Versions of clang by name, the one that the tests use first.
const CLANGS: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-18", "clang-17", "clang"];
/// Headers that libbpf includes, and the Debian packages that have them.
const HEADERS: [(&str, &str); 3] =
    [("libelf.h", "libelf-dev"), ("gelf.h", "libelf-dev"), ("zlib.h", "zlib1g-dev")];

fn main() {
    println!("cargo::rerun-if-changed=include/itas.h");
    println!("cargo::rerun-if-changed=src/itas.c");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    if std::env::var_os("CARGO_FEATURE_BPF").is_some() && !look_for_tools(&out) {
        std::process::exit(1);
    }
    // A copy at a place that doesn't depend on the checkout: others may share the target folder.
    std::fs::copy("include/itas.h", out.join("itas.h")).expect("the header is copied");
    println!("cargo::metadata=include={}", out.display());
    cc::Build::new()
        .file("src/itas.c")
        .include("include")
        .std("c17")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("workahead_itas");
}

/// Whether all build requirements of the BPF object and libbpf are met. One line names what is
/// missing and how to install it.
fn look_for_tools(out: &Path) -> bool {
    let (mut missing, mut packages) = (Vec::new(), Vec::new());
    match clang() {
        Some(name) => println!("cargo::metadata=clang={name}"),
        None => {
            missing.push("clang");
            packages.push("clang");
        }
    }
    for (header, package) in HEADERS {
        if !has_header(header, out) {
            missing.push(header);
            packages.push(package);
        }
    }
    let pkg_config = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    for (program, name) in [("make", "make"), (&pkg_config, "pkg-config")] {
        if !runs(program) {
            missing.push(name);
            packages.push(name);
        }
    }
    packages.dedup();
    if !missing.is_empty() {
        let (missing, packages) = (missing.join(", "), packages.join(" "));
        println!(
            "cargo::error=the feature `scheduler` needs {missing} to build: install with \
             `apt-get install {packages}` or your system's equivalent, or build without the feature"
        );
    }
    missing.is_empty()
}

/// The compiler in `CLANG`, or the first version that runs.
fn clang() -> Option<String> {
    match std::env::var("CLANG") {
        Ok(name) => Some(name).filter(|name| runs(name)),
        Err(_) => CLANGS.into_iter().find(|name| runs(name)).map(str::to_owned),
    }
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Whether the C compiler finds a header for the target.
fn has_header(header: &str, out: &Path) -> bool {
    let source = out.join("header.c");
    std::fs::write(&source, format!("#include <{header}>\n")).expect("OUT_DIR can be written to");
    let mut compiler = cc::Build::new().cargo_metadata(false).get_compiler().to_command();
    let output = compiler.arg("-fsyntax-only").arg(&source).output();
    output.is_ok_and(|output| output.status.success())
}
