//! Databases that are served: a private server, a workload's data in it, clients beside it.
//!
//! ```text
//! Cell ─► Asked ─► Running (settings, CPUs) ─► server, started anew only when they change
//!              ├─► Work ─► data, loaded once and copied ─► brought back before every repetition
//!              └─► Load (clients, how many, how fast) ─► Driven ─┐
//!                  what the server's processes used ─────────────┴─► Sample
//! ```
//!
//! Times are those of the clients; CPU seconds are those of the server's processes only, the
//! clients' own beside them as `client_cpu_s`.
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `workload` | `dbmbench` |
//! | `clients` | connections at work at the same time |
//! | `queries`, or `seconds` | how much is run, all clients together (100); a time where above 0 |
//! | `rate` | transactions to start in a second, all clients together |
//! | `parallel` | processes that may work on one query |
//! | `smt` | `on`, `off-hotplug`, `unused-by-affinity` |
//! | `cpus`, `placement` | how many CPUs the server has, in which order they are taken |
//! | `server.NAME` | the server's own setting of that name |
//!
//! A cold start, of the method's protocol, is a server started anew and its files out of the
//! system's memory.
//!
//! Of `dbmbench`: `query` (`utpcc`, `uss`, `unj`), `rows`, `inner_rows`, `values`, `selectivity`,
//! `plan` (`seed`, `native`), `bounds` (`fixed`, `random`), `answers` (`stored`, `returned`).

mod asked;
mod database;
mod files;
mod mariadb;
mod postgres;
mod sample;
mod work;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use workahead_machine::control::placement::Placement;
use workahead_machine::control::smt::{self, SmtAxis};
use workahead_machine::control::{Cannot, Controls};
use workahead_machine::{CpuSet, Machine, Root};
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineError, Need, Sample, Stop};
use workahead_study::protocol::{Before, Protocol, Start};
use workahead_workloads::client::Workload;

use asked::Asked;
use database::{Database, Running};
use work::Work;

/// What a server takes beside its data: processes, caches of its own.
const SERVER_BYTES: u64 = 512 << 20;

/// The engine, for one product.
pub struct Served {
    database: Box<dyn Database>,
    machine: Machine,
    home: PathBuf,
    controls: Option<Controls>,
    /// The workload in the database, and whose data it is.
    open: Option<(Work, Arc<dyn Workload>)>,
    data: Option<String>,
}

impl Served {
    /// PostgreSQL, as it is installed.
    #[must_use]
    pub fn postgres() -> Self {
        Self::of(Box::new(postgres::Postgres::default()))
    }

    /// MariaDB, as it is installed.
    #[must_use]
    pub fn mariadb() -> Self {
        Self::of(Box::new(mariadb::MariaDb::default()))
    }

    fn of(database: Box<dyn Database>) -> Self {
        let home = std::env::temp_dir().join("workahead");
        let machine = Machine::here();
        Self { database, machine, home, controls: None, open: None, data: None }
    }

    /// The CPUs of the server; none where it may use all.
    fn cpus(&self, asked: &Asked) -> Result<Option<CpuSet>, Cannot> {
        let all = match asked.smt {
            SmtAxis::UnusedByAffinity => Some(smt::one_per_core(&self.machine)?),
            SmtAxis::On | SmtAxis::OffHotplug => None,
        };
        match (asked.cpus, asked.placement) {
            (None, Placement::CoresFirst) => Ok(all),
            (count, placement) => {
                let order = placement.order(&self.machine)?;
                let usable = |cpu: &usize| all.as_ref().is_none_or(|all| all.contains(*cpu));
                let order: Vec<usize> = order.into_iter().filter(usable).collect();
                let count = count.unwrap_or(order.len());
                if count > order.len() {
                    let says = format!("{count} CPUs can't be had, there are {}", order.len());
                    return Err(Cannot(says));
                }
                Ok(Some(order.into_iter().take(count).collect()))
            }
        }
    }

    /// The CPUs that the server leaves; none where it leaves none.
    fn client_cpus(&self, asked: &Asked) -> Option<CpuSet> {
        let servers = self.cpus(asked).ok().flatten()?;
        let all = self.machine.allowed_cpus();
        let left: CpuSet = all.iter().filter(|cpu| !servers.contains(*cpu)).collect();
        (!left.is_empty()).then_some(left)
    }

    fn running(&self, asked: &Asked) -> Result<Running, EngineError> {
        let failed = |Cannot(why)| EngineError::Failed(why);
        let parallel = self.database.parallel(asked.parallel).map_err(EngineError::Failed)?;
        let mut settings: std::collections::BTreeMap<_, _> = parallel.into_iter().collect();
        settings.extend(asked.server.clone());
        Ok(Running { settings, cpus: self.cpus(asked).map_err(failed)? })
    }

