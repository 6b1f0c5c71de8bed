//! Compiles the BPF object if the feature `bpf` is on. The kernel's types are part of the crate and
//! relocated at load time, so one object serves every kernel with sched_ext.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
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
    // The policy's build script has found it.
    let clang = of("DEP_WORKAHEAD_ITAS_CLANG");
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", target])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // The headers of libbpf lack declarations.
        .args(["-Wno-missing-declarations"])
        .arg(format!("-I{policy}"))
        .arg(format!("-I{}", of("DEP_BPF_INCLUDE")))
        .args(["-Ibpf", "-c", "bpf/scheduler.bpf.c", "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} bpf/scheduler.bpf.c: {status}"),
        Err(error) => panic!("{clang} does not run: {error}"),
    }
}
