//! `cargo xtask bench [NAME]`: measurements that are kept.
//!
//! A bench is a target `crates/*/benches/NAME.rs` with `harness = false`. Under `cargo test` (no
//! `--bench` among its words) it runs small and checks its answers. With `--bench --json` it
//! measures and prints one object:
//!
//! ```json
//! { "title": "One line", "rows": [ { "case": "amac", "mtuples_per_s": 61.2 } ],
//!   "notes": [ "what a reader must know" ] }
//! ```
//!
//! That object is kept beside the machine it was measured on, never the machine's name:
//! `bench/record/<cpu>/<date>-<name>.json`, and the same as a page (`.md`). [`peers`] is a bench of
//! its own kind: it needs other engines; [`sql`] takes words, and an hour; [`cluster`] is of
//! processes, [`lookup`] of a package outside of the workspace, and [`build`] of the project
//! itself.

pub(crate) mod build;
pub(crate) mod cluster;
mod cpu_time;
pub(crate) mod lookup;
pub(crate) mod memory;
mod page;
pub(crate) mod peers;
pub(crate) mod sql;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// Benches of their own kind.
const OTHERS: &str = "with words of their own (--help): peers, sql, cluster, memory, lookup, build";

/// Runs the bench of this name, or every one, and records it.
pub(crate) fn run(workspace: &Workspace, name: Option<&str>) -> Result<bool> {
    let all = benches(workspace)?;
    let names: Vec<&str> = all.iter().map(|bench| bench.name.as_str()).collect();
    if name.is_some_and(|name| ["--help", "-h", "help"].contains(&name)) {
        println!("usage: cargo xtask bench [NAME]\n\n{}\n\n{OTHERS}", names.join(", "));
        return Ok(true);
    }
    // A bench that builds DataFusion is run by name.
    let wanted =
        |bench: &&Bench| name.map_or(bench.package != "workahead-sql", |name| bench.name == name);
    let chosen: Vec<&Bench> = all.iter().filter(wanted).collect();
    if chosen.is_empty() {
        bail!("no bench `{}`; there are: {}; {OTHERS}", name.unwrap_or("at all"), names.join(", "));
    }
    let machine = machine(workspace)?;
    for bench in chosen {
        println!("== {} ({})", bench.name, bench.package);
        let result = measure(workspace, bench)?;
        record(workspace, bench, &machine, &result)?;
    }
    Ok(true)
}

/// Prints the words of a bench of its own kind, if one of these wants them.
fn shows_help(words: &[&str], help: &str) -> bool {
    let wanted = words.iter().any(|word| ["--help", "-h"].contains(word));
    if wanted {
        print!("{help}");
    }
    wanted
}

struct Bench {
    package: String,
    name: String,
}

fn benches(workspace: &Workspace) -> Result<Vec<Bench>> {
    let metadata = json_of(workspace, &["metadata", "--format-version", "1", "--no-deps"])?;
    let mut benches = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        for target in package["targets"].as_array().into_iter().flatten() {
            // Our worker among the peers is driven, not run: see `peers`. `sql` builds DataFusion.
            if target["kind"][0] == "bench" && target["name"] != "peers" && target["name"] != "sql"
            {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (package, name) = (text(&package["name"]), text(&target["name"]));
                benches.push(Bench { package, name });
            }
        }
    }
    Ok(benches)
}

fn machine(workspace: &Workspace) -> Result<Value> {
    let words =
        ["run", "--quiet", "--release", "--package", "workahead-cli", "--", "machine", "--json"];
    json_of(workspace, &words).context("a figure is worth nothing without its machine")
}

fn measure(workspace: &Workspace, bench: &Bench) -> Result<Value> {
    let words = ["bench", "--package", &bench.package, "--bench", &bench.name, "--", "--json"];
    let result = json_of(workspace, &words)?;
    let rows = result["rows"].as_array().map_or(0, Vec::len);
    if rows == 0 {
        bail!("{} printed no rows; see the top of xtask/src/bench.rs", bench.name);
    }
    Ok(result)
}

