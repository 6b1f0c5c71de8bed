//! The SQL that a filter may be written in.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray};
use sqlparser::ast::{self, BinaryOperator, CastKind, Expr, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::names::Names;
use super::typed::{Operator, Typed};
use super::types;

const KNOWN: &str = "columns, constants, = <> < <= > >=, AND OR NOT, + - * / %, IS NULL, BETWEEN, \
                     IN, LIKE, IS DISTINCT FROM, CAST";

/// One expression, and nothing after it.
pub(super) fn parsed(text: &str) -> Result<Expr, String> {
    let said = |error: sqlparser::parser::ParserError| error.to_string();
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(said)?;
    let expression = parser.parse_expr().map_err(said)?;
    match parser.next_token().token {
        Token::EOF => Ok(expression),
        other => Err(format!("it should end before {other}")),
    }
}

/// The expression with its types.
pub(super) fn typed(of: &Expr, names: &mut Names<'_>) -> Result<Typed, String> {
    let column = |(at, data_type)| Typed::column(at, data_type);
    match of {
        Expr::Nested(of) => typed(of, names),
        Expr::Identifier(name) => names.anywhere(&name.value).map(column),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [side, name] => names.of(&side.value, &name.value).map(column),
            _ => Err(format!("{of} names no column: write left.NAME or right.NAME")),
        },
        Expr::Value(value) => literal(&value.value),
        Expr::TypedString(constant) => {
            let to = types::named(&constant.data_type)?;
            literal(&constant.value.value)?.cast(to, true)
        }
        Expr::BinaryOp { left, op, right } => two(operator(op)?, [left, right], names),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Typed::not(typed(expr, names)?),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => typed(expr, names),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Typed::negative(typed(expr, names)?),
        Expr::IsNull(of) => typed(of, names).map(Typed::is_null),
        Expr::IsNotNull(of) => Typed::not(Typed::is_null(typed(of, names)?)),
        Expr::IsDistinctFrom(left, right) => two(Operator::Distinct, [left, right], names),
        Expr::IsNotDistinctFrom(left, right) => two(Operator::NotDistinct, [left, right], names),
        Expr::Between { expr, negated, low, high } => {
            let from = two(Operator::GreaterOrEqual, [expr, low], names)?;
            let to = two(Operator::LessOrEqual, [expr, high], names)?;
            turned(Typed::two(Operator::And, from, to)?, *negated)
        }
        Expr::InList { expr, list, negated } => {
            let mut any: Option<Typed> = None;
            for item in list {
                let equal = two(Operator::Equal, [expr, item], names)?;
                any = Some(match any {
                    Some(any) => Typed::two(Operator::Or, any, equal)?,
                    None => equal,
                });
            }
            turned(any.ok_or("IN () has no values")?, *negated)
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
            turned(two(Operator::Like, [expr, pattern], names)?, *negated)
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
            turned(two(Operator::LikeInAnyCase, [expr, pattern], names)?, *negated)
        }
        Expr::Cast { kind, expr, data_type, array: false, format: None } => {
            let fails = matches!(kind, CastKind::Cast | CastKind::DoubleColon);
            typed(expr, names)?.cast(types::named(data_type)?, fails)
        }
        Expr::IsTrue(of) => known(of, true, names),
        Expr::IsNotTrue(of) => Typed::not(known(of, true, names)?),
        Expr::IsFalse(of) => known(of, false, names),
        Expr::IsNotFalse(of) => Typed::not(known(of, false, names)?),
        other => Err(format!("{other} is not known here; there are {KNOWN}")),
    }
}

fn two(operator: Operator, of: [&Expr; 2], names: &mut Names<'_>) -> Result<Typed, String> {
    Typed::two(operator, typed(of[0], names)?, typed(of[1], names)?)
}

fn turned(of: Typed, negated: bool) -> Result<Typed, String> {
    if negated { Typed::not(of) } else { Ok(of) }
}

/// `IS TRUE`, `IS FALSE`.
fn known(of: &Expr, truth: bool, names: &mut Names<'_>) -> Result<Typed, String> {
    let truth = Typed::literal(Arc::new(BooleanArray::from(vec![truth])));
    Typed::two(Operator::NotDistinct, typed(of, names)?, truth)
}

fn operator(of: &BinaryOperator) -> Result<Operator, String> {
    Ok(match of {
        BinaryOperator::Eq => Operator::Equal,
        BinaryOperator::NotEq => Operator::NotEqual,
        BinaryOperator::Lt => Operator::Less,
        BinaryOperator::LtEq => Operator::LessOrEqual,
        BinaryOperator::Gt => Operator::Greater,
        BinaryOperator::GtEq => Operator::GreaterOrEqual,
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Times,
        BinaryOperator::Divide => Operator::Over,
        BinaryOperator::Modulo => Operator::Modulo,
        BinaryOperator::And => Operator::And,
        BinaryOperator::Or => Operator::Or,
        other => return Err(format!("{other} is not known here; there are {KNOWN}")),
    })
}

fn literal(value: &ast::Value) -> Result<Typed, String> {
    let array: ArrayRef = match value {
        Value::Number(number, _) => return self::number(&number.to_string()),
        Value::SingleQuotedString(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        Value::Boolean(truth) => Arc::new(BooleanArray::from(vec![*truth])),
        Value::Null => return Ok(Typed::null()),
        other => return Err(format!("the constant {other} is not known here")),
    };
    Ok(Typed::literal(array))
}

/// An integer, or as many decimal digits as were written, or a float.
fn number(text: &str) -> Result<Typed, String> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Typed::literal(Arc::new(Int64Array::from(vec![whole]))));
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if let Ok(value) = digits.parse::<i128>()
        && let Ok(scale) = i8::try_from(part.len())
        && digits.len() <= 38
    {
        let decimal = Decimal128Array::from(vec![value]);
        let decimal = decimal.with_precision_and_scale(digits.len().max(1) as u8, scale);
        return decimal.map(|of| Typed::literal(Arc::new(of))).map_err(|e| e.to_string());
    }
    let value = text.parse::<f64>().map_err(|_| format!("{text} is no number"))?;
    Ok(Typed::literal(Arc::new(Float64Array::from(vec![value]))))
}
