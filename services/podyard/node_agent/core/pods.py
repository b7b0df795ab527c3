"""The pods of the agent's nodes: what each does, and what follows from what is seen of it.

`seen` brings a pod to what a reader's view says of it, whatever was known before. So it does not matter
whether a change, a new listing or a restart shows it, nor whether it comes twice.
"""

from collections.abc import Callable, Iterable

from podyard.cluster.pods import PodView
from podyard.node_agent.core import annotations, pod_facts
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.effects import Announce, Effect, PodStarted, PutPodStatus, RemovePodStatus
from podyard.node_agent.core.eviction.messages import REASON
from podyard.node_agent.core.timers import Timers
from podyard.node_agent.core.virtual_pod import SUCCEEDED, TERMINATED, Ending, State, VirtualPod
from podyard.objects import times
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod import Pod
from podyard.objects.pod_defaults import TERMINATION_GRACE_PERIOD_S
from podyard.proto import subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef


class Pods:
    """State: the pods by uid and by node. Every method hands out what follows, in order."""

    def __init__(self, usual: Pace, admit: Callable[[str, Pod], str]) -> None:
        """
        :param usual: how fast virtual containers are
        :param admit: why a node does not take a pod, empty if it does
        """
        self._usual = usual
        self._admit = admit
        self._pods: dict[str, VirtualPod] = {}
        self._on_node: dict[str, dict[str, VirtualPod]] = {}
        self._timers: Timers[str] = Timers()

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> VirtualPod | None:
        """The pod, if it is or was on one of the nodes and its object lives."""
        return self._pods.get(uid)

    def on(self, node: str) -> Iterable[VirtualPod]:
        """The pods of a node, ended ones included."""
        return self._on_node.get(node, {}).values()

    def active_on(self, node: str) -> list[Pod]:
        """The objects of those pods of a node of which something runs, or will."""
        return [pod.pod for pod in self.on(node) if pod.active]

    def next_due(self) -> float | None:
        """When the next pod takes a step."""
        return self._timers.next_due()

    def seen(self, view: PodView, bound_at: float, now: float) -> list[Effect]:
        """A pod is, or was, bound to one of the agent's nodes.

        :param bound_at: UTC seconds, when it was bound, as far as known
        """
        pod = self._pods.get(view.uid)
        if view.gone:
            return self._orphan(view) if pod is None else self.forget(view.uid)
        found: list[Effect] = []
        if pod is None:
            pod = self._new(view, bound_at)
            self._begin(pod, view, now, found)
        else:
            pod.pod = view.stored
        self._follow(pod, view, now)
        return found

    def forget(self, uid: str) -> list[Effect]:
        """The pod's object is gone, with it all that runs and the fact about it."""
        pod = self._drop(uid)
        if pod is None or not pod.reported:
            return []
        return [RemovePodStatus(pod.node, pod.namespace, pod.name, pod.uid)]

    def take_over(self, view: PodView, bound_at: float, now: float) -> list[Effect]:
        """See a pod of a node that has just come as if for the first time, also if the agent abandoned it
        with that node before.

        Nobody else would end an abandoned pod that is still bound: a binder that has listed meanwhile never
        saw the node go.

        :param bound_at: as of `seen`
        """
        abandoned = None if view.gone else self._drop(view.uid)
        found = self.seen(view, bound_at, now)
        if (
            abandoned is not None
        ):  # the view may not know the fact about the pod yet; the fact goes with the object all the same
            self._pods[view.uid].reported |= abandoned.reported
        return found

    def evict(self, uid: str, message: str, grace_s: int, now: float, *, disruption: bool = True) -> None:
        """End a pod for the node's sake; its status says so when nothing of it runs any more.

        :param disruption: whether its status gets the condition DisruptionTarget
        """
        pod = self._pods.get(uid)
        if pod is not None and pod.active:
            pod.stop(Ending("Failed", REASON, message, disruption=disruption), max(grace_s, 1), now)
            self._rearm(pod)

    def abandon(self, node: str, now: float) -> None:
        """The node is gone, or another agent's: nothing of its pods runs here. Their facts go with their
        objects."""
        for pod in self.on(node):
            pod.end(TERMINATED, now)
            self._timers.cancel(pod.uid)

    def tick(self, now: float) -> list[Effect]:
        """Take all steps that are due."""
        found: list[Effect] = []
        for uid in self._timers.pop_due(now):
            self._step(self._pods[uid], now, found)
        return found

    def _drop(self, uid: str) -> VirtualPod | None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        self._timers.cancel(uid)
        on_node = self._on_node[pod.node]
        del on_node[uid]
        if not on_node:
            del self._on_node[pod.node]
        return pod

    def _new(self, view: PodView, bound_at: float) -> VirtualPod:
        bound = view.bound
        pace, _ = annotations.pace(view.stored, self._usual)
        pod = VirtualPod(view.stored, view.node_name, pace, bound_at, bound.trace if bound is not None else "")
        self._pods[pod.uid] = pod
        self._on_node.setdefault(pod.node, {})[pod.uid] = pod
        return pod

    def _begin(self, pod: VirtualPod, view: PodView, now: float, found: list[Effect]) -> None:
        """Go on where an agent before this one stopped, or let the node judge a new pod."""
        if view.status is not None and view.status.node == pod.node:
            self._resume(pod, view.status, now)
        elif view.release is not None:
            pod.end(TERMINATED, now)
        else:
            self._accept(pod, now, found)
        self._rearm(pod)

    def _accept(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        if pod.pod.metadata.annotations:
            faults = annotations.pace(pod.pod, self._usual)[1]
            found += [self._announce(pod, "InvalidAnnotation", fault, now) for fault in faults]
        refusal = self._admit(pod.node, pod.pod)
        if refusal:
            found.append(self._announce(pod, REASON, refusal, now))
            self._end(pod, Ending("Failed", REASON, refusal), now, found)

    def _resume(self, pod: VirtualPod, fact: PodStatusFact, now: float) -> None:
        pod.reported = True
        # of an agent before this one, whose clock may have been ahead
        at = min(times.seconds_or(fact.at, now), now)
        pod.accepted_at = min(times.seconds_or(fact.start_time, pod.accepted_at), now)
        if fact.ended or fact.phase in ("Succeeded", "Failed"):
            pod.end(Ending(fact.phase, fact.reason, fact.message), at)
        elif fact.phase == "Running":
            pod.run(at)

    def _follow(self, pod: VirtualPod, view: PodView, now: float) -> None:
        """End the pod if its object, or the loss of its place, asks for it."""
        if not pod.active:
            return
        metadata = view.stored.metadata
        if view.release is not None:
            # Its room is given away already (the node is gone, or was): nothing of it may run, and nobody
            # waits for a fact.
            pod.end(TERMINATED, now)
            self._timers.cancel(pod.uid)
        elif metadata.deletion_timestamp is not None:
            pod.stop(TERMINATED, _grace_s(metadata), now)
            self._rearm(pod)

    def _step(self, pod: VirtualPod, now: float, found: list[Effect]) -> None:
        if pod.state is State.STARTING:
            pod.run(now)
            pod.reported = True
            found.append(PutPodStatus(pod_facts.running(pod, now), pod.trace))
            found.append(PodStarted(pod.namespace, pod.name, pod.uid, pod.node, pod.trace, pod.accepted_at, now))
            self._rearm(pod)
        elif pod.state is State.RUNNING:
            self._end(pod, SUCCEEDED, now, found)
        elif pod.state is State.STOPPING:
            self._end(pod, pod.ending or TERMINATED, now, found)

    def _end(self, pod: VirtualPod, ending: Ending, now: float, found: list[Effect]) -> None:
        pod.end(ending, now)
        pod.reported = True
        found.append(PutPodStatus(pod_facts.ended(pod, ending, now), pod.trace))

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

    def _announce(self, pod: VirtualPod, reason: str, message: str, now: float) -> Announce:
        about = ObjectRef(resource=subjects.PODS, namespace=pod.namespace, name=pod.name, uid=pod.uid)
        return Announce(about, reason, message, now)


def _grace_s(metadata: ObjectMeta) -> float:
    """Seconds that a deleted pod has from now, when its deletion is received.

    The deletion timestamp is by the clock of who deleted it, which may be hours away. Source: kubelet,
    pod_workers.go, calculateEffectiveGracePeriod looks at the seconds alone, too.
    """
    grace = metadata.deletion_grace_period_seconds
    return TERMINATION_GRACE_PERIOD_S if grace is None else grace
