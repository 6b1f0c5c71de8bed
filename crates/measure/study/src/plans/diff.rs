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

/// Pairs of operators that are compared: each takes four bytes.
const PAIRS_MAX: usize = 10_000_000;

/// The two plans, line by line. Very large ones are not compared: one stands below the other.
pub fn diff(left: &Node, right: &Node) -> Vec<Row> {
    let (left, right) = (flat(left), flat(right));
    match left.len().saturating_mul(right.len()) > PAIRS_MAX {
        true => left.iter().map(gone).chain(right.iter().map(new)).collect(),
        false => aligned(&left, &right),
    }
}

fn aligned(left: &[PlacedNode<'_>], right: &[PlacedNode<'_>]) -> Vec<Row> {
    let likeness = |at: usize, to: usize| likeness(&left[at], &right[to]);
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
            rows.push(Row { left: Some(side(&left[at])), right: Some(side(&right[to])), same });
            (at, to) = (at + 1, to + 1);
        } else if at < left.len() && (to == right.len() || best[at][to] == best[at + 1][to]) {
            rows.push(gone(&left[at]));
            at += 1;
        } else {
            rows.push(new(&right[to]));
            to += 1;
        }
    }
    rows
}

/// An operator with its depth and its line.
struct PlacedNode<'a> {
    depth: usize,
    node: &'a Node,
    line: String,
}

fn flat(tree: &Node) -> Vec<PlacedNode<'_>> {
    let mut flat = Vec::new();
    tree.visit(0, &mut |depth, node| flat.push(PlacedNode { depth, node, line: node.line() }));
    flat
}

/// An operator that only the first plan has.
fn gone(placed: &PlacedNode<'_>) -> Row {
    Row { left: Some(side(placed)), right: None, same: false }
}

/// An operator that only the second one has.
fn new(placed: &PlacedNode<'_>) -> Row {
    Row { left: None, right: Some(side(placed)), same: false }
}

fn side(PlacedNode { depth, node, line }: &PlacedNode<'_>) -> Side {
    Side {
        depth: *depth,
        line: line.clone(),
        rows_estimated: node.rows_estimated,
        rows: node.rows,
        time_ms: node.time_ms,
    }
}

const SAME: u32 = 8;

/// The similarity of two operators; 0 if they do not belong on one line.
fn likeness(left: &PlacedNode<'_>, right: &PlacedNode<'_>) -> u32 {
    let (one, other) = (left.node, right.node);
    let reads_same = one.object.is_some() && one.object == other.object;
    let is_exchange = |node: &Node| node.role == Role::Exchange;
    match one.operator == other.operator {
        true if left.line == right.line => SAME,
        true if one.object == other.object => 5,
        _ if reads_same => 3,
        // Two operators of other kinds with inputs: one replaces the other, if nothing fits better.
        // An exchange replaces no operator.
        false if is_exchange(one) || is_exchange(other) => 0,
        false if one.inputs.len() == other.inputs.len() && one.inputs.len() > 1 => 2,
        _ => 0,
    }
}
