//! The SQL of filters.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray};
use sqlparser::ast::{self, BinaryOperator, CastKind, Expr, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use super::column_resolver::ColumnResolver;
use super::nesting;
use super::typed_expression::{Connective, Operator, TypedExpression};
use super::types;

pub(super) const SUPPORTED: &str = "columns, constants, = <> < <= > >=, AND OR NOT, + - * / %, \
                                    IS NULL, BETWEEN, IN, LIKE, IS DISTINCT FROM, CAST";

/// One expression, and nothing after it.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let message = |error: ParserError| match error {
        ParserError::RecursionLimitExceeded => nesting::too_deep(),
        error => error.to_string(),
    };
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| message(error.into()))?;
    nesting::check(&tokens)?;
    let parser = Parser::new(&GenericDialect {}).with_recursion_limit(nesting::PARSER_LEVELS_MAX);
    let mut parser = parser.with_tokens_with_locations(tokens);
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
    Resolver { names, open: 0 }.resolve(of)
}

/// An expression on its way to one with types.
struct Resolver<'a, 'b> {
    names: &'a mut ColumnResolver<'b>,
    /// Levels that are open where it is.
    open: usize,
}

impl Resolver<'_, '_> {
    fn resolve(&mut self, of: &Expr) -> Result<TypedExpression, String> {
        self.open += 1;
        if self.open > nesting::LEVELS_MAX {
            return Err(nesting::too_deep());
        }
        let resolved = self.resolve_level(of);
        self.open -= 1;
        resolved
    }

    fn resolve_level(&mut self, of: &Expr) -> Result<TypedExpression, String> {
        let column = |(at, data_type)| TypedExpression::column(at, data_type);
        match of {
            Expr::Nested(of) => self.resolve(of),
            Expr::Identifier(name) => self.names.unqualified(&name.value).map(column),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [side, name] => self.names.qualified(&side.value, &name.value).map(column),
                _ => Err(format!("{of} is not a column: write left.NAME or right.NAME")),
            },
            Expr::Value(value) => literal(&value.value),
            Expr::TypedString(constant) => {
                let to = types::named(&constant.data_type)?;
                literal(&constant.value.value)?.cast(to, true)
            }
            Expr::BinaryOp { op: BinaryOperator::And, .. } => self.chain(Connective::And, of),
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => self.chain(Connective::Or, of),
            Expr::BinaryOp { left, op, right } => self.two(operator(op)?, [left, right]),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                TypedExpression::not(self.resolve(expr)?)
            }
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.resolve(expr),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                TypedExpression::negative(self.resolve(expr)?)
            }
            Expr::IsNull(of) => self.resolve(of).map(TypedExpression::is_null),
            Expr::IsNotNull(of) => {
                TypedExpression::not(TypedExpression::is_null(self.resolve(of)?))
            }
            Expr::IsDistinctFrom(left, right) => self.two(Operator::Distinct, [left, right]),
            Expr::IsNotDistinctFrom(left, right) => self.two(Operator::NotDistinct, [left, right]),
            Expr::Between { expr, negated, low, high } => {
                negate_if(self.between(expr, low, high)?, *negated)
            }
            Expr::InList { expr, list, negated } => {
                negate_if(self.equals_any(expr, list)?, *negated)
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                negate_if(self.two(Operator::Like, [expr, pattern])?, *negated)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                negate_if(self.two(Operator::LikeInAnyCase, [expr, pattern])?, *negated)
            }
            Expr::Cast { kind, expr, data_type, array: false, format: None } => {
                let fails = matches!(kind, CastKind::Cast | CastKind::DoubleColon);
                self.resolve(expr)?.cast(types::named(data_type)?, fails)
            }
            Expr::IsTrue(of) => self.equals_truth(of, true),
            Expr::IsNotTrue(of) => TypedExpression::not(self.equals_truth(of, true)?),
            Expr::IsFalse(of) => self.equals_truth(of, false),
            Expr::IsNotFalse(of) => TypedExpression::not(self.equals_truth(of, false)?),
            other => Err(nesting::unsupported(other)),
        }
    }

    fn two(&mut self, operator: Operator, of: [&Expr; 2]) -> Result<TypedExpression, String> {
        TypedExpression::two(operator, self.resolve(of[0])?, self.resolve(of[1])?)
    }

    /// `a OR b OR c`: the parser's `(a OR b) OR c`, whose left sides are as many as the terms.
    fn chain(&mut self, connective: Connective, of: &Expr) -> Result<TypedExpression, String> {
        let chained = match connective {
            Connective::And => BinaryOperator::And,
            Connective::Or => BinaryOperator::Or,
        };
        let (mut terms, mut rest) = (Vec::new(), of);
        while let Expr::BinaryOp { left, op, right } = rest
            && *op == chained
        {
            terms.push(right.as_ref());
            rest = left.as_ref();
        }
        terms.push(rest);
        let terms = terms.into_iter().rev().map(|term| self.resolve(term));
        TypedExpression::chain(connective, terms.collect::<Result<_, _>>()?)
    }

    fn between(&mut self, of: &Expr, low: &Expr, high: &Expr) -> Result<TypedExpression, String> {
        let (of, low, high) = (self.resolve(of)?, self.resolve(low)?, self.resolve(high)?);
        of.given_to(|of| {
            let from = TypedExpression::two(Operator::GreaterOrEqual, of.clone(), low)?;
            let to = TypedExpression::two(Operator::LessOrEqual, of.clone(), high)?;
            TypedExpression::chain(Connective::And, vec![from, to])
        })
    }

    /// `IN`.
    fn equals_any(&mut self, of: &Expr, list: &[Expr]) -> Result<TypedExpression, String> {
        if list.is_empty() {
            return Err("IN () has no values".to_owned());
        }
        self.resolve(of)?.given_to(|of| {
            let equal = list
                .iter()
                .map(|item| TypedExpression::two(Operator::Equal, of.clone(), self.resolve(item)?));
            TypedExpression::chain(Connective::Or, equal.collect::<Result<_, _>>()?)
        })
    }

    /// `IS TRUE`, `IS FALSE`.
    fn equals_truth(&mut self, of: &Expr, truth: bool) -> Result<TypedExpression, String> {
        let truth = TypedExpression::literal(Arc::new(BooleanArray::from(vec![truth])));
        TypedExpression::two(Operator::NotDistinct, self.resolve(of)?, truth)
    }
}

fn negate_if(of: TypedExpression, negated: bool) -> Result<TypedExpression, String> {
    if negated { TypedExpression::not(of) } else { Ok(of) }
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
