//! The scheduler's tests, in a Linux guest: no host needs sched_ext, and a broken kernel costs
//! nothing.

use crate::stage::Stage;
use crate::test::Depth;
use crate::workspace::Workspace;

/// Builds the loader, boots a kernel and runs every test of the scheduler there. In full it is
/// attached and detached a hundred times.
pub(crate) fn scheduler(workspace: &Workspace, depth: Depth) -> Stage {
    const NAME: &str = "scheduler in a guest";
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Stage::skipped(NAME, "the guest is Linux on x86-64, and so must be its host");
    }
    let mut run = workspace.cargo(&["run", "--quiet", "-p", "workahead-scheduler"]);
    run.args(["--features", "bpf", "--example", "itas", "--", "test"])
        .args((depth == Depth::Full).then_some("long"))
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", workspace.root().join("vm/guest.sh"));
    Stage::tests(NAME, vec![run])
}
