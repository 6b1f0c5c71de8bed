//! Databases that are served: a private server, a workload's data in it, clients beside it.
//!
//! ```text
//! Cell ─► Configuration ─► ServerConfiguration (settings, CPUs) ─► server, restarted on changes
//!              ├─► Work ─► data, loaded once and copied ─► restored before every repetition
//!              └─► Load (clients, number, rate) ─► LoadResult ────┐
//!                          CPU time of the server's processes ────┴─► Sample
//! ```
//!
//! Times are those of the clients; CPU seconds are those of the server's processes only, the
//! clients' own beside them as `client_cpu_s`.
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `workload` | `dbmbench`, `order-entry`, `sysbench-oltp`, `tpch`, `sql` |
//! | `clients` | connections at work at the same time; or `ramp`: as many as saturate it |
//! | `queries`, or `seconds` | how much is run, all clients together; a time where above 0 |
//! | `warmup_s` | how long clients run before counting starts (0) |
//! | `queries_each` | the same for each client, where above 0 |
//! | `rate` | transactions to start in a second, all clients together |
//! | `parallel` | processes that may work on one query |
//! | `smt` | `on`, `off-hotplug`, `unused-by-affinity` |
//! | `scheduler` | `other`, `batch`, `idle`: the system's policy for the server |
//! | `pages` | `usual`, `small`, `huge`: of the server's buffers |
//! | `cpus`, `placement` | how many CPUs the server has, in which order they are taken |
//! | `loops`, `loop_bytes` | loops beside, on the server's CPUs: how many or `per-cpu`; 1 MiB each |
//! | `explain` | `planned`; or `run`: once more, for the times of a plan's operators |
//! | `kill_at` | the share of `seconds` after which the server is killed; it recovers and continues
//! |
//! | `collector` | `all` that the study collects; `counters`, `profile`, `nothing`: for the cost |
//! | `caches` | of a model, where the method is `instrumented`: a preset's name, or three shapes |
//! | `server.NAME` | the server's own setting of that name |
//!
//! A cold start, of the method's protocol, is a server started anew and its files out of the
//! system's memory.
//!
//! Of `dbmbench`: `query` (`utpcc`, `uss`, `unj`), `rows`, `inner_rows`, `values`, `selectivity`,
//! `plan` (`paper`, `native`), `bounds` (`fixed`, `random`), `answers` (`stored`, `returned`).
//!
//! Of `order-entry`: `warehouses`, `mix` (`weights`, `deck`), `pauses` (`none`, `as-people`),
//! `isolation` (`repeatable-read`, `read-committed`, `serializable`), `items`, `customers`,
//! `scale_to_bound` (the most warehouses, beginning with `warehouses`).
//!
//! Of `sysbench-oltp`: `form` (`1.0`, `0.4`), `script` (`read-write`, `read-only`, `point-select`),
//! `tables`, `rows`, `distribution` (`special`, `uniform`, `gaussian`).
//!
//! Of `tpch`: `scale`, `query` (`all`, `6`, `1,6,14-16`), `layout` (`by-key`, `by-ship-date`),
//! `texts` (`specified`, `date-correlated`), `order` (`as-written`, `shuffled`).
//!
//! Of `sql`: `file` or `sql`, `data` (another workload, with its settings), `set_up`, `order`.

mod attached;
mod background;
mod configuration;
mod crash;
mod database;
#[cfg(feature = "sql")]
mod datafusion;
mod digest;
mod duckdb;
pub(crate) mod files;
mod instrumented;
mod load_times;
mod mariadb;
mod postgres;
mod private;
mod sample;
mod settings;
mod statistics;
mod trial;
mod work;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use workahead_counters::event::Privilege;
use workahead_machine::control::placement::Placement;
use workahead_machine::control::smt::{self, SmtAxis};
use workahead_machine::control::{Controls, Unsupported};
use workahead_machine::scheduling::Policy;
use workahead_machine::{CpuSet, EvidenceTier, Machine, Sysroot};
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, Need, Reason, Sample, Stop};
use workahead_study::plans::PlanText;
use workahead_study::protocol::{Before, Protocol, Start};
use workahead_study::worker_process::Command;
use workahead_workloads::client::Workload;

use background::Background;
use configuration::Configuration;
use crash::Restart;
use database::{Database, ProcessScope, ServerConfiguration};
use private::Private;
use sample::{CellCollector, RunContext};
use work::Work;

use crate::attach::Target;
use crate::cancellation::until_stopped;
use crate::collector::{Collector, Part};
use crate::server::Explain;
use crate::valgrind::{ValgrindRunner, no_model};

