#!/usr/bin/env python3
"""The join task: five questions, twice each, answered as whole tables in memory."""

print("# join-workahead.py", flush=True)

import gc
import os
import timeit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import workahead as wa

exec(open("./_helpers/helpers.py").read())

TYPES = {f"id{at}": pa.int32() for at in (1, 2, 3)}
TYPES |= {f"id{at}": pa.dictionary(pa.int32(), pa.string()) for at in (4, 5, 6)}
TYPES |= {"v1": pa.float64(), "v2": pa.float64()}


def read(name):
    options = pyarrow.csv.ConvertOptions(column_types=TYPES)
    table = pyarrow.csv.read_csv(os.path.join("data", name + ".csv"), convert_options=options)
    # One dictionary for each column, as a factor has it; one piece of memory for each column.
    table = table.unify_dictionaries().combine_chunks()
    print(table.num_rows, flush=True)
    return table


data_name = os.environ["SRC_DATANAME"]
names = [data_name, *join_to_tbls(data_name)]
print("loading datasets " + ", ".join(names), flush=True)
x, small, medium, big = map(read, names)

QUESTIONS = [
    ("small inner on int", small, "id1", "inner"),
    ("medium inner on int", medium, "id2", "inner"),
    ("medium outer on int", medium, "id2", "left"),
    ("medium inner on factor", medium, "id5", "inner"),
    ("big inner on int", big, "id3", "inner"),
]

task_init = timeit.default_timer()
print("joining...", flush=True)
for question, y, key, how in QUESTIONS:
    for run in (1, 2):
        gc.collect()
        t_start = timeit.default_timer()
        ans = wa.join(x, y, on=key, how=how).to_pyarrow()
        print(ans.shape, flush=True)
        t = timeit.default_timer() - t_start
        m = memory_usage()
        t_start = timeit.default_timer()
        chk = [pc.sum(ans["v1"]).as_py(), pc.sum(ans["v2"]).as_py()]
        chkt = timeit.default_timer() - t_start
        write_log(task="join", data=data_name, in_rows=x.num_rows, question=question,
                  out_rows=ans.num_rows, out_cols=ans.num_columns, solution="workahead",
                  version=wa.__version__, git="", fun="join", run=run, time_sec=t, mem_gb=m,
                  cache="TRUE", chk=make_chk(chk), chk_time_sec=chkt, on_disk="FALSE")
        if run == 2:
            print(ans.slice(0, 3), flush=True)
        del ans
print(f"joining finished, took {timeit.default_timer() - task_init:.0f}s", flush=True)
