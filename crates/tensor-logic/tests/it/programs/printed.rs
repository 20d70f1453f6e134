//! The lines of the paper that stand in the programs exactly as they are printed, but for blanks:
//! superscripts as `^`, the primes and the minus as in print.

use super::program;

/// A program, and lines of the paper that it holds.
const PRINTED: &[(&str, &[&str])] = &[
    ("perceptron", &["W = [0.2, 1.9, -0.7, 3]", "X = [0, 1, 1, 0]", "Y = step(W[i] X[i])", "Y?"]),
    ("mlp", &["X[i, j] = sig(W[i, j, k] X[i-1, k])"]),
    ("rnn", &["X[i, *t+1] = sig(W[i, j] X[j, *t] + V[i, j] U[j, t])"]),
    (
        "convolution",
        &[
            "Features[x, y] = relu(Filter[dx, dy, ch] Image[x+dx, y+dy, ch])",
            "Pooled[x/S, y/S] = Features[x, y]",
        ],
    ),
    (
        "kernel-machine",
        &["Y[Q] = sig(A[i] Y[i] K[Q, i] + B)", "K[i, i′] = exp(−(X[i, j] − X[i′, j])^2 / Var)"],
    ),
    (
        "table1-gnn",
        &[
            "Neig(x, y)",
            "Emb[n, 0, d] = X[n, d]",
            "Z[n, l, d′] = relu(WP[l, d′, d] Emb[n, l, d])",
            "Agg[n, l, d] = Neig(n, n′) Z[n′, l, d]",
            "Emb[n, l+1, d] = relu(WAgg Agg[n, l, d] + WSelf Emb[n, l, d])",
        ],
    ),
    (
        "self-attention",
        &[
            "Query[p, dk] = WQ[dk, d] X[p, d]",
            "Key[p, dk] = WK[dk, d] X[p, d]",
            "Val[p, dv] = WV[dv, d] X[p, d]",
            "Attn[p, dv] = Comp[p, p′] Val[p′, dv]",
        ],
    ),
    (
        "table2-transformer",
        &[
            "X(p, t)",
            "EmbX[p, d] = X(p, t) Emb[t, d]",
            "Stream[0, p, d] = EmbX[p, d] + PosEnc[p, d]",
            "Query[b, h, p, dk] = WQ[b, h, dk, d] Stream[b, p, d]",
            "Comp[b, h, p, p′.] = softmax(Query[b, h, p, dk] Key[b, h, p′, dk]/sqrt(Dk))",
            "Attn[b, h, p, dv] = Comp[b, h, p, p′] Val[b, h, p′, dv]",
            "Merge[b, p, dm] = concat(Attn[b, h, p, dv])",
            "Y[p, t.] = softmax(WO[t, d] Stream[B, p, d])",
        ],
    ),
    ("ancestor", &["Ancestor(x, y) ← Parent(x, y)", "Ancestor(x, z) ← Ancestor(x, y), Parent(y, z)"]),
    ("aunt", &["Aunt(x, z) ← Sister(x, y), Parent(y, z)"]),
    (
        "embedding-space",
        &[
            "S[d] = V[x] Emb[x, d]",
            "EmbR[i, j] = R(x, y) Emb[x, i] Emb[y, j]",
            "Sim[x, x′] = Emb[x, d] Emb[x′, d]",
        ],
    ),
];

#[test]
fn the_paper_s_lines_are_the_programs_lines() {
    for (name, lines) in PRINTED {
        let text = program(name);
        let there: Vec<&str> =
            text.lines().map(|line| line.split("  #").next().unwrap().trim_end()).collect();
        for line in *lines {
            assert!(there.contains(line), "{name}: {line}");
        }
    }
}
