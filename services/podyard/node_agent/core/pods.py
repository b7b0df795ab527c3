"""The pods of the agent's nodes: what each does, and what follows from what is seen of it.

`seen` brings a pod to what a reader's view says of it, whatever was known before. So it does not matter
whether a change, a new listing or a restart shows it, nor whether it comes twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from podyard.cluster.pods import PodView
from podyard.node_agent.core import annotations, containers, pod_facts, preemption, resizing
from podyard.node_agent.core.admission import Refusal, Verdict
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.containers import End, Role, VirtualContainer
from podyard.node_agent.core.effects import (
    Announce,
    Effect,
    PodEnded,
    PodPreempted,
    PodRefused,
    PodStarted,
    PutPodStatus,
    RemovePod,
    RemovePodStatus,
    StopPod,
)
from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.core.messages import ContainerEnded, ContainerStarted, Planned, Run
from podyard.node_agent.core.programs import Faults
from podyard.node_agent.core.real_pod import Order, RealPod
from podyard.node_agent.core.resizing import Pending
from podyard.node_agent.core.timers import Timers
from podyard.node_agent.core.virtual_pod import TERMINATED, Ending, State, VirtualPod
from podyard.objects import pod_requests, times
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import ENDED, Pod
from podyard.objects.pod_defaults import TERMINATION_GRACE_PERIOD_S
from podyard.proto import subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from podyard.proto.operations import Reason
from podyard.proto.traces import is_sampled

BACK_OFF: Final = Reason("BackOff")
"""Reason of the pod's event when a container waits to be started again. Source: pkg/kubelet/events/event.go,
BackOffStartContainer."""
NOT_RUN: Final = Reason("UnsupportedByProcesses")
"""Reason of a pod that a host does not run: something of it needs more than a process."""
FAILED: Final = Reason("Failed")
"""Reason of the pod's event when a container cannot be started. Source: the same, FailedToStartContainer."""
IMAGE_IGNORED: Final = Reason("ImageIgnored")
"""Reason of the pod's event that tells that its commands are those of the host."""
KILLING: Final = Reason("Killing")
"""Reason of the pod's event when a container is stopped for the node's sake. Source: events/event.go,
KillingContainer. Of pods that are deleted their objects tell it (`podyard.telling.events`)."""
REMOVED_AFTER_S: Final = 2.0
"""After its end, until the agent asks for the removal of a deleted pod: `workloads`, where it runs, has long
done it by then, for many pods at once."""
REMOVED_AGAIN_S: Final = 10.0
"""Between two such requests. Source: pkg/kubelet/status/status_manager.go, syncPeriod (v1.36.2)."""
INVALID_ANNOTATION: Final = Reason("InvalidAnnotation")
IMAGE_IGNORED_MESSAGE: Final = "images are not used: the commands of its containers are those of the host"


