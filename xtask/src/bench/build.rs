//! `cargo xtask bench build`: how long the project takes to build, and what takes longest.
//!
//! ```text
//! for each round, for each kind of build:
//!   an empty target folder (and CARGO_HOME) ─► cargo ─► seconds of wall clock, and of CPU
//! ```
//!
//! The CPU time is that of all processes of the build, as the kernel counts it for children that
//! were waited for. Downloads are excluded: sources are fetched before, except with `--cold-home`,
//! which measures a newcomer's wait.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::peers::rounds::median;
use super::{Bench, cpu_time};
use crate::workspace::{Workspace, succeed};

const ROUNDS: usize = 3;
/// Units of the table of the slowest.
const UNITS: usize = 15;

const HELP: &str = "\
usage: cargo xtask bench build [WORDS]

  --only TEXT       of the kinds of builds (release, tests, features) those with this in their name
  --features LIST   also a release build with these features of the command
  --rounds N        from an empty target folder [default: 3]
  --cold-home       from an empty CARGO_HOME too: with all downloads
  --timings         also the units that took longest, in one more round
  --package NAME    of this package alone, where all is too much

Whole runs (without --only and --package, three rounds at least) are kept in bench/record/.
";

/// The words.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    only: Option<String>,
    features: Option<String>,
    package: Option<String>,
    rounds: usize,
    cold_home: bool,
    timings: bool,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            only: None,
            features: None,
            package: None,
            rounds: ROUNDS,
            cold_home: false,
            timings: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next().map(|value| (*value).to_owned());
                value.with_context(|| format!("{word} needs a value"))
            };
            match *word {
                "--only" => options.only = Some(value()?),
                "--features" => options.features = Some(value()?),
                "--package" => options.package = Some(value()?),
                "--rounds" => {
                    let number = value()?.parse().ok().filter(|number| *number > 0);
                    options.rounds = number.context("--rounds needs a number above zero")?;
                }
                "--cold-home" => options.cold_home = true,
                "--timings" => options.timings = true,
                other => bail!("`bench build` knows no {other}; see --help"),
            }
        }
        Ok(options)
    }

    fn is_whole(&self) -> bool {
        self.only.is_none() && self.package.is_none() && self.rounds >= ROUNDS
    }

    /// The builds, by name, and the words of Cargo.
    fn builds(&self) -> Vec<(String, Vec<String>)> {
        let mut builds = vec![
            ("release".to_owned(), vec!["build", "--release"]),
            ("tests".to_owned(), vec!["build", "--all-targets"]),
        ];
        let features = self.features.as_ref().map(|list| format!("release, features {list}"));
        if let (Some(name), Some(list)) = (features, &self.features) {
            let words = ["build", "--release", "--package", "workahead-cli", "--features", list];
            builds.push((name, words.into()));
        }
        let wanted =
            |name: &str| self.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        let builds = builds.into_iter().filter(|(name, _)| wanted(name));
        let package = self.package.iter().flat_map(|name| ["--package", name.as_str()]);
        let package: Vec<&str> = package.collect();
        builds
            .map(|(name, words)| {
                let words = words.into_iter().chain(package.iter().copied());
                (name, words.map(str::to_owned).collect())
            })
            .collect()
    }
}

/// Time of one build.
#[derive(Clone, Copy)]
struct BuildTime {
    wall_s: f64,
    cpu_s: f64,
}

/// Clean builds, round by round, with their medians.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, HELP) {
        return Ok(true);
    }
    let options = Options::read(words)?;
    let builds = options.builds();
    ensure!(!builds.is_empty(), "--only leaves no build: choose from release, tests, features");
    let place = Place::new(workspace)?;
    if !options.cold_home {
        succeed(&mut workspace.cargo(&["fetch", "--quiet", "--locked"]))?;
    }
    let mut took: Vec<Vec<BuildTime>> = vec![Vec::new(); builds.len()];
    for round in 0..options.rounds {
        for ((name, words), took) in builds.iter().zip(&mut took) {
            let one = place.build(workspace, words, options.cold_home)?;
            println!(
                "  round {}  {name:<32} {:>7.1} s, {:>7.1} s of CPU",
                round + 1,
                one.wall_s,
                one.cpu_s
            );
            took.push(one);
        }
    }
    let mut rows = Vec::new();
    for ((name, _), took) in builds.iter().zip(&took) {
        let middle = |of: fn(&BuildTime) -> f64| median(took.iter().map(of).collect());
        let (wall_s, cpu_s) = (middle(|took| took.wall_s), middle(|took| took.cpu_s));
        println!("  median   {name:<32} {wall_s:>7.1} s, {cpu_s:>7.1} s of CPU");
        rows.push(json!({ "build": name, "wall_s": wall_s, "cpu_s": cpu_s, "rounds": took.len() }));
    }
    if options.timings {
        for (name, words) in &builds {
            println!("  longest units of {name}");
            for unit in place.units(workspace, words)? {
                println!("    {unit}");
            }
        }
    }
    if options.is_whole() {
        keep(workspace, &options, &rows)?;
    }
    Ok(true)
}

