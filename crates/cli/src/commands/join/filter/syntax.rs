//! The SQL of filters.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray};
use sqlparser::ast::{self, BinaryOperator, CastKind, Expr, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::column_resolver::ColumnResolver;
use super::typed_expression::{Operator, TypedExpression};
use super::types;

const SUPPORTED: &str = "columns, constants, = <> < <= > >=, AND OR NOT, + - * / %, IS NULL, \
                         BETWEEN, IN, LIKE, IS DISTINCT FROM, CAST";

/// One expression, and nothing after it.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let message = |error: sqlparser::parser::ParserError| error.to_string();
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(message)?;
    let expression = parser.parse_expr().map_err(message)?;
    match parser.next_token().token {
        Token::EOF => Ok(expression),
        other => Err(format!("unexpected {other} after the expression")),
    }
}

/// Resolves the columns and types of an expression.
pub(super) fn resolve(
    of: &Expr,
    names: &mut ColumnResolver<'_>,
) -> Result<TypedExpression, String> {
    let column = |(at, data_type)| TypedExpression::column(at, data_type);
    match of {
        Expr::Nested(of) => resolve(of, names),
        Expr::Identifier(name) => names.unqualified(&name.value).map(column),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [side, name] => names.qualified(&side.value, &name.value).map(column),
            _ => Err(format!("{of} is not a column: write left.NAME or right.NAME")),
        },
        Expr::Value(value) => literal(&value.value),
        Expr::TypedString(constant) => {
            let to = types::named(&constant.data_type)?;
            literal(&constant.value.value)?.cast(to, true)
        }
        Expr::BinaryOp { left, op, right } => two(operator(op)?, [left, right], names),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            TypedExpression::not(resolve(expr, names)?)
        }
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => resolve(expr, names),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            TypedExpression::negative(resolve(expr, names)?)
        }
        Expr::IsNull(of) => resolve(of, names).map(TypedExpression::is_null),
        Expr::IsNotNull(of) => TypedExpression::not(TypedExpression::is_null(resolve(of, names)?)),
        Expr::IsDistinctFrom(left, right) => two(Operator::Distinct, [left, right], names),
        Expr::IsNotDistinctFrom(left, right) => two(Operator::NotDistinct, [left, right], names),
        Expr::Between { expr, negated, low, high } => {
            let from = two(Operator::GreaterOrEqual, [expr, low], names)?;
            let to = two(Operator::LessOrEqual, [expr, high], names)?;
            negate_if(TypedExpression::two(Operator::And, from, to)?, *negated)
        }
        Expr::InList { expr, list, negated } => {
            let mut any: Option<TypedExpression> = None;
            for item in list {
                let equal = two(Operator::Equal, [expr, item], names)?;
                any = Some(match any {
                    Some(any) => TypedExpression::two(Operator::Or, any, equal)?,
                    None => equal,
                });
            }
            negate_if(any.ok_or("IN () has no values")?, *negated)
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
            negate_if(two(Operator::Like, [expr, pattern], names)?, *negated)
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
            negate_if(two(Operator::LikeInAnyCase, [expr, pattern], names)?, *negated)
        }
        Expr::Cast { kind, expr, data_type, array: false, format: None } => {
            let fails = matches!(kind, CastKind::Cast | CastKind::DoubleColon);
            resolve(expr, names)?.cast(types::named(data_type)?, fails)
        }
        Expr::IsTrue(of) => equals_truth(of, true, names),
        Expr::IsNotTrue(of) => TypedExpression::not(equals_truth(of, true, names)?),
        Expr::IsFalse(of) => equals_truth(of, false, names),
        Expr::IsNotFalse(of) => TypedExpression::not(equals_truth(of, false, names)?),
        other => Err(format!("{other} is not supported; use {SUPPORTED}")),
    }
}

fn two(
    operator: Operator,
    of: [&Expr; 2],
    names: &mut ColumnResolver<'_>,
) -> Result<TypedExpression, String> {
    TypedExpression::two(operator, resolve(of[0], names)?, resolve(of[1], names)?)
}

fn negate_if(of: TypedExpression, negated: bool) -> Result<TypedExpression, String> {
    if negated { TypedExpression::not(of) } else { Ok(of) }
}

/// `IS TRUE`, `IS FALSE`.
fn equals_truth(
    of: &Expr,
    truth: bool,
    names: &mut ColumnResolver<'_>,
) -> Result<TypedExpression, String> {
    let truth = TypedExpression::literal(Arc::new(BooleanArray::from(vec![truth])));
    TypedExpression::two(Operator::NotDistinct, resolve(of, names)?, truth)
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
        other => return Err(format!("{other} is not supported; use {SUPPORTED}")),
    })
}

fn literal(value: &ast::Value) -> Result<TypedExpression, String> {
    let array: ArrayRef = match value {
        Value::Number(number, _) => return self::number(&number.to_string()),
        Value::SingleQuotedString(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        Value::Boolean(truth) => Arc::new(BooleanArray::from(vec![*truth])),
        Value::Null => return Ok(TypedExpression::null()),
        other => return Err(format!("the constant {other} is not supported")),
    };
    Ok(TypedExpression::literal(array))
}

/// An integer, a decimal with the digits of the text, or a float.
fn number(text: &str) -> Result<TypedExpression, String> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(TypedExpression::literal(Arc::new(Int64Array::from(vec![whole]))));
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if let Ok(value) = digits.parse::<i128>()
        && let Ok(scale) = i8::try_from(part.len())
        && digits.len() <= 38
    {
        let decimal = Decimal128Array::from(vec![value]);
        let decimal = decimal.with_precision_and_scale(digits.len().max(1) as u8, scale);
        return decimal.map(|of| TypedExpression::literal(Arc::new(of))).map_err(|e| e.to_string());
    }
    let value = text.parse::<f64>().map_err(|_| format!("{text} is not a number"))?;
    Ok(TypedExpression::literal(Arc::new(Float64Array::from(vec![value]))))
}
