//! The data, and sessions over it that differ in their joins.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use workahead_workloads::tpch::{Part, Table, Tpch, Watch, write_parquet};

use crate::arguments::Arguments;
use crate::statistics_table::StatisticsTable;

const BATCH_ROWS: usize = 8192;

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
    Measured,
}

impl Arm {
    /// All that are compared with [`Arm::Stock`].
    pub(crate) const OURS: [Self; 3] = [Self::Ours, Self::Joins, Self::Measured];

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::OURS.into_iter().find(|arm| arm.name() == name);
        found.ok_or_else(|| format!("unknown arm {name}: choose from ours, joins, measured"))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Ours => "ours",
            Self::Joins => "joins",
            Self::Measured => "measured",
        }
    }

    /// The setting of its session.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Stock | Self::Ours => None,
            Self::Joins => Some("set workahead.sideways_filters = false"),
            Self::Measured => Some("set workahead.build_side = 'measured'"),
        }
    }
}

/// All tables, in the requested storage.
pub(crate) struct Tables {
    memory: Vec<(&'static str, Vec<RecordBatch>)>,
    parquet: Option<tempfile::TempDir>,
}

struct NoProgress;

impl Watch for NoProgress {
    fn rows_done(&self, _: u64) {}
    fn stop(&self) -> bool {
        false
    }
}

impl Tables {
    /// Generates them.
    pub(crate) fn generate(arguments: &Arguments) -> Self {
        let data = Tpch::new(arguments.scale).expect("a scale that can be made");
        let wanted = |storage| arguments.storages.contains(&storage);
        let batches = |table: Table| data.batches(table, Part::WHOLE, BATCH_ROWS).collect();
        let memory = Table::ALL.iter().filter(|_| wanted(Storage::Memory));
        let memory = memory.map(|table| (table.name(), batches(*table))).collect();
        let parquet = wanted(Storage::Parquet).then(|| {
            let home = tempfile::tempdir().expect("a temporary directory");
            let threads = std::thread::available_parallelism().expect("this machine has threads");
            for table in Table::ALL {
                let path = home.path().join(format!("{table}.parquet"));
                write_parquet(data, table, &path, threads, &NoProgress).expect("room on the disk");
            }
            home
        });
        Self { memory, parquet }
    }

    /// A session over them.
    pub(crate) async fn session(
        &self,
        arm: Arm,
        storage: Storage,
        threads: usize,
    ) -> SessionContext {
        let builder = SessionStateBuilder::new()
            .with_config(SessionConfig::new().with_target_partitions(threads))
            .with_default_features();
        let builder = match arm {
            Arm::Stock => builder,
            Arm::Ours | Arm::Joins | Arm::Measured => workahead_sql::install(builder),
        };
        let context = SessionContext::new_with_state(builder.build());
        if let Some(setting) = arm.setting() {
            context.sql(setting).await.expect("an option of ours");
        }
        match (storage, &self.parquet) {
            (Storage::Memory, _) => {
                for (name, batches) in &self.memory {
                    let table = StatisticsTable::new(batches).expect("types that can be ordered");
                    context.register_table(*name, Arc::new(table)).expect("a new name");
                }
            }
            (Storage::Parquet, Some(home)) => {
                for table in Table::ALL {
                    let path = home.path().join(format!("{table}.parquet"));
                    let path = path.to_str().expect("a temporary directory has a plain name");
                    let options = ParquetReadOptions::default();
                    let done = context.register_parquet(table.name(), path, options).await;
                    done.expect("files that were just written");
                }
            }
            (Storage::Parquet, None) => unreachable!("the files are written before"),
        }
        context
    }
}
