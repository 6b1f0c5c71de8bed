"""All types of join against a naive one: nulls, texts, dates, decimals, equal names, no rows."""

from __future__ import annotations

import datetime
import decimal
import random

import pyarrow as pa
import pytest
import workahead as wa
from oracle import HOWS, bag, check, joined, rows_of

DAY = datetime.date(2024, 2, 28)


def _day(i: int) -> datetime.date:
    return DAY + datetime.timedelta(days=i)


def _time(i: int) -> datetime.datetime:
    return datetime.datetime(2024, 2, 28, 23, 59, 59) + datetime.timedelta(seconds=i)


# Values of a type, by a small number.
KINDS = {
    "int8": (pa.int8(), lambda i: i - 3),
    "int64": (pa.int64(), lambda i: (i - 3) * 10**12),
    "uint32": (pa.uint32(), lambda i: i),
    "bool": (pa.bool_(), lambda i: i % 2 == 0),
    "double": (pa.float64(), lambda i: [0.0, -0.0, 1.5, float("nan"), 2.5, 1e300, -1.5][i % 7]),
    "text": (pa.string(), lambda i: ["", "a", "ä", "long enough not to be inlined", "b"][i % 5]),
    "large text": (pa.large_string(), lambda i: f"text {i}"),
    "text view": (pa.string_view(), lambda i: f"a text that is not inlined {i}"),
    "bytes": (pa.binary(), lambda i: bytes([i])),
    "date": (pa.date32(), _day),
    "timestamp": (pa.timestamp("us"), _time),
    "timestamp with zone": (
        pa.timestamp("ms", "Europe/Berlin"),
        lambda i: _time(i).replace(tzinfo=datetime.timezone.utc),
    ),
    "decimal": (pa.decimal128(20, 3), lambda i: decimal.Decimal(i) / 8 - 1),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), lambda i: f"category {i}"),
    "list": (pa.list_(pa.int32()), lambda i: [i, None] if i % 2 else [i]),
    "struct": (pa.struct({"a": pa.int32(), "b": pa.string()}), lambda i: {"a": i, "b": str(i)}),
}


def table(kind: str, rows: int, seed: int, name: str) -> pa.Table:
    data_type, value = KINDS[kind]
    chosen = random.Random(seed)
    keys = [None if chosen.random() < 0.2 else value(chosen.randrange(7)) for _ in range(rows)]
    values = pa.array(keys, data_type if kind != "dictionary" else pa.string())
    if kind == "dictionary":
        values = values.dictionary_encode().cast(data_type)
    own = pa.array([f"{name} {i}" for i in range(rows)])
    return pa.table({"key": values, "own": own, name: pa.array(range(rows), pa.int32())})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", HOWS)
def test_every_type_of_join_and_key(how, kind):
    left, right = table(kind, 23, 1, "l"), table(kind, 31, 2, "r")
    for nulls_equal in (False, True):
        if kind in ("list", "struct", "dictionary") and how == "full":
            continue  # below, with both keys
        result = wa.join(left, right, on="key", how=how, nulls_equal=nulls_equal)
        check(result, joined(left, right, [("key", "key")], how, nulls_equal=nulls_equal))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build_side", ["left", "right"])
def test_full_joins_with_both_keys(build_side, kind):
    left, right = table(kind, 23, 3, "l"), table(kind, 31, 4, "r")
    result = wa.join(left, right, on="key", how="full", coalesce=False, build_side=build_side)
    check(result, joined(left, right, [("key", "key")], "full", coalesce=False))


@pytest.mark.parametrize("kind", ["list", "struct", "dictionary"])
def test_full_joins_coalesce_nested_keys(kind):
    left, right = table(kind, 23, 3, "l"), table(kind, 31, 4, "r")
    result = wa.join(left, right, on="key", how="full")
    check(result, joined(left, right, [("key", "key")], "full"))


@pytest.mark.parametrize("how", HOWS)
def test_several_keys_of_several_types(how):
    chosen = random.Random(5)

    def rows(count: int, name: str) -> pa.Table:
        pick = lambda of: [chosen.choice([*of, None]) for _ in range(count)]  # noqa: E731
        return pa.table(
            {
                "day": pa.array(pick([_day(0), _day(1)]), pa.date32()),
                name: pa.array(range(count)),
                "shop": pa.array(pick(["here", "there"])),
                "price": pa.array(pick([decimal.Decimal("1.50")]), pa.decimal128(5, 2)),
            }
        )

    left, right = rows(40, "l"), rows(30, "r")
    keys = ["shop", "day", "price"]
    expected = joined(left, right, [(key, key) for key in keys], how)
    check(wa.join(left, right, on=keys, how=how), expected)
    expected = joined(left, right, [("shop", "shop")], how)
    check(wa.join(left, right, on="shop", how=how), expected)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_inputs_without_rows(how, empty):
    left, right = table("int64", 5, 6, "l"), table("int64", 6, 7, "r")
    left = left.slice(0, 0) if empty != "right" else left
    right = right.slice(0, 0) if empty != "left" else right
    result = wa.join(left, right, on="key", how=how)
    check(result, joined(left, right, [("key", "key")], how))


