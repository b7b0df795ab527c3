"""What can be wrong with a policy.

::

    PolicyError     `stage` says where it was found; `errors` are the sentences, one a fault
"""

from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["decode", "validate", "default", "build"]
"""decode: the text. validate: arguments of plugins. default: the priority threshold. build: profiles and
plugins."""


class PolicyError(ValueError):
    """A policy that cannot be used. `source` names the file."""

    def __init__(self, stage: Stage, errors: tuple[str, ...], source: str = "") -> None:
        self.stage: Stage = stage
        self.errors = errors
        self.source = source
        where = f"policy {source}: " if source else "policy: "
        super().__init__(where + "; ".join(errors))