/// Memory of a server beside its data: processes, caches of its own.
const SERVER_BYTES: u64 = 512 << 20;

/// The engine, for one product.
pub struct DatabaseEngine {
    database: Box<dyn Database>,
    machine: Machine,
    home: PathBuf,
    controls: Option<Controls>,
    /// The workload in the database, and its data.
    open: Option<(Work, Arc<dyn Workload>)>,
    data: Option<String>,
    /// Numbers found by trials, by cell.
    found: BTreeMap<String, u32>,
    /// Plans that were run for their operators' times, by cell: once is enough.
    explained: BTreeMap<String, PlanText>,
    /// Collects counters and profiles, where a study asks for them.
    collector: Option<Collector>,
    /// Runs cells under valgrind, where a study is instrumented.
    valgrind: Option<ValgrindRunner>,
    /// The command of a worker process.
    command: Option<Command>,
}

impl DatabaseEngine {
    /// PostgreSQL, as it is installed.
    ///
    /// # Errors
    /// When its cells are to be instrumented and can't be.
    pub fn postgres(context: &EngineContext) -> Result<Self, EngineError> {
        Self::open(Box::new(Private::<crate::postgres::Server>::default()), context)
    }

    /// MariaDB, as it is installed.
    ///
    /// # Errors
    /// When its cells are to be instrumented and can't be.
    pub fn mariadb(context: &EngineContext) -> Result<Self, EngineError> {
        Self::open(Box::new(Private::<crate::mariadb::Server>::default()), context)
    }

    /// DuckDB, in this process.
    ///
    /// # Errors
    /// When its cells are to be instrumented and can't be.
    pub fn duckdb(context: &EngineContext) -> Result<Self, EngineError> {
        Self::open(Box::new(duckdb::DuckDb::default()), context)
    }

    /// A database of a server that already runs.
    ///
    /// # Errors
    /// When nothing answers, or the server rejects the user.
    pub fn attached(target: Target, context: &EngineContext) -> Result<Self, EngineError> {
        Self::open(Box::new(attached::AttachedDatabase::new(target)?), context)
    }

    /// DataFusion, in this process.
    ///
    /// # Errors
    /// When its cells are to be instrumented and can't be.
    #[cfg(feature = "sql")]
    pub fn datafusion(context: &EngineContext) -> Result<Self, EngineError> {
        Self::open(Box::new(datafusion::DataFusion::default()), context)
    }

    fn open(database: Box<dyn Database>, context: &EngineContext) -> Result<Self, EngineError> {
        if context.instrumentation.is_some() {
            instrumented::can(database.as_ref(), context)?;
        }
        Ok(Self {
            home: context.data_dir.join(database.folder()),
            database,
            machine: Machine::here(),
            controls: None,
            open: None,
            data: None,
            found: BTreeMap::new(),
            explained: BTreeMap::new(),
            collector: Collector::of(context, &[Privilege::User, Privilege::Kernel]),
            valgrind: context.instrumentation.as_ref().map(ValgrindRunner::new).transpose()?,
            command: context.worker.clone(),
        })
    }

    /// The CPUs of the server; none where it may use all.
    fn cpus(&self, config: &Configuration) -> Result<Option<CpuSet>, Unsupported> {
        let all = match config.smt {
            SmtAxis::UnusedByAffinity => Some(smt::one_per_core(&self.machine)?),
            SmtAxis::On | SmtAxis::OffHotplug => None,
        };
        match (config.cpus, config.placement) {
            (None, Placement::CoresFirst) => Ok(all),
            (count, placement) => {
                let order = placement.order(&self.machine)?;
                let usable = |cpu: &usize| all.as_ref().is_none_or(|all| all.contains(*cpu));
                let order: Vec<usize> = order.into_iter().filter(usable).collect();
                let count = count.unwrap_or(order.len());
                if count > order.len() {
                    let says = format!("{count} CPUs requested, only {} available", order.len());
                    return Err(Unsupported(says));
                }
                Ok(Some(order.into_iter().take(count).collect()))
            }
        }
    }

    /// The CPUs that the server does not use; `None` if it uses all.
    fn client_cpus(&self, config: &Configuration) -> Option<CpuSet> {
        let servers = self.cpus(config).ok().flatten()?;
        let all = self.machine.allowed_cpus();
        let left: CpuSet = all.iter().filter(|cpu| !servers.contains(*cpu)).collect();
        (!left.is_empty()).then_some(left)
    }

