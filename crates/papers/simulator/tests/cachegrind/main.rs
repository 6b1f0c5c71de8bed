//! Our caches and cachegrind's on the same accesses of a real program: equal to the last miss.
//!
//! ```text
//!   program ──► lackey ──text──► trace file ──► our caches ──┐
//!      └──────► cachegrind ──────────────────────────────────┴─► equal
//! ```
//!
//! The program (`program.c`) runs once under each tool, so its addresses must be the same both
//! times: it has no C library, a stack of its own, and a fixed load address.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod files;
mod trace;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use workahead_simulator::geometry::{Geometry, Sizes};

use trace::{Cachegrind, Header, Kind, Lackey, Misses, Reader, References, Replay, Writer, check};

/// Runs a command that must succeed; `cargo xtask setup` installs the C compiler and valgrind.
fn run(command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}: cargo xtask setup"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
}

fn valgrind(tool: &str, options: &[String], program: &Path) {
    let mut command = Command::new("valgrind");
    // No options of the user, and no debugger files.
    command.args(["--command-line-only=yes", "--vgdb=no"]).arg(format!("--tool={tool}"));
    run(command.args(options).arg("--").arg(program));
}

fn compiled(folder: &Path) -> PathBuf {
    let program = folder.join("program");
    let source = manifest_folder().join("tests/cachegrind/program.c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-ffreestanding"]);
    cc.args(["-fno-stack-protector", "-fcf-protection=none", "-Wl,--build-id=none", "-o"]);
    run(cc.arg(&program).arg(source));
    program
}

/// Bytes, ways and bytes per line of each cache.
#[derive(Clone, Copy)]
struct Caches {
    instructions: (u64, u32, u32),
    data: (u64, u32, u32),
    last: (u64, u32, u32),
}

/// The totals in the last line of a cachegrind file.
fn counted(program: &Path, folder: &Path, caches: Caches) -> References {
    let file = folder.join("counts");
    let word = |name: &str, (bytes, ways, line): (u64, u32, u32)| {
        format!("--{name}={bytes},{ways},{line}")
    };
    let options = [
        "--cache-sim=yes".to_owned(),
        word("I1", caches.instructions),
        word("D1", caches.data),
        word("LL", caches.last),
        format!("--cachegrind-out-file={}", file.display()),
    ];
    valgrind("cachegrind", &options, program);
    let text = fs::read_to_string(&file).unwrap();
    let after = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let events = "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw";
    assert_eq!(after("events: ").trim(), events, "other events than this reads");
    let counts: Vec<u64> =
        after("summary:").split_whitespace().map(|count| count.parse().unwrap()).collect();
    let misses =
        |at: usize| Misses { references: counts[at], first: counts[at + 1], last: counts[at + 2] };
    References { instructions: misses(0), reads: misses(3), writes: misses(6) }
}

fn modelled(trace: &Path, caches: Caches) -> References {
    let of = |(bytes, ways, line)| Geometry::of(Sizes { bytes, ways, line }).unwrap();
    let mut model = Cachegrind::new(of(caches.instructions), of(caches.data), of(caches.last));
    for record in Reader::new(File::open(trace).unwrap()).unwrap() {
        model.touch(&record.unwrap());
    }
    model.counts
}

#[test]
fn misses_are_cachegrinds() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path());
    let (text, trace) = (folder.path().join("lackey"), folder.path().join("trace"));
    let options = ["--trace-mem=yes".to_owned(), format!("--log-file={}", text.display())];
    valgrind("lackey", &options, &program);

    let mut writer = Writer::new(File::create(&trace).unwrap(), &Header::one_thread()).unwrap();
    let mut kinds = [0_u64; Kind::ALL.len()];
    for record in Lackey::new(BufReader::new(File::open(&text).unwrap())) {
        let record = record.unwrap();
        kinds[record.kind as usize] += 1;
        writer.write(&record).unwrap();
    }
    writer.finish().unwrap();
    let bytes = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(bytes(&trace) * 3 < bytes(&text), "{} of {}", bytes(&trace), bytes(&text));
    // All record types of lackey occur.
    assert!(kinds[..4].iter().all(|count| *count > 5000), "{kinds:?}");

    let small = Caches { instructions: (1024, 2, 64), data: (8192, 4, 64), last: (131_072, 8, 64) };
    let all = [
        small,
        Caches { data: (4096, 1, 32), last: (65_536, 4, 128), ..small },
        Caches { instructions: (256, 1, 32), data: (2048, 64, 32), ..small },
    ];
    for caches in all {
        let (ours, theirs) = (modelled(&trace, caches), counted(&program, folder.path(), caches));
        assert_eq!(ours, theirs);
        assert!(theirs.reads.first > theirs.reads.last && theirs.writes.last > 1000, "{theirs:?}");
    }

    // The whole trace replays as a script.
    let summary = check(File::open(&trace).unwrap()).unwrap();
    assert_eq!(summary.records, [kinds.iter().sum::<u64>()]);
    let mut replay = Replay::new(File::open(&trace).unwrap(), 0).unwrap();
    assert!(replay.by_ref().count() as u64 > summary.records[0]);
    replay.finish().unwrap();
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
