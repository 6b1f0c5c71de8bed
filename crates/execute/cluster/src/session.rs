//! What client, scheduler and executors agree on: the settings that travel with a query, and how
//! plans are written down.

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
    /// Partitions of a plan; 0 for as many as the cluster has slots.
    pub partitions: usize,
    /// Whether semi joins with groups that passed a filter go below inner joins.
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
            "cluster.{key} = {value}: there are cluster.partitions, a number, and \
             cluster.push_semi_joins, true or false"
        ))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description| ConfigEntry {
            // With its prefix, by which it is set on the other side.
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry(
                "partitions",
                self.partitions.to_string(),
                "Partitions of a plan; 0 for as many as the cluster has slots",
            ),
            entry(
                "push_semi_joins",
                self.push_semi_joins.to_string(),
                "Whether semi joins with groups that passed a filter go below inner joins",
            ),
        ]
    }
}

/// The settings that a query begins with. A setting that the other side does not know is dropped
/// on its way, without a word: all three begin with the same.
pub(crate) fn config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_option_extension(WorkaheadOptions::default())
        .with_option_extension(ClusterOptions::default())
        // Ballista prefers sort-merge joins because DataFusion's hash join can't spill. Ours can,
        // so it is no reason either to leave a large build side to a sort.
        .set_bool("datafusion.optimizer.prefer_hash_join", true)
        .with_ballista_hash_join_max_build_partition_bytes(0)
        // Files of shuffles are read from memory, mostly, and at 25 Gbit/s: sooner than unpacked.
        .set_str("ballista.shuffle.compression.codec", "none")
        // A process that was killed refuses connections at once; what it had must be made anew.
        .set_u64("ballista.client.io_retry_wait_time_ms", 300)
}

/// Plans on the wire: ours within Ballista's.
pub(crate) fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(WorkaheadCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_sets_reaches_the_other_side() {
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
        let told = extensions.get::<ClusterOptions>().unwrap();
        assert_eq!(told, &ClusterOptions { partitions: 7, push_semi_joins: false });
        assert!(!extensions.get::<WorkaheadOptions>().unwrap().enabled);
        assert_eq!(server.ballista_broadcast_join_threshold_bytes(), 5);
        assert_eq!(server.ballista_hash_join_max_build_partition_bytes(), 0);
    }
}
