"""Sums of two digits by ProbLog: 64 samples, the probability of one sum each, as `bench relational digits` asks for it.

Prints one JSON document: seconds to ground and compile, seconds of an evaluation with weights that are given anew (medians),
and the sum of the logarithms of the probabilities. Usage: digits.py FILE RUNS, FILE holding 64 rows of 20 weights and a sum.
"""

import json
import math
import statistics
import sys
import time

from problog import get_evaluatable
from problog.logic import Constant
from problog.program import PrologString


def main():
    rows = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
    runs = int(sys.argv[2])
    text = []
    for sample, row in enumerate(rows):
        for place in range(2):
            weights = row[10 * place : 10 * place + 10]
            text.append("; ".join(f"{w!r}::digit({sample},{place},{d})" for d, w in enumerate(weights)) + ".")
        text.append(f"query(sum({sample},{int(row[20])})).")
    text.append("sum(S,N) :- digit(S,0,A), digit(S,1,B), N is A+B.")
    begin = time.perf_counter()
    formula = get_evaluatable().create_from(PrologString("\n".join(text)))
    compiled = time.perf_counter() - begin
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        found = formula.evaluate()
        times.append(time.perf_counter() - begin)
    total = sum(math.log(float(value)) for value in found.values())
    print(json.dumps({"compile_s": compiled, "evaluate_s": statistics.median(times), "log": total}))


main()
