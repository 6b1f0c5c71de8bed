//! Our clients beside the packaged ones, on the same private server, over the same socket, doing
//! the same work: `pgbench -S -M prepared`, and `sysbench oltp_read_write`.
//!
//! A client must not be what a study measures. Blocks of four runs, theirs ours ours theirs, so
//! that a drift of the machine falls on both; a block gives one ratio of transactions a second and
//! one of the clients' CPU time for a transaction. What both say their rate is leaves connecting
//! out.

#[path = "clients/packaged.rs"]
mod packaged;
#[path = "clients/select.rs"]
mod select;

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use packaged::{Packaged, Ran, number_after};
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

/// What was asked for on the command line.
struct Asked {
    small: bool,
    json: bool,
    blocks: usize,
    seconds: f64,
}

impl Asked {
    /// `[--bench] [--json] [--blocks N] [--seconds S]`; without `--bench`, as under `cargo test`,
    /// it runs small.
    fn read() -> Asked {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let has = |name: &str| words.iter().any(|word| word == name);
        let after = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            words.get(at + 1)?.parse::<f64>().ok()
        };
        let small = !has("--bench");
        // Many short blocks: what else the machine does changes within seconds.
        let blocks = after("--blocks").map_or(if small { 1 } else { 20 }, |n| n as usize);
        let seconds = after("--seconds").unwrap_or(if small { 0.5 } else { 3.0 });
        Asked { small, json: has("--json"), blocks, seconds }
    }

    /// Sysbench and pgbench take whole seconds.
    fn theirs(&self) -> u64 {
        (self.seconds.ceil() as u64).max(1)
    }
}

fn main() {
    let asked = Asked::read();
    let directory = tempfile::tempdir().expect("a temporary directory");
    open(directory.path());
    let mut rows = Vec::new();
    let look_s = of_postgres(&asked, directory.path(), &mut rows);
    of_sysbench(&asked, directory.path(), &mut rows);
    let notes = [
        format!(
            "{} blocks of four runs of {} s each, in the order theirs, ours, ours, theirs; the \
             interval is of the paired ratios at 95 %.",
            asked.blocks,
            asked.theirs()
        ),
        "`cpu_ratio`: CPU time of the client's threads for a transaction, ours to theirs; theirs \
         includes connecting and starting the program."
            .to_owned(),
        format!(
            "In the row of a study's look `ours` reads the server's processes, the machine and \
             its pressure at both ends, and `theirs` nothing: the same clients otherwise. Both \
             looks of a run take {:.1} ms together (median), {:.2} % of one CPU's time in the run.",
            look_s * 1e3,
            look_s / asked.theirs() as f64 * 100.0
        ),
    ];
    let title = "Our clients beside the packaged ones";
    let result = json!({ "title": title, "rows": rows, "notes": notes });
    if asked.json {
        println!("{result}");
    } else {
        for row in &rows {
            println!("{row}");
        }
    }
}

/// Servers that run as another user must get there.
fn open(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory, open).expect("a directory of our own");
}

fn options(directory: &Path, settings: &[(&str, &str)]) -> Options {
    let pairs = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Options { directory: directory.to_owned(), settings: pairs.collect(), ..Options::default() }
}

