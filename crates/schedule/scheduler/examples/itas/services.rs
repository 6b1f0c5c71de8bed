//! Services beside each other: tags, weights and quotas of control groups.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use workahead_scheduler::{Key, Service, Settings};

use crate::guest::{attach_with, paper_settings, plain};
use crate::load::{Load, look, until};

pub(crate) const ROOT: &str = "/sys/fs/cgroup";

/// A control group with the cpu controller; removed when dropped.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    pub(crate) fn new(above: &Path, name: &str) -> Result<Self> {
        std::fs::write(above.join("cgroup.subtree_control"), "+cpu")
            .context("the kernel has no cpu controller")?;
        let folder = above.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn set(&self, file: &str, value: &str) -> Result<()> {
        std::fs::write(self.0.join(file), value).with_context(|| format!("{file} = {value}"))
    }

    /// Starts this program in it, on one CPU.
    pub(crate) fn start(&self, words: &[&str]) -> Result<Load> {
        let me = std::env::current_exe()?;
        let me = me.to_str().context("a path in UTF-8")?;
        let procs = self.0.join("cgroup.procs");
        let enter = format!("echo $$ > {} && exec \"$@\"", procs.display());
        let pinned = ["sh", "-c", &enter, "sh", "taskset", "4", me];
        Load::commands(1, &[&pinned[..], words].concat())
    }

    /// CPU time that its threads have used, seconds.
    fn used_s(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(self.0.join("cpu.stat"))?;
        let usec = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        Ok(usec.context("cpu.stat")?.trim().parse::<f64>()? / 1e6)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let gone = || Ok(std::fs::remove_dir(&self.0).is_ok());
        let _ = until("the control group is gone", 5, gone);
    }
}

/// CPU seconds that groups use in a time.
fn used(groups: &[&Cgroup], ms: u64) -> Result<Vec<f64>> {
    let read = || groups.iter().map(|group| group.used_s()).collect::<Result<Vec<f64>>>();
    let before = read()?;
    std::thread::sleep(std::time::Duration::from_millis(ms));
    Ok(read()?.iter().zip(before).map(|(now, before)| now - before).collect())
}

pub(crate) fn cgroup_weights(_: crate::guest::Length) -> Result<()> {
    let scheduler = attach_with(&plain(paper_settings()))?;
    let root = Path::new(ROOT);
    let groups = [("light", "100"), ("middle", "200"), ("heavy", "800")];
    let groups: Vec<Cgroup> = groups
        .iter()
        .map(|(name, weight)| {
            let group = Cgroup::new(root, name)?;
            group.set("cpu.weight", weight)?;
            Ok(group)
        })
        .collect::<Result<_>>()?;
    // A group that has more threads has no more time, nor has one that is nested.
    let inner = Cgroup::new(&groups[2].0, "inner")?;
    let loads = [
        groups[0].start(&["work", "1", "12000", "100"])?,
        groups[0].start(&["work", "1", "12000", "100"])?,
        groups[1].start(&["work", "1", "12000", "100"])?,
        inner.start(&["work", "1", "12000", "100"])?,
    ];
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let times = used(&groups.iter().collect::<Vec<_>>(), 8000)?;
    let all: f64 = times.iter().sum();
    let shares: Vec<f64> = times.iter().map(|time| time / all).collect();
    println!("  1:2:8 by weight get {shares:.3?} of {all:.2} s (0.091, 0.182, 0.727)");
    for (share, due) in shares.iter().zip([1.0 / 11.0, 2.0 / 11.0, 8.0 / 11.0]) {
        ensure!((share - due).abs() <= 0.03, "a share of {share:.3}, due is {due:.3}");
    }
    drop(loads);
    drop(scheduler);
    Ok(())
}

pub(crate) fn quotas(_: crate::guest::Length) -> Result<()> {
    let scheduler = attach_with(&plain(paper_settings()))?;
    let above = Cgroup::new(Path::new(ROOT), "quarter")?;
    let group = Cgroup::new(&above.0, "inner")?;
    above.set("cpu.max", "25000 100000")?;
    let load = group.start(&["work", "2", "14000", "100"])?;
    std::thread::sleep(std::time::Duration::from_millis(1000));
    let quarter = used(&[&group], 4000)?[0] / 4.0;
    // Changed while it is used up.
    above.set("cpu.max", "50000 100000")?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let half = used(&[&group], 2000)?[0] / 2.0;
    above.set("cpu.max", "max")?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let whole = used(&[&group], 1000)?[0];
    println!("  25 % gets {quarter:.3}, 50 % {half:.3}, all {whole:.3} of a CPU");
    println!("  {}", scheduler.remote().stats()?);
    ensure!((quarter - 0.25).abs() <= 0.02, "a quota of 25 % gets {quarter:.3}");
    ensure!((half - 0.5).abs() <= 0.04, "a quota of 50 % gets {half:.3}");
    ensure!(whole > 0.9, "without a quota it gets {whole:.3}");
    load.finish()?;
    drop(scheduler);
    Ok(())
}

/// By a tag, processes of one thread each are a group, and their children.
pub(crate) fn tags(_: crate::guest::Length) -> Result<()> {
    let by_tag = Settings { key: Key::Tag, ..paper_settings() };
    let scheduler = attach_with(&by_tag)?;
    let first = Load::start(3, &["work", "1", "7000"])?;
    let second = Load::start(3, &["work", "1", "7000"])?;
    for (load, name) in [(&first, "first"), (&second, "second")] {
        for pid in load.pids() {
            scheduler.remote().set_tag(pid, Some(name))?;
        }
    }
    let tagged = look(&scheduler, &by_tag, 1500)?;
    println!("  {tagged}");
    ensure!(tagged.same_share() > Some(0.75), "same {:?} by tags", tagged.same_share());
    // Each service has a bonus of its own.
    for name in ["first", "second"] {
        scheduler.remote().set_bonus_of(Service::Tag(name), Some(0))?;
    }
    let none = look(&scheduler, &by_tag, 700)?;
    ensure!(none.taken_share() < Some(0.05), "bonus 0 of both: {none}");
    scheduler.remote().set_bonus_of(Service::Tag("first"), None)?;
    let one = look(&scheduler, &by_tag, 700)?;
    ensure!(one.taken > none.taken, "bonus back: {one}");
    for pid in first.pids().into_iter().chain(second.pids()) {
        scheduler.remote().set_tag(pid, None)?;
    }
    let spaces = look(&scheduler, &by_tag, 500)?;
    ensure!(spaces.chances == 0, "without tags nobody has a group: {spaces}");
    // Children have the tag of who makes them.
    scheduler.remote().set_tag(std::process::id(), Some("this"))?;
    let children = Load::start(4, &["work", "1", "2500"])?;
    let inherited = look(&scheduler, &by_tag, 1000)?;
    ensure!(inherited.chances > 0, "children have no tag: {inherited}");
    scheduler.remote().set_tag(std::process::id(), None)?;
    children.finish()?;
    first.finish()?;
    second.finish()?;
    drop(scheduler);
    Ok(())
}
