"""One run of Podyard: `podyard bench scheduler-perf` as a process of its own, on the same file."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from podyard.bench.compare.figures import Figures
from podyard.bench.compare.outcome import Outcome, RunError
from podyard.bench.compare.rows import Row
from podyard.bench.compare.sides import PACED, Side
from podyard.bench.scheduler_perf.figures import Times
from podyard.bench.scheduler_perf.result import Streams

LIMIT_S: Final = 1800.0
"""Seconds that a run may take."""
ENDS_WITHIN_S: Final = 60.0
"""Seconds that it has to end its services after it was told to."""
TAIL: Final = 2000
PODYARD: Final = (sys.executable, "-m", "podyard.cli")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What of the command's JSON is compared: `podyard.bench.scheduler_perf.result`."""

    pods_bound: int
    seconds: float
    pods_per_second_average: float | None
    cpu_us_per_pod_by_process: dict[str, float]
    pss_mib: float
    pss_mib_by_process: dict[str, float]
    attempt: Times | None
    reaction: Times | None
    checked: str
    streams: Streams | None = None


def run(configuration: Path, row: Row, side: Side, log: Path, *, reference_rate: float | None) -> Outcome:
    """
    :param log: file that is written with what the command tells beside its result, and left if it fails
    :param reference_rate: pods a second of the reference in this pair, by which changes by the clock are
        scaled, and at which a side that is paced creates pods; `None`: objects come as the file says
    :raises RunError: with the reason; it fails, too, where what it stored is found wrong: that is a note
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    words = command(configuration, row, side, reference_rate)
    with log.open("wb") as told:
        # in a session of its own: Ctrl-C reaches it once, from here
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=told, start_new_session=True
        )
        try:
            written, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise RunError(f"{' '.join(words)} has not ended within {LIMIT_S:g} s; its log: {log}") from error
        finally:
            _end(process)
    end = log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
    if not written:
        raise RunError(f"{' '.join(words)} ended with status {process.returncode}:\n{end}")
    try:
        outcome = read(written)
    except ValueError as error:
        raise RunError(f"{' '.join(words)}: {error}:\n{end}") from error
    log.unlink()
    return outcome


def read(written: bytes) -> Outcome:
    """What the command has written. Pure.

    :raises ValueError: it is no result, or of no pods
    """
    try:
        said = msgspec.json.decode(written, type=Said)
        whole: dict[str, Any] = msgspec.json.decode(written)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"its result is not what is expected: {error}") from error
    if not said.pods_bound or said.seconds <= 0:
        raise ValueError("it bound no pods")
    figures = Figures(
        pods=said.pods_bound,
        seconds=said.seconds,
        pods_per_second=said.pods_per_second_average,
        cpu_us_per_pod=said.cpu_us_per_pod_by_process,
        memory_mib=said.pss_mib,
        resident_mib=said.pss_mib_by_process,
        attempt_mean_ms=said.attempt.mean_ms if said.attempt else None,
        attempt_p99_ms=said.attempt.p99_ms if said.attempt else None,
        reaction_p50_ms=said.reaction.p50_ms if said.reaction else None,
        reaction_p99_ms=said.reaction.p99_ms if said.reaction else None,
    )
    notes = figures.notes()
    if said.checked:
        notes.append(f"of what was left: {said.checked}")
    if said.streams is not None and said.streams.violated:
        notes.append(f"the checker found {said.streams.violated} faults: {said.streams.violations[0]}")
    return Outcome(figures, {}, notes, whole)


def command(configuration: Path, row: Row, side: Side, reference_rate: float | None) -> list[str]:
    """Its words. Pure."""
    scaled = ["--equal-churn", f"{reference_rate:.1f}"] if row.churns and reference_rate else []
    paced = ["--pace", f"{reference_rate:.1f}"] if side == PACED and reference_rate else []
    return [
        *PODYARD,
        "bench",
        "scheduler-perf",
        str(configuration),
        "--case",
        row.full_name,
        *side.words,
        *scaled,
        *paced,
        "-o",
        "json",
    ]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends what was started; the command ends its services itself, when it is interrupted."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDS_WITHIN_S)
    if process.poll() is None:
        process.kill()
        process.wait()
