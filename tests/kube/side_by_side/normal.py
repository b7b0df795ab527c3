"""What is the same in two runs of a command: its output without what chance and the clock put there. Pure.

Replaced are uids, times, ages, resource versions, the random and hashed ends of names, addresses that are
handed out, and the server's own. Columns are brought to one width, which names and ages decide otherwise.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

RANDOM: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of random names. Source: apimachinery v0.36.2, pkg/util/rand/rand.go, alphanums."""
HASHED: Final = "4-9bcdf"
"""Those that a hash in decimal digits becomes: rand.go, SafeEncodeString."""

_RULES: Final = tuple(
    (re.compile(expression), instead)
    for expression, instead in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", "<time>"),
        (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"(?m)^[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]", r"<log \1>"),
        (r'(resourceVersion(?:\\?")?: ?\\?")\d+', r"\1<version>"),
        (r"(Resource Version: +)\d+", r"\1<version>"),
        (r'("continue": ?)"\w+=*"', r'\1"<continue>"'),
        (r"\b127\.0\.0\.1:\d+|\blocalhost:\d+", "<server>"),
        (r"\b10\.\d+\.\d+\.\d+\b", "<address>"),
        # files that kubectl hands to diff and to the editor, and how diff says their age
        (r"/(LIVE|MERGED|kubectl-edit)-\d+", r"/\1-<id>"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [+-]\d{4}", "<time>"),
        (rf"-[{HASHED}]{{6,10}}-[{RANDOM}]{{5}}\b", "-<hash>-<id>"),
        (rf"-[{HASHED}]{{6,10}}\b", "-<hash>"),
        (rf"((?:pod-template|controller-revision)-hash(?:=|\"?: \"?))[{HASHED}]{{6,10}}\b", r"\1<hash>"),
        (rf"-[{RANDOM}]{{5}}\b", "-<id>"),
        (r"\.[0-9a-f]{16}\b", ".<id>"),
        (r"\(\d+[smhd]\w* ago\)", "(<age> ago)"),
        (r"(?m)^(Duration: +)\d+[smhd]\w*$", r"\1<age>"),
    )
)
_AGE: Final = r"(?:\d+[ydhms]){1,2}"
_ONLY_AGE: Final = re.compile(rf"{_AGE}|<invalid>")
_AGE_IN_EVENT: Final = re.compile(rf"{_AGE}(?: \(x\d+ over {_AGE}\))?")
_AGED: Final = frozenset({"AGE", "DURATION", "LAST SEEN", "FIRST SEEN", "LAST SCHEDULE"})
"""Headings of columns that say how long ago something was."""
_GAP: Final = re.compile(r" {2,}|\t+ *")


def lines(text: str, mask: Sequence[str] = ()) -> list[str]:
    """The output's lines, each as it is in every run.

    :param mask: expressions for what else differs
    """
    for expression, instead in _RULES:
        text = expression.sub(instead, text)
    for expression in mask:
        text = re.sub(expression, "<masked>", text, flags=re.MULTILINE)
    return list(_without_ages(text.splitlines()))


def _without_ages(found: Sequence[str]) -> Iterator[str]:
    aged: list[int] = []
    cells = 0
    for line in found:
        heading = _aged_columns(line)
        if heading:
            aged, cells = heading, len(_cells(line))
        elif not line.strip():
            aged = []
        yield _narrow(_masked(line, aged, cells) if aged and not heading else line)


def _aged_columns(line: str) -> list[int]:
    """Which cells of a table's heading promise an age, counted from the right: cells before may be empty."""
    cells = _cells(line)
    return [number - len(cells) for number, cell in enumerate(cells) if cell.upper() in _AGED]


def _masked(line: str, aged: Sequence[int], count: int) -> str:
    cells = _cells(line)
    wanted = [number + len(cells) for number in aged]
    if len(cells) != count:  # an empty cell: any may be meant
        wanted = list(range(len(cells)))
    for number in wanted:
        if 0 <= number < len(cells) and (_ONLY_AGE.fullmatch(cells[number]) or _AGE_IN_EVENT.fullmatch(cells[number])):
            cells[number] = "<age>"
    indent = line[: len(line) - len(line.lstrip())]
    return indent + "  ".join(cells)


def _cells(line: str) -> list[str]:
    return _GAP.split(line.strip())


def _narrow(line: str) -> str:
    """Between cells there are two spaces, whatever stands in other lines; indentation stays."""
    content = line.lstrip()
    return line[: len(line) - len(content)] + _GAP.sub("  ", content.rstrip())
