//! Results of a study: observations as Arrow, findings as JSON.

use std::path::PathBuf;

use arrow_schema::ArrowError;
use pyo3::prelude::*;
use workahead_study::results::Results;
use workahead_study::table;

use crate::errors::Error;
use crate::reader::Batch;

/// A directory that a study was run into. Loaded once; nothing is run.
#[pyclass(module = "workahead._workahead", frozen)]
pub(crate) struct StudyResults(Results);

#[pymethods]
impl StudyResults {
    #[new]
    fn new(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        let results = py.detach(|| Results::load(&directory));
        Ok(Self(results.map_err(Error::Study)?))
    }

    fn id(&self) -> String {
        self.0.record.study.clone()
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// One row for each sample or failure: the columns of `observations.parquet`.
    fn observations(&self, py: Python<'_>) -> PyResult<Batch> {
        let batch: Result<_, ArrowError> = py.detach(|| table::batch(&self.0));
        Ok(Batch::from(batch.map_err(Error::Arrow)?))
    }

    /// What was found in every cell.
    fn findings(&self, py: Python<'_>) -> PyResult<String> {
        let json = py.detach(|| serde_json::to_string(&self.0.findings()));
        Ok(json.map_err(Error::Json)?)
    }
}
