"""Our join from Python: its own batches, read one by one."""

import pyarrow as pa
import pyarrow.compute as pc
import workahead as wa


class Engine:
    version = wa.__version__

    def __init__(self, threads):
        self.threads = threads

    def load(self, build, probe, keys):
        self.build, self.probe, self.keys = build, probe, keys

    def paths(self, _form, _threads):
        return ["batches"]

    def join(self, select):
        return wa.join(self.build, self.probe, on=self.keys, select=select, threads=self.threads)

    def sums(self, _path):
        count = bv = pv = 0
        for batch in pa.RecordBatchReader.from_stream(self.join(["bv", "pv"])):
            count += batch.num_rows
            bv += pc.sum(batch["bv"]).as_py() or 0
            pv += pc.sum(batch["pv"]).as_py() or 0
        return count, bv, pv

    def batches(self, _path):
        return self.join([*self.keys, "bv", "pv"])
