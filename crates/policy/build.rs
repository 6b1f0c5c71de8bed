//! Compiles the header as C17 for Rust, and tells who builds the BPF object where it lies.

fn main() {
    println!("cargo::rerun-if-changed=include/itas.h");
    println!("cargo::rerun-if-changed=src/itas.c");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it for build scripts");
    println!("cargo::metadata=include={here}/include");
    cc::Build::new()
        .file("src/itas.c")
        .include("include")
        .std("c17")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("workahead_itas");
}
