//! Names for addresses, from files rather than from processes: these may have ended.

use std::cell::Cell;
use std::path::Path;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use workahead_machine::guarded::guarded;

use super::demangler::Demangler;
use super::modules::{Module, Modules};
use super::stable_files::StableFiles;
use super::stacks::Address;
use super::table::{Frame, Kind};

/// The most that all names of a profile take: every address has a copy of its function's, and a
/// file may have its symbols share the bytes of their names. A million addresses with names of a
/// hundred bytes take less than half of this.
const NAMES_BYTES_MAX: usize = 256 << 20;

/// Gives names.
pub(super) struct Namer<'a> {
    symbolizer: Symbolizer,
    modules: &'a Modules,
    files: StableFiles,
    demangler: Demangler,
    /// What names may still take.
    left: Cell<usize>,
}

impl<'a> Namer<'a> {
    /// Over the modules that the addresses lie in.
    pub(super) fn new(modules: &'a Modules) -> Self {
        // Functions only: lines and inlined calls need debug information that takes longer to read
        // than most runs to sample.
        let symbolizer = Symbolizer::builder().enable_code_info(false).build();
        let (files, demangler) = (StableFiles::new(), Demangler::new());
        Self { symbolizer, modules, files, demangler, left: Cell::new(NAMES_BYTES_MAX) }
    }

    /// The function at an address.
    pub(super) fn frame(&self, address: Address) -> Frame {
        match address {
            Address::Code { module, address } => self.code(self.modules.get(module), address),
            Address::Kernel(address) => self.kernel(address),
            Address::Unmapped => Frame::new("[unknown]", "[unknown]", Kind::Unresolved),
            Address::Cut => Frame::cut(),
        }
    }

    fn code(&self, module: &Module, address: u64) -> Frame {
        let own = module.image.as_ref();
        if let Some(name) = own.and_then(|image| image.symbol(address)) {
            return Frame::new(name, &module.name, Kind::User);
        }
        let debug = own.into_iter().flat_map(|image| &image.debug_files);
        for file in module.path.iter().chain(debug) {
            if let Some(name) = self.symbol(file, address) {
                return Frame::new(&name, &module.name, Kind::User);
            }
        }
        let start = own.and_then(|image| image.function_start(address)).unwrap_or(address);
        let name = format!("{}+{start:#x}", module.name);
        Frame::new(&name, &module.name, Kind::Unresolved)
    }

    /// From the symbol tables of a file. Those tell where a function ends, so that code between
    /// exported functions of a stripped file is not taken for theirs.
    fn symbol(&self, file: &Path, address: u64) -> Option<String> {
        let mut elf = Elf::new(self.files.path(file)?);
        elf.debug_syms = false;
        self.single(&Source::Elf(elf), Input::VirtOffset(address))
    }

    fn kernel(&self, address: u64) -> Frame {
        let kernel = Kernel { vmlinux: MaybeDefault::None, ..Kernel::default() };
        match self.single(&Source::Kernel(kernel), Input::AbsAddr(address)) {
            Some(name) => Frame::new(&name, "[kernel]", Kind::Kernel),
            // Its address says nothing after the next start, and must not be known.
            None => Frame::new("[kernel]", "[kernel]", Kind::Unresolved),
        }
    }

    fn single(&self, source: &Source<'_>, input: Input<u64>) -> Option<String> {
        match guarded(|| self.symbolizer.symbolize_single(source, input)) {
            Ok(Ok(Symbolized::Sym(symbol))) => {
                let name = self.demangler.shown(&symbol.name);
                self.left.set(self.left.get().checked_sub(name.len())?);
                Some(name)
            }
            // The file is damaged, or has no name for it.
            Ok(Ok(Symbolized::Unknown(_)) | Err(_)) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSymbol, SymbolKind};

    use super::*;

    #[test]
    fn names_beyond_the_most_are_left_out() {
        let own = std::env::current_exe().expect("its own path");
        let bytes = std::fs::read(&own).expect("its own file");
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let is_ours = |name: &str| name.contains("counters");
        let symbol = elf
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 16)
            .find(|symbol| symbol.name().is_ok_and(is_ours))
            .expect("a function of this crate");
        let mut modules = Modules::default();
        let module = modules.of(own.to_str().expect("a plain name"), None);
        let namer = Namer::new(&modules);
        let frame = || namer.frame(Address::Code { module, address: symbol.address() });
        namer.left.set(2 * frame().name.len());
        let kinds = [frame().kind, frame().kind, frame().kind];
        assert_eq!(kinds, [Kind::User, Kind::User, Kind::Unresolved]);
    }
}
