//! Trees drawn as boxes, as DataFusion's `EXPLAIN FORMAT tree` and DuckDB's usual output are.
//!
//! ```text
//! ┌───────────┐               boxes stand in a grid: each row begins with a line of top edges,
//! │ HashJoin  ├───────────┐   and all boxes are equally wide. The inputs of a box are those of
//! └─────┬─────┘           │   the next row from its own column up to the column of the next box
//! ┌─────┴─────┐┌──────────┴┐  of its row.
//! │    t1     ││    t2     │
//! └───────────┘└───────────┘
//! ```
//!
//! In a box: the name, a line of dashes, then details, `key: value`, wrapped where they are long.

use std::ops::Range;

use super::tree::{Node, check_depth, check_operators};

/// The text inside of one box, by line.
struct TextBox {
    column: usize,
    lines: Vec<String>,
}

/// Boxes beside each other, from left to right.
type Row = Vec<TextBox>;

/// Reads the boxes; `read` makes an operator of the name and the details of one.
pub(super) fn parse(
    text: &str,
    read: &mut dyn FnMut(&[String]) -> Result<Node, String>,
) -> Result<Node, String> {
    let rows = rows(text)?;
    check_depth(rows.len())?;
    node(&rows, 0, read)
}

/// A box of the first row, with its inputs in the rows below.
fn node(
    rows: &[Row],
    at: usize,
    read: &mut dyn FnMut(&[String]) -> Result<Node, String>,
) -> Result<Node, String> {
    let [row, below @ ..] = rows else { return Err("there is no box in it".to_owned()) };
    let mut node = read(&unwrapped(&row[at].lines))?;
    let end = row.get(at + 1).map_or(usize::MAX, |beside| beside.column);
    let inputs = below.first().map_or(0..0, |next| within(next, row[at].column..end));
    for input in inputs {
        node.inputs.push(self::node(below, input, read)?);
    }
    Ok(node)
}

/// The boxes of a row that begin in these columns.
fn within(row: &[TextBox], columns: Range<usize>) -> Range<usize> {
    let before = |column: usize| row.partition_point(|drawn| drawn.column < column);
    before(columns.start)..before(columns.end)
}

fn rows(text: &str) -> Result<Vec<Row>, String> {
    let (mut rows, mut boxes): (Vec<Row>, usize) = (Vec::new(), 0);
    for line in text.lines() {
        let line: Vec<char> = line.chars().collect();
        let tops = corners(&line);
        if tops.is_empty() {
            if let Some(row) = rows.last_mut() {
                add_inside(row, &line);
            }
            continue;
        }
        boxes += tops.len();
        check_operators(boxes)?;
        rows.push(tops.into_iter().map(|column| TextBox { column, lines: Vec::new() }).collect());
    }
    match rows.is_empty() {
        true => Err("there is no box in it".to_owned()),
        false => Ok(rows),
    }
}

/// Adds what a line has inside of the boxes of a row; a short one ends before some of them.
fn add_inside(row: &mut [TextBox], line: &[char]) {
    for drawn in row.iter_mut().take_while(|drawn| drawn.column < line.len()) {
        if line[drawn.column] == '│' {
            let inside = line[drawn.column + 1..].iter();
            let inside: String = inside.take_while(|c| !"│├┤".contains(**c)).collect();
            drawn.lines.push(inside.trim().to_owned());
        }
    }
}

/// Where boxes begin: a corner whose edge runs on to another corner.
fn corners(line: &[char]) -> Vec<usize> {
    let begins = |at: &usize| {
        let edge = &line[at + 1..];
        let end = edge.iter().position(|c| *c != '─' && *c != '┴');
        end.is_some_and(|end| end > 0 && edge[end] == '┐')
    };
    (0..line.len()).filter(|at| line[*at] == '┌').filter(begins).collect()
}

/// The name, then one line per detail: lines without `key:` go on with the one before.
fn unwrapped(lines: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if line.chars().all(|c| "-─ ".contains(c)) {
            continue;
        }
        let key = line.split_once(':').map(|(key, _)| key);
        let is_detail = key.is_some_and(|key| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        });
        match out.len() {
            0 | 1 => out.push(line.clone()),
            _ if is_detail => out.push(line.clone()),
            details => {
                let last = &mut out[details - 1];
                last.push_str(if last.ends_with(':') { " " } else { "" });
                last.push_str(line);
            }
        }
    }
    out
}
