//! The scheduler's tests, in a Linux guest: no host needs sched_ext, and a broken kernel costs
//! nothing.

mod servers;

use crate::stage::Stage;
use crate::test::Depth;
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
    let mut run = workspace.cargo(&["run", "--quiet", "-p", "workahead-scheduler"]);
    run.args(["--features", "bpf", "--example", "itas", "--", "test"])
        .args((depth == Depth::Full).then_some("long"))
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", workspace.root().join("vm/guest.sh"));
    Stage::tests(NAME, vec![run])
}

/// Runs servers there, under the kernel's scheduler and ours. In full with more clients.
pub(crate) fn servers(workspace: &Workspace, depth: Depth) -> Stage {
    const NAME: &str = "servers in a guest";
    match HAS_GUEST {
        true => Stage::check(NAME, || servers::run(workspace, depth)),
        false => Stage::skipped(NAME, NO_GUEST),
    }
}
