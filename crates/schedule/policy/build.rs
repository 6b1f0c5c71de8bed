//! Compiles the header as C17 for Rust, and tells who builds the BPF object where it lies.

fn main() {
    println!("cargo::rerun-if-changed=include/itas.h");
    println!("cargo::rerun-if-changed=src/itas.c");
    // A copy, whose place does not depend on the checkout: others may share the target folder.
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
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
