//! The library: its functions by name, loaded once, and how they are called (duckdb.h of version 1;
//! "C API", DuckDB documentation).

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use crate::error::Error;
use crate::place;

pub(crate) type Raw = *mut c_void;
pub(crate) type Text = *const c_char;
/// `duckdb_state`: 0 is success.
pub(crate) type State = u32;

/// `duckdb_result`: its fields are the library's own.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawResult {
    pub(crate) counts: [u64; 3],
    pub(crate) pointers: [Raw; 3],
}

/// `duckdb_hugeint`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Huge {
    pub(crate) lower: u64,
    pub(crate) upper: i64,
}

/// `duckdb_decimal`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawDecimal {
    pub(crate) width: u8,
    pub(crate) scale: u8,
    pub(crate) value: Huge,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library's functions of these names have these types.
            unsafe fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: what the caller promises.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!("duckdb_", stringify!($name)))?,)*
                    })
                }
            }
        }
    };
}

functions! {
    library_version() -> Text;
    free(Raw);
    open_ext(Text, *mut Raw, Raw, *mut *mut c_char) -> State;
    close(*mut Raw);
    create_config(*mut Raw) -> State;
    set_config(Raw, Text, Text) -> State;
    destroy_config(*mut Raw);
    connect(Raw, *mut Raw) -> State;
    disconnect(*mut Raw);
    interrupt(Raw);
    query(Raw, Text, *mut RawResult) -> State;
    destroy_result(*mut RawResult);
    result_error(*mut RawResult) -> Text;
    rows_changed(*mut RawResult) -> u64;
    column_count(*mut RawResult) -> u64;
    fetch_chunk(RawResult) -> Raw;
    prepare(Raw, Text, *mut Raw) -> State;
    prepare_error(Raw) -> Text;
    destroy_prepare(*mut Raw);
    prepared_statement_type(Raw) -> u32;
    extract_statements(Raw, Text, *mut Raw) -> u64;
    extract_statements_error(Raw) -> Text;
    prepare_extracted_statement(Raw, Raw, u64, *mut Raw) -> State;
    destroy_extracted(*mut Raw);
    execute_prepared(Raw, *mut RawResult) -> State;
    nparams(Raw) -> u64;
    bind_null(Raw, u64) -> State;
    bind_int64(Raw, u64, i64) -> State;
    bind_double(Raw, u64, f64) -> State;
    bind_decimal(Raw, u64, RawDecimal) -> State;
    bind_varchar_length(Raw, u64, Text, u64) -> State;
    bind_date(Raw, u64, i32) -> State;
    bind_timestamp(Raw, u64, i64) -> State;
    destroy_data_chunk(*mut Raw);
    data_chunk_get_size(Raw) -> u64;
    data_chunk_get_column_count(Raw) -> u64;
    data_chunk_get_vector(Raw, u64) -> Raw;
    vector_get_column_type(Raw) -> Raw;
    vector_get_data(Raw) -> Raw;
    vector_get_validity(Raw) -> *mut u64;
    destroy_logical_type(*mut Raw);
    get_type_id(Raw) -> u32;
    decimal_scale(Raw) -> u8;
    decimal_internal_type(Raw) -> u32;
    appender_create(Raw, Text, Text, *mut Raw) -> State;
    appender_error(Raw) -> Text;
    appender_end_row(Raw) -> State;
    appender_flush(Raw) -> State;
    appender_destroy(*mut Raw) -> State;
    append_null(Raw) -> State;
    append_int64(Raw, i64) -> State;
    append_double(Raw, f64) -> State;
    append_varchar_length(Raw, Text, u64) -> State;
    append_date(Raw, i32) -> State;
    append_timestamp(Raw, i64) -> State;
}

/// Calls a function of the library.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the types are those of duckdb.h, and every handle given is one that the library
        // made and that its owner, which is borrowed here, has not destroyed yet.
        unsafe { ($library.0.$name)($($argument),*) }
    };
}

pub(crate) use call;

/// The library, once loaded; it stays for as long as the process runs, as its threads may.
#[derive(Clone, Copy)]
pub struct Library(pub(crate) &'static Functions);

impl Library {
    /// Loads it from a place, or from where it usually is.
    ///
    /// # Errors
    /// When there is none, or one that lacks what is needed; the words name the remedy.
    pub fn find(named: Option<&Path>) -> Result<Self, Error> {
        let candidates = place::candidates(named);
        // A bare name is for the system's linker to find.
        let is_there =
            |path: &&std::path::PathBuf| path.parent() == Some("".as_ref()) || path.exists();
        for path in candidates.iter().filter(is_there) {
            match Self::load(path) {
                Err(_) if path.parent() == Some("".as_ref()) => {}
                loaded => return loaded,
            }
        }
        let tried = candidates.iter().map(|path| path.display().to_string()).collect();
        Err(Error::Missing { tried, variable: place::ENVIRONMENT })
    }

    fn load(path: &Path) -> Result<Self, Error> {
        let unusable = |error: libloading::Error| Error::Unusable {
            path: path.to_owned(),
            says: error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
        };
        // SAFETY: when the library is loaded, it runs only constructors of DuckDB's constants;
        // a file that somebody named is theirs to trust.
        let library = unsafe { libloading::Library::new(path) }.map_err(unusable)?;
        // Before anything else is called: this one has had its type in every version.
        // SAFETY: duckdb.h gives this name this type.
        let version =
            unsafe { library.get::<unsafe extern "C" fn() -> Text>(b"duckdb_library_version\0") };
        // SAFETY: as above.
        let version = said(unsafe { version.map_err(unusable)?() });
        if !is_checked(&version) {
            return Err(Error::Unusable {
                path: path.to_owned(),
                says: format!("it is version {version}; use one of version 1, from {OLDEST} on"),
            });
        }
        // SAFETY: duckdb.h gives these names these types; they are stable within version 1.
        let functions = unsafe { Functions::of(&library) }.map_err(unusable)?;
        std::mem::forget(library);
        Ok(Self(Box::leak(Box::new(functions))))
    }

    /// Its version, as `v1.5.5`.
    pub fn version(self) -> String {
        said(call!(self, library_version()))
    }
}

/// The first version whose duckdb.h was compared with the types here.
const OLDEST: &str = "1.1";

/// Whether the types here are those of a version, as `v1.5.5` or `v1.6.0-dev12`.
fn is_checked(version: &str) -> bool {
    let mut numbers =
        version.trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
    matches!((numbers.next(), numbers.next()), (Some(1_u32), Some(minor)) if minor >= 1_u32)
}

/// A copy of a text of the library's; empty for none.
pub(crate) fn said(raw: Text) -> String {
    if raw.is_null() {
        return String::new();
    }
    // SAFETY: texts of the API end with a zero, and are valid until their owner's next call.
    unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned()
}

pub(crate) fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::ours("a text with a zero byte in it"))
}

#[cfg(test)]
mod tests {
    use super::is_checked;

    #[test]
    fn versions_whose_types_are_unknown_are_refused() {
        for version in ["v1.1.0", "v1.5.5", "1.4.2", "v1.6.0-dev12"] {
            assert!(is_checked(version), "{version}");
        }
        for version in ["v2.0.1", "v0.10.3", "v1.0.0", "v11.0", "", "v1", "dev"] {
            assert!(!is_checked(version), "{version}");
        }
    }
}
