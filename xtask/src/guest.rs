//! Tests in Linux guests: no host needs sched_ext or counters, and a broken kernel costs nothing.

mod counters;
mod peers;
mod servers;

use std::process::Command;

use crate::stage::Stage;
use crate::test::{Build, Depth};
use crate::workspace::Workspace;

const HAS_GUEST: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));
const NO_GUEST: &str = "the guest is Linux on x86-64, and so must be its host";

/// Builds the loader, boots a kernel and runs every test of the scheduler there. In full it is
/// attached and detached a hundred times.
pub(crate) fn scheduler(workspace: &Workspace, depth: Depth) -> Stage {
    const NAME: &str = "scheduler in a guest";
    if !HAS_GUEST {
        return Stage::skipped(NAME, NO_GUEST);
    }
    // With the features of the whole build, which has built it already.
    let mut build = workspace.cargo(&["build", "--quiet"]);
    match Build::whole(workspace) {
        Ok(words) => build.args(words).args(["--example", "itas"]),
        Err(error) => return Stage::failed_early(NAME, format!("{error:#}")),
    };
    let guest = |word| {
        let mut guest = Command::new(workspace.root().join("vm/guest.sh"));
        guest.current_dir(workspace.root()).arg(workspace.target().join("debug/examples/itas"));
        guest.arg(word).args((depth == Depth::Full).then_some("long"));
        guest
    };
    let mut timed = guest("timed");
    // As boot.sh -i 1: two nanoseconds an instruction.
    timed.env("WORKAHEAD_GUEST_SHIFT", "1").env("WORKAHEAD_GUEST_SECONDS", "2400");
    Stage::tests(NAME, vec![build, guest("test"), timed])
}

/// Counts and samples a known program in a guest on Arm.
pub(crate) fn counters(workspace: &Workspace) -> Stage {
    counters::run(workspace)
}

/// Compares ours with others' schedulers there.
pub(crate) fn peers(workspace: &Workspace) -> Stage {
    const NAME: &str = "schedulers compared in a guest";
    match HAS_GUEST {
        true => Stage::check(NAME, || peers::run(workspace)),
        false => Stage::skipped(NAME, NO_GUEST),
    }
}

/// Runs servers there, under the kernel's scheduler and ours. In full with more clients.
pub(crate) fn servers(workspace: &Workspace, depth: Depth) -> Stage {
    const NAME: &str = "servers in a guest";
    match HAS_GUEST {
        true => Stage::check(NAME, || servers::run(workspace, depth)),
        false => Stage::skipped(NAME, NO_GUEST),
    }
}
