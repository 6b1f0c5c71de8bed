"""Runs a program on a number of the allowed CPUs: `pinned.py CPUS PROGRAM WORDS…`."""

import os
import sys

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-int(sys.argv[1]):])
os.execv(sys.argv[2], sys.argv[2:])
