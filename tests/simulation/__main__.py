"""`python -m tests.simulation`: run seeds and print their rate; `--seed N` runs one again, `--history` with
every message."""

import argparse
import os
import sys
from collections import Counter
from time import perf_counter  # the real one: runs take `time`'s

from msgspec.structs import replace

from tests.simulation import seeds
from tests.simulation.node_life import NodePlan
from tests.simulation.simulation import Plan

SMALL = Plan(seed=0, pods=10, nodes=3, faults=0, arriving_s=3.0, quiet_from_s=12.0)
"""What crashes are tried in."""
FIRST_SMALL = 5
"""Seed of the first small run; in this one pods wait, one preempts, and two volumes are bound."""


def main() -> int:
    """:return: exit code: 0 if every run showed what it should: no violation, or those of the sabotage"""
    options = _options()
    seeds.fix_hashes()
    seeds.warm()
    if options.crashes:
        return _crashes(options.crashes, options.workers)
    plans = _plans(options)
    began, done, failed = perf_counter(), 0, 0
    totals: Counter[str] = Counter()
    for verdict in seeds.run_all(plans, options.workers, options.limit_s):
        done += 1
        failed += bool(verdict.violations)
        totals.update(verdict.counts)
        if verdict.violations or options.seed is not None:
            again = " --nodes" if options.nodes else ""
            again += f" --crash {options.crash}" if options.crash else ""
            print(seeds.describe(verdict, f"--seed {verdict.seed}{again}"), flush=True)
    seconds = perf_counter() - began
    print(", ".join(f"{amount} {name}" for name, amount in totals.items()))
    print(f"{done} seeds in {seconds:.1f} s: {done / seconds:.2f} seeds/s, {failed} failed", flush=True)
    return 1 if failed else 0


def _plans(options: argparse.Namespace) -> list[Plan]:
    """The seeds that are asked for; or one crash of a small run, again."""
    if options.crash:
        instance, _, number = options.crash.rpartition(":")
        small = replace(SMALL, seed=options.seed or FIRST_SMALL, crashing=instance, crash_at=int(number))
        return [replace(small, keep_history=options.history)]
    chosen = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    kind = NodePlan if options.nodes else Plan
    return [kind(seed=seed, keep_history=options.history) for seed in chosen]


def _crashes(runs: int, workers: int) -> int:
    """Small runs, each again and again with a crash before every single effect of every process."""
    began, done, failed = perf_counter(), 0, 0
    for small in (replace(SMALL, seed=seed) for seed in range(FIRST_SMALL, FIRST_SMALL + runs)):
        plain = seeds.run(small)
        print(f"small run {small.seed}, without a crash: {plain.violations or 'settled'}")
        failed += bool(plain.violations)
        effects = {
            name.removeprefix("effects of "): count
            for name, count in plain.counts.items()
            if name.startswith("effects of ")
        }
        plans = [
            replace(small, crashing=instance, crash_at=number + 1)
            for instance, count in effects.items()
            for number in range(count)
        ]
        for plan, verdict in zip(plans, seeds.run_all(plans, workers), strict=True):
            done += 1
            failed += bool(verdict.violations)
            if verdict.violations:
                print(
                    seeds.describe(verdict, f"--seed {plan.seed} --crash {plan.crashing}:{plan.crash_at}"), flush=True
                )
        for instance, count in effects.items():
            print(f"{instance}: a crash before each of its {count} effects", flush=True)
    seconds = perf_counter() - began
    print(f"{done} crashes in {seconds:.1f} s: {done / seconds:.2f} runs/s, {failed} failed", flush=True)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument(
        "--limit-s", type=float, default=float("inf"), help="begin no further seed after so many seconds"
    )
    parser.add_argument("--nodes", action="store_true", help="nodes that are lost and live again, and their agents")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--history", action="store_true", help="print every message")
    parser.add_argument(
        "--crashes", type=int, metavar="RUNS", help="so many small runs, each with a crash before every single effect"
    )
    parser.add_argument(
        "--crash", metavar="INSTANCE:NUMBER", help="one of these crashes again, of the small run --seed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
