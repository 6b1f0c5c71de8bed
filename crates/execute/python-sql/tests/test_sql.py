"""SQL over Python's tables."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import workahead as wa
import workahead_sql

ORDERS = pa.table({"id": [1, 2, 3, None], "name": ["Ann", "Bob", "Cid", "Dan"]})
LINES = pa.table({"id": [2, 2, 3, 9, None], "price": [10, 20, 30, 40, 50]})
JOINED = """
    select name, sum(price) as price from orders join lines using (id) group by name order by 1
"""
EXPECTED = {"name": ["Bob", "Cid"], "price": [30, 30]}


def reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=2)))


MAKERS = {
    "pyarrow": lambda table: table,
    "reader": reader,
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "joined": lambda table: wa.join(
        table, table, on="id", nulls_equal=True, select=table.column_names, how="left-semi"
    ),
}


@pytest.mark.parametrize("left", MAKERS)
@pytest.mark.parametrize("right", MAKERS)
def test_tables_of_every_library(left, right):
    rows = wa.sql(JOINED, orders=MAKERS[left](ORDERS), lines=MAKERS[right](LINES))
    assert rows.to_pyarrow().to_pydict() == EXPECTED
    assert (rows.facts["joins"], rows.facts["joins_left_to_datafusion"]) == (1, 0)
    assert rows.facts["rows"] == 2


def test_datafusions_own_joins_return_the_same_rows():
    rows = wa.sql(JOINED, orders=ORDERS, lines=LINES, stock=True)
    assert rows.to_pyarrow().to_pydict() == EXPECTED
    assert (rows.facts["joins"], rows.facts["joins_left_to_datafusion"]) == (0, 1)


def test_files_and_names_that_are_not_identifiers(tmp_path):
    pq.write_table(LINES, tmp_path / "lines.parquet")
    (tmp_path / "orders.csv").write_text("id,name\n2,Bob\n3,Cid\n")
    named = {"the lines": tmp_path / "lines.parquet", "threads": str(tmp_path / "orders.csv")}
    query = 'select name, price from threads o join "the lines" l on o.id = l.id order by 2'
    found = wa.sql(query, named, threads=2).to_pyarrow().to_pydict()
    assert found == {"name": ["Bob", "Bob", "Cid"], "price": [10, 20, 30]}


def test_a_table_is_read_repeatedly_and_a_reader_once():
    twice = "select count(*) as rows from lines a join lines b on a.id = b.id"
    assert wa.sql(twice, lines=LINES).to_pyarrow().to_pydict() == {"rows": [6]}
    with pytest.raises(wa.WorkaheadError, match="is a reader, which can be read only once"):
        wa.sql(twice, lines=reader(LINES)).to_pyarrow()


def test_several_statements_return_the_last_ones_rows():
    text = "create table bob as select * from orders where name = 'Bob'; select id from bob"
    assert wa.sql(text, orders=ORDERS).to_pyarrow().to_pydict() == {"id": [2]}
    text = "set workahead.layout = 'buckets'; " + JOINED
    assert wa.sql(text, orders=ORDERS, lines=LINES).to_pyarrow().to_pydict() == EXPECTED


def test_rows_go_to_every_library_without_a_table_between():
    query = "select * from lines where price > 10 order by price"
    frame = wa.sql(query, lines=LINES).to_polars()
    assert frame["price"].to_list() == [20, 30, 40, 50]
    assert duckdb.connect().from_arrow(wa.sql(query, lines=LINES)).aggregate(
        "sum(price)"
    ).fetchall() == [(140,)]
    again = wa.sql("select max(price) as most from some", some=wa.sql(query, lines=LINES))
    assert again.to_pandas()["most"].tolist() == [50]


def test_a_memory_limit_is_kept_and_changes_no_row(tmp_path):
    rows = 300_000
    keys = pa.array([i * 7919 % rows for i in range(rows)], pa.int64())
    table = pa.table(
        {"k": keys, "text": [f"a text of some length, number {i}" for i in range(rows)]}
    )
    query = (
        "select count(*) as rows, sum(length(a.text) + length(b.text)) as bytes "
        "from a join b using (k)"
    )
    expected = wa.sql(query, a=table, b=table, threads=2).to_pyarrow()
    limited = wa.sql(query, a=table, b=table, memory_limit="16MB", spill_dir=tmp_path, threads=2)
    assert limited.to_pyarrow().equals(expected)
    assert limited.facts["joins_spilled"] == 1
    assert limited.facts["spilled_bytes"] > 0
    with pytest.raises(wa.MemoryLimitError) as raised:
        wa.sql(query, a=table, b=table, memory_limit=10_000).to_pyarrow()
    assert isinstance(raised.value, MemoryError) and "\n" not in str(raised.value)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no directory in memory")
def test_spill_files_are_on_a_disk(monkeypatch):
    def folders() -> set[str]:
        return {name for name in os.listdir("/var/tmp") if name.startswith("workahead-sql-")}

    monkeypatch.setenv("TMPDIR", "/dev/shm")
    before = folders()
    rows = wa.sql("select value from generate_series(1, 10)", memory_limit="16MB")
    assert folders() - before
    rows.close()


WRONG = {
    "no SQL": ("selec 1", {}, wa.WrongUseError, "selec"),
    "no statement": ("  ", {}, wa.WrongUseError, "no statement to run"),
    "no table": ("select * from nowhere", {}, wa.WrongUseError, "nowhere"),
    "no column": ("select nothing from orders", {"orders": ORDERS}, wa.WrongUseError, "nothing"),
    "no Arrow": ("select 1", {"orders": 7}, wa.WrongUseError, 'table "orders" is a int'),
    "no file": ("select 1", {"orders": "/nowhere/at.all"}, wa.WorkaheadError, "/nowhere/at.all"),
    "no kind": ("select 1", {"orders": __file__}, wa.WorkaheadError, "unknown file type"),
    "no threads": ("select 1", {"threads": 0}, wa.WrongUseError, "threads"),
    "as many threads": ("select 1", {"threads": 2**64 - 1}, wa.WrongUseError, "from 1 to 4096"),
    "no size": ("select 1", {"memory_limit": "much"}, wa.WrongUseError, "memory_limit"),
    "no directory": ("select 1", {"spill_dir": "/nowhere"}, wa.WorkaheadError, "/nowhere"),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_one_line(what):
    query, options, kind, says = WRONG[what]
    with pytest.raises(kind) as raised:
        wa.sql(query, **options).to_pyarrow()
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_a_producer_that_fails_is_an_error_with_its_message():
    def failing():
        yield LINES.to_batches()[0]
        raise OSError("the disk is gone")

    lines = pa.RecordBatchReader.from_batches(LINES.schema, failing())
    with pytest.raises(wa.WorkaheadError, match="the disk is gone") as raised:
        wa.sql("select sum(price) from lines", lines=lines).to_pyarrow()
    assert "lines" in str(raised.value)


def endless() -> pa.RecordBatchReader:
    batch = pa.record_batch({"k": range(10_000)})
    return pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in itertools.count()))


def test_nothing_is_read_before_it_is_requested():
    read = []

    def counted():
        for i in range(1000):
            read.append(i)
            yield pa.record_batch({"k": range(1000)})

    schema = pa.schema({"k": pa.int64()})
    rows = wa.sql("select k from given", given=pa.RecordBatchReader.from_batches(schema, counted()))
    assert rows.column_names == ["k"] and read == []
    next(rows)
    time.sleep(0.3)
    assert 0 < len(read) < 1000
    rows.close()


def test_ctrl_c_ends_an_endless_query():
    rows = wa.sql("select count(*) from given", given=endless())
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        rows.to_pyarrow()
    timer.join()
    assert wa.sql("select 1 as one").to_pyarrow().to_pydict() == {"one": [1]}


def test_ctrl_c_ends_a_statement_before_the_last():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        wa.sql(
            "create table made as select count(*) as n from given; select n from made",
            given=endless(),
        )
    timer.join()


def test_an_exit_during_a_query_does_not_crash():
    script = textwrap.dedent("""
        import itertools, pyarrow as pa, workahead as wa
        one = pa.record_batch({"k": pa.array(range(1000))})
        endless = (one for _ in itertools.count())
        reader = pa.RecordBatchReader.from_batches(one.schema, endless)
        kept = wa.sql("select k from given", given=reader)
        next(kept)
    """)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_without_the_second_wheel_it_is_named():
    script = textwrap.dedent("""
        import sys, workahead as wa
        sys.modules["workahead_sql"] = None
        wa.sql("select 1")
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip().endswith(
        "ImportError: workahead.sql needs a second wheel: pip install workahead-sql"
    )


def test_both_wheels_have_the_same_version():
    assert workahead_sql.__version__ == wa.__version__
