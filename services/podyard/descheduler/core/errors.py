"""What can be wrong with a policy.

::

    PolicyError     `stage` says where it was found; `faults` say in which field, `errors` are their sentences
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Stage: TypeAlias = Literal["decode", "validate", "default", "build"]
"""decode: the text. validate: arguments of plugins. default: the priority threshold. build: profiles and
plugins."""


class Fault(NamedTuple):
    """One fault: a path from the top of the file, empty for the file as a whole, and a sentence that can be
    read without it."""

    field: str
    sentence: str


class PolicyError(ValueError):
    """A policy that cannot be used. `source` names the file."""

    def __init__(self, stage: Stage, faults: Iterable[Fault | str], source: str = "") -> None:
        self.stage: Stage = stage
        self.faults = tuple(Fault("", one) if isinstance(one, str) else one for one in faults)
        self.errors = tuple(fault.sentence for fault in self.faults)
        self.source = source
        where = f"policy {source}: " if source else "policy: "
        super().__init__(where + "; ".join(self.errors))
