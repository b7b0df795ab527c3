"""Pods of one term that are processes of the host: carries out what the core orders, and tells it what became
of it. Shell.

Orders of one pod do not overtake each other: what is started waits for an end that is under way, an end for a
start. An end that is to be sooner does not wait. How a pod ended is kept on the host until that is stored: an
agent that starts meanwhile neither runs it again nor has to guess.
"""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup

from podyard.bus import BusError
from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.node_agent.core import messages, programs
from podyard.node_agent.core.effects import LimitPod, LookUpPod, StartContainer, StopPod
from podyard.node_agent.core.messages import OfProcesses, RunEnd
from podyard.node_agent.core.programs import Bounds, Faults, Plan
from podyard.node_agent.core.real_pod import UNKNOWN, Order
from podyard.node_agent.host.errors import HostError, NotStarted
from podyard.node_agent.host.processes import Processes
from podyard.node_agent.host.records import Command, Ended, Limits, PodId, Started
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.runtime.service import Service
from podyard.shell import writes

LOOK_EVERY_S: Final = 0.5
"""Between two looks for a pod's object: a replica that lags does not have it yet."""
AGAIN_S: Final = 5.0
"""Before what could not be ended is tried again."""


class _Turn:
    """What is under way of one pod."""

    def __init__(self) -> None:
        self.orders = 0
        """How many have it, those that wait included."""
        self.removing = anyio.Lock()
        self._starts = self._stops = 0
        self._changed = anyio.Event()

    async def start(self) -> None:
        """Wait until no end is under way, and begin."""
        while self._stops:
            await self._changed.wait()
        self._starts += 1

    async def stop(self) -> None:
        """Begin, as soon as no start is under way."""
        self._stops += 1
        while self._starts:
            await self._changed.wait()

    def over(self, *, start: bool) -> None:
        """One of them is."""
        self._starts -= start
        self._stops -= not start
        self._changed.set()
        self._changed = anyio.Event()


