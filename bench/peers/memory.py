"""Two Parquet files that do not fit into the memory they are to be joined in.

    memory.py generate --out DIR --rows N     left.parquet, right.parquet, answer.json
    memory.py check FILE ANSWER               count and sums of a result, row group by row group
    memory.py datafusion --data DIR --out FILE --limit BYTES --threads N --pool fair|greedy
    memory.py watched PROGRAM WORDS…          runs it; says its time and its peak of resident memory

Each key is on both sides once, in no order, scattered over 64 bits; payloads are random, so that
nothing is compressed that would not be in life.
"""

import argparse
import json
import os
import sys
import tempfile
import time

ROW_GROUP_ROWS = 1 << 20
SUMS = ("k", "lv", "k_right", "rv")


def generate(out, rows):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from generate import column_sum, scattered, wrapped

    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(20260601)
    answer = {"count": rows}
    for side, value in (("left", "lv"), ("right", "rv")):
        entries = rng.permutation(np.arange(rows, dtype=np.uint64))
        schema = pa.schema([("k", pa.int64()), (value, pa.int64())])
        path = os.path.join(out, side + ".parquet")
        # Numbers that differ are not worth a dictionary.
        with pq.ParquetWriter(path + ".tmp", schema, use_dictionary=False) as writer:
            for start in range(0, rows, ROW_GROUP_ROWS):
                keys = scattered(entries[start:start + ROW_GROUP_ROWS]).astype(np.int64)
                values = rng.integers(0, 1 << 40, len(keys), np.int64)
                batch = pa.record_batch([pa.array(keys), pa.array(values)], schema=schema)
                writer.write_batch(batch, ROW_GROUP_ROWS)
                for name, column in (("k" if side == "left" else "k_right", 0), (value, 1)):
                    answer[name] = wrapped(answer.get(name, 0) + column_sum(batch[column]))
        os.rename(path + ".tmp", path)
    with open(os.path.join(out, "answer.json.tmp"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.rename(os.path.join(out, "answer.json.tmp"), os.path.join(out, "answer.json"))


def check(path, answer):
    import pyarrow.parquet as pq
    from generate import column_sum, wrapped

    file = pq.ParquetFile(path)
    found = {"count": 0}
    for batch in file.iter_batches(1 << 16):
        found["count"] += batch.num_rows
        for name, column in zip(SUMS, batch.columns):
            found[name] = wrapped(found.get(name, 0) + column_sum(column))
    with open(answer, encoding="utf-8") as file:
        wanted = json.load(file)
    if found != wanted:
        sys.exit(f"{path} is wrong: {found}, not {wanted}")


def datafusion(arguments):
    import datafusion as df

    runtime = df.RuntimeEnvBuilder()
    runtime = (runtime.with_fair_spill_pool if arguments.pool == "fair"
               else runtime.with_greedy_memory_pool)(arguments.limit)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(arguments.out)) as spill:
        runtime = runtime.with_disk_manager_specified(spill)
        config = (df.SessionConfig()
                  .with_target_partitions(arguments.threads)
                  .set("datafusion.optimizer.prefer_hash_join", "false"))
        context = df.SessionContext(config, runtime)
        for side in ("left", "right"):
            path = os.path.join(arguments.data, side + ".parquet")
            context.register_parquet(side + "_side", path)
        joined = context.sql(
            "SELECT l.k, l.lv, r.k AS k_right, r.rv"
            " FROM left_side l JOIN right_side r ON l.k = r.k")
        if "SortMergeJoin" not in str(joined.execution_plan()):
            sys.exit("DataFusion does not plan a sort-merge join")
        # One file, as ours; Snappy, as ours.
        context.register_view("joined", joined)
        context.sql(f"COPY joined TO '{arguments.out}' STORED AS PARQUET"
                    " OPTIONS ('format.compression' 'snappy')").collect()
    json.dump({"version": df.__version__}, sys.stdout)


def watched(words):
    start = time.perf_counter()
    read, write = os.pipe()
    child = os.posix_spawn(words[0], words, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)])
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(os.waitstatus_to_exitcode(status) or 1)
    json.dump({
        "wall_s": wall,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss << 10,
        "said": json.loads(said),
    }, sys.stdout)


def main():
    if sys.argv[1:2] == ["watched"]:
        return watched(sys.argv[2:])
    parser = argparse.ArgumentParser()
    tasks = parser.add_subparsers(dest="task", required=True)
    task = tasks.add_parser("generate")
    task.add_argument("--out", required=True)
    task.add_argument("--rows", type=int, required=True)
    task = tasks.add_parser("check")
    task.add_argument("file")
    task.add_argument("answer")
    task = tasks.add_parser("datafusion")
    task.add_argument("--data", required=True)
    task.add_argument("--out", required=True)
    task.add_argument("--limit", type=int, required=True)
    task.add_argument("--threads", type=int, required=True)
    task.add_argument("--pool", choices=("fair", "greedy"), required=True)
    arguments = parser.parse_args()
    if arguments.task == "generate":
        generate(arguments.out, arguments.rows)
    elif arguments.task == "check":
        check(arguments.file, arguments.answer)
    else:
        datafusion(arguments)


if __name__ == "__main__":
    main()
