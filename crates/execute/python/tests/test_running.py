"""While a join runs: the interpreter is free, Ctrl-C ends it, and nothing is read ahead."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import polars as pl
import pyarrow as pa
import pytest
import workahead as wa

SCHEMA = pa.schema({"k": pa.int64()})


def batch(start: int = 0, rows: int = 10_000) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(range(start, start + rows), pa.int64())})


def reader(batches) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def endless():
    return reader(batch() for _ in itertools.count())


def small() -> pa.Table:
    return pa.table(batch(0, 100))


# With one thread the reader's thread does the work; with several they use a channel.
THREADS = pytest.mark.parametrize("threads", [1, 2])


@THREADS
def test_nothing_is_read_before_it_is_requested(threads):
    read = []

    def counted():
        for i in range(1000):
            read.append(i)
            yield batch()

    joined = wa.join(pa.table(batch()), reader(counted()), on="k", threads=threads)
    assert read == []
    next(joined)
    time.sleep(0.3)
    # The queue is bounded: the probe side is not read to its end.
    assert 0 < len(read) < 1000


@THREADS
def test_the_probe_side_may_have_no_end(threads):
    joined = wa.join(small(), endless(), on="k", threads=threads, batch_rows=500)
    rows = sum(len(some) for some in itertools.islice(joined, 20))
    assert rows > 0
    joined.close()
    assert list(joined) == []


@THREADS
def test_the_interpreter_is_free_while_threads_join(threads):
    """A join of 20 batches waits for a Python thread, which needs the interpreter."""
    gate = threading.Event()

    def waiting():
        yield batch()
        # Set by the main thread's helper below, while the main thread waits for the join.
        assert gate.wait(30)
        yield batch()

    threading.Timer(0.2, gate.set).start()
    joined = wa.join(small(), reader(waiting()), on="k", threads=threads)
    assert joined.to_pyarrow().num_rows == 200


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("consume", [pa.table, pl.DataFrame, wa.Reader.to_polars, list])
def test_producers_in_python_never_wait_for_their_consumer(consume, threads):
    """Consumers differ in whether they hold the interpreter while they request a batch."""
    for _ in range(5):
        sides = (reader(batch(i * 100) for i in range(20)) for _ in range(2))
        result = consume(wa.join(*sides, on="k", threads=threads))
        assert sum(len(some) for some in result) > 0 if consume is list else len(result) > 0


def test_joins_run_beside_each_other():
    results = [None] * 4

    def one(i):
        results[i] = wa.join(reader([batch()]), reader([batch()]), on="k").to_pyarrow().num_rows

    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [10_000] * 4


def interrupted_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


CONSUMERS = {
    "iteration": lambda joined: sum(len(some) for some in joined),
    "to_pyarrow": wa.Reader.to_pyarrow,
    "pyarrow": pa.table,
    "polars": pl.DataFrame,
    "to_polars": wa.Reader.to_polars,
    "to_pandas": wa.Reader.to_pandas,
}


@THREADS
@pytest.mark.parametrize("how", CONSUMERS)
def test_ctrl_c_ends_an_endless_probe(how, threads):
    # Nothing matches: there is no output.
    joined = wa.join(pa.table(batch(-200, 100)), endless(), on="k", threads=threads)
    timer = interrupted_after(0.3)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        try:
            CONSUMERS[how](joined)
        except Exception:
            # The consumer's own error comes first, and Ctrl-C when Python continues.
            for _ in range(50):
                time.sleep(0.1)
    assert time.monotonic() - begun < 4
    timer.join()
    assert list(joined) == [] if how in ("iteration", "to_pyarrow") else True


def test_ctrl_c_ends_an_endless_build():
    joined = wa.join(endless(), small(), on="k", build_side="left", memory_limit="64MB")
    timer = interrupted_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        joined.to_pyarrow()
    timer.join()


def test_after_ctrl_c_everything_works():
    test_ctrl_c_ends_an_endless_build()
    assert wa.join(small(), small(), on="k").to_pyarrow().num_rows == 100


def test_a_join_that_is_dropped_ends_its_threads():
    def is_own(task):
        try:
            return "workahead" in open(f"/proc/self/task/{task}/comm").read()
        except FileNotFoundError:  # It has ended since it was listed.
            return False

    def own_threads():
        return sum(is_own(task) for task in os.listdir("/proc/self/task"))

    joined = wa.join(small(), endless(), on="k", threads=2)
    next(joined)
    assert own_threads() > 0
    del joined
    # The threads have released everything; the last one may still be exiting.
    for _ in range(100):
        if own_threads() == 0:
            break
        time.sleep(0.01)
    assert own_threads() == 0


def test_an_exit_during_a_join_does_not_crash():
    script = textwrap.dedent("""
        import itertools, pyarrow as pa, workahead as wa
        one = pa.record_batch({"k": pa.array(range(1000))})
        def endless():
            for _ in itertools.count():
                yield one
        joined = wa.join(one, pa.RecordBatchReader.from_batches(one.schema, endless()), on="k")
        kept = [next(joined)]
    """)
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def addresses(array: pa.Array) -> list[int]:
    return [buffer.address for buffer in array.buffers() if buffer is not None]


def test_results_are_passed_without_a_copy():
    left = pa.table({"k": range(1000), "text": [f"row {i}" for i in range(1000)]})
    some = next(wa.join(left, left, on="k", threads=1))
    first, second = pa.record_batch(some), pa.record_batch(some)
    for one, other in zip(first.columns, second.columns, strict=True):
        assert addresses(one) == addresses(other) != []
    # Polars keeps numbers where they are.
    taken = pl.from_arrow(first)["k"].to_arrow()
    assert addresses(taken)[-1] == addresses(first["k"])[-1]


STREAMED = textwrap.dedent("""
    import resource, pyarrow as pa, workahead as wa
    big = pa.table({name: pa.array(range(8_000_000), pa.int64()) for name in "kabcd"})
    small = big.slice(0, 4_000_000).select(["k"]).rename_columns(["k"])
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    list(wa.join(small.slice(0, 10), small.slice(0, 10), on="k"))
    before = peak()
    rows = sum(len(batch) for batch in wa.join(small, big, on="k", threads=2))
    print(rows, (peak() - before) * 1024, big.nbytes)
""")


def test_inputs_are_taken_without_a_copy():
    """A table of 320 MB is joined, and the process grows by the table of the small side's keys."""
    done = subprocess.run([sys.executable, "-c", STREAMED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, grown, held = map(int, done.stdout.split())
    assert rows == 4_000_000
    assert grown < held / 2