/// Runs Cargo and reads the object that the program printed; its messages stay on the screen.
fn json_of(workspace: &Workspace, words: &[&str]) -> Result<Value> {
    let mut command = workspace.cargo(words);
    let output =
        command.stderr(std::process::Stdio::inherit()).output().context("cargo does not start")?;
    let spelled = words.join(" ");
    if !output.status.success() {
        bail!("cargo {spelled}: {}", output.status);
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo {spelled} printed no JSON"))
}

/// Writes both files, each under a temporary name first, and prints the page.
fn record(workspace: &Workspace, bench: &Bench, machine: &Value, result: &Value) -> Result<()> {
    let date = date_of(now_s()?);
    let whole = json!({
        "bench": bench.name,
        "date": date,
        "commit": workspace.commit(),
        "machine": machine,
        "result": result,
    });
    let text = serde_json::to_string_pretty(&whole)?;
    if let Some(host) = crate::tidy::host_name().filter(|host| text.contains(host.as_str())) {
        bail!("the record would name this computer ({host})");
    }
    let folder = workspace.root().join("bench/record").join(slug(machine));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    write(&folder.join(format!("{date}-{}.json", bench.name)), &(text + "\n"))?;
    let page = page::of(&whole);
    let path = folder.join(format!("{date}-{}.md", bench.name));
    write(&path, &page)?;
    println!("{page}\n  kept in {}", path.strip_prefix(workspace.root())?.display());
    Ok(())
}

/// Keeps what a program said beside the benches' pages: one page of a name, the last one.
pub(crate) fn record_page(
    workspace: &Workspace,
    name: &str,
    title: &str,
    said: &str,
) -> Result<PathBuf> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let processor = line.and_then(|line| line.split_once(": ")).map(|(_, model)| model);
    let machine = json!({ "processor": processor });
    let model = page::cpu_model(&machine).unwrap_or("unknown CPU");
    let (date, commit) = (date_of(now_s()?), workspace.commit());
    let page = format!(
        "# {title}\n\n{model}, {cpus} CPUs. {date}, commit {commit}.\n\n```text\n{said}\n```\n"
    );
    let folder = workspace.root().join("bench/record").join(slug(&machine));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{name}.md"));
    write(&path, &page)?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let temporary = path.with_extension("workahead-tmp");
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A folder name from the CPU's: `AMD EPYC 7763 64-Core Processor` → `amd-epyc-7763-…`.
fn slug(machine: &Value) -> String {
    let model = page::cpu_model(machine).unwrap_or("unknown CPU");
    let words: Vec<String> = model
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !["", "R", "TM", "CPU", "Processor"].contains(word))
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

pub(crate) fn now_s() -> Result<u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(since.context("this computer's clock is before 1970")?.as_secs())
}

/// `YYYY-MM-DD` of a UNIX time: Howard Hinnant's civil_from_days, whose years begin in March so
/// that the leap day comes last.
fn date_of(unix_s: u64) -> String {
    let days = unix_s / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date_of(0), "1970-01-01");
        assert_eq!(date_of(951_782_400), "2000-02-29");
        assert_eq!(date_of(951_868_800), "2000-03-01");
        assert_eq!(date_of(1_772_323_199), "2026-02-28");
        assert_eq!(date_of(1_772_323_200), "2026-03-01");
        assert_eq!(date_of(4_107_542_399), "2100-02-28");
    }

    #[test]
    fn folders_are_named_by_the_cpu() {
        let machine = json!({ "processor": "Intel(R) Xeon(R) CPU E3-1240 @ 3.30GHz" });
        assert_eq!(slug(&machine), "intel-xeon-e3-1240-3-30ghz");
        assert_eq!(slug(&json!({ "processor": null })), "unknown");
    }
}