/// A single row by its key, the shortest statement there is: nearly all of it is the client. How
/// many seconds a study's looks take.
fn of_postgres(asked: &Asked, directory: &Path, rows: &mut Vec<Value>) -> f64 {
    let settings = [("shared_buffers", "512MB"), ("autovacuum", "off")];
    let options = options(&directory.join("postgres"), &settings);
    let server = postgres::Server::start(&options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    server.create_database("bench").unwrap_or_else(|error| panic!("{error}"));
    let program = server.companion("pgbench").unwrap_or_else(|error| panic!("{error}"));
    let at = |words: &[&str]| -> Vec<String> {
        let run = server.directory().join("run");
        let run = run.to_string_lossy();
        let place = ["-h", &run, "-U", postgres::USER];
        place.iter().chain(words).chain(&["bench"]).map(|word| (*word).to_owned()).collect()
    };
    let scale: i64 = if asked.small { 1 } else { 10 };
    packaged::said_by(&program, &at(&["-i", "-q", "-s", &scale.to_string()]));
    let pgbench = Packaged {
        name: "pgbench -S -M prepared".to_owned(),
        program,
        words: Box::new(|clients, seconds| {
            let (clients, seconds) = (clients.to_string(), seconds.to_string());
            at(&["-n", "-S", "-M", "prepared", "-c", &clients, "-j", &clients, "-T", &seconds])
        }),
        read: |said| {
            let count = number_after(said, "number of transactions actually processed:")?;
            Some((count, number_after(said, "tps =")?))
        },
    };
    let (ours, target) = (Select { rows: scale * 100_000 }, server.target("bench"));
    for clients in [1, 8] {
        rows.push(compare(asked, &pgbench, (&ours, &target), clients));
    }
    let (row, look_s) = observed(asked, (&ours, &target), server.pids()[0]);
    rows.push(row);
    look_s
}

/// The transactions that sysbench is known for, on both servers. Commits are not flushed one by
/// one: waiting for a disk is no work of a client's.
fn of_sysbench(asked: &Asked, directory: &Path, rows: &mut Vec<Value>) {
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
    sysbench(asked, ("MariaDB", &driver), &server.target("bench"), rows);
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
    sysbench(asked, ("PostgreSQL", &driver), &server.target("bench"), rows);
}

fn sysbench(
    asked: &Asked,
    (server, driver): (&str, &[String]),
    target: &Target,
    rows: &mut Vec<Value>,
) {
    let table_rows = if asked.small { 1_000 } else { 100_000 };
    let distribution = Distribution::Uniform;
    let options =
        oltp::Options { rows: table_rows, distribution, ..oltp::Options::of(Flavour::V10) };
    let ours = Oltp::new(options).unwrap_or_else(|error| panic!("{error}"));
    fill(target, &ours, &Stop::new()).unwrap_or_else(|error| panic!("{error}"));
    let theirs = Packaged {
        name: format!("sysbench oltp_read_write, {server}"),
        program: "sysbench".into(),
        words: Box::new(|clients, seconds| {
            let mut words = vec!["oltp_read_write".to_owned(), "--tables=1".to_owned()];
            words.push(format!("--table-size={table_rows}"));
            words.push("--rand-type=uniform".to_owned());
            words.push(format!("--threads={clients}"));
            words.push(format!("--time={seconds}"));
            words.extend(driver.iter().cloned());
            words.push("run".to_owned());
            words
        }),
        read: |said| {
            let count = number_after(said, "transactions:")?;
            let rest = &said[said.find("transactions:")?..];
            Some((count, number_after(rest, "(")?))
        },
    };
    for clients in [1, 8] {
        rows.push(compare(asked, &theirs, (&ours, target), clients));
    }
}

/// One case: blocks of their runs and ours.
fn compare(
    asked: &Asked,
    theirs: &Packaged<'_>,
    (workload, target): (&dyn Workload, &Target),
    clients: u32,
) -> Value {
    let name = format!("{}, {clients} clients", theirs.name);
    let theirs = || theirs.run(clients, asked.theirs());
    blocks(asked, &name, (&theirs, &|| drive(asked, (workload, target), clients, &mut |_| {})))
}

/// Ours with everything read that a study reads, beside ours without; and how many seconds the
/// reading takes in a run.
fn observed(
    asked: &Asked,
    (workload, target): (&dyn Workload, &Target),
    server: u32,
) -> (Value, f64) {
    let clients = 8;
    let name = format!("a study's look at the server, on beside off, {clients} clients");
    let bare = || drive(asked, (workload, target), clients, &mut |_| {});
    let taken_s = RefCell::new(Vec::new());
    let seen = || {
        let (root, mut tree) = (Sysroot::live(), Tree::of(server));
        let mut looks = Vec::new();
        let mut look_s = 0.0;
        let ran = drive(asked, (workload, target), clients, &mut |_| {
            let begun = Instant::now();
            looks.push((tree.look(&root), Whole::look(&root)));
            look_s += begun.elapsed().as_secs_f64();
        });
        let [before, after] = looks.as_slice() else { panic!("two edges") };
        assert!(after.0.since(&before.0).cpu_s > 0.0);
        taken_s.borrow_mut().push(look_s);
        ran
    };
    let row = blocks(asked, &name, (&bare, &seen));
    (row, Summary::of(&taken_s.borrow(), 0).expect("runs with looks").median)
}

/// Our clients at work for the time of a run.
fn drive(
    asked: &Asked,
    (workload, connector): (&dyn Workload, &Target),
    clients: u32,
    edge: &mut dyn FnMut(Edge),
) -> Ran {
    let until = Until::Time(Duration::from_secs(asked.theirs()));
    let load = Load {
        workload,
        connector,
        clients,
        rate: None,
        warmup: Duration::ZERO,
        until,
        cpus: None,
    };
    let driven = load.drive(&Stop::new(), edge).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(driven.end, End::Done);
    let per_s = driven.per_s().expect("some time passed");
    Ran { per_s, cpu_s: driven.client_cpu_s / driven.done() as f64 }
}

/// Blocks of two arms: theirs, ours, ours, theirs.
fn blocks(
    asked: &Asked,
    name: &str,
    (theirs, ours): (&dyn Fn() -> Ran, &dyn Fn() -> Ran),
) -> Value {
    let blocks: Vec<[Ran; 4]> =
        (0..asked.blocks).map(|_| [theirs(), ours(), ours(), theirs()]).collect();
    let ratio = |of: fn(&Ran) -> f64| {
        let pairs: Vec<(f64, f64)> = blocks
            .iter()
            .map(|[a, b, c, d]| ((of(b) * of(c)).sqrt(), (of(a) * of(d)).sqrt()))
            .collect();
        Ratio::paired(&pairs).expect("rates above nothing")
    };
    let mean = |of: fn(&[Ran; 4]) -> f64| blocks.iter().map(of).sum::<f64>() / blocks.len() as f64;
    let (rate, cpu) = (ratio(|ran| ran.per_s), ratio(|ran| ran.cpu_s));
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
