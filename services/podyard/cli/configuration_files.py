"""A configuration file that a person names, of any kind that services run by: what it says, or what is wrong
with it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from podyard.cli import scheduler_configuration


class Remark(NamedTuple):
    """A field, and what is to be said of it though the file can be used."""

    field: str
    reason: str


class Usable(NamedTuple):
    """A file that services can run by."""

    summary: list[str]
    """In short: the first goes on "is valid: "."""
    effective: Any
    """What it comes to, for programs."""
    remarks: tuple[str, tuple[Remark, ...]]
    """What programs call them, and they."""
    written: dict[str, Any]
    """The complete document."""


def load(name: str) -> Usable:
    """What a file says.

    :raises InputError: if it cannot be read
    :raises ConfigurationError: if what is in it cannot be used, with all faults of the stage that failed
    """
    text = scheduler_configuration.text_of(name)
    return _READERS[_kind(text)](text)


def _kind(text: str) -> str:
    """The kind of the first document. What cannot be read is told by who reads a KubeSchedulerConfiguration.

    :raises DecodeError: if it is none of ours
    """
    from podyard.configuration import DecodeError, Fault
    from podyard.objects import yaml_reader
    from podyard.objects.documents import is_mapping
    from podyard.objects.yaml_reader import YamlError

    try:
        first = next((one.content for one in yaml_reader.read(text.removeprefix("\ufeff"))), None)
    except YamlError:
        return SCHEDULER
    if not is_mapping(first):
        return SCHEDULER
    keys = {key.lower(): value for key, value in first.items()}
    kind, version = keys.get("kind"), keys.get("apiversion")
    if isinstance(kind, str) and kind in _READERS:
        return kind
    if kind is None and isinstance(version, str) and version in _VERSIONS:
        return _VERSIONS[version]
    taken = ", ".join(f"{one} ({of})" for of, one in _VERSIONS.items())
    raise DecodeError(Fault("kind", f"{'missing' if kind is None else f'is {kind}'}; taken are {taken}"))


def _scheduler(text: str) -> Usable:
    found = scheduler_configuration.of(text)
    effective = found.effective()
    return Usable(
        _profiles(effective, ("filter", "score", "postFilter", "bind")),
        effective,
        ("unused", tuple(Remark(*one) for one in found.unused())),
        found.written(),
    )


def _profiles(effective: Mapping[str, Any], points: tuple[str, ...]) -> list[str]:
    lines = [f"{len(effective)} {'profile' if len(effective) == 1 else 'profiles'}"]
    for profile, says in effective.items():
        named: Mapping[str, Any] = says["plugins"]
        names = {plugin["name"] for plugins in named.values() for plugin in plugins}
        counted = ", ".join(f"{point} {len(named[point])}" for point in points)
        lines.append(f"{profile}: {len(names)} plugins ({counted})")
    return lines


def _policy(text: str) -> Usable:
    from podyard.configuration import ConfigurationError, Fault
    from podyard.descheduler.core import building, doubtful, loading, registry, writing
    from podyard.descheduler.core.errors import PolicyError

    try:
        found = building.usable(text, registry.by_name())
        policy = loading.with_defaults(found.policy, None)
    except PolicyError as error:
        faults = (Fault(one.field, one.sentence.removeprefix(f"{one.field}: ")) for one in error.faults)
        raise ConfigurationError(error.stage, tuple(faults)) from error
    document = writing.written(policy)
    points = ("deschedule", "balance", "filter", "preevictionfilter")
    effective: list[dict[str, Any]] = [
        {
            "name": profile["name"],
            "plugins": {point: [{"name": name} for name in profile["plugins"][point]["enabled"]] for point in points},
        }
        for profile in document["profiles"]
    ]
    named = {one["name"] or f"profiles[{at}]": one for at, one in enumerate(effective)}
    remarks = tuple(Remark(*one) for one in doubtful.found(found.document, found.policy))
    return Usable(_profiles(named, points), effective, ("doubtful", remarks), document)


def _kubelet(text: str) -> Usable:
    from podyard.configuration import ConfigurationError, Fault
    from podyard.node_agent.core.eviction import configuration, unused
    from podyard.node_agent.core.eviction.thresholds import ThresholdError

    stage = "decode"
    try:
        document = configuration.document(text)
        found = configuration.read(document)
        stage = "validate"
        thresholds = configuration.valid(found).thresholds()
    except ThresholdError as error:
        raise ConfigurationError(stage, tuple(Fault(*one) for one in error.faults)) from error
    written = configuration.written(document)
    count = f"{len(thresholds)} {'threshold' if len(thresholds) == 1 else 'thresholds'}"
    remarks = tuple(Remark(*one) for one in unused.found(document))
    return Usable([count], written, ("unused", remarks), written)


SCHEDULER: Final = "KubeSchedulerConfiguration"
_VERSIONS: Final = {
    "kubescheduler.config.k8s.io/v1": SCHEDULER,
    "descheduler/v1alpha2": "DeschedulerPolicy",
    "kubelet.config.k8s.io/v1beta1": "KubeletConfiguration",
}
_READERS: Final[Mapping[str, Callable[[str], Usable]]] = {
    SCHEDULER: _scheduler,
    "DeschedulerPolicy": _policy,
    "KubeletConfiguration": _kubelet,
}
