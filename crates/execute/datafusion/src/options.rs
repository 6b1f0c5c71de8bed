//! Options of the joins, set in SQL: `SET workahead.layout = 'buckets'`.

use std::any::Any;
use std::fmt;
use std::str::FromStr;

use datafusion_common::config::{
    ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit,
};
use datafusion_common::config_namespace;
use datafusion_common::error::{DataFusionError, Result};
use workahead_join::TableLayout;

config_namespace! {
    /// Options under `workahead.` in SQL.
    ///
    /// ```
    /// use datafusion_common::config::ConfigOptions;
    /// use workahead_datafusion::WorkaheadOptions;
    ///
    /// let mut config = ConfigOptions::new();
    /// config.extensions.insert(WorkaheadOptions::default());
    /// config.set("workahead.build_side", "runtime")?;
    /// let options = config.extensions.get::<WorkaheadOptions>();
    /// assert_eq!(options.map(|options| options.build_side.as_str()), Some("runtime"));
    /// # Ok::<(), datafusion_common::DataFusionError>(())
    /// ```
    pub struct WorkaheadOptions {
        /// Whether hash joins are replaced at all.
        pub enabled: bool, default = true
        /// Whether sort-merge joins are replaced by hash joins, for sessions that plan them only to
        /// save memory.
        pub replace_sort_merge_joins: bool, default = false
        /// The layout of join tables: auto, buckets, dense or bloom.
        pub layout: String, default = "auto".to_owned()
        /// The build side: the planned one, or the one found at run time to have fewer rows.
        pub build_side: String, default = "planned".to_owned()
        /// Whether a join's keys filter rows below the joins and aggregates of its probe side, and
        /// build sides that are joined with it.
        pub sideways_filters: bool, default = true
        /// Whether equal subplans that aggregate are run once (sessions of `workahead-sql`).
        pub reuse_subplans: bool, default = true
    }
}

impl ConfigExtension for WorkaheadOptions {
    const PREFIX: &'static str = "workahead";
}

/// DataFusion's own macro for extensions lists keys without the prefix, and the list is what is
/// sent to another process.
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
        let mut listed = EntryList::default();
        self.visit(&mut listed, Self::PREFIX, "");
        listed.0
    }
}

#[derive(Default)]
struct EntryList(Vec<ConfigEntry>);

impl Visit for EntryList {
    fn some<V: fmt::Display>(&mut self, key: &str, value: V, description: &'static str) {
        let (key, value) = (key.to_owned(), Some(value.to_string()));
        self.0.push(ConfigEntry { key, value, description });
    }

    fn none(&mut self, key: &str, description: &'static str) {
        self.0.push(ConfigEntry { key: key.to_owned(), value: None, description });
    }
}

impl WorkaheadOptions {
    /// The session's; the defaults if it has none.
    #[must_use]
    pub fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The part of them that each join of a plan keeps.
    pub(crate) fn join_options(&self) -> Result<JoinOptions> {
        let layout = self.layout.parse().map_err(configuration_error)?;
        let build_side = self.build_side.parse().map_err(configuration_error)?;
        Ok(JoinOptions { layout, build_side })
    }
}

fn configuration_error(error: impl fmt::Display) -> DataFusionError {
    DataFusionError::Configuration(error.to_string())
}

/// How the build side is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum BuildSideSelection {
    /// The left one, where the planner puts what it thinks is smaller.
    #[default]
    Planned,
    /// The one that turns out to have fewer rows.
    Runtime,
}

/// An unknown value of `workahead.build_side`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown build side {name:?}: choose from planned, runtime")]
pub(crate) struct UnknownBuildSide {
    name: String,
}

impl BuildSideSelection {
    /// Its name among the options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Runtime => "runtime",
        }
    }
}

impl FromStr for BuildSideSelection {
    type Err = UnknownBuildSide;
    fn from_str(name: &str) -> Result<Self, UnknownBuildSide> {
        let found = [Self::Planned, Self::Runtime].into_iter().find(|from| from.name() == name);
        found.ok_or_else(|| UnknownBuildSide { name: name.to_owned() })
    }
}

/// Options of a join, as the session had them when the plan was made. They travel with the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JoinOptions {
    /// The layout of the table.
    pub(crate) layout: TableLayout,
    /// How the build side is selected.
    pub(crate) build_side: BuildSideSelection,
}

impl JoinOptions {
    /// Those that differ from the defaults, as `EXPLAIN` shows them.
    pub(crate) fn non_default(self) -> Vec<String> {
        let all = [
            (self.layout != TableLayout::Auto, "layout", self.layout.name()),
            (self.build_side != BuildSideSelection::Planned, "build_side", self.build_side.name()),
        ];
        let changed = all.into_iter().filter(|(changed, ..)| *changed);
        changed.map(|(_, option, name)| format!("{option}={name}")).collect()
    }

    /// All of them, separated by spaces.
    #[cfg(any(test, feature = "proto"))]
    pub(crate) fn to_text(self) -> String {
        [self.layout.name(), self.build_side.name()].join(" ")
    }

    /// Reads [`to_text`](Self::to_text).
    #[cfg(any(test, feature = "proto"))]
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let names: Vec<&str> = text.split(' ').collect();
        let [layout, build_side] = names[..] else {
            return Err(configuration_error(format!("{text:?} are not the options of a join")));
        };
        let options = WorkaheadOptions {
            layout: layout.to_owned(),
            build_side: build_side.to_owned(),
            ..Default::default()
        };
        options.join_options()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_listed_by_the_names_that_set_them() {
        let mut options = ConfigOptions::new();
        options.extensions.insert(WorkaheadOptions::default());
        options.set("workahead.layout", "bloom").unwrap();
        let mut others = ConfigOptions::new();
        others.extensions.insert(WorkaheadOptions::default());
        for entry in options.entries().iter().filter(|entry| entry.key.starts_with("workahead.")) {
            others.set(&entry.key, entry.value.as_deref().unwrap()).unwrap();
        }
        assert_eq!(WorkaheadOptions::of(&others).layout, "bloom");
    }

    #[test]
    fn unknown_names_are_refused_with_the_list() {
        let of = |layout: &str, build_side: &str| {
            let [layout, build_side] = [layout, build_side].map(str::to_owned);
            let options = WorkaheadOptions { layout, build_side, ..Default::default() };
            options.join_options().unwrap_err().to_string()
        };
        for (error, named, listed) in [
            (of("tree", "planned"), "\"tree\"", "dense, bloom"),
            (of("auto", "smaller"), "\"smaller\"", "planned, runtime"),
        ] {
            assert!(error.contains(named) && error.contains(listed), "{error}");
        }
    }

    #[test]
    fn join_options_are_read_back() {
        for build_side in [BuildSideSelection::Planned, BuildSideSelection::Runtime] {
            let options = JoinOptions { layout: TableLayout::Bloom, build_side };
            assert_eq!(JoinOptions::from_text(&options.to_text()).unwrap(), options);
        }
        assert!(JoinOptions::from_text("auto auto planned").is_err());
        assert!(JoinOptions::default().non_default().is_empty());
    }
}
