"""Every error is one line that names the remedy, of a class that callers expect."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest
import workahead as wa

LEFT = pa.table({"a": [1, 2], "t": ["x", "y"], "u": ["p", "q"]})
RIGHT = pa.table({"a": [2, 3], "b": [1, 2]})

WRONG = {
    "no such left column": ({"on": "b"}, 'the left input has no column "b": choose from a, t, u'),
    "no such right column": ({"on": "t"}, 'the right input has no column "t": choose from a, b'),
    "no keys": ({}, "there are no keys: give on, or both left_on and right_on"),
    "half the keys": ({"left_on": "a"}, "there are no keys"),
    "empty keys": ({"on": []}, "needs a pair of key columns"),
    "both kinds of keys": ({"on": "a", "left_on": "a"}, "exclude each other"),
    "uneven keys": ({"left_on": ["a", "t"], "right_on": "a"}, "they go in pairs"),
    "keys that are not names": ({"on": [1]}, "name columns by strings"),
    "keys of two kinds": ({"left_on": "t", "right_on": "a"}, "cast one to the type of the other"),
    "no such type": ({"on": "a", "how": "sideways"}, 'there is no join type "sideways": choose'),
    "cross": ({"on": "a", "how": "cross"}, 'there is no join type "cross": choose from inner'),
    "no such layout": ({"on": "a", "layout": "magic"}, "use auto"),
    "no such side": ({"on": "a", "build_side": "up"}, "choose from left, right"),
    "no such order": ({"on": "a", "maintain_order": "up"}, "choose from left, right"),
    "no such selection": ({"on": "a", "select": ["z"]}, 'the result has no column "z": choose'),
    "no size": ({"on": "a", "memory_limit": "much"}, "give a size such as 300MB or 1.5GiB"),
    "no number": ({"on": "a", "memory_limit": 1.5}, "give a whole number"),
    "no threads": ({"on": "a", "threads": 0}, "give at least 1"),
    "many threads": ({"on": "a", "threads": 10**6}, "give a number from 1 to 4096"),
    "long batches": ({"on": "a", "batch_rows": 2**40}, "give a number from 1 to 2^31"),
    "not a not-in": ({"on": "a", "null_aware": True}, "only an anti join can be null-aware"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_refused_before_anything_is_read(case):
    options, words = WRONG[case]

    def unread():
        raise AssertionError("a batch was read")
        yield

    left = pa.RecordBatchReader.from_batches(LEFT.schema, unread())
    with pytest.raises(wa.WrongUseError) as raised:
        wa.join(left, RIGHT, **options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, wa.WorkaheadError)


@pytest.mark.parametrize("data", [[1, 2], {"a": [1]}, "a.parquet", None, 7])
def test_an_input_that_is_not_arrow_data_is_named(data):
    with pytest.raises(wa.WrongUseError, match=f"the left input is a {type(data).__name__}"):
        wa.join(data, RIGHT, on="a")
    with pytest.raises(wa.WrongUseError, match="the right input is"):
        wa.join(LEFT, data, on="a")


def test_a_column_is_not_a_table():
    with pytest.raises(wa.InputError, match="the left input can't be read"):
        wa.join(LEFT["a"], RIGHT, on="a")


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_producer_that_fails_is_named_with_its_message(side):
    def failing():
        yield RIGHT.to_batches()[0]
        raise LookupError("the shelf is empty")

    bad = pa.RecordBatchReader.from_batches(RIGHT.schema, failing())
    inputs = (bad, RIGHT) if side == "left" else (RIGHT, bad)
    with pytest.raises(wa.InputError, match=f"the {side} input can't be read.*shelf") as raised:
        wa.join(*inputs, on="a").to_pyarrow()
    assert "\n" not in str(raised.value)


def test_offsets_that_fall_are_refused():
    # pyarrow reads such a file, and passes it on, without a look.
    offsets = pa.py_buffer(struct.pack("<3i", 0, 100, 4))
    texts = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"abcd"))
    bad = pa.table({"t": texts})
    for left, right, name in [(bad, LEFT, "left"), (LEFT, bad, "right")]:
        with pytest.raises(wa.WorkaheadError, match=f"{name} input") as caught:
            wa.join(left, right, on="t").to_pyarrow()
        assert "\n" not in str(caught.value)


def test_a_foreign_consumer_gets_the_error():
    def failing():
        raise LookupError("the shelf is empty")
        yield

    bad = pa.RecordBatchReader.from_batches(RIGHT.schema, failing())
    with pytest.raises(Exception, match="the shelf is empty"):
        pa.table(wa.join(RIGHT, bad, on="a"))


def test_a_result_is_read_once():
    reader = wa.join(LEFT, RIGHT, on="a")
    assert reader.to_pyarrow().num_rows == 1
    assert list(reader) == []
    with pytest.raises(Exception, match="read already: join again, or keep it"):
        pa.table(reader)
    reader = wa.join(LEFT, RIGHT, on="a")
    first, second = (pa.RecordBatchReader.from_stream(reader) for _ in range(2))
    assert first.read_all().num_rows == 1
    with pytest.raises(Exception, match="read already"):
        second.read_all()
    with pytest.raises(wa.WorkaheadError, match="read already"):
        next(reader)


def test_nothing_but_the_error_is_printed():
    """No message of a panic is printed."""
    script = textwrap.dedent("""
        import pyarrow as pa, workahead as wa
        data = pa.table({"a": range(1000)})
        for options in ({"on": "b"}, {"on": "a", "memory_limit": 10}, {"on": "a", "how": "up"}):
            try:
                wa.join(data, data, **options).to_pyarrow()
            except wa.WorkaheadError as error:
                print(type(error).__name__)
        reader = wa.join(data, data, on="a")
        next(reader)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["WrongUseError", "MemoryLimitError", "WrongUseError"]
