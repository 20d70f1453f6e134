"""One training step of the same transformer in PyTorch, for `cargo xtask bench train`.

usage: torch_step.py D LAYERS HEADS FF SEQUENCES TOKENS THREADS [bf16]; prints the median in milliseconds."""
import math
import sys
import time

import torch
import torch.nn.functional as F

d, layers, heads, ff, sequences, tokens, threads = map(int, sys.argv[1:8])
half = "bf16" in sys.argv
vocabulary = 663
torch.set_num_threads(threads)
torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, d)
        layer = torch.nn.TransformerEncoderLayer(d, heads, ff, 0.1, F.gelu, batch_first=True)
        norm = torch.nn.LayerNorm(d)
        self.layers = torch.nn.TransformerEncoder(layer, layers, norm=norm, enable_nested_tensor=False)
        self.head = torch.nn.Linear(d, vocabulary)
        self.dropout = torch.nn.Dropout(0.1)
        position = torch.arange(512).unsqueeze(1) * torch.exp(torch.arange(0, d, 2) * (-math.log(10000) / d))
        table = torch.zeros(512, d)
        table[:, 0::2], table[:, 1::2] = position.sin(), position.cos()
        self.register_buffer("table", table)

    def forward(self, x):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.dropout(self.embed(x) * math.sqrt(d) + self.table[: x.shape[1]])
        return self.head(self.layers(h, mask=mask, is_causal=True))


model = Model()
optimiser = torch.optim.AdamW(
    model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01, fused=True
)
x = torch.randint(0, vocabulary, (sequences, tokens))
y = torch.randint(0, vocabulary, (sequences, tokens))


def step():
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss = F.cross_entropy(model(x).view(-1, vocabulary), y.view(-1))
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


for _ in range(3):
    step()
times = []
for _ in range(9):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
print(sorted(times)[len(times) // 2] * 1e3)
