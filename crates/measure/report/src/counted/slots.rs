//! The number of slots behind figures, in words.

use super::{CellCounts, each_once};
use crate::{number, words};

/// The number of slots, their groups, and the discarded ones.
pub(super) fn sentence(cells: &[&CellCounts<'_>]) -> String {
    let usable = |of: &&&CellCounts<'_>| of.stream.usable().count();
    let (least, most) =
        (cells.iter().map(|of| usable(&of)).min(), cells.iter().map(|of| usable(&of)).max());
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    let each = if cells.len() > 1 { " for each cell" } else { "" };
    let slots = match least == most {
        true => words::counted(least, "slot"),
        false => format!("{} to {}", number::count(least as u64), words::counted(most, "slot")),
    };
    let groups = cells.iter().map(|of| of.stream.header.groups.len()).max().unwrap_or(0);
    let turns = match groups {
        0 | 1 => "all events at once".to_owned(),
        groups => format!("{} of events in turn", words::counted(groups, "group")),
    };
    let mut sentence = format!("Counted in {slots}{each}, {turns}");
    let spoilt: usize = cells.iter().map(|of| of.stream.spoilt()).sum();
    if spoilt > 0 {
        let reasons = cells.iter().flat_map(|of| &of.stream.slots);
        let reasons = reasons.filter_map(|slot| slot.spoilt.as_ref()).map(|spoilt| spoilt.words());
        let thrown = words::counted(spoilt, "slot");
        let verb = if spoilt == 1 { "was" } else { "were" };
        let why = each_once(reasons).join("; ");
        sentence.push_str(&format!("; {thrown} more {verb} thrown away: {why}"));
    } else {
        sentence.push_str("; none was thrown away");
    }
    sentence.push('.');
    sentence
}
