"""The extension points that run in the binder: PreBind and Bind before the commit, PostBind after it.

Source: kube-scheduler v1.36.2, pkg/scheduler/schedule_one.go (bindingCycle), framework/runtime
(RunPreBindPlugins, RunBindPlugins).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.framework import answers
from podyard.framework import status as statuses
from podyard.framework.answers import NonsenseError
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import ObjectWrite, PreBind, PreBindResult
from podyard.framework.plugin_times import SUCCESS
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginError, Status
from podyard.framework.volume_choices import CHOSEN
from podyard.plugins.default_binder.plugin import DefaultBinder
from podyard.proto import subjects
from podyard.proto.placement import VolumeChoice


class Wait(NamedTuple):
    """A PreBind plugin waits."""

    plugin: str
    reasons: tuple[str, ...]
    timeout_s: float
    writes: tuple[ObjectWrite, ...] = ()
    """To become durable first, without the binding."""
    waits_for: tuple[ObjectKey, ...] = ()


class PointTime(msgspec.Struct, frozen=True, gc=False):
    """All plugins of an extension point, asked about one decision."""

    point: str
    status: str
    """Label of what they answered together."""
    profile: str
    seconds: float
    decisions: int = 1
    """Of so many decisions, that took as long each."""


class PointTimes:
    """Until somebody takes them."""

    __slots__ = ("_nobody", "_taken", "watch")

    def __init__(self, watch: Callable[[], float] = lambda: 0.0) -> None:
        """:param watch: seconds of a monotonic clock"""
        self.watch = watch
        self._taken: list[PointTime] = []
        self._nobody: dict[tuple[str, str], int] = {}
        """Decisions for which no plugin was to be asked, by extension point and profile."""

    def note(self, point: str, status: str, profile: str, started: float) -> None:
        """They have answered. :param started: by `watch`"""
        self._taken.append(PointTime(point, status, profile, self.watch() - started))

    def nobody(self, point: str, profile: str, decisions: int = 1) -> None:
        """No plugin was to be asked about so many decisions, so that it took no time."""
        key = point, profile
        self._nobody[key] = self._nobody.get(key, 0) + decisions

    def take(self) -> list[PointTime]:
        """All since last asked."""
        taken, self._taken = self._taken, []
        if self._nobody:
            taken += [PointTime(point, SUCCESS, profile, 0.0, n) for (point, profile), n in self._nobody.items()]
            self._nobody = {}
        return taken


class Prepared(NamedTuple):
    """What PreBind and Bind said."""

    status: Status = statuses.SUCCESS
    writes: tuple[ObjectWrite, ...] = ()
    overtaken: bool = False
    """PreBind rejected the pod: what it was to get is gone, another try may do. Everything else is an
    error."""
    waits: tuple[Wait, ...] = ()
    """Plugins that wait; with any, `writes` are for later, and nobody was asked to bind."""
    memory: CycleState | None = None
    """What PreBind plugins remember of the decision; None: none was asked."""


NOTHING_TO_DO: Final = Prepared()

LONGEST_NAME: Final = 253
"""Source: apimachinery, pkg/util/validation/validation.go, DNS1123SubdomainMaxLength."""
LARGEST_OBJECT: Final = 3 * 512 * 1024
"""Bytes of a document: etcd's limit for a request."""


def prepare(
    profile: Profile,
    pod: PodView,
    cluster: Snapshot,
    node: str,
    volumes: tuple[VolumeChoice, ...] = (),
    memory: CycleState | None = None,
    *,
    times: PointTimes,
) -> Prepared:
    """Ask PreBind, then, if none waits, who binds. Without a Bind plugin the binder itself does. Plugins that
    say beforehand that they have nothing to do for the pod are not asked.

    Unlike the reference, where each plugin blocks those behind it, all are asked: so what they wait for goes
    on at the same time.

    :param volumes: what the decision says that the pod's claims get
    :param memory: what PreBind plugins remember of this decision; not changed
    :param times: told how long PreBind took; what a plugin waits for is not in it
    :return: the first status that is neither SUCCESS nor WAIT, with its plugin; else who waits, and all
        objects to be written in the same commit
    """
    try:
        plugins = _pre_flight(profile, pod)
    except PluginError as fault:
        times.note("PreBind", Code.ERROR.label, profile.name, times.watch())
        return Prepared(cluster.failed(fault))
    if not plugins and _leaves_binding_to_us(profile):
        times.nobody("PreBind", profile.name)
        return NOTHING_TO_DO
    started = times.watch()
    state = CycleState() if memory is None else memory.clone()
    if volumes:
        state.write(CHOSEN, volumes)
    said = _ask_pre_bind(plugins, state, pod, cluster, node)
    if said.waits or not said.status.ok:
        status = Code.WAIT if said.waits else said.status.code
        times.note("PreBind", status.label, profile.name, started)
        return said
    times.note("PreBind", SUCCESS, profile.name, started)
    return Prepared(_who_binds(profile, state, pod, cluster, node), said.writes)


