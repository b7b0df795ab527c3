"""`python -m tests.simulation`: run seeds and print their rate; `--seed N` runs one again, `--history` with every message."""

import argparse
import sys
import time

from tests.simulation import seeds
from tests.simulation.simulation import Plan


def main() -> int:
    """:return: exit code: 0 if no run showed a violation"""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--history", action="store_true", help="print every message")
    options = parser.parse_args()
    seeds.fix_hashes()
    seeds.warm()
    chosen = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    began, done, failed = time.perf_counter(), 0, 0
    for seed in chosen:
        verdict = seeds.run(Plan(seed=seed, keep_history=options.history))
        done += 1
        if verdict.violations or options.history or options.seed is not None:
            print(seeds.describe(verdict))
            print(f"  {verdict.counts}, settled after {verdict.ended_s} virtual seconds", flush=True)
        failed += bool(verdict.violations)
    seconds = time.perf_counter() - began
    print(f"{done} seeds in {seconds:.1f} s: {done / seconds:.2f} seeds/s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