    /// Why this machine or product can't do a cell at all.
    fn impossible(&self, asked: &Asked) -> Option<String> {
        let root = Root::live();
        let smt = match asked.smt {
            SmtAxis::OffHotplug => smt::can_switch(&root).err(),
            _ => None,
        };
        let cannot = smt.or_else(|| self.cpus(asked).err()).map(|Cannot(why)| why);
        cannot.or_else(|| self.database.parallel(asked.parallel).err())
    }

    /// What this machine can't show of a cell that is run all the same.
    fn cannot(&self, asked: &Asked) -> Option<String> {
        let cpus = self.machine.allowed_cpus();
        let servers = self.cpus(asked).ok()?.map_or(cpus.len(), |cpus| cpus.len());
        (servers >= cpus.len()).then(|| {
            "the clients take their time from the CPUs that the server is measured on".to_owned()
        })
    }

    /// Brings the siblings to where the cell wants them.
    fn switch(&mut self, asked: &Asked) -> Result<(), EngineError> {
        let failed = |Cannot(why)| EngineError::Failed(why);
        if asked.smt != SmtAxis::OffHotplug && self.controls.is_none() {
            return Ok(());
        }
        if self.controls.is_none() {
            self.controls = Some(Controls::take(&Root::live()).map_err(failed)?.0);
        }
        let Some(controls) = &mut self.controls else { unreachable!("taken just now") };
        match asked.smt {
            SmtAxis::OffHotplug => controls.smt_off().map_err(failed)?,
            SmtAxis::On | SmtAxis::UnusedByAffinity => controls.smt_on().map_err(failed)?,
        }
        self.machine = Machine::here();
        Ok(())
    }

    fn workload(&mut self, work: &Work) -> Result<Arc<dyn Workload>, EngineError> {
        if let Some((open, workload)) = &self.open
            && open == work
        {
            return Ok(Arc::clone(workload));
        }
        let workload = work.open()?;
        self.open = Some((*work, Arc::clone(&workload)));
        Ok(workload)
    }

    /// Brings the data to where a repetition starts from.
    fn bring_back(&mut self, asked: &Asked, stop: &Stop) -> Result<(), EngineError> {
        let workload = self.workload(&asked.work)?;
        let data = asked.work.data();
        let reset = workload.reset(self.database.dialect());
        match reset {
            Some(texts) if self.data.as_ref() == Some(&data) => self.say(&texts),
            reset => {
                self.data = None;
                self.database.restore(&data, workload.as_ref(), stop)?;
                self.data = Some(data);
                reset.map_or(Ok(()), |texts| self.say(&texts))
            }
        }
    }

    fn say(&self, texts: &[String]) -> Result<(), EngineError> {
        let failed = |text: &str, error| EngineError::Failed(format!("`{text}`: {error}"));
        let connection = self.database.target()?.connect();
        let mut connection = connection.map_err(|error| failed("connect", error))?;
        let session = connection.session();
        texts.iter().try_for_each(|text| session.run(text).map_err(|error| failed(text, error)))
    }
}

impl Engine for Served {
    fn name(&self) -> &str {
        self.database.name()
    }

    fn version(&self) -> String {
        self.database.version().unwrap_or_else(|error| error.to_string())
    }

    fn keep_in(&mut self, home: &Path) {
        self.home = home.join(self.database.name());
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let asked = Asked::read(cell)?;
        asked.work.open()?;
        self.database.version()?;
        Ok(Need {
            memory_bytes: 2 * asked.work.data_bytes() + SERVER_BYTES,
            cannot: self.cannot(&asked),
            impossible: self.impossible(&asked),
        })
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let asked = Asked::read(cell)?;
        let Protocol { start, restart, restore } = cell.protocol;
        self.switch(&asked)?;
        if restart == Before::Always && start == Start::Warm {
            self.database.stop();
        }
        let running = self.running(&asked)?;
        self.database.serve(&self.home, &running, stop)?;
        if restore == Before::Always {
            self.data = None;
        }
        self.bring_back(&asked, stop)?;
        match start {
            Start::Warm => Ok(()),
            Start::Cold => self.database.chill(stop),
        }
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let asked = Asked::read(cell)?;
        let workload = self.workload(&asked.work)?;
        let cpus = self.client_cpus(&asked);
        sample::of(self.database.as_mut(), &asked, workload.as_ref(), (cpus, stop))
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.database.stop();
        self.data = None;
        // Dropping them puts back what was changed.
        self.controls = None;
        Ok(())
    }
}
