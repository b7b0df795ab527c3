"""Many runs: each in a forked process of its own, which ends with it, so that no run knows of another."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tests.simulation.simulation import Plan, Simulation, Verdict

Sabotage = Callable[[Simulation], None]

HASH_SEED = "0"


def fix_hashes() -> None:
    """Run this program again with a fixed hash seed if it has none: sets of texts are iterated in an order that depends on it."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def run(plan: Plan, sabotage: Sabotage | None = None) -> Verdict:
    """One run in a process of its own.

    :raises RuntimeError: if the simulator itself failed, with its traceback
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            answer = msgspec.msgpack.encode(Simulation(plan, sabotage).run())
            code = 0
        except BaseException:
            answer = traceback.format_exc().encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"seed {plan.seed}: {answer.decode(errors='replace')}")
    return msgspec.msgpack.decode(answer, type=Verdict)


def run_all(seeds: Iterable[int], *, limit_s: float = float("inf")) -> Iterator[Verdict]:
    """Run seeds one after the other, no further one after `limit_s` seconds."""
    began = time.perf_counter()
    for seed in seeds:
        if time.perf_counter() - began > limit_s:
            return
        yield run(Plan(seed=seed))


def warm() -> None:
    """Import and make what every run needs, once, before the first fork."""
    Simulation  # noqa: B018  # imported above
    for service in ("queue", "binder", "scheduler"):
        __import__(f"podyard.{service}.service")


def describe(verdict: Verdict) -> str:
    """A failed run, for people: what, how it came, how to see it again."""
    lines = [f"seed {verdict.seed}: {len(verdict.violations)} violations, digest {verdict.digest[:16]}"]
    lines += [f"  {text}" for text in verdict.violations[:20]]
    lines += ["trace:", *(f"  {line}" for line in verdict.trace)]
    lines.append(f"again: python -m tests.simulation --seed {verdict.seed}")
    return "\n".join(lines)
