"""The extension points that run in the binder: PreBind and Bind before the commit, PostBind after it.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (bindingCycle), framework/runtime (RunPreBindPlugins, RunBindPlugins).
"""

from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import ObjectWrite
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.framework.volume_choices import CHOSEN
from podyard.proto.placement import VolumeChoice


class Wait(NamedTuple):
    """A PreBind plugin waits."""

    plugin: str
    reasons: tuple[str, ...]
    timeout_s: float
    writes: tuple[ObjectWrite, ...] = ()
    """To become durable first, without the binding."""
    waits_for: tuple[ObjectKey, ...] = ()


class Prepared(NamedTuple):
    """What PreBind and Bind said."""

    status: Status = statuses.SUCCESS
    writes: tuple[ObjectWrite, ...] = ()
    overtaken: bool = False
    """PreBind rejected the pod: what it was to get is gone, another try may do. Everything else is an error."""
    waits: tuple[Wait, ...] = ()
    """Plugins that wait; with any, `writes` are for later, and nobody was asked to bind."""


NOTHING_TO_DO: Final = Prepared()


def prepare(
    profile: Profile,
    pod: PodView,
    cluster: Snapshot,
    node: str,
    volumes: tuple[VolumeChoice, ...] = (),
    state: CycleState | None = None,
) -> Prepared:
    """Ask PreBind, then, if none waits, who binds. Without a Bind plugin the binder itself does.

    Unlike the reference, where each plugin blocks those behind it, all are asked: so what they wait for goes on at the same time.

    :param volumes: what the decision says that the pod's claims get
    :param state: of this decision, from the first time it was asked about on
    :return: the first status that is neither SUCCESS nor WAIT, with its plugin; else who waits, and all objects to be written in the
        same commit
    """
    if not profile.pre_bind and not profile.bind:
        return NOTHING_TO_DO
    state = CycleState() if state is None else state
    if volumes:
        state.write(CHOSEN, volumes)
    writes: tuple[ObjectWrite, ...] = ()
    waits: list[Wait] = []
    for plugin in profile.pre_bind:
        try:
            answer = plugin.pre_bind(state, pod, cluster, node)
        except Exception as fault:  # boundary: a plugin's bug fails this decision, never the service
            return Prepared(_failed(plugin.name, "PreBind", fault))
        status = answer.status
        if status.code == Code.WAIT:
            waits.append(Wait(plugin.name, status.reasons, answer.timeout_s, answer.writes, answer.waits_for))
        elif not status.ok:
            return Prepared(status.by(plugin.name), overtaken=status.rejected)
        else:
            writes += answer.writes
    if waits:
        return Prepared(writes=writes, waits=tuple(waits))
    return Prepared(_who_binds(profile, state, pod, cluster, node), writes)


def _who_binds(profile: Profile, state: CycleState, pod: PodView, cluster: Snapshot, node: str) -> Status:
    for plugin in profile.bind:
        try:
            status = plugin.bind(state, pod, cluster, node)
        except Exception as fault:  # boundary: as above
            return _failed(plugin.name, "Bind", fault)
        if status.code != Code.SKIP:
            return status.by(plugin.name)
    return statuses.SUCCESS


def finish(profile: Profile, pod: PodView, cluster: Snapshot, node: str) -> list[Status]:
    """PostBind, for information; returns the failures."""
    failures: list[Status] = []
    for plugin in profile.post_bind:
        try:
            plugin.post_bind(CycleState(), pod, cluster, node)
        except Exception as fault:  # boundary: the pod is bound, whatever the plugin thinks of it
            failures.append(_failed(plugin.name, "PostBind", fault))
    return failures


def _failed(plugin: str, point: str, fault: Exception) -> Status:
    return statuses.error(str(PluginError(plugin, point, f"{type(fault).__name__}: {fault}"))).by(plugin)
