//! The proofs of the unsafe and the concurrent parts, each in a target folder of its own, because
//! each needs other compiler flags.
//!
//! * loom explores every interleaving of the work-ahead set's shared memory.
//! * AddressSanitizer runs the unsafe leaves where there is a nightly toolchain (it sees the
//!   AVX-512 paths too); valgrind does so otherwise (it hides AVX-512 from the program).
//! * Miri runs them where `cargo miri` does; it needs a component that few machines have.

use std::process::Command;

use crate::setup::has_nightly;
use crate::stage::Stage;
use crate::test::Depth;
use crate::workspace::{Workspace, answers};

/// The packages that have unsafe leaves, with the feature that adds one to them.
const UNSAFE_PACKAGES: [&str; 8] = [
    "-p",
    "workahead-machine",
    "-p",
    "workahead-walks",
    "-p",
    "workahead-lookup",
    "--features",
    "workahead-lookup/hashbrown",
];

/// Property tests try this many inputs under a checker that runs the code 10 to 50 times slower.
const fn cases_when_slow(depth: Depth) -> &'static str {
    match depth {
        Depth::Usual | Depth::All => "2",
        Depth::Full => "8",
    }
}

/// Arithmetic on curves that were measured, and nothing unsafe: a third of a checker's time.
const SAFE: [&str; 3] = ["--", "--skip", "limits::cache_sizes::tests::"];

/// Crates of others are built anew for each proof, and run but for a moment.
const OTHERS: [&str; 2] = ["--config", "profile.dev.package.\"*\".opt-level=0"];

/// The model checker's run. A test target of its own: with `--lib` every unit test would be
/// compiled again, to be left out.
pub(crate) fn loom(workspace: &Workspace, depth: Depth) -> Stage {
    let mut command = workspace.cargo(&["test", "-p", "workahead-walks", "--test", "loom"]);
    // But the checker's own.
    command.args(OTHERS).args(["--config", "profile.dev.package.loom.opt-level=3"]);
    command.env("CARGO_TARGET_DIR", workspace.target().join("loom")).env("RUSTFLAGS", "--cfg loom");
    match depth {
        // Three forced switches find nearly all faults of a small protocol, in seconds (loom's
        // own advice).
        Depth::Usual | Depth::All => command.env("LOOM_MAX_PREEMPTIONS", "3"),
        // No bound but time, in seconds for each model.
        Depth::Full => command.env("LOOM_MAX_DURATION", "120"),
    };
    Stage::tests("loom", vec![command])
}

/// AddressSanitizer, or valgrind where there is no nightly; with `--full` both.
pub(crate) fn memory(workspace: &Workspace, depth: Depth) -> Vec<Stage> {
    let nightly = has_nightly();
    let sanitized = if nightly {
        Stage::tests("address sanitizer", vec![sanitizer(workspace, depth)])
    } else {
        Stage::skipped("address sanitizer", "no nightly toolchain; valgrind instead")
    };
    let valgrind = if nightly && depth < Depth::Full {
        Stage::skipped("valgrind", "AddressSanitizer was run instead; --full runs both")
    } else if !answers(Command::new("valgrind").arg("--version")) {
        Stage::skipped("valgrind", "not installed: apt-get install valgrind")
    } else {
        Stage::tests("valgrind", vec![valgrind(workspace, depth)])
    };
    vec![sanitized, valgrind]
}

fn sanitizer(workspace: &Workspace, depth: Depth) -> Command {
    // Naming the target keeps the flag off build scripts and procedural macros.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = workspace.cargo_of("nightly", &["test", "--target", &target]);
    command
        .args(OTHERS)
        .args(UNSAFE_PACKAGES)
        .args(["--lib", "--tests"])
        .args(SAFE)
        .env("CARGO_TARGET_DIR", workspace.target().join("asan"))
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("PROPTEST_CASES", cases_when_slow(depth));
    command
}

fn valgrind(workspace: &Workspace, depth: Depth) -> Command {
    let target = format!("{}_UNKNOWN_LINUX_GNU", std::env::consts::ARCH.to_uppercase());
    let mut command = workspace.cargo(&["test"]);
    command
        .args(UNSAFE_PACKAGES)
        .args(["--lib"])
        .args(SAFE)
        .env(format!("CARGO_TARGET_{target}_RUNNER"), "valgrind --quiet --error-exitcode=99")
        .env("PROPTEST_CASES", cases_when_slow(depth));
    command
}

/// Miri, where it runs: on the indexes and on the memory that tables lie in. The other tests of the
/// unsafe leaves are of more rows than an interpreter finishes, or ask the machine what it is.
pub(crate) fn miri(workspace: &Workspace) -> Stage {
    if !answers(&mut workspace.cargo_of("nightly", &["miri", "--version"])) {
        return Stage::skipped("miri", "`cargo +nightly miri` does not run here");
    }
    let of = |arguments: &[&str]| {
        let mut command = workspace.cargo_of("nightly", &["miri", "test", "--lib"]);
        command
            .args(arguments)
            .env("CARGO_TARGET_DIR", workspace.target().join("miri"))
            .env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command
    };
    let buffers = ["pages::tests::a_buffer_may", "pages::tests::a_copy"];
    let pages = of(&[&["-p", "workahead-machine", "--"], &buffers[..]].concat());
    let indexes = of(&["-p", "workahead-lookup", "--features", "hashbrown"]);
    Stage::tests("miri", vec![indexes, pages])
}
