"""What a policy says that is allowed, and cannot be meant: it has no effect, or another than it seems. The
reference takes it without a word; here it is told, and taken."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast, get_args

import msgspec

from podyard.descheduler.core.evictor_args import DefaultEvictorArgs
from podyard.descheduler.core.metrics_providers import KUBERNETES, PROMETHEUS, wants_kubernetes
from podyard.descheduler.core.plugins import default_evictor, high_node_utilization, low_node_utilization
from podyard.descheduler.core.plugins.low_node_utilization import LowNodeUtilizationArgs
from podyard.descheduler.core.policy import Plugins, PluginSet, Policy, Profile
from podyard.objects import label_text
from podyard.objects.errors import LabelTextError
from podyard.objects.node import Node

_SETS: Final[Mapping[str, Callable[[Plugins], PluginSet]]] = {
    "presort": lambda plugins: plugins.pre_sort,
    "sort": lambda plugins: plugins.sort,
    "deschedule": lambda plugins: plugins.deschedule,
    "balance": lambda plugins: plugins.balance,
    "filter": lambda plugins: plugins.filter,
    "preevictionfilter": lambda plugins: plugins.pre_eviction_filter,
}
_RUN: Final = ("deschedule", "balance")
_ASKED: Final = (*_RUN, "filter", "preevictionfilter")


class Doubtful(NamedTuple):
    """A field, and why it cannot be meant so. `field` is a path from the top of the file."""

    field: str
    reason: str


def found(document: Mapping[str, Any], policy: Policy) -> tuple[Doubtful, ...]:
    """What can be said without a cluster.

    :param document: the file's content; empty: there is no file
    :param policy: what was made of it, not yet completed
    """
    if document and not document.get("apiVersion"):
        return (Doubtful("apiVersion", "it is missing: nothing of the file counts, and nothing is evicted"),)
    told = [Doubtful(path, "there is no such field: it is not read") for path in _unknown(document, Policy, "")]
    if not policy.profiles:
        told.append(Doubtful("profiles", "there are none: nothing is evicted"))
    for at, profile in enumerate(policy.profiles):
        told += _of_profile(f"profiles[{at}]", profile, policy)
    for at, provider in enumerate(policy.metrics_providers):
        if provider.source not in (KUBERNETES, PROMETHEUS):
            told.append(Doubtful(f"metricsProviders[{at}].source", f"no plugin knows a source {provider.source!r}"))
    return tuple(told)


def in_cluster(policy: Policy, nodes: Iterable[Node]) -> tuple[Doubtful, ...]:
    """Selectors of nodes that take none of the ready ones.

    :param policy: of stage default
    :param nodes: that are ready
    """
    listed = list(nodes)
    given = [("nodeSelector", policy.node_selector or "", "nothing is evicted")]
    for at, profile in enumerate(policy.profiles):
        for position, config in enumerate(profile.plugin_config):
            if isinstance(config.args, DefaultEvictorArgs) and config.args.node_fit:
                where = f"profiles[{at}].pluginConfig[{position}].args.nodeSelector"
                given.append((where, config.args.node_selector, "no pod of the profile fits anywhere, and all stay"))
    return tuple(
        Doubtful(where, f"{text!r} takes none of the ready nodes: {so}")
        for where, text, so in given
        if text and listed and not _takes_one(text, listed)
    )


def _takes_one(text: str, nodes: list[Node]) -> bool:
    try:
        selector = label_text.parse(text)
    except LabelTextError:
        return True  # told as a fault, where it is used
    return any(selector.matches(node.metadata.labels) for node in nodes)


def _of_profile(path: str, profile: Profile, policy: Policy) -> Iterator[Doubtful]:
    sets = {point: one(profile.plugins) for point, one in _SETS.items()}
    for point, one in sets.items():
        if point not in _ASKED and one.enabled:
            yield Doubtful(f"{path}.plugins.{point}.enabled", "no plugin has this extension point: it is not asked")
        if one.disabled:
            yield Doubtful(f"{path}.plugins.{point}.disabled", "it has no effect: a plugin runs if it is enabled")
    enabled = {point: frozenset(sets[point].enabled) for point in _ASKED}
    if not any(enabled[point] for point in _RUN):
        yield Doubtful(f"{path}.plugins", "no plugin is enabled at deschedule or balance: nothing is evicted")
    if {low_node_utilization.NAME, high_node_utilization.NAME} <= enabled["balance"]:
        told = "LowNodeUtilization moves pods to nodes that are used little, HighNodeUtilization away from them"
        yield Doubtful(f"{path}.plugins.balance.enabled", f"{told}: enable one of them")
    for at, config in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{at}]"
        named = any(config.name in names for names in enabled.values())
        if not named and config.name != default_evictor.NAME:
            yield Doubtful(where, f"{config.name} is configured and enabled nowhere: it does nothing")
        if any(config.name == other.name for other in profile.plugin_config[:at]):
            yield Doubtful(where, f"{config.name} is configured before: these arguments do not count")
        if named and isinstance(config.args, LowNodeUtilizationArgs):
            yield from _of_source(f"{where}.args.metricsUtilization", config.args, policy)


def _of_source(where: str, args: LowNodeUtilizationArgs, policy: Policy) -> Iterator[Doubtful]:
    """The reference finds it in each cycle: pkg/framework/plugins/nodeutilization/lownodeutilization.go,
    usageClientForMetrics (v0.36.0)."""
    metrics = args.metrics_utilization
    if metrics is None:
        return
    source = KUBERNETES if metrics.metrics_server else metrics.source
    so = "the plugin does nothing"
    if source == KUBERNETES:
        if not wants_kubernetes(policy):
            yield Doubtful(where, f"{KUBERNETES}: no metrics provider has this source, so {so}")
    elif source != PROMETHEUS:
        yield Doubtful(f"{where}.source", f"there is no source {source!r}, only {KUBERNETES} and {PROMETHEUS}: {so}")
    elif all(one.source != PROMETHEUS for one in policy.metrics_providers):
        yield Doubtful(where, f"{PROMETHEUS}: no metrics provider has this source, so {so}")


def _unknown(value: Any, wanted: Any, path: str) -> Iterator[str]:
    """Fields that a Struct does not have, however deep; arguments of plugins refuse such by themselves."""
    struct = next((one for one in (wanted, *get_args(wanted)) if _is_struct(one)), None)
    if struct is None:
        return
    if isinstance(value, list):
        for at, item in enumerate(cast("list[Any]", value)):
            yield from _unknown(item, struct, f"{path}[{at}]")
    if isinstance(value, dict):
        fields = {one.encode_name: one.type for one in msgspec.structs.fields(struct)}
        for name, item in cast("dict[str, Any]", value).items():
            inner = f"{path}.{name}".lstrip(".")
            if name in fields:
                yield from _unknown(item, fields[name], inner)
            elif path or name not in ("apiVersion", "kind"):
                yield inner


def _is_struct(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)
