//! A result's figures for the cells of a paper's tables.
//!
//! ```text
//! table of the paper ──► row, column ──► which cell of the study, whose work, which metric
//!                                              ├─► its counts' metrics ──► figure, or why not
//!                                              └─► a model's measures  ──► figure, modelled
//! ```

mod modelled;

use workahead_counters::metrics::Metrics;
use workahead_counters::published::{self, Configuration, Paper};
use workahead_counters::shaped::{Figure, OfStream, Ours, Shaped, shaped};

use crate::cell::Cell;
use crate::ledger::Seed;
use crate::reproduction::Ran;
use crate::results::Results;

use modelled::OfModel;

/// The paper of a seed, where its tables are kept.
pub fn of_seed(seed: Seed) -> Option<&'static Paper> {
    match seed.name {
        "keeton" => Some(published::keeton()),
        "hassanein" => Some(published::hassanein()),
        _ => None,
    }
}

/// A table of a paper with figures of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// The table.
    pub table: Shaped,
    /// Whether its figures are modelled.
    pub modelled: bool,
}

/// Every table of a paper with figures of these results, each from the first result that answers
/// one of the table's rows: of those that were counted, and of those that were modelled. A table
/// that neither fills is there once, with its reasons.
pub fn tables(paper: &Paper, ran: &[Ran]) -> Vec<Filled> {
    let (modelled, measured): (Vec<&Ran>, Vec<&Ran>) = ran.iter().partition(|ran| ran.modelled);
    let measured = answers(&measured, |results| {
        let of = OfResults::of(results);
        of.is_counted().then(|| shaped(paper, &of))
    });
    let modelled = answers(&modelled, |results| Some(shaped(paper, &OfModel(results))));
    let empty = shaped(paper, &Nothing("no study here counts it"));
    let mut all = Vec::new();
    for empty in empty {
        let found = |of: &[(&[String], Vec<Shaped>)]| {
            let answering =
                of.iter().filter(|(ledger, _)| empty.ledger.iter().any(|row| ledger.contains(row)));
            let same = |tables: &Vec<Shaped>| tables.iter().find(|one| one.id == empty.id).cloned();
            answering.filter_map(|(_, tables)| same(tables)).find(Shaped::has_ours)
        };
        let known = all.len();
        all.extend(found(&measured).map(|table| Filled { table, modelled: false }));
        all.extend(found(&modelled).map(|table| Filled { table, modelled: true }));
        if all.len() == known {
            let why = measured
                .iter()
                .find(|(ledger, _)| empty.ledger.iter().any(|row| ledger.contains(row)));
            let why = why.and_then(|(_, tables)| tables.iter().find(|one| one.id == empty.id));
            all.push(Filled { table: why.cloned().unwrap_or(empty), modelled: false });
        }
    }
    all
}

/// A paper's tables by each result that has figures, with the rows of the ledger it answers.
fn answers<'r>(
    ran: &[&'r Ran],
    tables: impl Fn(&'r Results) -> Option<Vec<Shaped>>,
) -> Vec<(&'r [String], Vec<Shaped>)> {
    let each = |ran: &&'r Ran| {
        let results = ran.outcome.as_ref().ok()?;
        Some((ran.ledger.as_slice(), tables(results)?))
    };
    ran.iter().filter_map(each).collect()
}

/// Who has no figures.
struct Nothing(&'static str);

impl Ours for Nothing {
    fn figure(&self, _: &str, _: &Configuration) -> Result<Figure, String> {
        Err(self.0.to_owned())
    }
}

/// The cells of a result that were counted.
struct OfResults<'a> {
    results: &'a Results,
    cells: Vec<(&'a Cell, Metrics)>,
}

impl<'a> OfResults<'a> {
    fn of(results: &'a Results) -> Self {
        let counted = |cell: &'a Cell| Some((cell, results.metrics(cell.index)?));
        Self { results, cells: results.plan.cells.iter().filter_map(counted).collect() }
    }

    fn is_counted(&self) -> bool {
        !self.cells.is_empty()
    }
}

impl Ours for OfResults<'_> {
    fn figure(&self, metric: &str, at: &Configuration) -> Result<Figure, String> {
        let fitting = |(cell, _): &&(&Cell, Metrics)| fits(cell, at);
        // The largest machine of those that fit, as the paper's base is its largest.
        let found = self.cells.iter().filter(fitting).max_by_key(|(cell, _)| processors(cell));
        let (cell, metrics) = found.ok_or_else(|| absent(at))?;
        let of_stream = OfStream { metrics, processors: processors(cell) };
        let asked = Configuration { workload: None, clients: None, smt: None, ..at.clone() };
        let counted = of_stream.figure(metric, &asked);
        match (metric, counted) {
            ("user_cycle_share", Err(why)) => self.user_time(cell.index).ok_or(why),
            (_, counted) => counted,
        }
    }
}

