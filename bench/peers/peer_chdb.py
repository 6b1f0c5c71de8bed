"""chDB, ClickHouse in the process: tables of its Memory engine, results as Arrow batches."""

import atexit
import json

import chdb
from chdb import session


class Engine:
    version = chdb.__version__

    def __init__(self, threads):
        self.session = session.Session()
        # Else its folder of temporary files stays.
        atexit.register(self.session.cleanup)
        self.session.query(f"SET max_threads = {threads}")

    def load(self, build, probe, keys):
        for name, side in (("build", build), ("probe", probe)):
            # Where Python(side) looks the name up.
            globals()["side"] = side
            self.session.query(f"DROP TABLE IF EXISTS {name}")
            self.session.query(
                f"CREATE TABLE {name} ENGINE = Memory AS SELECT * FROM Python(side)")
            del globals()["side"]
        self.keys = ", ".join(keys)

    def paths(self, _form, _threads):
        return ["hash", "parallel_hash"]

    def sql(self, path, columns):
        return (f"SELECT {columns} FROM probe JOIN build USING ({self.keys}) "
                f"SETTINGS join_algorithm = '{path}'")

    def sums(self, path):
        row = self.session.query(self.sql(path, "count(), sum(bv), sum(pv)"), "JSONCompactEachRow")
        return (int(value) for value in json.loads(str(row)))

    def batches(self, path):
        return self.session.send_query(
            self.sql(path, f"{self.keys}, bv, pv"), "Arrow").record_batch()
