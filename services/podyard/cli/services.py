"""Which services there are and where their definitions live; the only place that names them all."""

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from podyard.cli.errors import InputError

if TYPE_CHECKING:
    from podyard.runtime.service import ServiceDefinition

NAMES: Final = ("api", "kube_api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads")
"""In the order in which `up` starts and shows them."""

MAY_END: Final = frozenset({"descheduler"})
"""Services that may be set to end when they have done their work; exit code 0 says that they have."""

SUPERVISED: Final = "PODYARD_SUPERVISED"
"""Set by `podyard up`: the service ends when its standard input closes, which it does when `up` is gone,
however it went.
"""


def check(name: str) -> str:
    """`name`, with `-` for `_` accepted.

    :raises InputError: if there is no such service
    """
    found = name.replace("-", "_")
    if found not in NAMES:
        raise InputError(f"no service is called {name!r}", f"there are {', '.join(NAMES)}")
    return found


def definition(name: str) -> "ServiceDefinition[Any]":
    """The `SERVICE` of a service's package; imports that package and no other.

    :raises InputError: if there is no such service
    """
    module = importlib.import_module(f"podyard.{check(name)}.service")
    return module.SERVICE


def loaded() -> list[str]:
    """Names of the services whose packages this process has loaded."""
    return [name for name in NAMES if f"podyard.{name}.service" in sys.modules]
