//! Names that a page, a table or a line repeats, cut where nobody reads on.

use std::borrow::Cow;

use crate::setting::Setting;

/// The most of a label, for which no study of ours has a use. A setting may be a text of a
/// megabyte, and a label stands at each bar, cell and reason.
pub const CHARS_MAX: usize = 200;

/// A text, or where it is longer its first characters and an ellipsis.
pub fn cut(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// A value as the study writes it, cut. No key: two values may have one label.
pub fn value(setting: &Setting) -> String {
    match setting {
        Setting::Text(text) => cut(text, CHARS_MAX).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::protocol::Protocol;
    use crate::setting::Settings;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü!", 3), "äöü…");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn a_cell_has_a_short_label() {
        let long = "ä".repeat(100_000);
        let axes = ["a", "b"].map(str::to_owned);
        let place: Settings =
            axes.iter().map(|axis| (axis.clone(), Setting::from(long.as_str()))).collect();
        let cell = Cell {
            index: 0,
            block: 0,
            seed: 0,
            settings: place.clone(),
            place,
            protocol: Protocol::default(),
        };
        assert_eq!(cell.label(&axes), format!("{}…", "ä".repeat(CHARS_MAX)));
        let short = Cell { place: Settings::from([("b".to_owned(), Setting::Integer(7))]), ..cell };
        assert_eq!(short.label(&axes), "7");
    }
}
