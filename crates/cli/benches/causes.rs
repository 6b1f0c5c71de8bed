//! Planted regressions of a private PostgreSQL under pgbench, captured before and after: is the one
//! that was planted the first cause? And pairs without one: is any cause named?
//!
//! ```text
//! a load ─► capture ─► what is planted ─► capture ─► compare      each on a server of its own data
//! ```
//!
//! The quota needs root and control groups of version 1 or 2 that can be written; huge pages need
//! root. Causes that can't be planted here are named and counted as not tried.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use workahead_engines::postgres::Server;
use workahead_engines::server::{Options, Settings};
use workahead_study::engine::Stop;
use workahead_workloads::session::Session;

/// Length of a capture.
const CAPTURE_S: u64 = 36;
const SMALL_S: u64 = 12;

/// Pairs without a regression.
const NULL_PAIRS: usize = 20;

/// Transactions of the pgbench clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// One customer's orders, by an index.
    Lookup,
    /// Rows at random of a table that does not fit small buffers.
    Accounts,
    /// Changes that are committed.
    Changes,
    /// A sort of some megabytes.
    Sort,
    /// A join of two tables.
    Join,
}

impl Load {
    const ALL: [Load; 5] = [Load::Lookup, Load::Accounts, Load::Changes, Load::Sort, Load::Join];

    fn text(self) -> &'static str {
        match self {
            Load::Lookup => {
                "\\set c random(1, 2000)\nSELECT sum(total) FROM orders WHERE customer = :c;\n"
            }
            Load::Accounts => {
                "\\set a random(1, 900000)\n\
                 SELECT sum(balance) FROM accounts WHERE id BETWEEN :a AND :a + 50;\n"
            }
            Load::Changes => {
                "\\set a random(1, 900000)\n\
                 UPDATE accounts SET balance = balance + 1 WHERE id = :a;\n"
            }
            Load::Sort => {
                "SELECT count(*) FROM (SELECT DISTINCT total, id FROM orders \
                 ORDER BY total DESC, id) AS sorted;\n"
            }
            Load::Join => {
                "\\set c random(1, 1900)\nSELECT count(*), sum(balance) FROM orders \
                 JOIN accounts ON accounts.id = orders.id WHERE customer BETWEEN :c AND :c + 40;\n"
            }
        }
    }
}

