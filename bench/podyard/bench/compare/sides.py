"""What is compared: the reference, and Podyard in several forms."""

from collections.abc import Sequence
from typing import Final, NamedTuple


class Side(NamedTuple):
    """One of them."""

    name: str
    """As people say it, and of its result files."""
    title: str
    """In tables."""
    words: tuple[str, ...]
    """Options of `podyard bench scheduler-perf`; those of the reference: none."""


REFERENCE: Final = Side("reference", "kube-scheduler", ())
PODYARD: Final = Side("podyard", "Podyard", ())
SYNCED: Final = Side("podyard-synced", "Podyard, nats-server with sync_interval: always", ("--sync-always",))
API: Final = Side("podyard-api", "Podyard, pods created by its api", ("--services", "api"))
WHOLE: Final = Side("podyard-all", "Podyard, all services, with virtual nodes", ("--services", "all"))
TRACED: Final = Side("podyard-traced", "Podyard, every trace kept", ("--tracing", "1"))
PACED: Final = Side("podyard-paced", "Podyard, pods created at the reference's rate", ())
"""What is compared of it is how long attempts take."""
SIDES: Final = (REFERENCE, PODYARD, SYNCED, API, WHOLE, TRACED, PACED)


class UnknownSideError(ValueError):
    """There is no such side; the text says which there are."""


def chosen(names: Sequence[str]) -> tuple[Side, ...]:
    """Sides by name, in the order in which they run: the reference first.

    :raises UnknownSideError: for a name that is none
    """
    unknown = [name for name in names if name not in {side.name for side in SIDES}]
    if unknown:
        raise UnknownSideError(
            f"no side is named {', '.join(unknown)}; there are {', '.join(side.name for side in SIDES)}"
        )
    return tuple(side for side in SIDES if side.name in names)
