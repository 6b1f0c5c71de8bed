//! Columns by their names: `price`, or `left.price` where both sides have one.

use arrow_schema::{DataType, FieldRef, Schema};
use workahead_join::Side;

/// The columns of both sides, and those that the filter uses.
pub(super) struct ColumnResolver<'a> {
    left: &'a Schema,
    right: &'a Schema,
    used: Vec<(Side, usize)>,
}

impl<'a> ColumnResolver<'a> {
    pub(super) fn new(left: &'a Schema, right: &'a Schema) -> Self {
        Self { left, right, used: Vec::new() }
    }

    /// A column by its name alone: its position among those used, and its type.
    pub(super) fn unqualified(&mut self, name: &str) -> Result<(usize, DataType), String> {
        match (self.left.index_of(name), self.right.index_of(name)) {
            (Ok(_), Ok(_)) => {
                Err(format!("both sides have a column {name:?}: write left.{name} or right.{name}"))
            }
            (Ok(column), Err(_)) => Ok(self.add(Side::Left, column)),
            (Err(_), Ok(column)) => Ok(self.add(Side::Right, column)),
            (Err(_), Err(_)) => Err(format!(
                "no column {name:?}: choose from {} of the left, {} of the right",
                known(self.left),
                known(self.right)
            )),
        }
    }

    /// A column of a side.
    pub(super) fn qualified(
        &mut self,
        side: &str,
        name: &str,
    ) -> Result<(usize, DataType), String> {
        let (side, schema) = match &side.to_ascii_lowercase()[..] {
            "left" => (Side::Left, self.left),
            "right" => (Side::Right, self.right),
            _ => return Err(format!("unknown side {side:?}: write left.{name} or right.{name}")),
        };
        let column = schema.index_of(name).map_err(|_| {
            let (side, known) = (side.name(), known(schema));
            format!("the {side} side has no column {name:?}: choose from {known}")
        })?;
        Ok(self.add(side, column))
    }

    fn add(&mut self, side: Side, column: usize) -> (usize, DataType) {
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

    /// The columns that the filter uses.
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
