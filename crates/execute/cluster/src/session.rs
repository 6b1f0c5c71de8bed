//! The common ground of client, scheduler and executors: the settings sent with a query, and the
//! codec of plans.

use std::any::Any;
use std::sync::Arc;

use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::exec_datafusion_err;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use workahead_datafusion::{WorkaheadCodec, WorkaheadOptions};

/// Options under `cluster.` in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Partitions of a plan; 0 for the number of the cluster's slots.
    pub partitions: usize,
    /// Whether semi joins with filtered groups are pushed below inner joins.
    pub push_semi_joins: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { partitions: 0, push_semi_joins: true }
    }
}

impl ConfigExtension for ClusterOptions {
    const PREFIX: &'static str = "cluster";
}

impl ExtensionOptions for ClusterOptions {
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
        let known = match key {
            "partitions" => value.parse().map(|partitions| self.partitions = partitions).is_ok(),
            "push_semi_joins" => value.parse().map(|push| self.push_semi_joins = push).is_ok(),
            _ => false,
        };
        if known {
            return Ok(());
        }
        Err(exec_datafusion_err!(
            "cluster.{key} = {value}: the options are cluster.partitions, a number, and \
             cluster.push_semi_joins, true or false"
        ))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description| ConfigEntry {
            // With the prefix, which is needed to set it on the other side.
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry(
                "partitions",
                self.partitions.to_string(),
                "Partitions of a plan; 0 for the number of the cluster's slots",
            ),
            entry(
                "push_semi_joins",
                self.push_semi_joins.to_string(),
                "Whether semi joins with filtered groups are pushed below inner joins",
            ),
        ]
    }
}

/// The default settings of a query. All three processes have them: settings that the other side
/// does not know are dropped silently.
pub(crate) fn config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_option_extension(WorkaheadOptions::default())
        .with_option_extension(ClusterOptions::default())
        // Ballista prefers sort-merge joins, above all for large build sides, because DataFusion's
        // hash join can't spill. Ours can.
        .set_bool("datafusion.optimizer.prefer_hash_join", true)
        .with_ballista_hash_join_max_build_partition_bytes(0)
        // Shuffle files come from memory or a fast network: reading is faster than unpacking.
        .set_str("ballista.shuffle.compression.codec", "none")
        // A killed process refuses connections at once, and its files must be recomputed.
        .set_u64("ballista.client.io_retry_wait_time_ms", 300)
}

/// The codec of plans: ours around Ballista's.
pub(crate) fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(WorkaheadCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_settings_reach_the_other_side() {
        let mut client = config();
        for (name, value) in [
            ("cluster.partitions", "7"),
            ("cluster.push_semi_joins", "false"),
            ("workahead.enabled", "false"),
            ("ballista.optimizer.broadcast_join_threshold_bytes", "5"),
        ] {
            client.options_mut().set(name, value).unwrap();
        }
        let mut server = config();
        for entry in client.options().entries() {
            // Some can't be set again; those above can.
            let _ = server.options_mut().set(&entry.key, &entry.value.unwrap_or_default());
        }
        let extensions = &server.options().extensions;
        let cluster = extensions.get::<ClusterOptions>().unwrap();
        assert_eq!(cluster, &ClusterOptions { partitions: 7, push_semi_joins: false });
        assert!(!extensions.get::<WorkaheadOptions>().unwrap().enabled);
        assert_eq!(server.ballista_broadcast_join_threshold_bytes(), 5);
        assert_eq!(server.ballista_hash_join_max_build_partition_bytes(), 0);
    }
}
