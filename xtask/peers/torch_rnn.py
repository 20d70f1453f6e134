"""Recurrent cells in PyTorch, eager: forward, backward, clipping and optimiser, for `cargo xtask bench rnn`.

The argument is the number of threads. The first line printed is {"version"}; then each line read, {"case", "batch",
"seconds"}, trains that cell on one fixed batch for so long, and is answered by {"steps_per_second"}: steps of all
sequences. A cell is made, and warmed up, when it is first asked for.
"""

import json
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)


def weight(*shape):
    """Glorot uniform over the last two dimensions."""
    w = torch.empty(*shape)
    nn.init.xavier_uniform_(w)
    return nn.Parameter(w)


def zeros(n):
    return nn.Parameter(torch.zeros(n))


class LinearLogic(nn.Module):
    """The preset `coded` with the numerals 1 and 2: diagonal V, one gate for each coordinate, tanh throughout."""

    steps, symbols, classes = 15, 2, 2

    def __init__(self, hidden=25, aux=5):
        super().__init__()
        self.aux = aux
        self.H, self.U, self.B = weight(hidden, hidden), weight(hidden, self.symbols), zeros(hidden)
        self.V, self.I, self.J = weight(self.symbols, aux), weight(hidden, aux), weight(aux, hidden)
        self.P, self.C = weight(2 * aux, hidden), zeros(2 * aux)
        self.readout = nn.Linear(hidden, self.classes)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.H.shape[0])
        V, U, states = x @ self.V, x @ self.U.t() + self.B, []  # [time, sequence, K], [time, sequence, H]
        for v, u in zip(V.unbind(0), U.unbind(0)):
            p, q = torch.tanh(torch.addmm(self.C, h, self.P.t())).split(self.aux, 1)
            once = v * (h @ self.J.t())
            h = torch.tanh(torch.addmm(torch.addmm(u, h, self.H.t()), p * once + q * (v * once), self.I.t()))
            states.append(h)
        return self.readout(torch.stack(states))


class Lstm(nn.Module):
    """The library's own LSTM."""

    steps, symbols, classes = 32, 2, 2

    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(self.symbols, hidden)
        self.readout = nn.Linear(hidden, self.classes)

    def forward(self, x):
        return self.readout(self.lstm(x)[0])


class Turing(nn.Module):
    """A neural Turing machine with one ring, one read head and one write head."""

    steps, symbols, classes = 58, 10, 10
    powers = (0, -1, 1)

    def __init__(self, hidden=100, addresses=128, content=20):
        super().__init__()
        self.addresses, self.content = addresses, content
        self.H, self.U, self.B = weight(hidden, hidden), weight(hidden, self.symbols), zeros(hidden)
        self.V = weight(hidden, content)
        head = lambda size: nn.Linear(hidden, size)
        self.rq, self.wq, self.rg, self.wg = head(3), head(3), head(1), head(1)
        self.erase, self.add = head(content), head(content)
        self.readout = nn.Linear(hidden, self.classes)

    def turn(self, v, q, g):
        """Rotation, then sharpening."""
        q = torch.softmax(q, 1)
        turned = sum(q[:, j : j + 1] * torch.roll(v, p, 1) for j, p in enumerate(self.powers))
        sharp = (turned + 1e-6) ** (1 + torch.relu(g))
        return sharp / sharp.sum(1, keepdim=True)

    def forward(self, x):
        n = x.shape[1]
        h = x.new_zeros(n, self.H.shape[0])
        r = w = torch.eye(1, self.addresses).expand(n, -1)
        memory = x.new_zeros(n, self.addresses, self.content)
        states = []
        for u in (x @ self.U.t() + self.B).unbind(0):
            read = torch.bmm(r.unsqueeze(1), memory).squeeze(1)
            r, w = self.turn(r, self.rq(h), self.rg(h)), self.turn(w, self.wq(h), self.wg(h))
            erase, add = torch.sigmoid(self.erase(h)).unsqueeze(1), torch.relu(self.add(h)).unsqueeze(1)
            at = w.unsqueeze(2)
            memory = memory - memory * (at * erase) + at * add
            h = torch.tanh(torch.addmm(torch.addmm(u, h, self.H.t()), read, self.V.t()))
            states.append(h)
        return self.readout(torch.stack(states))


class Case:
    """A cell with its optimiser and one batch."""

    def __init__(self, name, batch):
        cell, self.clip = {"ll-authors": (LinearLogic, 1.0), "lstm": (Lstm, 1.0), "ntm-copy": (Turing, 0.0)}[name]
        self.model = cell()
        parameters = self.model.parameters()
        if cell is Turing:
            self.optimiser = torch.optim.RMSprop(parameters, lr=1e-4, alpha=0.9, eps=1e-10, momentum=0.9)
        else:
            self.optimiser = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=True)
        tokens = torch.randint(0, cell.symbols, (cell.steps, batch))
        self.x = nn.functional.one_hot(tokens, cell.symbols).float()
        # On a tape only the answer counts.
        self.first = cell.steps // 2 if cell is Turing else 0
        self.targets = torch.randint(0, cell.classes, (cell.steps - self.first, batch)).flatten()
        self.steps = cell.steps * batch
        for _ in range(1 if cell is Turing else 5):
            self.update()

    def update(self):
        logits = self.model(self.x)[self.first :].flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, self.targets)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimiser.step()

    def speed(self, seconds):
        done, start = 0, time.perf_counter()
        while True:
            self.update()
            done += 1
            passed = time.perf_counter() - start
            if passed >= seconds:
                return done * self.steps / passed


cases = {}
print(json.dumps({"version": torch.__version__}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    key = (ask["case"], ask["batch"])
    if key not in cases:
        cases.clear()
        cases[key] = Case(*key)
    print(json.dumps({"steps_per_second": cases[key].speed(ask["seconds"])}), flush=True)
