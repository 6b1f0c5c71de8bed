//! A model's measures for the cells of a paper's tables.
//!
//! A model varies what a machine can't: the processors, the size of L2, the requests outstanding.
//! Each cell of a table is the cell of the study that says so, never one that is merely near.

use workahead_counters::event::Privilege;
use workahead_study::cell::Cell;
use workahead_study::results::Results;

use super::results::is_of_work;
use super::{Figure, Source, derived};
use crate::published::{Access, Configuration, State};

/// The cells of a modelled machine.
pub(super) struct ModelFigures<'a>(pub(super) &'a Results);

/// The base system of Keeton et al. (1998, Table 1).
const BASE: [(&str, i64); 3] = [("cpus", 4), ("l2_kib", 1024), ("outstanding", 4)];

const NO_SYSTEM: &str = "no operating system is modelled";
const USER_ONLY: &str = "the database's code alone";

impl Source for ModelFigures<'_> {
    fn figure(&self, metric: &str, at: &Configuration) -> Result<Figure, String> {
        if at.privilege == Some(Privilege::Kernel) {
            return Err(NO_SYSTEM.to_owned());
        }
        let cell = self.cell(at).ok_or_else(|| no_cell(at))?;
        let value = self.value(cell, &named(metric, at));
        let value = value.ok_or_else(|| "the model does not have it".to_owned())?;
        let instead = (at.privilege != Some(Privilege::User)).then(|| USER_ONLY.to_owned());
        Ok(Figure { value, noisy: false, instead })
    }

    fn is_modelled(&self) -> bool {
        true
    }
}

impl ModelFigures<'_> {
    fn value(&self, cell: &Cell, metric: &str) -> Option<f64> {
        let of = |name: &str| self.0.value(cell.index, name);
        of(metric).or_else(|| derived(metric)?.from(of))
    }

    fn cell(&self, at: &Configuration) -> Option<&Cell> {
        let wanted =
            [at.processors.map(i64::from), at.l2_kib.map(i64::from), at.outstanding.map(i64::from)];
        self.0.run_plan.cells.iter().find(|cell| {
            let of_machine = BASE.iter().zip(wanted).all(|((name, base), wanted)| {
                // A setting that the study does not vary is as the paper's base.
                cell.integer(name).unwrap_or(*base) == wanted.unwrap_or(*base)
            });
            of_machine && is_of_work(cell, at)
        })
    }
}

/// The measure of a metric, which for states of lines is one for each access and state, and for
/// cycles in which nothing retires is the idle ones.
fn named(metric: &str, at: &Configuration) -> String {
    let (Some(access), Some(state)) = (at.access, at.state) else {
        let is_idle = metric == "retire_0";
        return if is_idle { "uop_retire_idle_share" } else { metric }.to_owned();
    };
    let access = match access {
        Access::Fetch => "fetch",
        Access::Load => "load",
        Access::Store => "store",
    };
    let state = match state {
        State::Modified => 'm',
        State::Exclusive => 'e',
        State::Shared => 's',
        State::Invalid => 'i',
    };
    format!("state_{access}_{state}")
}

fn no_cell(at: &Configuration) -> String {
    let mut said = Vec::new();
    said.extend(at.processors.map(|number| format!("{number} processors")));
    said.extend(at.l2_kib.map(|size| format!("an L2 of {size} KiB")));
    said.extend(at.outstanding.map(|number| format!("{number} outstanding requests")));
    said.extend(at.workload.clone());
    match said.is_empty() {
        true => "no cell of ours is of that".to_owned(),
        false => format!("no cell of ours has {}", said.join(", ")),
    }
}
