"""The cases of Polars' own tests of joins, with our code and our data.

Polars' wheel does not bring its tests. ``polars_suite.toml`` lists those of
``py-polars/tests/unit/operations/test_join.py`` (Polars 1.17 to 2.1), each with the case here that
asks the same of our join, or the reason why there is none.
"""

from __future__ import annotations

import datetime
import pathlib
import random
import sys
import tomllib
from typing import Any

import polars as pl
import pytest
import workahead as wa
from polars.testing import assert_frame_equal

LIST = pathlib.Path(__file__).with_name("polars_suite.toml")


def rows(result: Any) -> list[tuple[Any, ...]]:
    """Sorted rows; nulls first."""
    frame = result.to_polars() if isinstance(result, wa.Reader) else result
    return sorted(frame.rows(), key=lambda row: [(v is not None, str(v)) for v in row])


def same_as_polars(left: pl.DataFrame, right: pl.DataFrame, on: list[str] | str, how: str) -> None:
    theirs = left.join(right, on=on, how=how, coalesce=True)
    ours = wa.join(left, right, on=on, how=how).to_polars()
    # In a right join Polars puts the keys among the right columns.
    assert ours.columns == theirs.columns or how == "right"
    ours = ours.select(theirs.columns)
    assert_frame_equal(ours, theirs, check_row_order=False)


def test_semi_and_anti_keep_payload_and_duplicates():
    shops = pl.DataFrame({"city": [10, 20, 30, 10], "kind": list("xyzx"), "n": [1, None, 3, 4]})
    closed = pl.DataFrame({"city": [30, 30, None, 99], "kind": ["z", "z", "x", None]})
    assert rows(wa.join(shops, closed, on="city", how="semi")) == [(30, "z", 3)]
    assert rows(wa.join(shops, closed, on=["city", "kind"], how="semi")) == [(30, "z", 3)]
    expected = [(10, "x", 1), (10, "x", 4), (20, "y", None)]
    assert rows(wa.join(shops, closed, on=["city", "kind"], how="anti")) == expected


def test_categories_match_by_their_text():
    data = pl.DataFrame({"c": ["red", "red", "blue"], "n": [2, 4, 6]})
    data = data.with_columns(pl.col("c").cast(pl.Categorical))
    means = data.group_by("c").agg(pl.col("n").mean())
    joined = wa.join(data, means, on="c")
    assert joined.column_names == ["c", "n", "n_right"]
    assert rows(joined) == [("blue", 6, 6.0), ("red", 2, 3.0), ("red", 4, 3.0)]


@pytest.mark.parametrize("how", ["left", "inner", "full", "semi", "anti"])
@pytest.mark.parametrize("kind", [pl.Int64, pl.String, pl.Float64])
def test_sorted_and_random_inputs_are_as_polars_joins_them(how, kind):
    chosen = random.Random(1)
    left = pl.DataFrame({"k": sorted(chosen.randrange(40) for _ in range(90))})
    right = pl.DataFrame({"k": [chosen.randrange(60) for _ in range(50)]})
    left = left.with_columns(pl.col("k").cast(kind)).with_row_index("l")
    right = right.with_columns(pl.col("k").cast(kind)).with_row_index("r")
    same_as_polars(left, right, "k", how)
    same_as_polars(left.reverse(), right, "k", how)


@pytest.mark.parametrize("kind", [pl.Int8, pl.Int16, pl.Int32, pl.Int64])
def test_negative_integers(kind):
    left = pl.DataFrame({"k": pl.Series([-5, -7, 0, 3], dtype=kind)})
    right = pl.DataFrame({"k": pl.Series([3, -7, -1, 0], dtype=kind), "v": [1, 2, 3, 4]})
    assert rows(wa.join(left, right, on="k")) == [(-7, 2), (0, 4), (3, 1)]


def test_keys_that_are_computed_before():
    left, right = pl.DataFrame({"a": [2, 3, 4]}), pl.DataFrame({"b": [9, 16, 16, 1]})
    squares = left.with_columns(square=pl.col("a") ** 2)
    joined = wa.join(squares, right, left_on="square", right_on="b", select=["a", "b"])
    assert rows(joined) == [(3, 9), (4, 16), (4, 16)]


def test_a_left_and_a_full_join_of_texts():
    left = pl.DataFrame({"k": ["p", "q", "p", "y"], "n": [1, 2, 3, 4], "v": [9, 8, 7, 6]})
    right = pl.DataFrame({"k": ["q", "r", "q", "p"], "m": [5, 6, 7, 8], "v": [1, 2, 3, 4]})
    for how in ("inner", "left", "full", "right"):
        same_as_polars(left, right, "k", how)
    assert wa.join(left, right, on="k", how="full").to_polars()["k"].null_count() == 0
    both = wa.join(left, right, on="k", how="full", coalesce=False).to_polars()
    assert both["k"].null_count() == both["n"].null_count() == 1
    assert both["k_right"].null_count() == both["m"].null_count() == 1


