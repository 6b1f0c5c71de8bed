//! Schedulers of other programs: this one's own loader stands for them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use workahead_scheduler::{External, Key, Observer, Remote, Roles};

use crate::guest::Length;
use crate::load::{Load, until};

/// Starts a program and stays until this process is killed.
pub(crate) fn start(program: &str, words: &[&str]) -> Result<()> {
    let external = External::start(Path::new(program), words, &|| false)?;
    println!("{}", external.name());
    std::thread::sleep(Duration::from_secs(60));
    Ok(external.stop()?)
}

/// It has the tasks until it is stopped, is counted from outside, and ends with its starter; what
/// can't attach says why.
pub(crate) fn another_program(_: Length) -> Result<()> {
    let me = std::env::current_exe()?;
    let external = External::start(&me, &["run", "bonus=5ms"], &|| false)?;
    ensure!(external.name().starts_with("workahead"), "it is called {}", external.name());
    let observer = Observer::attach(Key::AddressSpace, &Roles::alone())?;
    Load::start(2, &["work", "2", "1000"])?.finish()?;
    let stats = observer.stats()?;
    ensure!(stats.switches > 0 && stats.decisions == 0, "{stats}");
    drop(observer);
    external.check()?;
    external.stop()?;
    ensure!(Remote::is_vacant()?, "it was stopped and is attached");

    let external = External::start(&me, &["run", "bonus=5ms"], &|| false)?;
    Load::start(1, &["stop"])?.finish()?;
    until("the kernel has the tasks again", 10, || Ok(Remote::is_vacant()?))?;
    let said = external.check().err().context("one that left is still there")?.to_string();
    ensure!(said.contains("took the tasks back"), "{said}");
    drop(external);

    let refused = |words: &[&str], is_stopped: &dyn Fn() -> bool| {
        External::start(&me, words, is_stopped).err().map(|error| error.to_string())
    };
    let said = refused(&["run", "bonsu=5ms"], &|| false).context("wrong words attach")?;
    ensure!(said.contains("bonsu"), "{said}");
    let said = refused(&["work", "1", "10"], &|| false).context("a load schedules")?;
    ensure!(said.contains("it ended with exit status: 0"), "{said}");
    let said = refused(&["run", "bonus=5ms"], &|| true).context("an interrupted start attaches")?;
    ensure!(said.contains("was stopped before it had the tasks"), "{said}");
    ensure!(Remote::is_vacant()?, "its start was interrupted and it is attached");

    let me = me.to_str().context("a path in UTF-8")?;
    let starter = Load::start(1, &["start", me, "run", "bonus=5ms"])?;
    until("it has attached", 20, || Ok(Remote::is_running()?))?;
    // SIGKILL.
    drop(starter);
    until("the kernel has the tasks again", 20, || Ok(Remote::is_vacant()?))
}
