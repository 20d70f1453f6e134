#!/usr/bin/env python3
"""Loopy belief propagation on a grid of 100 x 100 variables of two states, all messages at once, no damping. usage: python3 bp.py SIDE ROUNDS RUNS
(pip install jax scipy numba tqdm; pip install --no-deps pgmax: it asks for a module that newer JAX has moved, see the shim)

Prints one JSON document: the median time of a run after compilation, and the mean probability of the first state."""
import json
import sys
import time
import types

side, rounds, runs = (int(argument) for argument in sys.argv[1:4])
found = {"engines": {}, "mean": None, "missing": []}
try:
    import jax
    import jax.extend.backend
    import jax.lib
    import numpy as np

    jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup
except ImportError as failure:
    found["missing"].append(str(failure))
    print(json.dumps(found))
    sys.exit()

WORD = (1 << 64) - 1
state = 5


def signed():
    global state
    state = (state + 0x9E3779B97F4A7C15) & WORD
    z = state
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
    return 2 * (((z ^ z >> 31) >> 11) / 2**53) - 1


h = np.array([[signed() for _ in range(side)] for _ in range(side)])
edges, weights = [], []
for i in range(side):
    for j in range(side):
        for a, b in ((i, j + 1), (i + 1, j)):
            if a < side and b < side:
                edges.append(((i, j), (a, b)))
                weights.append(signed())
spins = vgroup.NDVarArray(num_states=2, shape=(side, side))
graph = fgraph.FactorGraph(spins)
graph.add_factors(fgroup.PairwiseFactorGroup(
    variables_for_factors=[[spins[a], spins[b]] for a, b in edges],
    log_potential_matrix=np.array([[[w, -w], [-w, w]] for w in weights])))
bp = infer.build_inferer(graph.bp_state, backend="bp")
start = bp.init(evidence_updates={spins: np.stack([h, -h], -1)})
times = []
for turn in range(runs + 1):
    since = time.perf_counter()
    out = bp.run(start, num_iters=rounds, damping=0.0, temperature=1.0)
    jax.block_until_ready(out)
    if turn > 0:  # the first one compiles
        times.append(time.perf_counter() - since)
found["engines"]["pgmax"] = sorted(times)[len(times) // 2]
found["mean"] = float(infer.get_marginals(bp.get_beliefs(out))[spins][:, :, 0].mean())
print(json.dumps(found))
