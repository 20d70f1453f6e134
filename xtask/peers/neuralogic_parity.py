#!/usr/bin/env python3
"""What PyNeuraLogic 0.9.2 says of each of its constructs, on inputs of a few numbers, as `tests/it/parity.rs` reads it.

    pip install neuralogic==0.9.2        (Java 17)
    python3 xtask/peers/neuralogic_parity.py > crates/tensor-logic/tests/parity/pyneuralogic-0.9.2.json

A row has the library's own text of the model, and values: of ground queries (`h(a)`), of weights after one step of an optimiser
(`w'`), of losses (`loss`); null where the library fails. Weights start where the text says. Rows run in the library's exact mode,
without compression and pruning, unless they say "defaults"; the loss is the sum of squares over all queries that have a target,
and the step is SGD at rate 1, unless they say otherwise."""
import json
import os
import sys

# The Java side speaks on standard output while it works.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import neuralogic  # noqa: E402
from neuralogic.core import R, V, Settings, Model, Metadata  # noqa: E402
from neuralogic.core import Aggregation as A, Combination as C, Transformation as T  # noqa: E402
from neuralogic.dataset import Dataset, Sample  # noqa: E402
from neuralogic.nn.init import Constant  # noqa: E402
from neuralogic.nn.loss import MSE, CrossEntropy  # noqa: E402
from neuralogic.nn.optim import SGD, Adam  # noqa: E402

COMMAND = "python3 xtask/peers/neuralogic_parity.py > crates/tensor-logic/tests/parity/pyneuralogic-0.9.2.json"
ROWS = {}


def text(relation):
    """A ground query without its target: `h(a)`."""
    return f"{relation.predicate.name}({', '.join(map(str, relation.terms))})"


def built(rules, samples, *, exact=True, optimizer=None, loss=None, learnable_facts=False, initializer=None, batch=None):
    """The model and its samples: (query, example)."""
    model = Model()
    for rule in rules:
        model += rule
    more = {} if initializer is None else {"initializer": initializer}
    settings = Settings(
        iso_value_compression=not exact,
        chain_pruning=not exact,
        optimizer=optimizer or SGD(lr=1.0),
        error_function=loss or MSE("sum"),
        **more,
    )
    said = str(model).splitlines()
    model.build(settings)
    dataset = Dataset([Sample(query, example) for query, example in samples])
    return model, model.build_dataset(dataset, batch_size=batch or len(samples), learnable_facts=learnable_facts), said


def weights(model):
    found = model.state_dict()
    return {found["weight_names"].get(at, str(at)): value for at, value in found["weights"].items()}


def alone(rules, example, query, **how):
    """The value of one query, or None where the library fails."""
    try:
        model, dataset, _ = built(rules, [(query, example)], **how)
        return model.test(dataset)[0]
    except Exception as why:  # Errors of Java are no one class.
        print(why, file=sys.stderr)
        return None


def step_or_none(rules, example, queries):
    """The first weight after a step, or None where the library fails to take it."""
    try:
        model, dataset, _ = built(rules, [(query, example) for query in queries])
        model.train(dataset)
        return next(iter(weights(model).values()))
    except Exception as why:
        print(why, file=sys.stderr)
        return None


def row(name, rules, example, queries, *, extra=(), note=None, **how):
    """Values of queries that share one example; those with targets make a loss, and one step is taken."""
    trained = any(hasattr(query, "weight") for query in queries)
    rows(name, rules, [(query, example) for query in queries], trained=trained, note=note, **how)
    ROWS[name]["values"] |= {text(query): alone(rules, example, query, **how) for query in extra}


def rows(name, rules, samples, *, trained=True, note=None, steps=1, keys=None, again=False, **how):
    """The same for samples with examples of their own."""
    model, dataset, said = built(rules, samples, **how)
    keys = keys or [text(query) for query, _ in samples]
    values = dict(zip(keys, model.test(dataset), strict=True))
    if trained:
        values["loss"] = model.loss(dataset)
        for _ in range(steps):
            model.train(dataset)
        values |= {f"{weight}'": value for weight, value in weights(model).items()}
        if again:
            values |= {f"{key}'": value for key, value in zip(keys, model.test(dataset), strict=True)}
    record(name, said, values, note)


def record(name, said, values, note=None):
    assert name not in ROWS, name
    ROWS[name] = {"model": said, **({"note": note} if note else {}), "values": values}


X, Y, Z, I, J, L = V.X, V.Y, V.Z, V.I, V.J, V.L
H = R.hidden
S = R.special
HS = R.hidden.special
EDGES = [H.edge(1, 2), H.edge(2, 1), H.edge(2, 3)]
FEATURES = [R.f(1)[2], R.f(2)[-1], R.f(3)[-5]]


