//! Batches and readers of batches as tables.
//!
//! ```text
//! batches in memory ──► partitions of about equal length ──► read any number of times
//! a reader ──► a thread that waits for it ──► two batches ahead ──► read once
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::exec_datafusion_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

/// Batches that a reader may read ahead.
const READ_AHEAD: usize = 2;

/// The partitions and batches of a table in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Partitioning {
    pub(super) partitions: usize,
    pub(super) batch_rows: usize,
}

/// Batches in memory, sliced to a length; their order within and across partitions is kept.
pub(super) fn in_memory(
    schema: SchemaRef,
    batches: &[RecordBatch],
    partitioning: Partitioning,
) -> Result<MemTable> {
    let pieces = batches.iter().flat_map(|batch| pieces(batch, partitioning.batch_rows));
    let pieces: Vec<RecordBatch> = pieces.collect();
    let each = pieces.len().div_ceil(partitioning.partitions).max(1);
    let mut partitions: Vec<Vec<RecordBatch>> = pieces.chunks(each).map(<[_]>::to_vec).collect();
    partitions.resize_with(partitioning.partitions.max(1), Vec::new);
    MemTable::try_new(schema, partitions)
}

fn pieces(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> + '_ {
    let all = batch.num_rows();
    let starts = (0..all).step_by(rows.max(1));
    starts.map(move |start| batch.slice(start, rows.min(all - start)))
}

/// A reader as a table.
pub(super) fn read_once(
    name: &str,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<StreamingTable> {
    let schema = reader.schema();
    let once = SingleRead {
        name: name.to_owned(),
        schema: Arc::clone(&schema),
        reader: Mutex::new(Some(reader)),
    };
    StreamingTable::try_new(schema, vec![Arc::new(once)])
}

/// A partition that is read once.
struct SingleRead {
    name: String,
    schema: SchemaRef,
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
}

impl PartitionStream for SingleRead {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let name = self.name.clone();
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), READ_AHEAD);
        let batches = stream.tx();
        // The producer may be slow, so it must not block a thread of the runtime.
        stream.spawn_blocking(move || {
            let Some(reader) = reader else {
                return Err(exec_datafusion_err!(
                    "the table {name:?} is a reader, which can be read only once: give a table"
                ));
            };
            for batch in reader {
                let batch =
                    batch.map_err(|error| exec_datafusion_err!("can't read {name:?}: {error}"));
                let failed = batch.is_err();
                if batches.blocking_send(batch).is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}

impl std::fmt::Debug for SingleRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use datafusion::arrow::array::{AsArray, Int64Array, RecordBatchIterator};
    use datafusion::arrow::datatypes::Int64Type;

    use crate::session::{Options, Session};

    use super::*;

    fn batch(range: std::ops::Range<i64>) -> RecordBatch {
        let keys = Arc::new(Int64Array::from_iter_values(range));
        RecordBatch::try_from_iter([("key", keys as _)]).unwrap()
    }

    fn reader() -> Box<dyn RecordBatchReader + Send> {
        let batches = [batch(0..10), batch(10..1000)];
        Box::new(RecordBatchIterator::new(batches.map(Ok), batch(0..1).schema()))
    }

    fn count(session: &Session, sql: &str) -> std::result::Result<i64, String> {
        static NEVER_STOP: AtomicBool = AtomicBool::new(false);
        let statement = session.statements(sql, &NEVER_STOP).unwrap().remove(0);
        let mut answer = session.run(&statement, &NEVER_STOP).map_err(|error| error.to_string())?;
        let batch = answer.next_batch().map_err(|error| error.to_string())?.unwrap();
        Ok(batch.column(0).as_primitive::<Int64Type>().value(0))
    }

    #[test]
    fn batches_are_read_again_and_a_reader_is_read_once() {
        let session = Session::new(&Options::default()).unwrap();
        session.register_batches("given", batch(0..1).schema(), &[batch(0..200_000)]).unwrap();
        session.register_reader("Once", reader()).unwrap();
        let both = r#"select count(*) from given a join given b on a.key = b.key"#;
        assert_eq!(count(&session, both), Ok(200_000));
        let joined = r#"select count(*) from "Once" join given using (key)"#;
        assert_eq!(count(&session, joined), Ok(1000));
        let again = count(&session, joined).unwrap_err();
        assert!(again.contains("\"Once\" is a reader, which can be read only once"), "{again}");
        session.register_reader("Once", reader()).unwrap();
        let itself = r#"select count(*) from "Once" a join "Once" b on a.key = b.key"#;
        assert!(count(&session, itself).unwrap_err().contains("give a table"));
    }

    #[test]
    fn a_reader_that_fails_is_an_error() {
        let session = Session::new(&Options::default()).unwrap();
        let failed = datafusion::arrow::error::ArrowError::ComputeError("no more".into());
        let batches = vec![Ok(batch(0..10)), Err(failed)];
        let reader = RecordBatchIterator::new(batches, batch(0..1).schema());
        session.register_reader("some", Box::new(reader)).unwrap();
        let error = count(&session, "select count(*) from some").unwrap_err();
        assert!(error.contains("can't read \"some\"") && error.contains("no more"), "{error}");
    }

    #[test]
    fn tables_may_have_few_rows_or_none() {
        let schema = batch(0..1).schema();
        for (rows, partitions) in [(0, 1), (0, 4), (1, 4), (301, 2)] {
            let batches = [batch(0..rows)];
            let table =
                in_memory(schema.clone(), &batches, Partitioning { partitions, batch_rows: 100 })
                    .unwrap();
            assert_eq!(table.batches.len(), partitions);
        }
    }
}
