//! Where each output column comes from, and what it is called.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::Side;

/// One output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) side: Side,
    pub(crate) column: usize,
}

/// All columns of the left side, then all of the right; a right name that is taken gets the suffix
/// as often as it needs.
pub(crate) fn output(
    left: &SchemaRef,
    right: &SchemaRef,
    suffix: &str,
) -> (SchemaRef, Vec<Source>) {
    let mut fields: Vec<Field> = left.fields().iter().map(|field| (**field).clone()).collect();
    let mut taken: std::collections::HashSet<String> =
        fields.iter().map(|field| field.name().clone()).collect();
    // A suffixed name must not meet a right column that is called so already.
    let own: std::collections::HashSet<&String> =
        right.fields().iter().map(|field| field.name()).collect();
    for field in right.fields() {
        let mut name = field.name().clone();
        while taken.contains(&name) || (name != *field.name() && own.contains(&name)) {
            // An empty suffix can't tell names apart: Arrow allows equal names.
            if suffix.is_empty() {
                break;
            }
            name.push_str(suffix);
        }
        taken.insert(name.clone());
        fields.push((**field).clone().with_name(name));
    }
    let from = |side, columns| (0..columns).map(move |column| Source { side, column });
    let sources = from(Side::Left, left.fields().len())
        .chain(from(Side::Right, right.fields().len()))
        .collect();
    (Arc::new(Schema::new(fields)), sources)
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn schema(names: &[&str]) -> SchemaRef {
        let field = |name: &&str| Field::new(*name, DataType::Int8, false);
        Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
    }

    fn names(left: &[&str], right: &[&str], suffix: &str) -> Vec<String> {
        let (schema, sources) = output(&schema(left), &schema(right), suffix);
        assert_eq!(sources.len(), left.len() + right.len());
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[test]
    fn taken_names_get_the_suffix() {
        assert_eq!(names(&["a", "b"], &["b", "c"], "_r"), ["a", "b", "b_r", "c"]);
        assert_eq!(names(&["a", "a_r"], &["a"], "_r"), ["a", "a_r", "a_r_r"]);
        assert_eq!(names(&["a"], &["a", "a_r"], "_r"), ["a", "a_r_r", "a_r"]);
        assert_eq!(names(&["a"], &["a"], ""), ["a", "a"]);
    }
}
