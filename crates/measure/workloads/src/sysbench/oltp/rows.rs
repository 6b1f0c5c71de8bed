//! The rows: all alike in 0.4, random digits in 1.0.

use std::fmt::Write;

use super::super::Flavour;
use super::{Options, TABLES};
use crate::client::RowSink;
use crate::random::Random;
use crate::session::{SessionError, Value};

/// `pad` of 0.4: what was loaded, and what clients insert, five letters of ten each.
const PAD_LOADED: &str = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";
pub(super) const PAD_INSERTED: &str = "aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy";

/// Groups of eleven digits in `c` and in `pad`.
pub(super) const C_GROUPS: u32 = 10;
pub(super) const PAD_GROUPS: u32 = 5;

pub(super) fn pour(options: &Options, table: u32, sink: RowSink<'_>) -> Result<(), SessionError> {
    let mut random = Random::new(options.seed, TABLES, table);
    let [mut c, mut pad] = <[String; 2]>::default();
    (1..=options.rows).try_for_each(|id| {
        let id = Value::Int(i64::from(id));
        if options.flavour == Flavour::V04 {
            return sink(&[id, Value::Int(0), Value::Text(" "), Value::Text(PAD_LOADED)]);
        }
        let k = options.distribution.row(&mut random, options.rows, options.flavour);
        digits(&mut random, C_GROUPS, &mut c);
        digits(&mut random, PAD_GROUPS, &mut pad);
        sink(&[id, Value::Int(i64::from(k)), Value::Text(&c), Value::Text(&pad)])
    })
}

/// Groups of eleven random digits with dashes between them.
pub(super) fn digits(random: &mut Random, groups: u32, text: &mut String) {
    text.clear();
    for group in 0..groups {
        let dash = if group == 0 { "" } else { "-" };
        let number = random.within(0, 99_999_999_999);
        write!(text, "{dash}{number:011}").expect("writing to text succeeds");
    }
}

/// Ten random numbers below 2³⁰ with dashes between them: what 0.4 sets `c` to.
pub(super) fn numbers(random: &mut Random, text: &mut String) {
    text.clear();
    for group in 0..C_GROUPS {
        let dash = if group == 0 { "" } else { "-" };
        let number = random.within(0, (1 << 30) - 1);
        write!(text, "{dash}{number}").expect("writing to text succeeds");
    }
}