def _leaves_binding_to_us(profile: Profile) -> bool:
    """Whether no plugin is to be asked who binds: the default one, asked first, takes every pod."""
    return not profile.bind or type(profile.bind[0]) is DefaultBinder


def _pre_flight(profile: Profile, pod: PodView) -> list[PreBind]:
    """Those that are to be asked about the pod.

    :raises PluginError: if one cannot tell
    """
    found: list[PreBind] = []
    for plugin, pre_flight in profile.pre_binding:
        try:
            asks = True if pre_flight is None else pre_flight(pod)
            if asks is not False and answers.of_type(asks, bool):
                found.append(plugin)
        except Exception as fault:  # boundary: a plugin's bug fails this decision, never the service
            raise PluginError.wrapping(plugin.name, "PreBindPreFlight", fault) from fault
    return found


def _ask_pre_bind(
    plugins: Iterable[PreBind], state: CycleState, pod: PodView, cluster: Snapshot, node: str
) -> Prepared:
    writes: tuple[ObjectWrite, ...] = ()
    waits: list[Wait] = []
    for plugin in plugins:
        try:
            answer = answers.pre_bind(plugin.pre_bind(state, pod, cluster, node))
            _check_writes(answer)
        except Exception as fault:  # boundary: as above
            return Prepared(cluster.failed(PluginError.wrapping(plugin.name, "PreBind", fault)))
        status = answer.status
        if status.code == Code.WAIT:
            waits.append(Wait(plugin.name, status.reasons, answer.timeout_s, answer.writes, answer.waits_for))
        elif not status.ok:
            return Prepared(status.by(plugin.name), overtaken=status.rejected)
        else:
            writes += answer.writes
    return Prepared(writes=writes, waits=tuple(waits), memory=state)


def _who_binds(profile: Profile, state: CycleState, pod: PodView, cluster: Snapshot, node: str) -> Status:
    for plugin in profile.bind:
        try:
            status = answers.status(plugin.bind(state, pod, cluster, node))
        except Exception as fault:  # boundary: as above
            return cluster.failed(PluginError.wrapping(plugin.name, "Bind", fault))
        if status.code != Code.SKIP:
            return status.by(plugin.name)
    return statuses.SUCCESS


def finish(
    profiles: Mapping[str, Profile], bound: Iterable[tuple[str, PodView, str]], cluster: Snapshot, times: PointTimes
) -> None:
    """PostBind, for information, of all that a commit bound.

    :param bound: profile, pod and node
    """
    without: dict[str, int] = {}
    for name, pod, node in bound:
        if profiles[name].post_bind:
            _finish(profiles[name], pod, cluster, node, times)
        else:
            without[name] = without.get(name, 0) + 1
    for name, decisions in without.items():
        times.nobody("PostBind", name, decisions)


def _finish(profile: Profile, pod: PodView, cluster: Snapshot, node: str, times: PointTimes) -> None:
    started = times.watch()
    for plugin in profile.post_bind:
        try:
            plugin.post_bind(CycleState(), pod, cluster, node)
        except Exception as fault:  # boundary: the pod is bound, whatever the plugin thinks of it
            cluster.faults.note(PluginError.wrapping(plugin.name, "PostBind", fault))
    times.note("PostBind", SUCCESS, profile.name, started)


def _check_writes(answer: PreBindResult) -> None:
    """What is to be written can be, and what is waited for can be looked for.

    :raises NonsenseError: if not
    :raises TypeError, ValueError: for a document that has no JSON, or a version that is no number
    """
    for key in answer.waits_for:
        hash(answers.of_type(key, ObjectKey))
    for write in answer.writes:
        answers.of_type(write, ObjectWrite)
        if (
            max(len(answers.of_type(text, str)) for text in (write.resource, write.namespace, write.name))
            > LONGEST_NAME
        ):
            raise NonsenseError(f"wants an object written whose name has more than {LONGEST_NAME} characters")
        subjects.object_(write.resource, write.namespace, write.name).encode()
        if len(msgspec.json.encode(answers.of_type(write.document, dict))) > LARGEST_OBJECT:
            raise NonsenseError(f"wants an object written of more than {LARGEST_OBJECT} bytes")
        metadata = cast("dict[str, Any]", answers.of_type(write.document.get("metadata", {}), dict))
        int(str(metadata.get("resourceVersion", "") or "0"))
