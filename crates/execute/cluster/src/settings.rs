//! A session's settings on their way to the workers.
//!
//! The engine sends its own settings. Ours and DataFusion's go in one header: those that differ
//! from the defaults, which are the same everywhere.

use std::collections::BTreeMap;
use std::time::Duration;

use ::url::form_urlencoded;
use datafusion::common::config_namespace;
use datafusion::config::{
    ConfigEntry, ConfigExtension, ConfigField, ConfigOptions, ExtensionOptions, Visit,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionConfig;
use http::{HeaderMap, HeaderName, HeaderValue};
use workahead_datafusion::WorkaheadOptions;

/// Operators reserve a batch at a time, before they have read a row.
const BATCH_ROWS_MAX: usize = 1 << 20;
const LIST_BYTES_MAX: usize = 16 << 20;
/// A day.
const FILTER_WAIT_SECONDS_MAX: u64 = 24 * 60 * 60;
const HEADER: HeaderName = HeaderName::from_static("x-workahead-settings");

config_namespace! {
    /// Options under `cluster.` in SQL.
    pub struct ClusterOptions {
        /// Where queries run: here, on the workers, or where it is estimated to be faster (auto).
        pub run: String, default = "auto".to_owned()
        /// The longest time, in seconds, for which rows wait for the keys of a join in another
        /// stage, which drop them before they are sent. 0: none are dropped there.
        pub filter_wait_seconds: u64, default = 60
    }
}

impl ConfigExtension for ClusterOptions {
    const PREFIX: &'static str = "cluster";
}

impl ExtensionOptions for ClusterOptions {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if key == "run" && value.parse::<Run>().is_err() {
            let why = format!("cluster.run is auto, here or workers, not {value}");
            return Err(DataFusionError::Configuration(why));
        }
        ConfigField::set(self, key, value)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut listed = Entries::default();
        self.visit(&mut listed, Self::PREFIX, "");
        listed.0
    }
}

#[derive(Default)]
struct Entries(Vec<ConfigEntry>);

impl Visit for Entries {
    fn some<V: std::fmt::Display>(&mut self, key: &str, value: V, description: &'static str) {
        let (key, value) = (key.to_owned(), Some(value.to_string()));
        self.0.push(ConfigEntry { key, value, description });
    }

    fn none(&mut self, key: &str, description: &'static str) {
        self.0.push(ConfigEntry { key: key.to_owned(), value: None, description });
    }
}

/// Where queries run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Auto,
    Here,
    Workers,
}

impl std::str::FromStr for Run {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "here" => Ok(Self::Here),
            "workers" => Ok(Self::Workers),
            _ => Err(()),
        }
    }
}

impl Run {
    /// A session's.
    pub(crate) fn of(config: &SessionConfig) -> Self {
        let options = config.options().extensions.get::<ClusterOptions>();
        options.and_then(|options| options.run.parse().ok()).unwrap_or(Self::Auto)
    }
}

/// The time for which rows wait for keys of another stage; none if there are no such filters.
pub(crate) fn filter_wait(config: &SessionConfig) -> Option<Duration> {
    let extensions = &config.options().extensions;
    let seconds = extensions.get::<ClusterOptions>()?.filter_wait_seconds;
    let joins = extensions.get::<WorkaheadOptions>()?;
    let wanted = seconds > 0 && joins.enabled && joins.sideways_filters;
    wanted.then(|| Duration::from_secs(seconds.min(FILTER_WAIT_SECONDS_MAX)))
}

/// A configuration with all that can be set.
pub(crate) fn base() -> SessionConfig {
    SessionConfig::new()
        .with_information_schema(true)
        .with_option_extension(WorkaheadOptions::default())
}

fn entries(config: &SessionConfig) -> BTreeMap<String, String> {
    let travels = |key: &str| key.starts_with("datafusion.") || key.starts_with("workahead.");
    let all = config.options().entries().into_iter();
    all.filter_map(|entry| travels(&entry.key).then_some((entry.key, entry.value?))).collect()
}

/// The header for a session's settings.
pub(crate) fn headers(config: &SessionConfig) -> HeaderMap {
    let defaults = entries(&base());
    let changed =
        entries(config).into_iter().filter(|(key, value)| defaults.get(key) != Some(value));
    let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(changed).finish();
    let mut headers = HeaderMap::new();
    headers.insert(HEADER, HeaderValue::from_str(&text).expect("it is encoded in ASCII"));
    headers
}

/// Applies a header's settings. What this version does not know is an error: the client's wish
/// would be dropped.
pub(crate) fn apply(headers: &HeaderMap, mut config: SessionConfig) -> Result<SessionConfig> {
    let text = headers.get(HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
    for (key, value) in form_urlencoded::parse(text) {
        config.options_mut().set(&key, &value)?;
    }
    check(&config)?;
    Ok(config)
}

/// Refuses settings by which one query would take a worker's memory at once.
fn check(config: &SessionConfig) -> Result<()> {
    let ConfigOptions { execution, optimizer, .. } = config.options().as_ref();
    let limits = [
        ("execution.batch_size", execution.batch_size.get(), BATCH_ROWS_MAX),
        (
            "optimizer.hash_join_inlist_pushdown_max_size",
            optimizer.hash_join_inlist_pushdown_max_size,
            LIST_BYTES_MAX,
        ),
    ];
    match limits.into_iter().find(|(_, value, most)| value > most) {
        None => Ok(()),
        Some((name, value, most)) => {
            let why = format!("a worker takes datafusion.{name} up to {most}, not {value}");
            Err(DataFusionError::Configuration(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings_reach_the_other_side_and_unknown_ones_are_refused() {
        let mut client = base().with_target_partitions(3);
        let settings = [
            ("workahead.layout", "buckets"),
            ("datafusion.execution.batch_size", "77"),
            ("datafusion.format.null", "a=b&ü"),
        ];
        for (name, value) in settings {
            client.options_mut().set(name, value).unwrap();
        }
        let worker = apply(&headers(&client), base()).unwrap();
        assert_eq!(entries(&worker), entries(&client));
        let mut wrong = HeaderMap::new();
        wrong.insert(HEADER, HeaderValue::from_static("workahead.nothing=1"));
        assert!(apply(&wrong, base()).is_err());
        assert_eq!(headers(&base())[HEADER], "");
    }

    #[test]
    fn a_batch_has_an_end() {
        let mut client = base();
        client.options_mut().set("datafusion.execution.batch_size", "1000000000000").unwrap();
        let refused = apply(&headers(&client), base()).unwrap_err().to_string();
        assert!(refused.contains("batch_size up to 1048576"), "{refused}");
    }

    #[test]
    fn cluster_run_takes_its_three_words() {
        let mut options = ClusterOptions::default();
        assert_eq!(ExtensionOptions::entries(&options)[0].value.as_deref(), Some("auto"));
        ExtensionOptions::set(&mut options, "run", "here").unwrap();
        assert!(
            ExtensionOptions::set(&mut options, "run", "there")
                .unwrap_err()
                .to_string()
                .contains("auto, here or")
        );
        assert!(ExtensionOptions::set(&mut options, "walk", "1").is_err());
    }
}
