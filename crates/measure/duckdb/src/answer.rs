//! The answer of a statement: chunks of rows, each column an array, read in place.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use crate::cell::Cell;
use crate::error::Error;
use crate::ffi::{Huge, Library, Raw, RawResult, State, call, said};

/// The answer of a statement, all of it, in memory.
pub struct Answer<'c> {
    pub(crate) library: Library,
    pub(crate) raw: RawResult,
    _connection: PhantomData<&'c mut ()>,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        call!(self.library, destroy_result(&mut self.raw));
    }
}

impl Answer<'_> {
    pub(crate) fn empty(library: Library) -> Self {
        let raw = RawResult { counts: [0; 3], pointers: [null_mut(); 3] };
        Self { library, raw, _connection: PhantomData }
    }

    pub(crate) fn ended(mut self, state: State) -> Result<Self, Error> {
        match state {
            0 => Ok(self),
            _ => Err(Error::refused(&said(call!(self.library, result_error(&mut self.raw))))),
        }
    }

    /// Rows that were changed.
    pub fn changed(&mut self) -> u64 {
        call!(self.library, rows_changed(&mut self.raw))
    }

    /// Columns of its rows.
    pub fn columns(&mut self) -> u64 {
        call!(self.library, column_count(&mut self.raw))
    }

    /// The next rows; none at the end.
    pub fn next_chunk(&mut self) -> Option<Chunk> {
        let raw = NonNull::new(call!(self.library, fetch_chunk(self.raw)))?;
        Some(Chunk::of(self.library, raw))
    }
}

/// Some rows, column by column.
pub struct Chunk {
    library: Library,
    raw: NonNull<c_void>,
    columns: Vec<Column>,
    rows: usize,
}

struct Column {
    kind: u32,
    /// Of decimals: how they are stored, and their scale.
    inside: u32,
    scale: u8,
    data: Raw,
    validity: *const u64,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        call!(self.library, destroy_data_chunk(&mut raw));
    }
}

impl Chunk {
    fn of(library: Library, raw: NonNull<c_void>) -> Self {
        let rows = call!(library, data_chunk_get_size(raw.as_ptr())) as usize;
        let column = |index| {
            let vector = call!(library, data_chunk_get_vector(raw.as_ptr(), index));
            let mut kind = call!(library, vector_get_column_type(vector));
            let column = Column {
                kind: call!(library, get_type_id(kind)),
                inside: call!(library, decimal_internal_type(kind)),
                scale: call!(library, decimal_scale(kind)),
                data: call!(library, vector_get_data(vector)),
                validity: call!(library, vector_get_validity(vector)),
            };
            call!(library, destroy_logical_type(&mut kind));
            column
        };
        let columns = call!(library, data_chunk_get_column_count(raw.as_ptr()));
        Self { library, raw, columns: (0..columns).map(column).collect(), rows }
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The value of a column in a row.
    ///
    /// # Errors
    /// When it is of a kind that has no place in [`Cell`].
    ///
    /// # Panics
    /// When there is no such column or row.
    pub fn cell(&self, column: usize, row: usize) -> Result<Cell<'_>, Error> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let Column { kind, inside, scale, data, validity } = &self.columns[column];
        // SAFETY: a validity mask, where there is one, has a bit for each row of its chunk.
        let valid = validity.is_null() || unsafe { *validity.add(row / 64) } >> (row % 64) & 1 == 1;
        if !valid {
            return Ok(Cell::Null);
        }
        // SAFETY: `data` has a value of the kind's type for each row, and the row is one of them;
        // it lies in the chunk, which this borrows.
        let cell = unsafe { read(*kind, (*inside, *scale), *data, row) };
        cell.map_err(|why| match why {
            UnreadableValue::Kind => {
                let says = format!("column {column} is neither number, text nor day (type {kind})");
                Error::ours(says + ": cast it to varchar")
            }
            UnreadableValue::Text => {
                Error::ours(format!("column {column} has text that is not UTF-8"))
            }
        })
    }
}

/// `duckdb_string_t`: twelve bytes in place, or four of them and a pointer to all.
#[repr(C)]
struct RawString {
    length: u32,
    prefix: [u8; 4],
    rest: [u8; 8],
}

/// Why a value has no place in [`Cell`].
enum UnreadableValue {
    /// It is of another kind.
    Kind,
    /// It is text that is not UTF-8. The library checks what it stores, not what its functions
    /// return.
    Text,
}

/// Reads a value by its `duckdb_type`.
///
/// # Safety
/// `data` points to more than `row` values of that kind, which live as long as what is returned.
unsafe fn read<'a>(
    kind: u32,
    (inside, scale): (u32, u8),
    data: Raw,
    row: usize,
) -> Result<Cell<'a>, UnreadableValue> {
    // SAFETY: what the caller promises; the library aligns its vectors for their types.
    unsafe {
        let huge = || {
            let Huge { lower, upper } = *data.cast::<Huge>().add(row);
            (i128::from(upper) << 64) | i128::from(lower)
        };
        Ok(match kind {
            1 | 6 => Cell::Int((*data.cast::<u8>().add(row)).into()),
            2 => Cell::Int((*data.cast::<i8>().add(row)).into()),
            3 => Cell::Int((*data.cast::<i16>().add(row)).into()),
            4 => Cell::Int((*data.cast::<i32>().add(row)).into()),
            5 => Cell::Int(*data.cast::<i64>().add(row)),
            7 => Cell::Int((*data.cast::<u16>().add(row)).into()),
            8 => Cell::Int((*data.cast::<u32>().add(row)).into()),
            9 => Cell::whole((*data.cast::<u64>().add(row)).into()),
            10 => Cell::Real((*data.cast::<f32>().add(row)).into()),
            11 => Cell::Real(*data.cast::<f64>().add(row)),
            12 => Cell::Micros(*data.cast::<i64>().add(row)),
            13 => Cell::Days(*data.cast::<i32>().add(row)),
            16 => Cell::whole(huge()),
            17 => {
                let string = data.cast::<RawString>().add(row);
                let length = (*string).length as usize;
                let start = match length {
                    0..=12 => (&raw const (*string).prefix).cast::<u8>(),
                    _ => (&raw const (*string).rest).cast::<*const u8>().read_unaligned(),
                };
                let bytes = std::slice::from_raw_parts(start, length);
                Cell::Text(std::str::from_utf8(bytes).map_err(|_| UnreadableValue::Text)?)
            }
            19 => {
                let units = match inside {
                    3 => (*data.cast::<i16>().add(row)).into(),
                    4 => (*data.cast::<i32>().add(row)).into(),
                    5 => (*data.cast::<i64>().add(row)).into(),
                    _ => huge(),
                };
                Cell::decimal(units, scale)
            }
            _ => return Err(UnreadableValue::Kind),
        })
    }
}
