//! Sources and names of the output columns.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::{JoinType, Side};

/// Name of a mark join's last column.
const MARK: &str = "mark";

/// One output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    Column(Side, usize),
    /// The match flag.
    Mark,
}

/// The output columns.
#[derive(Debug, Clone)]
pub(crate) struct OutputColumns {
    pub(crate) schema: SchemaRef,
    pub(crate) sources: Vec<ColumnSource>,
}

impl OutputColumns {
    /// The output columns of the left side, of the right side, then the mark. Later duplicates of a
    /// name get the suffix, repeatedly if necessary.
    pub(crate) fn new(
        left: &SchemaRef,
        right: &SchemaRef,
        join_type: JoinType,
        suffix: &str,
    ) -> Self {
        let mut fields = Vec::new();
        let mut sources = Vec::new();
        let mut names = Names { suffix, taken: HashSet::new() };
        for (side, schema) in [(Side::Left, left), (Side::Right, right)] {
            if !join_type.outputs(side) {
                continue;
            }
            let own: Vec<&str> =
                schema.fields().iter().map(|field| field.name().as_str()).collect();
            for (column, field) in schema.fields().iter().enumerate() {
                let name = match side {
                    Side::Right if join_type.outputs(Side::Left) => names.free(field.name(), &own),
                    _ => names.take(field.name()),
                };
                let nullable = field.is_nullable() || join_type.null_extends(side);
                fields.push((**field).clone().with_name(name).with_nullable(nullable));
                sources.push(ColumnSource::Column(side, column));
            }
        }
        if join_type.is_mark() {
            fields.push(Field::new(names.free(MARK, &[]), DataType::Boolean, false));
            sources.push(ColumnSource::Mark);
        }
        Self { schema: Arc::new(Schema::new(fields)), sources }
    }

    /// A selection of the columns, in any order. `None` if one doesn't exist.
    pub(crate) fn projected(&self, columns: &[usize]) -> Option<Self> {
        let sources = columns.iter().map(|&column| self.sources.get(column).copied());
        let sources = sources.collect::<Option<_>>()?;
        let schema = self.schema.project(columns).ok()?;
        Some(Self { schema: Arc::new(schema), sources })
    }

    /// Whether a column is in the output.
    pub(crate) fn contains(&self, side: Side, column: usize) -> bool {
        self.sources.contains(&ColumnSource::Column(side, column))
    }
}

/// A schema with a column of row numbers at its end.
pub(crate) fn with_numbers(schema: &SchemaRef) -> SchemaRef {
    let number = Field::new("row", DataType::UInt64, true);
    let fields = schema.fields().iter().cloned().chain([Arc::new(number)]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Names used so far.
struct Names<'a> {
    suffix: &'a str,
    taken: HashSet<String>,
}

impl Names<'_> {
    fn take(&mut self, name: &str) -> String {
        self.taken.insert(name.to_owned());
        name.to_owned()
    }

    /// A suffixed name must not collide with another name of its own side.
    fn free(&mut self, wanted: &str, own: &[&str]) -> String {
        let mut name = wanted.to_owned();
        while self.taken.contains(&name) || (name != wanted && own.contains(&name.as_str())) {
            // An empty suffix can't distinguish names; Arrow allows duplicates.
            if self.suffix.is_empty() {
                break;
            }
            name.push_str(self.suffix);
        }
        self.take(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(names: &[&str]) -> SchemaRef {
        let field = |name: &&str| Field::new(*name, DataType::Int8, false);
        Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
    }

    fn layout(left: &[&str], right: &[&str], join_type: JoinType) -> OutputColumns {
        OutputColumns::new(&schema(left), &schema(right), join_type, "_r")
    }

    fn names(layout: &OutputColumns) -> Vec<&str> {
        assert_eq!(layout.sources.len(), layout.schema.fields().len());
        layout.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    #[test]
    fn duplicate_names_get_the_suffix() {
        let inner = |left, right| layout(left, right, JoinType::Inner);
        assert_eq!(names(&inner(&["a", "b"], &["b", "c"])), ["a", "b", "b_r", "c"]);
        assert_eq!(names(&inner(&["a", "a_r"], &["a"])), ["a", "a_r", "a_r_r"]);
        assert_eq!(names(&inner(&["a"], &["a", "a_r"])), ["a", "a_r_r", "a_r"]);
        let unsuffixed = OutputColumns::new(&schema(&["a"]), &schema(&["a"]), JoinType::Inner, "");
        assert_eq!(names(&unsuffixed), ["a", "a"]);
    }

    #[test]
    fn semi_joins_output_one_side_and_marks_come_last() {
        let (left, right) = (&["a", "mark"], &["a", "b"]);
        assert_eq!(names(&layout(left, right, JoinType::LeftAnti)), ["a", "mark"]);
        assert_eq!(names(&layout(left, right, JoinType::RightSemi)), ["a", "b"]);
        assert_eq!(names(&layout(left, right, JoinType::RightMark)), ["a", "b", "mark"]);
        assert_eq!(names(&layout(left, right, JoinType::LeftMark)), ["a", "mark", "mark_r"]);
    }

    #[test]
    fn a_null_extended_side_is_nullable() {
        let nullable = |join_type| {
            let layout = layout(&["a"], &["b"], join_type);
            let fields = layout.schema.fields().iter();
            fields.map(|field| field.is_nullable()).collect::<Vec<_>>()
        };
        assert_eq!(nullable(JoinType::Inner), [false, false]);
        assert_eq!(nullable(JoinType::Left), [false, true]);
        assert_eq!(nullable(JoinType::Right), [true, false]);
        assert_eq!(nullable(JoinType::Full), [true, true]);
        assert_eq!(nullable(JoinType::LeftMark), [false, false]);
    }

    #[test]
    fn projections_select_and_repeat() {
        let all = layout(&["a", "b"], &["c"], JoinType::Inner);
        let picked = all.projected(&[2, 0, 2]).unwrap();
        assert_eq!(names(&picked), ["c", "a", "c"]);
        assert!(picked.contains(Side::Left, 0) && !picked.contains(Side::Left, 1));
        assert!(all.projected(&[3]).is_none());
    }
}
