"""Polars: its streaming engine over frames in memory, contiguous columns."""

import polars as pl

NEWEST = pl.CompatLevel.newest()


class Engine:
    version = pl.__version__

    def __init__(self, threads):
        assert pl.thread_pool_size() == threads

    def load(self, build, probe, keys):
        self.keys = keys
        self.build, self.probe = (pl.from_arrow(side).rechunk() for side in (build, probe))

    def paths(self, form, _threads):
        return ["collect"] if form == "sums" else ["collect_batches", "collect"]

    def join(self):
        return self.probe.lazy().join(
            self.build.lazy(), on=self.keys, how="inner", maintain_order="none")

    def sums(self, _path):
        query = self.join().select(pl.len(), pl.col("bv").sum(), pl.col("pv").sum())
        return query.collect(engine="streaming").row(0)

    def batches(self, path):
        query = self.join().select(*self.keys, "bv", "pv")
        if path == "collect":
            frames = [query.collect(engine="streaming")]
        else:
            frames = query.collect_batches(engine="streaming", maintain_order=False)
        for frame in frames:
            yield from frame.to_arrow(compat_level=NEWEST).to_batches()
