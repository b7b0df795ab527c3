"""A pod of a host: its containers are processes. What becomes of them is told by messages, what is to become
of them by orders.

Which container starts when, and again, is decided as for virtual ones (`containers`); here a start is an
order, and a container runs when that is confirmed. An end is one, too: the pod has ended when nothing of it
is left (docs/rules.md, a-real-pod-ends-when-nothing-of-it-runs).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from podyard.node_agent.core import containers, programs
from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.containers import Containers, End, Role, VirtualContainer
from podyard.node_agent.core.effects import LimitPod, LookUpPod, StartContainer, StopPod
from podyard.node_agent.core.messages import Run, RunEnd
from podyard.node_agent.core.programs import Plan
from podyard.node_agent.core.virtual_pod import Ending, State, VirtualPod
from podyard.objects.pod import Pod
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.proto.placement import Usage

PROCESS: Final = Pace(0.0, None, 0.0)
"""Nothing of a process is virtual."""
UNKNOWN: Final = RunEnd(137, 0.0, "ContainerStatusUnknown")
"""Of a container that ran, and of which nothing is found. Source: pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses."""

Order: TypeAlias = LookUpPod | StartContainer | LimitPod | StopPod


class RealContainer(VirtualContainer):
    """A container that is, or will be, a process."""

    __slots__ = ("attempt", "launched", "ordered")

    def __init__(self, name: str, role: Role) -> None:
        super().__init__(name, role, PROCESS)
        self.launched = False
        """It is being started."""
        self.ordered = False
        """Its start was ordered."""
        self.attempt = -1
        """Which of its runs is under way, or was the last; -1: none was."""

    @property
    def ended_for_good(self) -> bool:
        """As of a virtual one."""
        return not self.launched and super().ended_for_good

    def due(self) -> float | None:
        """When it is to be started; its end is told."""
        return None if self.launched or self.started_at is not None else self.starts_at

    def run(self, now: float) -> None:
        """Have it started: it runs when that is confirmed."""
        del now
        self.launched, self.ordered, self.starts_at = True, False, None
        self.attempt += 1

    def confirm(self, at: float) -> None:
        """It runs."""
        self.launched = self.ordered = False
        super().run(at)

    def found(self, run: Run) -> None:
        """It was started by an agent before this one, and runs."""
        self.attempt, self.restarts = run.attempt, max(self.restarts, run.attempt)
        self.end, self.waits, self.starts_at = None, "", None
        self.launched = self.ordered = False
        self.started_at, self.ready = run.started_at, self.role is not Role.INIT


class RealPod(VirtualPod):
    """What the agent knows of one pod of its host."""

    __slots__ = ("_give", "admitted", "gone", "made", "plan")

    def __init__(
        self,
        pod: Pod,
        node: str,
        usage: Usage,
        accepted_at: float,
        trace: str,
        give: Callable[[Order], None],
    ) -> None:
        """:param give: takes orders"""
        made = Containers((RealContainer(one.name, role) for one, role in containers.roles(pod)), accepted_at)
        super().__init__(pod, node, usage, PROCESS, made, accepted_at, trace)
        self._give = give
        self.plan: Plan | None = None
        """What its containers run; None: that is not known yet, and none is started."""
        self.admitted = False
        """Whether the node took it."""
        self.made = False
        """Whether something of it may be on the host."""
        self.gone = False
        """Whether nothing of it is any more."""

    @property
    def about(self) -> ObjectRef:
        """Names it."""
        return ObjectRef(resource=subjects.PODS, namespace=self.namespace, name=self.name, uid=self.uid)

    @property
    def processes(self) -> Iterator[RealContainer]:
        """Its containers."""
        return (one for one in self.containers if isinstance(one, RealContainer))

    def container(self, name: str) -> RealContainer | None:
        """One of them."""
        return next((one for one in self.processes if one.name == name), None)

    def due(self) -> float | None:
        """As of a virtual one; its end is told."""
        return self.containers.due() if self.goes_on and self.plan is not None else None

    def look_up(self) -> None:
        """Have it found out what it runs."""
        self._give(LookUpPod(self.about))

    def order(self) -> None:
        """Have those containers started that are to start."""
        plan = self.plan
        if plan is None or not self.goes_on:
            return
        wanted = [one for one in self.processes if one.launched and not one.ordered]
        limits = programs.bounds(self.allocated) if wanted else {}
        for one in wanted:
            one.ordered = self.made = True
            self._give(StartContainer(self.about, one.name, one.attempt, plan[one.name], limits[one.name], limits[""]))

    def limit(self) -> None:
        """Have what it is allowed now hold."""
        if self.made:
            self._give(LimitPod(self.about, programs.bounds(self.allocated)))

    def started(self, name: str, attempt: int, at: float) -> bool:
        """A container runs; whether that was to be."""
        one = self.container(name)
        if one is None or not one.ordered or one.attempt != attempt:
            return False
        one.confirm(at)
        return True

    def finished(self, name: str, attempt: int, started_at: float) -> RealContainer | None:
        """The container that has ended; None: that run is not known, or was told before."""
        one = self.container(name)
        if one is None or one.attempt != attempt or not (one.ordered or one.started_at is not None):
            return None
        if one.ordered:  # it ended before anybody knew that it ran
            one.confirm(started_at)
        return one

    def reconcile(self, runs: Sequence[Run], now: float) -> None:
        """Take over what was found of it on the host, beside what an agent before this one said."""
        self.made = self.admitted = True
        known = {run.container: run for run in runs}
        for one in self.processes:
            run = known.get(one.name)
            told = one.restarts if one.started_at is not None or one.end or one.last else -1
            if run is None or run.attempt < told:  # the one that was told of left nothing
                one.attempt = told
                if one.started_at is not None:
                    self._over(one, UNKNOWN._replace(at=now), now)
            elif run.end is None:
                one.found(run)
            else:
                one.attempt, one.restarts, one.started_at = run.attempt, max(one.restarts, run.attempt), run.started_at
                self._over(one, run.end, now)
        self.containers.moved(now)

    def stop(self, ending: Ending, grace_s: float, now: float) -> None:
        """Have its processes ended within so many seconds. Once it is stopping, that can only become
        sooner."""
        stop_at = now + max(grace_s, 0.0)
        if self.state is State.STOPPING and self.stop_at is not None:
            if stop_at >= self.stop_at:
                return
        else:
            self.state, self.since, self.ending = State.STOPPING, now, ending
        self.stop_at = stop_at
        sidecars = tuple(one.name for one in self.processes if one.role is Role.SIDECAR)
        self._give(StopPod(self.uid, max(grace_s, 0.0), sidecars))

    def end(self, ending: Ending, now: float) -> None:
        """Nothing of it is to run any more."""
        self.discard()
        for one in self.processes:
            one.launched = one.ordered = False
        super().end(ending, now)

    def discard(self) -> None:
        """Whatever it left on the host goes."""
        if self.made and not self.gone:
            self.gone = True
            self._give(StopPod(self.uid, 0.0))

    def _over(self, one: RealContainer, end: RunEnd, now: float) -> None:
        started_at = end.at if one.started_at is None else one.started_at
        self.containers.ended(one, End(end.code, started_at, end.at, end.reason), self.pod, now)
