//! A workload of one table, and stops of its filling.

use std::sync::atomic::Ordering;

use workahead_workloads::client::{Client, Condition, Moment, RowSink};
use workahead_workloads::session::{Dialect, Session, Value};

use super::*;
use crate::connector::fake::Fake;

/// A table of two rows.
struct Little;

impl Workload for Little {
    fn name(&self) -> &'static str {
        "little"
    }
    fn kinds(&self) -> Vec<String> {
        Vec::new()
    }
    fn tables(&self, _: Dialect) -> Result<Vec<Table>, SessionError> {
        Ok(vec![Table {
            name: "t".to_owned(),
            columns: vec!["a".to_owned()],
            create: "create t".to_owned(),
            finish: vec!["finish t".to_owned()],
        }])
    }
    fn rows(&self, _: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        sink(&[Value::Int(1)])?;
        sink(&[Value::Int(2)])
    }
    fn set_up(&self, _: Dialect) -> Result<Vec<String>, SessionError> {
        Ok(vec!["set up t".to_owned()])
    }
    fn client(&self, _: u32) -> Box<dyn Client> {
        unreachable!("it is only filled")
    }
    fn check(&self, _: &mut dyn Session, _: Moment) -> Result<Vec<Condition>, SessionError> {
        Ok(Vec::new())
    }
}

#[test]
fn a_stop_cancels_the_statement_that_it_finds() {
    for text in ["create t", "rows of t", "finish t", "set up t", "analyse t"] {
        let stop = Stop::new();
        let fake = Fake::holding(text, &stop);
        let filled = fill(&fake, &Little, &stop);
        assert!(matches!(filled, Err(Error::Stopped)), "{text}: {filled:?}");
        assert!(fake.cancelled.load(Ordering::Relaxed) > 0, "{text}");
    }
}

#[test]
fn nothing_is_begun_after_a_stop() {
    let (fake, stop) = (Fake::default(), Stop::new());
    assert_eq!(fill(&fake, &Little, &stop).unwrap().rows, 2);
    stop.request();
    assert!(matches!(fill(&fake, &Little, &stop), Err(Error::Stopped)));
    assert_eq!(fake.cancelled.load(Ordering::Relaxed), 0);
}
