//! The stages of `cargo xtask test`: what each checks, when it is run, and how.

use std::time::Instant;

use anyhow::Result;

use super::binaries::{self, Binary, ProgramRun, Running};
use super::depth::Depth;
use super::options::Options;
use super::selection::{Build, Part, beside_whole, packages_beside_whole};
use crate::counts::Counts;
use crate::packages::Packages;
use crate::stage::{LIMIT, Outcome, Stage, head, spelled};
use crate::workspace::{Workspace, succeed};
use crate::{deny, features, fuzz, guest, libraries, pages, proofs, python, setup, tidy};

/// One line of `cargo xtask test --list`.
pub(crate) struct StageEntry {
    /// Names it on the command line; several stages may share one.
    pub(crate) word: &'static str,
    pub(crate) depth: Depth,
    /// Narrowed to the selected packages; left out if it can't be.
    pub(crate) of_packages: bool,
    /// The word and depth of what has to have passed before.
    pub(crate) needs: Option<(&'static str, Depth)>,
    /// Waits more than it computes: run beside the others, its output at its end.
    pub(crate) beside: bool,
    pub(crate) covers: &'static str,
    run: fn(&Context) -> Result<Vec<Stage>>,
}

impl StageEntry {
    const fn new(word: &'static str, covers: &'static str, run: Run) -> Self {
        let (depth, of_packages, needs, beside) = (Depth::Usual, false, None, false);
        Self { word, depth, of_packages, needs, beside, covers, run }
    }

    const fn all(self) -> Self {
        Self { depth: Depth::All, ..self }
    }

    const fn full(self) -> Self {
        Self { depth: Depth::Full, ..self }
    }

    const fn of_packages(self) -> Self {
        Self { of_packages: true, ..self }
    }

    const fn needs(self, word: &'static str, depth: Depth) -> Self {
        Self { needs: Some((word, depth)), ..self }
    }

    const fn beside(self) -> Self {
        Self { beside: true, ..self }
    }

    /// Runs it; what can't even begin is a failed stage.
    pub(crate) fn run(&self, context: &Context) -> Vec<Stage> {
        (self.run)(context).unwrap_or_else(|error| {
            println!("\n== {}: {error:#}", self.word);
            vec![Stage::failed_early(self.word, format!("{error:#}"))]
        })
    }
}

type Run = fn(&Context) -> Result<Vec<Stage>>;

/// The input of the stages.
pub(crate) struct Context<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) packages: &'a Packages,
    pub(crate) options: &'a Options,
}

const USUAL: Depth = Depth::Usual;
const ALL: Depth = Depth::All;

