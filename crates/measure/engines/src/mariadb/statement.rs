//! A prepared statement, and values as the server takes them.
//!
//! Numbers go in the server's binary form; texts, decimals and days as texts, which the server
//! turns into what it needs.

use mysql_common::constants::ColumnType;
use mysql_common::io::{BufMutExt, ParseBuf};
use mysql_common::packets::StmtPacket;
use workahead_workloads::session::{SessionError, Value};

use super::answer::describe;
use super::login::Terms;
use super::refusal;
use super::row::Form;
use super::wire::{Wire, garbled};

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// A statement the server has prepared.
#[derive(Debug)]
pub(super) struct PreparedStatement {
    id: u32,
    /// Its text.
    pub(super) text: String,
    /// The number of its values.
    width: usize,
    /// The columns of its answer, as the server last described them.
    pub(super) columns: Vec<Form>,
    /// The types of the last values, which the server remembers.
    types: Vec<ColumnType>,
}

impl PreparedStatement {
    /// Prepares a text on the server.
    pub(super) fn new(
        wire: &mut Wire,
        terms: &Terms,
        text: &str,
    ) -> Result<PreparedStatement, SessionError> {
        wire.command(PREPARE).extend(text.as_bytes());
        wire.send()?;
        let packet = wire.receive()?;
        if packet.first() == Some(&0xff) {
            return Err(refusal::read(packet));
        }
        let prepared: StmtPacket = ParseBuf(packet).parse(()).map_err(garbled)?;
        let (id, text) = (prepared.statement_id(), text.to_owned());
        let [width, columns] = [prepared.num_params(), prepared.num_columns()].map(usize::from);
        // Without descriptions there is no end packet either.
        let mut described = |count| match count {
            0 => Ok(Vec::new()),
            count => describe(wire, terms, count),
        };
        described(width)?;
        let columns = described(columns)?;
        Ok(PreparedStatement { id, text, width, columns, types: Vec::new() })
    }

    /// Sends it with these values.
    pub(super) fn execute(
        &mut self,
        wire: &mut Wire,
        values: &[Value<'_>],
    ) -> Result<(), SessionError> {
        if values.len() != self.width {
            let (needed, given) = (self.width, values.len());
            let says = format!("the statement has {needed} values, {given} were given");
            return Err(SessionError::Failed(says));
        }
        let out = wire.command(EXECUTE);
        out.extend(self.id.to_le_bytes());
        // No cursor, once.
        out.extend([0, 1, 0, 0, 0]);
        if !values.is_empty() {
            let nulls = out.len();
            out.resize(nulls + values.len().div_ceil(8), 0);
            for (index, _) in values.iter().enumerate().filter(|(_, v)| matches!(v, Value::Null)) {
                out[nulls + index / 8] |= 1 << (index % 8);
            }
            let known = values.iter().copied().map(sent_as).eq(self.types.iter().copied());
            out.push(u8::from(!known));
            if !known {
                self.types = values.iter().copied().map(sent_as).collect();
                out.extend(self.types.iter().flat_map(|kind| [*kind as u8, 0]));
            }
            for value in values {
                write(*value, out);
            }
        }
        wire.send()
    }

    /// The server may not have read the last values' types.
    pub(super) fn forget_types(&mut self) {
        self.types.clear();
    }
}

fn sent_as(value: Value<'_>) -> ColumnType {
    match value {
        Value::Null => ColumnType::MYSQL_TYPE_NULL,
        Value::Int(_) => ColumnType::MYSQL_TYPE_LONGLONG,
        Value::Real(_) => ColumnType::MYSQL_TYPE_DOUBLE,
        Value::Text(_) | Value::Decimal(_) | Value::Date(_) | Value::Timestamp(_) => {
            ColumnType::MYSQL_TYPE_VAR_STRING
        }
    }
}

fn write(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(int) => out.extend(int.to_le_bytes()),
        Value::Real(real) => out.extend(real.to_le_bytes()),
        Value::Text(text) => out.put_lenenc_str(text.as_bytes()),
        Value::Decimal(decimal) => out.put_lenenc_str(decimal.to_string().as_bytes()),
        Value::Date(date) => out.put_lenenc_str(date.to_string().as_bytes()),
        Value::Timestamp(moment) => out.put_lenenc_str(moment.to_string().as_bytes()),
    }
}
