//! What can be set: by the session in SQL (`SET workahead.strategy = 'distance'`), and by the
//! program that knows the machine.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use workahead_columns::{Caches, Strategy};

extensions_options! {
    /// Options under `workahead.` in SQL.
    pub struct WorkaheadOptions {
        /// Whether hash joins are replaced at all.
        pub enabled: bool, default = true
        /// Whether sort-merge joins become hash joins: for sessions that planned them only to
        /// keep memory low.
        pub replace_sort_merge_joins: bool, default = false
        /// How rows are looked up: auto, sequential, distance, amac, groups or rounds.
        pub strategy: String, default = "auto".to_owned()
    }
}

impl ConfigExtension for WorkaheadOptions {
    const PREFIX: &'static str = "workahead";
}

impl WorkaheadOptions {
    /// The session's, or the defaults when it was not told of any.
    pub(crate) fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The strategy.
    pub(crate) fn strategy(&self) -> Result<Strategy> {
        let parsed = self.strategy.parse::<Strategy>();
        parsed.map_err(|error| DataFusionError::Configuration(error.to_string()))
    }
}

/// What the program knows of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The caches by which a strategy is chosen.
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
    fn an_unknown_strategy_is_refused_with_the_list() {
        let options = WorkaheadOptions { strategy: "fast".to_owned(), ..Default::default() };
        let error = options.strategy().unwrap_err().to_string();
        assert!(error.contains("\"fast\"") && error.contains("distance"), "{error}");
    }
}