def sum_of(rule, function=T.IDENTITY, aggregation=A.SUM):
    """A rule whose groundings are summed, and nothing else."""
    return rule | [function, aggregation]


def facts():
    row("fact-value", [R.y(X) <= (R.f(X), R.g(X))], [R.f("a")[0.5], R.g("a")], [R.y("a")])
    row(
        "vector-value",
        [R.y(X) <= C.SUM(R.f(X), R.g(X))],
        [R.f("a")[[1, 0.5]], R.g("a")[[0.25, -2]]],
        [R.y("a")],
    )
    row("matrix-value", [R.y(X) <= C.PRODUCT(R.m(X), R.f(X))], [R.m("a")[[[1, 2], [3, 4]]], R.f("a")[[1, 0.5]]], [R.y("a")])
    row(
        "learnable-value",
        [R.w()["w":0.5], R.c()["c":2.0].fixed(), R.y(X) <= C.ELPRODUCT(R.w(), R.c(), R.f(X))],
        [R.f("a")[3]],
        [R.y("a")[1]],
    )
    row(
        "learnable-facts",
        [sum_of(R.y(X) <= (H.edge(Y, X), R.f(Y)), T.TANH)],
        EDGES + [R.f(1)[0.5], R.f(2)[-0.25]],
        [R.y(1)[0.5], R.y(2)[0.25], R.y(3)[1]],
        learnable_facts=True,
        again=True,
    )


def weights_of():
    targets = [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]]
    row("weight-body", [sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":3.0]))], EDGES + FEATURES, targets)
    row(
        "weight-head",
        [(R.h(X)["u":2.0] <= (H.edge(Y, X), R.f(Y)["w":0.25])) | [T.TANH, A.SUM], R.h / 1 | [T.SIGMOID]],
        EDGES + FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )
    row(
        "weight-shared",
        [
            (R.a(X) <= (H.edge(Y, X), R.f(Y)["w":0.25])) | [T.TANH, A.SUM],
            sum_of(R.h(X) <= (H.edge(Y, X), R.a(Y)["w":0.25])),
        ],
        EDGES + FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )
    row(
        "weight-matrix",
        [(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":[[0.5, -1], [0.25, 2]]])) | [T.TANH, A.SUM]],
        EDGES + [R.f(1)[[1, 2]], R.f(2)[[0.5, -1]], R.f(3)[[3, 1]]],
        [R.h(1)[[0.5, 1]], R.h(2)[[0.25, 0]], R.h(3)[[1, -1]]],
    )
    rule = [R.h(X) <= R.f(X)["w":0.5]]
    row("weight-scalar", rule, [R.f("a")[[1, 2]]], [R.h("a")])
    ROWS["weight-scalar"]["values"]["w'"] = step_or_none(rule, [R.f("a")[[1, 2]]], [R.h("a")[[1, 0]]])
    row(
        "bias",
        [R.b()["b":0.5], (R.h(X) <= (R.f(X)["w":0.25], R.b())) | [T.TANH]],
        FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )


def combinations():
    vectors = [R.f("a")["f":[1, -2, 0.5]], R.g("a")["g":[0.25, 3, 2]]]
    for name, function, target in [
        ("sum", C.SUM, [1, 0, 0]),
        ("elproduct", C.ELPRODUCT, [1, 0, 0]),
        ("concat", C.CONCAT, [1, 0, 0, 0, 0, 1]),
        ("cossim", C.COSSIM, 1),
        ("crossum", C.CROSSSUM, list(range(9))),
        ("avg-vectors", C.AVG, [1, 0, 0]),
        ("max-vectors", C.MAX, None),
        ("min-vectors", C.MIN, None),
    ]:
        query = R.h("a") if target is None else R.h("a")[target]
        row(f"combination-{name}", [*vectors, R.h(X) <= function(R.f(X), R.g(X))], [], [query])
    matrix = R.m("a")["m":[[1, 2, 0], [3, 4, -1]]]
    row("combination-product", [matrix, vectors[0], R.h(X) <= C.PRODUCT(R.m(X), R.f(X))], [], [R.h("a")[[1, 0]]])
    scalars = [R.f("a")[2], R.g("a")[3]]
    for name, function in [("avg", C.AVG), ("max", C.MAX), ("min", C.MIN)]:
        rule = R.h(X) <= function(R.f(X)["w":0.5], R.g(X)["u":0.25])
        row(f"combination-{name}", [rule], scalars, [R.h("a")[0.125]])


def transformations():
    functions = [
        ("sigmoid", T.SIGMOID), ("tanh", T.TANH), ("relu", T.RELU), ("leaky-relu", T.LEAKY_RELU), ("signum", T.SIGNUM),
        ("exp", T.EXP), ("inverse", T.INVERSE), ("reverse", T.REVERSE), ("lukasiewicz", T.LUKASIEWICZ),
        ("norm", T.NORM), ("softmax", T.SOFTMAX),
    ]  # fmt: skip
    for name, function in functions:
        fact = R.f("a")["w":[0.25, -0.5, 1]]
        row(f"transformation-{name}", [fact, (R.h(X) <= R.f(X)) | [function]], [], [R.h("a")[[1, 0.25, 0]]])
    for name, function in [("sqrt", T.SQRT), ("log", T.LOG)]:
        fact = R.f("a")["w":[0.25, 0.5, 3]]
        row(f"transformation-{name}", [fact, (R.h(X) <= R.f(X)) | [function]], [], [R.h("a")[[0.75, 0.5, 1.5]]])
    fact = R.f("a")["w":[[0.5, -1, 2], [3, 4, 5]]]
    for name, function in [("transp", T.TRANSP), ("reshape", T.RESHAPE(shape=(3, 2)))]:
        target = [[1, 0], [0, 1], [0, 0]]
        row(f"transformation-{name}", [fact, (R.h(X) <= R.f(X)) | [function]], [], [R.h("a")[target]])
    row("transformation-slice", [fact, (R.h(X) <= R.f(X)) | [T.SLICE(rows=(0, 1), cols=(1, 3))]], [], [R.h("a")])


def aggregations():
    edges = [H.edge(1, 3), H.edge(2, 3), H.edge(2, 1)]
    vectors = [R.f(1)["f":[1, -2]], R.f(2)["g":[0.25, 3]]]
    for name, function in [("sum", A.SUM), ("avg", A.AVG), ("max", A.MAX), ("min", A.MIN), ("count", A.COUNT)]:
        rule = sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":0.5]), aggregation=function)
        row(f"aggregation-{name}", [rule], edges + FEATURES, [R.h(1)[0.5], R.h(3)[0.25]])
    for name, function in [("sum", A.SUM), ("avg", A.AVG), ("max", A.MAX)]:
        rule = sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)), aggregation=function)
        target = R.h(3)[[0.5, 0]] if name != "max" else R.h(3)
        row(f"aggregation-{name}-vectors", [*vectors, rule], edges, [target])
    rule = sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)), aggregation=A.CONCAT)
    row("aggregation-concat", [*vectors, rule], edges, [R.h(3)[[1, 0, 0, 0.5]]])
    row("aggregation-concat-order", [*vectors, rule], [edges[1], edges[0]], [R.h(3)])
    row("aggregation-default", [R.h(X) <= (H.edge(Y, X), R.f(Y)["w":0.5])], edges + FEATURES, [R.h(3)[0.125]])


