//! Errors of DataFusion and of the join, converted into each other.

use arrow::error::ArrowError;
use datafusion_common::error::DataFusionError;
use workahead_join::{JoinError, SpillError};

/// An error of DataFusion, to be carried through the join.
pub(crate) fn into_arrow(error: DataFusionError) -> ArrowError {
    match error {
        DataFusionError::ArrowError(error, _) => *error,
        other => ArrowError::ExternalError(Box::new(other)),
    }
}

/// An error of the join. A DataFusion error that was carried through the join is unchanged.
pub(crate) fn from_join(error: JoinError) -> DataFusionError {
    match error {
        JoinError::Limit(_)
        | JoinError::LimitTooSmall { .. }
        | JoinError::Spill(SpillError::Limit { .. }) => {
            DataFusionError::ResourcesExhausted(error.to_string())
        }
        JoinError::Arrow(ArrowError::ExternalError(inner)) => match inner.downcast() {
            Ok(error) => *error,
            Err(other) => DataFusionError::External(other),
        },
        JoinError::Arrow(error) => error.into(),
        other => DataFusionError::External(Box::new(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_engine_comes_back_unchanged() {
        let thrown = DataFusionError::Execution("too bad".into());
        let text = thrown.to_string();
        let back = from_join(JoinError::Arrow(into_arrow(thrown)));
        assert_eq!(back.to_string(), text);
        let thrown = DataFusionError::from(ArrowError::DivideByZero);
        let back = from_join(JoinError::Arrow(into_arrow(thrown)));
        assert!(matches!(back, DataFusionError::ArrowError(error, _)
            if matches!(*error, ArrowError::DivideByZero)));
    }
}
