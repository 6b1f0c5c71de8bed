"""One peer engine, driven over a pipe: a JSON request a line, a JSON reply a line.

    {"do": "load", "data": "/…"}                   both sides, mapped
    {"do": "load", "data": "/…", "own": true}      both sides, read into this process's memory
    {"do": "run", "form": "sums"}                  count(*), sum(bv), sum(pv)
    {"do": "run", "form": "columns"}               keys, bv, pv as Arrow batches, counted and dropped
    {"do": "run", "form": …, "check": true}        before the rounds: says the columns' sums

A reply has `wall_s` and `cpu_s` (all threads of this process) of the join alone, `count`, `sums`.
An engine may offer several documented paths to the same rows: they are tried when the answer is
checked, and the one with the least CPU time is taken from then on.
"""

import argparse
import importlib
import json
import os
import sys
import time


def summed(batches):
    """Count and the columns' sums of Arrow batches."""
    from generate import column_sum, wrapped
    import pyarrow as pa

    count, sums = 0, {}
    for batch in map(pa.record_batch, batches):
        count += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns):
            if pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
                column = column.cast(pa.string())
            sums[name] = wrapped(sums.get(name, 0) + column_sum(column))
    return count, sums


def run(engine, form, path, check):
    wall, cpu = time.perf_counter(), time.process_time()
    if form == "sums":
        count, bv, pv = engine.sums(path)
        sums = {"bv": int(bv), "pv": int(pv)}
    elif check:
        count, sums = summed(engine.batches(path))
    else:
        count, sums = sum(batch.num_rows for batch in engine.batches(path)), {}
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall_s": wall, "cpu_s": cpu, "count": int(count), "sums": sums, "path": path}


def fastest(engine, form, threads):
    """Checks every documented path of an engine, all must agree; a reply of the fastest."""
    replies = []
    paths = engine.paths(form, threads)
    for path in paths:
        checked = run(engine, form, path, True)
        if replies and (checked["count"], checked["sums"]) != replies[0][1]:
            raise ValueError(f"{path} and {replies[0][2]['path']} disagree")
        cpu_s = run(engine, form, path, False)["cpu_s"] if len(paths) > 1 else 0
        replies.append((cpu_s, (checked["count"], checked["sums"]), checked))
    return min(replies, key=lambda reply: reply[0])[2]


def load(engine, data, own):
    """Maps the files, which are read before the time starts, when answers are checked.

    Engines over Arrow's arrays share those pages (six copies of the largest inputs would not fit);
    an engine with a store of its own copies from there. Read instead, they are on pages like those
    of a program that made them.
    """
    import pyarrow as pa

    sides = []
    for side in ("build", "probe"):
        file = (pa.OSFile if own else pa.memory_map)(os.path.join(data, side + ".arrow"))
        sides.append(pa.ipc.open_file(file).read_all())
    keys = [name for name in sides[0].column_names if name != "bv"]
    engine.load(sides[0], sides[1], keys)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine")
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    # The output of a library must not get between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Before the engine is loaded: thread pools are sized then. The CPUs are pinned.py's part.
    for variable in ("POLARS_MAX_THREADS", "TOKIO_WORKER_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    engine = importlib.import_module("peer_" + arguments.engine).Engine(arguments.threads)
    paths = {}
    for line in sys.stdin:
        request = json.loads(line)
        form = request.get("form")
        if request["do"] == "load":
            load(engine, request["data"], request.get("own", False))
            reply = {"version": engine.version}
        elif request.get("check", False):
            reply = fastest(engine, form, arguments.threads)
            paths[form] = reply["path"]
        else:
            reply = run(engine, form, paths[form], False)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
