//! What must hold of the scheduler, tried where a broken kernel costs nothing.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workahead_machine::Machine;
use workahead_scheduler::{Bonus, Remote, Roles, Scheduler, Settings, Stats};

pub(crate) fn test() -> Result<()> {
    smoke()
}

pub(crate) fn test_only(_name: &str) -> Result<()> {
    smoke()
}

fn smoke() -> Result<()> {
    let start = Instant::now();
    let roles = Roles::whole_machine(&Machine::here())?;
    let settings = Settings { survey: true, ..Settings::default() };
    let scheduler = Scheduler::attach(&settings, &roles)?;
    println!("attached in {:?}", start.elapsed());
    for program in Remote::verified() {
        println!("{} {}", program.name, program.instructions);
    }
    for bonus in [0, 50_000_000, 0, 50_000_000] {
        scheduler.remote().set(&Settings { bonus: Bonus::Ns(bonus), ..settings })?;
        let stats = under_load(&scheduler, 2, 2, Duration::from_secs(3))?;
        println!("bonus {bonus}: {}", crate::line(&stats));
    }
    println!("{:?}", scheduler.stop()?);
    ensure!(!Remote::is_running()?);
    Ok(())
}

fn ourselves(words: &[&str]) -> Result<Child> {
    let me = std::env::current_exe().context("this program")?;
    Command::new(me).args(words).stdout(Stdio::null()).spawn().context("starting the load")
}

fn under_load(
    scheduler: &Scheduler,
    processes: usize,
    threads: usize,
    time: Duration,
) -> Result<Stats> {
    let (threads, ms) = (threads.to_string(), (time.as_millis() + 1500).to_string());
    let children: Result<Vec<Child>> =
        (0..processes).map(|_| ourselves(&["work", &threads, &ms])).collect();
    let mut children = children?;
    std::thread::sleep(Duration::from_secs(1));
    let before = scheduler.remote().stats()?;
    std::thread::sleep(time);
    let stats = scheduler.remote().stats()?.since(&before);
    for child in &mut children {
        ensure!(child.wait()?.success(), "the load failed");
    }
    Ok(stats)
}
