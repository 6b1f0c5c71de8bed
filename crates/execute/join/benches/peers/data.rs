//! Both sides of a join in memory, and checksums of columns.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, SchemaRef};

/// The inputs, as `bench/peers/generate.py` makes them.
pub(crate) struct Sides {
    /// Keys and `bv`.
    pub(crate) build: Vec<RecordBatch>,
    /// Keys and `pv`.
    pub(crate) probe: Vec<RecordBatch>,
}

impl Sides {
    /// Reads `build.arrow` and `probe.arrow` of a folder.
    ///
    /// # Panics
    /// When they are not there.
    pub(crate) fn read(folder: &Path) -> Self {
        Self {
            build: batches(&folder.join("build.arrow")),
            probe: batches(&folder.join("probe.arrow")),
        }
    }

    /// The build side's columns.
    pub(crate) fn build_schema(&self) -> SchemaRef {
        self.build[0].schema()
    }

    /// The probe side's columns.
    pub(crate) fn probe_schema(&self) -> SchemaRef {
        self.probe[0].schema()
    }

    /// Names of the key columns.
    pub(crate) fn keys(&self) -> Vec<String> {
        let schema = self.build_schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.filter(|name| name != "bv").collect()
    }
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = FileReader::try_new_buffered(file, None).expect("an Arrow file");
    reader.map(|batch| batch.expect("a whole batch")).collect()
}

/// The wrapping sum of an integer column; of text, the sum of its bytes.
///
/// # Panics
/// When it is neither.
pub(crate) fn column_sum(array: &dyn Array) -> i64 {
    match array.data_type() {
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
        }
        DataType::Utf8 => {
            let text = array.as_string::<i32>();
            let ends = text.value_offsets();
            let bytes = &text.value_data()[ends[0] as usize..ends[text.len()] as usize];
            bytes.iter().map(|byte| i64::from(*byte)).sum()
        }
        other => panic!("no sum of {other}"),
    }
}
