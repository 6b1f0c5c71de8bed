//! An ELF file as the unwinder and the namer need it: segments, unwind tables, starts of functions.
//!
//! Only the few sections in question are read: a server with its debug information is hundreds of
//! megabytes.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use gimli::BaseAddresses;
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags};
use workahead_machine::guarded::guarded;
use workahead_machine::regular_file;

use super::unwind_tables::Tables;

/// The most that is read of one file: headers may claim gigabytes, which take no disk where nobody
/// wrote them. The tables of a browser take a quarter of this.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The most that is read of one file to know where its debug information is.
const NAMES_BYTES_MAX: u64 = 16 << 20;
/// Linkers give 20 bytes at most.
const BUILD_ID_BYTES_MAX: usize = 64;

/// Code, unwind tables and symbols of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    /// Segments of code: bytes of the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
    debug_frame: Option<Section>,
    /// Its own dynamic symbols, only where no file has them.
    symbols: Vec<(Range<u64>, String)>,
    /// Where separate debug information may lie.
    pub(super) debug_files: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
struct Section {
    addresses: Range<u64>,
    bytes: Arc<[u8]>,
}

impl Image {
    /// Of a file; nothing if it can't be read, is damaged, or no ELF file.
    pub(super) fn of_file(path: &Path) -> Option<Self> {
        guarded(|| Self::read(path)).ok()?
    }

    fn read(path: &Path) -> Option<Self> {
        let file = ReadCache::new(regular_file::open(path).ok()?);
        let left = Cell::new(FILE_BYTES_MAX);
        let elf = object::File::parse(BoundedFile { file: &file, left: &left }).ok()?;
        let mut image = Self::of(&elf, Vec::new());
        // A note may claim the whole file.
        let left = Cell::new(NAMES_BYTES_MAX);
        let elf = object::File::parse(BoundedFile { file: &file, left: &left }).ok()?;
        let build_id = elf.build_id().ok().flatten().filter(|id| id.len() <= BUILD_ID_BYTES_MAX);
        image.debug_files = debug_files(path, build_id, link(&elf).as_deref());
        Some(image)
    }

    /// Of the code that the kernel puts into every process (vdso(7)), read from our own memory.
    pub(super) fn of_vdso() -> Option<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
        File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
        let elf = object::File::parse(&*bytes).ok()?;
        let symbols = elf
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition() && symbol.size() > 0)
            .filter_map(|symbol| {
                let end = symbol.address().checked_add(symbol.size())?;
                Some((symbol.address()..end, symbol.name().ok()?.to_owned()))
            })
            .collect();
        Some(Self::of(&elf, symbols))
    }

    fn of<'a, R: ReadRef<'a>>(
        elf: &object::File<'a, R>,
        symbols: Vec<(Range<u64>, String)>,
    ) -> Self {
        // The others may share a page with the code, and lie elsewhere.
        let segments = elf.segments().filter(is_code).map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset..offset.saturating_add(bytes), segment.address())
        });
        let addresses = |name| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let section = |name| {
            let bytes = elf.section_by_name(name)?.uncompressed_data().ok()?;
            Some(Section { addresses: addresses(name)?, bytes: Arc::from(&*bytes) })
        };
        let image = Self {
            segments: segments.collect(),
            text: addresses(".text"),
            got: addresses(".got"),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame"),
            symbols,
            debug_files: Vec::new(),
        };
        if image.tables().end() { image } else { image.without_tables() }
    }

    fn tables(&self) -> Tables<'_> {
        let address = |section: &Option<Section>| section.as_ref().map_or(0, |s| s.addresses.start);
        let bases = BaseAddresses::default()
            .set_text(self.text.as_ref().map_or(0, |text| text.start))
            .set_got(self.got.as_ref().map_or(0, |got| got.start))
            .set_eh_frame(address(&self.eh_frame))
            .set_eh_frame_hdr(address(&self.eh_frame_hdr));
        let [eh_frame, eh_frame_hdr, debug_frame] =
            [&self.eh_frame, &self.eh_frame_hdr, &self.debug_frame]
                .map(|section| section.as_ref().map(|section| &*section.bytes));
        Tables { bases, eh_frame, eh_frame_hdr, debug_frame }
    }

    /// How much its unwind tables take.
    pub(super) fn table_bytes(&self) -> usize {
        let tables = [&self.eh_frame, &self.eh_frame_hdr, &self.debug_frame];
        tables.into_iter().flatten().map(|table| table.bytes.len()).sum()
    }

    /// The same without them.
    pub(super) fn without_tables(self) -> Self {
        Self { eh_frame: None, eh_frame_hdr: None, debug_frame: None, ..self }
    }

    /// How far the file's own addresses are from those of a process that mapped the file from
    /// `offset` on at `start`.
    pub(super) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // A mapping begins at a page, a segment need not: it may begin later in the same page.
        const PAGE_BYTES_MAX: u64 = 64 << 10;
        let within = |file: &Range<u64>| file.contains(&offset);
        let begins =
            |file: &Range<u64>| file.start > offset && file.start - offset < PAGE_BYTES_MAX;
        let found = self.segments.iter().find(|(file, _)| within(file));
        let found = found.or_else(|| self.segments.iter().find(|(file, _)| begins(file)));
        let (file, address) = found?;
        let own = address.wrapping_add(offset).wrapping_sub(file.start);
        Some(start.wrapping_sub(own))
    }

    /// The sections that the unwinder wants. ELF files count their addresses from zero.
    pub(super) fn unwind_sections(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        let addresses = |section: &Option<Section>| section.as_ref().map(|s| s.addresses.clone());
        let bytes = |section: &Option<Section>| section.as_ref().map(|s| Arc::clone(&s.bytes));
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma: addresses(&self.eh_frame),
            eh_frame: bytes(&self.eh_frame),
            eh_frame_hdr_svma: addresses(&self.eh_frame_hdr),
            eh_frame_hdr: bytes(&self.eh_frame_hdr),
            debug_frame: bytes(&self.debug_frame),
            ..Default::default()
        }
    }

    /// Whether its unwind tables can be searched as they lie in the file.
    pub(super) fn has_index(&self) -> bool {
        self.eh_frame_hdr.is_some()
    }

    /// The name of one of its own dynamic symbols.
    pub(super) fn symbol(&self, address: u64) -> Option<&str> {
        let (_, name) = self.symbols.iter().find(|(range, _)| range.contains(&address))?;
        Some(name)
    }

    /// Where the function at an address begins, by the table of the unwind information: it is there
    /// in stripped files too, so that the samples of an unnamed function stay together.
    pub(super) fn function_start(&self, address: u64) -> Option<u64> {
        let header = self.eh_frame_hdr.as_ref()?;
        starts(&header.bytes, header.addresses.start, address)
    }
}

