"""What a configuration leaves out, filled in. Source: pkg/scheduler/apis/config/v1/defaults.go and
default_plugins.go."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from podyard.configuration import wire_args
from podyard.configuration.reading import NO_DURATION, Reader
from podyard.configuration.wire import (
    API_VERSION,
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from podyard.configuration.wire_args import ARGS, Args, ResourceSpec
from podyard.plugins.in_tree import IN_TREE
from podyard.proto.message import DEFAULT_SCHEDULER

ALL: Final = "*"
"""In `disabled`: all plugins."""


def with_defaults(configuration: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration with everything that the reference fills in before it validates."""
    profiles = configuration.profiles or (Profile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    profiling = _or(configuration.enable_profiling, True)
    return replace(
        configuration,
        api_version=API_VERSION,
        parallelism=_or(configuration.parallelism, 16),
        leader_election=_leader_election(configuration.leader_election),
        client_connection=_client_connection(configuration.client_connection),
        enable_profiling=profiling,
        enable_contention_profiling=_or(configuration.enable_contention_profiling, profiling),
        percentage_of_nodes_to_score=_or(configuration.percentage_of_nodes_to_score, 0),
        pod_initial_backoff_seconds=_or(configuration.pod_initial_backoff_seconds, 1),
        pod_max_backoff_seconds=_or(configuration.pod_max_backoff_seconds, 10),
        profiles=tuple(map(_profile, profiles)),
    )


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given


def _leader_election(election: LeaderElection) -> LeaderElection:
    """Source: component-base/config/v1alpha1/defaults.go (RecommendedDefaultLeaderElectionConfiguration)."""

    def duration(given: str, default: str) -> str:
        return default if given == NO_DURATION else given

    return LeaderElection(
        leader_elect=_or(election.leader_elect, True),
        lease_duration=duration(election.lease_duration, "15s"),
        renew_deadline=duration(election.renew_deadline, "10s"),
        retry_period=duration(election.retry_period, "2s"),
        resource_lock=election.resource_lock or "leases",
        resource_name=election.resource_name or "kube-scheduler",
        resource_namespace=election.resource_namespace or "kube-system",
    )


def _client_connection(connection: ClientConnection) -> ClientConnection:
    return replace(
        connection,
        content_type=connection.content_type or "application/vnd.kubernetes.protobuf",
        qps=connection.qps or 50,
        burst=connection.burst or 100,
    )


def _profile(profile: Profile) -> Profile:
    plugins = merged(profile.plugins)
    configs = [replace(config, args=default_args(config.args)) for config in profile.plugin_config]
    given = {config.name for config in configs}
    for name in sorted(set(_enabled(plugins))):
        if name in ARGS and name not in given:
            args = Reader().read({"apiVersion": API_VERSION, "kind": f"{name}Args"}, ARGS[name])
            configs.append(PluginConfig(name=name, args=default_args(args)))
    return replace(profile, scheduler_name=profile.scheduler_name or "", plugins=plugins, plugin_config=tuple(configs))


# ---- plugin sets -------------------------------------------------------------------------------------------


def sets(plugins: Plugins) -> dict[str, PluginSet]:
    """The plugin sets by extension point, as the file calls it."""
    return {point: getattr(plugins, field) for field, point in _POINTS.items()}


_POINTS: Final = dict(zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True))


def _enabled(plugins: Plugins) -> Iterator[str]:
    for plugin_set in sets(plugins).values():
        yield from (plugin.name for plugin in plugin_set.enabled)


def default_plugins() -> Plugins:
    """Source: getDefaultPlugins."""
    enabled = tuple(Plugin(name=name, weight=plugin.weight) for name, plugin in IN_TREE.items())
    return replace(Reader().read({}, Plugins), multi_point=PluginSet(enabled=enabled))