def softmaxes():
    edges = [H.edge(1, 1), H.edge(1, 2), H.edge(2, 1), H.edge(2, 2), H.edge(2, 3)]
    keys = [R.k(1)[0.5], R.k(2)[-1], R.k(3)[2], R.v(1)[1], R.v(2)[2], R.v(3)[-4]]
    attention = [
        (R.weights(I, J) <= C.ELPRODUCT(H.edge(I, J), R.k(I)["q":0.5], R.k(J)["w":0.25]))
        | [T.IDENTITY, A.SOFTMAX(agg_terms=["J"])],
        sum_of(R.h(I) <= C.ELPRODUCT(R.weights(I, J), R.v(J))),
    ]
    pairs = [R.weights(1, 1), R.weights(1, 2), R.weights(2, 1), R.weights(2, 2), R.weights(2, 3)]
    row("softmax-agg-terms", attention, edges + keys, [R.h(1)[0.5], R.h(2)[0.25]], extra=pairs)
    rule = (R.h(X) <= (H.edge(X, Y), R.k(Y)["w":0.25])) | [T.IDENTITY, A.SOFTMAX]
    row("softmax-groundings", [rule], edges + keys, [R.h(1), R.h(2)])
    causal = [
        (R.weights(I, J) <= C.ELPRODUCT(HS.leq(J, I), R.k(I)["q":0.5], R.k(J)["w":0.25]))
        | [T.IDENTITY, A.SOFTMAX(agg_terms=["J"])],
        sum_of(R.h(I) <= C.ELPRODUCT(R.weights(I, J), R.v(J))),
    ]
    for name, exact in [("causal-attention", True), ("causal-attention-defaults", False)]:
        row(name, causal, keys, [R.h(1), R.h(2), R.h(3)], exact=exact, extra=[R.weights(1, 1)])
    ROWS["causal-attention"]["values"]["q'"] = step_or_none(causal, keys, [R.h(1)[0.5]])


