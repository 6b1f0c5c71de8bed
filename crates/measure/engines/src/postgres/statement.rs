//! A prepared statement's values and columns as the server's types want them.
//!
//! Numbers, texts and days go and come in the server's binary form, which both sides read without
//! parsing; every other type as text, which the reader of a row understands as well.

use std::error::Error;

use bytes::BytesMut;
use postgres_protocol::message::backend::{
    Message as Parsed, ParameterDescriptionBody, RowDescriptionBody,
};
use postgres_protocol::{IsNull, Oid, types};
use workahead_workloads::session::{Columns, Date, SessionError, Timestamp, Value};

use super::wire::{Message, garbled};
use fallible_iterator::FallibleIterator;

/// Days and microseconds from 1970 to 2000, where the server's calendar begins.
const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = DAYS_TO_2000 as i64 * 86_400_000_000;

/// Types with a binary form here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Text,
    Date,
    Timestamp,
    /// Everything else, as text.
    Other,
}

impl Form {
    /// From the type's number in `pg_type.dat`, which never changes.
    fn of(oid: Oid) -> Form {
        match oid {
            16 => Form::Bool,
            21 => Form::Int2,
            23 => Form::Int4,
            20 => Form::Int8,
            700 => Form::Float4,
            701 => Form::Float8,
            // text, varchar, char(n), name
            25 | 1043 | 1042 | 19 => Form::Text,
            1082 => Form::Date,
            // Without and with a zone; the session's is that of the server.
            1114 | 1184 => Form::Timestamp,
            _ => Form::Other,
        }
    }

    /// The protocol's format code: 1 is binary.
    fn code(self) -> i16 {
        i16::from(self != Form::Other)
    }
}

/// A statement the server has prepared.
#[derive(Debug, Default)]
pub(super) struct PreparedStatement {
    /// Its name on the server.
    pub(super) name: String,
    /// Its text.
    pub(super) text: String,
    values: Vec<Form>,
    columns: Vec<Form>,
}

impl PreparedStatement {
    pub(super) fn new(name: String, text: String) -> PreparedStatement {
        PreparedStatement { name, text, ..PreparedStatement::default() }
    }

    pub(super) fn take_values(&mut self, body: &ParameterDescriptionBody) -> std::io::Result<()> {
        self.values = body.parameters().map(|oid| Ok(Form::of(oid))).collect()?;
        Ok(())
    }

    pub(super) fn take_columns(&mut self, body: &RowDescriptionBody) -> std::io::Result<()> {
        self.columns = body.fields().map(|field| Ok(Form::of(field.type_oid()))).collect()?;
        Ok(())
    }

    /// Writes a Bind of these values.
    pub(super) fn bind(
        &self,
        values: &[Value<'_>],
        out: &mut BytesMut,
    ) -> Result<(), SessionError> {
        if values.len() != self.values.len() {
            let (needed, given) = (self.values.len(), values.len());
            let says = format!("the statement has {needed} values, {given} were given");
            return Err(SessionError::Failed(says));
        }
        let pairs = || self.values.iter().copied().zip(values);
        let begun = out.len();
        let bound = postgres_protocol::message::frontend::bind(
            "",
            &self.name,
            pairs().map(|(form, value)| sent_as(form, value)),
            pairs(),
            |(form, value), out| write(form, value, out),
            self.columns.iter().map(|form| form.code()),
            out,
        );
        bound.map_err(|error| {
            out.truncate(begun);
            let says = match error {
                postgres_protocol::message::frontend::BindError::Conversion(why) => why.to_string(),
                postgres_protocol::message::frontend::BindError::Serialization(why) => {
                    why.to_string()
                }
            };
            SessionError::Failed(says)
        })
    }

    /// A row of its answer; `cells` is a reused buffer.
    pub(super) fn row<'a>(
        &'a self,
        message: Message<'a>,
        cells: &'a mut Vec<Cell>,
    ) -> Result<Fields<'a>, SessionError> {
        split(message, cells)?;
        if cells.len() != self.columns.len() {
            return Err(garbled(&"a row of another width"));
        }
        Ok(Fields { body: message.body(), forms: &self.columns, cells })
    }
}

/// The format code under which a value goes: text where its type is not the server's.
fn sent_as(form: Form, value: &Value<'_>) -> i16 {
    let alike = match value {
        Value::Null => true,
        Value::Int(_) => {
            matches!(form, Form::Bool | Form::Int2 | Form::Int4 | Form::Int8)
                || matches!(form, Form::Float4 | Form::Float8)
        }
        Value::Real(_) => matches!(form, Form::Float4 | Form::Float8),
        Value::Decimal(_) => matches!(form, Form::Float4 | Form::Float8),
        Value::Text(_) => form == Form::Text,
        Value::Date(_) => form == Form::Date,
        Value::Timestamp(_) => form == Form::Timestamp,
    };
    i16::from(alike)
}

type WriteResult = Result<IsNull, Box<dyn Error + Sync + Send>>;

