//! Where memory comes from: which pages, and fresh or from a pool.

use bytemuck::Pod;

use super::{AllocationError, PageBuffer, Pages, Pool};

/// Pages of a kind, from the system or from a [`Pool`].
///
/// ```
/// use workahead_machine::pages::{Pages, Pool, Supply};
/// let fresh = Supply::from(Pages::Huge);
/// assert_eq!(fresh.zeroed::<u64>(3).unwrap()[..], [0, 0, 0]);
/// let reused = fresh.with_pool(Pool::keeping(64 << 20));
/// assert_eq!(reused.zeroed::<u64>(3).unwrap()[..], [0, 0, 0]);
/// ```
#[derive(Debug, Clone)]
pub struct Supply {
    pages: Pages,
    pool: Option<Pool>,
}

impl From<Pages> for Supply {
    fn from(pages: Pages) -> Self {
        Self { pages, pool: None }
    }
}

impl Supply {
    /// From a pool, and back to it.
    #[must_use]
    pub fn with_pool(self, pool: Pool) -> Self {
        Self { pool: Some(pool), ..self }
    }

    /// The same on other pages.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Self {
        Self { pages, ..self }
    }

    /// Which pages.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// When the system or the pool's bound does not allow it.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<PageBuffer<T>, AllocationError> {
        match &self.pool {
            Some(pool) => pool.take_zeroed(len, self.pages),
            None => PageBuffer::zeroed(len, self.pages),
        }
    }

    /// A buffer to be written before it is read: of zeros if it is new, of anything if not.
    ///
    /// # Errors
    /// As [`Supply::zeroed`].
    pub fn any<T: Pod>(&self, len: usize) -> Result<PageBuffer<T>, AllocationError> {
        match &self.pool {
            Some(pool) => pool.take(len, self.pages),
            None => PageBuffer::zeroed(len, self.pages),
        }
    }

    /// Whether [`Supply::any`] may give what is not zero.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pool.is_some()
    }
}
