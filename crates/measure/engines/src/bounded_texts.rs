//! Texts of an answer, kept as long as they are few: a server may send rows without end.

use workahead_workloads::session::SessionError;

/// Names, rights, settings and plans are far shorter.
const BYTES_MAX: usize = 16 << 20;

/// Texts, within a bound.
#[derive(Debug, Default)]
pub(crate) struct BoundedTexts {
    pub(crate) texts: Vec<String>,
    bytes: usize,
}

impl BoundedTexts {
    /// Adds one.
    ///
    /// # Errors
    /// [`SessionError::Gone`] when there are too many: such a connection is given up.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), SessionError> {
        self.bytes += size_of::<String>() + text.len();
        if self.bytes > BYTES_MAX {
            let says = "its answer has more than 16 MiB where a few lines are usual";
            return Err(SessionError::Gone(says.to_owned()));
        }
        self.texts.push(text.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_end_are_given_up() {
        for text in ["", &"x".repeat(100_000)] {
            let mut all = BoundedTexts::default();
            let given_up = (0..BYTES_MAX).find_map(|_| all.push(text).err());
            assert!(matches!(given_up, Some(SessionError::Gone(_))));
            assert!(all.bytes < BYTES_MAX + 200_000);
        }
    }
}
