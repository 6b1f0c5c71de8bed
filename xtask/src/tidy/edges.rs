//! Allowed dependencies between crates. They point one way; a new edge is a design decision, and
//! this table is where it is made.

use super::{File, Finding, Tree};

/// A crate, its allowed dependencies among ours, and its forbidden ones.
struct House {
    name: &'static str,
    may_use: &'static [&'static str],
    never: &'static [&'static str],
}

/// Crates by their names, and families of them by the first word.
const ARROW_AND_ENGINES: &[&str] = &["arrow", "parquet", "datafusion"];
const ENGINES: &[&str] = &["datafusion"];
/// Crates that only the cluster knows: the distributed engine, and its transport.
const DISTRIBUTED: &[&str] = &["datafusion-distributed", "tonic"];

/// The house, bottom up. Crates of later issues are added with their edges when they come.
const HOUSE: [House; 26] = [
    House { name: "machine", may_use: &[], never: ARROW_AND_ENGINES },
    // Counting depends on the machine; it never learns which database it was.
    House { name: "counters", may_use: &["machine"], never: ARROW_AND_ENGINES },
    House { name: "walks", may_use: &["machine"], never: ARROW_AND_ENGINES },
    // For those who have neither Arrow nor an engine: walks, and nothing that brings other crates.
    House { name: "lookup", may_use: &["walks"], never: ARROW_AND_ENGINES },
    House { name: "join", may_use: &["walks", "machine"], never: ENGINES },
    // Bytes of metadata, before a decoder has them: it must not need one.
    House { name: "footer", may_use: &[], never: ARROW_AND_ENGINES },
    // The same of Arrow's files, by Arrow's own types of metadata.
    House { name: "messages", may_use: &["footer"], never: ENGINES },
    // The join in DataFusion's plans. It knows no session, no files and no SQL.
    House { name: "datafusion", may_use: &["join"], never: DISTRIBUTED },
    // Its tests make TPC-H's tables, and have DuckDB make those of TPC-DS and answer its queries.
    House {
        name: "sql",
        may_use: &["datafusion", "footer", "messages", "join", "machine", "workloads", "duckdb"],
        never: DISTRIBUTED,
    },
    // The one crate that knows the distributed engine. DuckDB answers its tests' queries.
    House { name: "cluster", may_use: &["datafusion", "sql", "machine", "duckdb"], never: &[] },
    House { name: "workloads", may_use: &["machine"], never: ENGINES },
    House { name: "duckdb", may_use: &[], never: ARROW_AND_ENGINES },
    // Texts in, words out: it sends none.
    House { name: "statements", may_use: &["workloads"], never: ARROW_AND_ENGINES },
    // A header of pure functions: it knows no run queue, no clock, and nothing of ours.
    House { name: "policy", may_use: &[], never: ARROW_AND_ENGINES },
    House { name: "scheduler", may_use: &["policy", "machine"], never: ARROW_AND_ENGINES },
    // A model reads no clock and knows no study: walks and workloads go in, counts come out.
    House { name: "simulator", may_use: &["walks", "machine", "policy"], never: ENGINES },
    House { name: "study", may_use: &["workloads", "counters", "machine"], never: ENGINES },
    House {
        name: "engines",
        // `sql` only as an option: no default build knows DataFusion.
        may_use: &[
            "study",
            "statements",
            "workloads",
            "counters",
            "machine",
            "duckdb",
            "scheduler",
            "sql",
        ],
        never: ENGINES,
    },
    // Questions as studies: it runs none of them.
    House { name: "advise", may_use: &["machine", "study"], never: ARROW_AND_ENGINES },
    // The papers: published figures and verdicts. The crates that measure know none of it.
    House { name: "reproduce", may_use: &["study", "counters", "report"], never: ENGINES },
    // Engines of the papers: nothing below them knows that they are there.
    House {
        name: "native",
        may_use: &["engines", "study", "lookup", "walks", "workloads", "counters", "machine"],
        never: ARROW_AND_ENGINES,
    },
    // Its tests hold the scheduler's advice against modelled run queues.
    House {
        name: "modelled",
        may_use: &[
            "native",
            "simulator",
            "engines",
            "study",
            "walks",
            "workloads",
            "machine",
            "scheduler",
        ],
        never: ARROW_AND_ENGINES,
    },
    // Re-rendering never re-runs: report can't reach what runs.
    House { name: "report", may_use: &["study", "counters", "machine"], never: ENGINES },
    // Python's libraries are known by their interface alone; `sql` only as an option, for the
    // features of others' crates that it names.
    House { name: "python", may_use: &["join", "machine", "sql"], never: ENGINES },
    House { name: "python-sql", may_use: &["python", "sql"], never: DISTRIBUTED },
    House {
        name: "cli",
        may_use: &[
            "machine",
            "counters",
            "footer",
            "messages",
            "join",
            "workloads",
            "policy",
            "scheduler",
            "simulator",
            "study",
            "statements",
            "advise",
            "engines",
            "native",
            "modelled",
            "report",
            "reproduce",
            "sql",
            "cluster",
        ],
        never: ENGINES,
    },
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in tree.manifests() {
        let Some(name) = crate_of(&manifest.path) else {
            findings.extend(foreign(manifest));
            continue;
        };
        match HOUSE.iter().find(|house| house.name == name) {
            Some(house) => findings.extend(of_crate(manifest, house)),
            None => findings.push(Finding::of_file(
                manifest,
                format!("`{name}` is missing in HOUSE in tidy/edges.rs: add it"),
            )),
        }
    }
    findings
}

