//! The project's own tasks: `cargo xtask setup | test | tidy | ledger | pages | bench | …`.
//!
//! Everything that CI, a newcomer and a maintainer run is this one program, so that it cannot
//! differ between them. It builds with nothing of ours: a broken crate never breaks its own test.

#![forbid(unsafe_code)]

mod answers;
mod bench;
mod checkout;
mod counts;
mod deny;
mod features;
mod fuzz;
mod guest;
mod hook;
mod ledger;
mod libraries;
mod newcomer;
mod packages;
mod pages;
mod proofs;
mod python;
mod setup;
mod stage;
mod test;
mod tidy;
mod wheels;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  setup                 list what the tests need and install what is missing (apt when root)
  test [PART …] [--help]
                        the checks of the default build, or of a part (a wing, a crate, a stage);
                        --all is what CI runs, --changed what differs from origin/main
  hook [--force]        a pre-commit hook that formats and runs tidy
  python                the wheel and the SQL module: built, installed, weighed, tested
  wheels [core] [sql]   wheels for others, x86-64 and aarch64, in target/wheels (sql: with
                        DataFusion, an hour on two CPUs)
  tidy                  the rules of the house: edges, lengths, unsafe leaves, ledger …
  features              whether adding a feature of the command would build DataFusion again
  ledger [PREFIX]       the papers' rows and where each stands: all by pillar, or one by one
  pages [book | commands [PAGE]]
                        the book of docs/ in target/pages, links checked; every command in it and in
                        the README, run (WORKAHEAD_PROGRAM names another build than the tests')
  bench [NAME]          run the benches (release) and keep what they say in bench/record/
  bench peers [--only TEXT] [--threads 1,2] [--rounds N] [--engines a,b] [--dense] [--small]
              [--python] [--phases] [--json FILE]
                        our join beside DuckDB, Polars, DataFusion, Acero and chDB
  bench build [--help]  the project's builds from nothing: wall and CPU seconds
  fuzz joins [--seconds N] [--seed S] [--case N]
                        random joins, every way of doing them, against DuckDB
  bench memory [--rounds N] [--rows N] [--limit BYTES]
                        a join in less memory than it needs, beside DataFusion's sort-merge join
  bench sql [--help]    TPC-H or TPC-DS in DataFusion, by its own joins and by ours
  bench cluster [--help]
                        TPC-H on one and two workers, beside one process
  bench lookup [--help] our hash and ordered index beside hashbrown, Boost, BTreeMap and others
  answers               TPC-H's answers in crates/execute/sql/tests anew, by DuckDB
  newcomer [COMMAND]    the README's commands, or another, on a bare Debian that debootstrap makes
                        (as root); what came of the README's is kept in bench/record/
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = Workspace::find().and_then(|workspace| match words.as_slice() {
        ["test", words @ ..] => test::run(&workspace, words),
        ["bench", "--help" | "-h"] => bench::run(&workspace, Some("--help")),
        [] | ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        ["setup"] => setup::run(test::Depth::All),
        ["hook", words @ ..] => hook::run(&workspace, words),
        ["python"] => Ok(python::run(&workspace)),
        ["wheels", names @ ..] => wheels::run(&workspace, names),
        ["tidy"] => tidy::run(&workspace),
        ["features"] => features::run(&workspace),
        ["ledger"] => ledger::summary(&workspace),
        ["ledger", prefix] => ledger::list(&workspace, prefix),
        ["pages", words @ ..] => pages::run(&workspace, words),
        ["bench"] => bench::run(&workspace, None),
        ["bench", "build", words @ ..] => bench::build::run(&workspace, words),
        ["bench", "lookup", words @ ..] => bench::lookup::run(&workspace, words),
        ["bench", "memory", words @ ..] => bench::memory::run(&workspace, words),
        ["bench", "peers", words @ ..] => bench::peers::run(&workspace, words),
        ["bench", "cluster", words @ ..] => bench::cluster::run(&workspace, words),
        ["bench", "sql", words @ ..] => bench::sql::run(&workspace, words),
        ["answers"] => answers::run(&workspace),
        ["newcomer"] => newcomer::run(&workspace, None),
        ["newcomer", command] => newcomer::run(&workspace, Some(command)),
        ["bench", name] => bench::run(&workspace, Some(name)),
        ["fuzz", "joins", words @ ..] => fuzz::joins(&workspace, words),
        other => {
            eprintln!("unknown task: {}\n\n{USAGE}", other.join(" "));
            std::process::exit(2);
        }
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
