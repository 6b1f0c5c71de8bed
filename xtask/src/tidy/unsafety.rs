//! `unsafe` lives in small leaf files that are listed here, each with its reason; every crate
//! without one says `#![forbid(unsafe_code)]`.

use super::code::code_only;
use super::{Finding, Tree};

/// The leaves: file, and why safe Rust can't say it.
const LEAVES: &[(&str, &str)] = &[
    ("bench/lookup/src/boost.rs", "calls a map of C++"),
    ("bench/lookup/src/limit.rs", "the prefetch instruction is an intrinsic"),
    ("bench/lookup/src/timing.rs", "reads a thread's CPU clock through libc"),
    ("crates/cli/examples/loops.rs", "a loop of known instructions is assembly"),
    ("crates/measure/duckdb/src/answer.rs", "reads rows where DuckDB's library put them"),
    ("crates/measure/duckdb/src/database.rs", "says which of its handles threads may share"),
    ("crates/measure/duckdb/src/ffi.rs", "loads DuckDB's library and calls it"),
    ("crates/machine/src/allocator.rs", "tells the C library's allocator through libc"),
    ("crates/machine/src/clock.rs", "reads a thread's CPU clock through libc"),
    ("crates/machine/src/limits/bandwidth/kernel.rs", "calls wide code; stores past caches"),
    ("crates/machine/src/limits/lines/kernel.rs", "a check per load would be what is measured"),
    ("crates/machine/src/pages.rs", "hands out mapped memory as a slice"),
    ("crates/machine/src/pages/mapping.rs", "maps memory and says which pages it is to have"),
    ("crates/machine/src/pages/pool.rs", "hands out mapped memory again"),
    ("crates/machine/src/pin.rs", "sets the calling thread's CPUs through libc"),
    ("crates/machine/src/process/inheritance.rs", "says through libc what processes inherit"),
    ("crates/machine/src/process/peer.rs", "asks through libc who is behind a socket"),
    ("crates/machine/src/scheduling.rs", "sets the calling thread's policy through libc"),
    ("crates/execute/lookup/src/memory.rs", "allocates tables, and asks for huge pages"),
    ("crates/execute/lookup/src/hash_index/first_step.rs", "words and entries of a table"),
    ("crates/execute/lookup/src/hash_index/buckets.rs", "places of entries in lines of memory"),
    ("crates/execute/lookup/src/hash_index/table.rs", "entries of any type in lines of memory"),
    ("crates/execute/lookup/src/ordered_index/nodes.rs", "keys of any type in nodes of lines"),
    ("crates/execute/walks/src/bucket/compare.rs", "loads a bucket of keys into a vector register"),
    (
        "crates/execute/walks/src/perfect_hash/atomics.rs",
        "numbers as atomic ones, which is not stable yet",
    ),
    (
        "crates/execute/walks/src/isa/x86_64.rs",
        "calls code compiled for instructions that were found",
    ),
    ("crates/execute/walks/src/memory.rs", "the prefetch instruction is an intrinsic"),
    ("crates/execute/walks/src/record/layout.rs", "rows of records are bytes without padding"),
    ("crates/execute/walks/src/tree/compare.rs", "compares the keys of a node in vector registers"),
    ("crates/execute/walks/src/work_ahead/direct.rs", "calls the helper's load"),
    (
        "crates/execute/walks/src/work_ahead/run.rs",
        "defines the promise that a helper's loads rest on",
    ),
    (
        "crates/execute/walks/src/work_ahead/states.rs",
        "states lie in the slots that are shared, beside the pointers",
    ),
    (
        "crates/execute/walks/src/work_ahead/throttle.rs",
        "instructions that have no function in the library",
    ),
    ("crates/execute/walks/src/work_ahead/touch.rs", "the helper's load must happen, value unused"),
    (
        "crates/execute/walks/tests/walks/allocator.rs",
        "an allocator that counts what steps allocate",
    ),
    ("crates/schedule/policy/src/ffi.rs", "calls the policy's header as C compiled it"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    over(tree, LEAVES)
}

fn over(tree: &Tree, leaves: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(line) = first_unsafe(&file.text) else { continue };
        if !leaves.iter().any(|(leaf, _)| *leaf == file.path) {
            let says = "`unsafe` outside the leaves that tidy/unsafety.rs lists with a reason";
            findings.push(Finding::at(file, line, says));
        }
    }
    for (leaf, _) in leaves {
        let still = tree.file(leaf).is_some_and(|file| first_unsafe(&file.text).is_some());
        if !still {
            let says = "listed as an unsafe leaf, but has no `unsafe`: take it off the list";
            findings.push(Finding::of_path(*leaf, says));
        }
    }
    for root in tree.rust().filter(|file| is_root(&file.path)) {
        let package = root.path.split("/src/").next().unwrap_or_default();
        let has_leaf = leaves.iter().any(|(leaf, _)| leaf.starts_with(&format!("{package}/src/")));
        if !has_leaf && !root.text.contains("#![forbid(unsafe_code)]") {
            let says = "a crate without unsafe leaves says `#![forbid(unsafe_code)]`";
            findings.push(Finding::of_file(root, says));
        }
    }
    findings
}

fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

/// The one promise that any walk may make where it is defined: that the places it asks for stay
/// mapped, so that a helper thread may load them (`work_ahead::Preloadable`).
const PROMISE: &str = "Preloadable for";

/// One-based line of the first `unsafe` in code: a block, function, trait, or an impl of any trait
/// but the promise.
fn first_unsafe(text: &str) -> Option<usize> {
    let word = |line: &str| {
        !(line.contains("unsafe impl") && line.contains(PROMISE))
            && line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe")
    };
    code_only(text).lines().position(word).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: (&str, &str) = ("crates/x/src/leaf.rs", "because");

    #[test]
    fn unsafe_outside_of_a_leaf_is_found() {
        let bad = "//! x\n#![forbid(unsafe_code)]\nfn f() { unsafe { g() } }\n";
        let found = over(&Tree::of(&[("crates/x/src/lib.rs", bad)]), &[]);
        assert_eq!((found.len(), found[0].line), (1, 3));
    }

    #[test]
    fn a_leaf_may_and_its_crate_need_not_forbid() {
        let files = [("crates/x/src/leaf.rs", "unsafe {}"), ("crates/x/src/lib.rs", "//! x")];
        assert!(over(&Tree::of(&files), &[LEAF]).is_empty());
    }

    #[test]
    fn the_promise_of_a_walk_is_no_leaf() {
        let bad = "//! x\nunsafe impl Send for W {}\n";
        assert_eq!(over(&Tree::of(&[("crates/x/src/w.rs", bad)]), &[]).len(), 1);
        let good = "//! x\nunsafe impl<'a> crate::work_ahead::Preloadable for W<'a> {}\n";
        assert!(over(&Tree::of(&[("crates/x/src/w.rs", good)]), &[]).is_empty());
    }

    #[test]
    fn a_crate_that_does_not_forbid_is_found() {
        assert_eq!(over(&Tree::of(&[("crates/x/src/lib.rs", "//! unsafe")]), &[]).len(), 1);
    }

    #[test]
    fn a_stale_leaf_is_found() {
        let files = [("crates/x/src/leaf.rs", "fn f() {}"), ("crates/x/src/lib.rs", "//! x")];
        assert_eq!(over(&Tree::of(&files), &[LEAF]).len(), 1);
    }
}