impl OfResults<'_> {
    /// The database's share of the time by the system's clocks, where no cycles are counted.
    fn user_time(&self, cell: usize) -> Option<Figure> {
        let of = |measure| self.results.value(cell, measure);
        let (user_s, system_s) = (of("server_user_s")?, of("server_system_s")?);
        let both_s = user_s + system_s;
        (both_s > 0.0).then(|| Figure {
            value: user_s / both_s,
            noisy: false,
            instead: Some("share of CPU time, by the system's clocks".to_owned()),
        })
    }
}

/// Whether a cell is of the work, the clients and the siblings that a figure is of. Processors that
/// were not counted are told by the cell that is nearest to the paper's base.
fn fits(cell: &Cell, at: &Configuration) -> bool {
    let of_base = at.processors.is_none_or(|number| {
        number == BASE_PROCESSORS || processors(cell) == Some(u32::from(number))
    });
    of_base && is_of_work(cell, at)
}

/// Whether a cell is of the work, the clients and the siblings that a figure is of.
fn is_of_work(cell: &Cell, at: &Configuration) -> bool {
    let workload = at.workload.as_deref().is_none_or(|workload| {
        let told = cell.text("query").or_else(|| cell.text("workload"));
        told.is_some_and(|told| plain(told) == plain(workload))
    });
    let clients =
        at.clients.is_none_or(|clients| cell.integer("clients") == Some(i64::from(clients)));
    let siblings = cell.text("smt").or_else(|| cell.text("siblings"));
    let smt = at.smt.is_none_or(|on| siblings.is_some_and(|told| (told == "on") == on));
    workload && clients && smt
}

/// The base system of Keeton et al. (1998, Table 1).
const BASE_PROCESSORS: u8 = 4;

fn processors(cell: &Cell) -> Option<u32> {
    cell.integer("cpus").and_then(|cpus| u32::try_from(cpus).ok())
}

