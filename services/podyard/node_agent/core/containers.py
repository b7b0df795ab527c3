"""The virtual containers of one pod: when each starts, ends, and is started again.

Init containers run one after the other, each to its end; sidecars among them go on, and let the next begin
once they run; then all others start together. What ends is started again as its restart policy says: the
first time at once, then after 10 s, doubling to 5 minutes; a run of more than 10 minutes forgets all that
(docs/rules.md, restarts-back-off).

Sources: kubernetes v1.36.2, pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, doBackOff),
kuberuntime_container.go (computeInitContainerActions), pkg/api/v1/pod/util.go (ContainerShouldRestart),
client-go/util/flowcontrol/backoff.go, pkg/kubelet/kubelet_pods.go (getPhase).
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, Literal, NamedTuple

from podyard.node_agent.core import annotations
from podyard.node_agent.core.annotations import Pace
from podyard.objects.containers import Container
from podyard.objects.pod import Pod
from podyard.objects.pod_requests import is_sidecar

FIRST_BACKOFF_S: Final = 10.0
LAST_BACKOFF_S: Final = 300.0
FORGET_AFTER_S: Final = 2 * LAST_BACKOFF_S
"""Of a longer run the back-off begins anew. Source: flowcontrol.Backoff, hasExpired."""

INITIALIZING: Final = "PodInitializing"
CREATING: Final = "ContainerCreating"
CRASH_LOOP: Final = "CrashLoopBackOff"
TERM_CODE: Final = 143
"""Exit code of a container that ended when it was asked to: 128 and SIGTERM."""
KILL_CODE: Final = 137
"""Of one that did not end in time: 128 and SIGKILL."""

Outcome = Literal["Succeeded", "Failed"]


class Role(Enum):
    """When a container runs."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class End(NamedTuple):
    """One end of a container. Times in UTC seconds."""

    code: int
    started_at: float
    finished_at: float
    reason: str = ""
    """In a word, if its code does not say it."""


class VirtualContainer:
    """State of one container. It waits, runs (`started_at`), or has ended (`end`)."""

    __slots__ = (
        "backoff_s", "end", "last", "name", "pace", "ready", "restarts", "role", "started_at", "starts_at", "waits",
    )  # fmt: skip

    def __init__(self, name: str, role: Role, pace: Pace) -> None:
        self.name = name
        self.role = role
        self.pace = pace
        self.waits = INITIALIZING
        """Why it waits; empty if it does not."""
        self.starts_at: float | None = None
        """When it runs, if that is settled."""
        self.started_at: float | None = None
        """Since when it runs."""
        self.ready = False
        self.restarts = 0
        self.backoff_s = 0.0
        """How long its next restart waits; 0: it has not been started again."""
        self.end: End | None = None
        """How it ended, if it neither runs nor waits."""
        self.last: End | None = None
        """How it ended before."""

    @property
    def untouched(self) -> bool:
        """Whether it was never told to start."""
        return self.starts_at is None and self.started_at is None and self.end is None and self.last is None

    @property
    def ended_for_good(self) -> bool:
        """Whether it has ended and is not started again."""
        return self.end is not None and self.starts_at is None

    @property
    def holds_up(self) -> bool:
        """Whether what comes after it may not begin: it is an init container that has not succeeded, or a
        sidecar that never ran."""
        if self.role is Role.INIT:
            return self.end is None or bool(self.end.code)
        return self.role is Role.SIDECAR and self.started_at is None and self.end is None and self.last is None

    def due(self) -> float | None:
        """When its next step comes by itself; None if none does."""
        if self.started_at is None:
            return self.starts_at
        ends_at = None if self.pace.run_s is None else self.started_at + self.pace.run_s
        if self.ready:
            return ends_at
        ready_at = self.started_at + self.pace.ready_s
        return ready_at if ends_at is None else min(ready_at, ends_at)

    def begin(self, at: float) -> None:
        """Have it started for the first time."""
        self.waits, self.starts_at = CREATING, at + self.pace.start_s

    def run(self, now: float) -> None:
        """It runs."""
        if self.end is not None:
            self.last, self.end = self.end, None
        if self.last is not None:
            self.restarts += 1
            self.backoff_s = min(2 * self.backoff_s, LAST_BACKOFF_S) if self.backoff_s else FIRST_BACKOFF_S
        self.waits, self.starts_at, self.started_at = "", None, now
        self.ready = not self.pace.ready_s or self.role is Role.INIT

    def finish(self, code: int, now: float, reason: str = "") -> None:
        """It has ended, for good unless `restart` follows."""
        started_at = now if self.started_at is None else self.started_at
        if now - started_at > FORGET_AFTER_S:
            self.backoff_s = 0.0
        self.end = End(code, started_at, now, reason)
        self.started_at, self.starts_at, self.waits, self.ready = None, None, "", False

    def restart(self, now: float) -> bool:
        """Start it again; returns whether it has to wait for that."""
        self.starts_at = now + self.backoff_s + self.pace.start_s
        if not self.backoff_s:
            return False
        self.last, self.end, self.waits = self.end, None, CRASH_LOOP
        return True


