"""One pod on a virtual node, and the steps its life may take.

::

    accepted --- start delay ---> RUNNING --- all containers end ---> ENDED (Succeeded, Failed)
       |                             |
       +------------- end -----------+---> STOPPING --- stop delay, at most the grace period ---> ENDED
       |                                                                                          (Failed)
       +--- refused ---> ENDED (Failed)

A pod is STARTING from its acceptance until one of its containers proper runs: `containers` has their lives.
An end is asked for by a deletion timestamp, an eviction, or the loss of its place; the first one says why it
ended, a later one may only make it sooner. When its object is gone the pod is forgotten, whatever its state.
"""

from enum import Enum
from typing import Final, NamedTuple

from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.containers import Containers
from podyard.node_agent.core.resizing import Pending
from podyard.objects.pod import Pod
from podyard.proto.facts import PodPhase
from podyard.proto.placement import Usage


class State(Enum):
    """What its containers do."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class Ending(NamedTuple):
    """How a pod ended, as its status says it. `disruption`: what the condition DisruptionTarget says, if
    somebody but its owner wanted it to end."""

    phase: PodPhase
    reason: str = ""
    message: str = ""
    disruption: str = ""


TERMINATED: Final = Ending("Failed")
"""Ended because it was deleted. Not a success, even if it had no time to fail: a Job must not count an
interrupted pod as done."""


class VirtualPod:
    """What the agent knows of one pod."""

    __slots__ = (
        "accepted_at", "allocated", "containers", "ended_by", "ending", "killed", "node", "pace", "pod", "reported", "resize",
        "resized", "room_at", "since", "state", "stop_at", "trace", "uid", "usage",
    )  # fmt: skip

    def __init__(
        self,
        pod: Pod,
        node: str,
        usage: Usage,
        pace: Pace,
        containers: Containers,
        accepted_at: float,
        trace: str = "",
    ) -> None:
        """
        :param pod: the object as its creator wrote it
        :param usage: what it takes from its node
        :param accepted_at: UTC seconds, when it was bound
        :param trace: traceparent of its binding
        """
        self.pod = pod
        self.uid = pod.metadata.uid
        self.node = node
        self.usage = usage
        self.allocated = pod
        """The object as it was when the node last took what its containers ask for."""
        self.resize: Pending | None = None
        """Why what they ask for now is not given yet; None if they have it."""
        self.resized = False
        """Whether they were ever asked to have something else."""
        self.pace = pace
        self.accepted_at = accepted_at
        self.trace = trace
        self.room_at = 0.0
        """When those are gone that went for it."""
        self.containers = containers
        self.state = State.STARTING
        self.since = accepted_at
        """When it entered its state."""
        self.stop_at: float | None = None
        """When its containers are gone, once it is STOPPING."""
        self.ended_by = ""
        """Traceparent of its deletion, once it is being deleted."""
        self.ending: Ending | None = None
        """How it will have ended, once that is known."""
        self.killed = False
        """Whether its containers do not end in time."""
        self.reported = False
        """Whether a fact about it is stored, or about to be."""

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def active(self) -> bool:
        """Whether something of it runs, or will."""
        return self.state is not State.ENDED

    @property
    def goes_on(self) -> bool:
        """Whether something of it runs, or will, and nobody has asked for its end."""
        return self.state in (State.STARTING, State.RUNNING)

    def due(self) -> float | None:
        """When its next step comes by itself; None if none does."""
        match self.state:
            case State.STARTING | State.RUNNING:
                return self.containers.due()
            case State.STOPPING:
                return self.stop_at
            case State.ENDED:
                return None

    def begin(self) -> None:
        """Have its containers started, once there is room."""
        self.containers.begin(max(self.accepted_at, self.room_at))

    def run(self, now: float) -> None:
        """One of its containers runs."""
        self.state, self.since = State.RUNNING, now

    def stop(self, ending: Ending, grace_s: float, now: float) -> None:
        """End its containers within `grace_s` seconds from now. Once it is stopping, that can only become
        sooner."""
        stop_at = now + min(self.pace.stop_s, max(grace_s, 0.0))
        if self.state is State.STOPPING and self.stop_at is not None:
            self.killed |= stop_at < self.stop_at
            self.stop_at = min(self.stop_at, stop_at)
        else:
            self.killed = grace_s < self.pace.stop_s
            self.state, self.since, self.ending, self.stop_at = State.STOPPING, now, ending, stop_at

    def end(self, ending: Ending, now: float) -> None:
        """Nothing of it runs any more."""
        self.containers.stop(now, killed=self.killed)
        self.state, self.since, self.ending, self.stop_at = State.ENDED, now, ending, None
