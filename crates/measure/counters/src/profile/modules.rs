//! The files whose code runs, each read once for all processes that map it.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use workahead_machine::regular_file;

use super::image::Image;

/// The most that the unwind tables of all files take: a process may map many large ones. Those of a
/// desktop take a tenth of this.
const TABLE_BYTES_MAX: usize = 1 << 30;

/// A module by its place in [`Modules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ModuleId(u32);

/// A file, or a placeholder for it.
#[derive(Debug)]
pub(super) struct Module {
    /// Its name without folders: `postgres`.
    pub(super) name: String,
    /// Where it lies, if the file there is the one that was mapped.
    pub(super) path: Option<PathBuf>,
    /// Its code, unwind tables and symbols.
    pub(super) image: Option<Image>,
}

/// Every module met so far.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: Vec<Module>,
    by_file: HashMap<(String, Option<u64>), ModuleId>,
    table_bytes: usize,
}

impl Modules {
    /// The module that a process mapped, by its path and the file's number as the kernel gave them.
    /// A path whose file has been deleted or replaced since gives a module without code: its
    /// addresses would get the names of another file.
    pub(super) fn of(&mut self, path: &str, inode: Option<u64>) -> ModuleId {
        let key = (path.to_owned(), inode);
        if let Some(known) = self.by_file.get(&key) {
            return *known;
        }
        let id = ModuleId(u32::try_from(self.all.len()).expect("fewer files than 2^32"));
        let mut module = Module::read(path, inode);
        let bytes = module.image.as_ref().map_or(0, Image::table_bytes);
        match self.table_bytes + bytes > TABLE_BYTES_MAX {
            true => module.image = module.image.map(Image::without_tables),
            false => self.table_bytes += bytes,
        }
        self.all.push(module);
        self.by_file.insert(key, id);
        id
    }

    /// One of them.
    pub(super) fn get(&self, id: ModuleId) -> &Module {
        &self.all[id.0 as usize]
    }
}

impl Module {
    fn read(path: &str, inode: Option<u64>) -> Self {
        if path == "[vdso]" {
            return Self { name: "[vdso]".into(), path: None, image: Image::of_vdso() };
        }
        let file = Path::new(path);
        if !file.is_absolute() || path.starts_with("//") {
            let name = if path.starts_with('[') { path } else { "[anonymous]" };
            return Self { name: name.into(), path: None, image: None };
        }
        let name = file.file_name().map_or(path.into(), |name| name.to_string_lossy());
        // The kernel's mark of a deleted file.
        let name = name.trim_end_matches(" (deleted)").to_owned();
        let same = |meta: &std::fs::Metadata| inode.is_none_or(|inode| meta.ino() == inode);
        // A pipe may take its place before it is read, which nobody waits for.
        let opened = regular_file::open(file).and_then(|file| file.metadata());
        let current = opened.is_ok_and(|meta| same(&meta));
        let path = current.then(|| file.to_owned());
        let image = path.as_deref().and_then(Image::of_file);
        Self { name, path, image }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_beyond_the_most_are_left_out() {
        let own = std::env::current_exe().expect("its own path");
        let bytes = |mut modules: Modules| {
            let id = modules.of(own.to_str().expect("a plain name"), None);
            let image = modules.get(id).image.as_ref().expect("an ELF file");
            (image.table_bytes(), modules.table_bytes)
        };
        let (own_bytes, all_bytes) = bytes(Modules::default());
        assert!(own_bytes > 0 && own_bytes == all_bytes);
        let full = Modules { table_bytes: TABLE_BYTES_MAX, ..Modules::default() };
        assert_eq!(bytes(full), (0, TABLE_BYTES_MAX));
    }
}
