//! Counters that count: the command and its tests, built for Arm and run in a guest whose PMU does.
//! Recordings are all that a machine without counters has.

use crate::setup;
use crate::stage::Stage;
use crate::workspace::Workspace;

const NAME: &str = "counters in a guest";

/// Programs of tests that count or sample.
const TESTS: [&str; 2] = ["counters_hardware", "live"];

/// Builds and boots. Tests that sample themselves are not among them: emulated, they had not ended
/// after five minutes.
pub(super) fn run(workspace: &Workspace) -> Stage {
    if !setup::boots_arm() {
        return Stage::skipped(NAME, "needs QEMU, a C compiler and Rust's library for Arm: setup");
    }
    let cargo = |words: &[&str]| {
        let mut cargo = workspace.cargo(words);
        cargo.args(["--target", setup::ARM, "-p", "workahead-cli", "-p", "workahead-counters"]);
        let of_target = |name| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
        cargo.env(of_target("LINKER"), setup::ARM_COMPILER);
        cargo.env(of_target("RUSTFLAGS"), "-C target-feature=+crt-static");
        cargo.env(of_target("RUNNER"), workspace.root().join("vm/guest-arm64.sh"));
        cargo
    };
    let mut build = cargo(&["build", "--quiet"]);
    build.args(["--bin", "workahead", "--example", "loops"]);
    let mut tests = cargo(&["test", "--no-fail-fast"]);
    tests.args(TESTS.iter().flat_map(|test| ["--test", test]));
    Stage::tests(NAME, vec![build, tests])
}
