"""Writes the tables of `docs/flags.md` from the table of flags: `make flags`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from podyard.cli import reference_flags
from podyard.cli.reference_flags import Flag, Holds, Ours, Refused, Taken

PAGE: Final = Path(__file__).parents[1] / "docs/flags.md"
BEGIN: Final = "<!-- {} begins: made by `make flags` -->\n"
END: Final = "<!-- {} ends -->\n"
TABLES: Final[Mapping[str, Mapping[str, Flag]]] = {
    "kube-scheduler": reference_flags.KUBE_SCHEDULER,
    "descheduler": reference_flags.DESCHEDULER_FLAGS,
}


def page(text: str) -> str:
    """The page with its tables as the code has them."""
    for name, flags in TABLES.items():
        before, _, rest = text.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        if not end:
            raise ValueError(f"docs/flags.md has no place for the table {name}")
        text = f"{before}{BEGIN.format(name)}\n{''.join(_table(flags))}\n{END.format(name)}{after}"
    return text


def _table(flags: Mapping[str, Flag]) -> Iterator[str]:
    yield "| flag | here | what it means, or why it is not taken |\n|---|---|---|\n"
    for name, flag in sorted(flags.items(), key=lambda one: (isinstance(one[1], Refused), one[0])):
        yield f"| `--{name}` | {_here(flag)} | {_said(flag)} |\n"


def _here(flag: Flag) -> str:
    if isinstance(flag, Taken | Ours):
        return f"`{flag.setting}`"
    return "as it is" if isinstance(flag, Holds) else "refused"


def _said(flag: Flag) -> str:
    if isinstance(flag, Refused):
        return flag.reason
    if isinstance(flag, Ours):
        return flag.meaning
    if isinstance(flag, Taken):
        return flag.meaning + _of(flag.services)
    on = f"true for {', '.join(sorted(flag.on))}, false for the others" if flag.on else "false only"
    return f"{'true only' if flag.on == reference_flags.ALL else on}: {flag.reason}"


def _of(services: frozenset[str]) -> str:
    return "" if services == reference_flags.ALL else f" ({', '.join(sorted(services))})"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
