"""The single checks of the DefaultEvictor: each says why a pod stays, or nothing.

Source: pkg/framework/plugins/defaultevictor/defaultevictor.go and constraints.go; pkg/utils/pod.go.
"""

from collections.abc import Callable
from typing import TypeAlias

from podyard.descheduler.core import evictor_args
from podyard.descheduler.core.arguments import compiled
from podyard.descheduler.core.evictor_args import DefaultEvictorArgs
from podyard.descheduler.core.state import CycleState
from podyard.objects import priority, selectors, times
from podyard.objects.errors import SelectorError
from podyard.objects.pod import Pod

Check: TypeAlias = Callable[[Pod], str]
"""Why the pod stays; empty if the check has nothing against it."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION = "kubernetes.io/config.source"


def checks(args: DefaultEvictorArgs, state: CycleState, now: float) -> list[Check]:
    """The checks of an evictor, in the reference's order.

    :raises SelectorError: if the label selector makes no sense
    """
    held = evictor_args.protections(args)
    found: list[Check] = [_mirror, _static, _terminating]
    if evictor_args.SYSTEM_CRITICAL in held:
        found += _priority(args)
    found.append(_bare if evictor_args.FAILED_BARE in held else _bare_and_not_failed)
    if evictor_args.LOCAL_STORAGE in held:
        found.append(_local_storage)
    if evictor_args.DAEMON_SETS in held:
        found.append(_daemon_set)
    if evictor_args.WITH_PVC in held:
        found.append(_claims(args, state))
    if evictor_args.WITHOUT_PDB in held:
        found.append(lambda pod: _uncovered(pod, state))
    if evictor_args.WITH_CLAIMS in held:
        found.append(_resource_claims)
    return found + _choices(args, state, now)


def _mirror(pod: Pod) -> str:
    return "pod is a mirror pod" if MIRROR_ANNOTATION in pod.metadata.annotations else ""


def _static(pod: Pod) -> str:
    return "pod is a static pod" if pod.metadata.annotations.get(SOURCE_ANNOTATION, "api") != "api" else ""


def _terminating(pod: Pod) -> str:
    return "pod is terminating" if pod.metadata.deletion_timestamp is not None else ""


def _priority(args: DefaultEvictorArgs) -> list[Check]:
    """Without this protection the priority threshold is off too."""
    threshold = args.priority_threshold.value if args.priority_threshold is not None else None

    def critical(pod: Pod) -> str:
        return "pod has system critical priority and is protected against eviction" if priority.is_critical(pod) else ""

    def above(pod: Pod) -> str:
        if threshold is None or pod.spec.priority is None or pod.spec.priority < threshold:
            return ""
        return "pod has higher priority than specified priority class threshold"

    return [critical, above]


def _bare(pod: Pod) -> str:
    return "" if pod.metadata.owner_references else "pod does not have any ownerRefs"


def _bare_and_not_failed(pod: Pod) -> str:
    if pod.metadata.owner_references or pod.status.phase == "Failed":
        return ""
    return "pod does not have any ownerRefs and is not in failed phase"


def _local_storage(pod: Pod) -> str:
    local = any(one.host_path is not None or one.empty_dir is not None for one in pod.spec.volumes)
    return "pod has local storage and is protected against eviction" if local else ""


def _daemon_set(pod: Pod) -> str:
    owned = any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)
    return "daemonset pods are protected against eviction" if owned else ""


def _resource_claims(pod: Pod) -> str:
    claimed = bool(pod.spec.resource_claims)
    return "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods" if claimed else ""


def _claims(args: DefaultEvictorArgs, state: CycleState) -> Check:
    config = args.pod_protections.config
    pvc = config.pods_with_pvc if config is not None else None
    protected = {one.name for one in pvc.protected_storage_classes} if pvc is not None else set[str]()
    return (lambda pod: _storage_class(pod, protected, state)) if protected else _any_claim


def _any_claim(pod: Pod) -> str:
    claimed = any(one.persistent_volume_claim is not None for one in pod.spec.volumes)
    return "pod with PVC is protected against eviction" if claimed else ""


def _storage_class(pod: Pod, protected: set[str], state: CycleState) -> str:
    """A claim whose class cannot be found out protects its pod too."""
    namespace = pod.metadata.namespace
    found: list[str] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = state.claims.get((namespace, name))
        if claim is None:
            return (
                f'failed to get persistent volume claim "{namespace}"/"{name}": '
                f'persistentvolumeclaim "{name}" not found'
            )
        if not claim.spec.storage_class_name:
            return f'failed to resolve storage class for pod "{namespace}"/"{name}"'
        found.append(claim.spec.storage_class_name)
    hit = next((name for name in found if name in protected), None)
    return "" if hit is None else f'pod using protected storage class "{hit}"'


def _uncovered(pod: Pod, state: CycleState) -> str:
    for budget in state.budgets(pod.metadata.namespace):
        try:
            if selectors.compile_labels(budget.spec.selector).matches(pod.metadata.labels):
                return ""
        except SelectorError:
            continue  # it covers no pod
    return "pod does not have a PodDisruptionBudget and is protected against eviction"


def _choices(args: DefaultEvictorArgs, state: CycleState, now: float) -> list[Check]:
    found: list[Check] = []
    selector = compiled(args.label_selector)
    if not selector.everything:
        found.append(
            lambda pod: (
                ""
                if selector.matches(pod.metadata.labels)
                else "pod labels do not match the labelSelector filter in the policy parameter"
            )
        )
    if args.min_replicas > 1:
        found.append(lambda pod: _too_few(pod, args.min_replicas, state))
    if args.min_pod_age is not None:
        found.append(_too_young(args, now))
    return found


def _too_few(pod: Pod, least: int, state: CycleState) -> str:
    """Only pods with exactly one owner are checked."""
    if len(pod.metadata.owner_references) != 1:
        return ""
    count = state.replicas(pod.metadata.owner_references[0].uid)
    return "" if count >= least else f"owner has {count} replicas which is less than minReplicas of {least}"


def _too_young(args: DefaultEvictorArgs, now: float) -> Check:
    age = args.min_pod_age
    assert age is not None
    sentence = f"pod age is not older than MinPodAge: &Duration{{Duration:{age},}} seconds"

    def check(pod: Pod) -> str:
        """A pod that has not started is too young, whatever the age; so is one of which nobody can say
        when."""
        started = pod.status.start_time
        try:
            return sentence if not started or now - times.seconds_of(started) < age.seconds else ""
        except ValueError:
            return f"{sentence}: its start time {started!r} is no time"

    return check
