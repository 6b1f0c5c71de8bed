//! sysbench's OLTP program on real servers, and the packaged sysbench on our tables: its counters
//! are the same as ours.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use workahead_engines::attach::Target;
use workahead_engines::fill::fill;
use workahead_engines::load::{End, Load, Until};
use workahead_engines::{mariadb, postgres};
use workahead_machine::pages::Pages;
use workahead_study::engine::Stop;
use workahead_workloads::client::{Moment, Outcome, Workload};
use workahead_workloads::session::{Session, first};
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::memory::{self, Access, BetweenBlocks, Operation, Scope};
use workahead_workloads::sysbench::oltp::{Counts, Oltp, Options, Script};

use crate::shared;

fn whole(workload: &Oltp, target: &Target) {
    let mut connection = target.connect().unwrap();
    for condition in workload.check(connection.session(), Moment::Drained).unwrap() {
        assert_eq!(condition.outcome, Outcome::Holds, "{condition:?}");
    }
}

/// Few rows, so that replacements race.
fn transactions_leave_the_table_whole(target: &Target, flavour: Flavour) {
    let tables = if flavour == Flavour::V10 { 2 } else { 1 };
    let options = Options { rows: 200, tables, ..Options::of(flavour) };
    let workload = Oltp::new(options).unwrap();
    fill(target, &workload, &Stop::new()).unwrap_or_else(|error| panic!("{error}"));
    whole(&workload, target);
    for script in [Script::ReadWrite, Script::ReadOnly, Script::PointSelect] {
        let workload = Oltp::new(Options { script, ..options }).unwrap();
        let load = Load {
            workload: &workload,
            connector: target,
            clients: 4,
            rate: None,
            warmup: Duration::ZERO,
            until: Until::Count(200),
            cpus: None,
        };
        let driven =
            load.drive(&Stop::new(), &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((driven.done(), driven.end.clone()), (200, End::Done));
        let sent = 200 * u64::from(workload.counts().total());
        assert_eq!(driven.kinds[0].statements, sent);
        whole(&workload, target);
    }
}

#[test]
fn both_forms_leave_their_tables_whole_on_both_servers() {
    let (postgres, mariadb) = (shared::postgres(), shared::mariadb());
    for flavour in [Flavour::V04, Flavour::V10] {
        let name = format!("oltp_{}", flavour.name().replace('.', "_"));
        postgres.create_database(&name).unwrap();
        transactions_leave_the_table_whole(&postgres.target(&name), flavour);
        mariadb.create_database(&name).unwrap();
        transactions_leave_the_table_whole(&mariadb.target(&name), flavour);
    }
}

/// The output of the packaged program.
fn sysbench(words: &[&str]) -> String {
    let output = Command::new("sysbench").args(words).output();
    let output = output.unwrap_or_else(|error| {
        panic!("sysbench can't be started ({error}): install it with `apt-get install sysbench`")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The number after a label.
fn number(text: &str, words: &str) -> u64 {
    let after = text.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {text}")).1;
    let digits = after.trim_start().split(|next: char| !next.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn the_packaged_program_runs_on_our_tables_and_counts_as_we_do() {
    let server = shared::postgres();
    server.create_database("packaged").unwrap();
    let options = Options { rows: 1_000, ..Options::of(Flavour::V10) };
    let workload = Oltp::new(options).unwrap();
    let target = server.target("packaged");
    fill(&target, &workload, &Stop::new()).unwrap();
    let address = &target.address;
    let workahead_engines::address::Place::Socket(socket) = &address.place else {
        panic!("{address:?}")
    };
    let host = socket.parent().map(Path::display).unwrap();
    for (script, name) in [
        (Script::ReadWrite, "oltp_read_write"),
        (Script::ReadOnly, "oltp_read_only"),
        (Script::PointSelect, "oltp_point_select"),
    ] {
        let text = sysbench(&[
            name,
            "--db-driver=pgsql",
            &format!("--pgsql-host={host}"),
            &format!("--pgsql-port={}", postgres::PORT),
            &format!("--pgsql-user={}", postgres::USER),
            "--pgsql-db=packaged",
            "--table-size=1000",
            "--threads=1",
            "--events=50",
            "--time=0",
            "run",
        ]);
        let counts = Oltp::new(Options { script, ..options }).unwrap().counts();
        let Counts { read, write, other } = counts;
        for (words, count) in [("read:", read), ("write:", write), ("other:", other)] {
            assert_eq!(number(&text, words), 50 * u64::from(count), "{name} {words} {text}");
        }
    }
    whole(&workload, &target);
}

/// The server's own counts of the statements of a transaction.
const STATEMENTS: [&str; 6] =
    ["COM_SELECT", "COM_UPDATE", "COM_DELETE", "COM_INSERT", "COM_BEGIN", "COM_COMMIT"];

fn counted(server: &mariadb::Server) -> [i64; 6] {
    let mut session = server.connect("").unwrap();
    STATEMENTS.map(|name| {
        let of = "select cast(variable_value as signed) from information_schema.global_status";
        let statement = session.prepare(&format!("{of} where variable_name = '{name}'")).unwrap();
        first(&mut session, statement, &[], |row| row.int(0)).unwrap().unwrap()
    })
}

/// The server's counts of a hundred additional transactions: those of connecting and reading are in
/// both runs, and cancel out.
fn of_a_hundred(server: &mariadb::Server, run: impl Fn(u64)) -> [i64; 6] {
    let of = |transactions| {
        let before = counted(server);
        run(transactions);
        let after = counted(server);
        [0, 1, 2, 3, 4, 5].map(|at: usize| after[at] - before[at])
    };
    let (few, many) = (of(50), of(150));
    [0, 1, 2, 3, 4, 5].map(|at: usize| many[at] - few[at])
}

#[test]
fn mariadb_counts_the_same_statements_for_us_and_for_the_packaged_program() {
    let directory = shared::directory();
    let server_options = shared::options(directory.path());
    let server =
        mariadb::Server::start(&server_options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    server.create_database("packaged").unwrap();
    let options = Options { rows: 1_000, ..Options::of(Flavour::V10) };
    let target = server.target("packaged");
    fill(&target, &Oltp::new(options).unwrap(), &Stop::new()).unwrap();
    let workahead_engines::address::Place::Socket(socket) = &target.address.place else {
        panic!("{target:?}")
    };
    for (script, name) in [
        (Script::ReadWrite, "oltp_read_write"),
        (Script::ReadOnly, "oltp_read_only"),
        (Script::PointSelect, "oltp_point_select"),
    ] {
        let workload = Oltp::new(Options { script, ..options }).unwrap();
        let ours = of_a_hundred(&server, |transactions| {
            let load = Load {
                workload: &workload,
                connector: &target,
                clients: 1,
                rate: None,
                warmup: Duration::ZERO,
                until: Until::Count(transactions),
                cpus: None,
            };
            assert_eq!(load.drive(&Stop::new(), &mut |_| {}).unwrap().done(), transactions);
        });
        let theirs = of_a_hundred(&server, |transactions| {
            sysbench(&[
                name,
                "--db-driver=mysql",
                &format!("--mysql-socket={}", socket.display()),
                &format!("--mysql-user={}", mariadb::USER),
                "--mysql-db=packaged",
                "--table-size=1000",
                "--threads=1",
                &format!("--events={transactions}"),
                "--time=0",
                "run",
            ]);
        });
        assert_eq!(ours, theirs, "{name}: {STATEMENTS:?}");
        let Counts { read, write, other } = workload.counts();
        let [selects, updates, deletes, inserts, begins, commits] = ours;
        let sums = [selects, updates + deletes + inserts, begins + commits];
        assert_eq!(sums, [read, write, other].map(|count| 100 * i64::from(count)), "{name}");
    }
    whole(&Oltp::new(options).unwrap(), &target);
}

#[test]
fn the_memory_program_makes_as_many_passes_as_the_packaged_one() {
    let options = memory::Options {
        flavour: Flavour::V10,
        threads: 2,
        block_bytes: 4 << 10,
        total_bytes: 10 << 20,
        scope: Scope::Global,
        operation: Operation::Read,
        access: Access::Sequential,
        between: BetweenBlocks::GoOn,
        pages: Pages::Small,
        seed: 1,
    };
    let ran = memory::run(&options, &AtomicBool::new(false)).unwrap();
    let text = sysbench(&[
        "memory",
        "--memory-block-size=4K",
        "--memory-total-size=10M",
        "--memory-oper=read",
        "--threads=2",
        "run",
    ]);
    assert_eq!(number(&text, "Total operations:"), ran.passes.iter().sum::<u64>());
}
