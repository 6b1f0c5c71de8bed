"""Joins: names and defaults as Python's users know them; `_workahead` does the work."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from . import _workahead
from ._errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas
    import polars
    import pyarrow

    class ArrowStream(Protocol):
        """Tables, data frames and readers of any library of Arrow's family."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# Other libraries' names of join types.
_HOW = {
    "outer": "full",
    "full_outer": "full",
    "semi": "left-semi",
    "anti": "left-anti",
    "mark": "left-mark",
}

# Producers in Python can't be called while the interpreter shuts down.
_running: weakref.WeakSet[Any] = weakref.WeakSet()


def _stop_all() -> None:
    for stream in list(_running):
        stream.close()


atexit.register(_stop_all)


def join(
    left: ArrowStream,
    right: ArrowStream,
    *,
    on: str | Sequence[str] | None = None,
    left_on: str | Sequence[str] | None = None,
    right_on: str | Sequence[str] | None = None,
    how: str = "inner",
    suffix: str = "_right",
    coalesce: bool | None = None,
    select: Sequence[str] | None = None,
    nulls_equal: bool = False,
    null_aware: bool = False,
    build_side: str = "auto",
    maintain_order: str | None = None,
    layout: str = "auto",
    threads: int | None = None,
    batch_rows: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: str | os.PathLike[str] | None = None,
) -> Reader:
    """Join two inputs where their keys are equal.

    Parameters
    ----------
    left, right
        Anything with ``__arrow_c_stream__``: tables, data frames and readers of pyarrow, Polars,
        pandas (2.2 or newer), DuckDB, DataFusion. Both are streamed: only the build side is kept,
        and of that no more than ``memory_limit``.
    on
        The key columns, if their names are the same on both sides.
    left_on, right_on
        The key columns of each side, in pairs.
    how
        ``inner``, ``left``, ``right``, ``full`` (or ``outer``), ``left-semi`` (or ``semi``),
        ``left-anti`` (or ``anti``), ``left-mark`` (or ``mark``), ``right-semi``, ``right-anti``,
        ``right-mark``. A semi join returns the rows of a side that have a match, once; an anti
        join those without a match; a mark join all, with a last column ``mark`` for the match.
    suffix
        Suffix for right columns whose names also exist on the left.
    coalesce
        Whether a pair of keys is one column; by default if they are given by ``on``. It is the
        left key, in a right join the right one, in a full join the one that is not null.
    select
        Only these columns of the result, in this order.
    nulls_equal
        Null keys match each other. By default they match nothing, as in SQL. (In pandas' own
        ``merge`` they match.) Float keys match by their bits: NaN equals itself, 0.0 does not
        equal -0.0.
    null_aware
        An anti join has the meaning of SQL's ``NOT IN``: it returns no row if the other side has
        a null key.
    build_side
        ``left``, ``right``, or ``auto``: the side with fewer rows if both are known (tables and
        data frames), the table if the other side is a reader, otherwise the right side.
    maintain_order
        ``left`` or ``right``: rows are in the order of that side, with unmatched rows of the
        other side at the end. The join then uses one thread and can't spill. By default the order
        is arbitrary, and differs between runs with several threads.
    layout
        The layout of the table: ``auto``, ``buckets``, ``dense``, ``bloom``.
    threads
        By default one for every CPU that this process may use.
    batch_rows
        The most rows of a batch of the result; by default as many as fit the caches.
    memory_limit
        Bytes, as a number or as ``"300MB"``, ``"1.5GiB"``. The join stays within it and spills
        the rest to files (a hybrid hash join). Your own tables are not counted: pass a reader if
        memory is short. The C library's allocator then returns freed memory to the system, for
        the whole process.
    spill_dir
        Directory for spill files (unlinked when created); by default the system's temporary
        directory.

    Returns
    -------
    Reader
        The rows, computed while they are read: pass it to any library that takes Arrow data,
        iterate over its batches, or call ``.to_pyarrow()``, ``.to_polars()``, ``.to_pandas()``.
        It has the columns of the left side, then of the right one.

    Raises
    ------
    WrongUseError
        An unknown column or name, or keys that can't be compared (``ValueError``).
    InputError
        While reading: an input has failed (``RuntimeError``).
    MemoryLimitError
        While reading: the limit is too small even with spilling (``MemoryError``).
    SpillError
        Files can't be written or read back (``OSError``).

    Examples
    --------
    >>> wa.join(customers, orders, left_on="id", right_on="customer", how="left").to_pandas()
    >>> for batch in wa.join(small, reader, on=["day", "shop"], memory_limit="1GB"):
    ...     writer.write_batch(pyarrow.record_batch(batch))
    """
    how = how.lower().replace("_", "-")
    how = _HOW.get(how.replace("-", "_"), how)
    if coalesce is None:
        coalesce = on is not None
    options = {
        "on": _pairs(on, left_on, right_on),
        "how": how,
        "suffix": suffix,
        "coalesce": coalesce,
        "select": None if select is None else _names("select", select),
        "nulls_equal": nulls_equal,
        "null_aware": null_aware,
        "build_side": _smaller(left, right) if build_side == "auto" else build_side,
        "maintain_order": maintain_order,
        "layout": layout,
        "threads": _count("threads", threads),
        "batch_rows": _count("batch_rows", batch_rows),
        "memory_limit": _bytes(memory_limit),
        "spill_dir": None if spill_dir is None else os.fspath(spill_dir),
    }
    return Reader(_workahead.join(left, right, options))


