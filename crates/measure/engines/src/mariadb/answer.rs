//! The server's answer to a statement, read to its end.
//!
//! ```text
//! text ─► result ┬─ done: rows changed, state                    state: is another result to come?
//!                ├─ refused: number, why
//!                └─ width ─ columns, unless they are known ─ row … ─ done
//! ```

use mysql_common::constants::StatusFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::Column;
use workahead_workloads::session::{Counts, OnRow, Row, SessionError};

use super::login::Terms;
use super::refusal;
use super::row::{Cells, Form};
use super::wire::{PAYLOAD_BYTES_MAX, Wire, garbled, short};

/// How a statement ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StatementEnd {
    /// Rows that it changed.
    pub(super) changed: u64,
    /// The server's state, [`StatusFlags`].
    pub(super) status: u16,
}

impl StatementEnd {
    pub(super) fn read(packet: &[u8]) -> Result<StatementEnd, SessionError> {
        let mut rest = ParseBuf(packet);
        let read = |rest: &mut ParseBuf<'_>| {
            rest.checked_skip(1).then_some(())?;
            let changed = rest.checked_eat_lenenc_int()?;
            let _last_id = rest.checked_eat_lenenc_int()?;
            Some(StatementEnd { changed, status: rest.checked_eat_u16_le()? })
        };
        read(&mut rest).ok_or_else(short)
    }

    /// Of the packet behind the last row; of columns too, where servers still end those.
    fn behind_rows(packet: &[u8], terms: &Terms) -> Result<StatementEnd, SessionError> {
        match (terms.without_eof, packet) {
            (true, _) => StatementEnd::read(packet),
            // Warnings, two bytes, come first.
            (false, [0xfe, _, _, low, high]) => {
                Ok(StatementEnd { changed: 0, status: u16::from_le_bytes([*low, *high]) })
            }
            (false, _) => Err(short()),
        }
    }
}

/// The answer to a text or a prepared statement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answer {
    /// Rows of all results, and those that the last statement changed.
    pub(super) counts: Counts,
    /// The server's state after it.
    pub(super) status: u16,
}

impl Answer {
    /// Reads all results and hands over their rows. `columns` are those of a prepared statement,
    /// as known so far; a text's answer has none before it comes.
    ///
    /// # Errors
    /// The server's error, or that of `row`, once the answer is read to its end.
    pub(super) fn read(
        wire: &mut Wire,
        terms: &Terms,
        mut columns: Option<&mut Vec<Form>>,
        cells: &mut Cells,
        row: OnRow<'_>,
    ) -> Result<Answer, SessionError> {
        let mut answer = Answer::default();
        let mut refused = None;
        loop {
            let packet = wire.receive()?;
            let done = match packet {
                [0x00, ..] => StatementEnd::read(packet)?,
                [0xff, ..] => return Err(refusal::read(packet)),
                _ => {
                    let (width, described) = width(packet, terms)?;
                    let come = describe(wire, terms, if described { width } else { 0 })?;
                    if let (true, Some(known)) = (described, columns.as_deref_mut()) {
                        *known = come;
                    }
                    let forms = columns.as_deref().map(Vec::as_slice);
                    if forms.is_some_and(|forms| forms.len() != width) {
                        return Err(garbled("a row of another width"));
                    }
                    loop {
                        let packet = wire.receive()?;
                        match packet {
                            [0xff, ..] => return Err(refusal::read(packet)),
                            // A row whose first value is that long begins alike.
                            [0xfe, ..] if packet.len() < PAYLOAD_BYTES_MAX => {
                                break StatementEnd {
                                    changed: 0,
                                    ..StatementEnd::behind_rows(packet, terms)?
                                };
                            }
                            _ => answer.counts.rows += 1,
                        }
                        if refused.is_none() {
                            let fields = cells.split(packet, forms, width)?;
                            refused = row(Row::new(&fields)).err();
                            // The rest of the answer may have no end.
                            if let Some(SessionError::Gone(says)) = refused {
                                return Err(SessionError::Gone(says));
                            }
                        }
                    }
                }
            };
            answer = Answer {
                counts: Counts { changed: done.changed, ..answer.counts },
                status: done.status,
            };
            if done.status & StatusFlags::SERVER_MORE_RESULTS_EXISTS.bits() == 0 {
                return refused.map_or(Ok(answer), Err);
            }
        }
    }
}

/// How many columns follow, and whether they are described.
fn width(packet: &[u8], terms: &Terms) -> Result<(usize, bool), SessionError> {
    let mut rest = ParseBuf(packet);
    let width = rest.checked_eat_lenenc_int().filter(|width| (1..=4096).contains(width));
    let width = width.ok_or_else(|| garbled("a row of no width"))?;
    let described = !terms.cached_columns || rest.checked_eat_u8().ok_or_else(short)? != 0;
    Ok((width as usize, described))
}

/// Reads the descriptions of columns, or of a prepared statement's parameters, and their end.
pub(super) fn describe(
    wire: &mut Wire,
    terms: &Terms,
    count: usize,
) -> Result<Vec<Form>, SessionError> {
    let forms: Result<Vec<Form>, SessionError> = (0..count)
        .map(|_| {
            let column: Column = ParseBuf(wire.receive()?).parse(()).map_err(garbled)?;
            Ok(Form::of(&column))
        })
        .collect();
    if !terms.without_eof {
        wire.receive()?;
    }
    forms
}