/// `crates/WING/NAME/Cargo.toml` or `crates/NAME/Cargo.toml` → `NAME`.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?.split('/').next_back()
}

/// Measures a crate beside its peers, as a program of its users would use it.
const BENCH: &str = "bench/lookup/Cargo.toml";

/// A package outside of `crates/` (xtask) uses nothing of ours, but for the bench.
fn foreign(manifest: &File) -> Vec<Finding> {
    if manifest.path == BENCH {
        return Vec::new();
    }
    ours(&dependencies(manifest))
        .map(|name| Finding::of_file(manifest, format!("uses `{name}`; it must build without us")))
        .collect()
}

fn of_crate(manifest: &File, house: &House) -> Vec<Finding> {
    let all = dependencies(manifest);
    let mut findings: Vec<Finding> = ours(&all)
        .filter(|used| !house.may_use.contains(used))
        .map(|used| {
            let may = house.may_use.join(", ");
            let says = format!("`{}` may use only [{may}], not `{used}`", house.name);
            Finding::of_file(manifest, says)
        })
        .collect();
    for dependency in &all {
        let family = dependency.split('-').next().unwrap_or(dependency);
        if house.never.contains(&family) || house.never.contains(&dependency.as_str()) {
            let says = format!("`{}` promises to know no `{dependency}`", house.name);
            findings.push(Finding::of_file(manifest, says));
        }
    }
    findings.extend(unused(manifest, house, &all));
    findings
}

/// Edges that are allowed and that no manifest has: each is one that nobody would see come.
fn unused(manifest: &File, house: &House, all: &[String]) -> Vec<Finding> {
    let used = |edge: &&&str| ours(all).any(|used| used == **edge);
    let idle = house.may_use.iter().filter(|edge| !used(edge));
    idle.map(|edge| {
        let says = format!("`{}` {UNUSED} `{edge}`: take the edge out of HOUSE", house.name);
        Finding::of_file(manifest, says)
    })
    .collect()
}

const UNUSED: &str = "may use, and does not use,";

fn ours(dependencies: &[String]) -> impl Iterator<Item = &str> {
    dependencies.iter().filter_map(|name| name.strip_prefix("workahead-"))
}

/// Names under every `[dependencies]`-like table, for every target. Development dependencies may
/// not break the order either: they would make a circle of the tests.
fn dependencies(manifest: &File) -> Vec<String> {
    let Ok(table) = manifest.text.parse::<toml::Table>() else { return Vec::new() };
    let mut names = Vec::new();
    collect(&table, &mut names);
    for target in table.get("target").and_then(toml::Value::as_table).into_iter().flatten() {
        if let Some(target) = target.1.as_table() {
            collect(target, &mut names);
        }
    }
    names
}

fn collect(table: &toml::Table, names: &mut Vec<String>) {
    for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
        if let Some(listed) = table.get(key).and_then(toml::Value::as_table) {
            names.extend(listed.keys().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let all = check(&Tree::of(&[(path, text)]));
        let all = all.into_iter().map(|finding| finding.says);
        all.filter(|says| !says.contains(UNUSED)).collect()
    }

    #[test]
    fn an_edge_that_nobody_uses_is_found() {
        let unused = |text| {
            let all = check(&Tree::of(&[("crates/execute/walks/Cargo.toml", text)]));
            all.iter().filter(|finding| finding.says.contains(UNUSED)).count()
        };
        assert_eq!(unused(""), 1);
        assert_eq!(unused("[dev-dependencies]\nworkahead-machine.workspace = true\n"), 0);
    }

    #[test]
    fn an_edge_against_the_order_is_found() {
        let good = "[dependencies]\nworkahead-machine.workspace = true\n";
        assert!(found("crates/execute/walks/Cargo.toml", good).is_empty());
        let bad = "[dependencies]\nworkahead-join.workspace = true\n";
        assert_eq!(found("crates/execute/walks/Cargo.toml", bad).len(), 1);
        let tests = "[dev-dependencies]\nworkahead-engines.workspace = true\n";
        assert_eq!(found("crates/measure/report/Cargo.toml", tests).len(), 1);
        let target = "[target.'cfg(loom)'.dependencies]\nworkahead-cli = \"1\"\n";
        assert_eq!(found("crates/execute/walks/Cargo.toml", target).len(), 1);
    }

    #[test]
    fn promises_about_other_crates_are_kept() {
        let arrow = "[dependencies]\narrow-array.workspace = true\n";
        assert_eq!(found("crates/execute/walks/Cargo.toml", arrow).len(), 1);
        assert!(found("crates/execute/join/Cargo.toml", arrow).is_empty());
        let fusion = "[dependencies]\ndatafusion = \"55\"\n";
        assert_eq!(found("crates/cli/Cargo.toml", fusion).len(), 1);
        let distributed = "[dependencies]\ndatafusion-distributed.workspace = true\n";
        assert_eq!(found("crates/execute/sql/Cargo.toml", distributed).len(), 1);
        assert!(found("crates/execute/sql/Cargo.toml", fusion).is_empty());
        assert!(found("crates/execute/cluster/Cargo.toml", distributed).is_empty());
    }

    #[test]
    fn strangers_and_the_tasks_are_held_apart() {
        assert_eq!(found("crates/utils/Cargo.toml", "").len(), 1);
        let bad = "[dependencies]\nworkahead-machine.workspace = true\n";
        assert_eq!(found("xtask/Cargo.toml", bad).len(), 1);
    }
}
