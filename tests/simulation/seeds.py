"""Many runs: each in a forked process of its own, which ends with it, so that no run knows of another."""

import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter  # the real one: runs take `time`'s
from typing import NoReturn

import msgspec
from msgspec.structs import replace

from tests.simulation.aims import Aimed
from tests.simulation.simulation import Plan, Simulation, Verdict

Sabotage = Callable[[Simulation], None]

HASH_SEED = "0"


def fix_hashes() -> None:
    """Run this program again with a fixed hash seed if it has none: sets of texts are iterated in an order
    that depends on it."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Running:
    """A run in a process of its own, begun."""

    def __init__(self, plan: Plan, sabotage: Sabotage | None = None) -> None:
        self._plan = plan
        self._reading, writing = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._reading)
            _work(plan, sabotage, writing)
        os.close(writing)

    def wait(self) -> Verdict:
        """
        :raises RuntimeError: if the simulator itself failed, with its traceback
        """
        with os.fdopen(self._reading, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(self._child, 0)
        if status:
            raise RuntimeError(f"seed {self._plan.seed}: {answer.decode(errors='replace')}")
        return msgspec.msgpack.decode(answer, type=Verdict)


def _work(plan: Plan, sabotage: Sabotage | None, writing: int) -> NoReturn:
    code = 1
    try:
        verdict = plan.run(sabotage)
        if isinstance(sabotage, Aimed):
            verdict = replace(verdict, blind=sabotage.blind(cut_short=bool(verdict.violations)))
        answer = msgspec.msgpack.encode(verdict)
        code = 0
    except BaseException:
        answer = traceback.format_exc().encode()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(answer)
    os._exit(code)


def run(plan: Plan, sabotage: Sabotage | None = None) -> Verdict:
    """One run in a process of its own.

    :raises RuntimeError: if the simulator itself failed, with its traceback
    """
    return Running(plan, sabotage).wait()


def run_all(plans: Iterable[Plan], workers: int, limit_s: float = float("inf")) -> Iterator[Verdict]:
    """Run plans, as many at once as there are workers, none begun after `limit_s` seconds; verdicts in the
    order of the plans.

    :raises RuntimeError: as `run`
    """
    began, under_way = perf_counter(), deque[Running]()
    for plan in plans:
        if len(under_way) >= workers:
            yield under_way.popleft().wait()
        if perf_counter() - began > limit_s:
            break
        under_way.append(Running(plan))
    for running in under_way:
        yield running.wait()


def warm() -> None:
    """Have everything imported, and made that is made once, before the first fork. Takes this process' time
    and chance away."""
    Simulation(Plan(seed=0, pods=12, nodes=3, faults=0)).run()


def describe(verdict: Verdict, again: str) -> str:
    """A failed run, for people: what, how it came, how to see it again.

    :param again: the options that run it again
    """
    lines = [f"seed {verdict.seed}: {len(verdict.violations)} violations, digest {verdict.digest[:16]}"]
    lines += [f"  {text}" for text in verdict.violations[:20]]
    lines += ["trace:", *(f"  {line}" for line in verdict.trace)]
    lines.append(f"again: python -m tests.simulation {again}")
    return "\n".join(lines)
