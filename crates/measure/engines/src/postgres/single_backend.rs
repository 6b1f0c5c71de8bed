//! PostgreSQL without its server: one backend that reads statements, prints rows and ends
//! (`postgres --single`), for tools that follow one process only.
//!
//! ```text
//! \nPostgreSQL stand-alone backend 15.18\nbackend>
//!     \t 1: avg\t(typeid = 1700, …)\n\t----\n                  the columns, once a statement
//!     \t 1: avg = "5.5"\t(typeid = 1700, …)\n\t----\n          a row; nulls are left out
//! ```
//!
//! It exits with 0 even if its statements failed, so rows are compared with the server's own.

use std::collections::BTreeMap;
use std::ffi::OsString;

use workahead_counters::instrumented::{Environment, OUTPUT_BYTES_MAX, Program, User};
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::ExplainRequest;
use workahead_workloads::session::{self, Dialect, Session, SessionError};

use super::{Connection, Server};
use crate::attach;
use crate::valgrind::CountedProgram;

/// Values by column from 1, without nulls.
type Row = BTreeMap<usize, String>;

/// A statement, ready to run in a single backend.
#[derive(Debug, Clone)]
pub(crate) struct SingleBackend {
    statement: ExplainRequest,
    program: Program,
    rows: Vec<Row>,
}

impl Server {
    /// Runs the statement on the server once, then stops it: a single backend can use its data
    /// until the next start.
    pub(crate) fn single_backend(
        &mut self,
        database: &str,
        statement: &ExplainRequest,
        stop: &Stop,
    ) -> Result<SingleBackend, EngineError> {
        let statement = checked(statement).map_err(EngineError::failed)?;
        let rows = self.rows(database, &statement, stop)?;
        self.process.stop();
        let settings = format!("config_file={}", self.home.settings().display());
        let words = ["--single".into(), "-j".into(), "-D".into(), self.home.data().into()];
        let words = words.into_iter().chain(["-c".into(), settings.into(), database.into()]);
        let mut program = Program::new(&self.program.path, words.collect::<Vec<OsString>>());
        // The server's environment: nothing of ours.
        program.environment = Environment::Only(vec![("LC_ALL".into(), "C".into())]);
        program.folder = Some("/".into());
        program.user = self.home.user().map(|user| User { uid: user.uid, gid: user.gid });
        Ok(SingleBackend { statement, program, rows })
    }

    fn rows(
        &self,
        database: &str,
        statement: &ExplainRequest,
        stop: &Stop,
    ) -> Result<Vec<Row>, EngineError> {
        let mut connection = Connection::open(&self.client(database).address).map_err(failed)?;
        statement.settings.iter().try_for_each(|text| connection.run(text)).map_err(failed)?;
        let (mut kept, mut refusal) = (KeptRows::default(), None);
        let ran = connection.query_text(&statement.text, &mut |row| {
            kept.keep(row, stop).map_err(|error| {
                refusal = Some(error);
                // The connection is given up, with the rows that it still has.
                SessionError::Gone("its rows are not read".to_owned())
            })
        });
        match refusal {
            Some(refusal) => Err(refusal),
            None => ran.map(|_| kept.rows).map_err(failed),
        }
    }
}

fn failed(error: SessionError) -> EngineError {
    EngineError::failed(format!("run the statement on the server first: {error}"))
}

/// A single backend prints more around a value.
const AROUND_VALUE_BYTES: u64 = 40;

/// The server's rows, kept as long as those of a single backend can be compared with them: of its
/// output only the beginning is there.
#[derive(Debug, Default)]
struct KeptRows {
    rows: Vec<Row>,
    /// No more than are printed.
    bytes: u64,
}

impl KeptRows {
    /// Keeps one more.
    ///
    /// # Errors
    /// When they are too many, or a stop was requested.
    fn keep(&mut self, row: session::Row<'_>, stop: &Stop) -> Result<(), EngineError> {
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let mut values = Row::new();
        self.bytes += END.len() as u64;
        for column in 0..row.columns() {
            if !row.is_null(column).map_err(failed)? {
                let value = row.text(column).map_err(failed)?;
                self.bytes += AROUND_VALUE_BYTES + value.len() as u64;
                values.insert(column + 1, value.to_owned());
            }
        }
        if self.bytes > OUTPUT_BYTES_MAX {
            return Err(EngineError::failed(format!(
                "the statement's rows are more than {} MiB as text, and can't be compared with \
                 those of a single backend: choose one with fewer, such as an aggregate of them",
                OUTPUT_BYTES_MAX >> 20
            )));
        }
        self.rows.push(values);
        Ok(())
    }
}