    fn running(&self, config: &Configuration) -> Result<ServerConfiguration, EngineError> {
        let cpus = self.cpus(config).map_err(|Unsupported(why)| EngineError::failed(why))?;
        let parallel = self.database.parallel(config.parallel).map_err(EngineError::failed)?;
        let pages = self.database.pages(config.pages).map_err(EngineError::failed)?;
        let mut settings: BTreeMap<_, _> = parallel.into_iter().chain(pages).collect();
        settings.extend(config.server.clone());
        Ok(ServerConfiguration { settings, cpus, policy: config.policy })
    }

    /// Why this machine or product can't run a cell.
    fn impossible(&self, config: &Configuration, protocol: Protocol) -> Option<Reason> {
        let root = Sysroot::live();
        let smt = match config.smt {
            SmtAxis::OffHotplug => smt::can_switch(&root).err(),
            _ => None,
        };
        if let Some(Unsupported(why)) = smt {
            return Some(why.into());
        }
        let running = match self.running(config) {
            Ok(running) => running,
            Err(error) => return Some(Reason::new(error)),
        };
        if self.database.scope() == ProcessScope::Within && config.policy != Policy::Other {
            return Some("a database in this process is scheduled as all of it is".into());
        }
        let unkillable = config.kill_at.and(self.database.unkillable()).map(Reason::from);
        unkillable.or_else(|| self.database.impossible(&running, protocol))
    }

    /// The limitation of a cell that runs on this machine all the same.
    fn limitation(&self, config: &Configuration) -> Option<Reason> {
        let unseen = self.database.limitation();
        if unseen.is_some() {
            return unseen;
        }
        let cpus = self.machine.allowed_cpus();
        let servers = self.cpus(config).ok()?.map_or(cpus.len(), |cpus| cpus.len());
        (servers >= cpus.len()).then(|| {
            "the clients take their time from the CPUs that the server is measured on".into()
        })
    }

    /// Switches siblings on or off as the cell requires.
    fn switch(&mut self, config: &Configuration) -> Result<(), EngineError> {
        let failed = |Unsupported(why)| EngineError::failed(why);
        if config.smt != SmtAxis::OffHotplug && self.controls.is_none() {
            return Ok(());
        }
        if self.controls.is_none() {
            self.controls = Some(Controls::take(&Sysroot::live()).map_err(failed)?.0);
        }
        let Some(controls) = &mut self.controls else { unreachable!("taken just now") };
        match config.smt {
            SmtAxis::OffHotplug => controls.smt_off().map_err(failed)?,
            SmtAxis::On | SmtAxis::UnusedByAffinity => controls.smt_on().map_err(failed)?,
        }
        self.machine = Machine::here();
        Ok(())
    }

    /// Keeps a plan with its run, or adds a kept run to the same plan: samples of warm-ups are
    /// dropped.
    fn with_run(&mut self, cell: String, plan: &mut PlanText) {
        if plan.run.is_some() {
            self.explained.insert(cell, plan.clone());
        } else if let Some(before) = self.explained.get(&cell)
            && before.fingerprint() == plan.fingerprint()
        {
            plan.run.clone_from(&before.run);
        }
    }

    fn workload(&mut self, work: &Work) -> Result<Arc<dyn Workload>, EngineError> {
        if let Some((open, workload)) = &self.open
            && open == work
        {
            return Ok(Arc::clone(workload));
        }
        let workload = work.open(self.database.dialect())?;
        self.open = Some((work.clone(), Arc::clone(&workload)));
        Ok(workload)
    }

    /// Restores the data that a repetition starts from.
    fn bring_back(&mut self, config: &Configuration, stop: &Stop) -> Result<(), EngineError> {
        let workload = self.workload(&config.work)?;
        let data = config.work.data();
        let writes = self.database.may_write();
        let reset = workload.reset(self.database.dialect()).filter(|_| writes);
        match reset {
            Some(texts) if self.data.as_ref() == Some(&data) => self.say(&texts, stop),
            reset => {
                self.data = None;
                if let Some(filled) = self.database.restore(&data, workload.as_ref(), stop)? {
                    load_times::keep(&self.home, &data, &filled)?;
                }
                // Data that can't be reset is of no use to the next repetition.
                let Some(texts) = reset else { return Ok(()) };
                self.data = Some(data);
                self.say(&texts, stop)
            }
        }
    }

    fn say(&self, texts: &[String], stop: &Stop) -> Result<(), EngineError> {
        if texts.is_empty() {
            return Ok(());
        }
        let failed = |text: &str, error| EngineError::failed(format!("`{text}`: {error}"));
        let connection = self.database.connector()?.open();
        let mut connection = connection.map_err(|error| failed("connect", error))?;
        let said = until_stopped(connection.as_mut(), stop, |one| {
            let session = one.session();
            texts.iter().try_for_each(|text| session.run(text).map_err(|error| failed(text, error)))
        });
        said?
    }

