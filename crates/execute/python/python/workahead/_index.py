"""An index: one side of a join that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _workahead
from ._errors import WrongUseError
from ._join import _HOW, Reader, _bytes, _count, _names, _pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._join import ArrowStream


class Index:
    """Rows that are looked up by their keys, batch after batch.

    What :func:`join` builds for one join and drops, built once: for the enrichment of a stream, the
    features of a model, a dimension that many queries share. Looking up copies nothing of it, and
    may be done by many threads at the same time.

    Parameters
    ----------
    data
        Anything with ``__arrow_c_stream__``. It is read to its end, and kept in memory.
    on
        The key columns. Keys may repeat; a null key is found by nothing.
    memory_limit
        Bytes, as a number or as ``"300MB"``: more is a :class:`MemoryLimitError`.

    Raises
    ------
    WrongUseError
        An unknown column, or a key that can't be compared (``ValueError``).
    InputError
        The data can't be read (``RuntimeError``).
    MemoryLimitError
        The rows do not fit the limit (``MemoryError``).

    Examples
    --------
    >>> customers = wa.Index(frame, on="customer")
    >>> for batch in orders:
    ...     enriched = customers.lookup(batch).to_polars()
    """

    __slots__ = ("_index", "__weakref__")

    def __init__(
        self,
        data: ArrowStream,
        on: str | Sequence[str],
        *,
        memory_limit: int | str | None = None,
    ) -> None:
        names = _names("on", on)
        if not names:
            raise WrongUseError("there are no keys: give on")
        self._index = _workahead.Index(data, names, _bytes(memory_limit))

    def lookup(
        self,
        data: ArrowStream,
        *,
        on: str | Sequence[str] | None = None,
        how: str = "left",
        suffix: str = "_right",
        select: Sequence[str] | None = None,
        threads: int = 1,
        batch_rows: int | None = None,
    ) -> Reader:
        """Look the rows of a batch, a table, a data frame or a reader up: join them with the index.

        Parameters
        ----------
        data
            The rows, with the keys that are looked up.
        on
            Their key columns, in the order of the index's; by default those of the same names.
        how
            ``left``: all rows, with the columns of the index, null where there is none.
            ``inner``: those that are found, once for each row of the index. ``semi``, ``anti``:
            those that are found, or are not, without the index's columns. ``mark``: all rows, with
            a last column ``mark`` that says whether they are found.
        suffix
            Suffix for columns of the index whose names also exist in the data.
        select
            Only these columns of the result, in this order.
        threads
            With one, rows keep their order. More are worth starting for millions of rows.
        batch_rows
            The most rows of a batch of the result; by default as many as fit the caches.

        Returns
        -------
        Reader
            As of :func:`join`: the rows are computed while they are read.

        Raises
        ------
        WrongUseError
            An unknown column or name, or keys of other types than the index's can be compared with
            (``ValueError``).
        """
        how = how.lower().replace("_", "-")
        how = _HOW.get(how.replace("-", "_"), how)
        keys = self._index.on()
        if on is not None:
            keys = _names("on", on)
        if len(keys) != len(self._index.on()):
            raise WrongUseError(
                f"on has {len(keys)} columns and the index {len(self._index.on())}: they go in pairs"
            )
        options = {
            "on": _pairs(None, keys, self._index.on()),
            "how": how,
            "suffix": suffix,
            "coalesce": True,
            "select": None if select is None else _names("select", select),
            "nulls_equal": False,
            "null_aware": False,
            "build_side": "right",
            "maintain_order": None,
            "layout": "auto",
            "threads": _count("threads", threads),
            "batch_rows": _count("batch_rows", batch_rows),
            "memory_limit": None,
            "spill_dir": None,
        }
        return Reader(self._index.lookup(data, options))

    def __len__(self) -> int:
        return self._index.num_rows()

    def __repr__(self) -> str:
        return f"<workahead.Index: {len(self)} rows by {', '.join(self._index.on())}>"

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return self._index.column_names()

    @property
    def nbytes(self) -> int:
        """Bytes of the table and its columns."""
        return self._index.nbytes()
