//! Penalties of misses on the machine of a result, in cycles at the clock of a cell.

use workahead_counters::cycles::{Origin, Penalty, StallCause};
use workahead_counters::penalties::Penalties;
use workahead_counters::table::Table;
use workahead_machine::limits::Limits;
use workahead_machine::limits::siblings::Behaviour;

use super::CellCounts;
use crate::number;
use crate::view::View;

/// Penalties of a machine, and whether its siblings can be busy.
pub(super) struct Costs {
    penalties: Penalties,
    pub(super) has_siblings: bool,
}

impl Costs {
    /// From the limits kept with the result.
    ///
    /// # Errors
    /// Why there are none, in a clause.
    pub(super) fn of(view: &View<'_>) -> Result<Self, String> {
        let record = &view.results.record;
        let measure = "`workahead limits` measures it";
        let Some(kept) = &record.limits else {
            return Err(format!(
                "the penalty of a miss on this machine was not measured: {measure}"
            ));
        };
        let limits = Limits::read(kept.clone()).ok_or_else(|| {
            let wrong = "the limits beside the result are of another version, or implausible";
            format!("{wrong}: {measure} again")
        })?;
        let penalties = Penalties::of(&limits).ok_or_else(|| {
            "the measured latencies do not show how large L2 and the last level are".to_owned()
        })?;
        let shared = |pair: &workahead_machine::limits::siblings::Pair| {
            pair.reported == Some(true) || pair.behaviour() == Behaviour::OneCore
        };
        let has_siblings = record.host.siblings || limits.siblings.pairs.iter().any(shared);
        Ok(Self { penalties, has_siblings })
    }

    pub(super) fn penalties(&self) -> &Penalties {
        &self.penalties
    }

    /// The penalties at a clock with their origin, and the caveat on busy siblings.
    pub(super) fn sentences(&self, ghz: f64) -> Vec<String> {
        let mut by_origin: Vec<(&Origin, Vec<String>)> = Vec::new();
        let charged = self.penalties.of_stalls(ghz);
        for penalty in &charged {
            let charges = format!("{} {}", name(penalty.cause), number::plain(penalty.cycles));
            match by_origin.iter_mut().find(|(origin, _)| **origin == penalty.origin) {
                Some((_, all)) => all.push(charges),
                None => by_origin.push((&penalty.origin, vec![charges])),
            }
        }
        let charges: Vec<String> = by_origin
            .iter()
            .map(|(origin, all)| format!("{} ({origin})", all.join(", ")))
            .collect();
        let mut sentences = vec![format!(
            "Cycles that an event is charged, at {} GHz, each level beyond the one before it: {}.",
            number::plain(ghz),
            charges.join("; ")
        )];
        if !charged.iter().any(|penalty| penalty.cause == StallCause::Dtlb) {
            sentences.push(
                "Walks of the page table are charged nothing: latencies were measured on one size \
                 of pages only."
                    .to_owned(),
            );
        }
        sentences.push(match self.has_siblings {
            true => "Penalties with a busy sibling: not measured, as the limits are taken by one \
                     thread whose sibling idles; with both at work a miss takes longer, and bars \
                     of cells with siblings are too short by that."
                .to_owned(),
            false => "Penalties with a busy sibling: there are none, as no two CPUs of this \
                      machine are seen to share a core."
                .to_owned(),
        });
        sentences
    }
}

/// The cause of a stall, as charts label it.
pub(super) fn name(cause: StallCause) -> &'static str {
    match cause {
        StallCause::L3 => "last level",
        StallCause::L2 => "L2",
        StallCause::L1d => "L1 data",
        StallCause::Fetch => "L1 instructions",
        StallCause::Dtlb => "DTLB",
        StallCause::Itlb => "ITLB",
        StallCause::Branch => "branches",
    }
}

/// Every cause, in the order of stacking.
pub(super) fn names(penalties: &[Penalty]) -> Vec<String> {
    penalties.iter().map(|penalty| name(penalty.cause).to_owned()).collect()
}

/// Cycles in a nanosecond while the cell ran.
///
/// # Errors
/// If it is unknown.
pub(super) fn ghz(of: &CellCounts<'_>) -> Result<f64, String> {
    let header = &of.stream.header;
    if let Some(lacks) = &header.lacks {
        return Err(lacks.clone());
    }
    let table = header.table.as_deref().and_then(|name| Table::named(name).ok());
    let table = table.ok_or("no table of events knows this processor")?;
    let ghz = of.stream.most_per_ns(table.cycles());
    ghz.ok_or_else(|| "no cycles were counted".to_owned())
}
