//! Names that need a dictionary, with the field's word, by the folder in which each is refused.

use crate::tidy::code::code_only;
use crate::tidy::{File, Finding};

/// A folder, and what its files, modules and types are not called: ours, the field's.
struct Place {
    folder: &'static str,
    names: &'static [(&'static str, &'static str)],
}

const PLACES: [Place; 13] = [
    Place { folder: "crates/execute/join/", names: &JOIN },
    Place { folder: "crates/execute/walks/", names: &WALKS },
    Place { folder: "crates/execute/sql/", names: &DATAFUSION },
    Place { folder: "crates/execute/datafusion/", names: &DATAFUSION },
    Place { folder: "crates/execute/python/", names: &PYTHON },
    Place { folder: "crates/measure/engines/", names: &ENGINES },
    Place { folder: "crates/measure/study/", names: &ENGINES },
    Place { folder: "crates/measure/counters/", names: &COUNTERS },
    Place { folder: "crates/measure/report/", names: &REPORT },
    Place { folder: "crates/measure/workloads/", names: &WORKLOADS },
    Place { folder: "crates/papers/simulator/", names: &SIMULATOR },
    Place { folder: "crates/machine/", names: &MACHINE },
    Place { folder: "crates/cli/", names: &COMMAND },
];

const JOIN: [(&str, &str); 35] = [
    ("pairing", "match generation"),
    ("pairs", "matches"),
    ("sieve", "residual predicate"),
    ("alone", "unmatched rows"),
    ("emits", "unmatched rows"),
    ("leftover", "unmatched build scan"),
    ("remaining", "spilled-partition phase"),
    ("resident", "in-memory build side"),
    ("scattering", "radix partitioning"),
    ("parts", "partitions"),
    ("gathered", "partitions"),
    ("filtering", "Bloom filter"),
    ("sifting", "Bloom filter, adaptive"),
    ("words", "normalized keys"),
    ("mapping", "key encoding"),
    ("groups", "duplicate lists"),
    ("entries", "hash table"),
    ("direct", "perfect hash table"),
    ("design", "table layout"),
    ("fill", "build"),
    ("spreads", "partitioned build"),
    ("answers", "selection vector"),
    ("flags", "match bitmap"),
    ("inline", "payload in the table"),
    ("needs", "memory estimate"),
    ("facts", "null-aware state"),
    ("pile", "partition buffer"),
    ("place", "spill target"),
    ("router", "partitioner"),
    ("whole", "in-memory"),
    ("parted", "partitioned"),
    ("over", "done"),
    ("ended", "done"),
    ("told", "options"),
    ("asked", "the request"),
];
const WALKS: [(&str, &str); 5] = [
    ("crew", "worker group"),
    ("apart", "split references"),
    ("laws", "conformance"),
    ("draws", "random"),
    ("asked", "the places"),
];
const DATAFUSION: [(&str, &str); 6] = [
    ("announcement", "dynamic filter accumulator"),
    ("reporter", "dynamic filter accumulator"),
    ("passes", "filter push-down mapping"),
    ("measured", "run-time build side"),
    ("race", "run-time build side"),
    ("told", "join options"),
];
const PYTHON: [(&str, &str); 2] = [("presented", "output naming"), ("morsels", "batches")];
const ENGINES: [(&str, &str); 9] = [
    ("given", "cell configuration"),
    ("asked", "cell configuration"),
    ("told", "engine statistics"),
    ("below", "valgrind runner"),
    ("inside", "worker process"),
    ("door", "connector"),
    ("blame", "error context"),
    ("watcher", "collector"),
    ("watch", "collector"),
];
const COUNTERS: [(&str, &str); 5] = [
    ("held", "stopped child"),
    ("whom", "target"),
    ("accounts", "process accounting"),
    ("shaped", "paper tables"),
    ("absent", "unavailable"),
];
const REPORT: [(&str, &str); 3] =
    [("unshown", "limitations"), ("balance", "gains and losses"), ("cheaper", "plan cost change")];
const WORKLOADS: [(&str, &str); 4] = [
    ("acknowledged", "durability log"),
    ("draft", "atomic file"),
    ("rounds", "cycle"),
    ("draws", "random"),
];
const SIMULATOR: [(&str, &str); 4] = [
    ("calendar", "reservation table"),
    ("noted", "line history"),
    ("recent", "LRU set"),
    ("schedule", "scheduler"),
];
const MACHINE: [(&str, &str); 4] = [
    ("root", "sysroot"),
    ("knees", "cache-size detection"),
    ("evidence", "evidence tier"),
    ("unshown", "limitations"),
];
const COMMAND: [(&str, &str); 7] = [
    ("told", "render"),
    ("begun", "run session"),
    ("chosen", "arguments"),
    ("beside", "side-by-side"),
    ("whom", "target"),
    ("inside", "worker process"),
    ("asked", "arguments"),
];

/// Keywords before a name that this rule is about.
const KINDS: [&str; 5] = ["mod", "struct", "enum", "trait", "type"];

pub(super) fn refused(file: &File) -> Vec<Finding> {
    let Some(place) = PLACES.iter().find(|place| file.path.starts_with(place.folder)) else {
        return Vec::new();
    };
    let instead = |name: &str| {
        let name = name.to_lowercase();
        place.names.iter().find(|(ours, _)| *ours == name).map(|(_, field)| *field)
    };
    let mut findings = Vec::new();
    let parts = file.path[place.folder.len()..].split('/').map(|part| part.split('.').next());
    for part in parts.flatten() {
        if let Some(field) = instead(part) {
            findings.push(Finding::of_file(file, says(part, field)));
        }
    }
    if file.ends_with(".rs") {
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            for name in declared(line) {
                if let Some(field) = instead(name) {
                    findings.push(Finding::at(file, index + 1, says(name, field)));
                }
            }
        }
    }
    findings
}

fn says(name: &str, field: &str) -> String {
    format!("`{name}`: the field's word for it is {field}")
}

/// The modules and types that a line declares.
fn declared(line: &str) -> impl Iterator<Item = &str> {
    let name = |character: char| character.is_alphanumeric() || character == '_';
    let mut words = line.split(move |character| !name(character)).filter(|word| !word.is_empty());
    std::iter::from_fn(move || {
        words.by_ref().find(|word| KINDS.contains(word))?;
        words.next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        refused(&File { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_file_a_module_and_a_type_are_refused_in_their_place() {
        assert_eq!(count("crates/machine/src/root.rs", ""), 1);
        assert_eq!(count("crates/machine/src/lib.rs", "mod root;\npub struct Root;"), 2);
        assert_eq!(count("crates/machine/src/limits/knees/tests.rs", ""), 1);
        assert_eq!(count("crates/cli/src/a.rs", "enum Told {}"), 1);
    }

    #[test]
    fn elsewhere_and_in_other_names_they_are_right() {
        assert_eq!(count("crates/papers/simulator/src/root.rs", "mod root;"), 0);
        assert_eq!(count("crates/machine/src/sysroot.rs", "struct SysRoot; fn root() {}"), 0);
        assert_eq!(count("crates/machine/src/lib.rs", "// mod root\nlet root = Root::new();"), 0);
    }

    #[test]
    fn every_name_of_every_place_is_found() {
        for place in &PLACES {
            for (name, _) in place.names {
                assert_eq!(count(&format!("{}src/{name}.rs", place.folder), ""), 1, "{name}");
            }
        }
    }
}