/// A single backend runs all as the superuser. A study's statement must be a query that an attached
/// server would be sent.
pub(crate) fn checked(statement: &ExplainRequest) -> Result<ExplainRequest, String> {
    let text = attach::check_query(&statement.text, Dialect::Postgres);
    let text = text.map_err(|says| format!("a single backend runs queries only: {says}"))?;
    // It ends statements there, in quotes too.
    match text.contains(";\n") {
        true => {
            Err("a single backend can't run a query with a semicolon before a line's end".into())
        }
        false => Ok(ExplainRequest { text, ..statement.clone() }),
    }
}

/// What a single backend reads, all of which is made before it starts.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// Refuses a statement of which `times` together are too long.
pub(crate) fn check_input(statement: &ExplainRequest, times: u64) -> Result<(), String> {
    let once = once(&statement.text).len() as u64;
    if once.saturating_mul(times) <= INPUT_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "a single backend reads {} MiB of statements at most, of this one {} times: lower \
         `queries`",
        INPUT_BYTES_MAX >> 20,
        INPUT_BYTES_MAX / once
    ))
}

/// A statement as a single backend reads it.
fn once(text: &str) -> String {
    format!("{};\n\n", text.trim().trim_end_matches(';'))
}

impl CountedProgram for SingleBackend {
    /// The backend that runs the statement `times` times.
    fn program(&self, times: u64) -> Program {
        let mut input = String::new();
        self.statement.settings.iter().for_each(|text| input += &once(text));
        (0..times).for_each(|_| input += &once(&self.statement.text));
        Program { input: input.into_bytes(), ..self.program.clone() }
    }

    /// Whether it printed the server's rows `times` times, in any order. Not checked: in which of
    /// the runs a row came, names and types of columns.
    ///
    /// # Errors
    /// Where they differ, or not all of the output was kept.
    fn check(&self, output: &[u8], errors: &str, times: u64) -> Result<(), EngineError> {
        let says = errors.lines().find(|line| line.contains("ERROR:") || line.contains("FATAL:"));
        if let Some(says) = says {
            return Err(EngineError::failed(format!(
                "the single backend reports: {}",
                says.trim()
            )));
        }
        let printed = printed(&String::from_utf8_lossy(output));
        let (statements, mut rows) = (printed.statements, printed.rows);
        let expected = (self.rows.len() as u64).saturating_mul(times);
        // The server may have many rows where a backend prints none, and `times` is the study's:
        // only as many are repeated as were printed.
        if statements == times && rows.len() as u64 == expected {
            let mut repeated: Vec<&Row> = self.rows.iter().cycle().take(rows.len()).collect();
            repeated.sort_unstable();
            rows.sort_unstable();
            if rows.iter().eq(repeated) {
                return Ok(());
            }
        }
        Err(EngineError::failed(format!(
            "the single backend printed other rows than the server's ({} in {statements} \
             statements, expected {expected} in {times}), or more than can be kept: lower \
             `queries`",
            rows.len()
        )))
    }
}

/// The output of a backend.
#[derive(Debug, Default, PartialEq)]
struct BackendOutput {
    /// Statements that have columns.
    statements: u64,
    rows: Vec<Row>,
}

const PROMPT: &str = "backend> ";
const END: &str = "\t----\n";

fn printed(output: &str) -> BackendOutput {
    let mut printed = BackendOutput::default();
    let mut parts: Vec<&str> = output.split(END).collect();
    // The prompt that nothing follows.
    parts.pop();
    for part in parts {
        let part = part.rsplit_once(PROMPT).map_or(part, |(_, part)| part);
        match row(part) {
            Some(row) => printed.rows.push(row),
            None => printed.statements += 1,
        }
    }
    printed
}