class Reader:
    """The rows of a join, computed while they are read. They can be read once.

    Iteration returns :class:`Batch` objects; ``__arrow_c_stream__`` passes the rows to any Arrow
    library without a copy. Nothing is read before the first batch is requested, and a slow reader
    slows the join down: neither the probe side nor the result is ever in memory as a whole.
    Closing or dropping a reader ends its threads; so does Ctrl-C, within a batch.
    """

    __slots__ = ("_stream", "__weakref__")

    def __init__(self, stream: _workahead.ResultStream) -> None:
        self._stream = stream
        _running.add(stream)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow C stream. The first stream that is read gets them all."""
        return self._stream.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns as an Arrow C schema."""
        return self._stream.__arrow_c_schema__()

    def __iter__(self) -> Iterator[_workahead.Batch]:
        return self._stream.__iter__()

    def __next__(self) -> _workahead.Batch:
        return self._stream.__next__()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<workahead.Reader: {', '.join(self.column_names)}>"

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return self._stream.column_names()

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns as a pyarrow schema."""
        import pyarrow

        return pyarrow.schema(self)

    @property
    def facts(self) -> dict[str, Any] | None:
        """Facts of the join: rows, the table and the reasons for its layout, memory, spilling.

        ``None`` before the table is built; final when everything is read. The names are those of
        ``workahead join --json``: ``…_bytes`` are bytes, ``…_seconds`` seconds (``…_cpu_seconds``
        summed over threads).
        """
        facts = self._stream.facts()
        return None if facts is None else json.loads(facts)

    def close(self) -> None:
        """End the join and free its memory. Rows that were not read are lost."""
        self._stream.close()

    def to_pyarrow(self) -> pyarrow.Table:
        """All rows as a pyarrow table, without a copy."""
        import pyarrow

        batches = [pyarrow.record_batch(batch) for batch in self]
        return pyarrow.Table.from_batches(batches, schema=self.schema)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars data frame."""
        import polars

        try:
            return polars.DataFrame(self)
        except polars.exceptions.PolarsError:
            _raise_pending_interrupt()
            raise

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a pandas data frame; options are those of ``pyarrow.Table.to_pandas``."""
        return self.to_pyarrow().to_pandas(**options)


def _raise_pending_interrupt() -> None:
    """Raise a Ctrl-C that was pressed while another library worked.

    Python raises it when a function is entered.
    """


def _names(what: str, names: str | Sequence[str]) -> list[str]:
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str):
            raise WrongUseError(f"{what} has {name!r}: name columns by strings")
    return names


def _pairs(
    on: str | Sequence[str] | None,
    left_on: str | Sequence[str] | None,
    right_on: str | Sequence[str] | None,
) -> list[tuple[str, str]]:
    if on is not None:
        if left_on is not None or right_on is not None:
            raise WrongUseError("on and left_on, right_on exclude each other: give one of the two")
        return [(name, name) for name in _names("on", on)]
    if left_on is None or right_on is None:
        raise WrongUseError("there are no keys: give on, or both left_on and right_on")
    left, right = _names("left_on", left_on), _names("right_on", right_on)
    if len(left) != len(right):
        raise WrongUseError(
            f"left_on has {len(left)} columns and right_on {len(right)}: they go in pairs"
        )
    return list(zip(left, right, strict=True))


def _count(what: str, count: int | None) -> int | None:
    if count is None:
        return None
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise WrongUseError(f"{what} is {count!r}: give a whole number")
    if count.__index__() < 1:
        raise WrongUseError(f"{what} can't be {count}: give at least 1")
    return count.__index__()


def _bytes(size: int | str | None) -> int | None:
    if isinstance(size, str):
        try:
            return _workahead.memory_bytes(size)
        except WrongUseError as error:
            raise WrongUseError(f"memory_limit is {size!r}: {error}") from None
    return _count("memory_limit", size)


def _rows(data: object) -> int | None:
    """The number of rows, if a library knows it without running anything."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        return len(data)  # type: ignore[arg-type]
    name = {"pyarrow": "num_rows", "polars": "height", "workahead": "num_rows"}.get(library)
    rows = getattr(data, name, None) if name else None
    return rows if isinstance(rows, int) else None


def _smaller(left: object, right: object) -> str:
    rows = _rows(left), _rows(right)
    match rows:
        case (int() as left_rows, int() as right_rows):
            return "left" if left_rows <= right_rows else "right"
        case (int(), None):
            return "left"
        case _:
            return "right"
