//! The scheduler of a cell, and the settings left for its engine.

use workahead_scheduler::{Bonus, Key};
use workahead_study::run_plan::RunPlan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;

use super::*;
use crate::sysbench::Sysbench;

fn cell(settings: &str) -> Cell {
    let text = format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"sysbench\"\nseed = 7\n\
         workload = {{ threads = 2, total_bytes = 65536, {settings} }}\n"
    );
    RunPlan::new(&Spec::parse("test", &text).unwrap()).cells[0].clone()
}

#[test]
fn the_schedulers_settings_are_not_the_engines() {
    let words = "\"scheduler.bonus\" = \"5ms\", \"scheduler.key\" = \"parent\", \
                 \"scheduler.limit\" = 7";
    let (choice, rest) = read(&cell(&format!("scheduler = \"itas\", {words}"))).unwrap();
    let choice = choice.unwrap();
    let wanted = Settings {
        bonus: Bonus::Ns(5_000_000),
        key: Key::Parent,
        limit: 7,
        survey: true,
        ..Settings::default()
    };
    assert_eq!(choice, SchedulerChoice { which: Which::Itas, settings: wanted, roles: None });
    assert_eq!(rest.settings.keys().collect::<Vec<_>>(), ["threads", "total_bytes"]);
    let (choice, _) = read(&cell("scheduler = \"scx_cosmos --mm-affinity\"")).unwrap();
    let words = ["scx_cosmos", "--mm-affinity"].map(str::to_owned).to_vec();
    assert_eq!(choice.unwrap().which, Which::External(words));
    let (choice, rest) = read(&cell("scheduler = \"batch\"")).unwrap();
    assert_eq!((choice, rest.text("scheduler")), (None, Some("batch")));
}

#[test]
fn an_unknown_scheduler_setting_is_refused() {
    let engine = WithScheduler(Box::new(Sysbench::default()));
    for (settings, says) in [
        ("scheduler = \"itas\", \"scheduler.bonsu\" = 3", "unknown setting `bonsu`"),
        ("scheduler = \"default\", \"scheduler.key\" = \"pid\"", "`key=pid`"),
        ("\"scheduler.bonus\" = 3", "scheduler.bonus"),
        ("scheduler = \"itsa\"", "scheduler"),
        ("scheduler = \"scx_tools/run\"", "a program in PATH"),
        ("scheduler = \"scx_layered --example /etc/passwd\"", "a program in PATH"),
        ("scheduler = \"scx_layered --example=file\"", "a program in PATH"),
        ("scheduler = \"scx_layered file:config\"", "a program in PATH"),
    ] {
        let error = engine.check(&cell(settings)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Without kernel support the kernel's own scheduler still runs, and ours is left out by name.
#[test]
fn a_cell_runs_or_is_left_out_by_name() {
    let mut engine = WithScheduler(Box::new(Sysbench::default()));
    let stop = Stop::new();
    let usual = cell("scheduler = \"default\"");
    assert_eq!(engine.check(&usual).unwrap().impossible, None);
    engine.prepare(&usual, &stop).unwrap();
    let plain = engine.run(&usual, &stop).unwrap();
    let mut absent = usual.clone();
    absent.settings.insert("scheduler".to_owned(), Setting::from("scx_none"));
    assert!(engine.check(&absent).unwrap().impossible.is_some());
    assert!(engine.run(&absent, &stop).is_err());
    let mut itas = usual;
    itas.settings.insert("scheduler".to_owned(), Setting::from("itas"));
    match engine.check(&itas).unwrap().impossible {
        Some(why) => {
            let why = why.to_string();
            assert_eq!(kernel::lacks(&Which::Itas), Some(why.clone()));
            assert!(why.contains("sched_ext") || why.contains("scheduler"), "{why}");
            assert!(engine.run(&itas, &stop).is_err());
            assert!(!plain.measures.contains_key("group_switch_share"));
        }
        None => assert_eq!(engine.run(&itas, &stop).unwrap().answer, plain.answer),
    }
}
