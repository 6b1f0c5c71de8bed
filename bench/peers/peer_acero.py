"""Acero, the engine of Arrow C++: a hash join whose right input is the build side."""

import pyarrow as pa
from pyarrow import acero
from pyarrow.acero import Declaration


class Engine:
    version = pa.__version__

    def __init__(self, threads):
        pa.set_cpu_count(threads)

    def load(self, build, probe, keys):
        self.build, self.probe, self.keys = build, probe, keys

    def paths(self, _form, threads):
        return ["threads"] if threads > 1 else ["serial", "threads"]

    def join(self, keys):
        sources = [Declaration("table_source", acero.TableSourceNodeOptions(side))
                   for side in (self.probe, self.build)]
        options = acero.HashJoinNodeOptions(
            "inner", self.keys, self.keys, left_output=keys + ["pv"], right_output=["bv"])
        return Declaration("hashjoin", options, inputs=sources)

    def sums(self, path):
        aggregates = [([], "count_all", None, "count"), ("bv", "sum", None, "bv"),
                      ("pv", "sum", None, "pv")]
        plan = Declaration("aggregate", acero.AggregateNodeOptions(aggregates),
                           inputs=[self.join([])])
        row = plan.to_table(use_threads=path == "threads").to_pylist()[0]
        return row["count"], row["bv"], row["pv"]

    def batches(self, path):
        return self.join(self.keys).to_reader(use_threads=path == "threads")