/// In the order in which they are run: quick ones first, and the default build before the whole.
pub(crate) const STAGES: [StageEntry; 23] = [
    StageEntry::new("setup", "what the tests need, installed where that can be done", |context| {
        let depth = match context.options.sets_up_all(context.packages) {
            true => context.options.depth.max(ALL),
            false => context.options.depth,
        };
        Ok(vec![Stage::check("setup", || setup::run(depth))])
    }),
    StageEntry::new("format", "rustfmt on all packages", |context| {
        let words = ["fmt", "--all", "--check"];
        Ok(vec![Stage::commands("format", vec![context.workspace.cargo(&words)])])
    })
    .of_packages(),
    StageEntry::new("tidy", "the rules of the house that a program can check", |context| {
        Ok(vec![Stage::check("tidy", || tidy::run(context.workspace))])
    })
    .of_packages(),
    StageEntry::new("licences", "licences and sources of all dependencies", |context| {
        Ok(vec![Stage::check("licences", || deny::check(context.workspace))])
    })
    .all(),
    StageEntry::new("features", "adding a feature does not build DataFusion again", |context| {
        Ok(vec![Stage::check("features", || features::run(context.workspace))])
    })
    .all(),
    StageEntry::new(
        "libraries",
        "walks and lookup without std, on the oldest Rust, packed",
        |context| libraries::stages(context.workspace),
    ),
    StageEntry::new("xtask", "lints and tests of these tasks", tasks),
    StageEntry::new("clippy", "lints of the default build", |context| {
        clippy(context, Build::Usual)
    })
    .of_packages(),
    StageEntry::new("tests", "unit and process tests, benches run small", |context| {
        tests(context, Build::Usual)
    })
    .of_packages(),
    StageEntry::new("doctests", "examples in the documentation of the default build", |context| {
        doc_tests(context, Build::Usual)
    })
    .of_packages()
    .needs("tests", USUAL),
    StageEntry::new("clippy", "lints of what the default build has not", |context| {
        clippy(context, Build::Whole)
    })
    .all()
    .of_packages(),
    StageEntry::new("tests", "the same for DataFusion, the cluster, all features", |context| {
        tests(context, Build::Whole)
    })
    .all()
    .of_packages(),
    StageEntry::new("guest", "the scheduler in a Linux guest", |context| {
        Ok(vec![guest::scheduler(context.workspace, context.options.depth)])
    })
    .all()
    .needs("tests", ALL)
    .beside(),
    StageEntry::new("servers", "servers under the scheduler in a Linux guest", |context| {
        Ok(vec![guest::servers(context.workspace, context.options.depth)])
    })
    .all()
    .needs("tests", ALL)
    .beside(),
    StageEntry::new(
        "peers",
        "schedulers of others, built and compared in a Linux guest",
        |context| Ok(vec![guest::peers(context.workspace)]),
    )
    .full()
    .needs("tests", ALL)
    .beside(),
    StageEntry::new("doctests", "the same for what the default build has not", |context| {
        doc_tests(context, Build::Whole)
    })
    .all()
    .of_packages()
    .needs("tests", ALL),
    StageEntry::new("docs", "the book, its links, every command in it and in the README", docs)
        .all()
        .needs("tests", USUAL),
    StageEntry::new(
        "python",
        "both Python packages: built, installed, weighed, tested",
        |context| Ok(python::stages(context.workspace)),
    )
    .all()
    .needs("tests", ALL),
    StageEntry::new("loom", "every interleaving of the work-ahead set's memory", |context| {
        Ok(vec![proofs::loom(context.workspace, context.options.depth)])
    })
    .all(),
    StageEntry::new("memory", "AddressSanitizer or valgrind on the unsafe leaves", |context| {
        Ok(proofs::memory(context.workspace, context.options.depth))
    })
    .all(),
    StageEntry::new("miri", "Miri on the unsafe leaves, where it runs", |context| {
        Ok(vec![proofs::miri(context.workspace)])
    })
    .all(),
    StageEntry::new("pmu", "counters that count, in a Linux guest on Arm", |context| {
        Ok(vec![guest::counters(context.workspace)])
    })
    .full(),
    StageEntry::new("fuzz", "random joins against DuckDB", |context| {
        let fuzz = || fuzz::joins(context.workspace, &fuzz::SHORT);
        Ok(vec![Stage::check("fuzz joins", fuzz)])
    })
    .full(),
];

impl Context<'_> {
    /// Everything is tested, and the default build is only a part of it.
    fn beside_whole(&self) -> bool {
        self.options.depth >= Depth::All && self.options.packages.is_none()
    }

    /// Package arguments of Cargo for a build.
    fn packages_of(&self, build: Build) -> Vec<String> {
        match build {
            Build::Usual if self.beside_whole() => packages_beside_whole(self.packages),
            _ => build.packages(self.packages, &self.options.packages),
        }
    }

    fn running(&self) -> Running {
        // A tenth of the long proofs' numbers before the last depth.
        let long = |full: u32| match self.options.depth {
            Depth::Usual => None,
            Depth::All => Some(full / 10),
            Depth::Full => Some(full),
        };
        Running {
            beside: self.options.beside,
            // The slowest takes three minutes; in the last depth, half an hour.
            limit: if self.options.depth == Depth::Full { LIMIT } else { LIMIT / 4 },
            one_by_one: self.options.slowest.is_some(),
            cases: (self.options.depth == Depth::Full).then_some(1024),
            mutants: long(10_000),
            kills: long(200),
            histories: long(3000),
            tpcds: (self.options.depth == Depth::Full).then_some("0.1,1"),
            every_cell: self.options.depth == Depth::Full,
        }
    }
}

/// Names of a stage in the two builds.
fn name(build: Build, usual: &'static str, whole: &'static str) -> &'static str {
    match build {
        Build::Usual => usual,
        Build::Whole => whole,
    }
}

fn tasks(context: &Context) -> Result<Vec<Stage>> {
    let Context { workspace, packages, .. } = context;
    let words = ["clippy", "--package", "xtask", "--all-targets", "--", "-D", "warnings"];
    let lints = Stage::commands("clippy, xtask", vec![workspace.cargo(&words)]);
    head("tests, xtask");
    let start = Instant::now();
    let words = ["test", "--no-run", "--package", "xtask"].map(str::to_owned);
    let built = binaries::build(workspace, packages, &words)?;
    let ran = binaries::run(&built.binaries, &context.running());
    Ok(vec![lints, summed("tests, xtask", start, ran, built.failure)])
}

