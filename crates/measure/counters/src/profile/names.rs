//! Names for addresses, from files rather than from processes: these may have ended.

use std::fmt::{self, Write};
use std::path::Path;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use cpp_demangle::DemangleOptions;

use workahead_machine::guarded::guarded;

use super::modules::{Module, Modules};
use super::stable_files::StableFiles;
use super::stacks::Address;
use super::table::{Frame, Kind};

/// Gives names.
pub(super) struct Namer<'a> {
    symbolizer: Symbolizer,
    modules: &'a Modules,
    files: StableFiles,
}

impl<'a> Namer<'a> {
    /// Over the modules that the addresses lie in.
    pub(super) fn new(modules: &'a Modules) -> Self {
        // Functions only: lines and inlined calls need debug information that takes longer to read
        // than most runs to sample.
        let symbolizer = Symbolizer::builder().enable_code_info(false).build();
        Self { symbolizer, modules, files: StableFiles::new() }
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
                let readable = guarded(|| demangled(&symbol.name)).ok().flatten();
                Some(readable.unwrap_or_else(|| symbol.name.into_owned()))
            }
            // The file is damaged, or has no name for it.
            Ok(Ok(Symbolized::Unknown(_)) | Err(_)) | Err(_) => None,
        }
    }
}

/// A name of Rust's or C++'s as their source has it.
fn demangled(name: &str) -> Option<String> {
    let mut readable = Readable(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(readable, "{rust:#}").ok()?;
    } else {
        let symbol = cpp_demangle::Symbol::new(name).ok()?;
        symbol.structured_demangle(&mut readable, &DemangleOptions::default()).ok()?;
    }
    Some(readable.0)
}

/// A name of a length that somebody may have written: some kilobytes can stand for one without end,
/// each of whose parts repeats what is before it.
struct Readable(String);

impl Write for Readable {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        const BYTES_MAX: usize = 64 << 10;
        if self.0.len() + part.len() > BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_unless_they_have_no_end() {
        let of = |name: &str| demangled(name);
        assert_eq!(of("_ZN3foo3barEv").as_deref(), Some("foo::bar()"));
        assert_eq!(of("_ZN4core3ptr4read17h0123456789abcdefE").as_deref(), Some("core::ptr::read"));
        assert_eq!(of("main"), None);
        // Each argument is 300 times the one before it.
        let mut name = "_Z1f1AIiE".to_owned();
        for (letter, before) in ["B", "C", "D", "E", "F"].iter().zip([0, 2, 4, 6, 8]) {
            name += &format!("1{letter}I{}E", format!("S{before}_").repeat(300));
        }
        assert_eq!(of(&name), None);
    }
}