@pytest.mark.parametrize("how", ["left", "inner", "full"])
def test_any_set_of_keys_of_any_type(how):
    day = datetime.date(2023, 7, 1)
    data = pl.DataFrame(
        {
            "text": ["m", "n", "o", "m"],
            "number": [4, 5, 6, 4],
            "day": [day, day + datetime.timedelta(days=1), day, day],
            "instant": [datetime.datetime(2023, 7, i) for i in (1, 2, 3, 1)],
        }
    )
    for keys in (["text", "number", "day", "instant"], ["day", "instant"], ["instant", "text"]):
        same_as_polars(data, data.unique(maintain_order=True), keys, how)
    same_as_polars(data, data.head(1), "day", how)


SIGNED = [pl.Int8, pl.Int16, pl.Int32, pl.Int64]
UNSIGNED = [pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


@pytest.mark.parametrize("left_kind", SIGNED + UNSIGNED)
@pytest.mark.parametrize("right_kind", SIGNED + UNSIGNED)
def test_integers_of_any_two_widths_match_by_value(left_kind, right_kind):
    left = pl.DataFrame({"k": pl.Series([7, 7, 9], dtype=left_kind)})
    right = pl.DataFrame({"k": pl.Series([7], dtype=right_kind), "v": ["A"]})
    joined = wa.join(left, right, on="k", how="left").to_polars()
    assert rows(joined) == [(7, "A"), (7, "A"), (9, None)]
    assert joined["k"].dtype == left_kind
    assert rows(wa.join(left, right, on="k", how="semi")) == [(7,), (7,)]
    both = wa.join(left, right, on="k", how="full", coalesce=False).to_polars()
    assert both["k_right"].dtype == right_kind and both.height == 3


def test_floats_and_integers_are_not_compared():
    left, right = pl.DataFrame({"k": [1.0, 2.0]}), pl.DataFrame({"k": [1, 2]})
    for how in ("left", "inner", "full"):
        with pytest.raises(wa.WrongUseError, match="cast one to the type of the other"):
            wa.join(left, right, on="k", how=how)


def test_three_keys_in_any_order():
    left = pl.DataFrame({"a": [0, 0, 1, 1], "b": [5, 5, 6, 6], "c": [8, 9, 8, 9]})
    right = pl.DataFrame({"a": [0, 1], "b": [5, 6], "c": [8, 9], "d": ["x", "y"]})
    expected = [(0, 5, 8, "x"), (0, 5, 9, None), (1, 6, 8, None), (1, 6, 9, "y")]
    for keys in (["a", "b", "c"], ["c", "a", "b"]):
        assert rows(wa.join(left, right, on=keys, how="left")) == expected


def test_semi_joins_one_after_the_other():
    left, right = pl.DataFrame({"x": [4]}), pl.DataFrame({"y": [4], "x": [5]})
    once = wa.join(left, right, left_on="x", right_on="y", how="semi")
    assert rows(wa.join(once, right, left_on="x", right_on="y", how="semi")) == [(4,)]


def test_a_semi_join_on_two_keys_keeps_the_newest():
    at = [datetime.datetime(2024, 5, day) for day in (3, 4, 9)]
    data = pl.DataFrame({"id": [7, 7, 8], "at": at, "v": [1, 2, 3]})
    newest = data.group_by("id").agg(pl.col("at").max())
    joined = wa.join(data, newest, on=["id", "at"], how="semi", select=["id", "v"])
    assert rows(joined) == [(7, 2), (8, 3)]


def test_a_null_key_matches_nothing_in_any_join():
    left, right = pl.DataFrame({"x": [3, 3, 4]}), pl.DataFrame({"x": [3, None], "y": [1, 2]})
    of = lambda how: rows(wa.join(left, right, on="x", how=how))  # noqa: E731
    assert of("inner") == [(3, 1), (3, 1)]
    assert of("left") == [(3, 1), (3, 1), (4, None)]
    assert of("anti") == [(4,)] and of("semi") == [(3,), (3,)]
    assert of("full") == [(None, 2), (3, 1), (3, 1), (4, None)]


def test_lists_beside_the_keys_of_a_full_join():
    schema = {"id": pl.Int64, "v": pl.List(pl.Float64)}
    left = pl.DataFrame({"id": [5], "v": [[]]}, schema=schema)
    right = pl.DataFrame({"id": [6, 7], "v": [[], [0.5]]}, schema=schema)
    expected = [(5, [], None), (6, None, []), (7, None, [0.5])]
    assert rows(wa.join(left, right, on="id", how="full")) == expected


def test_a_full_join_of_booleans():
    left = pl.DataFrame({"k": [True, False], "l": [1, 2]})
    right = pl.DataFrame({"k": [False, True], "r": [3, 4]})
    assert rows(wa.join(left, right, on="k", how="full")) == [(False, 2, 3), (True, 1, 4)]


def test_a_full_join_coalesces_keys_of_different_names():
    left = pl.DataFrame({"a": ["u", "v", "w"], "b": ["1", "2", "3"], "n": [1, 2, 3]})
    right = pl.DataFrame({"b": ["u", "w", "x"], "m": [4, 5, 6]})
    joined = wa.join(left, right, left_on="a", right_on="b", how="full", coalesce=True)
    assert joined.column_names == ["a", "b", "n", "m"]
    expected = [("u", "1", 1, 4), ("v", "2", 2, None), ("w", "3", 3, 5), ("x", None, None, 6)]
    assert rows(joined) == expected


def test_names_never_clash():
    data = pl.DataFrame({"a": [1], "c": [2], "c_right": [3]})
    joined = wa.join(data, data, on="a")
    assert joined.column_names == ["a", "c", "c_right", "c_right_right", "c_right_right_right"]
    assert rows(joined) == [(1, 2, 3, 2, 3)]


def test_four_keys_with_nulls():
    column = [None if i % 6 == 0 else i for i in range(138)]
    data = pl.DataFrame({name: column for name in "abcd"})
    for nulls_equal, expected in ((False, 115), (True, 115 + 23 * 23)):
        result = wa.join(data, data, on=list("abcd"), nulls_equal=nulls_equal)
        assert result.to_polars().shape == (expected, 4)


@pytest.mark.parametrize("how", ["left", "inner"])
def test_keys_are_one_column_or_two(how):
    left = pl.DataFrame({"a": [1, 2], "b": [1, 2]})
    right = pl.DataFrame({"a": [1, 2, 1, 2], "b": [5, 7, 8, 9], "c": [1, 2, 1, 2]})
    names = lambda **options: wa.join(left, right, how=how, **options).column_names  # noqa: E731
    assert names(on="a", coalesce=False) == ["a", "b", "a_right", "b_right", "c"]
    assert names(on=["a", "b"], coalesce=False) == ["a", "b", "a_right", "b_right", "c"]
    assert names(on=["a", "b"]) == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["left", "inner", "full", "right", "semi", "anti"])
