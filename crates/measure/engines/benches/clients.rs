//! Our clients beside the packaged ones, on the same private server, over the same socket, doing
//! the same work: `pgbench -S -M prepared`, and `sysbench oltp_read_write`.
//!
//! A client must not be what a study measures. Blocks of four runs, theirs ours ours theirs, so
//! that a drift of the machine falls on both; a block gives one ratio of transactions a second and
//! one of the clients' CPU time for a transaction. Both rates leave connecting out.

#[path = "clients/packaged.rs"]
mod packaged;
#[path = "clients/select.rs"]
mod select;

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use packaged::{PackagedClient, RunResult, number_after};
use select::Select;
use serde_json::{Value, json};
use workahead_engines::attach::Target;
use workahead_engines::fill::fill;
use workahead_engines::load::{Edge, End, Load, Until};
use workahead_engines::server::Options;
use workahead_engines::{mariadb, postgres};
use workahead_machine::Sysroot;
use workahead_machine::process::Tree;
use workahead_machine::process::machine_wide::Whole;
use workahead_study::engine::Stop;
use workahead_study::statistics::{Ratio, Summary};
use workahead_workloads::client::Workload;
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::distribution::Distribution;
use workahead_workloads::sysbench::oltp::{self, Oltp};

/// The command line.
struct Arguments {
    small: bool,
    json: bool,
    blocks: usize,
    seconds: f64,
}

impl Arguments {
    /// `[--bench] [--json] [--blocks N] [--seconds S]`; without `--bench`, as under `cargo test`,
    /// it runs small.
    fn read() -> Arguments {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let has = |name: &str| arguments.iter().any(|word| word == name);
        let after = |name: &str| {
            let at = arguments.iter().position(|word| word == name)?;
            arguments.get(at + 1)?.parse::<f64>().ok()
        };
        let small = !has("--bench");
        // Many short blocks: the machine's other load changes within seconds.
        let blocks = after("--blocks").map_or(if small { 1 } else { 20 }, |n| n as usize);
        let seconds = after("--seconds").unwrap_or(if small { 0.5 } else { 3.0 });
        Arguments { small, json: has("--json"), blocks, seconds }
    }

    fn clients(&self) -> Vec<u32> {
        if self.small { vec![1] } else { vec![1, 8] }
    }

    /// Sysbench and pgbench take whole seconds.
    fn theirs(&self) -> u64 {
        (self.seconds.ceil() as u64).max(1)
    }
}

fn main() {
    let arguments = Arguments::read();
    let directory = tempfile::tempdir().expect("a temporary directory");
    open(directory.path());
    let mut rows = Vec::new();
    let reading_s = of_postgres(&arguments, directory.path(), &mut rows);
    of_sysbench(&arguments, directory.path(), &mut rows);
    let notes = [
        format!(
            "{} blocks of four runs of {} s each, in the order theirs, ours, ours, theirs; the \
             interval is of the paired ratios at 95 %.",
            arguments.blocks,
            arguments.theirs()
        ),
        "`cpu_ratio`: CPU time of the client's threads for a transaction, ours to theirs; theirs \
         includes connecting and starting the program."
            .to_owned(),
        format!(
            "In the row of a study's readings `ours` reads the server's processes, the machine and \
             its pressure at both ends, and `theirs` nothing: the same clients otherwise. Both \
             readings of a run take {:.1} ms together (median), {:.2} % of one CPU's time in it.",
            reading_s * 1e3,
            reading_s / arguments.theirs() as f64 * 100.0
        ),
    ];
    let title = "Our clients beside the packaged ones";
    let result = json!({ "title": title, "rows": rows, "notes": notes });
    if arguments.json {
        println!("{result}");
    } else {
        for row in &rows {
            println!("{row}");
        }
    }
}

/// Lets servers that run as another user enter the directory.
fn open(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory, open).expect("a directory of our own");
}

fn options(directory: &Path, settings: &[(&str, &str)]) -> Options {
    let pairs = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Options { directory: directory.to_owned(), settings: pairs.collect(), ..Options::default() }
}

