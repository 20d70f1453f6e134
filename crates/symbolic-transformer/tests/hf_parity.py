"""Loads an exported folder with `transformers` and compares it with the model that was exported.

    python tests/hf_parity.py [--skip-without-packages] FOLDER [FOLDER ...]

For each folder: the logits of `probe.safetensors` within 1e-4; the second half of each probe sequence as the greedy
continuation of the first, by `generate`; and 100 texts tokenised and written back. Exit status 0 if all hold, 1 if
one does not, 3 if a Python package is missing: nothing was compared then. With `--skip-without-packages` that passes.
"""

import json
import os
import random
import sys

NAMED = (
    "NOT AND OR IMPLIES IFF FORALL EXISTS EXISTS1 EQUALS NOT_EQUALS LESS_THAN GREATER_THAN LESS_EQUAL GREATER_EQUAL "
    "LPAREN RPAREN COMMA COLON DOT VAR CONST PRED FUNC SORT TRUE FALSE ENTAILS MODELS DEFINE EQUIVALENT "
    "<pad> <bos> <eos> <unk> <sep> <query> <answer> <unknown>"
).split()
LABELS = [str(n) for n in range(625)] + NAMED
BOS, EOS, PAD = 656, 657, 655
TOLERANCE = 1e-4
SKIP = "--skip-without-packages"


def largest_difference(model, tokens, logits):
    with torch.no_grad():
        theirs = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
    assert theirs.shape == logits.shape, f"logits {tuple(theirs.shape)}, the probe has {tuple(logits.shape)}"
    return (theirs - logits).abs().max().item(), logits.abs().max().item()


def continuations_that_differ(model, tokens):
    """Sequences whose greedy continuation by `generate` is not the probe's second half."""
    length = tokens.shape[1]
    prompt = (length + 1) // 2
    if prompt == length:
        return 0
    config = GenerationConfig(
        do_sample=False, max_new_tokens=length - prompt, eos_token_id=None, bos_token_id=BOS, pad_token_id=PAD
    )
    # What the folder says of the end must not cut a continuation short.
    model.generation_config = config
    start = tokens[:, :prompt]
    with torch.no_grad():
        found = model.generate(start, attention_mask=torch.ones_like(start), generation_config=config)
    if found.shape != tokens.shape:
        return tokens.shape[0]
    return int((found != tokens).any(dim=1).sum())


def texts_that_differ(tokenizer):
    draw = random.Random(0)
    differ = 0
    for _ in range(100):
        ids = [draw.randrange(663) if draw.random() < 0.5 else draw.randrange(625, 663) for _ in range(draw.randrange(60))]
        text = " ".join(LABELS[i] for i in ids)
        bounded = [BOS] + ids + [EOS]
        same = tokenizer(text)["input_ids"] == bounded
        same &= tokenizer(text, add_special_tokens=False)["input_ids"] == ids
        same &= tokenizer.decode(ids, skip_special_tokens=False) == text
        same &= set(tokenizer(text)) == {"input_ids", "attention_mask"}
        differ += not same
    whole = [tokenizer.convert_tokens_to_ids(label) for label in LABELS] == list(range(663))
    return differ + (not whole)


def check(folder):
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    model.eval()
    unloaded = {kind: sorted(names) for kind, names in report.items() if names}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    probe = load_file(os.path.join(folder, "probe.safetensors"))
    special = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id)
    difference, size = largest_difference(model, probe["tokens"], probe["logits"])
    greedy = continuations_that_differ(model, probe["tokens"])
    texts = texts_that_differ(tokenizer)
    holds = difference < TOLERANCE and greedy == 0 and texts == 0 and not unloaded and special == (BOS, EOS, PAD, 658)
    found = {
        "folder": folder,
        "class": type(model).__name__,
        "largest_difference": difference,
        "largest_logit": size,
        "continuations_that_differ": greedy,
        "texts_that_differ": texts,
        "special": special,
        "not_loaded": unloaded,
        "holds": holds,
    }
    print(json.dumps(found, default=str))
    return holds


def main(folders):
    if not folders:
        print("usage: hf_parity.py FOLDER [FOLDER ...]", file=sys.stderr)
        return 2
    return 0 if all([check(folder) for folder in folders]) else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    try:
        import torch
        from safetensors.torch import load_file
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    except ImportError as missing:
        if SKIP in arguments:
            print(f"skipped: {missing}")
            sys.exit(0)
        print(f"nothing was compared: {missing}; {SKIP} lets that pass", file=sys.stderr)
        sys.exit(3)
    sys.exit(main([argument for argument in arguments if argument != SKIP]))
