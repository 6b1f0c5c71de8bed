"""Libraries that tables are taken from and given to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datafusion
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def _reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=7)))


def _duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    # A connection runs one streamed query at a time.
    connection = duckdb.connect()
    return connection.from_arrow(table)


def _datafusion(table: pa.Table) -> datafusion.DataFrame:
    return datafusion.SessionContext().from_arrow(table)


FROM: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow table": lambda table: table,
    "pyarrow reader": _reader,
    "pyarrow batch": lambda table: table.combine_chunks().to_batches()[0],
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": _duckdb,
    "datafusion": _datafusion,
}


def _from_duckdb(reader: Any) -> pa.Table:
    return duckdb.connect().from_arrow(reader).to_arrow_table()


def _from_datafusion(reader: Any) -> pa.Table:
    return datafusion.SessionContext().from_arrow(reader).to_arrow_table()


TO: dict[str, Callable[[Any], pa.Table]] = {
    "pyarrow": pa.table,
    "pyarrow reader": lambda reader: pa.RecordBatchReader.from_stream(reader).read_all(),
    "to_pyarrow": lambda reader: reader.to_pyarrow(),
    "polars": lambda reader: pl.DataFrame(reader).to_arrow(),
    "to_polars": lambda reader: reader.to_polars().to_arrow(),
    "to_pandas": lambda reader: pa.Table.from_pandas(
        reader.to_pandas(types_mapper=pd.ArrowDtype), preserve_index=False
    ),
    "duckdb": _from_duckdb,
    "datafusion": _from_datafusion,
}


@pytest.fixture(params=FROM)
def left_maker(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    return FROM[request.param]


@pytest.fixture(params=FROM)
def right_maker(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    return FROM[request.param]


@pytest.fixture(params=TO)
def consumer(request: pytest.FixtureRequest) -> Callable[[Any], pa.Table]:
    return TO[request.param]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The closing line that `cargo xtask test` counts by."""
    of = {name: len(reports) for name, reports in terminalreporter.stats.items()}
    failed = of.get("failed", 0) + of.get("error", 0)
    word = "FAILED" if failed else "ok"
    passed, skipped = of.get("passed", 0), of.get("skipped", 0)
    terminalreporter.write_line(
        f"test result: {word}. {passed} passed; {failed} failed; {skipped} ignored"
    )