class Pods:
    """State: the pods by uid and by node. Every method hands out what follows, in order."""

    def __init__(
        self, usual: Pace, admit: Callable[[VirtualPod, Sequence[VirtualPod]], Verdict], real_on: str = ""
    ) -> None:
        """
        :param usual: how fast virtual containers are
        :param admit: whether its node takes a pod beside those others
        :param real_on: the node whose pods are processes; empty: none is
        """
        self._real_on = real_on
        self._orders: list[Order] = []
        """What is to be done on the host, and was not handed out yet."""
        self._found: dict[str, Sequence[Run]] = {}
        """What ran there when the term began, by uid of its pod, until it is known whose it is."""
        self._usual = usual
        self._admit = admit
        self._pods: dict[str, VirtualPod] = {}
        self._on_node: dict[str, dict[str, VirtualPod]] = {}
        self._timers: Timers[str] = Timers()
        self._leaving: Timers[str] = Timers()
        """When to ask for the removal of deleted pods that have ended, by uid."""
        self._resizing: dict[str, dict[str, VirtualPod]] = {}
        """Pods whose resize waits, by node and uid."""

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> VirtualPod | None:
        """The pod, if it is or was on one of the nodes and its object lives."""
        return self._pods.get(uid)

    def on(self, node: str) -> Iterable[VirtualPod]:
        """The pods of a node, ended ones included."""
        return self._on_node.get(node, {}).values()

    def taking_room_on(self, node: str) -> list[VirtualPod]:
        """Those pods of a node of which something runs, or will."""
        return [pod for pod in self.on(node) if pod.active]

    def active_on(self, node: str) -> list[Pod]:
        """The objects of those pods of a node of which something runs, or will."""
        return [pod.pod for pod in self.taking_room_on(node)]

    def next_due(self) -> float | None:
        """When the next pod takes a step, or is to be removed."""
        dues = [due for due in (self._timers.next_due(), self._leaving.next_due()) if due is not None]
        return min(dues, default=None)

    def seen(self, view: PodView, bound_at: float, now: float, trace: str = "") -> list[Effect]:
        """A pod is, or was, bound to one of the agent's nodes.

        :param bound_at: UTC seconds, when it was bound, as far as known
        :param trace: traceparent of what says so
        """
        found: list[Effect] = []
        pod = self._see(view, bound_at, now, found, trace)
        if pod is not None and self._asks(pod):
            self._resize(pod, now, found)
        return found

    def forget(self, uid: str, now: float, trace: str = "") -> list[Effect]:
        """The pod's object is gone, with it all that runs and the fact about it.

        :param trace: traceparent of its deletion
        """
        pod = self._drop(uid)
        if pod is None:
            return []
        found: list[Effect] = []
        if pod.active:
            pod.ended_by = pod.ended_by or trace
            _note_end(pod, TERMINATED, now, found)
        if pod.reported:
            found.append(RemovePodStatus(pod.node, pod.namespace, pod.name, pod.uid))
        self.room_on(pod.node, now, found)
        return found

    def room_on(self, node: str, now: float, found: list[Effect]) -> None:
        """Room may have come free on a node: resizes that wait for some are tried again."""
        waiting = [
            (resizing.turn(pod.allocated, pod.pod, pod.resize), uid)
            for uid, pod in self._resizing.get(node, {}).items()
            if pod.resize is not None and pod.goes_on
        ]
        for _, uid in sorted(waiting):
            pod = self._pods[uid]
            if pod.resize is not None:
                self._resize(pod, now, found)

    def take_over(self, node: str, views: Iterable[tuple[PodView, float]], now: float) -> list[Effect]:
        """See the pods of a node that has just come. What they ask for beyond what they have is judged once
        all of them take their room.

        :param views: each with when it was bound, as of `seen`
        """
        found: list[Effect] = []
        for view, bound_at in views:
            self._take_over(view, bound_at, now, found)
        for pod in self.taking_room_on(node):
            if self._asks(pod):
                self._resizing.setdefault(node, {})[pod.uid] = pod
                pod.resize = pod.resize or Pending("", now)
        self.room_on(node, now, found)
        if node == self._real_on:
            self._orders += [StopPod(uid, 0.0) for uid in self._found]
            self._found = {}
        return found

    def evict(self, uid: str, message: str, grace_s: int, now: float, *, disruption: bool = True) -> Sequence[Announce]:
        """End a pod for the node's sake; its status says so when nothing of it runs any more.

        :param disruption: whether its status gets the condition DisruptionTarget
        """
        pod = self._pods.get(uid)
        if pod is None or not pod.active:
            return ()
        told = self._killing(pod, now)
        pod.stop(Ending("Failed", REASON, message, message if disruption else ""), max(grace_s, 1), now)
        self._rearm(pod)
        return told

    def abandon(self, node: str, now: float) -> None:
        """The node is gone, or another agent's: nothing of its pods runs here. Their facts go with their
        objects."""
        for pod in self.on(node):
            pod.end(TERMINATED, now)
            self._timers.cancel(pod.uid)
            self._leaving.cancel(pod.uid)
        self._resizing.pop(node, None)

    def tick(self, now: float) -> list[Effect]:
        """Take all steps that are due."""
        found: list[Effect] = []
        for uid in self._timers.pop_due(now):
            self._step(self._pods[uid], now, found)
        for uid in self._leaving.pop_due(now):
            pod = self._pods[uid]
            self._leaving.set(uid, now + REMOVED_AGAIN_S)
            found.append(RemovePod(_about(pod), pod.node))
        return found

    # ---- what a host tells of processes --------------------------------------------------------------------

    def take_orders(self) -> Sequence[Order]:
        """What is to be done on the host; each once."""
        if not self._orders:
            return ()
        given, self._orders = self._orders, []
        return given

    def runs_found(self, runs: Mapping[str, Sequence[Run]]) -> None:
        """What runs on the host as the term begins, by uid of its pod."""
        self._found = dict(runs)

    def planned(self, message: Planned, now: float) -> list[Effect]:
        """What a pod runs is known."""
        found: list[Effect] = []
        pod = self._real(message.uid)
        if pod is None or not pod.goes_on or pod.plan is not None:
            return found
        if isinstance(message.plan, Faults):
            refusal = Refusal(NOT_RUN, message.plan.message)
            if pod.admitted:  # it runs already, and may not any more
                pod.stop(Ending("Failed", refusal.reason, refusal.message), _own_grace_s(pod), now)
            else:
                self._refuse(pod, refusal, now, found)
            self._rearm(pod)
            return found
        pod.plan = message.plan
        if not pod.admitted:
            self._accept(pod, now, found)
        self._rearm(pod)
        return found

    def container_started(self, message: ContainerStarted, now: float) -> list[Effect]:
        """A container of a host runs."""
        found: list[Effect] = []
        pod = self._real(message.uid)
        if pod is not None and pod.started(message.container, message.attempt, min(message.at, now)) and pod.goes_on:
            pod.containers.moved(now)
            self._tell(pod, (), now, found)
        return found

    def container_ended(self, message: ContainerEnded, now: float) -> list[Effect]:
        """A container of a host has ended, or could not be started."""
        found: list[Effect] = []
        pod = self._real(message.uid)
        one = None if pod is None else pod.finished(message.container, message.attempt, message.started_at)
        if pod is None or one is None:
            return found
        end = End(message.end.code, message.started_at, min(message.end.at, now), message.end.reason)
        if not pod.goes_on:
            one.finish(end.code, end.finished_at, end.reason)
            return found
        if message.end.why:
            told = f"Error: container {one.name}: {message.end.why}"
            found.append(self._announce(pod, FAILED, told, now, part=one))
        waits = pod.containers.ended(one, end, pod.pod, now)
        self._tell(pod, (one.name,) if waits else (), now, found)
        return found

    def gone(self, uid: str, now: float) -> list[Effect]:
        """Nothing of a pod runs on the host any more."""
        found: list[Effect] = []
        pod = self._real(uid)
        if pod is not None and pod.state is State.STOPPING:
            pod.gone = True
            self._end(pod, pod.ending or TERMINATED, now, found)
        return found

    def _give(self, order: Order) -> None:
        self._orders.append(order)

    def _real(self, uid: str) -> RealPod | None:
        pod = self._pods.get(uid)
        return pod if isinstance(pod, RealPod) else None

    # ----

    def _take_over(self, view: PodView, bound_at: float, now: float, found: list[Effect]) -> None:
        """See a pod as if for the first time, also if the agent abandoned it with its node before.

        Nobody else would end an abandoned pod that is still bound: a binder that has listed meanwhile never
        saw the node go.
        """
        abandoned = None if view.gone else self._drop(view.uid)
        pod = self._see(view, bound_at, now, found)
        if abandoned is not None and pod is not None:
            # the view may not know the fact about the pod yet; the fact goes with the object all the same
            pod.reported |= abandoned.reported

    def _see(
        self, view: PodView, bound_at: float, now: float, found: list[Effect], trace: str = ""
    ) -> VirtualPod | None:
        """The pod as the view says it is; None if it is gone. What it asks for anew is not judged here."""
        pod = self._pods.get(view.uid)
        if view.gone:
            found += self._orphan(view) if pod is None else self.forget(view.uid, now, trace)
            return None
        if pod is None:
            pod = self._new(view, bound_at)
            self._begin(pod, view, now, found)
        else:
            pod.pod = view.stored
        self._follow(pod, view, now, trace)
        return pod

    def _asks(self, pod: VirtualPod) -> bool:
        """Whether the pod asks for something else than it has, or no longer does and has not been told."""
        if not pod.goes_on or pod.allocated is pod.pod:
            return False
        if pod.resize is not None or resizing.wanted(pod.allocated, pod.pod):
            return True
        pod.allocated = pod.pod
        return False

    def _drop(self, uid: str) -> VirtualPod | None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        self._timers.cancel(uid)
        self._leaving.cancel(uid)
        self._settled(pod)
        if isinstance(pod, RealPod):
            pod.discard()
        on_node = self._on_node[pod.node]
        del on_node[uid]
        if not on_node:
            del self._on_node[pod.node]
        return pod

    def _new(self, view: PodView, bound_at: float) -> VirtualPod:
        trace = view.bound.trace if view.bound is not None else ""
        if self._real_on and view.node_name == self._real_on:
            pod: VirtualPod = RealPod(view.stored, view.node_name, view.usage, bound_at, trace, self._give)
        else:
            pace, _ = annotations.pace(view.stored, self._usual)
            planned = containers.planned(view.stored, pace, self._usual, bound_at)
            pod = VirtualPod(view.stored, view.node_name, view.usage, pace, planned, bound_at, trace)
        self._pods[pod.uid] = pod
        self._on_node.setdefault(pod.node, {})[pod.uid] = pod
        return pod

    def _begin(self, pod: VirtualPod, view: PodView, now: float, found: list[Effect]) -> None:
        """Go on where an agent before this one stopped, or let the node judge a new pod."""
        runs = self._found.pop(pod.uid, None) if isinstance(pod, RealPod) else None
        if view.status is not None and view.status.node == pod.node:
            self._resume(pod, view.status, runs or (), now)
        elif isinstance(pod, RealPod):
            if runs is not None:
                self._adopt(pod, runs, now)
            if view.release is not None:
                pod.end(TERMINATED, now)
        elif view.release is not None:
            pod.end(TERMINATED, now)
        else:
            self._accept(pod, now, found)
        if isinstance(pod, RealPod) and pod.goes_on:
            pod.look_up()
        self._rearm(pod)

    def _adopt(self, pod: RealPod, runs: Sequence[Run], now: float) -> None:
        """It runs already: an agent before this one has started it, and had no time to say so."""
        pod.reconcile(runs, now)
        if pod.containers.begun:
            pod.run(now)

    def _accept(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        if pod.pod.metadata.annotations:
            real = isinstance(pod, RealPod)
            faults = annotations.of_no_use(pod.pod) if real else annotations.pace(pod.pod, self._usual)[1]
            found += [self._announce(pod, INVALID_ANNOTATION, fault, now) for fault in faults]
        verdict = self._admit(pod, [other for other in self.taking_room_on(pod.node) if other is not pod])
        if isinstance(verdict, Refusal):
            self._refuse(pod, verdict, now, found)
            return
        for victim in verdict.victims:
            pod.room_at = max(pod.room_at, self._preempt(victim, verdict.short, now, found))
        if isinstance(pod, RealPod):
            pod.admitted = True
            found.append(Announce(_about(pod), pod.node, IMAGE_IGNORED, IMAGE_IGNORED_MESSAGE, now, warning=False))
        pod.begin()

    def _refuse(self, pod: VirtualPod, refusal: Refusal, now: float, found: list[Effect]) -> None:
        found.append(PodRefused(_about(pod), pod.node, refusal.reason, refusal.message, now))
        pod.end(Ending("Failed", refusal.reason, refusal.message), now)
        pod.reported = True
        found.append(PutPodStatus(pod_facts.refused(pod, refusal, now), pod.trace))

    def _preempt(self, victim: VirtualPod, short: str, now: float, found: list[Effect]) -> float:
        """End a pod for a critical one; returns when it is gone."""
        found.append(self._announce(victim, preemption.REASON, preemption.MESSAGE, now))
        found += self._killing(victim, now)
        ending = Ending("Failed", preemption.REASON, preemption.MESSAGE, preemption.DISRUPTION)
        victim.stop(ending, _own_grace_s(victim), now)
        self._rearm(victim)
        found.append(PodPreempted(short))
        return now if victim.stop_at is None else victim.stop_at

    def _resume(self, pod: VirtualPod, fact: PodStatusFact, runs: Sequence[Run], now: float) -> None:
        """:param runs: what of it was found on the host"""
        pod.reported = True
        # of an agent before this one, whose clock may have been ahead
        at = min(times.seconds_or(fact.at, now), now)
        pod.accepted_at = min(times.seconds_or(fact.start_time, pod.accepted_at), now)
        if fact.ended or fact.phase in ENDED:
            if isinstance(pod, RealPod):
                pod.made = bool(runs)
            pod.end(Ending(fact.phase, fact.reason, fact.message), at)
            return
        pod_facts.restore(pod, fact, at, now)
        if isinstance(pod, RealPod):
            pod.reconcile(runs, now)
        if fact.phase == "Running":
            pod.run(at)
        else:
            pod.begin()
        outcome = pod.containers.outcome(pod.pod)
        if outcome is not None:  # what is left of it are sidecars, which were being stopped, or nothing
            pod.stop(Ending(outcome), _own_grace_s(pod) if pod.containers.sidecars_run else 0.0, now)

    def _follow(self, pod: VirtualPod, view: PodView, now: float, trace: str) -> None:
        """End the pod if its object, or the loss of its place, asks for it."""
        if not _is_to_be_removed(view):
            self._leaving.cancel(pod.uid)
        elif pod.uid not in self._leaving:
            self._leaving.set(pod.uid, now + REMOVED_AFTER_S)
        if not pod.active:
            return
        metadata = view.stored.metadata
        if view.release is not None:
            # Its room is given away already (the node is gone, or was): nothing of it may run, and nobody
            # waits for a fact.
            pod.end(TERMINATED, now)
            self._timers.cancel(pod.uid)
        elif metadata.deletion_timestamp is not None:
            pod.ended_by = pod.ended_by or trace
            pod.stop(TERMINATED, _grace_s(metadata), now)
            self._rearm(pod)

    def _resize(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        """Give a pod what it asks for now, or say why it has to wait."""
        before, had = pod.resize, pod.usage
        self._resizing.setdefault(pod.node, {})[pod.uid] = pod
        if not resizing.wanted(pod.allocated, pod.pod):
            pod.allocated, pod.resize = pod.pod, None
            self._settled(pod)
        else:
            pod.usage = pod_requests.usage(pod.pod)
            verdict = self._admit(pod, [other for other in self.taking_room_on(pod.node) if other is not pod])
            pod.resized = True
            if isinstance(verdict, Refusal):
                pod.usage = had
                pod.resize = Pending(verdict.message, now if before is None else before.since)
                if before is None or before.why != verdict.message:
                    self._tell_resize(pod, resizing.DEFERRED, "Deferred", now, found, verdict.message)
            else:
                for victim in verdict.victims:
                    self._preempt(victim, verdict.short, now, found)
                pod.allocated, pod.resize = pod.pod, None
                self._settled(pod)
                if isinstance(pod, RealPod):
                    pod.limit()
                self._tell_resize(pod, resizing.STARTED, "started", now, found)
                self._tell_resize(pod, resizing.COMPLETED, "completed", now, found)
        if pod.resize == before and pod.usage is had and pod.resize is not None:
            return
        pod.reported = True
        found.append(PutPodStatus(pod_facts.alive(pod, now), pod.trace))
        if pod.resize is None:
            self.room_on(pod.node, now, found)

    def _tell_resize(
        self, pod: VirtualPod, reason: Reason, what: str, now: float, found: list[Effect], why: str = ""
    ) -> None:
        told = resizing.message(what, pod.pod, why)
        found.append(Announce(_about(pod), pod.node, reason, told, now, warning=bool(why)))

    def _settled(self, pod: VirtualPod) -> None:
        """Its resize waits no more."""
        waiting = self._resizing.get(pod.node)
        if waiting is not None:
            waiting.pop(pod.uid, None)
            if not waiting:
                del self._resizing[pod.node]

    def _step(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        if pod.state is State.STOPPING:
            self._end(pod, pod.ending or TERMINATED, now, found)
        elif pod.active:
            self._play(pod, now, found)

    def _play(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        """The pod's containers take their steps. What the pod is told to end with ends its sidecars, too."""
        self._tell(pod, pod.containers.step(pod.pod, now), now, found)

    def _tell(self, pod: VirtualPod, backing_off: Sequence[str], now: float, found: list[Effect]) -> None:
        """Containers began or ended: what follows for the pod, and what is said of it.

        :param backing_off: those that wait for a restart from now on
        """
        outcome = pod.containers.outcome(pod.pod)
        if outcome is not None and not pod.containers.sidecars_run:
            if isinstance(pod, RealPod):
                pod.stop(Ending(outcome), 0.0, now)
                self._rearm(pod)
            else:
                self._end(pod, Ending(outcome), now, found)
            return
        if pod.state is State.STARTING and pod.containers.begun:
            pod.run(now)
            found.append(PodStarted(pod.namespace, pod.name, pod.uid, pod.node, pod.trace, pod.accepted_at, now))
        pod.reported = True
        found.append(PutPodStatus(pod_facts.alive(pod, now), pod.trace))
        for one in pod.containers:
            if one.name in backing_off:
                told = f"Back-off restarting failed container {one.name} in pod {pod_facts.full_name(pod)}"
                found.append(self._announce(pod, BACK_OFF, told, now, part=one))
        if outcome is not None:
            pod.stop(Ending(outcome), _own_grace_s(pod), now)
        self._rearm(pod)
        if isinstance(pod, RealPod):
            pod.order()

    def _end(self, pod: VirtualPod, ending: Ending, now: float, found: list[Effect]) -> None:
        _note_end(pod, ending, now, found)
        pod.end(ending, now)
        pod.reported = True
        self._settled(pod)
        found.append(PutPodStatus(pod_facts.ended(pod, ending, now), pod.trace))
        self.room_on(pod.node, now, found)

    def _rearm(self, pod: VirtualPod) -> None:
        due = pod.due()
        if due is None:
            self._timers.cancel(pod.uid)
        else:
            self._timers.set(pod.uid, due)

    def _orphan(self, view: PodView) -> list[Effect]:
        """The object went while no agent looked: what an earlier agent said of it goes too."""
        if view.status is None:
            return []
        return [RemovePodStatus(view.status.node, view.namespace, view.name, view.uid)]

    def _announce(
        self, pod: VirtualPod, reason: Reason, message: str, now: float, *, part: VirtualContainer | None = None
    ) -> Announce:
        """:param part: the container that it is about; None: the pod"""
        field = "" if part is None else field_path(part)
        return Announce(_about(pod), pod.node, reason, message, now, field_path=field)

    def _killing(self, pod: VirtualPod, now: float) -> list[Announce]:
        """Once for each container that runs. Source: kuberuntime_container.go, killContainer."""
        if not pod.goes_on:
            return []
        about, running = _about(pod), [one for one in pod.containers if one.started_at is not None]
        return [
            Announce(
                about,
                pod.node,
                KILLING,
                f"Stopping container {one.name}",
                now,
                warning=False,
                field_path=field_path(one),
            )
            for one in running
        ]


def field_path(container: VirtualContainer) -> str:
    """A container's place in its pod. Source: pkg/kubelet/container/ref.go, fieldPath."""
    part = "containers" if container.role is Role.MAIN else "initContainers"
    return f"spec.{part}{{{container.name}}}"


def _note_end(pod: VirtualPod, ending: Ending, now: float, found: list[Effect]) -> None:
    """Before the pod has ended: tell of it, if somebody may want a span of that."""
    evicted = ending.reason == REASON
    if evicted or is_sampled(pod.ended_by) or is_sampled(pod.trace):
        since = pod.since if pod.state is State.STOPPING else now
        found.append(
            PodEnded(_about(pod), pod.node, pod.trace, pod.ended_by, since, now, ending.phase, ending.reason, evicted)
        )


def _is_to_be_removed(view: PodView) -> bool:
    """Whether somebody has deleted the pod, and nothing of it is left on its node: its object goes, but for
    finalizers, which others take away. Source: pkg/kubelet/status/status_manager.go, canBeDeleted."""
    metadata = view.stored.metadata
    if view.release is None or view.release.reason == "nodeGone" or metadata.deletion_timestamp is None:
        return False
    return not metadata.finalizers or metadata.deletion_grace_period_seconds != 0


def _about(pod: VirtualPod) -> ObjectRef:
    return ObjectRef(resource=subjects.PODS, namespace=pod.namespace, name=pod.name, uid=pod.uid)


def _own_grace_s(pod: VirtualPod) -> float:
    own = pod.pod.spec.termination_grace_period_seconds
    return TERMINATION_GRACE_PERIOD_S if own is None else own


def _grace_s(metadata: ObjectMeta) -> float:
    """Seconds that a deleted pod has from now, when its deletion is received.

    The deletion timestamp is by the clock of who deleted it, which may be hours away. Source: kubelet,
    pod_workers.go, calculateEffectiveGracePeriod looks at the seconds alone, too.
    """
    grace = metadata.deletion_grace_period_seconds
    return TERMINATION_GRACE_PERIOD_S if grace is None else grace