/// `uTPC-C` and `utpcc` are one.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase().replace('µ', "u");
    lower.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn absent(at: &Configuration) -> String {
    match (at.processors, &at.workload) {
        (_, Some(workload)) => format!("no cell of ours is of {workload}"),
        (Some(1), None) => "no run on 1 processor was counted".to_owned(),
        (Some(number), None) => format!("no run on {number} processors was counted"),
        (None, None) => "no cell of ours is of that".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use workahead_counters::event::Privilege;
    use workahead_counters::source::Reading;
    use workahead_counters::stream::{Group, Header, OnCpu, Slot, Stream};
    use workahead_counters::table::Table;

    use super::*;
    use crate::testing::{self, Mock};
    use crate::watch::Watched;

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\nledger = ['E2.2']\n\
        workload = { rows = 1000 }\n[[cases]]\nname = 'one'\ncpus = 1\n\
        [[cases]]\nname = 'two'\ncpus = 2\n\
        [method]\nrepetitions = 2\ncounters = ['cpi']\n";

    /// A CPI of 2 in user code and 5 in the kernel; half of it on two CPUs.
    fn watched(cell: &Cell, _: u64) -> Watched {
        let table = Table::named("intel/sapphire-rapids").unwrap();
        let names = ["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD"];
        let events = names.map(|name| table.event(name).unwrap().clone()).to_vec();
        let sides = [Privilege::User, Privilege::Kernel];
        let group = |privilege| Group { events: events.clone(), privilege };
        let cpus = processors(cell).unwrap();
        let slot = |(group, cycles): (usize, u64)| Slot {
            group,
            begun_s: group as f64,
            wall_s: 1.0,
            cpus: (0..cpus)
                .map(|cpu| OnCpu {
                    cpu: Some(cpu),
                    reading: Reading {
                        enabled_ns: 1_000_000_000,
                        running_ns: 1_000_000_000,
                        values: vec![1_000_000, cycles / u64::from(cpus)],
                    },
                })
                .collect(),
            spoilt: None,
        };
        let stream = Stream {
            header: Header {
                table: Some(table.name.clone()),
                metrics: vec!["cpi".to_owned()],
                groups: sides.map(group).to_vec(),
                ..Header::default()
            },
            slots: [(0, 2_000_000), (1, 5_000_000)].map(slot).to_vec(),
        };
        Watched { counts: Some(stream), ..Watched::default() }
    }

    fn tables() -> Vec<Shaped> {
        let dir = tempfile::tempdir().unwrap();
        let mut mock = Mock::new();
        mock.extra.push("cpus");
        mock.watched = Some(watched);
        let results = testing::results(dir.path(), STUDY, &mut mock);
        let ledger = results.spec.ledger.clone();
        let study = "keeton/demo".to_owned();
        let ran = [Ran { study, outcome: Ok(results), ledger, modelled: false }];
        let filled = super::tables(published::keeton(), &ran);
        assert!(filled.iter().all(|filled| !filled.modelled));
        filled.into_iter().map(|filled| filled.table).collect()
    }

    #[test]
    fn each_table_has_the_figures_of_the_study_that_answers_its_rows() {
        let tables = tables();
        let table = |id: &str| tables.iter().find(|table| table.id == id).unwrap();
        let row = table("Table 10").rows.iter().find(|row| row.name == "Measured, CPI").unwrap();
        let ours: Vec<Option<f64>> = row.cells.iter().map(|cell| cell.ours).collect();
        // Database and system on two CPUs, the largest that was counted.
        assert!(ours.contains(&Some(1.0)) && ours.contains(&Some(2.5)), "{ours:?}");
        // Nobody answers E2.16 here.
        let dirty = table("Table 8");
        assert!(dirty.rows.iter().flat_map(|row| &row.cells).all(|cell| cell.why.is_some()));
    }

    /// A model fills the cells of its own processors and L2 alone, states of lines included.
    #[test]
    fn a_model_fills_what_it_varies() {
        const MODELLED: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\nledger = ['E2.17']\n\
            workload = { rows = 1000, cpus = 2 }\n[axes]\nl2_kib = [256, 1024]\n\
            [method]\nrepetitions = 1\n";
        let dir = tempfile::tempdir().unwrap();
        let mut mock = Mock::new();
        mock.extra.extend(["cpus", "l2_kib"]);
        mock.measures.extend([("state_load_e", 0.25), ("cpi", 3.0)]);
        let results = testing::results(dir.path(), MODELLED, &mut mock);
        let of = OfModel(&results);
        let at = |text: &str| toml::from_str::<Configuration>(text).unwrap();
        let figure = |metric: &str, text: &str| of.figure(metric, &at(text)).map(|f| f.value);
        assert_eq!(figure("cpi", "processors = 2\nl2_kib = 256"), Ok(3.0));
        assert_eq!(
            figure("state_share", "processors = 2\naccess = 'load'\nstate = 'exclusive'"),
            Ok(0.25)
        );
        let why = |metric: &str, text: &str| figure(metric, text).unwrap_err();
        assert!(why("cpi", "processors = 1").contains("1 processors"));
        assert!(why("cpi", "processors = 2\nprivilege = 'kernel'").contains("operating system"));
        assert!(why("itlb_mpki", "processors = 2").contains("does not tell"));
        let ledger = results.spec.ledger.clone();
        let study = "keeton/demo".to_owned();
        let ran = [Ran { study, outcome: Ok(results), ledger, modelled: true }];
        let filled = super::tables(published::keeton(), &ran);
        let modelled: Vec<&str> =
            filled.iter().filter(|one| one.modelled).map(|one| one.table.id.as_str()).collect();
        assert_eq!(modelled, ["Table 9"]);
    }

    #[test]
    fn names_of_queries_are_compared_without_their_dress() {
        assert_eq!(plain("µTPC-C"), plain("utpcc"));
        assert_ne!(plain("uSS"), plain("unj"));
    }
}
