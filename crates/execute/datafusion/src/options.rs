//! What can be set: by the session in SQL (`SET workahead.design = 'buckets'`), and by the
//! program that knows the machine.

use std::any::Any;
use std::fmt;
use std::str::FromStr;

use datafusion_common::config::{
    ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit,
};
use datafusion_common::config_namespace;
use datafusion_common::error::{DataFusionError, Result};
use workahead_join::{Caches, Design};

config_namespace! {
    /// Options under `workahead.` in SQL.
    pub struct WorkaheadOptions {
        /// Whether hash joins are replaced at all.
        pub enabled: bool, default = true
        /// Whether sort-merge joins become hash joins: for sessions that planned them only to
        /// keep memory low.
        pub replace_sort_merge_joins: bool, default = false
        /// How the build side's keys are kept: auto, buckets, dense or bloom.
        pub design: String, default = "auto".to_owned()
        /// Which side is built: the planned one, or the one measured to have fewer rows.
        pub build_side: String, default = "planned".to_owned()
        /// Whether a join's keys drop rows below the joins and aggregates of its probe side.
        pub sideways_filters: bool, default = true
    }
}

impl ConfigExtension for WorkaheadOptions {
    const PREFIX: &'static str = "workahead";
}

/// DataFusion's own macro for extensions leaves the prefix out of what it lists, and who sends a
/// session's settings to another process sends what is listed.
impl ExtensionOptions for WorkaheadOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        ConfigField::set(self, key, value)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut listed = Listed::default();
        self.visit(&mut listed, Self::PREFIX, "");
        listed.0
    }
}

#[derive(Default)]
struct Listed(Vec<ConfigEntry>);

impl Visit for Listed {
    fn some<V: fmt::Display>(&mut self, key: &str, value: V, description: &'static str) {
        let (key, value) = (key.to_owned(), Some(value.to_string()));
        self.0.push(ConfigEntry { key, value, description });
    }

    fn none(&mut self, key: &str, description: &'static str) {
        self.0.push(ConfigEntry { key: key.to_owned(), value: None, description });
    }
}

impl WorkaheadOptions {
    /// The session's, or the defaults when it was not told of any.
    pub(crate) fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// What the joins of a plan are told.
    pub(crate) fn choices(&self) -> Result<Choices> {
        let design = self.design.parse().map_err(refused)?;
        let build_from = self.build_side.parse().map_err(refused)?;
        Ok(Choices { design, build_from })
    }
}

fn refused(error: impl fmt::Display) -> DataFusionError {
    DataFusionError::Configuration(error.to_string())
}

/// Which side of a join is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BuildFrom {
    /// The left one, where the planner puts what it thinks is smaller.
    #[default]
    Planned,
    /// The one that turns out to have fewer rows.
    Measured,
}

/// A name that says of no side that it is built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no build side is {name:?}: choose from planned, measured")]
pub struct UnknownBuildSide {
    name: String,
}

impl BuildFrom {
    /// Its name among the options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Measured => "measured",
        }
    }
}

impl FromStr for BuildFrom {
    type Err = UnknownBuildSide;
    fn from_str(name: &str) -> Result<Self, UnknownBuildSide> {
        let found = [Self::Planned, Self::Measured].into_iter().find(|from| from.name() == name);
        found.ok_or_else(|| UnknownBuildSide { name: name.to_owned() })
    }
}

/// What the joins of a plan are told, as the session had it when the plan was made: it travels
/// with the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choices {
    /// How keys are kept.
    pub design: Design,
    /// Which side is built.
    pub build_from: BuildFrom,
}

impl Choices {
    /// Those that are not left to the join, as `EXPLAIN` shows them.
    pub(crate) fn forced(self) -> Vec<String> {
        let all = [
            (self.design != Design::Auto, "design", self.design.name()),
            (self.build_from != BuildFrom::Planned, "build_side", self.build_from.name()),
        ];
        let forced = all.into_iter().filter(|(forced, ..)| *forced);
        forced.map(|(_, option, name)| format!("{option}={name}")).collect()
    }

    /// All of them as words.
    #[cfg(any(test, feature = "proto"))]
    pub(crate) fn words(self) -> String {
        [self.design.name(), self.build_from.name()].join(" ")
    }

    /// Reads [`words`](Self::words).
    #[cfg(any(test, feature = "proto"))]
    pub(crate) fn of_words(words: &str) -> Result<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let [design, build_side] = words[..] else {
            return Err(refused(format!("{words:?} are not what a join is told")));
        };
        let options = WorkaheadOptions {
            design: design.to_owned(),
            build_side: build_side.to_owned(),
            ..Default::default()
        };
        options.choices()
    }
}

/// What the program knows of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The caches by which batches, tables and filters are sized.
    pub caches: Caches,
}

impl Default for Settings {
    fn default() -> Self {
        Self { caches: Caches::ASSUMED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_listed_by_the_names_that_set_them() {
        let mut options = ConfigOptions::new();
        options.extensions.insert(WorkaheadOptions::default());
        options.set("workahead.design", "bloom").unwrap();
        let mut others = ConfigOptions::new();
        others.extensions.insert(WorkaheadOptions::default());
        for entry in options.entries().iter().filter(|entry| entry.key.starts_with("workahead.")) {
            others.set(&entry.key, entry.value.as_deref().unwrap()).unwrap();
        }
        assert_eq!(WorkaheadOptions::of(&others).design, "bloom");
    }

    #[test]
    fn unknown_names_are_refused_with_the_list() {
        let of = |design: &str, build_side: &str| {
            let [design, build_side] = [design, build_side].map(str::to_owned);
            let options = WorkaheadOptions { design, build_side, ..Default::default() };
            options.choices().unwrap_err().to_string()
        };
        for (error, named, listed) in [
            (of("tree", "planned"), "\"tree\"", "dense, bloom"),
            (of("auto", "smaller"), "\"smaller\"", "planned, measured"),
        ] {
            assert!(error.contains(named) && error.contains(listed), "{error}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for build_from in [BuildFrom::Planned, BuildFrom::Measured] {
            let choices = Choices { design: Design::Bloom, build_from };
            assert_eq!(Choices::of_words(&choices.words()).unwrap(), choices);
        }
        assert!(Choices::of_words("auto auto planned").is_err());
        assert!(Choices::default().forced().is_empty());
    }
}
