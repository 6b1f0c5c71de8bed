//! The transaction of `pgbench -S`: one account by its number, drawn uniformly.

use workahead_workloads::client::{
    AttemptResult, Client, Condition, Moment, Next, RowSink, Table, Workload,
};
use workahead_workloads::random::Random;
use workahead_workloads::session::{Dialect, Session, SessionError, StatementId, Value};

/// The stream of draws.
const ACCOUNTS: u32 = 0x00be_0001;

/// The workload, on the tables that `pgbench -i` made.
pub(crate) struct Select {
    pub(crate) rows: i64,
}

struct Selecting {
    rows: i64,
    random: Random,
    account: i64,
    statement: Option<StatementId>,
}

impl Client for Selecting {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        let text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
        self.statement = Some(session.prepare(text)?);
        Ok(())
    }

    fn next(&mut self) -> Next {
        self.account = self.random.within(1, self.rows);
        Next::at_once(0)
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let statement = self.statement.expect("prepared when connected");
        let mut checksum = 0;
        let rows = session.query(statement, &[Value::Int(self.account)], &mut |row| {
            checksum = row.int(0)? as u64;
            Ok(())
        })?;
        assert_eq!((rows, checksum), (1, 0), "every account is there, and empty");
        Ok(AttemptResult { rows, statements: 1, checksum, rolled_back: false })
    }
}

impl Workload for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn kinds(&self) -> Vec<String> {
        vec!["select".to_owned()]
    }

    fn tables(&self, _: Dialect) -> Result<Vec<Table>, SessionError> {
        Ok(Vec::new())
    }

    fn rows(&self, _: usize, _: RowSink<'_>) -> Result<(), SessionError> {
        Ok(())
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        let random = Random::new(1, ACCOUNTS, number);
        Box::new(Selecting { rows: self.rows, random, account: 1, statement: None })
    }

    fn check(&self, _: &mut dyn Session, _: Moment) -> Result<Vec<Condition>, SessionError> {
        Ok(Vec::new())
    }
}
