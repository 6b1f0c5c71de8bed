//! Output whose values are far larger than what they refer to: texts of a dictionary, and views.

mod hostile;
mod process;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch};
use arrow_array::{StringArray, StringViewArray};
use hostile::arrow_file;
use process::{Place, signal, text, write};

/// Begun, but far from done.
const RUNNING: Duration = Duration::from_millis(500);
/// A second is promised; the machines that test are loaded.
const STOP_MAX: Duration = Duration::from_secs(2);

/// A megabyte in each row, of which there is one in memory.
fn dictionary(rows: i64) -> ArrayRef {
    let values = Arc::new(StringArray::from(vec![megabyte()]));
    let keys = Int32Array::from(vec![0; rows as usize]);
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap())
}

fn views(rows: i64) -> ArrayRef {
    let one = StringViewArray::from(vec![&megabyte()[..]]);
    let views = vec![one.views()[0]; rows as usize].into();
    Arc::new(StringViewArray::try_new(views, one.data_buffers().to_vec(), None).unwrap())
}

fn megabyte() -> String {
    "wide ".repeat(200_000)
}

/// Joined one to one.
fn place(wide: ArrayRef) -> Place {
    let place = Place::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..wide.len() as i64));
    let batch = RecordBatch::try_from_iter([("id", ids.clone()), ("wide", wide)]).unwrap();
    arrow_file(&place.path("left.arrow"), &batch, None);
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    write(&place.path("right.parquet"), &batch, 100_000);
    place
}

const JOIN: [&str; 7] = ["join", "--left", "left.arrow", "--right", "right.parquet", "--on", "id"];

/// Gigabytes in one batch, of texts whose places have 31 bits.
#[test]
fn it_is_written_in_pieces() {
    let place = place(dictionary(2_200));
    for format in ["csv", "arrow"] {
        let out = ["--out", "/dev/null", "--out-format", format];
        let report = place.json(&[&JOIN[..], &out].concat());
        assert_eq!(report["rows"], 2_200, "{format}");
    }
}

#[test]
fn it_is_stopped_between_pieces() {
    for (column, outs) in [
        (dictionary(60_000), &["out.parquet", "out.csv", "out.arrow"][..]),
        // Views share their texts in an Arrow file too, which is soon written.
        (views(12_000), &["out.parquet", "out.csv"]),
    ] {
        let place = place(column);
        for (out, by) in outs.iter().zip(["INT", "TERM"].into_iter().cycle()) {
            let mut child = place.start(&[&JOIN[..], &["--out", out]].concat());
            std::thread::sleep(RUNNING);
            assert!(child.try_wait().unwrap().is_none(), "{out}: it ended by itself");
            let start = Instant::now();
            signal(&child, by);
            let output = child.wait_with_output().unwrap();
            let time = start.elapsed();
            assert!(time < STOP_MAX, "{out}: it went on for {time:?}");
            assert_eq!(text(&output.stderr), "error: interrupted\n", "{out}");
            assert_eq!(output.status.code(), Some(1), "{out}");
            assert_eq!(place.names(), ["left.arrow", "right.parquet"], "{out}");
        }
    }
}
