//! How wide a text is drawn, guessed without a font.
//!
//! The page uses the reader's own interface font, so widths are averages over the usual ones (Segoe
//! UI, San Francisco, Roboto, DejaVu), a little on the wide side: a label that is cut is worse than
//! one with air.

/// The width of `text` at a font size of `size_px`, in CSS pixels.
pub(crate) fn width_px(text: &str, size_px: f64) -> f64 {
    text.chars().map(share_of_size).sum::<f64>() * size_px
}

fn share_of_size(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.30,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '-' | '·' => 0.38,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '→' | '◆' => 0.92,
        capital if capital.is_uppercase() => 0.70,
        wide if !wide.is_ascii() && !wide.is_alphanumeric() => 0.62,
        ideograph if ideograph as u32 >= 0x1100 => 1.05,
        _ => 0.58,
    }
}

/// `text` itself where it fits `room_px`, or else a prefix and an ellipsis.
pub(crate) fn fitted(text: &str, size_px: f64, room_px: f64) -> String {
    if width_px(text, size_px) <= room_px {
        return text.to_owned();
    }
    let mut left_px = room_px - width_px("…", size_px);
    let keeps = |character: &char| {
        left_px -= share_of_size(*character) * size_px;
        left_px >= 0.0
    };
    let kept: String = text.chars().take_while(keeps).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fitted_text_fits(text in "\\PC{0,60}", room_px in 20f64..400.0) {
            let fitted = fitted(&text, 12.0, room_px);
            prop_assert!(width_px(&fitted, 12.0) <= room_px + 1e-6);
            prop_assert!(fitted == text || fitted.ends_with('…'));
        }
    }
}
