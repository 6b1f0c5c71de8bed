//! Selects the packages to build and test, as arguments of Cargo.
//!
//! Cargo unifies the features of the packages named on its command line: `-p workahead-join` alone
//! would rebuild Arrow with fewer features than the default build has. A part is therefore built
//! together with the command, which depends on nearly everything, and selected by its targets:
//!
//! ```text
//! all     cargo build --all-targets
//! join    cargo test -p workahead-join -p workahead-cli --lib --test memory --bench auto …
//! ```

use std::collections::BTreeSet;

use anyhow::Result;

use crate::packages::{COMMAND, Package, Packages, Target};
use crate::workspace::Workspace;

/// Kinds of builds: two sets of features, so that each external crate is built twice at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The default members with their default features.
    Usual,
    /// Parts outside of the default build: DataFusion, the cluster, Python's modules; and crates
    /// with features, with all of them.
    Whole,
}

/// All of the command's optional parts.
const FEATURES: [&str; 2] = ["--features", "workahead-cli/cluster,workahead-cli/scheduler"];

/// Outside of the default build: names the features that crates of others have in the whole one.
const FEATURES_OF_OTHERS: &str = "workahead-sql";

/// The selected packages; `None` is all.
pub(crate) type Part = Option<BTreeSet<String>>;

impl Build {
    /// Package arguments of the whole build.
    pub(crate) fn whole(workspace: &Workspace) -> Result<Vec<String>> {
        Ok(Self::Whole.packages(&Packages::read(workspace)?, &None))
    }

    /// Whether a package belongs to it.
    fn has(self, package: &Package) -> bool {
        let is_crate = package.path.starts_with("crates/");
        match self {
            Self::Usual => package.is_default,
            Self::Whole => is_crate && (!package.is_default || package.has_features),
        }
    }

    /// The packages of a part that belong to this build.
    pub(crate) fn members<'a>(self, packages: &'a Packages, part: &Part) -> Vec<&'a Package> {
        let wanted = |package: &&Package| {
            self.has(package) && part.as_ref().is_none_or(|part| part.contains(&package.name))
        };
        packages.all.iter().filter(wanted).collect()
    }

    /// Package arguments of Cargo: they determine the features of all crates.
    pub(crate) fn packages(self, packages: &Packages, part: &Part) -> Vec<String> {
        let mut words = Vec::new();
        match (self, part) {
            (Self::Usual, None) => {}
            (Self::Usual, Some(_)) => {
                let members = self.members(packages, part);
                let mut names: Vec<&str> =
                    members.iter().map(|package| package.name.as_str()).collect();
                if !names.contains(&COMMAND) {
                    names.push(COMMAND);
                }
                words.extend(names.iter().flat_map(|name| ["-p".into(), (*name).into()]));
            }
            // Always the same: no part builds DataFusion anew.
            (Self::Whole, _) => {
                for package in self.members(packages, &None) {
                    words.extend(["-p".into(), package.name.clone()]);
                }
                words.extend(FEATURES.map(str::to_owned));
            }
        }
        words
    }

    /// The targets of these packages, by name.
    pub(crate) fn targets(self, members: &[&Package]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if members.iter().any(|package| package.has_library()) {
            words.push("--lib".into());
        }
        for target in members.iter().flat_map(|package| &package.targets) {
            if target.kind != "lib" && self.builds(target) {
                words.extend([format!("--{}", target.kind), target.name.clone()]);
            }
        }
        words
    }

    fn builds(self, target: &Target) -> bool {
        match self {
            Self::Usual => !target.wants_features,
            Self::Whole => !target.is_of_absence,
        }
    }
}

/// Of the default build when the whole one is tested as well: crates with features are tested with
/// all of them, there; here only what a build without them says of that.
pub(crate) fn beside_whole(packages: &Packages) -> (Part, Vec<String>) {
    let plain = Build::Usual.members(packages, &None);
    let absent = plain.iter().flat_map(|package| &package.targets);
    let absent = absent.filter(|target| target.is_of_absence).map(|target| target.name.clone());
    let names = plain.iter().filter(|package| !package.has_features);
    (Some(names.map(|package| package.name.clone()).collect()), absent.collect())
}

/// Package arguments of that part: our own crates have the features of the default build, those of
/// others the whole one's, so that they are built once for both.
pub(crate) fn packages_beside_whole(packages: &Packages) -> Vec<String> {
    let usual = Build::Usual.members(packages, &None);
    let names = usual.iter().map(|package| package.name.as_str()).chain([FEATURES_OF_OTHERS]);
    names.flat_map(|name| ["-p".to_owned(), name.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::tests::ours;

    fn part(names: &[&str]) -> Part {
        Some(names.iter().map(|name| format!("workahead-{name}")).collect())
    }

    #[test]
    fn a_part_is_named_by_its_targets_beside_the_command() {
        let (_, packages) = ours();
        let join = part(&["join"]);
        let words = Build::Usual.packages(&packages, &join);
        assert_eq!(words, ["-p", "workahead-join", "-p", COMMAND]);
        let words = Build::Usual.targets(&Build::Usual.members(&packages, &join));
        assert!(words.starts_with(&["--lib".into()]), "{words:?}");
        assert!(words.windows(2).any(|pair| pair == ["--test", "memory"]), "{words:?}");
        assert!(!words.contains(&"--bin".into()), "nothing of the command's own");
    }

    #[test]
    fn the_whole_build_is_what_the_default_one_is_not() {
        let (_, packages) = ours();
        let names: Vec<&str> =
            Build::Whole.members(&packages, &None).iter().map(|package| package.folder()).collect();
        for name in ["sql", "cluster", "python", "cli", "engines", "scheduler"] {
            assert!(names.contains(&name), "{name}");
        }
        assert!(!names.contains(&"join") && !names.contains(&"xtask"));
        assert!(Build::Whole.members(&packages, &part(&["join"])).is_empty());
        let all = Build::Whole.packages(&packages, &None);
        assert_eq!(Build::Whole.packages(&packages, &part(&["sql"])), all);
        let (plain, absent) = beside_whole(&packages);
        assert!(plain.unwrap().contains("workahead-join"));
        assert!(absent.contains(&"sql_absent".to_owned()), "{absent:?}");
    }

    /// Name and features of every crate of others that these packages are built with.
    fn features(workspace: &Workspace, words: &[String]) -> BTreeSet<String> {
        let mut tree = workspace.cargo(&["tree", "--prefix", "none"]);
        tree.args(["--edges", "normal,build,dev", "--format", "{p} {f}"]).args(words);
        let output = tree.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
        lines.filter(|line| !line.contains("workahead")).collect()
    }

    #[test]
    fn no_part_builds_a_crate_of_others_with_other_features() {
        let (workspace, packages) = ours();
        let all = features(&workspace, &Build::Usual.packages(&packages, &None));
        for package in Build::Usual.members(&packages, &None) {
            let words =
                Build::Usual.packages(&packages, &Some(BTreeSet::from([package.name.clone()])));
            let more: Vec<String> =
                features(&workspace, &words).difference(&all).cloned().collect();
            assert!(more.is_empty(), "{} has {more:?}", package.name);
        }
    }

    #[test]
    fn both_builds_have_crates_of_others_with_the_same_features() {
        let (workspace, packages) = ours();
        let whole = features(&workspace, &Build::Whole.packages(&packages, &None));
        let beside = features(&workspace, &packages_beside_whole(&packages));
        assert!(beside.len() > 300, "{}", beside.len());
        let more: Vec<&String> = beside.difference(&whole).collect();
        assert!(more.is_empty(), "{more:?}");
    }
}
