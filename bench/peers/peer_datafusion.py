"""DataFusion: tables in memory as batches of its own batch size, whose row counts it knows."""

import datafusion

BATCH_ROWS = 8192
HUGE = str(1 << 40)


class Engine:
    version = datafusion.__version__

    def __init__(self, threads):
        self.threads = threads
        self.contexts = {}
        for path in self.paths(None, threads):
            config = (datafusion.SessionConfig()
                      .with_target_partitions(threads)
                      .with_batch_size(BATCH_ROWS)
                      .set("datafusion.execution.collect_statistics", "true"))
            if path == "collect-left":
                single = "datafusion.optimizer.hash_join_single_partition_threshold"
                config = config.set(single, HUGE).set(single + "_rows", HUGE)
            self.contexts[path] = datafusion.SessionContext(config)

    def load(self, build, probe, keys):
        for name, side in (("build", build), ("probe", probe)):
            batches = side.to_batches(max_chunksize=BATCH_ROWS)
            parts = [batches[part::self.threads] for part in range(self.threads)]
            for context in self.contexts.values():
                context.deregister_table(name)
                context.register_record_batches(name, parts)
        self.keys = ", ".join(keys)

    def paths(self, _form, threads):
        return ["partitioned", "collect-left"] if threads > 1 else ["partitioned"]

    def sql(self, path, columns):
        return self.contexts[path].sql(
            f"SELECT {columns} FROM build JOIN probe USING ({self.keys})")

    def sums(self, path):
        rows = self.sql(path, "count(*), sum(bv), sum(pv)").collect()
        return [column[0].as_py() for column in rows[0].columns]

    def batches(self, path):
        for batch in self.sql(path, f"{self.keys}, bv, pv").execute_stream():
            yield batch.to_pyarrow()
