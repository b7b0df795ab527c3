"""What a configuration may say without effect here: it is read, validated and written back, and told."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.configuration.defaulting import with_defaults
from podyard.configuration.reading import Reader
from podyard.configuration.wire import KubeSchedulerConfiguration

_REASONS: Final[Mapping[str, str]] = {
    "parallelism": "nodes are judged together, as arrays, not by workers side by side",
    "percentageOfNodesToScore": "all nodes are always judged",
    "clientConnection": "there is no Kubernetes API server to connect to; see the settings of NATS",
    "enableProfiling": "there is no profiling endpoint",
    "enableContentionProfiling": "there is no profiling endpoint",
    "delayCacheUntilActive": "standbys keep their view warm, so that they can take over at once",
}

_LEASES: Final[Mapping[str, str]] = {
    "leaderElect": "queue and binder lead by a lease always; any number of schedulers work at once",
    "resourceLock": "leases are messages of NATS' stream LEASES",
    "resourceName": "leases are messages of NATS' stream LEASES, by the name of the service",
    "resourceNamespace": "leases are messages of NATS' stream LEASES",
}
"""The same of fields of leaderElection; its durations are those of the leases of queue and binder."""
_ELECTION: Final = "leaderElection"


class Unused(NamedTuple):
    """A field that is set, and why that changes nothing."""

    field: str
    reason: str


def found(values: KubeSchedulerConfiguration) -> tuple[Unused, ...]:
    """The fields that differ from their defaults and have no effect, in the order of `_REASONS`; those of
    profiles last."""
    given = _plain(values)
    default = _plain(with_defaults(Reader().read({}, KubeSchedulerConfiguration)))
    top = [Unused(field, reason) for field, reason in _REASONS.items() if given.get(field) != default.get(field)]
    election, usual = given[_ELECTION], default[_ELECTION]
    top += [Unused(f"{_ELECTION}.{field}", why) for field, why in _LEASES.items() if election[field] != usual[field]]
    percentage = "percentageOfNodesToScore"
    below = [
        Unused(f"profiles[{at}].{percentage}", _REASONS[percentage])
        for at, profile in enumerate(values.profiles)
        if profile.percentage_of_nodes_to_score is not None
    ]
    return (*top, *below)


def _plain(values: KubeSchedulerConfiguration) -> dict[str, Any]:
    return msgspec.to_builtins(values)