def merged(custom: Plugins | None) -> Plugins:
    """The default plugins as changed by a profile; every weight that is not given becomes 0. Source:
    mergePlugins."""
    default = sets(default_plugins())
    given = default if custom is None else sets(custom)
    return Plugins(
        **{
            field: _weighted(default[point] if custom is None else _merged_set(default[point], given[point]))
            for field, point in _POINTS.items()
        }
    )


def _merged_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Defaults that are not disabled, in their order but as re-configured; then what else is enabled. Source:
    mergePluginSet."""
    disabled = {plugin.name for plugin in custom.disabled}
    given = {plugin.name: at for at, plugin in enumerate(custom.enabled)}
    kept = () if ALL in disabled else tuple(plugin for plugin in default.enabled if plugin.name not in disabled)
    replacing = {given[plugin.name] for plugin in kept if plugin.name in given}
    enabled = [custom.enabled[given[plugin.name]] if plugin.name in given else plugin for plugin in kept]
    enabled += [plugin for at, plugin in enumerate(custom.enabled) if at not in replacing]
    return PluginSet(enabled=tuple(enabled), disabled=tuple(Plugin(name=plugin.name) for plugin in custom.disabled))


def _weighted(plugin_set: PluginSet) -> PluginSet:
    def weighted(plugins: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
        return tuple(Plugin(name=plugin.name, weight=plugin.weight or 0) for plugin in plugins)

    return PluginSet(enabled=weighted(plugin_set.enabled), disabled=weighted(plugin_set.disabled))


# ---- arguments ---------------------------------------------------------------------------------------------

CPU_AND_MEMORY: Final = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


def default_args(args: Any) -> Any:
    """Arguments with defaults; those of unknown plugins as they are."""
    fill = _FILLS.get(args.__class__)
    return args if fill is None else fill(args)


def _default_preemption(args: wire_args.DefaultPreemptionArgs) -> Args:
    return replace(
        args,
        min_candidate_nodes_percentage=_or(args.min_candidate_nodes_percentage, 10),
        min_candidate_nodes_absolute=_or(args.min_candidate_nodes_absolute, 100),
    )


def _dynamic_resources(args: wire_args.DynamicResourcesArgs) -> Args:
    return replace(
        args,
        filter_timeout=_or(args.filter_timeout, "10s"),
        binding_timeout=_or(args.binding_timeout, "10m0s"),
    )


def _inter_pod_affinity(args: wire_args.InterPodAffinityArgs) -> Args:
    return replace(args, hard_pod_affinity_weight=_or(args.hard_pod_affinity_weight, 1))


def _balanced_allocation(args: wire_args.NodeResourcesBalancedAllocationArgs) -> Args:
    return replace(args, resources=_resources(args.resources))


def _fit(args: wire_args.NodeResourcesFitArgs) -> Args:
    strategy = args.scoring_strategy or wire_args.ScoringStrategy(type="LeastAllocated")
    return replace(args, scoring_strategy=replace(strategy, resources=_resources(strategy.resources)))


def _resources(given: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(replace(spec, weight=spec.weight or 1) for spec in given) or CPU_AND_MEMORY


def _spread(args: wire_args.PodTopologySpreadArgs) -> Args:
    return replace(args, defaulting_type=args.defaulting_type or "System")


def _volume_binding(args: wire_args.VolumeBindingArgs) -> Args:
    return replace(args, bind_timeout_seconds=_or(args.bind_timeout_seconds, 600))


_FILLS: Final = cast(
    "Mapping[type[Any], Callable[[Any], Args]]",
    {
        wire_args.DefaultPreemptionArgs: _default_preemption,
        wire_args.DynamicResourcesArgs: _dynamic_resources,
        wire_args.InterPodAffinityArgs: _inter_pod_affinity,
        wire_args.NodeResourcesBalancedAllocationArgs: _balanced_allocation,
        wire_args.NodeResourcesFitArgs: _fit,
        wire_args.PodTopologySpreadArgs: _spread,
        wire_args.VolumeBindingArgs: _volume_binding,
    },
)
