"""Runs scripts with the real kubectl against two targets and says what differs.

    python -m tests.kube.side_by_side WANTED GIVEN [--script NAME]... [--all]

A target is the path of a kubeconfig, or `reference`: a control plane of Kubernetes' own, started for this
run; WANTED may also be `recorded`: the answers that are kept. Both targets have nodes node-1 to node-3.
`--all` shows each step, not only what differs. Exits with 1 if anything differs.

    python -m tests.kube.side_by_side --record

asks the reference twice, and keeps the answers of each script that are the same both times.
"""

import argparse
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from podyard.bench.programs import kubernetes
from podyard.bench.programs.go_programs import NoProgramError
from tests.kube.reference import control_plane
from tests.kube.side_by_side import recorded, running, script
from tests.kube.side_by_side.comparing import Pair, pairs
from tests.kube.side_by_side.running import Answer, Target
from tests.kube.side_by_side.script import ScriptError

DIFFERS: Final = 1
WRONG_CALL: Final = 2
REFERENCE: Final = "reference"
RECORDED: Final = "recorded"
WIDTH: Final = 160
"""Columns where there is no terminal."""

Answers = Mapping[str, Sequence[Answer]]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    :param arguments: without the program's name; those of the process if None
    :return: exit code
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    try:
        scripts = [script.load(name) for name in asked.script or script.names()]
        if asked.record:
            return _record(console, scripts)
        if len(asked.targets) != 2:
            parser.error("say two targets: WANTED GIVEN")
        wanted, given = (_answers(console, target, scripts) for target in asked.targets)
    except (ScriptError, NoProgramError) as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_CALL
    return _tell(console, scripts, wanted, given, every=asked.all)


def _record(console: Console, scripts: Sequence[script.Script]) -> int:
    first, second = (_answers(console, REFERENCE, scripts) for _ in range(2))
    kept = recorded.load() if recorded.FILE.exists() else {}
    alike = {name: answers for name, answers in first.items() if answers == second[name]}
    found = {name: alike.get(name) or kept.get(name) for name in script.names()}
    recorded.FILE.write_bytes(recorded.pack(recorded.document({name: one for name, one in found.items() if one})))
    console.print(f"{recorded.FILE}: {recorded.FILE.stat().st_size} bytes, {len(alike)} scripts asked anew")
    return _tell(console, scripts, first, second, every=False)


def _answers(console: Console, target: str, scripts: Sequence[script.Script]) -> Answers:
    if target == RECORDED:
        kept = recorded.load()
        return {one.name: kept.get(one.name, []) for one in scripts}
    found: dict[str, list[Answer]] = {}
    with _kubeconfig(target) as kubeconfig:
        asked = Target(kubernetes.find(kubernetes.KUBECTL), kubeconfig)
        for one in scripts:
            console.print(f"{target}: {one.name} ({one.title})", style="dim", soft_wrap=True)
            found[one.name] = running.run(one, asked)
    return found


@contextmanager
def _kubeconfig(target: str) -> Generator[Path]:
    if target != REFERENCE:
        yield Path(target)
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="podyard-reference-"))
        yield stack.enter_context(control_plane.running(Path(folder))).kubeconfig


def _tell(console: Console, scripts: Sequence[script.Script], wanted: Answers, given: Answers, *, every: bool) -> int:
    found = [pair for one in scripts for pair in pairs(one, wanted[one.name], given[one.name])]
    differing = [pair for pair in found if not pair.same]
    table = Table("script", "step", "kubectl", "wanted", "given", "", box=None)
    for pair in found if every else differing:
        table.add_row(*_row(pair))
    if table.row_count:
        console.print(table)
    for pair in differing:
        console.print(f"\n{pair.title}", style="bold", markup=False, soft_wrap=True)
        for line in pair.differences():
            style = {"-": "red", "+": "green"}.get(line[:1], "")
            console.print(line, style=style, markup=False, soft_wrap=True)
    console.print(f"{len(found) - len(differing)} steps are the same, {len(differing)} differ")
    return DIFFERS if differing else 0


def _row(pair: Pair) -> tuple[str, ...]:
    said = "same" if pair.same else "differs"
    codes = str(pair.wanted.code), str(pair.given.code)
    return pair.script, str(pair.number), escape(pair.step.run), *codes, said


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.kube.side_by_side", description="compare two API servers")
    found.add_argument("targets", nargs="*", metavar="TARGET", help=f"kubeconfig, `{REFERENCE}`, or `{RECORDED}`")
    found.add_argument("--script", action="append", help="this script only; may be said more than once")
    found.add_argument("--all", action="store_true", help="show each step")
    found.add_argument("--record", action="store_true", help="keep the reference's answers")
    return found


if __name__ == "__main__":
    sys.exit(main())
