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

use super::tree::{Node, check_depth};

/// The text inside of one box, by line.
struct Drawn {
    row: usize,
    column: usize,
    lines: Vec<String>,
}

/// Reads the boxes; `read` makes an operator of the name and the details of one.
pub(super) fn parse(
    text: &str,
    read: &mut dyn FnMut(&[String]) -> Result<Node, String>,
) -> Result<Node, String> {
    let boxes = boxes(text)?;
    check_depth(boxes.last().map_or(0, |drawn| drawn.row + 1))?;
    let first = boxes.iter().position(|drawn| drawn.row == 0).ok_or("there is no box in it")?;
    node(&boxes, first, read)
}

fn node(
    boxes: &[Drawn],
    at: usize,
    read: &mut dyn FnMut(&[String]) -> Result<Node, String>,
) -> Result<Node, String> {
    let this = &boxes[at];
    let mut node = read(&unwrapped(&this.lines))?;
    let beside = boxes.iter().filter(|other| other.row == this.row && other.column > this.column);
    let end = beside.map(|other| other.column).min().unwrap_or(usize::MAX);
    for (input, drawn) in boxes.iter().enumerate() {
        if drawn.row == this.row + 1 && (this.column..end).contains(&drawn.column) {
            node.inputs.push(self::node(boxes, input, read)?);
        }
    }
    Ok(node)
}

fn boxes(text: &str) -> Result<Vec<Drawn>, String> {
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut boxes: Vec<Drawn> = Vec::new();
    let mut row = None;
    for line in &lines {
        let tops: Vec<usize> = corners(line);
        if !tops.is_empty() {
            let this = row.map_or(0, |row| row + 1);
            row = Some(this);
            boxes.extend(tops.into_iter().map(|column| Drawn {
                row: this,
                column,
                lines: Vec::new(),
            }));
            continue;
        }
        for drawn in boxes.iter_mut().filter(|drawn| Some(drawn.row) == row) {
            if line.get(drawn.column) == Some(&'│') {
                let inside = line[drawn.column + 1..].iter();
                let inside: String = inside.take_while(|c| !"│├┤".contains(**c)).collect();
                drawn.lines.push(inside.trim().to_owned());
            }
        }
    }
    match boxes.is_empty() {
        true => Err("there is no box in it".to_owned()),
        false => Ok(boxes),
    }
}

/// Where boxes begin: a corner whose edge runs on to another corner.
fn corners(line: &[char]) -> Vec<usize> {
    let begins = |at: &usize| {
        let edge = &line[at + 1..];
        let end = edge.iter().position(|c| *c != '─' && *c != '┴');
        line[*at] == '┌' && end.is_some_and(|end| end > 0 && edge[end] == '┐')
    };
    (0..line.len()).filter(begins).collect()
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
            last => {
                let joint = if out[last - 1].ends_with(':') { " " } else { "" };
                out[last - 1] = format!("{}{joint}{line}", out[last - 1]);
            }
        }
    }
    out
}
