//! Columns by their names: `price`, or `left.price` where both sides have one.

use arrow_schema::{DataType, FieldRef, Schema};
use workahead_join::Side;

/// The columns of both sides, and those of them that were asked for.
pub(super) struct Names<'a> {
    left: &'a Schema,
    right: &'a Schema,
    used: Vec<(Side, usize)>,
}

impl<'a> Names<'a> {
    pub(super) fn new(left: &'a Schema, right: &'a Schema) -> Self {
        Self { left, right, used: Vec::new() }
    }

    /// A column by its name alone: where it is among those used, and its type.
    pub(super) fn anywhere(&mut self, name: &str) -> Result<(usize, DataType), String> {
        match (self.left.index_of(name), self.right.index_of(name)) {
            (Ok(_), Ok(_)) => {
                Err(format!("both sides have a column {name:?}: write left.{name} or right.{name}"))
            }
            (Ok(column), Err(_)) => Ok(self.take(Side::Left, column)),
            (Err(_), Ok(column)) => Ok(self.take(Side::Right, column)),
            (Err(_), Err(_)) => Err(format!(
                "there is no column {name:?}: choose from {} of the left, {} of the right",
                known(self.left),
                known(self.right)
            )),
        }
    }

    /// A column of a side.
    pub(super) fn of(&mut self, side: &str, name: &str) -> Result<(usize, DataType), String> {
        let (side, schema) = match &side.to_ascii_lowercase()[..] {
            "left" => (Side::Left, self.left),
            "right" => (Side::Right, self.right),
            _ => return Err(format!("{side}.{name} is of no side: write left.{name} or right.…")),
        };
        let column = schema.index_of(name).map_err(|_| {
            let (side, known) = (side.name(), known(schema));
            format!("the {side} side has no column {name:?}: choose from {known}")
        })?;
        Ok(self.take(side, column))
    }

    fn take(&mut self, side: Side, column: usize) -> (usize, DataType) {
        let at = self.used.iter().position(|used| *used == (side, column));
        let at = at.unwrap_or_else(|| {
            self.used.push((side, column));
            self.used.len() - 1
        });
        (at, self.field(side, column).data_type().clone())
    }

    fn field(&self, side: Side, column: usize) -> &FieldRef {
        match side {
            Side::Left => &self.left.fields()[column],
            Side::Right => &self.right.fields()[column],
        }
    }

    /// The columns that were asked for.
    pub(super) fn used(self) -> (Vec<(Side, usize)>, Vec<FieldRef>) {
        let fields = self.used.iter().map(|(side, column)| self.field(*side, *column).clone());
        let fields = fields.collect();
        (self.used, fields)
    }
}

fn known(schema: &Schema) -> String {
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.join(", ")
}
