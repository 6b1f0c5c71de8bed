//! How it is run: spec, plan, run, observations, statistics.