/// A file of which at most `left` bytes are read: a part that would take more is as if absent.
#[derive(Clone, Copy)]
struct BoundedFile<'a> {
    file: &'a ReadCache<File>,
    left: &'a Cell<u64>,
}

impl BoundedFile<'_> {
    fn take(self, bytes: u64) -> Result<(), ()> {
        let left = self.left.get().checked_sub(bytes).ok_or(())?;
        self.left.set(left);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for BoundedFile<'a> {
    fn len(self) -> Result<u64, ()> {
        self.file.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.take(size)?;
        self.file.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let bytes = self.file.read_bytes_at_until(range, delimiter)?;
        self.take(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// Searches a `.eh_frame_hdr` (Linux Standard Base 5.0, section 10.6.2) in its one usual form:
/// sorted pairs of 32-bit offsets from the header.
fn starts(bytes: &[u8], at: u64, address: u64) -> Option<u64> {
    const VERSION: u8 = 1;
    const POINTER_32: [u8; 2] = [0x0b, 0x03];
    const FROM_HEADER_32: u8 = 0x3b;
    let head = bytes.first_chunk::<12>()?;
    let pointer = head[1] & 0x0f;
    if head[0] != VERSION || !POINTER_32.contains(&pointer) {
        return None;
    }
    if head[2] != 0x03 || head[3] != FROM_HEADER_32 {
        return None;
    }
    let count = u32::from_le_bytes(head[8..12].try_into().ok()?) as usize;
    let (pairs, _) = bytes[12..].as_chunks::<8>();
    let pairs = &pairs[..count.min(pairs.len())];
    let start = |pair: &[u8; 8]| {
        let offset = i32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]);
        at.wrapping_add_signed(i64::from(offset))
    };
    let after = pairs.partition_point(|pair| start(pair) <= address);
    after.checked_sub(1).map(|index| start(&pairs[index]))
}

fn is_code<'data>(segment: &impl ObjectSegment<'data>) -> bool {
    let SegmentFlags::Elf { p_flags } = segment.flags() else { return false };
    p_flags & object::elf::PF_X != 0
}

fn link<'a, R: ReadRef<'a>>(elf: &object::File<'a, R>) -> Option<String> {
    let (name, _) = elf.gnu_debuglink().ok()??;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Where debuggers look for separate debug information (GDB manual, "Separate Debug Files").
fn debug_files(path: &Path, build_id: Option<&[u8]>, link: Option<&str>) -> Vec<PathBuf> {
    const DEBUG: &str = "/usr/lib/debug";
    let mut files = Vec::new();
    if let Some([first, rest @ ..]) = build_id {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        files.push(PathBuf::from(format!("{DEBUG}/.build-id/{first:02x}/{rest}.debug")));
    }
    if let (Some(link), Some(folder)) = (link, path.parent()) {
        files.push(folder.join(link));
        files.push(folder.join(".debug").join(link));
        let below = folder.strip_prefix("/").unwrap_or(folder);
        files.push(Path::new(DEBUG).join(below).join(link));
    }
    files.retain(|file| file != path && file.is_file());
    files
}

#[cfg(test)]
mod tests;
