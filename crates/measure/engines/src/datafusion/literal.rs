//! Values written into a statement.

use std::fmt::Write as _;

use workahead_workloads::session::{SessionError, Value};

/// A text with `$1`, `$2` … outside of quotes replaced by their values.
pub(super) fn filled(text: &str, values: &[Value<'_>]) -> Result<String, SessionError> {
    let mut filled = String::with_capacity(text.len() + 16 * values.len());
    let (mut rest, mut quote) = (text, None);
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if first == '$' && quote.is_none() && digits > 0 {
            let number: usize = rest[1..=digits].parse().unwrap_or(0);
            let value = number.checked_sub(1).and_then(|index| values.get(index));
            let missing = || SessionError::Failed(format!("there is no value for ${number}"));
            literal(value.ok_or_else(missing)?, &mut filled);
            rest = &rest[digits + 1..];
            continue;
        }
        quote = match (quote, first) {
            (None, '\'' | '"') => Some(first),
            (Some(open), end) if open == end => None,
            (quote, _) => quote,
        };
        filled.push(first);
        rest = &rest[first.len_utf8()..];
    }
    Ok(filled)
}

fn literal(value: &Value<'_>, out: &mut String) {
    // Writing into memory does not fail.
    let _ = match value {
        Value::Null => write!(out, "null"),
        Value::Int(int) => write!(out, "{int}"),
        Value::Real(real) => write!(out, "cast({real:?} as double)"),
        Value::Decimal(decimal) => {
            write!(out, "cast('{decimal}' as decimal(18, {}))", decimal.scale)
        }
        Value::Text(text) => write!(out, "'{}'", text.replace('\'', "''")),
        Value::Date(date) => write!(out, "date '{date}'"),
        Value::Timestamp(moment) => write!(out, "timestamp '{moment}'"),
    };
}

#[cfg(test)]
mod tests {
    use workahead_workloads::session::{Date, Decimal};

    use super::*;

    #[test]
    fn marks_outside_of_quotes_are_replaced() {
        let values = [Value::Int(7), Value::Text("it's"), Value::Decimal(Decimal::cents(-5))];
        let text = filled("select $1, '$1', \"é$2\", $2 where x > $3 and y < $1", &values);
        assert_eq!(
            text.unwrap(),
            "select 7, '$1', \"é$2\", 'it''s' where x > cast('-0.05' as decimal(18, 2)) and y < 7"
        );
        assert!(filled("select $2", &[Value::Null]).is_err());
        assert_eq!(filled("$1", &[Value::Date(Date(0))]).unwrap(), "date '1970-01-01'");
        assert_eq!(filled("'$' || $1", &[Value::Null]).unwrap(), "'$' || null");
    }
}