fn clippy(context: &Context, build: Build) -> Result<Vec<Stage>> {
    let Context { workspace, packages, options } = context;
    let members = build.members(packages, &options.packages);
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = workspace.cargo(&["clippy"]);
    command.args(context.packages_of(build));
    match options.packages {
        None => command.arg("--all-targets"),
        // Of libraries, with their tests.
        Some(_) => command.args(build.targets(&members)).args(["--profile", "test"]),
    };
    command.args(["--", "-D", "warnings"]);
    let name = name(build, "clippy", "clippy, all features");
    Ok(vec![Stage::commands(name, vec![command])])
}

/// Builds all test programs at once, and runs tests, then benches.
fn tests(context: &Context, build: Build) -> Result<Vec<Stage>> {
    let Context { workspace, packages, options } = context;
    let (part, absent) = match build {
        Build::Usual if context.beside_whole() => beside_whole(packages),
        _ => (options.packages.clone(), Vec::new()),
    };
    let members = build.members(packages, &part);
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let built_as = name(build, "build", "build, all features");
    head(built_as);
    let start = Instant::now();
    let words = build_words(context, build, &part, &absent);
    let built = binaries::build(workspace, packages, &words)?;
    let outcome = built.failure.map_or(Outcome::Passed, Outcome::Failed);
    let stage = Stage { outcome, took: start.elapsed(), ..Stage::skipped(built_as, "") };
    let wanted = |binary: &&Binary| {
        members.iter().any(|package| package.name == binary.package)
            || absent.contains(&binary.target)
    };
    let (benches, tests): (Vec<Binary>, Vec<Binary>) =
        built.binaries.iter().filter(wanted).cloned().partition(|one| one.kind == "bench");
    let mut stages = vec![stage];
    for (name, binaries) in [
        (name(build, "tests", "tests, all features"), tests),
        (name(build, "benches, small", "benches, all features"), benches),
    ] {
        if !binaries.is_empty() {
            head(name);
            let start = Instant::now();
            stages.push(summed(name, start, binaries::run(&binaries, &context.running()), None));
        }
    }
    Ok(stages)
}

fn build_words(context: &Context, build: Build, part: &Part, absent: &[String]) -> Vec<String> {
    let selected = context.packages_of(build);
    if part.is_none() {
        let mut words: Vec<String> = ["build", "--keep-going"].map(str::to_owned).into();
        words.extend(selected);
        words.push("--all-targets".into());
        return words;
    }
    let mut words: Vec<String> = ["test", "--no-run"].map(str::to_owned).into();
    words.extend(selected);
    words.extend(build.targets(&build.members(context.packages, part)));
    words.extend(absent.iter().flat_map(|name| ["--test".to_owned(), name.clone()]));
    words
}

fn doc_tests(context: &Context, build: Build) -> Result<Vec<Stage>> {
    let Context { workspace, packages, options } = context;
    let members = build.members(packages, &options.packages);
    if !members.iter().any(|package| package.has_library()) {
        return Ok(Vec::new());
    }
    let mut command = workspace.cargo(&["test", "--doc", "--no-fail-fast"]);
    command.args(context.packages_of(build));
    let name = name(build, "doc tests", "doc tests, all features");
    Ok(vec![Stage::commands(name, vec![command])])
}

/// With the command of the default build, or of the whole one where that is built anyway.
fn docs(context: &Context) -> Result<Vec<Stage>> {
    let Context { workspace, packages, options } = context;
    let build = if options.depth >= Depth::All { Build::Whole } else { Build::Usual };
    let mut command = workspace.cargo(&["build"]);
    command.args(build.packages(packages, &None)).args(["--bin", "workahead"]);
    println!("$ {}", spelled(&command));
    succeed(&mut command)?;
    Ok(vec![pages::stage(workspace, options.depth)])
}

/// The stage that these programs make.
fn summed(
    name: &'static str,
    start: Instant,
    ran: Vec<ProgramRun>,
    failure: Option<String>,
) -> Stage {
    let mut counts = Counts::default();
    ran.iter().for_each(|ran| counts.add(ran.counts));
    let failed: Vec<&str> =
        ran.iter().filter(|ran| ran.failure.is_some()).map(|ran| ran.title.as_str()).collect();
    let outcome = match failure {
        Some(why) => Outcome::Failed(why),
        None if !failed.is_empty() => Outcome::Failed(failed.join(", ")),
        None if counts.passed == 0 && name.starts_with("tests") => {
            Outcome::Failed("no test ran".into())
        }
        None => Outcome::Passed,
    };
    Stage { name, outcome, counts, took: start.elapsed(), programs: ran }
}
