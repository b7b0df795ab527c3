"""Runs a benchmark of services on an event loop, and says in words why it failed."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Given = TypeVarTuple("Given")

READY_WITHIN_S: Final = 30.0


def run(measure: Callable[[*Given], Awaitable[T]], *given: *Given) -> T:
    """What `measure` returns.

    :raises CliError: the benchmark did not come to an end
    """
    import anyio

    from podyard.bench.agent import AgentError
    from podyard.bench.basic import StalledError
    from podyard.bench.contention import UnsettledError
    from podyard.bench.growth import GrowthError
    from podyard.bench.kube import KubeError
    from podyard.bench.load import LoadError
    from podyard.bench.storm import StormError
    from podyard.cli import session
    from podyard.cli.errors import CliError

    try:
        return anyio.run(measure, *given, backend_options={"use_uvloop": True})
    except BaseExceptionGroup as group:
        cause = session.first(group)
        if isinstance(
            cause, AgentError | StalledError | GrowthError | KubeError | LoadError | StormError | UnsettledError
        ):
            raise CliError(str(cause), "see the services' logs: run it again with --data DIR") from group
        raise cause from group