fn keep(workspace: &Workspace, options: &Options, rows: &[Value]) -> Result<()> {
    let home = if options.cold_home { "an empty CARGO_HOME, with downloads" } else { "a warm one" };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let result = json!({
        "title": "Builds from an empty target folder",
        "rows": rows,
        "notes": [format!("{cpus} CPUs; medians; CARGO_HOME: {home}.")],
    });
    let bench = Bench { package: "xtask".into(), name: "build".into() };
    super::record(workspace, &bench, &super::machine(workspace)?, &result)
}

/// A target folder, emptied before every build and removed at the end.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.target().join(format!("bench-build-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder })
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Empties the folders, and builds once.
    fn build(&self, workspace: &Workspace, words: &[String], cold_home: bool) -> Result<BuildTime> {
        for inside in std::fs::read_dir(&self.folder)? {
            std::fs::remove_dir_all(inside?.path())?;
        }
        let mut command = self.cargo(workspace, words);
        if cold_home {
            command.env("CARGO_HOME", self.folder.join("home"));
        }
        let (before, start) = (cpu_time::of_children()?, Instant::now());
        succeed(&mut command)?;
        let cpu_s = cpu_time::of_children()? - before;
        Ok(BuildTime { wall_s: start.elapsed().as_secs_f64(), cpu_s })
    }

    fn cargo(&self, workspace: &Workspace, words: &[String]) -> Command {
        let mut command = workspace.cargo(&[]);
        command.args(words).args(["--quiet", "--locked"]);
        command.env("CARGO_TARGET_DIR", self.target()).env("CARGO_INCREMENTAL", "0");
        command
    }

    /// The units that took longest, by Cargo's own report.
    fn units(&self, workspace: &Workspace, words: &[String]) -> Result<Vec<String>> {
        let _ = std::fs::remove_dir_all(self.target());
        succeed(self.cargo(workspace, words).arg("--timings"))?;
        let page = self.target().join("cargo-timings/cargo-timing.html");
        let page = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        longest(&page)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The longest units in the data of Cargo's page.
fn longest(page: &str) -> Result<Vec<String>> {
    let data = page.split("const UNIT_DATA = ").nth(1).and_then(|rest| rest.split(";\n").next());
    let data = data.context("Cargo's page of timings has no UNIT_DATA")?;
    let mut units: Vec<Value> = serde_json::from_str(data).context("Cargo's timings")?;
    let seconds = |unit: &Value| unit["duration"].as_f64().unwrap_or_default();
    units.sort_by(|one, other| seconds(other).total_cmp(&seconds(one)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |unit: &Value| {
        let (name, target) = (text(&unit["name"]), text(&unit["target"]));
        format!("{:>7.1} s  {name} {}{target}", seconds(unit), text(&unit["version"]))
    };
    Ok(units.iter().take(UNITS).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_builds() {
        let names = |words: &[&str]| {
            let builds = Options::read(words).unwrap().builds();
            builds.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["release", "tests"]);
        assert_eq!(names(&["--features", "sql"]).len(), 3);
        assert_eq!(names(&["--only", "tests"]), ["tests"]);
        assert!(Options::read(&[]).unwrap().is_whole());
        assert!(!Options::read(&["--rounds", "1"]).unwrap().is_whole());
        for wrong in [&["--rounds", "0"][..], &["--what"], &["--only"]] {
            assert!(Options::read(wrong).is_err());
        }
    }

    #[test]
    fn the_longest_units_are_found() {
        let page = "x\nconst UNIT_DATA = [{\"name\":\"a\",\"version\":\"1\",\"target\":\"\",\
                    \"duration\":1.5},{\"name\":\"b\",\"version\":\"2\",\
                    \"target\":\" build script\",\"duration\":9.0}];\nconst C = 1;\n";
        let units = longest(page).unwrap();
        assert!(units[0].ends_with("9.0 s  b 2 build script"), "{units:?}");
        assert!(longest("nothing").is_err());
    }

    /// End to end, with a package that is built in a second.
    #[test]
    fn a_small_build_is_measured() {
        let folder = std::env::temp_dir().join(format!("workahead-build-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        std::fs::write(folder.join("src/lib.rs"), "pub fn f() {}\n").unwrap();
        let workspace = Workspace::of_test(folder.clone());
        succeed(&mut workspace.cargo(&["generate-lockfile", "--quiet", "--offline"])).unwrap();
        let place = Place { folder: folder.join("built") };
        std::fs::create_dir_all(&place.folder).unwrap();
        let took = place.build(&workspace, &["build".to_owned()], false).unwrap();
        assert!(took.wall_s > 0.0 && took.cpu_s > 0.0 && place.target().join("debug").is_dir());
        let units = place.units(&workspace, &["build".to_owned()]).unwrap();
        assert!(units[0].contains("small"), "{units:?}");
        drop(place);
        assert!(!folder.join("built").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
