//! Links the program of a debug build to a fixed address: its half a million relocations would be
//! most of the CPU time of each of the thousands of runs that the tests start.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name| std::env::var(name).unwrap_or_default();
    if of("PROFILE") == "debug" && of("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
