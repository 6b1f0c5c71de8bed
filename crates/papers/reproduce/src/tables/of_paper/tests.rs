//! Tables filled from results of an engine without a machine.

use workahead_counters::event::Privilege;
use workahead_counters::source::Reading;
use workahead_counters::stream::{Group, Header, OnCpu, Slot, Stream};
use workahead_counters::table::Table;

use workahead_study::cell::Cell;
use workahead_study::collection::Collection;
use workahead_study::testing::{self, Mock};

use super::super::Source;
use super::*;
use crate::published;

const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\nledger = ['E2.2']\n\
    workload = { rows = 1000 }\n[[cases]]\nname = 'one'\ncpus = 1\n\
    [[cases]]\nname = 'two'\ncpus = 2\n\
    [method]\nrepetitions = 2\ncounters = ['cpi']\n";

/// A CPI of 2 in user code and 5 in the kernel; half of it on two CPUs.
fn collection(cell: &Cell, _: u64) -> Collection {
    let table = Table::named("intel/sapphire-rapids").unwrap();
    let names = ["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD"];
    let events = names.map(|name| table.event(name).unwrap().clone()).to_vec();
    let sides = [Privilege::User, Privilege::Kernel];
    let group = |privilege| Group { events: events.clone(), privilege };
    let cpus = u32::try_from(cell.integer("cpus").unwrap()).unwrap();
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
    Collection { counts: Some(stream), ..Collection::default() }
}

fn tables() -> Vec<PaperTable> {
    let dir = tempfile::tempdir().unwrap();
    let mut mock = Mock::new();
    mock.extra.push("cpus");
    mock.collection = Some(collection);
    let results = testing::results(dir.path(), STUDY, &mut mock);
    let ledger = results.spec.ledger.clone();
    let study = "keeton/demo".to_owned();
    let ran = [StudyRun { study, outcome: Ok(results), ledger, modelled: false }];
    let filled = of_paper(published::keeton(), &ran);
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
    let of = ModelFigures(&results);
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
    assert!(why("itlb_mpki", "processors = 2").contains("does not have it"));
    let ledger = results.spec.ledger.clone();
    let study = "keeton/demo".to_owned();
    let ran = [StudyRun { study, outcome: Ok(results), ledger, modelled: true }];
    let filled = of_paper(published::keeton(), &ran);
    let modelled: Vec<&str> =
        filled.iter().filter(|one| one.modelled).map(|one| one.table.id.as_str()).collect();
    assert_eq!(modelled, ["Table 9"]);
}
