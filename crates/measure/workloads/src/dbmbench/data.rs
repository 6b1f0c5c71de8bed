//! The rows of T1 and T2.

use super::Options;
use crate::client::RowSink;
use crate::keys::permutation;
use crate::random::Random;
use crate::session::{SessionError, Value};

/// Streams of the seed.
pub(super) const CLIENTS: u32 = 0x00db_0001;
const T1: u32 = 0x00db_0002;
const T2: u32 = 0x00db_0003;

/// Fills a row to 100 bytes beside three integers of four.
pub(super) const PAD: &str =
    "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp";
const _: () = assert!(PAD.len() == 100 - 3 * 4);

/// The integers of T1's rows: a1, a2, a3. Every value of a2 comes as often as any other, or once
/// more where the rows don't divide.
pub(super) fn t1_rows(options: &Options) -> impl Iterator<Item = [u32; 3]> + use<> {
    let Options { t1_rows, t2_rows, a2_values, a3_values, seed, .. } = *options;
    let mut random = Random::new(seed, T1, 0);
    permutation(t1_rows, seed).into_iter().map(move |place| {
        let a1 = random.within(1, i64::from(t2_rows)) as u32;
        let a3 = random.within(1, i64::from(a3_values)) as u32;
        [a1, place % a2_values + 1, a3]
    })
}

pub(super) fn t1(options: &Options, sink: RowSink<'_>) -> Result<(), SessionError> {
    t1_rows(options).try_for_each(|row| pour(row, sink))
}

pub(super) fn t2(options: &Options, sink: RowSink<'_>) -> Result<(), SessionError> {
    let mut random = Random::new(options.seed, T2, 0);
    (1..=options.t2_rows).try_for_each(|a1| {
        let a2 = random.within(1, i64::from(options.a2_values)) as u32;
        let a3 = random.within(1, i64::from(options.a3_values)) as u32;
        pour([a1, a2, a3], sink)
    })
}

fn pour(row: [u32; 3], sink: RowSink<'_>) -> Result<(), SessionError> {
    let [a1, a2, a3] = row.map(|value| Value::Int(i64::from(value)));
    sink(&[a1, a2, a3, Value::Text(PAD)])
}
