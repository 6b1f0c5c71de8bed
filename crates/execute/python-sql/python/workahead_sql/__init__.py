"""SQL over Python's tables, with Workahead's joins: the wheel behind :func:`workahead.sql`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workahead._join import Reader, _bytes, _count, _rows

from . import _workahead_sql

if TYPE_CHECKING:
    from workahead._join import ArrowStream

__all__ = ["sql"]
__version__ = _workahead_sql.__version__


def sql(
    query: str,
    tables: Mapping[str, ArrowStream | str | os.PathLike[str]] | None = None,
    /,
    *,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: str | os.PathLike[str] | None = None,
    stock: bool = False,
    **named: ArrowStream | str | os.PathLike[str],
) -> Reader:
    """Run SQL over tables, by DataFusion with Workahead's joins.

    Parameters
    ----------
    query
        Statements in DataFusion's SQL, separated by semicolons. All but the last one are run at
        once; the rows are those of the last one.
    tables, named
        Tables by their names in SQL: tables, data frames and readers of pyarrow, Polars, pandas
        (2.2 or newer), DuckDB, DataFusion, which are not copied; or paths of Parquet, CSV, JSON
        lines or Arrow files, and of directories of Parquet files. A reader is read once, while the
        query runs: a query that reads it twice is an error. ``tables`` is for names that are not
        Python identifiers.
    threads
        By default one for every CPU that this process may use.
    memory_limit
        Bytes, as a number or as ``"300MB"``, ``"1.5GiB"``, that joins, sorts and aggregates may
        take together. The rest is spilled to files.
    spill_dir
        Directory for spill files; by default the system's temporary one, or ``/var/tmp`` where
        that is memory.
    stock
        Leave the joins to DataFusion.

    Returns
    -------
    workahead.Reader
        The rows, computed while they are read, as those of :func:`workahead.join`. Its ``facts``
        have the numbers of joins by Workahead and by DataFusion, and their spilling.

    Raises
    ------
    WrongUseError
        The query is not valid SQL, or has unknown names or types (``ValueError``).
    InputError
        A table can't be read (``RuntimeError``).
    MemoryLimitError
        While reading: the limit is too small (``MemoryError``).
    WorkaheadError
        Any other error of the query.

    Examples
    --------
    >>> wa.sql("select shop, sum(price) from lines join orders using (id) group by shop",
    ...        lines="lines.parquet", orders=frame).to_polars()
    """
    all_tables = {**(tables or {}), **named}
    options = {
        "threads": _count("threads", threads),
        "memory_limit": _bytes(memory_limit),
        "spill_dir": None if spill_dir is None else os.fspath(spill_dir),
        "stock": stock,
    }
    # A table with a known number of rows is in memory.
    inputs = [(name, table, _rows(table) is not None) for name, table in all_tables.items()]
    return Reader(_workahead_sql.sql(query, inputs, options))
