"""An index: built once, looked up often, with the rows of a join each time."""

from __future__ import annotations

import threading

import polars as pl
import pyarrow as pa
import pytest
import workahead as wa
from conftest import FROM

CUSTOMERS = pa.table(
    {"id": [1, 2, 2, None], "name": ["Ann", "Bob", "Bo", "Nul"], "price": [1.5, 2.5, 3.5, 4.5]}
)
ORDERS = pa.table({"customer": pa.array([2, 9, 1, None], pa.int32()), "price": [10, 20, 30, 40]})


@pytest.mark.parametrize("library", FROM)
def test_any_library_is_indexed_and_looked_up(library: str) -> None:
    index = wa.Index(FROM[library](CUSTOMERS), "id")
    assert len(index) == 4
    found = index.lookup(FROM[library](ORDERS), on="customer").to_polars()
    assert found.columns == ["customer", "price", "name", "price_right"]
    assert found.rows() == [
        (2, 10, "Bob", 2.5),
        (2, 10, "Bo", 3.5),
        (9, 20, None, None),
        (1, 30, "Ann", 1.5),
        (None, 40, None, None),
    ]


@pytest.mark.parametrize("how", ["left", "inner", "semi", "anti", "mark"])
@pytest.mark.parametrize("threads", [1, 2])
def test_each_type_has_the_rows_of_a_join(how: str, threads: int) -> None:
    keys = [(7919 * row) % 5000 for row in range(3000)]
    index = wa.Index(pl.DataFrame({"key": keys, "row": range(3000)}), on="key")
    for start in (0, 2000, 10_000):
        data = pl.DataFrame({"key": range(start, start + 4000), "own": range(4000)})
        found = index.lookup(data, how=how, threads=threads).to_polars()
        joined = wa.join(data, pl.DataFrame({"key": keys, "row": range(3000)}), on="key", how=how)
        wanted = joined.to_polars()
        assert found.columns == wanted.columns
        if threads == 1:
            assert found["own"].is_sorted()
        assert sorted(found.rows(), key=repr) == sorted(wanted.rows(), key=repr)


def test_keys_of_several_columns_and_other_types() -> None:
    index = wa.Index(pa.table({"a": [1, 1], "b": ["x", "y"], "v": [10, 20]}), on=["a", "b"])
    data = pa.table({"left": [1, 2], "right": pa.array(["y", "y"], pa.large_string())})
    found = index.lookup(data, on=["left", "right"], select=["left", "v"]).to_polars()
    assert found.rows() == [(1, 20), (2, None)]
    text = wa.Index(pa.table({"k": ["a"], "v": [1]}), on="k")
    coded = pa.table({"k": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert text.lookup(coded).to_polars()["v"].to_list() == [1, None, 1]


def test_threads_share_one_index() -> None:
    index = wa.Index(pl.DataFrame({"k": range(1000), "v": range(1000)}), on="k")
    wrong: list[int] = []

    def work(start: int) -> None:
        for at in range(start, start + 50):
            found = index.lookup(pl.DataFrame({"k": [at, at + 5000]})).to_polars()
            if found["v"].to_list() != [at, None]:
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_index_outlives_its_readers_and_a_reader_its_index() -> None:
    index = wa.Index(pl.DataFrame({"k": [1], "v": [2]}), on="k")
    size = index.nbytes
    for _ in range(20):
        index.lookup(pl.DataFrame({"k": [1] * 1000})).to_polars()
    assert index.nbytes == size > 0
    reader = index.lookup(pl.DataFrame({"k": [1]}))
    del index
    assert reader.to_polars().rows() == [(1, 2)]


def test_an_empty_index_and_an_empty_batch() -> None:
    empty = pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    index = wa.Index(empty, on="k")
    assert index.lookup(pl.DataFrame({"k": [1, 2]})).to_polars()["v"].to_list() == [None, None]
    found = wa.Index(CUSTOMERS, on="id").lookup(ORDERS.slice(0, 0), on="customer")
    assert found.to_polars().shape == (0, 4)


def test_what_cannot_be_is_an_error_in_a_line() -> None:
    index = wa.Index(pl.DataFrame({"k": [-1, 1], "v": [2, 3]}), on="k")
    data = pl.DataFrame({"k": [1], "other": ["x"]})
    with pytest.raises(wa.WrongUseError, match="no column \"q\": choose from k, v"):
        wa.Index(pl.DataFrame({"k": [1], "v": [2]}), on="q")
    with pytest.raises(wa.WrongUseError, match="no column \"k\""):
        index.lookup(pl.DataFrame({"q": [1]}))
    with pytest.raises(wa.WrongUseError, match="go in pairs"):
        index.lookup(data, on=["k", "other"])
    with pytest.raises(wa.WrongUseError, match="can't be equal"):
        index.lookup(data, on="other")
    with pytest.raises(wa.WrongUseError, match="cast"):
        index.lookup(data.with_columns(pl.col("k").cast(pl.UInt64)))
    with pytest.raises(wa.WrongUseError, match="build one for it"):
        index.lookup(data, how="full")
    with pytest.raises(wa.WrongUseError, match="not Arrow data"):
        wa.Index([1, 2], on="k")
    with pytest.raises(wa.WrongUseError, match="there are no keys"):
        wa.Index(data, on=[])
    with pytest.raises(wa.MemoryLimitError):
        wa.Index(pl.DataFrame({"k": range(1_000_000)}), on="k", memory_limit="1MB")


def test_data_that_fails_is_an_input_error() -> None:
    def batches():
        yield pa.record_batch({"k": [1]})
        raise RuntimeError("gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    with pytest.raises(wa.InputError, match="index's data can't be read: .*gone"):
        wa.Index(reader, on="k")
