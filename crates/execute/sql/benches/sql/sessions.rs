//! The data, and sessions over it that differ in their joins.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::arguments::Arguments;
use crate::statistics_table::StatisticsTable;
use crate::suite::{self, Suite};

/// The storage of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Memory,
    Parquet,
}

impl Storage {
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match name {
            "memory" => Ok(Self::Memory),
            "parquet" => Ok(Self::Parquet),
            _ => Err(format!("tables are in memory or in parquet, not in {name}")),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Parquet => "parquet",
        }
    }
}

/// The join implementation of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Stock,
    Ours,
    /// Ours without sideways filters: each join for itself.
    Joins,
    /// Ours with the build side chosen at run time.
    Runtime,
    /// Ours with filters evaluated while Parquet is decoded, all of them.
    Pushed,
    /// Ours with each equal subplan run anew.
    Copies,
}

impl Arm {
    /// Those that are compared with [`Arm::Stock`] if nothing else is said.
    pub(crate) const OURS: [Self; 3] = [Self::Ours, Self::Joins, Self::Runtime];

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let all = [Self::Ours, Self::Joins, Self::Runtime, Self::Pushed, Self::Copies];
        all.into_iter().find(|arm| arm.name() == name).ok_or_else(|| {
            let names = all.map(Self::name).join(", ");
            format!("unknown arm {name}: choose from {names}")
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Ours => "ours",
            Self::Joins => "joins",
            Self::Runtime => "runtime",
            Self::Pushed => "pushed",
            Self::Copies => "copies",
        }
    }

    /// The setting of its session.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Stock | Self::Ours => None,
            Self::Joins => Some("set workahead.sideways_filters = false"),
            Self::Runtime => Some("set workahead.build_side = 'runtime'"),
            Self::Pushed => Some("set datafusion.execution.parquet.pushdown_filters = true"),
            Self::Copies => Some("set workahead.reuse_subplans = false"),
        }
    }
}

/// All tables, in the requested storage.
pub(crate) struct Tables {
    pub(crate) suite: Suite,
    memory: Vec<(&'static str, Vec<RecordBatch>)>,
    memory_bytes: Option<usize>,
}

impl Tables {
    /// Generates them.
    pub(crate) fn generate(arguments: &Arguments) -> Self {
        let in_memory = arguments.storages.contains(&Storage::Memory);
        let memory =
            if in_memory { suite::in_memory(arguments.suite, arguments.scale) } else { Vec::new() };
        let suite = Suite::generate(arguments.suite, arguments.scale);
        Self { suite, memory, memory_bytes: arguments.memory_mb.map(|mb| mb << 20) }
    }

    /// A session over them.
    pub(crate) async fn session(
        &self,
        arm: Arm,
        storage: Storage,
        threads: usize,
    ) -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(threads);
        if matches!(self.suite, Suite::Tpcds(_)) {
            // As DuckDB has it, whose answers they are.
            config = config.set_str("datafusion.sql_parser.default_null_ordering", "nulls_last");
        }
        let mut environment = RuntimeEnvBuilder::new();
        if let Some(bytes) = self.memory_bytes {
            environment = environment.with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)));
        }
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(environment.build_arc().expect("a runtime"))
            .with_default_features();
        let builder = match arm {
            Arm::Stock => builder,
            _ => workahead_sql::install(builder),
        };
        let context = SessionContext::new_with_state(builder.build());
        if let Some(setting) = arm.setting() {
            context.sql(setting).await.expect("an option of ours");
        }
        match storage {
            Storage::Memory => {
                for (name, batches) in &self.memory {
                    let table = StatisticsTable::new(batches).expect("types that can be ordered");
                    context.register_table(*name, Arc::new(table)).expect("a new name");
                }
            }
            Storage::Parquet => {
                for (name, path) in self.suite.tables() {
                    let path = path.to_str().expect("a plain name");
                    let options = ParquetReadOptions::default();
                    let done = context.register_parquet(name, path, options).await;
                    done.expect("files that were just written");
                }
            }
        }
        context
    }
}