def test_frames_without_rows(how):
    # With a type: Polars exports columns of type Null with a buffer, which Arrow's form has not.
    left = pl.DataFrame(schema={"a": pl.Int8, "k": pl.String})
    right = pl.DataFrame(schema={"k": pl.String, "b": pl.Date})
    assert wa.join(left, right, on="k", how=how).to_polars().height == 0


def test_a_constant_key_joins_everything():
    left = pl.DataFrame({"s": [4, 5]}).with_columns(one=pl.lit(1))
    right = pl.DataFrame({"d": [1, 2, 3]}).with_columns(one=pl.lit(1))
    assert wa.join(left, right, on="one").to_polars().height == 6
    nothing = right.clear()
    assert wa.join(left, nothing, on="one", how="left").to_polars().height == 2


@pytest.mark.parametrize("given", [{"left_on": "a"}, {"right_on": "a"}, {}])
def test_keys_of_one_side_or_none(given):
    data = pl.DataFrame({"a": [1]})
    with pytest.raises(wa.WrongUseError, match="there are no keys"):
        wa.join(data, data, **given)
    if given:
        with pytest.raises(wa.WrongUseError, match="exclude each other"):
            wa.join(data, data, on="a", **given)


def test_first_rows_of_a_left_join():
    left, right = pl.DataFrame({"k": [4, 5, 6]}), pl.DataFrame({"k": [4, 4, 4]})
    joined = wa.join(left, right, on="k", how="left", maintain_order="left").to_polars()
    assert joined.head(4)["k"].to_list() == [4, 4, 4, 5]


def test_a_null_column_of_categories_in_a_full_join():
    left = pl.DataFrame({"a": [1], "c": [None]}, schema={"a": pl.Int64, "c": pl.Categorical})
    right = pl.DataFrame({"a": [1, 8]})
    assert rows(wa.join(left, right, on="a", how="full")) == [(1, None), (8, None)]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_orders_are_as_polars_keeps_them(how):
    left = pl.DataFrame({"a": [None, 2, 1, 1, 5]}).with_row_index("l")
    right = pl.DataFrame({"a": [1, 1, None, 2, 6]}).with_row_index("r")
    for side in ("left", "right"):
        theirs = left.join(right, on="a", how=how, coalesce=True, maintain_order=side)
        ours = wa.join(left, right, on="a", how=how, maintain_order=side).to_polars()
        own = side[0]
        # The order within equal keys is not defined, nor that of unmatched rows at the end.
        kept = [place for place in theirs[own].to_list() if place is not None]
        assert [place for place in ours[own].to_list() if place is not None] == kept
        assert rows(ours.select(theirs.columns)) == rows(theirs)


def test_every_case_is_listed_and_every_entry_is_a_case_or_a_reason():
    listed = tomllib.loads(LIST.read_text())["test"]
    here = {name for name in vars(sys.modules[__name__]) if name.startswith("test_")}
    here.remove("test_every_case_is_listed_and_every_entry_is_a_case_or_a_reason")
    assert {entry["case"] for entry in listed if "case" in entry} == here
    assert all(("case" in entry) != ("reason" in entry) for entry in listed)
    names = [entry["name"] for entry in listed]
    assert len(names) == len(set(names)) > 50
