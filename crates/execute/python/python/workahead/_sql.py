"""SQL, if its wheel is installed: DataFusion is many times the size of everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ._join import ArrowStream, Reader


def sql(
    query: str,
    tables: Mapping[str, ArrowStream | str | os.PathLike[str]] | None = None,
    /,
    **named_or_options: Any,
) -> Reader:
    """Run SQL over tables, by DataFusion with Workahead's joins.

    This needs a second wheel, ``pip install workahead-sql``. For its parameters see
    ``help(workahead_sql.sql)``: tables, data frames, readers or paths of files by their names in
    SQL, and ``threads``, ``memory_limit``, ``spill_dir``, ``stock``.

    Returns
    -------
    Reader
        The rows, computed while they are read.

    Raises
    ------
    ImportError
        The wheel is not installed.

    Examples
    --------
    >>> wa.sql("select shop, sum(price) from lines join orders using (id) group by shop",
    ...        lines="lines.parquet", orders=frame, memory_limit="1GB").to_polars()
    """
    try:
        import workahead_sql
    except ModuleNotFoundError as missing:
        if missing.name != "workahead_sql":
            raise
        raise ImportError(
            "workahead.sql needs a second wheel: pip install workahead-sql", name="workahead_sql"
        ) from None
    return workahead_sql.sql(query, tables, **named_or_options)