fn write(form: Form, value: &Value<'_>, out: &mut BytesMut) -> WriteResult {
    match (form, *value) {
        (_, Value::Null) => return Ok(IsNull::Yes),
        (Form::Bool, Value::Int(int)) => types::bool_to_sql(int != 0, out),
        (Form::Int2, Value::Int(int)) => types::int2_to_sql(fit(int, "smallint")?, out),
        (Form::Int4, Value::Int(int)) => types::int4_to_sql(fit(int, "integer")?, out),
        (Form::Int8, Value::Int(int)) => types::int8_to_sql(int, out),
        (Form::Float4, Value::Real(real)) => types::float4_to_sql(real as f32, out),
        (Form::Float8, Value::Real(real)) => types::float8_to_sql(real, out),
        (Form::Float4, Value::Int(int)) => types::float4_to_sql(int as f32, out),
        (Form::Float8, Value::Int(int)) => types::float8_to_sql(int as f64, out),
        (Form::Float4, Value::Decimal(decimal)) => {
            types::float4_to_sql(decimal.real() as f32, out);
        }
        (Form::Float8, Value::Decimal(decimal)) => types::float8_to_sql(decimal.real(), out),
        (Form::Date, Value::Date(Date(days))) => {
            let days =
                days.checked_sub(DAYS_TO_2000).ok_or("a day before the server's calendar")?;
            types::date_to_sql(days, out);
        }
        (Form::Timestamp, Value::Timestamp(Timestamp(micros))) => {
            let micros = micros.checked_sub(MICROS_TO_2000);
            let micros = micros.ok_or("a moment before the server's calendar")?;
            types::timestamp_to_sql(micros, out);
        }
        (_, Value::Text(text)) => types::text_to_sql(text, out),
        (_, Value::Int(int)) => types::text_to_sql(&int.to_string(), out),
        (_, Value::Real(real)) => types::text_to_sql(&real.to_string(), out),
        (_, Value::Decimal(decimal)) => types::text_to_sql(&decimal.to_string(), out),
        (_, Value::Date(date)) => types::text_to_sql(&date.to_string(), out),
        (_, Value::Timestamp(moment)) => types::text_to_sql(&moment.to_string(), out),
    }
    Ok(IsNull::No)
}

fn fit<T: TryFrom<i64>>(int: i64, name: &str) -> Result<T, String> {
    T::try_from(int).map_err(|_| format!("{int} is out of range for a value of type {name}"))
}

/// Where a value lies in a row's message; `None` for nulls.
pub(super) type Cell = Option<(u32, u32)>;

/// A row whose values lie in the message it came in.
pub(super) struct Fields<'a> {
    body: &'a [u8],
    forms: &'a [Form],
    cells: &'a [Cell],
}

/// Every column as text.
const TEXTS: [Form; 1] = [Form::Other];

/// A row of the simple protocol, all text.
pub(super) fn texts<'a>(
    message: Message<'a>,
    cells: &'a mut Vec<Cell>,
) -> Result<Fields<'a>, SessionError> {
    split(message, cells)?;
    Ok(Fields { body: message.body(), forms: &TEXTS, cells })
}

/// DataRow: a count of 16 bits; then each value's length in 32, -1 when null, and its bytes.
fn split(message: Message<'_>, cells: &mut Vec<Cell>) -> Result<(), SessionError> {
    cells.clear();
    let body = message.body();
    let short = || garbled(&"a row that ends early");
    let count = body.first_chunk().map(|count| u16::from_be_bytes(*count)).ok_or_else(short)?;
    let mut at = 2;
    for _ in 0..count {
        let length = body.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(short)?;
        at += 4;
        let Ok(length) = u32::try_from(i32::from_be_bytes(*length)) else {
            cells.push(None);
            continue;
        };
        cells.push(Some((at as u32, length)));
        at += length as usize;
    }
    if at == body.len() { Ok(()) } else { Err(short()) }
}

impl Columns for Fields<'_> {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        let Some((at, length)) = self.cells[index] else { return Ok(Value::Null) };
        let bytes = &self.body[at as usize..][..length as usize];
        // One form stands for all columns of a row of texts.
        let form = self.forms[index.min(self.forms.len() - 1)];
        read(form, bytes).map_err(|why| SessionError::Failed(format!("column {index}: {why}")))
    }
}

fn read(form: Form, bytes: &[u8]) -> Result<Value<'_>, Box<dyn Error + Sync + Send>> {
    Ok(match form {
        Form::Bool => Value::Int(i64::from(types::bool_from_sql(bytes)?)),
        Form::Int2 => Value::Int(i64::from(types::int2_from_sql(bytes)?)),
        Form::Int4 => Value::Int(i64::from(types::int4_from_sql(bytes)?)),
        Form::Int8 => Value::Int(types::int8_from_sql(bytes)?),
        Form::Float4 => Value::Real(f64::from(types::float4_from_sql(bytes)?)),
        Form::Float8 => Value::Real(types::float8_from_sql(bytes)?),
        Form::Text | Form::Other => Value::Text(types::text_from_sql(bytes)?),
        Form::Date => {
            // The ends of the range stand for `-infinity` and `infinity`.
            let days = Some(types::date_from_sql(bytes)?).filter(|days| *days != i32::MIN);
            let days = days.and_then(|days| days.checked_add(DAYS_TO_2000));
            Value::Date(Date(days.ok_or("not a day of the calendar")?))
        }
        Form::Timestamp => {
            let micros = Some(types::timestamp_from_sql(bytes)?).filter(|at| *at != i64::MIN);
            let micros = micros.and_then(|micros| micros.checked_add(MICROS_TO_2000));
            Value::Timestamp(Timestamp(micros.ok_or("not a moment of the calendar")?))
        }
    })
}

/// Parses a message.
pub(super) fn parse(message: Message<'_>) -> Result<Parsed, SessionError> {
    let parsed = Parsed::parse(&mut BytesMut::from(message.whole));
    parsed.map_err(|error| garbled(&error))?.ok_or_else(|| garbled(&"half a message"))
}
