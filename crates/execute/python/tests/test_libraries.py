"""Every library on both sides, and as the consumer of the result."""

from __future__ import annotations

import pyarrow as pa
import workahead as wa
from oracle import bag, check, joined, rows_of

LEFT = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 4, None], pa.int64()),
        "name": ["one", "two", None, "four", "vier", "none"],
        "x": [0.5, 1.5, 2.5, 3.5, None, 5.5],
    }
)
RIGHT = pa.table(
    {
        "id": pa.array([4, 2, 2, 7, None], pa.int64()),
        "y": pa.array([10, 20, 30, 40, 50], pa.int32()),
    }
)
ON = [("id", "id")]


def test_any_two_libraries_join(left_maker, right_maker):
    for how in ("inner", "full"):
        result = wa.join(left_maker(LEFT), right_maker(RIGHT), on="id", how=how)
        check(result, joined(LEFT, RIGHT, ON, how))


def test_any_library_consumes_the_result(consumer):
    names, rows = joined(LEFT, RIGHT, ON, "left")
    table = consumer(wa.join(LEFT, RIGHT, on="id", how="left"))
    assert table.column_names == names
    assert bag(rows_of(table)) == bag(rows)


def test_texts_match_across_libraries(left_maker, right_maker):
    left = pa.table({"k": ["a", "b", "c", None], "l": [1, 2, 3, 4]})
    right = pa.table({"k": ["c", "a", "a", "ä"], "r": [1, 2, 3, 4]})
    result = wa.join(left_maker(left), right_maker(right), on="k")
    check(result, joined(left, right, [("k", "k")], "inner"))


def test_results_are_inputs_again():
    once = wa.join(LEFT, RIGHT, on="id")
    third = pa.table({"id": [2, 4], "z": ["two", "four"]})
    result = wa.join(once, third, on="id").to_pyarrow()
    names, rows = joined(LEFT, RIGHT, ON, "inner")
    between = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    check(result, joined(between, third, ON, "inner"))
    chained = wa.join(wa.join(LEFT, RIGHT, on="id"), wa.join(RIGHT, LEFT, on="id"), on="id")
    assert chained.to_polars().height == 2 * 2 + 2 * 2


def test_the_smaller_side_is_built_if_the_sizes_are_known(left_maker):
    big = pa.table({"id": list(range(100))})
    reader = wa.join(left_maker(big), RIGHT, on="id")
    reader.to_pyarrow()
    assert reader.facts["build_side"] == "right"
    reader = wa.join(RIGHT, left_maker(big), on="id")
    reader.to_pyarrow()
    assert reader.facts["build_side"] == "left"
