"""A join that is too simple to be wrong: every row against every row."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any

import pyarrow as pa

HOWS = [
    "inner",
    "left",
    "right",
    "full",
    "left-semi",
    "right-semi",
    "left-anti",
    "right-anti",
    "left-mark",
    "right-mark",
]


def equal(a: Any, b: Any, nulls_equal: bool) -> bool:
    if a is None or b is None:
        return nulls_equal and a is None and b is None
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return a == b


def joined(
    left: pa.Table,
    right: pa.Table,
    on: list[tuple[str, str]],
    how: str,
    *,
    nulls_equal: bool = False,
    coalesce: bool = True,
    suffix: str = "_right",
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows."""
    lrows, rrows = left.to_pylist(), right.to_pylist()
    pairs = [
        (i, j)
        for i, a in enumerate(lrows)
        for j, b in enumerate(rrows)
        if all(equal(a[x], b[y], nulls_equal) for x, y in on)
    ]
    lhit, rhit = {i for i, _ in pairs}, {j for _, j in pairs}
    if how.split("-")[-1] in ("semi", "anti", "mark"):
        side, kind = how.split("-")
        rows, hit = (lrows, lhit) if side == "left" else (rrows, rhit)
        names = list((left if side == "left" else right).column_names)
        values = [tuple(row[name] for name in names) for row in rows]
        if kind == "mark":
            return [*names, "mark"], [(*v, i in hit) for i, v in enumerate(values)]
        return names, [v for i, v in enumerate(values) if (i in hit) == (kind == "semi")]
    if how in ("left", "full"):
        pairs += [(i, None) for i in range(len(lrows)) if i not in lhit]
    if how in ("right", "full"):
        pairs += [(None, j) for j in range(len(rrows)) if j not in rhit]
    partner = dict(on) if coalesce else {}
    shown = [name for name in right.column_names if name not in partner.values()]
    names = left.column_names + [n + suffix if n in left.column_names else n for n in shown]

    def row(i: int | None, j: int | None) -> tuple[Any, ...]:
        def of(rows: list[dict[str, Any]], at: int | None, name: str) -> Any:
            return None if at is None else rows[at][name]

        def key(name: str) -> Any:
            if name in partner and (i is None or how == "right"):
                return of(rrows, j, partner[name])
            return of(lrows, i, name)

        return (*map(key, left.column_names), *(of(rrows, j, name) for name in shown))

    return names, [row(i, j) for i, j in pairs]


def plain(value: Any) -> Any:
    """A value in a form that is the same for every library."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else ("float", struct.pack("d", value))
    if isinstance(value, decimal.Decimal):
        return ("decimal", str(value.normalize()))
    if isinstance(value, datetime.datetime):
        return ("instant", value.isoformat())
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple((name, plain(field)) for name, field in value.items())
    return value


def bag(rows: list[tuple[Any, ...]]) -> list[str]:
    """Sorted rows."""
    return sorted(repr(tuple(map(plain, row))) for row in rows)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def check(result: Any, expected: tuple[list[str], list[tuple[Any, ...]]]) -> pa.Table:
    """Compare a result with the expected rows, in any order."""
    table = result if isinstance(result, pa.Table) else result.to_pyarrow()
    names, rows = expected
    assert table.column_names == names
    assert bag(rows_of(table)) == bag(rows)
    table.validate(full=True)
    return table
