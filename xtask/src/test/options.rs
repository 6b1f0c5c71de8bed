//! The words of `cargo xtask test`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use super::depth::Depth;
use super::jobs::STAGES;
use crate::packages::{Package, Packages};

pub(crate) const HELP: &str = "\
usage: cargo xtask test [PART …] [OPTIONS]

Without a part: all that the default build has. A part is a wing (execute, measure, schedule,
papers), a crate by the name of its folder (join, study, sql …), xtask, or a stage (--list).

  --all         also DataFusion, the cluster, Python, the guest, the proofs: what CI runs
  --full        also every memory checker, more inputs, joins against DuckDB; kept in bench/record
  --changed     only crates that differ from origin/main, and those that depend on them
  --fail-fast   stop at the first stage that fails (otherwise the others are run too)
  --slowest N   one test at a time, and the N slowest at the end
  --jobs N      test programs that run beside each other [default: 2]
  --list        the stages and what each of them checks

  cargo xtask test                 before a change is sent, about as long as a coffee
  cargo xtask test join            while one works on the join
  cargo xtask test measure clippy  the crates of a wing, and lints of all
  cargo xtask test sql             DataFusion's joins, where the first build takes long
  cargo xtask test --changed       what the commits of a branch touch
";

/// The parsed options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) depth: Depth,
    /// Packages by name, where not all.
    pub(crate) packages: Option<BTreeSet<String>>,
    /// Stages by name, where only some.
    pub(crate) stages: BTreeSet<&'static str>,
    pub(crate) changed: bool,
    pub(crate) fail_fast: bool,
    pub(crate) slowest: Option<usize>,
    pub(crate) beside: usize,
}

/// Test programs beside each other: most wait for files, processes and servers now and then, and
/// each has threads of its own.
const BESIDE: usize = 2;

impl Options {
    pub(crate) fn read(words: &[&str], packages: &Packages) -> Result<Self> {
        let mut options = Self {
            depth: Depth::Usual,
            packages: None,
            stages: BTreeSet::new(),
            changed: false,
            fail_fast: false,
            slowest: None,
            beside: BESIDE,
        };
        let mut words = words.iter();
        let mut parts = Vec::new();
        while let Some(word) = words.next() {
            let mut number = || -> Result<usize> {
                let number = words.next().and_then(|word| word.parse().ok());
                number
                    .filter(|number| *number > 0)
                    .with_context(|| format!("{word} needs a number"))
            };
            match *word {
                "--all" => options.depth = options.depth.max(Depth::All),
                "--full" => options.depth = Depth::Full,
                "--changed" => options.changed = true,
                "--fail-fast" => options.fail_fast = true,
                "--keep-going" => options.fail_fast = false,
                "--slowest" => options.slowest = Some(number()?),
                "--jobs" => options.beside = number()?,
                part if !part.starts_with('-') => parts.push(part),
                other => bail!("`cargo xtask test` knows no {other}; see --help"),
            }
        }
        for part in parts {
            options.add(part, packages)?;
        }
        Ok(options)
    }

    /// Adds a wing, a crate or a stage.
    fn add(&mut self, part: &str, packages: &Packages) -> Result<()> {
        // A stage goes before a crate: `python` is tested by pytest, and `xtask` by its own stage.
        if let Some(stage) = STAGES.iter().find(|stage| stage.word == part) {
            self.stages.insert(stage.word);
            return Ok(());
        }
        // Of a wing, what the default build has; with --all everything.
        let all = self.depth >= Depth::All;
        let of = |package: &&Package| {
            let wing = package.wing() == Some(part) && (package.is_default || all);
            wing || package.folder() == part
        };
        let names: Vec<String> =
            packages.crates().filter(of).map(|package| package.name.clone()).collect();
        if names.is_empty() {
            bail!("unknown part `{part}`: choose from {}", known(packages).join(", "));
        }
        self.packages.get_or_insert_default().extend(names);
        Ok(())
    }

    /// Whether what is chosen needs what only `--all` sets up: clang for crates outside of the
    /// default build, programs for two stages.
    pub(crate) fn sets_up_all(&self, packages: &Packages) -> bool {
        let chosen = |name: &String| self.packages.as_ref().is_some_and(|all| all.contains(name));
        packages.crates().any(|package| !package.is_default && chosen(&package.name))
            || ["docs", "licences"].iter().any(|stage| self.stages.contains(stage))
    }

    /// Whether only a part is selected.
    pub(crate) fn is_part(&self) -> bool {
        self.packages.is_some() || !self.stages.is_empty() || self.changed
    }
}

/// Every word that names a part: wings, crates, stages.
fn known(packages: &Packages) -> Vec<&str> {
    let stages = STAGES.iter().map(|stage| stage.word);
    let mut known: Vec<&str> = packages.wings().into_iter().collect();
    for word in packages.crates().map(Package::folder).chain(stages) {
        if !known.contains(&word) {
            known.push(word);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::tests::ours;

    fn read(words: &[&str]) -> Result<Options> {
        Options::read(words, &ours().1)
    }

    #[test]
    fn parts_are_wings_crates_and_stages() {
        let names = |words: &[&str]| read(words).unwrap().packages.unwrap();
        assert!(names(&["join"]).contains("workahead-join"));
        let execute = names(&["execute"]);
        assert!(execute.contains("workahead-walks") && !execute.contains("workahead-sql"));
        assert!(names(&["execute", "--all"]).contains("workahead-sql"));
        assert!(names(&["sql"]).contains("workahead-sql"));
        let all = |words| read(words).unwrap().sets_up_all(&ours().1);
        assert!(all(&["sql"]) && !all(&["join"]) && !all(&["--all"]) && all(&["docs"]));
        let options = read(&["docs", "machine", "python", "xtask"]).unwrap();
        assert_eq!(options.stages, BTreeSet::from(["docs", "python", "xtask"]));
        assert_eq!(options.packages.unwrap().len(), 1);
    }

    #[test]
    fn unknown_words_are_refused_in_a_line_with_all_known_ones() {
        let error = read(&["jion"]).unwrap_err().to_string();
        for word in ["jion", "join", "measure", "docs", "guest"] {
            assert!(error.contains(word), "{word} in {error}");
        }
        assert!(!error.contains('\n'));
        assert!(read(&["--what"]).unwrap_err().to_string().contains("--help"));
        assert!(read(&["--slowest"]).is_err() && read(&["--jobs", "0"]).is_err());
    }

    #[test]
    fn depths_contain_each_other() {
        assert_eq!(read(&["--full", "--all"]).unwrap().depth, Depth::Full);
        assert_eq!(read(&["--all"]).unwrap().depth, Depth::All);
        let usual = read(&[]).unwrap();
        assert!(usual.depth == Depth::Usual && !usual.is_part() && !usual.fail_fast);
    }
}
