//! Compiles the BPF object where the feature `bpf` is on. The kernel's types come with us and are
//! looked up when it is loaded, so one object serves every kernel with sched_ext.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let of = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let policy = of("DEP_WORKAHEAD_ITAS_INCLUDE");
    println!("cargo::rerun-if-changed={policy}");
    let object = PathBuf::from(of("OUT_DIR")).join("scheduler.bpf.o");
    let target = match of("CARGO_CFG_TARGET_ARCH").as_str() {
        "aarch64" => "-D__TARGET_ARCH_arm64",
        _ => "-D__TARGET_ARCH_x86",
    };
    let clang = clang();
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", target])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // What the headers of libbpf do.
        .args(["-Wno-missing-declarations"])
        .arg(format!("-I{policy}"))
        .arg(format!("-I{}", of("DEP_BPF_INCLUDE")))
        .args(["-Ibpf", "-c", "bpf/scheduler.bpf.c", "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} bpf/scheduler.bpf.c: {status}"),
        Err(error) => panic!("no {clang} ({error}): run `cargo xtask setup`, or set CLANG"),
    }
}

/// What `CLANG` names, the version that the tests use, or whatever there is.
fn clang() -> String {
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    std::env::var("CLANG").unwrap_or_else(|_| {
        let known = ["clang-19", "clang-20", "clang-21", "clang-18", "clang-17"];
        (*known.iter().find(|name| there(name)).unwrap_or(&"clang")).to_owned()
    })
}
