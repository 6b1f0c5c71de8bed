"""Random inputs, batches and options: the result is that of a naive join."""

from __future__ import annotations

import pyarrow as pa
import workahead as wa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import HOWS, check, joined

KEYS = st.one_of(st.none(), st.integers(-3, 3))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "a longer text than fits a view", "é"]))


@st.composite
def sides(draw: st.DrawFn, name: str) -> pa.Table:
    rows = draw(st.integers(0, 25))
    column = lambda values: draw(st.lists(values, min_size=rows, max_size=rows))  # noqa: E731
    return pa.table(
        {
            "k": pa.array(column(KEYS), pa.int32()),
            "t": pa.array(column(TEXTS), pa.string()),
            name: pa.array(range(rows), pa.int64()),
        }
    )


def cut(table: pa.Table, rows: int) -> pa.RecordBatchReader:
    """In batches of `rows` rows, each a view into a larger one."""
    batches = [table.slice(start, rows) for start in range(0, table.num_rows, rows)]
    batches = [batch for some in batches for batch in some.combine_chunks().to_batches()]
    return pa.RecordBatchReader.from_batches(table.schema, iter(batches))


# The same cases in every run.
@settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_any_join_is_the_naive_one(data: st.DataObject):
    left, right = data.draw(sides("l")), data.draw(sides("r"))
    on = data.draw(st.sampled_from([["k"], ["t"], ["k", "t"]]))
    how = data.draw(st.sampled_from(HOWS))
    nulls_equal, coalesce = data.draw(st.booleans()), data.draw(st.booleans())
    inputs = [
        side if rows is None else cut(side, rows)
        for side in (left, right)
        for rows in [data.draw(st.one_of(st.none(), st.integers(1, 30)))]
    ]
    result = wa.join(
        *inputs,
        on=on,
        how=how,
        nulls_equal=nulls_equal,
        coalesce=coalesce,
        build_side=data.draw(st.sampled_from(["auto", "left", "right"])),
        maintain_order=data.draw(st.sampled_from([None, "left", "right"])),
        threads=data.draw(st.integers(1, 3)),
        batch_rows=data.draw(st.one_of(st.none(), st.integers(1, 9))),
        layout=data.draw(st.sampled_from(["auto", "buckets", "dense", "bloom"])),
    )
    pairs = [(name, name) for name in on]
    expected = joined(left, right, pairs, how, nulls_equal=nulls_equal, coalesce=coalesce)
    check(result, expected)