/// A single row by its key, the shortest statement: nearly all client time. Returns the seconds
/// that a study's readings take.
fn of_postgres(arguments: &Arguments, directory: &Path, rows: &mut Vec<Value>) -> f64 {
    let settings = [("shared_buffers", "512MB"), ("autovacuum", "off")];
    let options = options(&directory.join("postgres"), &settings);
    let server = postgres::Server::start(&options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    server.create_database("bench").unwrap_or_else(|error| panic!("{error}"));
    let program = server.companion("pgbench").unwrap_or_else(|error| panic!("{error}"));
    let at = |arguments: &[&str]| -> Vec<String> {
        let run = server.directory().join("run");
        let run = run.to_string_lossy();
        let place = ["-h", &run, "-U", postgres::USER];
        place.iter().chain(arguments).chain(&["bench"]).map(|word| (*word).to_owned()).collect()
    };
    let scale: i64 = if arguments.small { 1 } else { 10 };
    packaged::output_of(&program, &at(&["-i", "-q", "-s", &scale.to_string()]));
    let pgbench = PackagedClient {
        name: "pgbench -S -M prepared".to_owned(),
        program,
        arguments: Box::new(|clients, seconds| {
            let (clients, seconds) = (clients.to_string(), seconds.to_string());
            at(&["-n", "-S", "-M", "prepared", "-c", &clients, "-j", &clients, "-T", &seconds])
        }),
        read: |output| {
            let count = number_after(output, "number of transactions actually processed:")?;
            Some((count, number_after(output, "tps =")?))
        },
    };
    let (ours, target) = (Select { rows: scale * 100_000 }, server.target("bench"));
    for clients in arguments.clients() {
        let ours = OurClients { workload: &ours, target: &target, clients };
        rows.push(compare(arguments, &pgbench, &ours));
    }
    let ours = OurClients { workload: &ours, target: &target, clients: 8 };
    let (row, reading_s) = observed(arguments, &ours, server.pids()[0]);
    rows.push(row);
    reading_s
}

/// sysbench's read-write transactions on both servers. Commits are not flushed one by one: the wait
/// for a disk is not client time.
fn of_sysbench(arguments: &Arguments, directory: &Path, rows: &mut Vec<Value>) {
    let stop = Stop::new();
    let unflushed = [("innodb_buffer_pool_size", "512M"), ("innodb_flush_log_at_trx_commit", "0")];
    let server = mariadb::Server::start(&options(&directory.join("mariadb"), &unflushed), &stop)
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("bench").unwrap_or_else(|error| panic!("{error}"));
    let socket = server.directory().join("run").join(mariadb::SOCKET);
    let driver = [
        "--db-driver=mysql".to_owned(),
        format!("--mysql-socket={}", socket.display()),
        format!("--mysql-user={}", mariadb::USER),
        "--mysql-db=bench".to_owned(),
    ];
    let target = server.target("bench");
    sysbench(arguments, &SysbenchServer { name: "MariaDB", driver: &driver, target }, rows);
    drop(server);
    let unflushed = [("shared_buffers", "512MB"), ("synchronous_commit", "off")];
    let server = postgres::Server::start(&options(&directory.join("unflushed"), &unflushed), &stop)
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("bench").unwrap_or_else(|error| panic!("{error}"));
    let driver = [
        "--db-driver=pgsql".to_owned(),
        format!("--pgsql-host={}", server.directory().join("run").display()),
        format!("--pgsql-user={}", postgres::USER),
        "--pgsql-db=bench".to_owned(),
    ];
    let target = server.target("bench");
    sysbench(arguments, &SysbenchServer { name: "PostgreSQL", driver: &driver, target }, rows);
}

/// How sysbench connects to a server.
struct SysbenchServer<'a> {
    name: &'a str,
    driver: &'a [String],
    target: Target,
}

fn sysbench(arguments: &Arguments, server: &SysbenchServer<'_>, rows: &mut Vec<Value>) {
    let SysbenchServer { name: server, driver, target } = server;
    let table_rows = if arguments.small { 1_000 } else { 100_000 };
    let distribution = Distribution::Uniform;
    let options =
        oltp::Options { rows: table_rows, distribution, ..oltp::Options::of(Flavour::V10) };
    let ours = Oltp::new(options).unwrap_or_else(|error| panic!("{error}"));
    fill(target, &ours, &Stop::new()).unwrap_or_else(|error| panic!("{error}"));
    let theirs = PackagedClient {
        name: format!("sysbench oltp_read_write, {server}"),
        program: "sysbench".into(),
        arguments: Box::new(|clients, seconds| {
            let mut arguments = vec!["oltp_read_write".to_owned(), "--tables=1".to_owned()];
            arguments.push(format!("--table-size={table_rows}"));
            arguments.push("--rand-type=uniform".to_owned());
            arguments.push(format!("--threads={clients}"));
            arguments.push(format!("--time={seconds}"));
            arguments.extend(driver.iter().cloned());
            arguments.push("run".to_owned());
            arguments
        }),
        read: |output| {
            let count = number_after(output, "transactions:")?;
            let rest = &output[output.find("transactions:")?..];
            Some((count, number_after(rest, "(")?))
        },
    };
    for clients in arguments.clients() {
        rows.push(compare(arguments, &theirs, &OurClients { workload: &ours, target, clients }));
    }
}

