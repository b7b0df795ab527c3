"""What is not allowed in a configuration: all of it at once. Stage `validate` of the reference.

Sources: pkg/scheduler/apis/config/validation/validation.go; component-base/config/validation/validation.go.
"""

from typing import Final

from podyard.configuration import args_validation, label_keys
from podyard.configuration.defaulting import sets
from podyard.configuration.errors import FieldError
from podyard.configuration.findings import Findings
from podyard.configuration.wire import (
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from podyard.objects import go_syntax

REMOVED_PLUGINS: Final = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))
_NOT_LOOKED_AT: Final = frozenset(("multiPoint", "placementGenerate", "placementScore"))
"""Points whose plugins are not compared with the removed ones."""


def errors(found: KubeSchedulerConfiguration) -> tuple[FieldError, ...]:
    """All faults of a configuration that has its defaults, in document order."""
    findings = Findings()
    if found.client_connection.burst < 0:
        findings.invalid("clientConnection.burst", found.client_connection.burst, "must be non-negative")
    _leader_election(findings, found.leader_election)
    parallelism = found.parallelism or 0
    if parallelism <= 0:
        findings.invalid("parallelism", parallelism, "should be an integer value greater than zero")
    _profiles(findings, found)
    _percentage(findings, "percentageOfNodesToScore", found.percentage_of_nodes_to_score)
    _backoff(findings, found.pod_initial_backoff_seconds or 0, found.pod_max_backoff_seconds or 0)
    _extenders(findings, found.extenders)
    return tuple(findings.found)


def _leader_election(findings: Findings, found: LeaderElection) -> None:
    """A retry period longer than the renew deadline is not noticed, and the last sentence carries the other
    duration, as there."""
    if not found.leader_elect:
        return
    seconds = go_syntax.parse_duration
    for field, duration in (
        ("leaseDuration", found.lease_duration),
        ("renewDeadline", found.renew_deadline),
        ("retryPeriod", found.retry_period),
    ):
        if seconds(duration) <= 0:
            findings.invalid_duration(f"leaderElection.{field}", duration, "must be greater than zero")
    if seconds(found.lease_duration) <= seconds(found.renew_deadline):
        detail = "must be greater than `RenewDeadline`"
        findings.invalid_duration("leaderElection.leaseDuration", found.renew_deadline, detail)
    if found.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        findings.invalid("leaderElection.resourceLock", found.resource_lock, detail)


def _percentage(findings: Findings, field: str, percentage: int | None) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        findings.invalid(field, percentage, "not in valid range [0-100]")


def _backoff(findings: Findings, initial_s: int, longest_s: int) -> None:
    if initial_s <= 0:
        findings.invalid("podInitialBackoffSeconds", initial_s, "must be greater than 0")
    if longest_s < initial_s:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        findings.invalid("podMaxBackoffSeconds", longest_s, detail)


# ---- profiles ----------------------------------------------------------------------------------------------


def _profiles(findings: Findings, found: KubeSchedulerConfiguration) -> None:
    names: set[str] = set()
    for at, profile in enumerate(found.profiles):
        path = f"profiles[{at}]"
        name = profile.scheduler_name or ""
        if not name:
            findings.required(f"{path}.schedulerName")
        _percentage(findings, f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        if profile.plugins is not None:
            _removed_plugins(findings, f"{path}.plugins", found.api_version, profile.plugins)
        _plugin_configs(findings, path, found.api_version, profile.plugin_config)
        if name in names:
            findings.duplicate_name(f"{path}.schedulerName", name)
        names.add(name)
    _common_queue_sort(findings, found.profiles)


def _removed_plugins(findings: Findings, path: str, version: str, plugins: Plugins) -> None:
    for point, plugin_set in sets(plugins).items():
        if point in _NOT_LOOKED_AT:
            continue
        for at, plugin in enumerate(plugin_set.enabled):
            if plugin.name in REMOVED_PLUGINS:
                findings.invalid(f"{path}.{point}.enabled[{at}]", plugin.name, _was_invalid(version))


def _was_invalid(version: str) -> str:
    return f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{version}")'


def _plugin_configs(findings: Findings, path: str, version: str, configs: tuple[PluginConfig, ...]) -> None:
    seen: set[str] = set()
    for at, config in enumerate(configs):
        where = f"{path}.pluginConfig[{at}]"
        if config.name in seen:
            findings.duplicate(where, config.name)
        seen.add(config.name)
        if config.name in REMOVED_PLUGINS:
            findings.invalid(where, config.name, _was_invalid(version))
        else:
            args_validation.check(findings, f"{where}.args", config)


def _common_queue_sort(findings: Findings, profiles: tuple[Profile, ...]) -> None:
    first = _queue_sort(profiles[0])
    if len(first.enabled) > 1:
        detail = "only one queue sort plugin can be enabled"
        findings.invalid("profiles[0].plugins.queueSort.Enabled", len(first.enabled), detail)
    name = first.enabled[0].name if first.enabled else ""
    args = _args(profiles[0], name)
    for at, profile in enumerate(profiles[1:], 1):
        if _queue_sort(profile) != first:
            findings.invalid(
                f"profiles[{at}].plugins.queueSort", _queue_sort(profile), "must be the same for all profiles"
            )
        for config in profile.plugin_config:
            if config.name == name and config.args != args:
                detail = "queueSort must be the same for all profiles"
                findings.invalid(f"profiles[{at}].pluginConfig.args", config.args, detail)


def _queue_sort(profile: Profile) -> PluginSet:
    return PluginSet() if profile.plugins is None else profile.plugins.queue_sort


def _args(profile: Profile, name: str) -> object:
    """The last arguments of a plugin, None if it has none or no name."""
    found = [config.args for config in profile.plugin_config if name and config.name == name]
    return found[-1] if found else None


# ---- extenders ---------------------------------------------------------------------------------------------


def _extenders(findings: Findings, extenders: tuple[Extender, ...]) -> None:
    managed: set[str] = set()
    for at, extender in enumerate(extenders):
        path = f"extenders[{at}]"
        if extender.prioritize_verb and extender.weight <= 0:
            findings.invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for place, resource in enumerate(extender.managed_resources):
            _managed_resource(findings, f"{path}.managedResources[{place}].name", resource, managed)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        findings.invalid("extenders", value, "only one extender can implement bind")


def _managed_resource(findings: Findings, field: str, resource: ManagedResource, managed: set[str]) -> None:
    faults = label_keys.key_faults(resource.name)
    for fault in faults:
        findings.invalid(field, resource.name, fault)
    if not faults and not label_keys.is_extended_resource(resource.name):
        findings.invalid(field, resource.name, "is an invalid extended resource name")
    if resource.name in managed:
        findings.invalid(field, resource.name, "duplicate extender managed resource name")
    managed.add(resource.name)
