"""`python -m tests.simulation.evictions`: run seeds, or with `--without` what a mechanism prevents."""

import argparse
import os
import sys
import traceback

from tests.simulation import seeds
from tests.simulation.evictions.play import EvictionRun
from tests.simulation.evictions.sabotages import SABOTAGES


def main() -> int:
    """:return: exit code: 0 if every run showed what it should"""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.evictions", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only, and print its history if it is violated")
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--without", choices=sorted(SABOTAGES), help="a mechanism that is switched off")
    options = parser.parse_args()
    seeds.fix_hashes()
    chosen = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    failed = 0
    for seed in chosen:
        failed += _in_a_process(seed, options.without, history=options.seed is not None)
        if failed and options.without:
            break
    print(f"{len(chosen)} seeds, {failed} failed")
    return (0 if failed else 1) if options.without else (1 if failed else 0)


def _in_a_process(seed: int, without: str | None, *, history: bool) -> bool:
    """A run takes time and chance of its process for itself; whether it was violated."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(_one(seed, without, history=history))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def _one(seed: int, without: str | None, *, history: bool) -> int:
    try:
        run = EvictionRun(seed, SABOTAGES[without] if without else None)
        counts = run.run()
    except BaseException:
        traceback.print_exc()
        return 2
    told = ", ".join(f"{amount} {name}" for name, amount in sorted(counts.items()))
    print(f"seed {seed}: {'; '.join(run.checker.violations[:3]) or 'no violation'} [{told}]")
    if history and run.checker.violations:
        print("\n".join(run.history[-80:]))
    sys.stdout.flush()
    return 1 if run.checker.violations else 0


if __name__ == "__main__":
    sys.exit(main())