def predicates():
    row(
        "predicate-level",
        [
            (R.h(X)["u":0.5] <= (H.edge(Y, X), R.f(Y)["w":0.25])) | [T.TANH, A.SUM],
            (R.h(X)["v":2.0] <= R.f(X)) | [T.SIGMOID],
            R.h / 1 | [C.PRODUCT, T.RELU],
        ],
        EDGES + FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )
    row(
        "hidden",
        [sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":0.5]))],
        EDGES + FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )
    row(
        "visible",
        [sum_of(R.h(X) <= (R.edge(Y, X), R.f(Y)["w":0.5]))],
        [R.edge(1, 2), R.edge(2, 1), R.edge(2, 3)] + FEATURES,
        [R.h(1)[0.5], R.h(2)[0.25], R.h(3)[1]],
    )
    labelled = [H.e(1, 2, "s"), H.e(1, 2, "d"), H.e(3, 2, "s"), H.e(2, 1, "s"), *FEATURES]
    rule = R.h(X) <= (H.e(Y, X, L), R.f(Y)["w":0.5])
    row("deduplicated", [sum_of(rule)], labelled, [R.h(1)[0.5], R.h(2)[0.25]])
    rule = R.h(X) <= (H.e(Y, X, L), R.f(Y)["w":0.5])
    rule = rule | Metadata(aggregation=A.SUM, transformation=T.IDENTITY, duplicate_grounding=True)
    row("duplicate-grounding", [rule], labelled, [R.h(1)[0.5], R.h(2)[0.25]])


def specials():
    numbers = [R.n(at)[2.0**at] for at in range(5)]
    two = [
        ("leq", lambda a, b: [HS.leq(a, b)]), ("lt", lambda a, b: [HS.lt(a, b)]),
        ("geq", lambda a, b: [HS.geq(a, b)]), ("gt", lambda a, b: [HS.gt(a, b)]),
        ("eq", lambda a, b: [HS.eq(a, b)]), ("neq", lambda a, b: [HS.neq(a, b)]),
        ("next", lambda a, b: [HS.next(a, b)]),
        ("add", lambda a, b: [HS.add(a, 2, b)]), ("sub", lambda a, b: [HS.sub(a, 2, b)]),
        ("mod", lambda a, b: [HS.mod(a, 2, b)]),
        ("in", lambda a, b: [HS._in(b, 1, 3)]),
    ]  # fmt: skip
    for name, literals in two:
        rule = R.h(X) <= [H.d(X), *literals(X, Y), R.n(Y)]
        row(f"special-{name}", [sum_of(rule)], [H.d(at) for at in range(5)] + numbers, [R.h(at) for at in range(5)])
    rule = R.h(X) <= [R.n(X), R.n(Y), R.n(Z), HS.maxcard(2, X, Y, Z)]
    row("special-maxcard", [sum_of(rule)], numbers[:4], [R.h(at) for at in range(4)])
    rule = R.h(X) <= [R.n(X), R.n(Y), R.n(Z), HS.alldiff(X, Y, Z)]
    row("special-alldiff", [sum_of(rule)], numbers[:4], [R.h(at) for at in range(4)])
    evaluables = [
        ("add", S.add_eval), ("sub", S.sub_eval), ("mul", S.mul_eval), ("div", S.div_eval),
        ("mod", S.mod_eval), ("max", S.max_eval), ("min", S.min_eval),
    ]  # fmt: skip
    for name, function in evaluables:
        rule = R.h(X) <= C.ELPRODUCT(R.n(X)["w":0.5], function(X, 2))
        row(f"evaluable-{name}", [sum_of(rule)], numbers, [R.h(at)[1] for at in range(5)])


def negations():
    unary = [R.f(1)[0.5], R.f(2)[0.25], R.f(3)[-2]]
    row("negation", [sum_of(R.h(X) <= (R.f(X)["w":0.5], ~R.e(X)))], unary + [R.e(2)], [R.h(1)[1], R.h(3)[1]], extra=[R.h(2)])
    rule = sum_of(R.h(X) <= C.ELPRODUCT(R.g(X)["w":0.5], -R.f(X)))
    row("reverse", [rule], unary + [R.g(1)[2], R.g(2)[3], R.g(3)[4]], [R.h(1)[1], R.h(2)[1], R.h(3)[1]])


def recursions():
    tree = [H.edge("a", "b"), H.edge("a", "c"), H.edge("b", "d"), H.leaf("c"), H.leaf("d"), R.f("c")[2], R.f("d")[-1]]
    rules = [
        (R.h(X) <= (H.leaf(X), R.f(X)["u":0.5])) | [T.TANH],
        (R.h(X) <= (H.edge(X, Y), R.h(Y)["w":0.25])) | [T.TANH, A.SUM],
    ]
    row("recursion", rules, tree, [R.h("a")[0.5]], extra=[R.h("b"), R.h("c"), R.h("d")])
    roads = [R.road("a", "b")[0.25], R.road("b", "c")[0.5], R.road("a", "c")[0.875], R.road("c", "d")[0.75]]
    rules = [
        (R.path(X, Y) <= R.road(X, Y)) | [A.MIN],
        (R.path(X, Y) <= (R.road(X, Z), R.path(Z, Y))) | [A.MIN],
        R.path / 2 | [C.MIN],
    ]
    row("shortest-path", rules, roads, [R.path("a", at) for at in "bcd"])


def learning():
    rules = [sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":0.25]), T.TANH), (R.g <= R.h(X)["u":0.5]) | [T.SIGMOID, A.AVG]]
    one = [H.edge(1, 2), H.edge(2, 1), R.f(1)[2], R.f(2)[-1]]
    two = [H.edge(1, 2), H.edge(2, 3), H.edge(3, 1), R.f(1)[1], R.f(2)[3], R.f(3)[-5]]
    three = [H.edge(1, 1), R.f(1)[0.5]]
    samples = [(R.g[1], one), (R.g[0], two), (R.g[1], three)]
    keys = ["g 0", "g 1", "g 2"]
    rows("samples", rules, samples, keys=keys, loss=MSE("mean"))
    rows("sgd", rules, samples, keys=keys, steps=3, optimizer=SGD(lr=0.5), batch=1)
    rows("adam", rules, samples, keys=keys, steps=1, optimizer=Adam(lr=0.125))
    rows("adam-steps", rules, samples, keys=keys, steps=5, optimizer=Adam(lr=0.125))
    logits = [rules[0], R.g <= R.h(X)["u":0.5]]
    rows("cross-entropy", logits, samples, keys=keys, loss=CrossEntropy(with_logits=True, reduction="sum"))
    rows("initialiser", [sum_of(R.h(X) <= R.f(X)["w":(2, 2)])], [(R.h(1)[[1, 0]], [R.f(1)[[1, 2]]])], initializer=Constant(0.125))


def queries():
    rule = sum_of(R.h(X, Y) <= (H.edge(X, Y), R.f(X), R.f(Y)["w":0.5]))
    row("query-constants", [rule], EDGES + FEATURES, [R.h(2, 1), R.h(2, 3)])
    rules = [sum_of(R.h(X) <= (H.edge(Y, X), R.f(Y)["w":0.5]))]
    example = [H.edge(1, 2), *FEATURES]
    values = {f"h({at})": alone(rules, example, R.h(at)) for at in (1, 2, 3)}
    model, dataset, said = built(rules, [(R.h(1)[1], example), (R.h(2)[0.5], example)])
    record("no-proof", said, values | {"loss": model.loss(dataset)})


def divergences():
    """Where it is wrong, or says something else than we do."""
    rule = (R.h(X) <= R.k(X)["w":0.25]) | [T.IDENTITY, A.SOFTMAX]
    for name, exact in [("softmax-one", True), ("softmax-one-defaults", False)]:
        row(name, [rule], [R.k(1)[0.5]], [R.h(1)[0.25]], exact=exact)
    row("one-and-one-point-nought", [R.h(X) <= (H.e(X), R.f(X))], [H.e(1), R.f(1.0)[0.5]], [R.h(1)])
    row("duplicate-fact", [R.h(X) <= R.f(X)], [R.f("a")[0.5], R.f("a")[0.25]], [R.h("a")])
    rules = [sum_of(R.h(X) <= (H.edge(Y, X), R.h(Y)["w":0.25])), R.h(X) <= R.f(X)]
    values = {f"h({at})": alone(rules, EDGES + FEATURES, R.h(at)) for at in (1, 2, 3)}
    record("cycle", [str(rule) for rule in rules], values, "null: it fails")


def main():
    for group in (facts, weights_of, combinations, transformations, aggregations, softmaxes, predicates, specials, negations,
                  recursions, learning, queries, divergences):  # fmt: skip
        group()
    header = {"library": f"neuralogic {neuralogic.__version__}", "command": COMMAND, "rows": ROWS}
    json.dump(header, OUT, indent=1)
    OUT.write("\n")


main()
