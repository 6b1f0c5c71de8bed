//! The choice of cells with a flame graph on the page, which many of them would fill.

use workahead_study::cell::Cell;

use super::place;
use crate::view::View;

/// Flame graphs on one page.
pub(crate) const FLAMES: usize = 4;
/// Bytes of one of them: with [`FLAMES`] no page holds more than 1 MiB of flame graphs.
pub(crate) const FLAME_BYTES: usize = 256 << 10;
/// Bytes of one on a page of its own.
pub(crate) const ALONE_BYTES: usize = 4 << 20;

/// The cells that have one, by number: the baseline and the best against it first, then others in
/// the run plan's order.
pub(super) fn drawn(view: &View<'_>) -> Vec<usize> {
    let has_stacks = |cell: &&Cell| view.results.stacks(cell.index).is_some();
    let of_best = best(view).map_or_else(Vec::new, |(base, best)| vec![base, best]);
    let others = view.cells().iter().filter(has_stacks).map(|cell| cell.index);
    let mut drawn: Vec<usize> = Vec::new();
    for index in of_best.into_iter().chain(others) {
        if !drawn.contains(&index) && view.results.stacks(index).is_some() {
            drawn.push(index);
        }
    }
    drawn.truncate(FLAMES);
    drawn
}

/// The cell with the highest ratio among those with stacks, behind its baseline.
fn best(view: &View<'_>) -> Option<(usize, usize)> {
    let baseline = &view.results.spec.method.baseline;
    let ratio = |cell: &Cell| {
        view.results.stacks(cell.index)?;
        let base = view.results.run_plan.baseline_of(cell, baseline)?;
        let ratio = view.finding(cell).ratio.filter(|_| base.index != cell.index)?;
        Some((ratio.ratio, base.index, cell.index))
    };
    let ratios = view.cells().iter().filter_map(ratio);
    let (_, base, best) = ratios.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((base, best))
}

/// A note on the others; `None` if every profile has its graph.
pub(super) fn left_out(view: &View<'_>, drawn: &[usize]) -> Option<String> {
    let is_left =
        |cell: &&Cell| view.results.stacks(cell.index).is_some() && !drawn.contains(&cell.index);
    let names: Vec<String> =
        view.cells().iter().filter(is_left).map(|cell| place(view, cell)).collect();
    let graphs = if names.len() == 1 { "flame graph is" } else { "flame graphs are" };
    (!names.is_empty()).then(|| {
        format!(
            "{} more {graphs} not on this page, so that it stays small (at most {FLAMES}, of at \
             most {} each): {}. `workahead study report DIR --profiles` writes each to a page of \
             its own, where DIR is the directory of this result.",
            names.len(),
            crate::number::bytes(FLAME_BYTES as u64),
            names.join("; ")
        )
    })
}
