#!/usr/bin/env python3
"""Relational networks by PyNeuraLogic, as `bench relational` asks for them. Usage: relational.py encoder FILE RUNS
RATE, relational.py molecules SIZE RUNS RATE     (pip install neuralogic==0.9.2, Java 17)

encoder: FILE is a JSON document of tokens `x`, `weights` and a `target`; prints medians of the seconds to evaluate an encoder block
and to take a step of SGD, the sum of its outputs before, and after one step. molecules: Mutagenesis, as the library ships it, in
batches of SIZE; prints the medians of the seconds of an epoch, the weights at the start, the loss of each of five epochs
as its steps meet it, and where the data are. Both in the library's exact mode, without compression and pruning: with them the answers are others."""
import json
import os
import random
import statistics
import sys
import time

# The Java side speaks on standard output while it works.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from neuralogic.core import R, V, Model, Settings  # noqa: E402
from neuralogic.core import Aggregation as A, Combination as C, Transformation as T  # noqa: E402
from neuralogic.dataset import Dataset, FileDataset, Sample  # noqa: E402
from neuralogic.nn.loss import MSE  # noqa: E402
from neuralogic.nn.optim import SGD  # noqa: E402
from neuralogic.utils import data  # noqa: E402

X, Y, B = V.X, V.Y, V.B
RATE = float(sys.argv[4])


def median(act, runs):
    """Seconds of an act, after it was done often enough for the compiler of Java."""
    times, begin = [], time.perf_counter()
    while len(times) < runs or time.perf_counter() - begin < 3:
        since = time.perf_counter()
        act()
        times.append(time.perf_counter() - since)
    return statistics.median(times[len(times) // 2 :])


def built(rules, dataset, size):
    model = Model()
    model += rules
    settings = Settings(
        iso_value_compression=False, chain_pruning=False, optimizer=SGD(lr=RATE), error_function=MSE("sum")
    )
    model.build(settings)
    return model, model.build_dataset(dataset, batch_size=size)


def encoder(given, runs):
    w = given["weights"]
    rules = [
        R.scale[0.25].fixed(),
        R.q(X)["Wq" : w["Wq"]] <= R.x(X),
        R.k(X)["Wk" : w["Wk"]] <= R.x(X),
        R.v(X)["Wv" : w["Wv"]] <= R.x(X),
        (R.weights(X, Y) <= (R.scale, R.k(Y).T, R.q(X))) | [C.PRODUCT, A.SOFTMAX(agg_terms=["Y"])],
        (R.attention(X) <= (R.weights(X, Y), R.v(Y))) | [C.PRODUCT, A.SUM],
        (R.norm(X) <= (R.attention(X)["Wo" : w["Wo"]], R.x(X))) | [T.NORM],
        (R.hidden_layer(X) <= R.norm(X)["W1" : w["W1"]]) | [T.RELU],
        (R.out(X) <= (R.norm(X), R.hidden_layer(X)["W2" : w["W2"]])) | [T.NORM],
        (R.total <= R.out(X)["P" : w["P"]]) | [A.SUM],
    ]
    example = [R.x(at)[token] for at, token in enumerate(given["x"])]
    model, dataset = built(rules, Dataset([Sample(R.total[given["target"]], example)]), 1)
    value = model.test(dataset)[0]
    model.train(dataset)
    after = model.test(dataset)[0]
    evaluate = median(lambda: model.test(dataset), runs)
    step = median(lambda: model.train(dataset), runs)
    return {"value": value, "after": after, "evaluate_s": evaluate, "step_s": step}


ATOMS = ["c", "o", "br", "i", "f", "h", "n", "cl"]
BONDS = ["b_1", "b_2", "b_3", "b_4", "b_5", "b_7"]


def molecules(size, runs):
    draw = random.Random(7)
    weights = {f"Atom_{name}": [draw.uniform(-1, 1) for _ in range(3)] for name in ATOMS}
    weights |= {f"Bond_{name}": [draw.uniform(-1, 1) for _ in range(3)] for name in BONDS}
    for layer in "123":
        for name in "AB":
            weights[name + layer] = [[draw.uniform(-1, 1) for _ in range(3)] for _ in range(3)]
    weights["P"] = [[draw.uniform(-1, 1) for _ in range(3)]]
    rules = [(R.l0(X) <= R.get(name)(X)[f"Atom_{name}" : weights[f"Atom_{name}"]]) | [T.TANH] for name in ATOMS]
    rules += [(R.kind(B) <= R.get(name)(B)[f"Bond_{name}" : weights[f"Bond_{name}"]]) | [T.TANH] for name in BONDS]
    for layer in (1, 2, 3):
        below, here = R.get(f"l{layer - 1}"), R.get(f"l{layer}")
        body = (
            below(X)[f"A{layer}" : weights[f"A{layer}"]],
            below(Y)[f"B{layer}" : weights[f"B{layer}"]],
            R.hidden.bond(X, Y, B),
            R.kind(B),
        )
        rules.append((here(X) <= body) | [T.TANH, A.AVG])
    rules.append((R.predict <= R.l3(X)["P" : weights["P"]]) | [T.SIGMOID, A.AVG])
    folder = os.path.join(data.base_path, "molecules", "mutagenesis")
    files = FileDataset(
        examples_file=os.path.join(folder, "examples.txt"), queries_file=os.path.join(folder, "queries.txt")
    )
    model, dataset = built(rules, files, size)
    losses = []
    for _ in range(5):
        losses.append(sum(error for _, _, error in model.train(dataset)))
    epoch = median(lambda: model.train(dataset), runs)
    return {"weights": weights, "losses": losses, "epoch_s": epoch, "folder": folder}


def main():
    kind, what, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = encoder(json.load(open(what)), runs) if kind == "encoder" else molecules(int(what), runs)
    json.dump(found, OUT)


main()
