//! Which unwind tables can be run: they are programs, which somebody may have written so that they
//! never end (DWARF 5, sections 2.5 and 6.4).
//!
//! An entry has a bounded length, and its expressions have no jumps. The index names entries of the
//! table only: another one could hide within them.

use std::collections::HashSet;

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, DebugFrame, EhFrame,
    EhFrameHdr, Encoding, LittleEndian, Operation, UnwindExpression, UnwindSection,
};

/// Instructions of one entry, which are run for each call of a stack. Compilers write some hundreds
/// of bytes for the largest functions.
const ENTRY_BYTES_MAX: usize = 16 << 10;

type Bytes<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// The tables of a file.
pub(super) struct Tables<'a> {
    pub(super) bases: BaseAddresses,
    pub(super) eh_frame: Option<&'a [u8]>,
    pub(super) eh_frame_hdr: Option<&'a [u8]>,
    pub(super) debug_frame: Option<&'a [u8]>,
}

impl Tables<'_> {
    /// Whether whatever an unwinder finds in them ends soon.
    pub(super) fn end(&self) -> bool {
        self.eh_frames_end().unwrap_or(false)
            && self.debug_frame.is_none_or(|bytes| {
                entries(&DebugFrame::new(bytes, LittleEndian), &self.bases).is_some()
            })
    }

    fn eh_frames_end(&self) -> Option<bool> {
        let Some(eh_frame) = self.eh_frame else { return Some(true) };
        let known = entries(&EhFrame::new(eh_frame, LittleEndian), &self.bases)?;
        let Some(index) = self.eh_frame_hdr else { return Some(true) };
        // One that can't be read is not searched.
        let Ok(index) = EhFrameHdr::new(index, LittleEndian).parse(&self.bases, 8) else {
            return Some(true);
        };
        let Some(table) = index.table() else { return Some(true) };
        let mut pairs = table.iter(&self.bases);
        while let Some((_, entry)) = pairs.next().ok()? {
            if !known.contains(&table.pointer_to_offset(entry).ok()?.0) {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// The places of all functions' entries, in a table whose entries end; none in another one.
fn entries<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
) -> Option<HashSet<usize>> {
    let (mut common, mut functions) = (HashSet::new(), HashSet::new());
    let mut all = section.entries(bases);
    // Entries after a damaged one are not found.
    while let Ok(Some(entry)) = all.next() {
        match entry {
            CieOrFde::Cie(entry) => {
                common.insert(entry.offset());
                let instructions = entry.instructions(section, bases);
                if !ends(section, instructions, entry.entry_len(), entry.encoding()) {
                    return None;
                }
            }
            CieOrFde::Fde(partial) => {
                // Without its common part it can't be run.
                let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
                let (cie, length) = (entry.cie(), entry.entry_len());
                let instructions = entry.instructions(section, bases);
                if !ends(section, instructions, length, cie.encoding())
                    || !common.contains(&cie.offset())
                {
                    return None;
                }
                functions.insert(entry.offset());
            }
        }
    }
    Some(functions)
}

fn ends<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    mut instructions: CallFrameInstructionIter<'_, Bytes<'a>>,
    length: usize,
    encoding: Encoding,
) -> bool {
    if length > ENTRY_BYTES_MAX {
        return false;
    }
    // A damaged instruction is where the unwinder stops too.
    while let Ok(Some(instruction)) = instructions.next() {
        let expression = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => expression,
            _ => continue,
        };
        if jumps(section, &expression, encoding) {
            return false;
        }
    }
    true
}

fn jumps<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    expression: &UnwindExpression<usize>,
    encoding: Encoding,
) -> bool {
    let Ok(expression) = expression.get(section) else { return false };
    let mut operations = expression.operations(encoding);
    while let Ok(Some(operation)) = operations.next() {
        if matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const EH_FRAME: u64 = 0x1000;
    const EH_FRAME_HDR: u64 = 0x2000;

    fn entry(parts: &[&[u8]]) -> Vec<u8> {
        let mut body = parts.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    }

    /// A common part and a function's of these instructions, and where the function's is.
    fn table(instructions: &[u8]) -> (Vec<u8>, usize) {
        // Version 1, no augmentation, factors 1 and -8, return address in 16; CFA at rsp + 8.
        let common = entry(&[&[0; 4], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]]);
        let back = (common.len() as u32 + 4).to_le_bytes();
        let place = [0x4000_u64.to_le_bytes(), 0x100_u64.to_le_bytes()].concat();
        let function = entry(&[&back, &place, instructions]);
        let at = common.len();
        ([common, function, vec![0; 4]].concat(), at)
    }

    fn ends(table: &[u8], index: Option<&[u8]>) -> bool {
        let bases = BaseAddresses::default().set_eh_frame(EH_FRAME).set_eh_frame_hdr(EH_FRAME_HDR);
        Tables { bases, eh_frame: Some(table), eh_frame_hdr: index, debug_frame: None }.end()
    }

    #[test]
    fn jumps_and_endless_entries_are_refused() {
        // Of a procedure linkage table: the CFA is computed, without a jump.
        let computed = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        for plain in [&[][..], &[0x41, 0x0e, 16], &computed] {
            assert!(ends(&table(plain).0, None), "{plain:?}");
        }
        let skips_itself = [0x0f, 3, 0x2f, 0xfd, 0xff];
        let branches = [0x10, 6, 4, 0x31, 0x28, 0xfc, 0xff];
        for endless in [&skips_itself[..], &branches, &[0; ENTRY_BYTES_MAX]] {
            assert!(!ends(&table(endless).0, None), "{} bytes", endless.len());
        }
        let (skips, _) = table(&skips_itself);
        let tables = Tables {
            bases: BaseAddresses::default(),
            eh_frame: None,
            eh_frame_hdr: None,
            debug_frame: Some(&[]),
        };
        assert!(tables.end() && !ends(&skips, None));
    }

    #[test]
    fn the_index_names_entries_only() {
        let (table, at) = table(&[]);
        let index = |entry: usize| {
            let from_here = (EH_FRAME as i64 - (EH_FRAME_HDR + 4) as i64) as i32;
            let [place, entry] = [0x4000, EH_FRAME + entry as u64]
                .map(|address| (address as i64 - EH_FRAME_HDR as i64) as i32);
            let words = [from_here, 1, place, entry].map(i32::to_le_bytes).concat();
            [&[1, 0x1b, 0x03, 0x3b][..], &words].concat()
        };
        assert!(ends(&table, Some(&index(at))));
        assert!(!ends(&table, Some(&index(at + 4))));
        assert!(!ends(&table, Some(&index(0))), "a common part belongs to no function");
    }
}
