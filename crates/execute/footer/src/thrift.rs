//! Thrift's compact protocol, read without believing a length: a decoder that makes room for what
//! a list says it holds is given only bytes that hold as much.
//!
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// Structs, lists and maps within each other. Parquet's own are a handful.
const DEPTH_MAX: u32 = 32;

/// Kinds of values, as four bits.
pub mod kind {
    /// The end of a struct.
    pub const STOP: u8 = 0;
    /// True, as a field; of elements, any truth value.
    pub const TRUE: u8 = 1;
    /// False, as a field.
    pub const FALSE: u8 = 2;
    /// Eight bits.
    pub(crate) const BYTE: u8 = 3;
    /// Sixteen bits, as a varint.
    pub(crate) const I16: u8 = 4;
    /// 32 bits, as a varint.
    pub const I32: u8 = 5;
    /// 64 bits, as a varint.
    pub const I64: u8 = 6;
    /// Eight bytes.
    pub const DOUBLE: u8 = 7;
    /// A length and bytes.
    pub(crate) const BINARY: u8 = 8;
    /// A kind, a number and elements.
    pub const LIST: u8 = 9;
    /// As a list.
    pub const SET: u8 = 10;
    /// A number, two kinds and pairs.
    pub const MAP: u8 = 11;
    /// Fields.
    pub const STRUCT: u8 = 12;
    /// Sixteen bytes.
    pub(crate) const UUID: u8 = 13;
}

/// The reason why reading can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end before the value does.
    Ends,
    /// No value looks like this.
    Wrong,
}

/// Bytes, and how far they are read.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// How far.
    pub at: usize,
    /// Numbers in lists that were passed over, some of a byte where they are decoded to eight.
    pub numbers: usize,
    /// The kind of the field that is visited, which is all that there is of a truth value.
    pub(crate) kind: u8,
}

impl<'a> Reader<'a> {
    /// From their beginning.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, numbers: 0, kind: kind::STOP }
    }

    /// What those numbers are decoded to.
    pub(crate) fn number_bytes(&self) -> usize {
        self.numbers.saturating_mul(size_of::<i64>())
    }

    /// Visits the fields of a struct by their numbers, to its end. A field that `visit` doesn't
    /// read, which it says by `false`, is passed over. `kinds` are those of the fields 1, 2, …: a
    /// decoder reads a field as what its number means, whatever its kind, so another is refused.
    pub fn fields(
        &mut self,
        kinds: &[u8],
        mut visit: impl FnMut(&mut Self, i64) -> Result<bool, Malformed>,
    ) -> Result<(), Malformed> {
        let mut number = 0_i64;
        loop {
            let byte = self.byte()?;
            let kind = byte & 15;
            if kind == kind::STOP {
                return Ok(());
            }
            number = match byte >> 4 {
                0 => self.number()?,
                step => number.checked_add(i64::from(step)).ok_or(Malformed::Wrong)?,
            };
            // Decoders have 16 bits for it.
            let at = usize::from(i16::try_from(number).map_err(|_| Malformed::Wrong)? as u16);
            let wanted = at.checked_sub(1).and_then(|at| kinds.get(at)).copied();
            let found = if kind == kind::FALSE { kind::TRUE } else { kind };
            if wanted.is_some_and(|wanted| wanted != found) {
                return Err(Malformed::Wrong);
            }
            self.kind = kind;
            if !visit(self, number)? {
                self.skip(kind, DEPTH_MAX)?;
            }
        }
    }

    /// The kind and the number of a list's elements, of which there is at least a byte each.
    pub fn list(&mut self) -> Result<(u8, usize), Malformed> {
        let byte = self.byte()?;
        let elements = match byte >> 4 {
            15 => self.size()?,
            few => usize::from(few),
        };
        self.has(elements)?;
        Ok((byte & 15, elements))
    }

    /// Passes over a struct of fields that hold no structs.
    pub(crate) fn known(&mut self, kinds: &[u8]) -> Result<(), Malformed> {
        self.fields(kinds, |_, _| Ok(false))
    }

    /// Reads a list of structs, each by `read`.
    pub(crate) fn structs(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let (kind, elements) = self.list()?;
        // Some writers give empty lists no kind.
        if elements > 0 && kind != kind::STRUCT {
            return Err(Malformed::Wrong);
        }
        (0..elements).try_for_each(|_| read(self))
    }

    /// A signed number.
    pub fn number(&mut self) -> Result<i64, Malformed> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// A number of 32 bits; of a longer one, decoders would take the lowest.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        i32::try_from(self.number()?).map_err(|_| Malformed::Wrong)
    }

    /// Passes over a value.
    pub fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed::Wrong)?;
        match kind {
            // As a field; their value is the kind.
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::UUID => self.pass(16),
            kind::BINARY => self.binary().map(drop),
            kind::LIST | kind::SET => {
                let (kind, elements) = self.list()?;
                if matches!(kind, kind::I16 | kind::I32 | kind::I64) {
                    self.numbers = self.numbers.saturating_add(elements);
                }
                (0..elements).try_for_each(|_| self.skip_element(kind, depth))
            }
            kind::MAP => {
                let entries = self.size()?;
                self.has(entries)?;
                let kinds = if entries == 0 { 0 } else { self.byte()? };
                (0..entries).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)
                })
            }
            kind::STRUCT => loop {
                let byte = self.byte()?;
                if byte & 15 == kind::STOP {
                    return Ok(());
                }
                if byte >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(byte & 15, depth)?;
            },
            _ => Err(Malformed::Wrong),
        }
    }

    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), Malformed> {
        match kind {
            // The format has a byte for each. Some decoders, the parquet crate's among them, pass
            // over nothing, and take these bytes for what follows.
            kind::TRUE | kind::FALSE => Err(Malformed::Wrong),
            kind => self.skip(kind, depth),
        }
    }

    /// The length of what follows.
    pub fn size(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed::Wrong)
    }

    /// A number without a sign, seven bits a byte.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(Malformed::Wrong)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed::Ends)?;
        self.at += 1;
        Ok(byte)
    }

    fn has(&self, bytes: usize) -> Result<(), Malformed> {
        match bytes <= self.bytes.len() - self.at {
            true => Ok(()),
            false => Err(Malformed::Ends),
        }
    }

    /// A text or bytes.
    pub(crate) fn binary(&mut self) -> Result<&'a [u8], Malformed> {
        let bytes = self.size()?;
        self.pass(bytes)?;
        Ok(&self.bytes[self.at - bytes..self.at])
    }

    pub(crate) fn pass(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.has(bytes)?;
        self.at += bytes;
        Ok(())
    }
}
