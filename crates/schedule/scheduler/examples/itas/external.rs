//! Schedulers of other programs: this one's own loader stands for them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use workahead_scheduler::{External, Key, Observer, Remote, Roles};

use crate::guest::Length;
use crate::load::{Load, until};

/// Starts a program and stays until this process is killed.
pub(crate) fn start(program: &str, words: &[&str]) -> Result<()> {
    let external = External::start(Path::new(program), words)?;
    println!("{}", external.name());
    std::thread::sleep(Duration::from_secs(60));
    Ok(external.stop()?)
}

/// It has the tasks until it is stopped, is counted from outside, and ends with its starter; what
/// can't attach says why.
pub(crate) fn another_program(_: Length) -> Result<()> {
    let me = std::env::current_exe()?;
    let external = External::start(&me, &["run", "bonus=5ms"])?;
    ensure!(external.name().starts_with("workahead"), "it is called {}", external.name());
    let observer = Observer::attach(Key::AddressSpace, &Roles::alone())?;
    Load::start(2, &["work", "2", "1000"])?.finish()?;
    let stats = observer.stats()?;
    ensure!(stats.switches > 0 && stats.decisions == 0, "{stats}");
    drop(observer);
    external.check()?;
    external.stop()?;
    ensure!(Remote::is_vacant()?, "it was stopped and is attached");

    let external = External::start(&me, &["run", "bonus=5ms"])?;
    Load::start(1, &["stop"])?.finish()?;
    until("the kernel has the tasks again", 10, || Ok(Remote::is_vacant()?))?;
    let said = external.check().err().context("one that left is still there")?.to_string();
    ensure!(said.contains("took the tasks back"), "{said}");
    drop(external);

    let said = External::start(&me, &["run", "bonsu=5ms"]).err().context("wrong words attach")?;
    ensure!(said.to_string().contains("bonsu"), "{said}");
    let said = External::start(&me, &["work", "1", "10"]).err().context("a load schedules")?;
    ensure!(said.to_string().contains("it ended with exit status: 0"), "{said}");

    let me = me.to_str().context("a path in UTF-8")?;
    let starter = Load::start(1, &["start", me, "run", "bonus=5ms"])?;
    until("it has attached", 20, || Ok(Remote::is_running()?))?;
    // SIGKILL.
    drop(starter);
    until("the kernel has the tasks again", 20, || Ok(Remote::is_vacant()?))
}
