//! Memory of a file's dictionaries: each is kept until another has its number, and all are looked
//! at as often as one is added to.

use std::collections::HashMap;

use arrow_ipc::{DictionaryBatch, Message};
use arrow_schema::{DataType, SchemaRef};

use crate::items::{self, counted, values_of};
use crate::{MessageError, RATIO_USUAL, Size, fits, too_much, wrong};

/// Bytes that dictionaries may be copied to, all together, as others are added to them: seconds.
const COPIED_BYTES_MAX: usize = 4 << 30;

/// A look at a field for the number of its dictionary, as bytes that are copied.
const LOOK_BYTES: usize = 16;

/// The dictionaries so far.
#[derive(Debug)]
pub struct Dictionaries {
    /// What each holds by its number.
    of_each: HashMap<i64, usize>,
    /// Whether each node of their values is counted, by their numbers; and each of the columns.
    of_values: HashMap<i64, Vec<bool>>,
    of_columns: Vec<bool>,
    /// What all of them hold.
    pub bytes: usize,
    /// What was copied to make them, or is zeros for the most part.
    copied_bytes: usize,
    /// All fields, nested ones too: each message of a dictionary has all of them looked at.
    fields: usize,
    /// Values of a dictionary may hold another one, also once that is replaced.
    pub are_nested: bool,
}

impl Dictionaries {
    /// None yet, of a file with these columns.
    #[must_use]
    pub fn new(schema: &SchemaRef) -> Self {
        let fields = schema.flattened_fields();
        let are_nested = fields.iter().any(|field| match field.data_type() {
            DataType::Dictionary(_, of) => of.is_nested() || of.is_run_ends_type(),
            _ => false,
        });
        let values = values_of(schema).into_iter();
        let columns = schema.fields().iter().map(|field| field.data_type());
        Self {
            of_each: HashMap::new(),
            of_values: values.map(|(id, values)| (id, counted([&values].into_iter()))).collect(),
            of_columns: counted(columns),
            bytes: 0,
            copied_bytes: 0,
            fields: fields.len(),
            are_nested,
        }
    }

    /// Counts a message with the items of its values, before it is decoded.
    ///
    /// # Errors
    /// As [`add`](Self::add), or when the items take too much.
    pub fn check(
        &mut self,
        dictionary: &DictionaryBatch<'_>,
        size: Size,
        bytes_max: usize,
    ) -> Result<(), MessageError> {
        let counted = self.of_values.get(&dictionary.id());
        if let Some((batch, counted)) = dictionary.data().zip(counted) {
            items::check(&batch, counted, bytes_max)?;
        }
        self.add(dictionary, size, bytes_max)
    }

    /// What is in memory while a message is decoded. The items of a batch are counted, too.
    ///
    /// # Errors
    /// When it is more than it may be.
    pub fn beside(
        &self,
        message: &Message<'_>,
        size: Size,
        bytes_max: usize,
    ) -> Result<usize, MessageError> {
        if let Some(batch) = message.header_as_record_batch() {
            items::check(&batch, &self.of_columns, bytes_max)?;
        }
        let bytes = self.bytes.saturating_add(size.decoding());
        fits(bytes, bytes_max).map(|()| bytes)
    }

    /// Counts a message, before it is decoded.
    ///
    /// # Errors
    /// When all take more than they may, or one is copied too often.
    pub fn add(
        &mut self,
        dictionary: &DictionaryBatch<'_>,
        size: Size,
        bytes_max: usize,
    ) -> Result<(), MessageError> {
        let before = self.of_each.entry(dictionary.id()).or_default();
        let replaces = !dictionary.isDelta() && !self.are_nested;
        let kept = if replaces { 0 } else { *before };
        self.bytes = (self.bytes - *before).saturating_add(kept).saturating_add(size.held());
        let copied = if dictionary.isDelta() { *before } else { 0 };
        let repeats = size.made / RATIO_USUAL > size.bytes;
        let made = if repeats { size.made } else { 0 };
        let copied = copied.saturating_add(made).saturating_add(self.fields * LOOK_BYTES);
        self.copied_bytes = self.copied_bytes.saturating_add(copied);
        *before = kept.saturating_add(size.held());
        if self.bytes > bytes_max {
            return Err(too_much("a file's dictionaries", self.bytes, bytes_max, ""));
        }
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(wrong("its dictionaries are added to too often: write each at once"));
        }
        Ok(())
    }
}
