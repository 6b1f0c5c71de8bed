//! A plan as a tree of operators.

use serde::{Deserialize, Serialize};

/// Operators above each other in a plan that is read: what goes over a plan nests as it does.
const DEPTH_MAX: usize = 512;

/// Refuses a plan of more levels than that.
pub(super) fn check_depth(levels: usize) -> Result<(), String> {
    match levels > DEPTH_MAX {
        true => Err(format!("more than {DEPTH_MAX} of its operators lie below each other")),
        false => Ok(()),
    }
}

/// Operators of a plan that is read: two plans are compared pair by pair.
const OPERATORS_MAX: usize = 4_096;

/// Refuses a plan of more operators than that.
pub(super) fn check_operators(operators: usize) -> Result<(), String> {
    match operators > OPERATORS_MAX {
        true => Err(format!("it has more than {OPERATORS_MAX} operators")),
        false => Ok(()),
    }
}

/// A kilobyte for each operator: as JSON a text takes up to a hundred times its length.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Refuses a longer text.
pub(super) fn check_length(text: &str) -> Result<(), String> {
    match text.len() > TEXT_BYTES_MAX {
        true => Err(format!("it has more than {} MiB", TEXT_BYTES_MAX >> 20)),
        false => Ok(()),
    }
}

/// The most that a plan can say of rows, bytes, pages, times and executions.
const FIGURE_MAX: f64 = 1e15;

/// A figure that a plan says, from nothing to 10^15; what is not a number counts as nothing.
pub fn bounded(figure: f64) -> f64 {
    if figure > 0.0 { figure.min(FIGURE_MAX) } else { 0.0 }
}

/// A name on one line.
fn on_one_line(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An operator with its inputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name in the engine's words: `Hash Join`, `HASH_JOIN`, `HashJoinExec`.
    pub operator: String,
    /// Its part in running the plan in parallel.
    pub role: Role,
    /// The table or file it reads or writes.
    pub object: Option<String>,
    /// The index it uses.
    pub index: Option<String>,
    /// Conditions, keys and modes with their names, literals as `?`: `Hash Cond: (a = b)`.
    pub conditions: Vec<String>,
    /// Rows the planner expects, of all executions of the operator together if it reports them.
    pub rows_estimated: Option<f64>,
    /// Actual rows, of all executions and workers together.
    pub rows: Option<f64>,
    /// Its own time, of all executions and workers together, without its inputs'; what workers wait
    /// for each other counts where the engine counts it as work.
    pub time_ms: Option<f64>,
    /// The memory that it went through, as far as its engine says.
    #[serde(default)]
    pub memory: Memory,
    /// Its inputs, in the engine's order.
    pub inputs: Vec<Node>,
}

/// The memory that an operator goes through. Each engine says some of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes of a row that it gives, on average.
    pub row_bytes: Option<f64>,
    /// Bytes of its hash table at most.
    pub table_bytes: Option<f64>,
    /// Pages that it looked at, each as often as it did, of all executions and workers together.
    pub pages: Option<f64>,
    /// Bytes of a page.
    pub page_bytes: Option<f64>,
}

/// An operator's part in running a plan in parallel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// None: it is the same in a serial plan.
    #[default]
    Plain,
    /// It shares its work out among workers.
    Parallel,
    /// It aggregates what one worker has.
    Partial,
    /// It puts together what workers have aggregated.
    Final,
    /// It moves rows between workers.
    Exchange,
}

impl Node {
    /// An operator without anything else.
    pub(super) fn new(operator: impl Into<String>) -> Node {
        Node { operator: operator.into(), ..Node::default() }
    }

    /// As it is kept: names on one line, and figures within bounds, as products of two may not be.
    pub(super) fn tidied(self) -> Node {
        let name = |name: Option<String>| name.as_deref().map(on_one_line);
        let figure = |figure: Option<f64>| figure.map(bounded);
        let Memory { row_bytes, table_bytes, pages, page_bytes } = self.memory;
        Node {
            operator: on_one_line(&self.operator),
            object: name(self.object).filter(|object| !object.is_empty()),
            index: name(self.index).filter(|index| !index.is_empty()),
            rows_estimated: figure(self.rows_estimated),
            rows: figure(self.rows),
            time_ms: figure(self.time_ms),
            memory: Memory {
                row_bytes: figure(row_bytes),
                table_bytes: figure(table_bytes),
                pages: figure(pages),
                page_bytes: figure(page_bytes),
            },
            inputs: self.inputs.into_iter().map(Node::tidied).collect(),
            ..self
        }
    }

    /// The operator on one line, without figures.
    pub fn line(&self) -> String {
        let mut line = match self.role {
            Role::Parallel => format!("Parallel {}", self.operator),
            Role::Partial => format!("Partial {}", self.operator),
            Role::Final => format!("Finalize {}", self.operator),
            Role::Plain | Role::Exchange => self.operator.clone(),
        };
        line.extend(self.object.iter().map(|object| format!(" on {object}")));
        line.extend(self.index.iter().map(|index| format!(" using {index}")));
        if !self.conditions.is_empty() {
            line = format!("{line} [{}]", self.conditions.join("; "));
        }
        line
    }

    /// The whole tree without figures, a line per operator, two blanks a level.
    pub fn shape(&self) -> String {
        let mut text = String::new();
        self.visit(0, &mut |depth, node| {
            text.push_str(&"  ".repeat(depth));
            text.push_str(&node.line());
            text.push('\n');
        });
        text
    }

    /// The shape without parallel operators.
    pub fn serial_shape(&self) -> String {
        self.serial().iter().map(Node::shape).collect()
    }

    /// The operators of a serial plan: exchanges and the partial halves of aggregates are left out,
    /// their inputs take their places.
    fn serial(&self) -> Vec<Node> {
        let inputs: Vec<Node> = self.inputs.iter().flat_map(Node::serial).collect();
        match self.role {
            Role::Exchange | Role::Partial => inputs,
            _ => vec![Node { role: Role::Plain, inputs, ..self.clone() }],
        }
    }

    /// How many operators it has, itself among them.
    pub(super) fn operators(&self) -> usize {
        let mut operators = 0;
        self.visit(0, &mut |_, _| operators += 1);
        operators
    }

    /// Calls with every operator and its depth, an operator before its inputs.
    pub fn visit<'a>(&'a self, depth: usize, see: &mut impl FnMut(usize, &'a Node)) {
        see(depth, self);
        self.inputs.iter().for_each(|input| input.visit(depth + 1, see));
    }
}
