"""From profiles to the core of one term."""

from collections.abc import Callable, Mapping, Sequence

from podyard.cluster.view import ClusterView
from podyard.framework import answers
from podyard.framework.event_registry import EventRegistry
from podyard.framework.hint_sharing import signers_of
from podyard.framework.interfaces import PreEnqueue, UsesObjects
from podyard.framework.profile import Profile
from podyard.framework.status import SUCCESS, PluginError
from podyard.objects.core import Pod
from podyard.proto.placement import BoundPod
from podyard.queue.core.gates import DEFAULT_PREEMPTION, Gate, Gates, NamedGate, PreemptionGate
from podyard.queue.core.leader import Leader
from podyard.queue.core.queue import Queue
from podyard.queue.core.scheduling_queue import SchedulingQueue
from podyard.queue.settings import QueueSettings


def registries(
    profiles: Sequence[Profile], *, extenders: bool = False, own_hints: bool = True
) -> dict[str, EventRegistry]:
    """Profile name -> its plugins' registrations.

    :param extenders: whether HTTP extenders take part
    :param own_hints: whether plugins' registrations beyond the reference's count
    """
    return {
        profile.name: EventRegistry.of_profile(profile, extenders=extenders, own_hints=own_hints)
        for profile in profiles
    }


def build_leader(
    profiles: Sequence[Profile],
    registered: Mapping[str, EventRegistry],
    settings: QueueSettings,
    *,
    epoch: int,
    view: ClusterView,
    new_trace: Callable[[bool], str],
    timer: Callable[[], float],
) -> Leader:
    """An empty queue and its protocol, as leader of `epoch`; the profiles have one QueueSort plugin in
    common.
    """
    preemptions = PreemptionGate(lambda uid: _is_going(view, uid))
    gates = Gates({profile.name: gates_of(profile, preemptions) for profile in profiles})
    for profile in profiles:
        for plugin in profile.plugins:
            if isinstance(plugin, UsesObjects):
                _show_objects(plugin, view, gates)
    queue = SchedulingQueue(
        registered,
        gates,
        backoff=settings.backoff(),
        sort_key=profiles[0].queue_sort.sort_key,
        sorter=profiles[0].queue_sort.name,
        signers={profile.name: signers_of(profile) for profile in profiles},
        timer=timer,
        max_unschedulable_s=settings.max_unschedulable_s,
    )
    return Leader(
        queue,
        epoch=epoch,
        digests={profile.name: profile.digest for profile in profiles},
        preemptions=preemptions,
        bound_node=lambda uid: _bound_node(view, uid),
        new_trace=new_trace,
        session_timeout_s=settings.session_timeout_s,
        binding_timeout_s=settings.binding_timeout_s,
    )


def build_queue(
    profiles: Sequence[Profile],
    registered: Mapping[str, EventRegistry],
    settings: QueueSettings,
    *,
    epoch: int,
    view: ClusterView,
    instance: str,
    new_trace: Callable[[bool], str],
    timer: Callable[[], float],
) -> Queue:
    """The core of one term.

    :param registered: as of `registries`
    :param instance: of this process, for people
    :param new_trace: makes a traceparent for an attempt's root span
    :param timer: measures hints, seconds
    """
    leader = build_leader(profiles, registered, settings, epoch=epoch, view=view, new_trace=new_trace, timer=timer)
    names = [profile.name for profile in profiles]
    return Queue(leader, view, names, instance=instance, linger_s=settings.pop_linger_s)


def _show_objects(plugin: UsesObjects, view: ClusterView, gates: Gates) -> None:
    """A plugin that fails here fails again when it is asked about pods."""
    try:
        plugin.use_objects(view)
    except Exception as fault:  # the boundary to plugins
        gates.faults.note(PluginError.wrapping(plugin.name, "use_objects", fault))


def gates_of(profile: Profile, preemptions: PreemptionGate) -> list[NamedGate]:
    """The profile's gates in its order. Which preemptions run only the queue knows, so its own gate answers
    for that plugin.
    """
    return [
        NamedGate(plugin.name, preemptions if plugin.name == DEFAULT_PREEMPTION else _gate(plugin))
        for plugin in profile.pre_enqueue
    ]


def _gate(plugin: PreEnqueue) -> Gate:
    def ask(pod: Pod) -> str | None:
        said = plugin.pre_enqueue(pod)
        if said is SUCCESS:
            return None
        status = answers.status(said)
        return None if status.ok else status.message

    return ask


def _is_going(view: ClusterView, uid: str) -> bool:
    pod = view.pods_by_uid.get(uid)
    return pod is None or pod.deleting or pod.released


def _bound_node(view: ClusterView, uid: str) -> str:
    placement = view.placements.get(uid)
    return placement.node if isinstance(placement, BoundPod) else ""
