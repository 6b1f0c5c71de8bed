"""Joins that work ahead of their cache misses, within a memory limit.

    >>> import workahead as wa
    >>> joined = wa.join(orders, lines, on="order_id", memory_limit="300MB")
    >>> joined.to_polars()

:func:`join` takes anything with the Arrow PyCapsule interface (tables, data frames and readers of
pyarrow, Polars, pandas, DuckDB, DataFusion) and returns a reader that all of them take, without a
copy; :class:`Index` keeps one side for many such joins. :func:`machine` describes this computer and :func:`limits` its memory's measured limits;
:func:`study` reads the results of ``workahead study run``. :func:`sql` runs SQL with these joins,
by a second wheel.
"""

from ._errors import (
    InputError,
    MemoryLimitError,
    SpillError,
    WorkaheadError,
    WrongUseError,
)
from ._index import Index
from ._join import Reader, join
from ._machine import limits, machine
from ._sql import sql
from ._study import Study, study
from ._workahead import Batch, __version__

__all__ = [
    "Batch",
    "Index",
    "InputError",
    "MemoryLimitError",
    "Reader",
    "SpillError",
    "Study",
    "WorkaheadError",
    "WrongUseError",
    "__version__",
    "join",
    "limits",
    "machine",
    "sql",
    "study",
]
