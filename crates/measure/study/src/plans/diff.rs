//! Two plans side by side: equal operators on one line, others beside a gap or beside their
//! replacement.
//!
//! Operators are written one below the other, an operator above its inputs, and the two columns are
//! aligned so that as much as possible matches (Needleman & Wunsch 1970): the same line most, then
//! the same operator on the same table with other conditions, then another way to the same table.
//! Depth does not count: an exchange put in between moves everything below it and changes nothing.

use serde::Serialize;

use super::tree::{Node, Role};

/// A line of two plans.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The first plan's operator.
    pub left: Option<Side>,
    /// The second plan's.
    pub right: Option<Side>,
    /// Whether both are the same.
    pub same: bool,
}

/// An operator of one of the plans.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// How deep it is in its tree.
    pub depth: usize,
    /// The operator, its table, index and conditions.
    pub line: String,
    /// Rows the planner expected.
    pub rows_estimated: Option<f64>,
    /// Actual rows.
    pub rows: Option<f64>,
    /// Its time.
    pub time_ms: Option<f64>,
}

/// The two plans, line by line.
pub fn diff(left: &Node, right: &Node) -> Vec<Row> {
    let (left, right) = (flat(left), flat(right));
    let likeness = |at: usize, to: usize| likeness(left[at].1, right[to].1);
    // best[at][to]: the most that the rests from `at` and `to` on can match.
    let mut best = vec![vec![0u32; right.len() + 1]; left.len() + 1];
    for at in (0..left.len()).rev() {
        for to in (0..right.len()).rev() {
            let gap = best[at + 1][to].max(best[at][to + 1]);
            let pair = likeness(at, to);
            let paired = if pair > 0 { best[at + 1][to + 1] + pair } else { 0 };
            best[at][to] = gap.max(paired);
        }
    }
    let (mut at, mut to, mut rows) = (0, 0, Vec::new());
    while at < left.len() || to < right.len() {
        let is_pair = at < left.len() && to < right.len() && likeness(at, to) > 0;
        if is_pair && best[at][to] == best[at + 1][to + 1] + likeness(at, to) {
            let same = likeness(at, to) == SAME;
            rows.push(Row { left: Some(side(left[at])), right: Some(side(right[to])), same });
            (at, to) = (at + 1, to + 1);
        } else if at < left.len() && (to == right.len() || best[at][to] == best[at + 1][to]) {
            rows.push(Row { left: Some(side(left[at])), right: None, same: false });
            at += 1;
        } else {
            rows.push(Row { left: None, right: Some(side(right[to])), same: false });
            to += 1;
        }
    }
    rows
}

type Placed<'a> = (usize, &'a Node);

fn flat(tree: &Node) -> Vec<Placed<'_>> {
    let mut flat = Vec::new();
    tree.visit(0, &mut |depth, node| flat.push((depth, node)));
    flat
}

fn side((depth, node): Placed<'_>) -> Side {
    Side {
        depth,
        line: node.line(),
        rows_estimated: node.rows_estimated,
        rows: node.rows,
        time_ms: node.time_ms,
    }
}

const SAME: u32 = 8;

/// The similarity of two operators; 0 if they do not belong on one line.
fn likeness(left: &Node, right: &Node) -> u32 {
    let reads_same = left.object.is_some() && left.object == right.object;
    let is_exchange = |node: &Node| node.role == Role::Exchange;
    match left.operator == right.operator {
        true if left.line() == right.line() => SAME,
        true if left.object == right.object => 5,
        _ if reads_same => 3,
        // Two operators of other kinds with inputs: one replaces the other, if nothing fits better.
        // An exchange replaces no operator.
        false if is_exchange(left) || is_exchange(right) => 0,
        false if left.inputs.len() == right.inputs.len() && left.inputs.len() > 1 => 2,
        _ => 0,
    }
}