/// A row; none where it is the names of columns.
fn row(mut part: &str) -> Option<Row> {
    let mut row = Row::new();
    while let Some((column, rest)) = part.split_once(": ") {
        let (value, rest) = rest.split_once("\t(typeid = ")?;
        let (_, value) = value.split_once(" = \"")?;
        row.insert(column.trim().parse().ok()?, value.strip_suffix('"')?.to_owned());
        part = rest.split_once(")\n").map_or("", |(_, next)| next);
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use workahead_workloads::session::Value;

    use super::*;

    /// As PostgreSQL 15 prints `select 1 as a, null as b, 'x: "y"' || chr(10) || 'z' as c`, twice.
    const OUTPUT: &str = "\nPostgreSQL stand-alone backend 15.18\n\
        backend> \t 1: a\t(typeid = 23, len = 4, typmod = -1, byval = t)\n\
        \t 2: b\t(typeid = 25, len = -1, typmod = -1, byval = f)\n\
        \t 3: c\t(typeid = 25, len = -1, typmod = -1, byval = f)\n\t----\n\
        \t 1: a = \"1\"\t(typeid = 23, len = 4, typmod = -1, byval = t)\n\
        \t 3: c = \"x: \"y\"\nz\"\t(typeid = 25, len = -1, typmod = -1, byval = f)\n\t----\n\
        backend> ";

    fn single_backend(rows: Vec<Row>) -> SingleBackend {
        let statement = ExplainRequest {
            name: "one".to_owned(),
            settings: vec!["set a = 1".to_owned()],
            text: "select 1 as a;\n".to_owned(),
        };
        SingleBackend { statement, program: Program::new("postgres", ["--single"]), rows }
    }

    fn expected() -> Row {
        Row::from([(1, "1".to_owned()), (3, "x: \"y\"\nz".to_owned())])
    }

    #[test]
    fn rows_are_read_with_nulls_and_lines_in_their_values() {
        assert_eq!(printed(OUTPUT), BackendOutput { statements: 1, rows: vec![expected()] });
        assert_eq!(
            printed("\nPostgreSQL stand-alone backend 15.18\nbackend> "),
            BackendOutput::default()
        );
    }

    #[test]
    fn other_rows_and_errors_are_refused() {
        let right = single_backend(vec![expected()]);
        assert!(right.check(OUTPUT.as_bytes(), "", 1).is_ok());
        assert!(right.check(OUTPUT.as_bytes(), "", 2).is_err(), "one run of two");
        let cut = OUTPUT.as_bytes().get(..OUTPUT.len() - 40).unwrap();
        assert!(right.check(cut, "", 1).is_err(), "cut");
        let error = "x\nERROR:  relation \"t\" does not exist at character 15\n";
        let says = right.check(OUTPUT.as_bytes(), error, 1).unwrap_err().to_string();
        assert!(says.contains("\"t\" does not exist") && !says.contains('\n'), "{says}");
        let mut other = expected();
        other.insert(2, "not null".to_owned());
        let says =
            single_backend(vec![other]).check(OUTPUT.as_bytes(), "", 1).unwrap_err().to_string();
        assert!(says.contains("other rows") && !says.contains('\n'), "{says}");
        assert!(single_backend(Vec::new()).check(OUTPUT.as_bytes(), "", 1).is_err());
    }

    #[test]
    fn rows_that_were_not_printed_are_not_repeated() {
        for times in [1 << 62, u64::MAX] {
            let right = single_backend(vec![expected(); 2]);
            let says = right.check(OUTPUT.as_bytes(), "", times).unwrap_err().to_string();
            assert!(says.contains("other rows") && !says.contains('\n'), "{says}");
        }
    }

    #[test]
    fn rows_are_kept_as_long_as_they_can_be_compared() {
        let long = "x".repeat(100_000);
        for values in [&[Value::Null; 3][..], &[], &[Value::Text("")], &[Value::Text(&long)]] {
            let (mut kept, stop) = (KeptRows::default(), Stop::new());
            let mut keep = || kept.keep(session::Row::new(&values), &stop).err();
            let says = (0..OUTPUT_BYTES_MAX).find_map(|_| keep()).unwrap().to_string();
            assert!(says.contains("more than 1 MiB") && !says.contains('\n'), "{says}");
            assert!(kept.bytes < OUTPUT_BYTES_MAX + 200_000);
        }
    }

    #[test]
    fn a_stop_is_seen_between_two_rows() {
        let (mut kept, stop) = (KeptRows::default(), Stop::new());
        let values: &[Value<'_>] = &[Value::Text("a"), Value::Null];
        let row = session::Row::new(&values);
        kept.keep(row, &stop).unwrap();
        stop.request();
        assert!(matches!(kept.keep(row, &stop), Err(EngineError::Stopped)));
        assert_eq!(kept.rows, [Row::from([(1, "a".to_owned())])]);
    }

    #[test]
    fn only_queries_run_as_the_superuser() {
        let of = |text: &str| {
            let text = text.to_owned();
            checked(&ExplainRequest { name: "one".to_owned(), settings: Vec::new(), text })
        };
        assert_eq!(
            of("select sum(a) from t -- all").unwrap().text,
            "SELECT pg_catalog.sum(a) FROM t"
        );
        for text in [
            "copy (select 1) to program 'id'",
            "select lo_export(1, '/tmp/x')",
            "select set_config('session_authorization', 'default', false)",
            "select ';\n\ncopy (select 1) to program ''id'';\n\n'",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_more_is_sent_than_the_most_that_is_read() {
        let statement = single_backend(Vec::new()).statement;
        let most = INPUT_BYTES_MAX / "select 1 as a;\n\n".len() as u64;
        assert_eq!(check_input(&statement, most), Ok(()));
        for times in [most + 1, u64::MAX] {
            let says = check_input(&statement, times).unwrap_err();
            assert!(says.contains("64 MiB") && says.contains("lower `queries`"), "{says}");
            assert!(says.contains(&format!("{most} times")) && !says.contains('\n'), "{says}");
        }
    }

    #[test]
    fn settings_are_set_once_and_the_statement_repeated() {
        let input = single_backend(Vec::new()).program(2).input;
        let text = String::from_utf8(input).unwrap();
        assert_eq!(text, "set a = 1;\n\nselect 1 as a;\n\nselect 1 as a;\n\n");
    }
}
