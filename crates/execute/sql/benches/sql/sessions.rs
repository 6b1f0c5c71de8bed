//! The data, and sessions over it that differ in who joins.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use workahead_workloads::tpch::{Part, Table, Tpch, Watch, write_parquet};

use crate::arguments::Asked;
use crate::described::Described;

const BATCH_ROWS: usize = 8192;

/// Where the tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Parquet,
}

impl Place {
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

/// Who joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Stock,
    Ours,
    /// Ours, without the filters that spare other operators: each join for itself.
    Joins,
    /// Ours, and the side that is built is the one found to have fewer rows.
    Measured,
}

impl Arm {
    /// All that are held against [`Arm::Stock`].
    pub(crate) const OURS: [Self; 3] = [Self::Ours, Self::Joins, Self::Measured];

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::OURS.into_iter().find(|arm| arm.name() == name);
        found.ok_or_else(|| format!("there is no arm {name}: choose from ours, joins, measured"))
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

/// All tables, where they are wanted.
pub(crate) struct Tables {
    memory: Vec<(&'static str, Vec<RecordBatch>)>,
    parquet: Option<tempfile::TempDir>,
}

struct Unwatched;

impl Watch for Unwatched {
    fn rows_done(&self, _: u64) {}
    fn stop(&self) -> bool {
        false
    }
}

impl Tables {
    /// Makes them.
    pub(crate) fn generate(asked: &Asked) -> Self {
        let data = Tpch::new(asked.scale).expect("a scale that can be made");
        let wanted = |place| asked.places.contains(&place);
        let batches = |table: Table| data.batches(table, Part::WHOLE, BATCH_ROWS).collect();
        let memory = Table::ALL.iter().filter(|_| wanted(Place::Memory));
        let memory = memory.map(|table| (table.name(), batches(*table))).collect();
        let parquet = wanted(Place::Parquet).then(|| {
            let home = tempfile::tempdir().expect("a temporary directory");
            let threads = std::thread::available_parallelism().expect("this machine has threads");
            for table in Table::ALL {
                let path = home.path().join(format!("{table}.parquet"));
                write_parquet(data, table, &path, threads, &Unwatched).expect("room on the disk");
            }
            home
        });
        Self { memory, parquet }
    }

    /// A session over them.
    pub(crate) async fn session(&self, arm: Arm, place: Place, threads: usize) -> SessionContext {
        let builder = SessionStateBuilder::new()
            .with_config(SessionConfig::new().with_target_partitions(threads))
            .with_default_features();
        let builder = match arm {
            Arm::Stock => builder,
            Arm::Ours | Arm::Joins | Arm::Measured => workahead_sql::install(builder),
        };
        let context = SessionContext::new_with_state(builder.build());
        if let Some(told) = arm.setting() {
            context.sql(told).await.expect("an option of ours");
        }
        match (place, &self.parquet) {
            (Place::Memory, _) => {
                for (name, batches) in &self.memory {
                    let table = Described::new(batches).expect("types that can be ordered");
                    context.register_table(*name, Arc::new(table)).expect("a new name");
                }
            }
            (Place::Parquet, Some(home)) => {
                for table in Table::ALL {
                    let path = home.path().join(format!("{table}.parquet"));
                    let path = path.to_str().expect("a temporary directory has a plain name");
                    let options = ParquetReadOptions::default();
                    let done = context.register_parquet(table.name(), path, options).await;
                    done.expect("files that were just written");
                }
            }
            (Place::Parquet, None) => unreachable!("the files are written before"),
        }
        context
    }
}