/// Our clients of a workload on a server.
struct OurClients<'a> {
    workload: &'a dyn Workload,
    target: &'a Target,
    clients: u32,
}

/// One case: blocks of their runs and ours.
fn compare(arguments: &Arguments, theirs: &PackagedClient<'_>, ours: &OurClients<'_>) -> Value {
    let clients = ours.clients;
    let name = format!("{}, {clients} clients", theirs.name);
    let arms = Arms {
        theirs: &|| theirs.run(clients, arguments.theirs()),
        ours: &|| ours.run(arguments, &mut |_| {}),
    };
    blocks(arguments, &name, &arms)
}

/// Our clients with a study's readings of the server, and without; and the seconds of a run's
/// readings.
fn observed(arguments: &Arguments, ours: &OurClients<'_>, server: u32) -> (Value, f64) {
    let name =
        format!("a study's readings of the server, with and without, {} clients", ours.clients);
    let bare = || ours.run(arguments, &mut |_| {});
    let reading_times_s = RefCell::new(Vec::new());
    let read = || {
        let (root, mut tree) = (Sysroot::live(), Tree::of(server));
        let mut readings = Vec::new();
        let mut reading_s = 0.0;
        let result = ours.run(arguments, &mut |_| {
            let begun = Instant::now();
            readings.push((tree.look(&root), Whole::look(&root)));
            reading_s += begun.elapsed().as_secs_f64();
        });
        let [before, after] = readings.as_slice() else { panic!("two edges") };
        assert!(after.0.since(&before.0).cpu_s > 0.0);
        reading_times_s.borrow_mut().push(reading_s);
        result
    };
    let row = blocks(arguments, &name, &Arms { theirs: &bare, ours: &read });
    (row, Summary::of(&reading_times_s.borrow(), 0).expect("runs with readings").median)
}

impl OurClients<'_> {
    /// Our clients at work for the time of a run.
    fn run(&self, arguments: &Arguments, edge: &mut dyn FnMut(Edge)) -> RunResult {
        let load = Load {
            workload: self.workload,
            connector: self.target,
            clients: self.clients,
            rate: None,
            warmup: Duration::ZERO,
            until: Until::Time(Duration::from_secs(arguments.theirs())),
            cpus: None,
        };
        let result = load.drive(&Stop::new(), edge).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result.end, End::Done);
        let per_s = result.per_s().expect("some time passed");
        RunResult { per_s, cpu_s: result.client_cpu_s / result.done() as f64 }
    }
}

/// The two arms of a comparison.
struct Arms<'a> {
    theirs: &'a dyn Fn() -> RunResult,
    ours: &'a dyn Fn() -> RunResult,
}

/// Blocks of two arms: theirs, ours, ours, theirs.
fn blocks(arguments: &Arguments, name: &str, arms: &Arms<'_>) -> Value {
    let Arms { theirs, ours } = arms;
    let blocks: Vec<[RunResult; 4]> =
        (0..arguments.blocks).map(|_| [theirs(), ours(), ours(), theirs()]).collect();
    let ratio = |of: fn(&RunResult) -> f64| {
        let pairs: Vec<(f64, f64)> = blocks
            .iter()
            .map(|[a, b, c, d]| ((of(b) * of(c)).sqrt(), (of(a) * of(d)).sqrt()))
            .collect();
        Ratio::paired(&pairs).expect("rates above nothing")
    };
    let mean =
        |of: fn(&[RunResult; 4]) -> f64| blocks.iter().map(of).sum::<f64>() / blocks.len() as f64;
    let (rate, cpu) = (ratio(|run| run.per_s), ratio(|run| run.cpu_s));
    json!({
        "case": name,
        "ours_per_s": mean(|block| f64::midpoint(block[1].per_s, block[2].per_s)),
        "theirs_per_s": mean(|block| f64::midpoint(block[0].per_s, block[3].per_s)),
        "ratio": rate.ratio,
        "ratio_low": rate.interval.map(|interval| interval.low),
        "ratio_high": rate.interval.map(|interval| interval.high),
        "cpu_ratio": cpu.ratio,
        "cpu_ratio_high": cpu.interval.map(|interval| interval.high),
        "ours_cpu_us": mean(|block| f64::midpoint(block[1].cpu_s, block[2].cpu_s)) * 1e6,
        "theirs_cpu_us": mean(|block| f64::midpoint(block[0].cpu_s, block[3].cpu_s)) * 1e6,
    })
}
