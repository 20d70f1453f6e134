#!/usr/bin/env python3
"""Forward samples of a Bayesian network. usage: python3 samp.py FILE.bif SAMPLES RUNS THREADS     (pip install pyagrum pgmpy)

Prints one JSON document: the seconds that so many samples take, the median, reckoned from fewer where an engine is slow."""
import json
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
file, samples, runs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
found = {"engines": {}, "missing": []}


def seconds(draw, rows):
    times = []
    while len(times) < runs and sum(times) < 30:
        since = time.perf_counter()
        draw(rows)
        times.append(time.perf_counter() - since)
    return sorted(times)[len(times) // 2] * samples / rows


try:
    import pyagrum as gum

    gum.setNumberOfThreads(threads)
    # It refuses `/` in the names of states.
    with tempfile.NamedTemporaryFile("w", suffix=".bif") as copy:
        copy.write(open(file, errors="replace").read().replace("/", "_"))
        copy.flush()
        net = gum.loadBN(copy.name)
    found["engines"]["pyagrum"] = seconds(gum.BNDatabaseGenerator(net).drawSamples, min(samples, 200_000))
except ImportError:
    found["missing"].append("pyagrum")
try:
    from pgmpy.readwrite import BIFReader
    from pgmpy.sampling import BayesianModelSampling

    sampler = BayesianModelSampling(BIFReader(file).get_model())
    found["engines"]["pgmpy"] = seconds(lambda rows: sampler.forward_sample(size=rows, show_progress=False, seed=1), min(samples, 200_000))
except ImportError:
    found["missing"].append("pgmpy")
print(json.dumps(found))