@pytest.mark.parametrize("how", HOWS)
def test_a_reader_without_batches(how):
    schema = pa.schema({"key": pa.int64(), "l": pa.int8()})
    nothing = pa.RecordBatchReader.from_batches(schema, [])
    right = table("int64", 6, 7, "r")
    expected = joined(schema.empty_table(), right, [("key", "key")], how)
    check(wa.join(nothing, right, on="key", how=how), expected)


@pytest.mark.parametrize("how", HOWS)
def test_keys_of_different_names_and_width(how):
    left = pa.table({"a": pa.array([1, 2, 3, None], pa.int32()), "v": [1, 2, 3, 4]})
    right = pa.table({"b": pa.array([3, 2**40, 1], pa.int64()), "v": [5, 6, 7]})
    result = wa.join(left, right, left_on="a", right_on="b", how=how)
    check(result, joined(left, right, [("a", "b")], how, coalesce=False))
    if how == "full":
        with pytest.raises(wa.WrongUseError, match="coalesce=False"):
            wa.join(left, right, left_on="a", right_on="b", how=how, coalesce=True)
    else:
        result = wa.join(left, right, left_on="a", right_on="b", how=how, coalesce=True)
        check(result, joined(left, right, [("a", "b")], how))


def test_the_names_of_other_libraries():
    left, right = table("text", 9, 8, "l"), table("text", 8, 9, "r")
    for theirs, ours in {
        "outer": "full",
        "semi": "left-semi",
        "anti": "left-anti",
        "left_anti": "left-anti",
        "RIGHT_SEMI": "right-semi",
        "mark": "left-mark",
    }.items():
        result = wa.join(left, right, on="key", how=theirs)
        check(result, joined(left, right, [("key", "key")], ours))


def test_clashing_names_get_the_suffix():
    left = pa.table({"k": [1], "v": [1], "v_right": [2]})
    right = pa.table({"k": [1], "v": [3], "w": [4]})
    assert wa.join(left, right, on="k").column_names == ["k", "v", "v_right", "v_right_right", "w"]
    names = ["k", "v", "v_right", "v@r", "w"]
    assert wa.join(left, right, on="k", suffix="@r").column_names == names
    names = ["k", "v", "v_right", "k_right", "v_right_right", "w"]
    assert wa.join(left, right, on="k", coalesce=False).column_names == names


def test_selected_columns_in_their_order():
    left, right = table("int64", 9, 10, "l"), table("int64", 8, 11, "r")
    for how in ("inner", "left", "right", "full"):
        names, rows = joined(left, right, [("key", "key")], how)
        at = [names.index(name) for name in ("r", "key")]
        expected = (["r", "key"], [tuple(row[i] for i in at) for row in rows])
        check(wa.join(left, right, on="key", how=how, select=["r", "key"]), expected)


def test_without_columns_the_rows_are_counted():
    left, right = table("int64", 9, 10, "l"), table("int64", 8, 11, "r")
    _, rows = joined(left, right, [("key", "key")], "inner")
    assert sum(len(batch) for batch in wa.join(left, right, on="key", select=[])) == len(rows)


def test_not_in_with_a_null_returns_nothing():
    left = pa.table({"k": [1, 2, None]})
    for others, expected in [([1], [(2,)]), ([1, None], []), ([], [(1,), (2,), (None,)])]:
        right = pa.table({"k": pa.array(others, pa.int64())})
        result = wa.join(left, right, on="k", how="anti", null_aware=True)
        check(result, (["k"], expected))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "left-semi", "right-anti"])
def test_maintain_order(how, side):
    left = pa.table({"k": [i * 7919 % 1000 for i in range(5000)], "l": range(5000)})
    right = pa.table({"k": [i * 104729 % 1500 for i in range(4000)], "r": range(4000)})
    result = wa.join(left, right, on="k", how=how, maintain_order=side).to_pyarrow()
    unordered = wa.join(left, right, on="k", how=how).to_pyarrow()
    assert bag(rows_of(result)) == bag(rows_of(unordered))
    if side[0] in result.column_names:
        # Unmatched rows of the other side come last, with nulls.
        numbers = result[side[0]].to_pylist()
        end = numbers.index(None) if None in numbers else len(numbers)
        assert numbers[:end] == sorted(numbers[:end])
        assert set(numbers[end:]) <= {None}


def test_every_layout_returns_the_same_rows():
    left = pa.table({"k": [i * 7919 % 3000 for i in range(3000)], "l": range(3000)})
    right = pa.table({"k": [i * 104729 % 5000 for i in range(20000)], "r": range(20000)})
    expected = None
    for layout in ("auto", "buckets", "dense", "bloom"):
        result = wa.join(left, right, on="k", layout=layout, batch_rows=1000)
        table = result.to_pyarrow()
        assert max(len(chunk) for chunk in table["k"].chunks) <= 1000
        table = table.sort_by([(name, "ascending") for name in ("k", "l", "r")]).combine_chunks()
        expected = table if expected is None else expected
        assert table.equals(expected)
    assert expected.num_rows == sum(1 for i in range(20000) if i * 104729 % 5000 < 3000)
