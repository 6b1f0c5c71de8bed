//! `cargo xtask test`: every check of the project, or a part of them.
//!
//! ```text
//!   words ─► options ─► stages: setup format tidy … tests … docs │ whole build … proofs
//!                          │ one that fails hides no other         │ guest, servers: beside them
//!                          └► summary, slowest programs, `N passed, N failed`
//! ```

mod binaries;
mod changes;
mod depth;
mod jobs;
mod options;
mod report;
mod selection;
mod side_process;

pub(crate) use binaries::ProgramRun;
pub(crate) use depth::Depth;
pub(crate) use selection::Build;

use anyhow::Result;

use crate::packages::Packages;
use crate::stage::Stage;
use crate::workspace::Workspace;
use crate::{bench, checkout};
use jobs::{Context, STAGES, StageEntry};
use options::Options;
use report::Report;

/// Heads what is kept of a full run.
const FULL: &str = "`cargo xtask test --full`";

/// Runs what the words ask for; true when all that ran passed.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if words.iter().any(|word| ["--help", "-h", "help"].contains(word)) {
        print!("{}", options::HELP);
        return Ok(true);
    }
    if words.contains(&"--list") {
        print!("{}", list());
        return Ok(true);
    }
    // The part that a run beside another one is: its parent holds the target folder.
    if let Some(word) = side_process::requested() {
        return side_process::run(workspace, &word, words);
    }
    let packages = Packages::read(workspace)?;
    let mut options = Options::read(words, &packages)?;
    let held = checkout::hold(workspace)?;
    if held.changed_hands {
        drop(held);
        return checkout::start_anew(workspace, words);
    }
    if options.changed && !narrow(workspace, &packages, &mut options)? {
        println!("\n0 passed, 0 failed");
        return Ok(true);
    }
    if options.sets_up_all(&packages) {
        options.stages.insert("setup");
    }
    let context = Context { workspace, packages: &packages, options: &options };
    let report = run_stages(&context, words);
    println!("\n== summary\n{}", report.summary(options.slowest));
    if options.depth == Depth::Full && !options.is_part() {
        let said = format!("{}\n\n{}", report.summary(None), report.total());
        let kept = bench::record_page(workspace, "test-full", FULL, &said)?;
        println!("kept in {}", kept.strip_prefix(workspace.root())?.display());
    }
    println!("\n{}", report.total());
    Ok(!report.failed())
}

/// Narrows the packages to those that differ; false when nothing does.
fn narrow(workspace: &Workspace, packages: &Packages, options: &mut Options) -> Result<bool> {
    let changed = changes::read(workspace, packages)?;
    if changed.files == 0 {
        println!("nothing differs from {}", changed.base);
        return Ok(false);
    }
    let folders = |names: &std::collections::BTreeSet<String>, is_default: bool| {
        let all = packages.crates().filter(|package| names.contains(&package.name));
        let of = all.filter(|package| package.is_default == is_default);
        of.map(|package| package.folder().to_owned()).collect::<Vec<_>>().join(", ")
    };
    println!("{} files differ from {}", changed.files, changed.base);
    println!("  to be tested: {}", folders(&changed.reached, true));
    let heavy = folders(&changed.reached, false);
    if !heavy.is_empty() && options.depth < Depth::All {
        println!("  with --all also: {heavy}");
    }
    options.packages.get_or_insert_default().extend(changed.reached);
    options.stages.extend(changed.stages);
    // These are quick, and look at every file.
    options.stages.extend(["format", "tidy"]);
    if options.depth < Depth::All {
        let usual = |name: &String| packages.named(name).is_some_and(|package| package.is_default);
        options.packages.get_or_insert_default().retain(usual);
    }
    Ok(true)
}

