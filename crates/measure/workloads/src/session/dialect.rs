//! The SQL that an engine speaks, as far as workloads must know.

use std::fmt;

/// Whose SQL a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, with tables of InnoDB.
    MariaDb,
    /// DuckDB.
    DuckDb,
    /// DataFusion.
    DataFusion,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Postgres, Self::MariaDb, Self::DuckDb, Self::DataFusion];

    /// A statement whose values are marked `?`, with the dialect's own marks: `$1`, `$2` … but for
    /// MariaDB. A `?` inside quotes stays.
    #[must_use]
    pub fn placeholders(self, text: &str) -> String {
        if self == Self::MariaDb {
            return text.to_owned();
        }
        let mut marked = String::with_capacity(text.len() + 8);
        let (mut quote, mut number) = (None, 0);
        for character in text.chars() {
            match (character, quote) {
                ('?', None) => {
                    number += 1;
                    marked.push_str(&format!("${number}"));
                    continue;
                }
                ('\'' | '"', None) => quote = Some(character),
                (end, Some(open)) if end == open => quote = None,
                _ => {}
            }
            marked.push(character);
        }
        marked
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
            Self::DuckDb => "DuckDB",
            Self::DataFusion => "DataFusion",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_of_quotes() {
        let text = "select '?', \"?\" from t where a = ? and b = 'it''s ?' and c = ?";
        let marked = "select '?', \"?\" from t where a = $1 and b = 'it''s ?' and c = $2";
        assert_eq!(Dialect::Postgres.placeholders(text), marked);
        assert_eq!(Dialect::MariaDb.placeholders(text), text);
    }
}