/// The change between two captures.
#[derive(Debug, Clone, Copy)]
enum Plant {
    /// Nothing.
    Nothing,
    /// A statement of the database's owner.
    Statement(&'static str),
    /// Settings before and after, with a restart before each.
    Settings(&'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]),
    /// A loop that holds a lock.
    Lock,
    /// Processes that compute.
    Neighbours,
    /// Six tenths of a CPU.
    Quota,
    /// Reserved huge pages, and then none.
    HugePages,
}

struct Trial {
    name: &'static str,
    load: Load,
    plant: Plant,
    /// Words that the first cause must hold for the planted change.
    first: &'static [&'static str],
    /// Whether settings, catalogue or the kernel's files show that something was changed.
    leaves_a_trace: bool,
}

const TRIALS: [Trial; 12] = [
    Trial {
        name: "dropped index",
        load: Load::Lookup,
        plant: Plant::Statement("DROP INDEX orders_by_customer"),
        first: &["the index public.orders_by_customer of public.orders is gone"],
        leaves_a_trace: true,
    },
    Trial {
        name: "work_mem",
        load: Load::Sort,
        plant: Plant::Settings(&[("work_mem", "64MB")], &[("work_mem", "64kB")]),
        first: &["work_mem:"],
        leaves_a_trace: true,
    },
    Trial {
        name: "fsync on",
        load: Load::Changes,
        plant: Plant::Settings(&[("fsync", "off")], &[("fsync", "on")]),
        first: &["fsync:"],
        leaves_a_trace: true,
    },
    Trial {
        name: "lock held by a loop",
        load: Load::Changes,
        plant: Plant::Lock,
        first: &["locks held by nightly"],
        leaves_a_trace: false,
    },
    Trial {
        name: "quota of a control group",
        load: Load::Lookup,
        plant: Plant::Quota,
        first: &["the CPU quota of the server's control group"],
        leaves_a_trace: false,
    },
    Trial {
        name: "noisy neighbour",
        load: Load::Lookup,
        plant: Plant::Neighbours,
        first: &["other programs on the machine"],
        leaves_a_trace: false,
    },
    Trial {
        name: "noisy neighbour of changes",
        load: Load::Changes,
        plant: Plant::Neighbours,
        first: &["other programs on the machine"],
        leaves_a_trace: false,
    },
    Trial {
        name: "compiled expressions",
        load: Load::Join,
        plant: Plant::Settings(&[("jit_above_cost", "100000")], &[("jit_above_cost", "1")]),
        first: &["jit"],
        leaves_a_trace: true,
    },
    Trial {
        name: "smaller buffers",
        load: Load::Accounts,
        plant: Plant::Settings(&[("shared_buffers", "256MB")], &[("shared_buffers", "1MB")]),
        first: &["shared_buffers:"],
        leaves_a_trace: true,
    },
    Trial {
        name: "another plan by a setting",
        load: Load::Accounts,
        plant: Plant::Settings(
            &[("random_page_cost", "1.1")],
            &[("random_page_cost", "100000"), ("enable_bitmapscan", "off")],
        ),
        first: &["random_page_cost:", "enable_bitmapscan:"],
        leaves_a_trace: true,
    },
    Trial {
        name: "another plan by lost statistics",
        load: Load::Join,
        plant: Plant::Statement(
            "SET allow_system_table_mods TO on; ALTER TABLE orders ALTER customer SET STATISTICS 0; \
             DELETE FROM pg_statistic \
             WHERE starelid = 'orders'::regclass; UPDATE pg_class SET reltuples = 1, relpages = 1 \
             WHERE oid = 'accounts'::regclass",
        ),
        first: &["another plan of", "sequential scans of"],
        leaves_a_trace: false,
    },
    Trial {
        name: "huge pages off",
        load: Load::Accounts,
        plant: Plant::HugePages,
        first: &["huge_pages:", "server's reserved huge pages:", "reserved huge pages:"],
        leaves_a_trace: false,
    },
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let is_bench = words.iter().any(|word| word == "--bench");
    // Part of a name of a trial, or `null`.
    let only = std::env::var("WORKAHEAD_TRIAL").unwrap_or_default();
    if !is_bench {
        let answer = pair(&TRIALS[3], SMALL_S).expect("the lock is planted");
        // Other programs of a busy machine may be the first cause in so few seconds.
        let parts = answer["parts"].as_array().expect("parts");
        let locks = parts.iter().find(|part| part["part"] == "locks").expect("waits for locks");
        assert!(locks["after_s"].as_f64() > locks["before_s"].as_f64(), "{answer:#}");
        return;
    }
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let (mut right, mut tried, mut untraced) = (0, 0, 0);
    for trial in TRIALS.iter().filter(|trial| trial.name.contains(&only)) {
        match pair(trial, CAPTURE_S) {
            Err(why) => notes.push(format!("not tried: {}: {why}", trial.name)),
            Ok(answer) => {
                let is_right = is_first(trial, &answer);
                tried += 1;
                right += u32::from(is_right);
                untraced += u32::from(!trial.leaves_a_trace);
                rows.push(row(trial.name, Some(is_right), &answer));
            }
        }
    }
    let mut named = 0;
    let pairs = if only.is_empty() || only == "null" { NULL_PAIRS } else { 0 };
    for number in 0..pairs {
        let load = Load::ALL[number % Load::ALL.len()];
        let none = Trial {
            name: "nothing",
            load,
            plant: Plant::Nothing,
            first: &[],
            leaves_a_trace: false,
        };
        let answer = pair(&none, CAPTURE_S).expect("nothing to plant");
        let is_named = answer["is_shown"] == true;
        named += u32::from(is_named);
        rows.push(row(&format!("nothing, {load:?}"), Some(!is_named), &answer));
    }
    let of = format!("{right} of {tried} planted first, {untraced} of which leave no trace");
    notes.insert(0, of);
    notes.insert(1, format!("{named} of {pairs} pairs without one have a cause named"));
    let title = "Causes of planted regressions, found by comparing two captures";
    println!("{}", json!({ "title": title, "rows": rows, "notes": notes }));
}

fn is_first(trial: &Trial, answer: &Value) -> bool {
    let Some(says) = answer["causes"][0]["says"].as_str() else { return false };
    trial.first.iter().any(|first| says.starts_with(first))
}

fn row(name: &str, is_right: Option<bool>, answer: &Value) -> Value {
    let first = &answer["causes"][0];
    let row = json!({
        "case": name,
        "right": is_right,
        "times_as_long": answer["ratio"],
        "share": first["share"],
        "first": first["says"].as_str().unwrap_or("none"),
        "second": answer["causes"][1]["says"].as_str().unwrap_or(""),
    });
    eprintln!("{row}");
    row
}

/// A server with its data, and what runs beside it.
struct Site {
    directory: TempDir,
    server: Server,
    beside: Vec<Child>,
    undo: Vec<Box<dyn Fn()>>,
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in &mut self.beside {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.undo.iter().for_each(|undo| undo());
    }
}

/// Captures before and after, and their comparison.
fn pair(trial: &Trial, seconds: u64) -> Result<Value, String> {
    let mut site = Site::make(trial)?;
    site.load(trial.load)?;
    site.capture("before", seconds)?;
    site.plant(trial.plant)?;
    if let Plant::Settings(..) | Plant::HugePages = trial.plant {
        site.load(trial.load)?;
    }
    std::thread::sleep(Duration::from_secs(2));
    site.capture("after", seconds)?;
    let output = site
        .workahead(&["compare", "before", "after", "--json"])
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).map_err(|_| said)
}