/// Which stages are run, in their order.
fn chosen<'a>(options: &Options) -> Vec<&'a StageEntry> {
    let within = |stage: &&StageEntry| stage.depth <= options.depth;
    // A stage that is named is run, though it takes the whole build.
    let named = |stage: &&StageEntry| {
        let of_its_own = STAGES.iter().any(|other| other.word == stage.word && within(&other));
        options.stages.contains(stage.word) && (within(stage) || !of_its_own)
    };
    // Of packages outside of the default build there is nothing in its stages: they say nothing.
    let narrowed = |stage: &&StageEntry| {
        options.packages.is_some() && stage.of_packages && stage.depth <= Depth::All
    };
    let whole = |stage: &&StageEntry| !options.is_part() && within(stage);
    STAGES.iter().filter(|stage| named(stage) || narrowed(stage) || whole(stage)).collect()
}

fn run_stages(context: &Context, words: &[&str]) -> Report {
    let chosen = chosen(context.options);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for stage in &chosen {
            if let Some(why) = report.missing(stage) {
                report.add(stage, vec![Stage::skipped(stage.word, why)]);
                continue;
            }
            if stage.beside && chosen.len() > 1 {
                others.push((*stage, side_process::start(scope, context, stage, words)));
                continue;
            }
            report.add(stage, stage.run(context));
            if context.options.fail_fast && report.failed() {
                report.stopped = true;
                break;
            }
        }
        for (stage, other) in others {
            report.add(stage, other.join().unwrap_or_default());
        }
    });
    report
}

/// Every stage and what it checks.
fn list() -> String {
    let mut lines = Vec::new();
    for depth in [Depth::Usual, Depth::All, Depth::Full] {
        lines.push(match depth {
            Depth::Usual => "cargo xtask test".to_owned(),
            Depth::All => "cargo xtask test --all adds".to_owned(),
            Depth::Full => "cargo xtask test --full adds".to_owned(),
        });
        for stage in STAGES.iter().filter(|stage| stage.depth == depth) {
            lines.push(format!("  {:<10} {}", stage.word, stage.covers));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::tests::ours;

    fn words(arguments: &[&str]) -> Vec<&'static str> {
        let options = Options::read(arguments, &ours().1).unwrap();
        chosen(&options).iter().map(|stage| stage.word).collect()
    }

    #[test]
    fn each_depth_contains_the_one_before() {
        let (usual, all, full) = (words(&[]), words(&["--all"]), words(&["--full"]));
        assert!(usual.starts_with(&["setup", "format", "tidy"]), "{usual:?}");
        for (less, more) in [(&usual, &all), (&all, &full)] {
            assert!(less.len() < more.len() && less.iter().all(|word| more.contains(word)));
        }
        for word in ["guest", "servers", "python", "loom", "memory", "miri"] {
            assert!(all.contains(&word) && !usual.contains(&word), "{word}");
        }
        assert_eq!(full.len(), STAGES.len());
    }

    #[test]
    fn a_part_is_what_is_named() {
        assert_eq!(words(&["docs"]), ["docs"]);
        assert_eq!(words(&["guest"]), ["guest"], "though it takes the whole build");
        assert_eq!(words(&["clippy"]).len(), 1);
        assert_eq!(words(&["clippy", "--all"]).len(), 2);
        let join = words(&["join"]);
        for word in ["format", "tidy", "clippy", "tests", "doctests"] {
            assert!(join.contains(&word), "{word} of {join:?}");
        }
        assert!(!join.contains(&"setup") && !join.contains(&"docs"));
    }

    #[test]
    fn the_list_has_every_stage() {
        let list = list();
        for stage in &STAGES {
            assert!(list.contains(stage.word) && list.contains(stage.covers));
        }
        assert!(list.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn what_a_stage_needs_comes_before_it() {
        for (index, stage) in STAGES.iter().enumerate() {
            if let Some((word, depth)) = stage.needs {
                let before = &STAGES[..index];
                assert!(before.iter().any(|other| other.word == word && other.depth == depth));
            }
        }
    }
}
