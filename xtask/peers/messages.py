#!/usr/bin/env python3
"""Message passing over a random graph in PyTorch, as `bench relational messages` asks for it. Usage: messages.py THREADS DTYPE
FOLDER, where DTYPE is float32 or float64     (pip install torch numpy)

Every line on standard input is one request, CASE KIND VARIANT, and answered by a line: the seconds that it took. CASE: `sum`, what the
neighbours have is added, or `layer`, then multiplied by a matrix and cut off below 0; the loss is the sum of the squares. KIND: `forward`,
the loss alone; `gradient`, by X and, in a layer, W; `step`, a step of SGD; `values`, which writes the loss, the output and the
gradients into FOLDER; `moved`, which writes X and W after STEPS steps from the start and takes STEPS in the place of VARIANT. VARIANT:
how the neighbours are added up. The arcs stand by their targets, and what a variant wants to have made of them is made before."""
import sys
import time
import warnings

import numpy as np
import torch

from arrays import below, signed

warnings.filterwarnings("ignore", message="Sparse")
NODES, DRAWS, WIDTH, RATE = 100_000, 1_000_000, 64, 2.0**-20
threads, kind_of_number, folder = int(sys.argv[1]), getattr(torch, sys.argv[2]), sys.argv[3]
torch.set_num_threads(threads)

drawn = below(181, NODES, 2 * DRAWS)
arcs = np.unique(drawn[1::2] * NODES + drawn[0::2])
source, target = torch.from_numpy(arcs % NODES), torch.from_numpy(arcs // NODES)
begins = torch.searchsorted(target, torch.arange(NODES + 1))
# By sources: for the gradient, which goes the other way.
ones = torch.ones(len(arcs), dtype=kind_of_number)
coo = torch.sparse_coo_tensor(torch.stack([target, source]), ones, (NODES, NODES)).coalesce()
csr, back = coo.to_sparse_csr(), coo.t().coalesce().to_sparse_csr()


def start():
    x = torch.tensor(signed(182, (NODES, WIDTH)), dtype=kind_of_number, requires_grad=True)
    w = torch.tensor(signed(183, (WIDTH, WIDTH)), dtype=kind_of_number, requires_grad=True)
    return x, w


class Transposed(torch.autograd.Function):
    """The product with a matrix whose transpose was made before."""

    @staticmethod
    def forward(context, x):
        return csr @ x

    @staticmethod
    def backward(context, slope):
        return back @ slope


def empty(x):
    return torch.zeros(NODES, WIDTH, dtype=x.dtype)


VARIANTS = {
    "index_add": lambda x: empty(x).index_add_(0, target, x.index_select(0, source)),
    "scatter_add": lambda x: empty(x).scatter_add_(0, target[:, None].expand(-1, WIDTH), x.index_select(0, source)),
    "embedding_bag": lambda x: torch.nn.functional.embedding_bag(source, x, begins, mode="sum", include_last_offset=True),
    "csr": lambda x: torch.sparse.mm(csr, x),
    "csr_both": Transposed.apply,
}


def output(case, add, x, w):
    return add(x) if case == "sum" else torch.relu(add(x) @ w)


def loss_of(case, add, x, w):
    return output(case, add, x, w).square().sum()


def learned(case, x, w):
    return [x] if case == "sum" else [x, w]


x, w = start()
moving = dict()


def forward(case, add):
    with torch.no_grad():
        return loss_of(case, add, x, w).item()


def gradient(case, add):
    for tensor in (x, w):
        tensor.grad = None
    loss_of(case, add, x, w).backward()


def step(case, add):
    if (case, add) not in moving:
        own = start()
        moving[case, add] = own, torch.optim.SGD(learned(case, *own), lr=RATE)
    own, rule = moving[case, add]
    rule.zero_grad()
    loss_of(case, add, *own).backward()
    rule.step()


def write(name, tensor):
    tensor.detach().double().numpy().tofile(f"{folder}/{name}")


def values(case, add):
    gradient(case, add)
    write("Loss", loss_of(case, add, x, w))
    write("H", output(case, add, x, w))
    for name, tensor in zip("XW", learned(case, x, w)):
        write("Grad_" + name, tensor.grad)


def moved(case, steps):
    own = start()
    rule = torch.optim.SGD(learned(case, *own), lr=RATE)
    for _ in range(steps):
        rule.zero_grad()
        loss_of(case, VARIANTS["index_add"], *own).backward()
        rule.step()
    for name, tensor in zip("XW", learned(case, *own)):
        write(name, tensor)


KINDS = {"forward": forward, "gradient": gradient, "step": step, "values": values}
print(torch.__version__, flush=True)
for line in sys.stdin:
    case, kind, variant = line.split()
    begin = time.perf_counter()
    moved(case, int(variant)) if kind == "moved" else KINDS[kind](case, VARIANTS[variant])
    print(time.perf_counter() - begin, flush=True)