class Containers:
    """The containers of one pod, in the order in which they start."""

    __slots__ = ("_all", "initialized_at", "ready", "ready_since")

    def __init__(self, containers: Iterable[VirtualContainer], at: float) -> None:
        """:param at: UTC seconds, since when the pod is not ready"""
        self._all = tuple(containers)
        self.initialized_at: float | None = None
        """When its init containers had done their work."""
        self.ready = False
        self.ready_since = at
        """Since when it is ready, or is not."""

    def __iter__(self) -> Iterator[VirtualContainer]:
        return iter(self._all)

    @property
    def mains(self) -> list[VirtualContainer]:
        """Those that are the pod's work."""
        return [one for one in self._all if one.role is Role.MAIN]

    @property
    def begun(self) -> bool:
        """Whether one of its containers proper runs or ran: the pod is Running."""
        return any(one.started_at is not None or one.end is not None or one.last is not None for one in self.mains)

    @property
    def sidecars_run(self) -> bool:
        """Whether a sidecar runs still, or would."""
        return any(one.role is Role.SIDECAR and not one.ended_for_good and not one.untouched for one in self._all)

    def due(self) -> float | None:
        """When the next step comes by itself; None if none does."""
        return min((due for one in self._all if (due := one.due()) is not None), default=None)

    def begin(self, at: float) -> None:
        """Have the first ones started."""
        self._let_begin(at)

    def resume(self, since: float, *, ready: bool) -> None:
        """Go on as the containers stand: the pod has been ready, or not, since then."""
        self.ready, self.ready_since = ready, since
        self._let_begin(since)

    def step(self, pod: Pod, now: float) -> list[str]:
        """Take all steps that are due; returns which containers wait for a restart from now on."""
        backing_off: list[str] = []
        while any((due := one.due()) is not None and due <= now for one in self._all):
            for one in self._all:
                due = one.due()
                if due is not None and due <= now and self._advance(one, pod, now):
                    backing_off.append(one.name)
            self._let_begin(now)
            self._note(now)
        return backing_off

    def stop(self, now: float, *, killed: bool) -> None:
        """All that run end now, because they were asked to, or were killed."""
        for one in self._all:
            if one.started_at is not None:
                one.finish(KILL_CODE if killed else TERM_CODE, now)
            elif one.waits == CRASH_LOOP:
                one.end, one.last, one.waits = one.last, None, ""
            one.starts_at = None
        self._note(now)

    def ended(self, one: VirtualContainer, end: End, pod: Pod, now: float) -> bool:
        """A container that ran has ended; whether it waits for a restart from now on."""
        one.finish(end.code, end.finished_at, end.reason)
        waits = restarts(one, pod, end.code) and one.restart(now)
        self.moved(now)
        return waits

    def moved(self, now: float) -> None:
        """One of them began or ended: others may begin, and the pod may be ready, or not any more."""
        self._let_begin(now)
        self._note(now)

    def outcome(self, pod: Pod) -> Outcome | None:
        """How the pod has ended; None while it goes on."""
        if any(one.role is Role.INIT and one.ended_for_good and one.end is not None and one.end.code for one in self):
            return "Failed"
        ends = [one.end for one in self.mains if one.ended_for_good]
        if len(ends) < len(self.mains):
            return None
        return "Failed" if any(end is not None and end.code for end in ends) else "Succeeded"

    def _advance(self, one: VirtualContainer, pod: Pod, now: float) -> bool:
        """One step of one container; whether it waits for a restart from now on."""
        if one.started_at is None:
            one.run(now)
            return False
        if one.pace.run_s is None or now < one.started_at + one.pace.run_s:
            one.ready = True
            return False
        code = one.pace.exit_code
        one.finish(code, now)
        return restarts(one, pod, code) and one.restart(now)

    def _let_begin(self, at: float) -> None:
        """Start what may start: the next init container, or all others once these have done their work."""
        for one in self._all:
            if one.role is Role.MAIN:
                break
            if one.untouched:
                one.begin(at)
            if one.holds_up:
                return
        if self.initialized_at is None:
            self.initialized_at = at
        for one in self.mains:
            if one.untouched:
                one.begin(at)

    def _note(self, now: float) -> None:
        ready = all(one.ready for one in self._all if one.role is not Role.INIT)
        if ready != self.ready:
            self.ready, self.ready_since = ready, now


def planned(pod: Pod, pace: Pace, usual: Pace, at: float) -> Containers:
    """The containers of a pod of which none has begun.

    :param pace: of its containers proper; `usual`: what holds without annotations
    :param at: UTC seconds, when it was bound
    """
    return Containers(
        (
            VirtualContainer(
                container.name,
                role,
                annotations.of_container(pod, container, pace, usual, init=role is not Role.MAIN),
            )
            for container, role in roles(pod)
        ),
        at,
    )


def restarts(one: VirtualContainer, pod: Pod, code: int) -> bool:
    """Whether a container that ended with this code is started again. Admission gives each pod a policy; what
    came past it without one is not started again."""
    if one.role is Role.SIDECAR:
        return True
    if one.role is Role.INIT and not code:
        return False
    declared = (*pod.spec.init_containers, *pod.spec.containers)
    container = next((found for found in declared if found.name == one.name), None)
    policy = pod.spec.restart_policy
    if container is not None and container.restart_policy:
        if _by_rule(container, code):
            return True
        policy = container.restart_policy
    return policy == "Always" or (policy == "OnFailure" and bool(code))


def _by_rule(container: Container, code: int) -> bool:
    """Whether one of its rules has it started again."""
    for rule in container.restart_policy_rules:
        if rule.exit_codes is None:
            continue
        listed = code in rule.exit_codes.values
        if listed if rule.exit_codes.operator == "In" else not listed:
            return True
    return False


def roles(pod: Pod) -> Iterable[tuple[Container, Role]]:
    """A pod's containers in the order in which they start."""
    for container in pod.spec.init_containers:
        yield container, Role.SIDECAR if is_sidecar(container) else Role.INIT
    for container in pod.spec.containers:
        yield container, Role.MAIN
