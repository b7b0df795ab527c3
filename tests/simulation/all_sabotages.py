"""`python -m tests.simulation.all_sabotages`: each mechanism switched off in turn, several at once; a line
for each."""

import argparse
import os
import sys
from collections import deque
from collections.abc import Iterator
from time import perf_counter  # the real one: runs take `time`'s

from tests.simulation import seeds
from tests.simulation.aims import Aimed
from tests.simulation.sabotage import SABOTAGES
from tests.simulation.simulation import Verdict


def main() -> int:
    """:return: exit code: 0 if each showed what it should"""
    options = _options()
    seeds.fix_hashes()
    seeds.warm()
    failed, began = 0, perf_counter()
    for name, verdict in _runs(deque(options.names or sorted(SABOTAGES)), options.seeds, options.workers):
        wrong = why_not_shown(name, verdict)
        failed += bool(wrong)
        print(f"without {name}: {wrong or 'as expected'} [seed {verdict.seed}: {_what(verdict)}]", flush=True)
    print(f"{len(options.names or SABOTAGES)} mechanisms in {perf_counter() - began:.1f} s, {failed} failed")
    return 1 if failed else 0


def why_not_shown(name: str, verdict: Verdict) -> str:
    """What is missing of what the sabotage must show, or what is too much; empty: nothing."""
    if verdict.blind:
        return f"it aims at nothing: {'; '.join(verdict.blind)}"
    says = SABOTAGES[name].says
    if says and not any(words in text for words in says for text in verdict.violations):
        return f"nobody says {' or '.join(says)}"
    return "there should be no violation" if verdict.violations and not says else ""


def _what(verdict: Verdict) -> str:
    return verdict.violations[0][:200] if verdict.violations else "nothing happens"


def _runs(names: deque[str], most: int, workers: int) -> Iterator[tuple[str, Verdict]]:
    """The last run of each: of the seed that it names, or of the first one behind it that shows what it
    must."""
    waiting: deque[tuple[str, int, seeds.Running]] = deque()

    def start(name: str, seed: int) -> None:
        sabotage = SABOTAGES[name]
        waiting.append((name, seed, seeds.Running(sabotage.plan(seed=seed), Aimed(sabotage.patch))))

    while names or waiting:
        while names and len(waiting) < workers:
            name = names.popleft()
            start(name, SABOTAGES[name].first)
        name, seed, running = waiting.popleft()
        verdict = running.wait()
        _, says, first, _ = SABOTAGES[name]
        enough = not says or not why_not_shown(name, verdict)
        if enough or seed + 1 >= first + most:
            yield name, verdict
        else:
            start(name, seed + 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.all_sabotages", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SABOTAGES, []], help="these only")
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        help="at most so many seeds each, from the one that it names, until one shows what it must",
    )
    workers = (os.cpu_count() or 1) + 1  # the run that began first is waited for, whatever has ended behind it
    parser.add_argument("--workers", type=int, default=workers, help="runs at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
