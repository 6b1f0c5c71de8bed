"""A pytest plugin: pandas' own merge tests with our join in place of pandas'.

pandas' ``merge`` finds the pairs of rows with two functions, ``get_join_indexers`` and
``get_join_indexers_non_unique``, and makes its frame of the two lists of row numbers they return:
names, index, types. Here both are our join. Tests that can't pass are in ``pandas_suite.toml``,
with the reason; a listed test that passes is a failure, and so is an entry without a test.
"""

from __future__ import annotations

import fnmatch
import pathlib
import tomllib
from typing import Any

import numpy as np
import pandas as pd
import pandas.core.reshape.merge as theirs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import workahead as wa

LIST = pathlib.Path(__file__).with_name("pandas_suite.toml")
HOWS = {"outer": "full", "left_anti": "left-anti", "right_anti": "right-anti"}

joins = 0


def _keys(left: Any, right: Any) -> tuple[pa.Array, pa.Array]:
    """Two key columns as Arrow arrays of one type."""
    both = pd.concat([pd.Series(left), pd.Series(right)], ignore_index=True)
    if isinstance(both.dtype, pd.CategoricalDtype):
        both = both.astype(both.cat.categories.dtype)
    array = pa.array(both, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type):
        # pandas' 0.0 equals its -0.0.
        array = pc.add(array, pa.scalar(0.0, array.type))
    return array.slice(0, len(left)), array.slice(len(left))


def _sorted(table: pa.Table, by: list[str]) -> pa.Array:
    """Row numbers in the order of columns, nulls last."""
    try:
        return pc.sort_indices(table, sort_keys=[(column, "ascending") for column in by])
    except pa.ArrowTypeError:
        # Arrow sorts neither lists (tuples of pandas' indexes) nor periods.
        columns = [
            (getattr(chunk, "storage", chunk)).to_pylist()
            for chunk in (table[column].combine_chunks() for column in by)
        ]
        keys = [[(value is None, value) for value in row] for row in zip(*columns, strict=True)]
        return pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64())


def get_join_indexers(
    left_keys: list[Any], right_keys: list[Any], sort: bool = False, how: str = "inner"
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of both sides, -1 where there is none, in pandas' order."""
    global joins
    joins += 1
    names = [f"key {i}" for i in range(len(left_keys))]
    columns = [_keys(*pair) for pair in zip(left_keys, right_keys, strict=True)]
    sides = []
    for side, row in enumerate(("left", "right")):
        keys = {name: pair[side] for name, pair in zip(names, columns, strict=True)}
        rows = pa.array(np.arange(len(columns[0][side])), pa.int64())
        sides.append(pa.table({**keys, row: rows}))
    joined = wa.join(
        *sides, on=names, how=HOWS.get(how, how), nulls_equal=True, threads=1
    ).to_pyarrow()
    order = {"left": ["left", "right"], "right": ["right", "left"]}.get(how, ["left", "right"])
    order = [column for column in order if column in joined.column_names]
    if sort or how == "outer":
        order = names + order
    joined = joined.take(_sorted(joined, order))

    def of(side: str) -> np.ndarray:
        if side not in joined.column_names:
            return np.full(joined.num_rows, -1, dtype=np.intp)
        return pc.fill_null(joined[side], -1).to_numpy().astype(np.intp)

    return of("left"), of("right")


def get_join_indexers_non_unique(
    left: Any, right: Any, sort: bool = False, how: str = "inner"
) -> tuple[np.ndarray, np.ndarray]:
    """The same for one key."""
    return get_join_indexers([left], [right], sort, how)


def pytest_configure(config: pytest.Config) -> None:
    theirs.get_join_indexers = get_join_indexers
    theirs.get_join_indexers_non_unique = get_join_indexers_non_unique


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    listed = tomllib.loads(LIST.read_text())["test"]
    for entry in listed:
        pattern = "*" + entry["name"].replace("[", "[[]")
        found = [item for item in items if fnmatch.fnmatchcase(item.nodeid, pattern)]
        if not found:
            raise pytest.UsageError(f"{LIST.name} names {entry['name']}, and there is no such test")
        for item in found:
            item.add_marker(pytest.mark.xfail(reason=entry["reason"], strict=True))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"{joins} joins by workahead")
