"""The host of one term: it is registered as a node, read when a round of its eviction manager asks, and
listened to. Shell."""

import os
import platform
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
from anyio.abc import TaskStatus

from podyard.bus import BusError, RemoteError
from podyard.cluster import intents
from podyard.cluster.keys import ObjectKey
from podyard.node_agent.core.effects import AskHost, KillPod, StopPod
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.dialogue import DONE, Failed, Question
from podyard.node_agent.core.eviction.signals import MEMORY_AVAILABLE
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.host_node import HostAnswer
from podyard.node_agent.core.messages import Answered, Measured, Noticed, OfProcesses
from podyard.node_agent.core.real_pod import Order
from podyard.node_agent.core.registering import Machine, registered, reserved
from podyard.node_agent.host import disks, groups, hierarchies, machine
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.groups import Memory
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.notifier import Notifier
from podyard.node_agent.host.processes import Processes
from podyard.node_agent.host.readings import Readings
from podyard.node_agent.host.records import Limits, PodPlace
from podyard.node_agent.process_link import ProcessLink, told
from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.objects_api import ApplyRequest, ObjectsReply
from podyard.runtime.service import Service
from podyard.runtime.settings import SettingsError
from podyard.shell import writes

REGISTERED: Final = "node"
"""Not ready while the host is not registered as a node."""
WITHIN_S: Final = 10.0
"""How long a reading may take: a file system that does not answer holds up what asks it."""
ASK_S: Final = 5.0
"""How long the api may take to register the node."""
RETRY_S: Final = 1.0
"""Before another try."""
_GOOD: Final = ("created", "configured", "unchanged")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Go calls what the kernel calls otherwise."""


class Opened(NamedTuple):
    """The host of a process: what terms use, one after the other."""

    hierarchy: Hierarchy
    group: str
    """The cgroup that is the node; empty: the whole machine."""
    readings: Readings
    notifier: Notifier | None
    """None: nobody wakes us, we look now and then."""
    machine: Machine


def opened(service: Service[NodeAgentSettings]) -> Opened:
    """Find what there is to read.

    :raises SettingsError: if it cannot be read as the settings say
    """
    settings = service.settings
    try:
        directory = Path(settings.host_dir)
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError((f"node_agent.host_dir: {settings.host_dir} cannot be made: {error.strerror}",)) from error
    try:
        hierarchy, group = hierarchies.find(), hierarchies.checked(settings.node_cgroup)
        if group:
            hierarchy.make(group)
        readings = Readings(hierarchy, group, nodefs=directory)
        found = _machine(hierarchy, group, directory)
    except HostError as error:
        raise SettingsError((f"node_agent.node_cgroup: {error}",)) from error
    try:
        registered(None, settings.host_node, found, settings.configuration())
    except ThresholdError as error:
        raise SettingsError(tuple(f"node_agent.host_node: {fault}" for fault in error.faults)) from error
    for note in readings.notes:
        service.log.warning("the host is read otherwise", reason=note)
    return Opened(hierarchy, group, readings, _notifier(service, hierarchy, group), found)


class HostLink:
    """Of one term.

    :param tell: tells the core
    """

    def __init__(
        self,
        service: Service[NodeAgentSettings],
        host: Opened,
        tell: Callable[[Noticed | OfProcesses], None],
        settled: Callable[[str], Awaitable[None]],
    ) -> None:
        """:param settled: waits until what is said of the pod with this uid is stored"""
        self._service = service
        self._node = service.settings.host_node
        self._configuration = service.settings.configuration()
        self._host = host
        self._tell = tell
        self._settled = settled
        self._notifier = host.notifier
        self._processes: ProcessLink | None = None
        """Of pods that are processes; None: none are."""
        self._unread: tuple[str, ...] = ()
        """What could not be read of single pods the last time."""

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Register the node, and listen to the kernel, until cancelled. It has begun when the core knows what
        runs.

        :raises SettingsError: if no processes can be run, and they are to
        """
        self._service.health.set_ready(REGISTERED, False, "the host is not registered as a node yet")
        try:
            async with AsyncExitStack() as stack:
                if self._service.settings.runtime == "process":
                    await self._run_processes(stack)
                task_status.started()
                tasks = await stack.enter_async_context(anyio.create_task_group())
                tasks.start_soon(self._listen)
                await self._register()
                self._service.health.set_ready(REGISTERED, True)
                await anyio.sleep_forever()
        finally:
            self._service.health.remove(REGISTERED)

    async def answer(self, asked: AskHost) -> Answered:
        """What a round asks: every failure is an answer."""
        answer: HostAnswer = Failed(f"no answer within {WITHIN_S:g} s")
        with anyio.move_on_after(WITHIN_S):
            try:
                answer = await self._answer(asked)
            except HostError as error:
                answer = Failed(str(error))
            except Exception as error:  # boundary: nothing is known then, and the manager looks again
                self._service.log.error("a host cannot be read", exc_info=error)
                answer = Failed(f"{type(error).__name__}: {error}")
        return Answered(asked.ticket, answer)

    async def _answer(self, asked: AskHost) -> HostAnswer:
        match asked.ask:
            case Question.LAYOUT:
                return self._host.readings.layout()
            case Question.READING:
                return await self._read()
            case KillPod():
                self.do(StopPod(*asked.ask))
                return DONE
            case _:  # without images nothing is unused, and what a container leaves goes with its pod
                return DONE

    async def _read(self) -> Measured:
        """:raises HostError: if it cannot be read"""
        places: Mapping[str, PodPlace] = {} if self._processes is None else self._processes.processes.used()
        found = await self._host.readings.read(self._service.clock.now(), places)
        for why in found.unread:
            if why not in self._unread:
                self._service.log.warning("what a pod uses is not known", reason=why)
        self._unread = found.unread
        self._watch(found.memory)
        return Measured(found.summary, found.cpu.node, found.cpu.pods, found.cpu.containers, found.cpu.window_s)

    def _watch(self, memory: Memory) -> None:
        if self._notifier is None:
            return
        try:
            self._notifier.watch(memory, _amounts(self._configuration, memory.capacity or 0))
        except HostError as error:
            self._polls(error)

    def _polls(self, error: HostError) -> None:
        self._notifier = None
        self._service.log.warning("the kernel does not tell of memory: polling instead", reason=str(error))

    # ---- processes -----------------------------------------------------------------------------------------

    def do(self, order: Order) -> None:
        """Begin to carry out what the core orders of a pod."""
        assert self._processes is not None, "pods of a host that runs none are virtual"
        self._processes.do(order)

    async def _run_processes(self, stack: AsyncExitStack) -> None:
        """:raises SettingsError: if none can be run"""
        settings, host = self._service.settings, self._host
        try:
            processes = Processes(
                host.hierarchy,
                host.group,
                Path(settings.host_dir),
                tell=lambda ended: self._tell(told(ended)),
                now=self._service.clock.now,
                allow_root=settings.allow_root,
            )
            await stack.enter_async_context(processes)
            left = host.machine.memory_bytes - reserved("memory", self._configuration)
            await processes.limit_all(Limits(memory_bytes=max(left, 0)))
        except HostError as error:
            raise SettingsError((f"node_agent.runtime: process: {error}",)) from error
        link = ProcessLink(self._service, processes, self._tell, self._settled)
        self._processes = await stack.enter_async_context(link)

    # ---- the kernel ----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while self._notifier is not None:
            try:
                why = await self._notifier.wait()
            except HostError as error:
                self._polls(error)
                return
            self._service.log.info("the kernel tells of memory", why=why)
            self._tell(Noticed(self._node))

    # ---- the node's object ---------------------------------------------------------------------------------

    async def _register(self) -> None:
        """Until the node's object says what the host has."""
        while True:
            try:
                why = await self._registered()
            except (BusError, MessageError) as error:
                why = error.reason if isinstance(error, RemoteError) else str(error)
            if not why:
                self._service.log.info("registered the host", node=self._node, **self._host.machine._asdict())
                return
            self._service.health.set_ready(REGISTERED, False, f"the host is not registered as a node: {why}")
            await anyio.sleep(RETRY_S)

    async def _registered(self) -> str:
        """Why it is not; empty: it is.

        :raises BusError: nobody answers
        :raises MessageError: what is stored, or the answer, cannot be read
        """
        stored = intents.living(await writes.read(self._service.bus, ObjectKey(subjects.NODES, "", self._node)))
        document: dict[str, Any] | None = None
        if stored is not None:
            document = stored.document()
            document["metadata"]["resourceVersion"] = str(stored.sequence)
        wanted = registered(document, self._node, self._host.machine, self._configuration)
        if wanted == document:
            return ""
        request = ApplyRequest(
            objects=(msgspec.Raw(msgspec.json.encode(wanted)),), who=self._service.name, why="registers its host"
        )
        answer = await self._service.bus.request(
            subjects.node_apply(self._node), codec.encode(request), timeout_s=ASK_S
        )
        reply = codec.decode(ObjectsReply, answer.payload)
        if reply.refused:
            return reply.refused
        return "; ".join(
            one.message or "; ".join(f"{fault.field}: {fault.detail}" for fault in one.errors) or one.outcome
            for one in reply.results
            if one.outcome not in _GOOD
        )


def _amounts(configuration: KubeletConfiguration, capacity: int) -> set[int]:
    """What must be left of memory, by each threshold, in bytes."""
    return {int(one.value.amount(capacity)) for one in configuration.thresholds() if one.signal == MEMORY_AVAILABLE}


def _notifier(service: Service[NodeAgentSettings], hierarchy: Hierarchy, group: str) -> Notifier | None:
    try:
        return Notifier(hierarchy, group)
    except HostError as error:
        service.log.warning("the kernel does not tell of memory: polling instead", reason=str(error))
        return None


def _machine(hierarchy: Hierarchy, group: str, directory: Path) -> Machine:
    """:raises HostError: if it cannot be read"""
    architecture = platform.machine()
    return Machine(
        system=platform.system().lower(),
        architecture=_ARCHITECTURES.get(architecture, architecture),
        kernel=platform.release(),
        cpus=os.cpu_count() or 1,
        memory_bytes=groups.node_memory(hierarchy, group, machine.PROC).capacity or 0,
        disk_bytes=disks.file_system(directory).capacity_bytes,
    )
