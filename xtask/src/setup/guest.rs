//! What builds the scheduler, and boots the guest that it is tested in.

use std::path::Path;
use std::process::Command;

use super::{Need, Remedy, Weight, has_program};
use crate::workspace::answers;

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
