//! Programs that build the scheduler, and boot the guests that it and the counters are tested in.

use std::path::Path;
use std::process::Command;

use super::{Need, Remedy, Weight, has_program};
use crate::workspace::{answers, succeed};

/// The target of the counters' guest, whose programs are static.
pub(crate) const ARM: &str = "aarch64-unknown-linux-gnu";
/// The compiler and linker of C for it.
pub(crate) const ARM_COMPILER: &str = "aarch64-linux-gnu-gcc";

pub(super) fn needs() -> [Need; 4] {
    [
        Need {
            name: "clang 19",
            why: "compiles the scheduler's BPF object",
            present: || has_program("clang-19"),
            remedy: Remedy::Packages(&["clang-19"]),
            weight: Weight::Required,
        },
        Need {
            name: "libelf",
            why: "its headers and zlib's, for the library that loads BPF objects",
            present: || Path::new("/usr/include/libelf.h").exists(),
            remedy: Remedy::Packages(&["libelf-dev", "zlib1g-dev", "pkg-config"]),
            weight: Weight::Required,
        },
        Need {
            name: "QEMU",
            why: "boots a kernel with sched_ext",
            present: || has_program("qemu-system-x86_64"),
            remedy: Remedy::Packages(&["qemu-system-x86", "seabios"]),
            weight: Weight::Required,
        },
        Need {
            name: "busybox",
            why: "the guest's programs, and cpio, which packs them",
            present: || answers(Command::new("busybox").arg("true")) && has_program("cpio"),
            remedy: Remedy::Packages(&["busybox-static", "cpio"]),
            weight: Weight::Required,
        },
    ]
}

/// Of the guest whose processor counts.
pub(super) fn needs_of_arm() -> [Need; 3] {
    [
        Need {
            name: "QEMU for Arm",
            why: "boots a guest whose processor counts",
            present: || has_program("qemu-system-aarch64"),
            remedy: Remedy::Packages(&["qemu-system-arm", "busybox-static", "cpio"]),
            weight: Weight::Useful,
        },
        Need {
            name: "C for Arm",
            why: "builds zstd for that guest, and links",
            present: || has_program(ARM_COMPILER),
            remedy: Remedy::Packages(&["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]),
            weight: Weight::Useful,
        },
        Need {
            name: "Rust for Arm",
            why: "its library for that guest",
            present: has_library,
            remedy: Remedy::Fetched(|| {
                succeed(Command::new("rustup").args(["target", "add", ARM]))
            }),
            weight: Weight::Useful,
        },
    ]
}

/// Whether this machine has all of it.
pub(crate) fn boots_arm() -> bool {
    needs_of_arm().iter().all(|need| (need.present)())
}

fn has_library() -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", ARM]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists())
}