    fn measured(
        &mut self,
        config: &Configuration,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let running = self.running(config)?;
        let clients = match self.database.scope() {
            // The clients' threads run the queries.
            ProcessScope::Within => running.cpus.clone(),
            _ => self.client_cpus(config),
        };
        let loops = Background::new(config.loops, config.loop_bytes, running.cpus.clone());
        let server_cpus = running.cpus.clone();
        let collector = self.collector.as_mut().filter(|_| config.collection != Part::Nothing).map(
            |collector| CellCollector {
                collector,
                cell: format!("{config:?}"),
                part: config.collection,
                cpus: server_cpus.unwrap_or_else(|| self.machine.allowed_cpus().clone()),
            },
        );
        let context = RunContext { clients, loops, stop, collector };
        let database = self.database.as_mut();
        let mut sample = match config.crash() {
            None => sample::of(database, config, workload, context)?,
            Some(crash) => {
                let restart = Restart { home: &self.home, running: &running };
                crash.of(database, config, workload, restart, context)?
            }
        };
        sample.measures.insert("clients".to_owned(), config.clients as f64);
        let loading = load_times::measures(&self.home, &config.work.data()).into_iter();
        sample.measures.extend(loading.map(|(name, value)| (name.to_owned(), value)));
        Ok(sample)
    }
}

impl Engine for DatabaseEngine {
    fn name(&self) -> &str {
        self.database.name()
    }

    fn version(&self) -> String {
        self.database.version().unwrap_or_else(|error| error.to_string())
    }

    fn tier(&self) -> Option<(EvidenceTier, String)> {
        self.valgrind.as_ref().map(|_| ValgrindRunner::tier())
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let config = Configuration::read(cell)?;
        let dialect = self.database.dialect();
        let workload = config.work.open(dialect)?;
        match &self.valgrind {
            Some(valgrind) => {
                instrumented::check(valgrind, &config, workload.as_ref(), self.database.as_ref())?
            }
            None if config.caches.is_some() => return Err(no_model()),
            None => {}
        }
        self.database.version()?;
        let cpus = config.cpus.unwrap_or_else(|| self.machine.allowed_cpus().len());
        Ok(Need {
            memory_bytes: (2 * config.data_bytes() + SERVER_BYTES)
                .saturating_add(config.loop_bytes(cpus)),
            // Clients and their CPUs do not matter to a model.
            limitation: self.valgrind.is_none().then(|| self.limitation(&config)).flatten(),
            impossible: self.impossible(&config, cell.protocol),
        })
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let config = Configuration::read(cell)?;
        let Protocol { start, restart, restore } = cell.protocol;
        self.switch(&config)?;
        if restart == Before::Always && start == Start::Warm {
            self.database.stop();
        }
        let running = self.running(&config)?;
        self.database.serve(&self.home, &running, stop)?;
        // A single backend is a superuser's: it meets nothing that clients left.
        let counted = self.valgrind.is_some() && self.database.has_single_backend();
        if restore == Before::Always || counted {
            self.data = None;
        }
        let config = self.with_found_numbers(config, stop)?;
        self.bring_back(&config, stop)?;
        match start {
            Start::Warm => Ok(()),
            Start::Cold => self.database.chill(stop),
        }
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let mut config = self.with_found_numbers(Configuration::read(cell)?, stop)?;
        let name = format!("{config:?}");
        if self.explained.contains_key(&name) {
            config.explain = Explain::Planned;
        }
        let workload = self.workload(&config.work)?;
        if let Some(valgrind) = self.valgrind.take() {
            let sample = self.count(&valgrind, cell, &config, workload.as_ref(), stop);
            self.valgrind = Some(valgrind);
            return sample;
        }
        let sample = self.measured(&config, workload.as_ref(), stop);
        let mut sample = sample.map_err(|error| match error {
            EngineError::Failed(says)
                if !self.database.may_write() && refuses_writes(says.as_str()) =>
            {
                EngineError::failed(format!("{says}: --allow-writes lets the run write"))
            }
            other => other,
        })?;
        if let Some(plan) = &mut sample.plan {
            self.with_run(name, plan);
        }
        Ok(sample)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.database.stop();
        self.data = None;
        // Dropping them restores the machine's settings.
        self.controls = None;
        Ok(())
    }
}

/// Whether an error is that of a read-only session: PostgreSQL's words, then MariaDB's.
fn refuses_writes(says: &str) -> bool {
    says.contains("read-only transaction") || says.contains("READ ONLY transaction")
}
