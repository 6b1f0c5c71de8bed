//! A result's figures for the cells of a paper's tables.
//!
//! ```text
//! table of the paper ──► row, column ──► which cell of the study, whose work, which metric
//!                                              └─► its counts' metrics ──► figure, or why not
//! ```

use workahead_counters::metrics::Metrics;
use workahead_counters::published::{self, Configuration, Paper};
use workahead_counters::shaped::{Figure, OfStream, Ours, Shaped, shaped};

use crate::cell::Cell;
use crate::ledger::Seed;
use crate::reproduction::Ran;
use crate::results::Results;

/// The paper of a seed, where its tables are kept.
pub fn of_seed(seed: Seed) -> Option<&'static Paper> {
    match seed.name {
        "keeton" => Some(published::keeton()),
        "hassanein" => Some(published::hassanein()),
        _ => None,
    }
}

/// Every table of a paper with figures of these results: each from the first result that answers
/// one of the table's rows.
pub fn tables(paper: &Paper, ran: &[Ran]) -> Vec<Shaped> {
    let results: Vec<(&Ran, OfResults<'_>)> = ran
        .iter()
        .filter_map(|ran| Some((ran, OfResults::of(ran.outcome.as_ref().ok()?))))
        .filter(|(_, of)| of.is_counted())
        .collect();
    let answering = |ledger: &[String]| {
        results.iter().find(|(ran, _)| ledger.iter().any(|row| ran.ledger.contains(row)))
    };
    let empty = shaped(paper, &Nothing("no study here counts it"));
    let filled = empty.into_iter().map(|table| match answering(&table.ledger) {
        None => table,
        Some((_, of)) => {
            let all = shaped(paper, of);
            all.into_iter().find(|one| one.id == table.id).unwrap_or(table)
        }
    });
    filled.collect()
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
    let workload = at.workload.as_deref().is_none_or(|workload| {
        cell.text("query").is_some_and(|query| plain(query) == plain(workload))
    });
    let clients =
        at.clients.is_none_or(|clients| cell.integer("clients") == Some(i64::from(clients)));
    let smt = at.smt.is_none_or(|on| match cell.text("smt") {
        Some("on") => on,
        Some(_) => !on,
        None => false,
    });
    let of_base = at.processors.is_none_or(|number| {
        number == BASE_PROCESSORS || processors(cell) == Some(u32::from(number))
    });
    workload && clients && smt && of_base
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
        let ran = [Ran { study: "keeton/demo".to_owned(), outcome: Ok(results), ledger }];
        super::tables(published::keeton(), &ran)
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

    #[test]
    fn names_of_queries_are_compared_without_their_dress() {
        assert_eq!(plain("µTPC-C"), plain("utpcc"));
        assert_ne!(plain("uSS"), plain("unj"));
    }
}
