"""Arguments of the plugin DefaultEvictor. Source: pkg/framework/plugins/defaultevictor/types.go and
validation.go."""

from typing import Final, TypeAlias

import msgspec

from podyard.descheduler.core.arguments import Args, PluginArgs, PriorityThreshold, SelectorArgs
from podyard.descheduler.core.durations import Duration
from podyard.descheduler.core.policy import Count

NO_EVICTION_ANNOTATION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""On a pod, with any value: it goes last among its like, or never if the policy is Mandatory."""
PREFERRED: Final = "Preferred"
MANDATORY: Final = "Mandatory"

LOCAL_STORAGE: Final = "PodsWithLocalStorage"
SYSTEM_CRITICAL: Final = "SystemCriticalPods"
FAILED_BARE: Final = "FailedBarePods"
DAEMON_SETS: Final = "DaemonSetPods"
DEFAULT_PROTECTIONS: Final = (LOCAL_STORAGE, SYSTEM_CRITICAL, FAILED_BARE, DAEMON_SETS)
"""Protections that hold unless they are disabled, in the reference's order."""

WITH_PVC: Final = "PodsWithPVC"
WITHOUT_PDB: Final = "PodsWithoutPDB"
WITH_CLAIMS: Final = "PodsWithResourceClaims"
EXTRA_PROTECTIONS: Final = (WITH_PVC, WITHOUT_PDB, WITH_CLAIMS)
"""Protections that hold only when they are enabled."""

Protections: TypeAlias = frozenset[str]


class ProtectedStorageClass(Args, frozen=True, kw_only=True):
    """A storage class whose pods stay."""

    name: str = ""


class PodsWithPvcConfig(Args, frozen=True, kw_only=True):
    """Narrows PodsWithPVC to pods with claims of these storage classes; none given means all."""

    protected_storage_classes: tuple[ProtectedStorageClass, ...] = ()


class ProtectionsConfig(Args, frozen=True, kw_only=True):
    """Settings of single protections."""

    pods_with_pvc: PodsWithPvcConfig | None = msgspec.field(default=None, name="PodsWithPVC")


class PodProtections(Args, frozen=True, kw_only=True):
    """The new way to say which pods stay; it replaces the five flags of `DefaultEvictorArgs`."""

    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: ProtectionsConfig | None = None


class DefaultEvictorArgs(PluginArgs, frozen=True, kw_only=True):
    """Which pods may be evicted."""

    node_selector: str = ""
    """Nodes that nodeFit looks at."""
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    evict_failed_bare_pods: bool = False
    label_selector: SelectorArgs | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: Count = 0
    min_pod_age: Duration | None = None
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    pod_protections: PodProtections = PodProtections()
    no_eviction_policy: str = ""
    namespace_label_selector: SelectorArgs | None = None


def protections(args: DefaultEvictorArgs) -> Protections:
    """The protections that hold. Any entry in `podProtections` makes the flags irrelevant."""
    chosen = args.pod_protections
    if chosen.extra_enabled or chosen.default_disabled:
        return (frozenset(DEFAULT_PROTECTIONS) - set(chosen.default_disabled)) | set(chosen.extra_enabled)
    held = {
        LOCAL_STORAGE: not args.evict_local_storage_pods,
        DAEMON_SETS: not args.evict_daemon_set_pods,
        SYSTEM_CRITICAL: not args.evict_system_critical_pods,
        FAILED_BARE: not args.evict_failed_bare_pods,
        WITH_PVC: args.ignore_pvc_pods,
        WITHOUT_PDB: args.ignore_pods_without_pdb,
    }
    return frozenset(name for name, holds in held.items() if holds)


def faults(args: DefaultEvictorArgs) -> list[str]:
    """What is wrong with the arguments, worded as the reference does."""
    found: list[str] = []
    threshold = args.priority_threshold
    if threshold is not None and threshold.value is not None and threshold.name:
        found.append("priority threshold misconfigured, only one of priorityThreshold fields can be set")
    if args.no_eviction_policy not in ("", PREFERRED, MANDATORY):
        found.append(f'noEvictionPolicy accepts only ["{PREFERRED}" "{MANDATORY}"] values')
    return found + _protection_faults(args)


def _protection_faults(args: DefaultEvictorArgs) -> list[str]:
    chosen = args.pod_protections
    found: list[str] = []
    if (chosen.extra_enabled or chosen.default_disabled) and _uses_flags(args):
        found.append(
            "cannot use Deprecated fields alongside PodProtections.ExtraEnabled or PodProtections.DefaultDisabled"
        )
    listed = (
        ("ExtraEnabled", chosen.extra_enabled, EXTRA_PROTECTIONS),
        ("DefaultDisabled", chosen.default_disabled, DEFAULT_PROTECTIONS),
    )
    for where, names, known in listed:
        options = " ".join(known)
        found += [
            f'invalid pod protection policy in {where}: "{name}". Valid options are: [{options}]'
            for name in names
            if name not in known
        ]
    for where, names, _ in reversed(listed):
        if len(set(names)) < len(names):
            found.append(f"PodProtections.{where} contains duplicate entries")
    pvc = chosen.config.pods_with_pvc if chosen.config is not None else None
    if pvc is not None and WITH_PVC in chosen.extra_enabled:
        found += [
            f"PodProtections.Config.PodsWithPVC.ProtectedStorageClasses[{at}] name cannot be empty"
            for at, one in enumerate(pvc.protected_storage_classes)
            if not one.name
        ]
    return found


def _uses_flags(args: DefaultEvictorArgs) -> bool:
    return (
        args.evict_local_storage_pods
        or args.evict_daemon_set_pods
        or args.evict_system_critical_pods
        or args.ignore_pvc_pods
        or args.evict_failed_bare_pods
        or args.ignore_pods_without_pdb
    )