impl Site {
    fn make(trial: &Trial) -> Result<Site, String> {
        let directory = tempfile::tempdir_in("/var/tmp").map_err(|error| error.to_string())?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.path(), mode).map_err(|error| error.to_string())?;
        let mut undo: Vec<Box<dyn Fn()>> = Vec::new();
        let settings: &[(&str, &str)] = match trial.plant {
            Plant::Settings(before, _) => before,
            Plant::HugePages => {
                set("/proc/sys/vm/nr_hugepages", "220")?;
                undo.push(Box::new(|| {
                    let _ = set("/proc/sys/vm/nr_hugepages", "0");
                }));
                &[("huge_pages", "on")]
            }
            _ => &[],
        };
        let server = Server::start(&options(directory.path(), settings), &Stop::new())
            .map_err(|error| error.to_string())?;
        let mut owner = server.connect("postgres").map_err(|error| error.to_string())?;
        for text in ["CREATE DATABASE shop", "CREATE ROLE ada LOGIN"] {
            owner.run(text).map_err(|error| error.to_string())?;
        }
        owner.run("GRANT pg_read_all_stats, pg_read_all_data TO ada").map_err(|e| e.to_string())?;
        let mut owner = server.connect("shop").map_err(|error| error.to_string())?;
        for text in [
            "CREATE TABLE orders AS SELECT i AS id, i % 2000 AS customer, (i * 7919) % 100003 AS \
             total FROM generate_series(1, 60000) AS i",
            "CREATE INDEX orders_by_customer ON orders (customer)",
            "CREATE TABLE accounts AS SELECT i AS id, 0 AS balance, repeat('x', 60) AS filler \
             FROM generate_series(1, 900000) AS i",
            "ALTER TABLE accounts ADD PRIMARY KEY (id)",
            "VACUUM ANALYZE",
            "CHECKPOINT",
        ] {
            owner.run(text).map_err(|error| error.to_string())?;
        }
        Ok(Site { directory, server, beside: Vec::new(), undo })
    }

    /// Clients of pgbench, until the site goes.
    fn load(&mut self, load: Load) -> Result<(), String> {
        let script = self.directory.path().join("load.sql");
        fs::write(&script, load.text()).map_err(|error| error.to_string())?;
        let pgbench = self.server.companion("pgbench").map_err(|error| error.to_string())?;
        let child = self
            .client(pgbench)
            .args(["--no-vacuum", "--client=3", "--jobs=1", "--time=100000", "--file"])
            .arg(&script)
            .arg("shop")
            .spawn();
        self.beside.push(child.map_err(|error| error.to_string())?);
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    }

    /// A client program of this server, for its superuser.
    fn client(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.arg(format!("--host={}", self.socket())).arg("--username=workahead");
        command
    }

    fn socket(&self) -> String {
        use workahead_engines::address::Place;
        match self.server.address("shop").place {
            Place::Socket(path) => {
                path.parent().map(|at| at.display().to_string()).unwrap_or_default()
            }
            Place::Host(..) => String::new(),
        }
    }

    fn workahead(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_workahead"));
        command.args(arguments).current_dir(self.directory.path());
        command
    }

    fn capture(&self, out: &str, seconds: u64) -> Result<(), String> {
        let url = format!("postgres://ada@/shop?host={}", self.socket());
        let time = format!("{seconds}s");
        let arguments = ["capture", "--attach", &url, "--for", &time, "--out", out, "--json"];
        let output = self.workahead(&arguments).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn plant(&mut self, plant: Plant) -> Result<(), String> {
        match plant {
            Plant::Nothing => Ok(()),
            Plant::Statement(text) => {
                let mut owner = self.server.connect("shop").map_err(|error| error.to_string())?;
                text.split("; ").try_for_each(|text| owner.run(text)).map_err(|e| e.to_string())
            }
            Plant::Settings(_, after) => self.restart(after),
            Plant::HugePages => self.restart(&[("huge_pages", "off")]),
            Plant::Lock => {
                let script = self.directory.path().join("lock.sql");
                let text = "BEGIN;\nLOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE;\n\
                            \\sleep 40 ms\nCOMMIT;\n\\sleep 10 ms\n";
                fs::write(&script, text).map_err(|error| error.to_string())?;
                let pgbench = self.server.companion("pgbench").map_err(|e| e.to_string())?;
                let mut command = self.client(pgbench);
                command.env("PGAPPNAME", "nightly");
                command.args(["--no-vacuum", "--time=100000", "--file"]);
                self.beside
                    .push(command.arg(script).arg("shop").spawn().map_err(|e| e.to_string())?);
                Ok(())
            }
            Plant::Neighbours => {
                for _ in 0..2 {
                    let mut command = Command::new("sh");
                    let child = command.args(["-c", "while :; do :; done"]).spawn();
                    self.beside.push(child.map_err(|error| error.to_string())?);
                }
                Ok(())
            }
            Plant::Quota => self.limit(),
        }
    }

    fn restart(&mut self, settings: &[(&str, &str)]) -> Result<(), String> {
        let options = options(self.directory.path(), settings);
        for mut child in self.beside.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.server.restart(&options, &Stop::new()).map_err(|error| error.to_string())?;
        let mut owner = self.server.connect("shop").map_err(|error| error.to_string())?;
        // As warm as before.
        for text in ["SELECT count(*) FROM accounts", "SELECT count(*) FROM orders"] {
            owner.run(text).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Puts the server's processes into a group of their own with six tenths of a CPU.
    fn limit(&mut self) -> Result<(), String> {
        let group = Path::new("/sys/fs/cgroup/cpu").join(format!("causes-{}", std::process::id()));
        fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
        let at = |name: &str| group.join(name).display().to_string();
        set(&at("cpu.cfs_period_us"), "100000")?;
        set(&at("cpu.cfs_quota_us"), "60000")?;
        let procs = at("cgroup.procs");
        let begun = Instant::now();
        // Those that are forked meanwhile too.
        while begun.elapsed() < Duration::from_millis(300) {
            for pid in self.server.pids() {
                let _ = set(&procs, &pid.to_string());
            }
        }
        self.undo.push(Box::new(move || {
            let _ = set(&format!("{}/cpu.cfs_quota_us", group.display()), "-1");
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines() {
                let _ = set("/sys/fs/cgroup/cpu/cgroup.procs", pid);
            }
            let _ = fs::remove_dir(&group);
        }));
        Ok(())
    }
}

fn set(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("{path}: {error}"))
}

fn options(directory: &Path, settings: &[(&str, &str)]) -> Options {
    let mut all: Settings =
        [("shared_buffers", "256MB"), ("jit_above_cost", "100000"), ("autovacuum", "off")]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Options { directory: directory.join("server"), settings: all, ..Options::default() }
}
