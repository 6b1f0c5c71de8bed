//! The two programs of sysbench, in the two forms that figures in the literature come from.
//!
//! 0.4 (2004 to 2016) is what the paper of 2010 ran, 1.0 is what distributions carry today; they
//! share names and differ in what they do. Both are rebuilt here from the programs' documented
//! behaviour, so that they run where sysbench is not installed and in the historical form too:
//! [`memory`] needs no server, [`oltp`] runs over sessions.

pub mod distribution;
pub mod memory;
pub mod oltp;

/// Which sysbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// 0.4, written in C.
    V04,
    /// 1.0, scripted in Lua.
    V10,
}

impl Flavour {
    /// Its version.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V04 => "0.4",
            Self::V10 => "1.0",
        }
    }
}