class ProcessLink:
    """Of one term, which lasts while it is entered. What runs goes on afterwards."""

    def __init__(
        self,
        service: Service[NodeAgentSettings],
        processes: Processes,
        tell: Callable[[OfProcesses], None],
        settled: Callable[[str], Awaitable[None]],
    ) -> None:
        """
        :param tell: tells the core
        :param settled: waits until what is said of the pod with this uid is stored
        """
        self._bus = service.bus
        self._log = service.log
        self._now = service.clock.now
        self._rules = service.settings.rules()
        self._processes = processes
        self._tell = tell
        self._settled = settled
        self._turns: dict[str, _Turn] = {}
        """Of pods of which something is under way, by uid."""
        self._tasks: TaskGroup = anyio.create_task_group()

    @property
    def processes(self) -> Processes:
        """What runs."""
        return self._processes

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        for note in self._processes.notes:
            self._log.warning("something was left on the host", reason=note)
        runs = {one.pod.uid: tuple(map(_run, one.containers)) for one in self._processes.found}
        self._tell(messages.Found(runs))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    def do(self, order: Order) -> None:
        """Begin to carry out an order."""
        match order:
            case LookUpPod(about):
                self._tasks.start_soon(self._look_up, about)
            case StartContainer():
                self._tasks.start_soon(self._start, order, self._turn(order.about.uid))
            case LimitPod():
                self._tasks.start_soon(self._limit, order)
            case StopPod():
                self._tasks.start_soon(self._stop, order, self._turn(order.uid))

    def _turn(self, uid: str) -> _Turn:
        turn = self._turns.setdefault(uid, _Turn())
        turn.orders += 1
        return turn

    def _over(self, uid: str, turn: _Turn, *, start: bool) -> None:
        turn.over(start=start)
        turn.orders -= 1
        if not turn.orders:
            del self._turns[uid]

    async def _look_up(self, about: ObjectRef) -> None:
        """Until its object is read, or it has gone."""
        while True:
            try:
                stored = await writes.read(self._bus, ObjectKey(about.resource, about.namespace, about.name))
                if stored is not None and stored.uid == about.uid:
                    if not stored.deleted:
                        self._tell(messages.Planned(about.uid, self._plan(about, stored)))
                    return
            except (BusError, MessageError) as error:
                self._log.warning("a pod cannot be read yet", pod=_named(about), reason=str(error))
            await anyio.sleep(LOOK_EVERY_S)

    def _plan(self, about: ObjectRef, stored: Stored) -> Plan | Faults:
        """:raises MessageError: its object cannot be read"""
        document = stored.document()
        try:
            return programs.plan(document, self._rules)
        except Exception as error:  # boundary: a pod that we stumble over is refused, the others run
            self._log.error("a pod could not be judged", pod=_named(about), exc_info=error)
            return Faults((f"spec: judging it failed ({type(error).__name__}: {error})",))

    async def _start(self, order: StartContainer, turn: _Turn) -> None:
        about, container, attempt = order.about, order.container, order.attempt
        await turn.start()
        try:
            await self._processes.make(_pod(about), _limits(order.pod_bounds))
            started = await self._processes.start(about.uid, _command(order))
        except Exception as error:  # boundary: it has failed, the others run
            why = self._told(error, "a container could not be started", pod=_named(about), container=container)
            now = self._now()
            end = RunEnd(NotStarted.code, now, NotStarted.reason, why)
            self._tell(messages.ContainerEnded(about.uid, container, attempt, now, end))
        else:
            self._tell(messages.ContainerStarted(about.uid, container, attempt, started.at))
        finally:
            self._over(about.uid, turn, start=True)

    async def _limit(self, order: LimitPod) -> None:
        about = order.about
        used = self._processes.used().get(about.uid)
        if used is None:
            return
        try:
            await self._processes.make(_pod(about), _limits(order.bounds[""]))
            for container in used.containers:
                await self._processes.limit(about.uid, container, _limits(order.bounds[container]))
        except Exception as error:  # boundary: it runs on as it did
            self._told(error, "a pod has other limits than it should", pod=_named(about))

    async def _stop(self, order: StopPod, turn: _Turn) -> None:
        """Until nothing of it is left."""
        uid, until = order.uid, anyio.current_time() + order.grace_s
        await turn.stop()
        try:
            await self._ended(uid, lambda: self._in_turn(uid, order.last, until))
            self._tell(messages.PodGone(uid))
            await self._settled(uid)
            async with turn.removing:
                await self._ended(uid, lambda: self._processes.remove(uid))
        finally:
            self._over(uid, turn, start=False)

    async def _in_turn(self, uid: str, last: Sequence[str], until: float) -> None:
        """:raises HostError: if one does not end"""
        others = [one for one in self._processes.used()[uid].containers if one not in last]
        for names in (others, *([one] for one in reversed(last))):
            await self._processes.stop(uid, max(until - anyio.current_time(), 0.0), names)

    async def _ended(self, uid: str, end: Callable[[], Awaitable[None]]) -> None:
        """Until it has worked, if there is such a pod."""
        while uid in self._processes.used():
            try:
                await end()
            except Exception as error:  # boundary: it is tried again, the others end
                if uid in self._processes.used():
                    self._told(error, "a pod does not end", uid=uid)
                    await anyio.sleep(AGAIN_S)
            else:
                return

    def _told(self, error: Exception, event: str, **more: str) -> str:
        """A sentence about what went wrong, logged: a fault of the host's as a warning, one of ours with its
        trace."""
        if isinstance(error, HostError):
            self._log.warning(event, reason=str(error), **more)
            return str(error)
        self._log.error(event, exc_info=error, **more)
        return f"{type(error).__name__}: {error}"


def told(ended: Ended) -> messages.ContainerEnded:
    """What the core is told of an end."""
    return messages.ContainerEnded(ended.pod_uid, ended.container, ended.attempt, ended.started_at, _end(ended))


def _run(found: Started | Ended) -> messages.Run:
    if isinstance(found, Started):
        return messages.Run(found.container, found.attempt, found.at)
    return messages.Run(found.container, found.attempt, found.started_at, _end(found))


def _end(ended: Ended) -> RunEnd:
    """Reasons that follow from the code are left to it."""
    if ended.code is None:
        return UNKNOWN._replace(at=ended.ended_at)
    return RunEnd(ended.code, ended.ended_at, ended.reason if ended.oom_killed else "")


def _command(order: StartContainer) -> Command:
    program = order.program
    return Command(
        container=order.container,
        argv=program.argv,
        env=program.env,
        working_dir=program.working_dir,
        uid=program.uid,
        gid=program.gid,
        groups=program.groups,
        limits=_limits(order.bounds),
        attempt=order.attempt,
    )


def _limits(bounds: Bounds) -> Limits:
    return Limits(
        memory_bytes=bounds.memory_bytes,
        cpu_request_millis=bounds.cpu_request_millis,
        cpu_limit_millis=bounds.cpu_limit_millis,
    )


def _pod(about: ObjectRef) -> PodId:
    return PodId(uid=about.uid, namespace=about.namespace, name=about.name)


def _named(about: ObjectRef) -> str:
    return f"{about.namespace}/{about.name}"
