"""The ten cells of docs/linear-logic/masters.md in PyTorch, eager, for `cargo xtask bench masters`.

The argument is the number of threads. The first line printed is {"version"}. A line {"case", "batch", "weights", "tokens",
"targets"} makes a cell with these weights, by name with their shapes, and this batch, [time, sequence], and is answered by
{"loss"}, the mean over all positions; then each line {"seconds"} trains it for so long and is answered by
{"steps_per_second"}: forward, backward, clipping and optimiser, steps of all sequences.
"""

import json
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))


def on(v, z):
    """v z for one matrix a sequence."""
    return torch.bmm(v, z.unsqueeze(2)).squeeze(2)


def mix(c, first, second):
    return c[:, :1] * first + c[:, 1:] * second


# Z of each cell: of the cell, the state, V(x) and V(x').
def add(cell, h, v, w):
    p, q = cell.gates(0, h), cell.gates(1, h)
    once = on(v, h)
    y = mix(q, once, on(v, once))
    return mix(p, y, on(v, y))


def mult(cell, h, v, w):
    p, q = cell.gates(0, h), cell.gates(1, h)

    def number(z):
        once = on(v, z)
        return mix(p, once, on(v, once))

    first = number(h)
    return mix(q, first, number(first))


def repeat(cell, h, v, w):
    p = cell.gates(0, h)

    def word(z):
        once = on(v, z)
        return mix(p, on(w, once), once)

    return word(word(h))


def pair(cell, h, v, w):
    once = on(v, h)
    return mix(cell.gates(0, h), on(w, on(v, once)), on(w, on(w, once)))


def square(cell, h, v, w):
    once = on(v, h)
    return mix(cell.gates(0, h), on(v, once), once)


def places(cell, h, v, w):
    return mix(cell.gates(0, h), on(w, on(v, cell.matrix(3, h))), cell.matrix(3, on(w, on(w, h))))


def subst(cell, h, v, w):
    s, p, q = cell.gates(0, h), cell.gates(1, h), cell.gates(2, h)
    once = on(v, h)
    one = mix(q, once, on(w, once))
    once = on(w, one)
    return mix(s, mix(p, on(v, once), once), one)


# Each with the slot that has the weights of V.
CASES = {
    "numeral": (0, lambda cell, h, v, w: on(v, on(v, h))),
    "word": (1, lambda cell, h, v, w: on(v, on(v, on(w, h)))),
    "add": (2, add),
    "mult": (2, mult),
    "repeat": (2, repeat),
    "case": (1, lambda cell, h, v, w: mix(cell.gates(0, h), on(v, h), cell.matrix(2, h))),
    "pair": (2, pair),
    "square": (1, square),
    "places": (2, places),
    "subst": (4, subst),
}


class Cell(nn.Module):
    def __init__(self, name, weights):
        super().__init__()
        self.slot, self.z = CASES[name]
        self.names = {name: name.replace(".", "_") for name in weights}
        for name, weight in weights.items():
            value = torch.tensor(weight["values"]).view(weight["shape"])
            self.register_parameter(self.names[name], nn.Parameter(value))

    def get(self, name):
        return getattr(self, self.names[name])

    def gates(self, slot, h):
        return torch.softmax(torch.addmm(self.get(f"m0.s{slot}.b"), h, self.get(f"m0.s{slot}.W").t()), 1)

    def matrix(self, slot, z):
        return z @ self.get(f"m0.s{slot}.W").t()

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.H.shape[0])
        V = torch.einsum("tbi,ikl->tbkl", x, self.get(f"m0.s{self.slot}.W"))  # [time, sequence, H, H]
        U, states, before = x @ self.U.t() + self.B, [], torch.zeros_like(V[0])
        for v, u in zip(V.unbind(0), U.unbind(0)):
            h = torch.tanh(torch.addmm(u, h, self.H.t()) + self.z(self, h, v, before))
            states.append(h)
            before = v
        return torch.stack(states) @ self.E.t() + self.F


class Case:
    """A cell with its optimiser and its batch."""

    def __init__(self, ask):
        self.model = Cell(ask["case"], ask["weights"])
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
        tokens = torch.tensor(ask["tokens"]).view(-1, ask["batch"])
        self.x = nn.functional.one_hot(tokens, 2).float()
        self.targets = torch.tensor(ask["targets"])

    def loss(self):
        return nn.functional.cross_entropy(self.model(self.x).flatten(0, 1), self.targets)

    def update(self):
        loss = self.loss()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()

    def speed(self, seconds):
        done, start = 0, time.perf_counter()
        while True:
            self.update()
            done += 1
            passed = time.perf_counter() - start
            if passed >= seconds:
                return done * len(self.targets) / passed


case = None
print(json.dumps({"version": torch.__version__}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    if "case" in ask:
        case = Case(ask)
        answer = {"loss": case.loss().item()}
        for _ in range(5):
            case.update()
    else:
        answer = {"steps_per_second": case.speed(ask["seconds"])}
    print(json.dumps(answer), flush=True)
