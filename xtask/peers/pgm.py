#!/usr/bin/env python3
"""All single marginals of a Bayesian network, one thread. usage: python3 pgm.py FILE.bif EVIDENCE RUNS     (pip install pyagrum bayesian-cpp)

EVIDENCE: `name=state` for each observed variable, by numbers of states, separated by commas; or `-`. Prints one JSON document."""
import json
import math
import sys
import tempfile
import time

file, observed, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
evidence = {} if observed == "-" else {n: int(s) for n, s in (pair.split("=") for pair in observed.split(","))}
found = {"engines": {}, "log": None, "missing": []}
try:
    import pyagrum as gum
except ImportError:
    found["missing"].append("pyagrum")
    print(json.dumps(found))
    sys.exit()
gum.setNumberOfThreads(1)
# It refuses `/` in the names of states.
with tempfile.NamedTemporaryFile("w", suffix=".bif") as copy:
    copy.write(open(file, errors="replace").read().replace("/", "_"))
    copy.flush()
    net = gum.loadBN(copy.name)


def spread(act):
    times = []
    while len(times) < runs and sum(times) < 10:
        since = time.perf_counter()
        act()
        times.append(time.perf_counter() - since)
    return sorted(times)[len(times) // 2]


def engine(kind):
    def act():
        inference = kind(net)
        inference.setEvidence(evidence)
        inference.makeInference()
        for name in net.names():
            inference.posterior(name)
        if evidence:
            found["log"] = math.log(inference.evidenceProbability())
    return spread(act)


for kind in (gum.LazyPropagation, gum.ShaferShenoyInference):
    try:
        found["engines"]["pyagrum " + kind.__name__] = engine(kind)
    except Exception as failure:  # memory, mostly
        found["missing"].append(f"{kind.__name__}: {failure}")
if not evidence:
    try:
        from bayesian import JunctionTree, Potential, Variable

        variables = {v: Variable(v, str(v), net.variable(v).domainSize()) for v in net.nodes()}
        potentials = []
        for v in net.nodes():
            table = net.cpt(v)
            ids = [net.idFromName(t) for t in table.names][::-1]  # the last one moves fastest
            at, cells = gum.Instantiation(table), []
            at.setFirst()
            while not at.end():
                cells.append(max(table.get(at), 1e-300))
                at.inc()
            potentials.append(Potential([variables[w] for w in ids], cells))

        def junction():
            tree = JunctionTree(potentials)
            for variable in variables.values():
                tree.marginal([variable])

        found["engines"]["bayesian-cpp"] = spread(junction)
    except ImportError:
        found["missing"].append("bayesian-cpp")
print(json.dumps(found))
