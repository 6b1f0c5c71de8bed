"""DuckDB: over tables of its own in memory or over Arrow's, results as a stream of batches."""

import duckdb

BATCH_ROWS = 1 << 20


class Engine:
    version = duckdb.__version__

    def __init__(self, threads):
        self.connection = duckdb.connect(":memory:")
        self.connection.execute(f"SET threads = {threads}")
        self.connection.execute("SET preserve_insertion_order = false")
        self.connection.execute("SET enable_progress_bar = false")

    def load(self, build, probe, keys):
        for name, side in (("build", build), ("probe", probe)):
            self.connection.register("arrow_" + name, side)
            self.connection.execute(
                f"CREATE OR REPLACE TABLE own_{name} AS SELECT * FROM arrow_{name}")
        self.keys = ", ".join(keys)

    def paths(self, _form, _threads):
        return ["own", "arrow"]

    def join(self, path):
        return f"FROM {path}_probe JOIN {path}_build USING ({self.keys})"

    def sums(self, path):
        query = f"SELECT count(*), sum(bv), sum(pv) {self.join(path)}"
        return self.connection.sql(query).fetchall()[0]

    def batches(self, path):
        query = f"SELECT {self.keys}, bv, pv {self.join(path)}"
        return self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
